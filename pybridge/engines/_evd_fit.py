"""evd::fpot: exceedances as generalised Pareto, by a return level, or as a point process."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pybridge._options import real_number
from pybridge.engines._evd_input import fit_arguments, scaled
from pybridge.engines._evd_record import EvdFit, back, free_parameters, in_user_units, model_of
from pybridge.engines._engine_request import numbers
from pybridge.engines._tail_likelihood import Peak
from pybridge.engines._tail_optimum import Model, optimum, pareto_peak
from pybridge.engines._tail_record import common
from pybridge.engines._tail_request import (
    TailRequest,
    ask,
    exceeding,
    need_clusters,
    need_exceedances,
    power_of_two,
    request,
    scores,
)
from pybridge.engines._tail_status import (
    SHORTFALL,
    WITH_ERRORS,
    findings,
    tail_status,
    tied,
    trusted,
)
from pybridge.errors import InputError
from pybridge.r import Reply

_SHIM = "evd_tail_fpot"
_SINGULAR = "information matrix is singular"
# fpot stops on its absolute reltol, and takes shapes of up to 2e-5 for zero, so that difference
# steps below 1e-4 would see no slope at its start.
_TIGHT = {"reltol": 1e-14, "ndeps": 1e-4, "maxit": 1000}
_TIGHTENED = ("BFGS", "CG", "Nelder-Mead")


def fpot(
    x: Any,
    threshold: float,
    model: str = "gpd",
    start: Mapping[str, float] | None = None,
    npp: float | None = None,
    cmax: bool = False,
    r: int = 1,
    ulow: float = -math.inf,
    rlow: int = 1,
    mper: float | None = None,
    *,
    loc: float | None = None,
    scale: float | None = None,
    shape: float | None = None,
    rlevel: float | None = None,
    std_err: bool = True,
    corr: bool = False,
    method: str = "BFGS",
    warn_inf: bool = True,
    control: Mapping[str, Any] | None = None,
    lower: Sequence[float] | None = None,
    upper: Sequence[float] | None = None,
    level: float = 0.95,
    mode: str = "guarded",
    time_limit: float | None = None,
) -> EvdFit:
    """Peaks over a threshold by evd::fpot, with all its options and its defaults.

    Parameters
    ----------
    x : sequence of float, (n,)
        In the order of time where ``cmax`` is asked for.
    threshold : float
        Only scores above it are exceedances.
    model : {"gpd", "pp"}
        Generalised Pareto of the excesses, or a point process with parameters of the yearly
        maximum (of ``npp`` observations).
    start : mapping, optional
        Where the search starts, by parameter.
    npp : float, optional
        Observations in a period; by default all of them are one.
    cmax : bool
        Fit the largest of each cluster; ``r``, ``ulow`` and ``rlow`` say where clusters end.
    mper : float, optional
        The return period, in periods, of the parameter ``rlevel`` that takes the scale's place.
    loc, scale, shape, rlevel : float, optional
        Parameters that are held.
    std_err, corr, warn_inf : bool
        evd's std.err, corr, warn.inf.
    method, control, lower, upper
        Of R's optim.
    level : float
        Confidence level of the record's intervals.
    mode : {"guarded", "raw"}
        ``"raw"``: R's function as it is. ``"guarded"``: scores are divided by a power of two near
        the mean excess, the search is tightened, and the exact optimum stands beside the answer;
        where the search stops short (and no ``start`` was given) R is asked once more from there.
    time_limit : float, optional
        Seconds for R.

    Returns
    -------
    EvdFit

    Raises
    ------
    InputError
        Before evd is called.
    EngineError
        Where R stops, in raw mode.
    EngineTimeout, EngineUnavailable

    References
    ----------
    Stephenson (2002), R News 2(2), 31; Davison and Smith (1990), JRSS B 52, 393; Smith (1989),
    Statistical Science 4, 367.
    """
    values = scores("x", x, mode=mode)
    limit = real_number("threshold", threshold)
    arguments = fit_arguments(locals(), n=values.size, threshold=limit)
    excesses = exceeding(values, limit)
    asked = request(
        "evd",
        "fpot",
        {"threshold": limit, **arguments},
        mode=mode,
        level=level,
        time_limit=time_limit,
        unit=power_of_two(excesses),
    )
    inputs = {
        "x": values,
        "threshold": limit,
        "unit": asked.unit,
        "guarded": not asked.raw,
        "arguments": _for_r(asked),
    }
    if asked.raw:
        return _record(asked, inputs, ask(_SHIM, inputs, asked))
    need_exceedances(excesses, values)
    if arguments.get("mper") == math.inf:
        _need_end_point(excesses)
    return _guarded(asked, inputs)


def _need_end_point(excesses: np.ndarray) -> None:
    shape = float(pareto_peak(excesses).theta[1])
    if shape >= 0:
        raise InputError(
            "there is no upper end point to estimate",
            code="no_end_point",
            field="mper",
            expected="a finite period, or excesses whose best shape is negative",
            got=f"shape {shape:.4g}",
        )


def _for_r(asked: TailRequest) -> dict[str, Any]:
    """fpot's arguments in R's units, the search tightened in a guarded fit."""
    found = {name: scaled(name, v, asked.unit) for name, v in asked.arguments.items()}
    del found["threshold"]
    if not asked.raw and found.get("method", "BFGS") in _TIGHTENED:
        size = len(free_parameters(asked.arguments))
        tight: dict[str, Any] = {**_TIGHT, "ndeps": np.full(size, _TIGHT["ndeps"])}
        found["control"] = {**tight, **dict(found.get("control") or {})}
    names = list(found.get("start") or free_parameters(asked.arguments))
    for word in ("lower", "upper"):
        if word in found:
            by = np.array([back(name, 1.0, asked.unit) for name in names])
            found[word] = found[word] / by
    return found


def _guarded(asked: TailRequest, inputs: dict[str, Any]) -> EvdFit:
    reply, used, notes = _asked_twice(inputs, asked)
    value = reply.value or ask(_SHIM, _held_everywhere(inputs, asked), asked).value
    model = model_of(asked, exceedances=np.array(value["exceedances"]), n=inputs["x"].size)
    need_clusters(model.excesses.size)
    held = {n: v for n, v in asked.arguments.items() if n in model.parameters}
    fixed = {name: scaled(name, v, asked.unit) for name, v in held.items()}
    near = _vector(reply.value, model) if reply.value else None
    peak = optimum(model, fixed, near)
    gap = math.inf if near is None else peak.value - model.log_likelihood(near)
    as_given: dict[str, Any] = {}
    if peak.settled and not gap < SHORTFALL and "start" not in asked.arguments:
        start = {n: v for n, v in zip(model.parameters, peak.theta.tolist()) if n not in fixed}
        again = {**inputs, "arguments": {**inputs["arguments"], "start": start}}
        second, used_again, more = _asked_twice(again, asked)
        if second.value and _nllh(second) <= _nllh(reply):
            as_given = _first_answer(reply, model, asked, near)
            reply, used, notes = second, used_again, [*more, _AGAIN]
            gap = peak.value - model.log_likelihood(_vector(reply.value, model))
    return _record(asked, used, reply, model, peak, gap, notes, as_given)


_AGAIN = "evd's search stopped short; it was asked once more, from the exact optimum"


def _nllh(reply: Reply) -> float:
    return float(reply.value["nllh"][0]) if reply.value else math.inf


def _vector(value: Mapping[str, Any], model: Model) -> np.ndarray:
    param = dict(zip(value["param_names"], map(float, value["param"])))
    return np.array([param[name] for name in model.parameters])


def _asked_twice(
    inputs: Mapping[str, Any], asked: TailRequest
) -> tuple[Reply, dict[str, Any], list[str]]:
    """R's answer, and to what; without standard errors where those alone stop it."""
    reply = ask(_SHIM, inputs, asked, may_fail=True)
    if reply.error is None or _SINGULAR not in reply.error["message"]:
        return reply, dict(inputs), []
    bare = {**inputs, "arguments": {**inputs["arguments"], "std.err": False}}
    note = "evd has no standard errors: its observed information matrix is singular"
    return ask(_SHIM, bare, asked, may_fail=True), bare, [note]


