"""Lending workers: one user at a time, a new one for a dead one, none for a forked child."""

import os
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
        self.killed = self.struck = False

    def kill(self):
        self.alive, self.killed = False, True

    def strike(self):
        self.struck = True


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
    assert pool.lent == 0 and len(pool.idle) == 1


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
        assert idle.killed and lent.struck and not lent.killed


def test_a_worker_that_does_not_start_leaves_no_trace(pool, monkeypatch):
    def fail():
        raise OSError

    monkeypatch.setattr(module, "Worker", fail)
    with pytest.raises(OSError):
        with pool.lend():
            pass
    assert pool.lent == 0 and pool.all == [] and pool.idle == []
