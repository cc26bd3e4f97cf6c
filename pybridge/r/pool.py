"""The workers of this process: lent to one thread at a time, started when needed.

A forked child forgets the workers of its parent and starts its own.
"""

from __future__ import annotations

import atexit
import os
import threading

from pybridge.r.process import Worker


class Lease:
    """The use of one worker by one thread, from :meth:`take` to :meth:`end`.

    Ctrl-C may come at any place: what is taken and given back changes hands in one statement,
    and ``end`` may be called again after it was interrupted.
    """

    def __init__(self, pool: Pool, at_least: int) -> None:
        self.pool = pool
        self.at_least = at_least
        self.thread = threading.get_ident()
        self.worker: Worker | None = None

    def take(self) -> Worker:
        """A worker that no other thread uses; a new one where the last has ended."""
        pool = self.pool
        with pool.lock:
            pool.limit = max(pool.limit, self.at_least)
            # A call within a call (of a signal's handler) would wait for its own thread.
            while len(pool.leases) >= pool.limit and not pool.lent_to(self.thread):
                pool.turn.wait()
            pool.leases.add(self)
            if pool.idle:
                self.worker, pool.idle = pool.idle[-1], pool.idle[:-1]
        if self.worker is None or not self.worker.alive:
            self.worker = None
            pool.tidy()
            self.worker = worker = Worker()
            # Before it starts: who closes the pool meanwhile must find it.
            with pool.lock:
                pool.all.append(worker)
            worker.start()
        return self.worker

    def end(self) -> None:
        """Give the worker back, or put it away where it has ended."""
        pool = self.pool
        with pool.lock:
            worker = self.worker
            if worker is not None and worker.alive:
                self.worker, pool.idle = None, [*pool.idle, worker]
            pool.leases.discard(self)
            pool.turn.notify()
        pool.tidy()

    def __enter__(self) -> Worker:
        try:
            return self.take()
        except BaseException:
            self.end()
            raise

    def __exit__(self, *error: object) -> None:
        self.end()


class Pool:
    """Up to ``limit`` workers; more callers than workers wait for their turn."""

    def __init__(self) -> None:
        self.limit = 1
        self.idle: list[Worker] = []
        self.all: list[Worker] = []
        self.leases: set[Lease] = set()
        # Entered as such: a condition's own way in has a place where Ctrl-C leaves it locked.
        self.lock = threading.RLock()
        self.turn = threading.Condition(self.lock)

    def lend(self, *, at_least: int = 1) -> Lease:
        """The use of a worker, which begins with ``take`` or ``with``."""
        return Lease(self, at_least)

    def lent_to(self, thread: int) -> bool:
        """Whether this thread has a worker already."""
        return any(lease.thread == thread for lease in self.leases)

    def tidy(self) -> None:
        """Put away the workers that nobody uses and nobody can: ended, or lost by a Ctrl-C."""
        with self.lock:
            wanted = {*self.idle, *(lease.worker for lease in self.leases)}
            lost = [worker for worker in self.all if worker not in wanted]
        for worker in lost:
            worker.kill()  # two threads may do this at once
            with self.lock:
                self.all = [other for other in self.all if other is not worker]

    def close(self) -> None:
        """Stop every worker; a call that is under way in another thread ends with WorkerDied."""
        self.idle = []
        self.tidy()
        # The thread that uses one of these sees its pipe close and puts the rest away.
        for worker in list(self.all):
            worker.strike()
        for worker in list(self.all):
            worker.sweep()


_pool = Pool()


def pool() -> Pool:
    """The pool of this process."""
    return _pool


def shutdown() -> None:
    """Stop the R processes of this Python process; the next call starts anew."""
    _pool.close()


def _after_fork() -> None:
    global _pool
    for worker in _pool.all:
        worker.forget()
    _pool = Pool()


atexit.register(shutdown)
os.register_at_fork(after_in_child=_after_fork)
