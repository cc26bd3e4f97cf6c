"""Processes for repeated work: spawned, told once what the work is, gone when their parent is."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from pybridge.errors import InputError

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
        raise InputError(
            "the procedure cannot be sent to other processes",
            code="not_picklable",
            field="procedure",
            expected="a function at the top of a module, or an instance of a class there",
            got=f"{type(error).__name__}: {error}",
            hint="workers=1 needs no sending.",
        ) from error
