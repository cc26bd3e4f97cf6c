"""The door to R: ``call(shim, inputs) -> Reply``."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pybridge._options import choose, real_number, whole_number
from pybridge.errors import EngineUnavailable, EngineWarning, InputError
from pybridge.r.convert import to_r
from pybridge.r.packages import minimum, unavailable
from pybridge.r.stopped import door_fault, r_stopped
from pybridge.r.wire import Buffer
from pybridge.r.writer import encode

TRANSPORTS = ("worker", "inprocess")
# Inputs in one message: R works on the next block while the replies of the last are read.
_BLOCK = 64


@dataclasses.dataclass(frozen=True, eq=False)
class Reply:
    """What came back from R.

    Attributes
    ----------
    value : dict
        What the shim returned: float64 or bool arrays, lists of str (None where NA), nested
        dicts, :class:`~pybridge.r.wire.Factor`. Vectors stay vectors, of length 1 too.
    warnings, messages, printed : tuple of str
        R's words, in order; ``printed`` line by line.
    versions : dict of str
        Of R and of each package asked for.
    error : dict or None
        ``message``, ``call`` and ``class`` where R stopped (only from :func:`call_many`).
    """

    value: dict[str, Any]
    warnings: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    printed: tuple[str, ...] = ()
    versions: dict[str, str] = dataclasses.field(default_factory=dict)
    error: dict[str, Any] | None = None

    def warn(self, engine: str, *, stacklevel: int = 2) -> None:
        """Hand R's warnings on as Python warnings of the category EngineWarning, each once."""
        for text in dict.fromkeys(self.warnings):
            warnings.warn(f"{engine}: {text}", EngineWarning, stacklevel=stacklevel + 1)


def call(
    shim: str,
    inputs: Mapping[str, Any],
    *,
    packages: Sequence[str] = (),
    time_limit: float | None = None,
    transport: str | None = None,
    what: str | None = None,
) -> Reply:
    """Call one R function of ``pybridge/r/shims``.

    Parameters
    ----------
    shim : str
        The function's name; ``sae_fay_herriot`` lives in ``sae.R``.
    inputs : mapping of str
        Vectors (numpy, pandas, lists), matrices, scalars, None, nested mappings; see
        :func:`pybridge.r.convert.to_r` for what may cross.
    packages : sequence of str
        R packages that must be there; their versions come back in the reply.
    time_limit : float, optional
        Seconds for the call itself, not for starting R. Only with the worker.
    transport : {"worker", "inprocess"}, optional
        Default: the environment variable PYBRIDGE_R_TRANSPORT, else ``"worker"``.
    what : str, optional
        What an error names; default: ``shim``.

    Raises
    ------
    InputError
        Where an input cannot cross; R is not called then.
    EngineUnavailable
        Where R, rpy2 or a package is missing, too old, or does not load.
    EngineError
        Where the R function stops; its message is in ``got``.
    EngineTimeout, WorkerDied
        Where it took too long, or the process ended; the next call starts a new one.
    """
    (reply,) = call_many(
        shim, [inputs], packages=packages, time_limit=time_limit, transport=transport
    )
    if reply.error is not None:
        raise r_stopped(what or shim, reply)
    return reply


def call_many(
    shim: str,
    inputs: Sequence[Mapping[str, Any]],
    *,
    packages: Sequence[str] = (),
    time_limit: float | None = None,
    transport: str | None = None,
    workers: int = 1,
) -> list[Reply]:
    """Call one R function once for each of several inputs; the loop is R's.

    Parameters
    ----------
    shim, packages, time_limit, transport
        As in :func:`call`; the time limit is for the whole batch.
    inputs : sequence of mappings
    workers : int
        Share the inputs out among this many R processes. The answers do not depend on it.

    Returns
    -------
    list of Reply
        In the order of the inputs. An R error in one of them is in its ``error`` and leaves the
        others alone.
    """
    transport = choose(
        "transport",
        os.environ.get("PYBRIDGE_R_TRANSPORT") or "worker" if transport is None else transport,
        TRANSPORTS,
    )
    workers = whole_number("workers", workers, least=1)
    limit = None if time_limit is None else real_number("time_limit", time_limit)
    if limit is not None and limit <= 0:
        raise InputError(
            "time_limit must be positive",
            code="bad_time_limit",
            field="time_limit",
            expected="seconds, more than 0, or None",
            got=time_limit,
        )
    items = [to_r(item) for item in inputs]
    parts = [items[i::workers] for i in range(min(workers, max(1, len(items))))]
    jobs = [_requests(shim, part, packages) for part in parts]
    if transport == "inprocess" or len(jobs) == 1:
        answers = [_send(job, shim, limit, transport, len(parts)) for job in jobs]
    else:
        answers = _send_all(jobs, shim, limit)
    replies: list[Any] = [None] * len(items)
    for i, blocks in enumerate(answers):
        replies[i :: len(parts)] = [reply for block in blocks for reply in _replies(block, shim)]
    return replies


