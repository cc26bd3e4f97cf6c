"""R in this very process: for debugging, and for the least delay.

R has one stack, one random stream and one temporary directory, so it answers only the process
and the thread that started it.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import threading
import warnings
from collections.abc import Callable
from typing import Any

from pybridge.errors import EngineError
from pybridge.r.embedded import session_folder, start_r
from pybridge.r.installation import find_r, need_rpy2, why_not_started
from pybridge.r.process import Worker
from pybridge.r.reader import decode
from pybridge.r.wire import Buffer

_owner: tuple[int, int] | None = None
_answer: Callable[[Any], memoryview] | None = None
_lock = threading.Lock()


def _check_owner() -> None:
    if _owner is None:
        return
    pid, thread = _owner
    if pid != os.getpid():
        raise _not_here("a process forked from the one that started R", "process")
    if thread != threading.get_ident():
        raise _not_here("another thread than the one that started R", "thread")


def _not_here(got: str, what: str) -> EngineError:
    return EngineError(
        f"R in this process belongs to another {what}",
        code=f"wrong_{what}",
        field="transport",
        expected=f"the {what} that made the first call",
        got=got,
        hint='Use transport="worker", which may be used from anywhere.',
    )


def _start() -> Callable[[Any], memoryview]:
    """Start R here, after a child has shown that it starts at all: it may end the process."""
    need_rpy2()
    installation = find_r()
    worker = Worker()
    worker.start()
    worker.kill()
    before = dict(os.environ)
    on_interrupt = signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    os.environ.update(installation.variables)
    try:
        # rpy2 warns where this is not the main thread, since R takes Ctrl-C then.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            host_has_r = bool(session_folder())
            answer = start_r()
            if not host_has_r:
                _own(session_folder())
            return answer
    except Exception as error:
        text = f"{type(error).__module__}.{type(error).__name__}: {error}"
        raise why_not_started(text, installation) from error
    finally:
        # rpy2 and R write variables and a signal handler of their own; these are the host's.
        if main and on_interrupt is not None:
            signal.signal(signal.SIGINT, on_interrupt)
        for name in set(os.environ) - set(before):
            del os.environ[name]
        os.environ.update(before)
        # R asks C for its home again and again; os.environ does not show what putenv sets.
        os.putenv("R_HOME", installation.home)


def _own(folder: str) -> None:
    """Remove the session's folder when this process ends, and not when a forked child does.

    rpy2 ends the R that it starts since 3.6 only, and then in forked children too.
    """
    from rpy2.rinterface_lib import embedded

    atexit.register(_remove, folder, os.getpid())
    os.register_at_fork(after_in_child=lambda: atexit.unregister(embedded.endr))


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def exchange(request: list[Buffer]) -> Any:
    """Answer one request in this process.

    Raises
    ------
    EngineError
        From another process (``wrong_process``) or thread (``wrong_thread``).
    """
    global _owner, _answer
    _check_owner()
    with _lock:
        if _answer is None:
            _answer = _start()
            _owner = (os.getpid(), threading.get_ident())
    _check_owner()
    return decode(_answer(b"".join(request)))
