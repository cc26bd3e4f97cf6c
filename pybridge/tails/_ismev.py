"""Adapter to R's ismev: gpd.fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pybridge.r import Reply, call_many
from pybridge.tails._engine_options import checked_options
from pybridge.tails._evd import guarded_inputs, stopped, warn_once, with_note, words_of
from pybridge.tails._native import NO_COVARIANCE, EngineAnswer
from pybridge.tails.thresholds import Exceedances

# Arguments of ismev::gpd.fit without covariates, and optim's control, which it takes as they are.
OPTIONS = ("npy", "siginit", "shinit", "method", "maxit", "reltol", "abstol", "parscale", "ndeps")


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
    arguments = checked_options(options, (*OPTIONS, "time_limit"), "ismev::gpd.fit")
    time_limit = arguments.pop("time_limit", None)
    inputs = []
    for values, tail in zip(samples, tails):
        if mode == "raw":
            inputs.append({"x": values, "threshold": tail.threshold, "arguments": arguments})
        else:
            inputs.append(guarded_inputs("ismev", tail.excesses, arguments))
    replies = call_many("ismev_gpd_fit", inputs, packages=("ismev",), time_limit=time_limit)
    warn_once(replies, "ismev")
    return [with_note(_answer(reply), sent) for reply, sent in zip(replies, inputs)]


def _answer(reply: Reply) -> EngineAnswer:
    if reply.error is not None:
        return stopped(reply, "ismev")
    value = reply.value
    code = int(value["convergence"][0])
    covariance = value["covariance"]
    return EngineAnswer(
        shape=float(value["shape"][0]),
        scale=float(value["scale"][0]),
        covariance=NO_COVARIANCE if covariance is None else np.array(covariance),
        log_likelihood=-float(value["nllh"][0]),
        converged=code == 0,
        engine_status=f"conv {code}",
        said=words_of(reply, "ismev"),
        versions=tuple(reply.versions.items()),
    )
