"""The host's side of one worker: start it, exchange one message, stop it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from typing import Any

from pybridge.errors import EngineTimeout, WorkerDied
from pybridge.r.channel import Ended, TooLate, nameless_file, read_exactly, send, shorten
from pybridge.r.installation import environment, find_r, need_rpy2, why_not_started
from pybridge.r.reader import decode, decode_file
from pybridge.r.temporary import temporary_folder
from pybridge.r.wire import Buffer
from pybridge.r.worker import FAILED, HEADER, READY, SHARED, read_file

_START_SECONDS = 120.0
_FAREWELL_SECONDS = 0.5
# Replies up to this size are read at once, which frees the file for the next.
_COPIED = 4 << 20
_BOOT = "import sys; sys.path[:] = {path!r}; from pybridge.r.worker import main; main()"


def _import_path() -> list[str]:
    """The host's import path, without the working directory, which may shadow modules."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    path = [entry for entry in sys.path if entry and isinstance(entry, str)]
    return path if root in path else [*path, root]


class Worker:
    """A child process that owns R. Not for two threads at once: the pool sees to that."""

    def __init__(self) -> None:
        need_rpy2()
        self.installation = find_r()
        self.owner = os.getpid()
        self.calls = 0
        # A name that nobody else has; the child makes the folder, and removes it if we die.
        name = f"pybridge-r-{secrets.token_hex(8)}"
        self.temporary = os.path.join(temporary_folder(), name)
        self.to_r, self.from_r, self.log = (nameless_file() for _ in range(3))
        # Both processes hold the log; appending lets the host empty it between calls.
        fcntl.fcntl(self.log, fcntl.F_SETFL, fcntl.fcntl(self.log, fcntl.F_GETFL) | os.O_APPEND)
        self.child: subprocess.Popen[bytes] | None = None
        try:
            self._start()
        except BaseException:
            self.kill()
            raise

    def _start(self) -> None:
        boot = _BOOT.format(path=_import_path())
        # Its own session: Ctrl-C reaches the host alone, which then stops the child.
        self.child = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", boot, str(self.to_r), str(self.from_r)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=environment(self.installation, self.temporary),
            pass_fds=(self.to_r, self.from_r),
            start_new_session=True,
            bufsize=0,
        )
        deadline = time.monotonic() + _START_SECONDS
        try:
            kind, length = HEADER.unpack(self._read(HEADER.size, deadline))
            text = bytes(self._read(length, deadline)).decode("utf-8", "replace")
        except Ended:
            text = f"{self._ending()}\n{self.said()}"
            raise why_not_started(text, self.installation) from None
        except TooLate:
            text = f"{self.said()}\nno answer within {_START_SECONDS:.0f} s"
            raise why_not_started(text, self.installation) from None
        if kind != READY:
            raise why_not_started(text, self.installation)

    def exchange(
        self, requests: Iterable[list[Buffer]], shim: str, limit: float | None
    ) -> list[Any]:
        """Send requests one after the other and return the decoded replies.

        R works on the next one while this process decodes the last.

        Raises
        ------
        EngineTimeout, WorkerDied
            The worker is stopped then, as it is by any other exception (Ctrl-C).
        """
        deadline = None if limit is None else time.monotonic() + limit
        self.calls += 1
        try:
            return self._exchange(requests, deadline)
        except TooLate:
            self.kill()
            raise EngineTimeout(
                f"R did not finish {shim} within {limit:g} s and was stopped",
                code="time_limit",
                field=shim,
                expected=f"an answer within {limit:g} s",
                got="none",
                hint="Raise time_limit, or give R less to do; the next call starts R anew.",
            ) from None
        except (Ended, BrokenPipeError):
            how, said = self._ending(), self.said()
            self.kill()
            raise WorkerDied(
                f"the process that runs R ended during {shim}: {how}",
                code="worker_died",
                field=shim,
                expected="an answer",
                got=said or how,
                hint="The next call starts R anew.",
            ) from None
        except BaseException:
            self.kill()
            raise

    def _exchange(self, requests: Iterable[list[Buffer]], deadline: float | None) -> list[Any]:
        assert self.child is not None and self.child.stdin is not None
        pipe = self.child.stdin.fileno()
        os.ftruncate(self.log, 0)
        replies = []
        waiting = iter(requests)
        request = next(waiting, None)
        if request is not None:
            send(pipe, self.to_r, request)
        while request is not None:
            request = next(waiting, None)  # made while R works
            data = self._receive(deadline)
            reply = decode_file(self.from_r, data) if isinstance(data, int) else None
            if request is not None:
                send(pipe, self.to_r, request)
            replies.append(decode(data) if reply is None else reply)
        shorten(self.from_r)
        return replies

    def _receive(self, deadline: float | None) -> bytearray | int:
        """One reply as bytes, or its length in the file where it is too large to copy."""
        kind, length = HEADER.unpack(self._read(HEADER.size, deadline))
        if kind == SHARED:
            if length > _COPIED:
                return int(length)
            data = bytearray(length)
            read_file(self.from_r, memoryview(data))
            return data
        data = self._read(length, deadline)
        if kind == FAILED:
            os.write(self.log, data)
            raise Ended
        return data

    def _read(self, count: int, deadline: float | None) -> bytearray:
        assert self.child is not None and self.child.stdout is not None
        return read_exactly(self.child.stdout.fileno(), count, deadline)

    def said(self) -> str:
        """The last lines that R or C code wrote to its standard error."""
        size = os.fstat(self.log).st_size
        text = os.pread(self.log, 2000, max(0, size - 2000)).decode("utf-8", "replace")
        return " | ".join(line.strip() for line in text.splitlines()[-5:] if line.strip())

    def _ending(self) -> str:
        """How the child ended, in words."""
        assert self.child is not None
        try:
            code = self.child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return "it closed its pipe"
        if code >= 0:
            return f"it exited with status {code}"
        try:
            return f"killed by signal {signal.Signals(-code).name}"
        except ValueError:
            return f"killed by signal {-code}"

    @property
    def alive(self) -> bool:
        """Whether the child runs and belongs to this process."""
        return self.child is not None and self.owner == os.getpid() and self.child.poll() is None

    def kill(self) -> None:
        """Stop the child and all that it started, and remove its temporary files."""
        if self.child is not None:
            # Its pipes closed, the child ends by itself and removes its files, even if this
            # process is killed meanwhile; by force only where it does not.
            _close_pipes(self.child)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.child.wait(timeout=_FAREWELL_SECONDS)
            self.strike()
            self.child.wait()
            self.child = None
        self._close_files()
        shutil.rmtree(self.temporary, ignore_errors=True)

    def strike(self) -> None:
        """End the child and all that it started, and nothing else: safe from another thread."""
        child = self.child
        if child is None or self.owner != os.getpid() or child.returncode is not None:
            return
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass

    def forget(self) -> None:
        """In a forked child: close our copies, and leave the process to its owner."""
        child, self.child = self.child, None
        if child is not None:
            child.returncode = 0
            _close_pipes(child)
        self._close_files()

    def _close_files(self) -> None:
        for file in (self.to_r, self.from_r, self.log):
            if file >= 0:
                os.close(file)
        self.to_r = self.from_r = self.log = -1


def _close_pipes(child: subprocess.Popen[bytes]) -> None:
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except OSError:
                pass
