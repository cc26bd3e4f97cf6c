"""From an engine's answer and the excesses it saw to the record, with its status."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from pybridge._record import FrozenMapping
from pybridge.provenance import Provenance, provenance
from pybridge.tails._information import inverse_information, observed_information
from pybridge.tails._maximum import profile_maximum
from pybridge.tails._native import NO_COVARIANCE, EngineAnswer
from pybridge.tails._status import FEWEST, USABLE, is_tied, largest_tie, tail_status
from pybridge.tails.records import ParetoFit
from pybridge.tails.thresholds import Exceedances
from pybridge.tails.transforms import Transform

R_ENGINES = ("evd", "ismev")
# How much larger, or smaller, a standard error of R's may be than the exact one before it is said,
# and before it is not relied on.
_NOTED_ERROR, _WORST_ERROR = 0.05, 0.25


def make_fit(
    tail: Exceedances,
    answer: EngineAnswer,
    *,
    engine: str,
    method: str,
    mode: str,
    level: float,
    transform: Transform,
    options: dict[str, Any],
) -> ParetoFit:
    """The record, with its status, from an engine's answer and the excesses it saw."""
    n = tail.excesses.size
    share, value = largest_tie(tail.excesses) if n else (math.nan, math.nan)
    tied = n > 0 and is_tied(tail.excesses, share)
    if n == 0:
        exact, boundary = (math.nan, math.nan, math.nan), False
    elif engine == "native" and method == "ML" and n >= FEWEST:
        exact = (answer.shape, answer.scale, answer.log_likelihood)
        boundary = answer.engine_status == "boundary"
    else:
        best = profile_maximum(excesses=tail.excesses)
        exact, boundary = (best.shape, best.scale, best.log_likelihood), best.at_boundary
    covariance = np.asarray(answer.covariance, dtype=np.float64)
    first, second = float(covariance[0, 0]), float(covariance[1, 1])
    errors = (_root(first), _root(second))
    wrong = _wrong_errors(tail.excesses, answer, errors) if engine in R_ENGINES and n else None
    gap = exact[2] - answer.log_likelihood
    status = tail_status(
        n=n,
        tied=tied,
        shape=answer.shape,
        boundary=boundary if method == "ML" else not math.isfinite(answer.log_likelihood),
        converged=answer.converged,
        gap=gap if method == "ML" else 0.0,
        errors=errors,
        estimates=(answer.scale, answer.shape),
    )
    if wrong is not None and wrong[0] > _WORST_ERROR and status in USABLE:
        status = "degenerate"
    if status not in ("converged", "weak_identification"):
        covariance = NO_COVARIANCE
    said = [
        *answer.said,
        *_findings(tail, status, share, value, tied, gap if method == "ML" else 0),
        *([] if wrong is None else [wrong[1]]),
    ]
    return ParetoFit(
        shape=answer.shape,
        scale=answer.scale,
        covariance=covariance,
        threshold=tail.threshold,
        threshold_rule=tail.rule,
        threshold_asked=tail.asked,
        n_scores=tail.n_scores,
        n_exceedances=n,
        exceedance_rate=tail.exceedance_rate,
        log_likelihood=answer.log_likelihood,
        status=status,
        engine=engine,
        method=method,
        mode=mode,
        engine_status=answer.engine_status,
        level=level,
        transform=transform,
        excesses=tail.excesses,
        exact_shape=exact[0],
        exact_scale=exact[1],
        exact_log_likelihood=exact[2],
        conditions=tuple(said),
        provenance=_provenance(engine, method, {"mode": mode, **options}, answer.versions),
    )


@functools.lru_cache(maxsize=1)
def _versions() -> Provenance:
    """Versions are looked up once: doing so takes longer than a fit."""
    return provenance("", "")


def _wrong_errors(
    excesses: np.ndarray, answer: EngineAnswer, errors: tuple[float, float]
) -> tuple[float, str] | None:
    """How far R's standard errors are from those of the exact information, and that in words.

    None where they agree. R takes the information by differences, which may cross the fence around
    impossible parameters.
    """
    if not (answer.converged and answer.shape > -0.5 and answer.scale > 0.0):
        return None
    information = observed_information(excesses=excesses, shape=answer.shape, scale=answer.scale)
    exact = np.sqrt(np.diag(inverse_information(information)))
    if not (np.isfinite(exact).all() and np.isfinite(errors).all() and min(errors) > 0.0):
        return None
    off = float(np.exp(np.abs(np.log(errors / exact)).max()) - 1.0)
    if off < _NOTED_ERROR:
        return None
    return off, (
        f"R's standard errors of scale and shape, {errors[0]:.4g} and {errors[1]:.4g}, are not "
        f"those of the exact information, {exact[0]:.4g} and {exact[1]:.4g}"
    )


def _root(variance: float) -> float:
    return math.sqrt(variance) if variance >= 0.0 else math.nan


def _provenance(
    engine: str, method: str, options: Mapping[str, Any], versions: tuple[tuple[str, str], ...]
) -> Provenance:
    try:
        return _made_by(engine, method, tuple(options.items()), versions)
    except TypeError:  # options that cannot be hashed, such as lists
        return _made_by.__wrapped__(engine, method, tuple(options.items()), versions)


@functools.lru_cache(maxsize=64)
def _made_by(
    engine: str,
    method: str,
    options: tuple[tuple[str, Any], ...],
    versions: tuple[tuple[str, str], ...],
) -> Provenance:
    """Fits made in the same way share the record of how: making it takes as long as a fit."""
    used: dict[str, Any] = dict(versions)
    return dataclasses.replace(
        _versions(),
        engine=engine,
        method=method,
        options=FrozenMapping(dict(options)),
        r=used.pop("R", None),
        packages=FrozenMapping(used),
    )


def _findings(
    tail: Exceedances, status: str, share: float, value: float, tied: bool, gap: float
) -> list[str]:
    """What was found about the data and the fit, one sentence each."""
    found = []
    n = tail.excesses.size
    if tail.rule == "count" and n != int(tail.asked):
        found.append(f"ties at the threshold leave {n} exceedances, not {int(tail.asked)}")
    if tail.n_at_threshold > 1:
        found.append(f"{tail.n_at_threshold} scores equal the threshold and are not exceedances")
    if tied:
        found.append(
            f"{share:.0%} of the exceedances share the value {value + tail.threshold:g}: "
            "no density fits such a sample"
        )
    if status == "too_few":
        found.append(
            f"{n or 'no'} exceedances are fewer than the {FEWEST} that two parameters need"
        )
    elif status == "infeasible":
        found.append("the likelihood is largest at the boundary, shape -1: there is no estimate")
    elif status == "nonregular":
        found.append("no standard errors: the usual asymptotics fail at shapes of at most -1/2")
    elif status == "not_converged":
        found.append(f"the log-likelihood lies {gap:.3g} below its exact maximum")
    return found
