"""The host's side of one worker: start it, exchange one message, stop it."""

from __future__ import annotations

import fcntl
import json
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
from pybridge.r.channel import Ended, TooLate, above, nameless_file, read_exactly, send, shorten
from pybridge.r.installation import environment, find_r, need_rpy2, why_not_started
from pybridge.r.reader import decode, decode_file
from pybridge.r.stopped import system_refused
from pybridge.r.temporary import temporary_folder
from pybridge.r.wire import Buffer
from pybridge.r.worker import FAILED, HEADER, READY, SHARED, read_file

_START_SECONDS = 120.0
_FAREWELL_SECONDS = 0.5
_LAST_SECONDS = 5.0
# Replies up to this size are read at once, which frees the file for the next.
_COPIED = 4 << 20
_BOOT = "import sys; sys.path[:] = {path!r}; from pybridge.r.worker import main; main()"


def _import_path() -> list[str]:
    """The host's import path, without the working directory, which may shadow modules.

    The pybridge of this process comes before any other.
    """
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    path = [entry for entry in sys.path if entry and isinstance(entry, str)]
    others = [i for i, at in enumerate(path) if os.path.isdir(os.path.join(at, "pybridge"))]
    first = others[0] if others else len(path)
    return path if path[first : first + 1] == [root] else [*path[:first], root, *path[first:]]


