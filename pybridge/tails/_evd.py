"""Adapter to R's evd: fpot for the generalised Pareto distribution."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pybridge.errors import EngineWarning
from pybridge.r import Reply, call_many
from pybridge.tails._engine_options import checked_options
from pybridge.tails._native import NO_COVARIANCE, EngineAnswer
from pybridge.tails._r_script import heavy_tail, r_arguments, r_unit
from pybridge.tails.thresholds import Exceedances

# Arguments of evd::fpot that leave the result a generalised Pareto fit of the exceedances, and
# arguments of optim that it passes on.
OPTIONS = ("start", "std.err", "corr", "method", "warn.inf", "control", "npp", "time_limit")


def answers(
    samples: Sequence[np.ndarray],
    tails: Sequence[Exceedances],
    *,
    mode: str,
    options: Mapping[str, Any],
) -> list[EngineAnswer]:
    """Fits of several tails; an error of R in one of them is its answer.

    ``guarded`` sends the excesses, which R divides by their mean, or, where the tail is heavy, by
    a power of two near their scale; ``raw`` the scores as they are.
    """
    arguments = checked_options(options, OPTIONS, "evd::fpot")
    time_limit = arguments.pop("time_limit", None)
    inputs = []
    for values, tail in zip(samples, tails):
        if mode == "raw":
            inputs.append({"x": values, "threshold": tail.threshold, "arguments": arguments})
        else:
            inputs.append(guarded_inputs("evd", tail.excesses, arguments))
    replies = call_many("evd_fpot", inputs, packages=("evd",), time_limit=time_limit)
    warn_once(replies, "evd")
    return [with_note(_answer(reply), sent) for reply, sent in zip(replies, inputs)]


def guarded_inputs(engine: str, excesses: np.ndarray, options: Mapping[str, Any]) -> dict[str, Any]:
    """What the shims of evd and ismev take for a guarded fit."""
    heavy = heavy_tail(excesses)
    return {
        "x": excesses,
        "guarded": True,
        "unit": r_unit(heavy),
        "arguments": r_arguments(engine, "guarded", options, heavy),
    }


def with_note(answer: EngineAnswer, sent: Mapping[str, Any]) -> EngineAnswer:
    """Say so where R did not work in units of the mean."""
    if sent.get("unit") is None:
        return answer
    note = (
        "the tail is too heavy for the mean excess to say how large the excesses are: R worked in "
        f"units of {sent['unit']:g} and, without another start, from the exact maximum on"
    )
    return answer._replace(said=(*answer.said, note))


def _answer(reply: Reply) -> EngineAnswer:
    if reply.error is not None:
        return stopped(reply, "evd")
    value = reply.value
    status = value["convergence"][0]
    covariance = value["covariance"]
    return EngineAnswer(
        shape=float(value["shape"][0]),
        scale=float(value["scale"][0]),
        covariance=NO_COVARIANCE if covariance is None else np.array(covariance),
        log_likelihood=-float(value["nllh"][0]),
        converged=status == "successful",
        engine_status=status,
        said=words_of(reply, "evd"),
        versions=tuple(reply.versions.items()),
    )


def stopped(reply: Reply, engine: str) -> EngineAnswer:
    """The answer when R stopped: NaN, with R's words."""
    message = (reply.error or {}).get("message", "")
    said = (f"{engine} stopped: {message}", *words_of(reply, engine))
    return EngineAnswer(
        shape=math.nan,
        scale=math.nan,
        covariance=NO_COVARIANCE,
        log_likelihood=math.nan,
        converged=False,
        engine_status="error",
        said=said,
        versions=tuple(reply.versions.items()),
    )


def words_of(reply: Reply, engine: str) -> tuple[str, ...]:
    """Warnings and messages of R, each once."""
    texts = dict.fromkeys([*reply.warnings, *reply.messages])
    return tuple(f"{engine} said: {text.strip()}" for text in texts)


def warn_once(replies: Sequence[Reply], engine: str) -> None:
    """R's warnings as Python warnings of the category EngineWarning, each once."""
    for text in dict.fromkeys(text for reply in replies for text in reply.warnings):
        warnings.warn(f"{engine}: {text}", EngineWarning, stacklevel=5)
