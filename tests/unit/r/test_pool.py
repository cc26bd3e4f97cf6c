"""Lending workers: one user at a time, a new one for a dead one, none for a forked child."""

import os
import sys
import threading

import pytest

from pybridge.r import pool as module
from pybridge.r.pool import Pool


class Stand:
    made = 0

    def __init__(self):
        type(self).made += 1
        self.owner = os.getpid()
        self.alive = True
        self.killed = self.struck = self.swept = False

    def start(self):
        pass

    def kill(self):
        self.alive, self.killed = False, True

    def strike(self):
        self.struck = True

    def sweep(self):
        self.swept = True


@pytest.fixture
def pool(monkeypatch):
    monkeypatch.setattr(module, "Worker", Stand)
    monkeypatch.setattr(Stand, "made", 0)
    return Pool()


def test_a_worker_is_used_again(pool):
    with pool.lend() as first:
        pass
    with pool.lend() as second:
        assert second is first
    assert Stand.made == 1


def test_a_dead_worker_is_replaced(pool):
    with pool.lend() as first:
        first.alive = False
    with pool.lend() as second:
        assert second is not first and first.killed
    assert pool.all == [second]


def test_a_worker_that_dies_while_idle_is_replaced(pool):
    with pool.lend() as first:
        pass
    first.alive = False
    with pool.lend() as second:
        assert second is not first and first.killed


def test_an_error_gives_the_worker_back(pool):
    with pytest.raises(KeyError):
        with pool.lend():
            raise KeyError
    assert not pool.leases and len(pool.idle) == 1


def test_one_worker_serves_one_thread_at_a_time(pool):
    using, most, lock = [0], [0], threading.Lock()

    def work():
        with pool.lend():
            with lock:
                using[0] += 1
                most[0] = max(most[0], using[0])
            threading.Event().wait(0.01)
            with lock:
                using[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert most[0] == 1 and Stand.made == 1


def test_more_workers_on_request(pool):
    with pool.lend(at_least=2) as one:
        with pool.lend(at_least=2) as two:
            assert one is not two
    assert Stand.made == 2 and len(pool.idle) == 2


def test_closing_stops_the_idle_and_strikes_the_lent(pool):
    with pool.lend(at_least=2) as lent:
        with pool.lend(at_least=2) as idle:
            pass
        pool.close()
        assert idle.killed and lent.struck and lent.swept and not lent.killed


def test_a_worker_that_does_not_start_leaves_no_trace(pool, monkeypatch):
    def fail(self):
        self.alive = False
        raise OSError

    monkeypatch.setattr(Stand, "start", fail)
    with pytest.raises(OSError):
        with pool.lend():
            pass
    assert not pool.leases and pool.all == [] and pool.idle == []


def interrupted_at(count, work):
    """Run it with Ctrl-C at the ``count``-th line of the pool's own code; False past its end."""
    left = [count]

    def trace(frame, event, argument):
        if frame.f_code.co_filename != module.__file__:
            return None
        if event == "line":
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return left[0] <= 0


@pytest.mark.parametrize("dies", [False, True])
def test_ctrl_c_at_any_line_leaves_a_pool_that_works(pool, dies):
    def work():
        lease = pool.lend()
        try:
            worker = lease.take()
            worker.alive = not dies
        finally:
            try:
                lease.end()
            except BaseException:
                lease.end()
                raise

    count = 1
    while interrupted_at(count, work):
        count += 1
        assert not pool.leases
        assert pool.lock.acquire(blocking=False) and pool.lock.release() is None
        with pool.lend() as worker:  # would wait for ever
            assert worker.alive
        assert pool.all == pool.idle == [worker]
    assert count > 15


def test_closing_finds_a_worker_that_starts(pool, monkeypatch):
    found = []

    def start(self):
        pool.close()
        found.append(self.struck)

    monkeypatch.setattr(Stand, "start", start)
    with pool.lend():
        pass
    assert found == [True]