class Worker:
    """A child process that owns R. Not for two threads at once: the pool sees to that.

    :meth:`kill` may be called at any time and again: a second Ctrl-C ends the first one's call.
    """

    def __init__(self) -> None:
        need_rpy2()
        self.installation = find_r()
        self.owner = os.getpid()
        self.calls = 0
        # A name that nobody else has; the child makes the folder, and removes it if we die.
        name = f"pybridge-r-{secrets.token_hex(8)}"
        self.temporary = os.path.join(temporary_folder(), name)
        # Where R keeps its files if the user's .Renviron sends them elsewhere.
        self.session = ""
        self.files: dict[str, int] = {}
        self.child: subprocess.Popen[bytes] | None = None
        self.ready = self.unwanted = False

    def start(self) -> None:
        """Start R; to be called once."""
        try:
            self._start()
        except OSError as error:
            self.kill()
            raise system_refused(error) or error from None
        except BaseException:
            self.kill()
            raise

    def _start(self) -> None:
        files = self.files
        for name in ("to_r", "from_r", "log"):
            files[name] = above(nameless_file())
        # Both processes hold the log; appending lets the host empty it between calls.
        log = files["log"]
        fcntl.fcntl(log, fcntl.F_SETFL, fcntl.fcntl(log, fcntl.F_GETFL) | os.O_APPEND)
        theirs, files["requests"] = map(above, os.pipe())
        files["theirs"] = theirs
        files["replies"], files["theirs too"] = map(above, os.pipe())
        given = (theirs, files["theirs too"], files["to_r"], files["from_r"])
        # Its own session: Ctrl-C reaches the host alone, which then stops the child.
        self.child = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", _BOOT.format(path=_import_path())]
            + [str(file) for file in given],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment(self.installation, self.temporary),
            pass_fds=given,
            start_new_session=True,
        )
        for name in ("theirs", "theirs too"):
            os.close(files.pop(name))
        self._hear()

    def _hear(self) -> None:
        """Wait for the child's first word."""
        deadline = time.monotonic() + _START_SECONDS
        try:
            if self.unwanted:
                raise Ended
            kind, length = HEADER.unpack(self._read(HEADER.size, deadline))
            text = bytes(self._read(length, deadline)).decode("utf-8", "replace")
        except Ended:
            if self.unwanted:
                raise self._died("its start", "stopped by shutdown()") from None
            text = f"{self._ending()}\n{self.said()}"
            raise why_not_started(text, self.installation) from None
        except TooLate:
            text = f"{self.said()}\nno answer within {_START_SECONDS:.0f} s"
            raise why_not_started(text, self.installation) from None
        if kind != READY:
            raise why_not_started(text, self.installation)
        self.session = json.loads(text)["session"]
        self.ready = True

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
            raise self._died(shim, self._ending()) from None
        except OSError as error:
            self.kill()
            raise system_refused(error) or error from None
        except BaseException:
            self.kill()
            raise

    def _died(self, what: str, how: str) -> WorkerDied:
        """Put away the rest of a child that ended, and say how it did."""
        said = self.said()
        self.kill()
        return WorkerDied(
            f"the process that runs R ended during {what}: {how}",
            code="worker_died",
            field=what,
            expected="an answer",
            got=said or how,
            hint="The next call starts R anew; pybridge doctor loads each package by itself.",
        )

    def _exchange(self, requests: Iterable[list[Buffer]], deadline: float | None) -> list[Any]:
        pipe, to_r, from_r = (self.files[name] for name in ("requests", "to_r", "from_r"))
        os.ftruncate(self.files["log"], 0)
        replies = []
        waiting = iter(requests)
        request = next(waiting, None)
        if request is not None:
            send(pipe, to_r, request)
        while request is not None:
            request = next(waiting, None)  # made while R works
            data = self._receive(deadline)
            reply = decode_file(from_r, data) if isinstance(data, int) else None
            if request is not None:
                send(pipe, to_r, request)
            replies.append(decode(data) if reply is None else reply)
        shorten(from_r)
        return replies

    def _receive(self, deadline: float | None) -> bytearray | int:
        """One reply as bytes, or its length in the file where it is too large to copy."""
        kind, length = HEADER.unpack(self._read(HEADER.size, deadline))
        if kind == SHARED:
            if length > _COPIED:
                return int(length)
            data = bytearray(length)
            read_file(self.files["from_r"], memoryview(data))
            return data
        data = self._read(length, deadline)
        if kind == FAILED:
            os.write(self.files["log"], data)
            raise Ended
        return data

    def _read(self, count: int, deadline: float | None) -> bytearray:
        return read_exactly(self.files["replies"], count, deadline)

    def said(self) -> str:
        """The last lines that R or C code wrote to its standard error."""
        log = self.files["log"]
        size = os.fstat(log).st_size
        text = os.pread(log, 2000, max(0, size - 2000)).decode("utf-8", "replace")
        return " | ".join(line.strip() for line in text.splitlines()[-5:] if line.strip())

    def _ending(self) -> str:
        """How the child ended, in words."""
        code = self._wait(5.0)
        if code is None:
            return "it closed its pipe"
        if code >= 0:
            return f"it exited with status {code}"
        try:
            return f"killed by signal {signal.Signals(-code).name}"
        except ValueError:
            return f"killed by signal {-code}"

    def _wait(self, seconds: float) -> int | None:
        """The child's exit status once it has one, or None.

        subprocess waits under a lock, which Ctrl-C at the wrong moment leaves locked for ever.
        """
        child, end, pause = self.child, time.monotonic() + seconds, 0.0005
        while child is not None and child.returncode is None:
            try:
                pid, status = os.waitpid(child.pid, os.WNOHANG)
            except ChildProcessError:  # somebody else has waited for it
                child.returncode = 0
                break
            if pid:
                child.returncode = os.waitstatus_to_exitcode(status)
            elif time.monotonic() >= end:
                break
            else:
                time.sleep(pause)
                pause = min(2 * pause, 0.02)
        return None if child is None else child.returncode

    @property
    def alive(self) -> bool:
        """Whether the child can answer and belongs to this process."""
        return self.ready and self.owner == os.getpid() and self._wait(0.0) is None

    def kill(self) -> None:
        """Stop the child and all that it started, and remove its temporary files."""
        self.ready = False
        # Its pipes closed, the child ends by itself and removes its files, even if this
        # process is killed meanwhile; by force only where it does not.
        self._close("requests", "replies", "theirs", "theirs too")
        if self.child is not None:
            if self._wait(_FAREWELL_SECONDS) is None:
                self.strike()
                self._wait(_LAST_SECONDS)
            self.child = None
        self._close(*self.files)
        self._remove()

    def strike(self) -> None:
        """End the child and all that it started, and nothing else: safe from another thread."""
        self.unwanted = True  # seen by the thread that starts it, where there is no child yet
        child = self.child
        if child is None or self.owner != os.getpid() or child.returncode is not None:
            return
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass

    def sweep(self) -> None:
        """After a strike, remove the files: the thread that would may never run again."""
        child, end = self.child, time.monotonic() + _FAREWELL_SECONDS
        look = os.WEXITED | os.WNOHANG | os.WNOWAIT
        while child is not None and child.returncode is None and time.monotonic() < end:
            try:
                if os.waitid(os.P_PID, child.pid, look) is not None:
                    break
            except ChildProcessError:
                break
            time.sleep(0.001)
        self._remove()

    def _remove(self) -> None:
        for place in (self.temporary, self.session):
            if place:
                shutil.rmtree(place, ignore_errors=True)

    def forget(self) -> None:
        """In a forked child: close our copies, and leave the process to its owner."""
        child, self.child = self.child, None
        if child is not None:
            child.returncode = 0
        self._close(*self.files)

    def _close(self, *names: str) -> None:
        for name in names:
            file = self.files.pop(name, None)
            if file is not None:
                os.close(file)
