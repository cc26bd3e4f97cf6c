"""evir::gpd: generalised Pareto fits as McNeil made them for the Danish fire losses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pybridge._options import choose, real_number, whole_number
from pybridge.engines._engine_request import numbers
from pybridge.engines._tail_likelihood import plain_excesses
from pybridge.engines._tail_optimum import pareto_peak
from pybridge.engines._tail_record import TailFit, common
from pybridge.engines._tail_request import (
    TailRequest,
    ask,
    control_list,
    exceeding,
    need_exceedances,
    power_of_two,
    request,
    scores,
)
from pybridge.engines._tail_status import WITH_ERRORS, findings, tail_status, tied, trusted
from pybridge.errors import InputError
from pybridge.r import Reply

_SHIM = "evir_gpd"
_METHODS = ("ml", "pwm")
_INFORMATION = ("observed", "expected")


@dataclass(frozen=True, eq=False, repr=False)
class EvirFit(TailFit):
    """A fit by evir::gpd.

    Attributes
    ----------
    shape, scale : float
        evir's xi and beta.
    covariance : numpy.ndarray
        (2, 2), of (shape, scale) in evir's order; NaN where it does not exist.
    threshold : float
    """

    shape: float
    scale: float
    covariance: np.ndarray
    threshold: float

    def _parameters(self) -> tuple[list[str], np.ndarray, np.ndarray]:
        with np.errstate(invalid="ignore"):
            error = np.sqrt(np.diag(self.covariance))
        return ["shape", "scale"], np.array([self.shape, self.scale]), error


def gpd(
    data: Any,
    threshold: float | None = None,
    nextremes: int | None = None,
    method: str = "ml",
    information: str = "observed",
    *,
    control: Mapping[str, Any] | None = None,
    level: float = 0.95,
    mode: str = "guarded",
    time_limit: float | None = None,
) -> EvirFit:
    """Generalised Pareto fits by evir::gpd.

    Parameters
    ----------
    data : sequence of float, (n,)
        For example :func:`pybridge.datasets.danish`.
    threshold, nextremes : float, int
        Exactly one: the threshold, or how many scores lie above it.
    method : {"ml", "pwm"}
        Maximum likelihood or probability-weighted moments.
    information : {"observed", "expected"}
        Where the standard errors of maximum likelihood come from.
    control : mapping, optional
        Of R's optim.
    level : float
        Confidence level of the record's intervals.
    mode : {"guarded", "raw"}
        ``"guarded"``: scores are divided by a power of two near their scale, and the exact
        optimum stands beside the answer.
    time_limit : float, optional
        Seconds for R.

    Returns
    -------
    EvirFit

    Raises
    ------
    InputError
        Before evir is called.
    EngineError
        Where R stops, in raw mode.

    References
    ----------
    McNeil (1997), ASTIN Bulletin 27, 117.
    """
    values = scores("data", data, mode=mode)
    if (threshold is None) == (nextremes is None):
        raise InputError(
            "give the threshold in exactly one way",
            code="threshold_choice",
            field="threshold",
            expected="threshold= or nextremes=",
            got="both" if threshold is not None else "neither",
        )
    words: dict[str, Any] = {"method": choose("method", method, _METHODS)}
    words["information"] = choose("information", information, _INFORMATION)
    words["control"] = control_list(control)
    if threshold is not None:
        words["threshold"] = limit = real_number("threshold", threshold)
    else:
        count = whole_number("nextremes", nextremes, least=1, most=values.size - 1)
        words["nextremes"] = count
        distinct = np.unique(values)
        place = np.searchsorted(distinct, np.sort(values)[values.size - count])
        limit = float(distinct[max(place - 1, 0)])
    excesses = exceeding(values, limit)
    if mode == "guarded":
        need_exceedances(excesses, values)
    asked = request(
        "evir",
        "gpd",
        words,
        mode=mode,
        level=level,
        time_limit=time_limit,
        unit=power_of_two(excesses),
    )
    arguments = dict(asked.arguments)
    if not asked.raw and method == "ml":
        arguments["control"] = {"reltol": 1e-15, "maxit": 5000, **arguments.get("control", {})}
    inputs = {"data": values, "unit": asked.unit, "arguments": arguments}
    reply = ask(_SHIM, inputs, asked, may_fail=not asked.raw)
    return _record(asked, inputs, reply, excesses, limit)


def _record(
    asked: TailRequest,
    inputs: Mapping[str, Any],
    reply: Reply,
    excesses: np.ndarray,
    limit: float,
) -> EvirFit:
    value, unit = reply.value, asked.unit
    likely = asked.arguments["method"] == "ml"
    found = numbers(value["par.ests"]) if value else np.full(2, math.nan)
    errors = numbers(value["par.ses"]) if value else np.full(2, math.nan)
    exact: dict[str, Any] = {}
    gap, settled = math.nan, True
    if not asked.raw and likely:
        peak = pareto_peak(excesses / unit)
        settled = peak.settled
        if value:
            gap = peak.value - plain_excesses(excesses / unit)(found[::-1])[0]
        exact = {
            "shape": float(peak.theta[1]),
            "scale": float(peak.theta[0]) * unit,
            "log_likelihood": peak.value - excesses.size * math.log(unit),
            "shortfall": gap,
        }
    status = "failed"
    if value:
        status = tail_status(
            n=excesses.size,
            is_tied=tied(excesses),
            shape=float(found[0]),
            settled=settled,
            converged=not likely or float(value["converged"][0]) == 0,
            gap=gap if math.isfinite(gap) else 0.0,
            good_errors=trusted(errors, found, np.array([False, True])),
        )
    by = np.array([1.0, unit])
    covariance = np.full((2, 2), math.nan)
    if value and (asked.raw or status in WITH_ERRORS):
        covariance = numbers(value["varcov"]) * np.outer(by, by)
    return EvirFit(
        **common(
            asked,
            _SHIM,
            inputs,
            reply,
            status=status,
            engine_status=f"converged {value['converged'][0]:g}" if value else "error",
            notes=findings(status, exact, excesses.size),
        ),
        shape=float(found[0]),
        scale=float(found[1]) * unit,
        covariance=covariance,
        threshold=limit,
        n_exceedances=excesses.size,
        log_likelihood=-float(value["nllh"][0]) if value else math.nan,
        exact=exact,
        as_given={},
    )
