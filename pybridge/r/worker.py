"""The child process that owns R: ``python -m pybridge.r.worker REQUESTS REPLIES IN OUT``.

Frames go over two pipes, REQUESTS and REPLIES: one byte for the kind, eight for the length, then
the bytes themselves, or, for large ones, their place in a file without a name that both processes
hold (IN and OUT; all four are descriptors). Whatever Python, R or C code prints goes to a file
that the host keeps. The process ends when the host closes the pipe or dies.
"""

from __future__ import annotations

import contextlib
import json
import locale
import os
import select
import shutil
import signal
import struct
import sys
import threading
import time
from typing import Any, NoReturn

HEADER = struct.Struct("=BQ")
INLINE, SHARED, READY, FAILED = range(4)
INLINE_MOST = 32 * 1024
# Up to this size a buffer or file is kept for the next call: fresh pages cost more than copying.
KEPT = 32 << 20
# What is to be removed in the end.
_places = [os.environ.get("PYBRIDGE_R_TEMPORARY", "")]
_UTF8_LOCALES = ("C.UTF-8", "C.utf8", "en_US.UTF-8", "UTF-8")


def _end() -> NoReturn:
    """Leave at once, and leave nothing: R's own farewell may hang, and R may be at work.

    A child of ours stops this process with all that it started, and only then removes the
    temporary files: before, R could still make new ones.
    """
    me, group = os.getpid(), os.getpgrp()
    if os.fork() == 0:
        os.setpgid(0, 0)
        with contextlib.suppress(ProcessLookupError):  # it may be gone by itself, and reaped
            if group == me:
                os.killpg(group, signal.SIGKILL)
            else:
                os.kill(me, signal.SIGKILL)
        for _ in range(50):
            for place in filter(None, _places):
                shutil.rmtree(place, ignore_errors=True)
            if not any(map(os.path.exists, _places)):
                break
            time.sleep(0.02)
    os._exit(0)


def _watch(pipe: int, parent: int) -> None:
    """End with the host, even while R computes: its pipe closes, or we get another parent."""
    poll = select.poll()
    poll.register(pipe, 0)
    while not poll.poll(1000) and os.getppid() == parent:
        pass
    # The main thread sees the closed pipe by itself when it is idle.
    time.sleep(0.1)
    _end()


def _use_utf8() -> str | None:
    """Names of domains are UTF-8; another locale would change those that it cannot write."""
    for name in _UTF8_LOCALES:
        try:
            locale.setlocale(locale.LC_CTYPE, name)
        except locale.Error:
            continue
        os.environ["LC_ALL"] = name
        return name
    return None


def _read(pipe: int, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        piece = os.read(pipe, min(count - len(data), 1 << 20))
        if not piece:
            _end()
        data += piece
    return bytes(data)


def _write(pipe: int, kind: int, data: Any, length: int | None = None) -> None:
    view = memoryview(HEADER.pack(kind, len(data) if length is None else length) + bytes(data))
    try:
        while view:
            view = view[os.write(pipe, view) :]
    except BrokenPipeError:  # the host is gone, perhaps since before R had started
        _end()


def read_file(file: int, view: memoryview, start: int = 0) -> memoryview:
    """Fill a view from a file; mapping the file costs more, by a fault for each page."""
    at = 0
    while at < len(view):
        count = os.preadv(file, [view[at : at + (1 << 30)]], start + at)
        if count == 0:
            raise EOFError("the shared file is shorter than announced")
        at += count
    return view


def _reply(pipe: int, file: int, view: memoryview) -> None:
    if len(view) <= INLINE_MOST:
        _write(pipe, INLINE, view)
        return
    at = 0
    while at < len(view):
        at += os.pwrite(file, view[at : at + (1 << 30)], at)
    _write(pipe, SHARED, b"", len(view))


def _serve(requests: int, replies: int, incoming: int, outgoing: int, utf8: str | None) -> None:
    from pybridge.r.embedded import limit_stack, session_folder, start_r

    answer = start_r(utf8)
    limit_stack()
    buffer = bytearray()
    _places.append(session_folder())
    _write(replies, READY, json.dumps({"session": _places[-1]}).encode())
    while True:
        kind, length = HEADER.unpack(_read(requests, HEADER.size))
        if kind == INLINE:
            view = answer(_read(requests, length))
        else:
            if not length <= len(buffer) <= max(length, KEPT):
                buffer = bytearray(length)
            view = answer(read_file(incoming, memoryview(buffer)[:length]))
        _reply(replies, outgoing, view)


def main() -> None:
    """Start R and answer until the host is gone."""
    requests, replies, incoming, outgoing = map(int, sys.argv[1:5])
    for file in (requests, replies, incoming, outgoing):
        os.set_inheritable(file, False)  # what R starts must not hold them
    threading.Thread(target=_watch, args=(requests, os.getppid()), daemon=True).start()
    # Made here and not by the host: a host that is killed before we watch it leaves nothing.
    os.mkdir(os.environ["PYBRIDGE_R_TEMPORARY"], mode=0o700)
    utf8 = _use_utf8()
    try:
        _serve(requests, replies, incoming, outgoing, utf8)
    except Exception as error:  # rpy2 raises ValueError, OSError and ffi.error as well
        text = f"{type(error).__module__}.{type(error).__name__}: {error}"
        _write(replies, FAILED, text.encode("utf-8", "replace"))
        _end()


if __name__ == "__main__":
    main()