def require_packages(*names: str) -> dict[str, str]:
    """The versions of R and of these packages.

    Raises
    ------
    EngineUnavailable
        Where R, rpy2 or one of them is missing, too old, or does not load.
    """
    return call("selftest_echo", {}, packages=names).versions


def _request(shim: str, items: list[dict[str, Any]], packages: Sequence[str]) -> list[Buffer]:
    names = [packages] if isinstance(packages, str) else list(dict.fromkeys(packages))
    return encode(
        {
            "shim": [shim],
            "packages": names,
            "minimum": [minimum(name) for name in names],
            "items": tuple(items),
        }
    )


def _requests(
    shim: str, items: list[dict[str, Any]], packages: Sequence[str]
) -> Iterator[list[Buffer]]:
    """Requests for blocks of the inputs, each made when it is asked for."""
    for start in range(0, max(1, len(items)), _BLOCK):
        yield _request(shim, items[start : start + _BLOCK], packages)


def _send(
    job: Iterable[list[Buffer]], shim: str, limit: float | None, transport: str, workers: int
) -> list[Any]:
    if transport == "inprocess":
        from pybridge.r import inprocess

        return [inprocess.exchange(request) for request in job]
    if os.name != "posix":
        raise EngineUnavailable(
            "R can be called on Linux and macOS only",
            code="system_not_supported",
            field="R",
            expected="a POSIX system (on Windows: the subsystem for Linux)",
            got=os.name,
            hint='Use engine="native".',
        )
    from pybridge.r.pool import pool

    lease = pool().lend(at_least=workers)
    try:
        return lease.take().exchange(job, shim, limit)
    finally:
        try:
            lease.end()
        except BaseException:  # Ctrl-C, once more: without this, the next call would wait for ever
            lease.end()
            raise


def _send_all(
    jobs: Sequence[Iterable[list[Buffer]]], shim: str, limit: float | None
) -> list[list[Any]]:
    """Each job to a worker of its own; Ctrl-C stops them all."""
    from pybridge.r.pool import shutdown

    count = len(jobs)
    state = _Going()
    with concurrent.futures.ThreadPoolExecutor(count) as threads:
        parts = [_until(state, job) for job in jobs]
        try:
            futures = [threads.submit(_send, part, shim, limit, "worker", count) for part in parts]
            return [future.result() for future in futures]
        except Exception:
            # The others end after what they are at, at the same time limit at the latest.
            state.stopped = True
            raise
        except BaseException:
            # Also for those that start only now. No call: at its start Ctrl-C may come once more.
            state.stopped = True
            while True:
                try:
                    shutdown()
                    break
                except KeyboardInterrupt:  # first all are stopped
                    pass
            raise


class _Going:
    """Whether a batch goes on."""

    stopped = False


class _Stopped(Exception):
    """No more requests are to be sent."""


def _until(state: _Going, job: Iterable[list[Buffer]]) -> Iterator[list[Buffer]]:
    """The requests of a job, until it is stopped."""
    for request in job:
        if state.stopped:
            raise _Stopped
        yield request


def _replies(answer: dict[str, Any], shim: str) -> list[Reply]:
    trouble = answer.get("trouble")
    if trouble:
        raise unavailable(*(trouble[key][0] for key in ("package", "why", "installed", "text")))
    fault = answer.get("fault")
    if fault:
        raise door_fault(shim, fault["message"][0])
    versions = {name: value[0] for name, value in answer["versions"].items()}
    return [_reply(item, versions) for item in answer["items"] or []]


def _reply(item: dict[str, Any], versions: dict[str, str]) -> Reply:
    error = item["error"]
    return Reply(
        value=_read_only(item["value"] or {}),
        warnings=tuple(item["warnings"]),
        messages=tuple(item["messages"]),
        printed=tuple(item["printed"]),
        versions=versions,
        error=error
        and {
            "message": error["message"][0],
            "call": error["call"] and error["call"][0],
            "class": tuple(error["class"]),
        },
    )


def _read_only(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    elif isinstance(value, dict):
        for item in value.values():
            _read_only(item)
    return value