def _held_everywhere(inputs: Mapping[str, Any], asked: TailRequest) -> dict[str, Any]:
    """A fit of one parameter that R can always do: for the exceedances it sees."""
    kept = ("cmax", "r", "ulow", "rlow", "npp")
    arguments = {n: v for n, v in inputs["arguments"].items() if n in kept}
    return {**inputs, "arguments": {**arguments, "shape": 0.0, "std.err": False}}


def _first_answer(
    reply: Reply, model: Model, asked: TailRequest, near: np.ndarray | None
) -> dict[str, Any]:
    if near is None:
        return {"error": (reply.error or {}).get("message")}
    named = {n: back(n, v, asked.unit) for n, v in zip(model.parameters, near.tolist())}
    return {**named, "log_likelihood": -_nllh(reply)}


def _record(
    asked: TailRequest,
    inputs: dict[str, Any],
    reply: Reply,
    model: Model | None = None,
    peak: Peak | None = None,
    gap: float = math.nan,
    notes: Sequence[str] = (),
    as_given: Mapping[str, Any] | None = None,
) -> EvdFit:
    value, unit = dict(reply.value), asked.unit
    names = tuple(value.get("names") or ())
    exact: dict[str, Any] = {}
    if model is not None and peak is not None:
        moved = model.excesses.size * math.log(unit)
        exact = {n: back(n, v, unit) for n, v in zip(model.parameters, peak.theta.tolist())}
        exact["log_likelihood"] = peak.value - moved
        exact["log_likelihood_at_engine"] = peak.value - gap - moved
        exact["shortfall"] = gap
    status = _status(asked, value, peak, gap)
    if model is not None:
        notes = [*notes, *findings(status, exact, model.excesses.size)]
    by = np.array([back(name, 1.0, unit) for name in names])
    error, covariance = np.full(len(names), math.nan), np.full((len(names), len(names)), math.nan)
    # A guarded fit gives none where they stand for nothing; R's own stay in `value`.
    if value.get("std.err") is not None and (asked.raw or status in WITH_ERRORS):
        error = numbers(value["std.err"]) * by
        covariance = numbers(value["var.cov"]) * np.outer(by, by)
    return EvdFit(
        **common(
            asked,
            _SHIM,
            inputs,
            reply,
            status=status,
            engine_status=value["convergence"][0] if value else "error",
            notes=notes,
            value=in_user_units(value, unit),
        ),
        param={
            n: back(n, float(v), unit)
            for n, v in zip(value.get("param_names") or (), value.get("param", ()))
        },
        standard_errors=dict(zip(names, error.tolist())),
        covariance=covariance,
        names=names,
        log_likelihood=-float(value["nllh"][0]) if value else math.nan,
        n_exceedances=int(value["nhigh"][0]) if value else 0,
        exact=exact,
        as_given=as_given or {},
    )


def _status(asked: TailRequest, value: Mapping[str, Any], peak: Peak | None, gap: float) -> str:
    if not value:
        settled = peak is None or peak.settled
        return "failed" if settled else "infeasible"
    names = list(value["names"])
    param = dict(zip(value["param_names"], map(float, value["param"])))
    errors = value.get("std.err")
    wanted = asked.arguments.get("std.err", True)
    good = not wanted
    if errors is not None:
        scales = np.array([name == "scale" for name in names])
        good = trusted(numbers(errors), numbers(value["estimate"]), scales)
    excesses = np.asarray(value["exceedances"])
    return tail_status(
        n=excesses.size,
        is_tied=tied(excesses),
        shape=param["shape"],
        settled=peak is None or peak.settled or "shape" in asked.arguments,
        converged=value["convergence"][0] == "successful",
        gap=gap if math.isfinite(gap) else 0.0,
        good_errors=good,
    )
