"""Bytes between the host and a worker: pipes for small ones, a file that both hold for large."""

from __future__ import annotations

import fcntl
import os
import select
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from pybridge.r.temporary import temporary_folder
from pybridge.r.wire import Buffer
from pybridge.r.worker import HEADER, INLINE, INLINE_MOST, KEPT, SHARED

_PIECE = 1 << 16
# What poll can wait for, in milliseconds: 24 days. Longer is for ever.
_LONGEST_WAIT = 2**31 - 1


class Ended(Exception):
    """The child closed its pipe."""


class TooLate(Exception):
    """No answer before the deadline."""


def nameless_file() -> int:
    """A file in memory where the system has such, else on disk; nothing to clean up."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("pybridge")
    with tempfile.TemporaryFile(dir=temporary_folder()) as file:
        return os.dup(file.fileno())


def above(file: int) -> int:
    """The same file under a number that is not one of the three standard ones.

    A host without standard input or output (a daemon) has those numbers free, and a child that
    gets the file under one of them has it covered by its own input or output.
    """
    if file > 2:
        return file
    other = fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(file)
    return other


def shorten(file: int) -> None:
    """Give back the space of a large message."""
    if os.fstat(file).st_size > KEPT:
        os.ftruncate(file, 0)


def send(pipe: int, file: int, pieces: Sequence[Buffer]) -> None:
    """Send one message: through the pipe, or through the file with a word in the pipe."""
    length = sum(map(len, pieces))
    shorten(file)
    if length <= INLINE_MOST:
        write_all(pipe, HEADER.pack(INLINE, length) + b"".join(pieces))
        return
    at, small = 0, bytearray()
    for piece in pieces:
        if len(piece) < _PIECE:
            small += piece
        if len(piece) >= _PIECE or len(small) >= _PIECE:
            at = _write_at(file, small, at)
            small = bytearray()
        if len(piece) >= _PIECE:
            at = _write_at(file, piece, at)
    _write_at(file, small, at)
    write_all(pipe, HEADER.pack(SHARED, length))


def write_all(pipe: int, data: Any) -> None:
    """Write all of it."""
    view = memoryview(data)
    while view:
        view = view[os.write(pipe, view) :]


def _write_at(file: int, data: Any, at: int) -> int:
    view = memoryview(data)
    while view:
        count = os.pwrite(file, view[: 1 << 30], at)
        view, at = view[count:], at + count
    return at


def read_exactly(pipe: int, count: int, deadline: float | None) -> bytearray:
    """So many bytes, or Ended, or TooLate where a deadline (monotonic seconds) has passed."""
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    data = bytearray()
    while len(data) < count:
        left = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
        left = None if left is not None and left > _LONGEST_WAIT else left
        if not poll.poll(left):
            raise TooLate
        piece = os.read(pipe, count - len(data))
        if not piece:
            raise Ended
        data += piece
    return data
