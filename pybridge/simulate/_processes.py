"""Processes for repeated work: spawned, told once what the work is, gone when their parent is."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from pybridge.errors import InputError, PybridgeError, WorkerDied

# In a worker: the task that its pool works on. Set once, before any block arrives.
_task: Any = None


def processes(count: int, task: Any) -> ProcessPoolExecutor:
    """A pool whose processes know the task; a population is sent once, not with every block."""
    return ProcessPoolExecutor(
        count,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_begin,
        initargs=(task,),
    )


def _begin(task: Any) -> None:
    global _task
    _task = task
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    """A parent that is killed cannot stop its processes, and they would wait for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def run_shared(numbers: list[int]) -> Any:
    """Repetitions of the task that this process was told."""
    return _task.run(numbers)


def sendable(task: Any) -> None:
    """Refuse, before any process starts, what cannot be sent to one."""
    try:
        pickle.dumps(task.procedure)
    except Exception as error:
        raise not_sendable(error, hint="workers=1 needs no sending.") from error


def not_sendable(error: Exception, *, hint: str) -> InputError:
    """What to say of a procedure that does not pickle."""
    return InputError(
        "the procedure cannot be sent to other processes",
        code="not_picklable",
        field="procedure",
        expected="a function at the top of a module, or an instance of a class there",
        got=f"{type(error).__name__}: {error}",
        hint=hint,
    )


def need_executor(executor: object) -> None:
    """None, or what submits and shuts down as executors do; a Dask client is none itself."""
    if executor is None or isinstance(executor, Executor):
        return
    shaped = all(callable(getattr(executor, name, None)) for name in ("submit", "shutdown"))
    # A Dask client has both too, but its futures are of another kind.
    if shaped and not isinstance(executor, type) and not hasattr(executor, "get_executor"):
        return
    raise InputError(
        "this is not an executor",
        code="wrong_type",
        field="executor",
        expected="concurrent.futures.Executor, or an object with its submit and shutdown",
        got=repr(executor) if isinstance(executor, type) else type(executor).__name__,
        hint="Of a Dask client: client.get_executor()."
        if hasattr(executor, "get_executor")
        else None,
    )


def results(task: Any, blocks: list[list[int]], workers: int, executor: Executor | None) -> Any:
    """Results of blocks, as they are finished."""
    if executor is None and (workers == 1 or len(blocks) < 2):
        for block in blocks:
            yield task.run(block)
        return
    if executor is not None:
        yield from _elsewhere(task, blocks, executor)
        return
    sendable(task)
    with processes(min(workers, len(blocks)), task) as pool:
        yield from _finished([pool.submit(run_shared, block) for block in blocks])


def _elsewhere(task: Any, blocks: list[list[int]], executor: Executor) -> Any:
    """Results of blocks by the user's executor, whose own troubles become errors of ours.

    What can be sent depends on the executor: threads take everything, Dask and loky take functions
    that pickle does not.
    """
    try:
        yield from _finished([_future(executor.submit(task.run, block)) for block in blocks])
    except PybridgeError:
        raise
    except Exception as error:
        if "pickle" in f"{type(error).__name__} {error}".lower():
            raise not_sendable(error, hint="A ThreadPoolExecutor needs no sending.") from error
        raise _died(error, "executor") from error


def _future(submitted: object) -> Future[Any]:
    """What an executor gave back, if it can be waited for."""
    if isinstance(submitted, Future):
        return submitted
    raise InputError(
        "the executor's submit gave no future that can be waited for",
        code="wrong_type",
        field="executor",
        expected="submit that returns a concurrent.futures.Future",
        got=type(submitted).__name__,
    )


def _finished(futures: list[Future[Any]]) -> Any:
    waiting = set(futures)
    try:
        while waiting:
            ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in ready:
                yield future.result()
    except BrokenProcessPool as error:
        raise _died(error, "workers") from error
    finally:
        for future in waiting:
            future.cancel()


def _died(error: Exception, field: str) -> WorkerDied:
    return WorkerDied(
        "a process of the simulation ended",
        code="worker_died",
        field=field,
        expected="processes that live as long as the simulation",
        got=f"{type(error).__name__}: {error}",
        hint="With checkpoint=... the next call goes on from what was finished. Scripts that "
        "start processes need `if __name__ == '__main__':`.",
    )
