"""The workers of this process: lent to one thread at a time, started when needed.

A forked child forgets the workers of its parent and starts its own.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from collections.abc import Iterator

from pybridge.r.process import Worker


class Pool:
    """Up to ``limit`` workers; more callers than workers wait for their turn."""

    def __init__(self) -> None:
        self.limit = 1
        self.idle: list[Worker] = []
        self.all: list[Worker] = []
        self.lent = 0
        self.turn = threading.Condition()

    @contextlib.contextmanager
    def lend(self, *, at_least: int = 1) -> Iterator[Worker]:
        """A worker that no other thread uses; a new one where the last has ended."""
        worker, mine = None, False
        try:
            with self.turn:
                self.limit = max(self.limit, at_least)
                while self.lent >= self.limit:
                    self.turn.wait()
                self.lent, mine = self.lent + 1, True
                worker = self.idle.pop() if self.idle else None
            if worker is None or not worker.alive:
                if worker is not None:
                    self._drop(worker)
                worker = Worker()
                self.all.append(worker)
            yield worker
        finally:
            with self.turn:
                self.lent -= mine
                if worker is not None:
                    if worker.alive:
                        self.idle.append(worker)
                    else:
                        self._drop(worker)
                self.turn.notify()

    def _drop(self, worker: Worker) -> None:
        worker.kill()
        if worker in self.all:
            self.all.remove(worker)

    def close(self) -> None:
        """Stop every worker; a call that is under way in another thread ends with WorkerDied."""
        with self.turn:
            idle, self.idle = self.idle, []
        for worker in idle:
            self._drop(worker)
        # The thread that uses one of these sees its pipe close and puts the rest away.
        for worker in list(self.all):
            worker.strike()


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
