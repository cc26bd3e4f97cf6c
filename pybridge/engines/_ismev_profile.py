"""What ismev draws of profile likelihoods, as values, with the ends of the intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pybridge._options import real_number, whole_number
from pybridge.engines._ismev_record import IsmevFit, need_gpd_fit
from pybridge.engines._engine_request import numbers
from pybridge.engines._tail_ends import profile_ends
from pybridge.engines._tail_optimum import Model, optimum
from pybridge.engines._tail_record import TailTable, common
from pybridge.engines._tail_request import (
    ask,
    confidence,
    exceeding,
    positive,
    request,
)
from pybridge.errors import InputError

# Where a range is not given, the profile is drawn so much farther than the interval.
_MARGIN = 0.25


@dataclass(frozen=True, eq=False, repr=False)
class IsmevProfile(TailTable):
    """A profile log-likelihood that ismev draws.

    Attributes
    ----------
    parameter : str
        ``return_level`` or ``shape``.
    estimate : float
    lower, upper : float
        Where the drawn curve crosses the drawn line, between its points; NaN where it does not
        inside the range.
    exact_lower, exact_upper : float
        Guarded: the ends by root finding; NaN where the likelihood does not fall far enough.
    top, cut : float
        The two drawn lines: the fit's log-likelihood, and that less half the quantile.
    """

    parameter: str
    estimate: float
    lower: float
    upper: float
    exact_lower: float
    exact_upper: float
    top: float
    cut: float

    def interval_frame(self) -> pd.DataFrame:
        """One row: parameter, estimate, lower, upper, exact_lower, exact_upper, level."""
        names = ("parameter", "estimate", "lower", "upper", "exact_lower", "exact_upper")
        row = {name: [getattr(self, name)] for name in names}
        return pd.DataFrame({**row, "level": [self.request.level]})

    def summary(self) -> str:
        """The interval as text."""
        lines = [self.request.summary(), self.interval_frame().to_string(index=False)]
        return "\n".join([*lines, *self.conditions])


def gpd_prof(
    z: IsmevFit,
    m: float,
    xlow: float | None = None,
    xup: float | None = None,
    npy: float = 365,
    conf: float = 0.95,
    nint: int = 100,
    *,
    time_limit: float | None = None,
) -> IsmevProfile:
    """The profile log-likelihood of a return level, as ismev::gpd.prof draws it.

    Parameters
    ----------
    z : IsmevFit
        Of `gpd_fit`, without covariates; its mode is this call's.
    m : float
        Years between exceedances of the level.
    xlow, xup : float, optional
        The range of levels, above the threshold. R needs both; guarded the default is somewhat
        wider than the exact interval.
    npy : float
        Observations in a year.
    conf : float
        Confidence level.
    nint : int
        Points of the curve.
    time_limit : float, optional
        Seconds for R; by default the fit's.

    Returns
    -------
    IsmevProfile
        Table: return_level, log_likelihood.

    Raises
    ------
    InputError
        Before ismev is called.
    EngineError
        Where R stops.

    References
    ----------
    Coles (2001), An Introduction to Statistical Modeling of Extreme Values, section 4.3.3.
    """
    fit = need_gpd_fit(z)
    per, years = positive("npy", npy), positive("m", m)
    words: dict[str, Any] = {"m": years, "npy": per, "conf": confidence("conf", conf)}
    words["nint"] = whole_number("nint", nint, least=2)
    model, rate = _level_model(fit, years * per)
    if rate <= 1:
        raise InputError(
            "the return level lies below the threshold",
            code="below_threshold",
            field="m",
            expected=f"more than {years / rate:g} years",
            got=m,
        )
    estimate = _level(fit, rate)
    words["time_limit"] = time_limit
    return _profile(fit, "gpd.prof", "return_level", words, (xlow, xup), model, estimate)


def gpd_profxi(
    z: IsmevFit,
    xlow: float | None = None,
    xup: float | None = None,
    conf: float = 0.95,
    nint: int = 100,
    *,
    time_limit: float | None = None,
) -> IsmevProfile:
    """The profile log-likelihood of the shape, as ismev::gpd.profxi draws it.

    Parameters
    ----------
    z : IsmevFit
        Of `gpd_fit`, without covariates; its mode is this call's.
    xlow, xup : float, optional
        The range of shapes. R needs both; guarded the default is somewhat wider than the exact
        interval.
    conf : float
        Confidence level.
    nint : int
        Points of the curve.
    time_limit : float, optional
        Seconds for R; by default the fit's.

    Returns
    -------
    IsmevProfile
        Table: shape, log_likelihood.

    Raises
    ------
    InputError
        Before ismev is called.
    EngineError
        Where R stops.
    """
    fit = need_gpd_fit(z)
    words: dict[str, Any] = {
        "conf": confidence("conf", conf),
        "nint": whole_number("nint", nint, least=2),
    }
    words["time_limit"] = time_limit
    model = Model("gpd", _excesses(fit))
    estimate = float(fit.estimate[1])
    return _profile(fit, "gpd.profxi", "shape", words, (xlow, xup), model, estimate)


def _excesses(fit: IsmevFit) -> np.ndarray:
    """In R's units."""
    return exceeding(fit.inputs["xdat"], fit.inputs["threshold"]) / fit.request.unit


def _level_model(fit: IsmevFit, observations: float) -> tuple[Model, float]:
    """The fit by its return level, and the exceedances to a period."""
    rate = observations * fit.exceedance_rate
    threshold = float(fit.inputs["threshold"]) / fit.request.unit
    return Model("rlevel", _excesses(fit), threshold=threshold, rate=rate), rate


def _level(fit: IsmevFit, rate: float) -> float:
    scale, shape = fit.estimate.tolist()
    log = math.log(rate)
    gained = log if abs(shape * log) < 1e-12 else math.expm1(shape * log) / shape
    return float(fit.inputs["threshold"]) + scale * gained


def _profile(
    fit: IsmevFit,
    function: str,
    parameter: str,
    given: Mapping[str, Any],
    ends: tuple[Any, Any],
    model: Model,
    estimate: float,
) -> IsmevProfile:
    words = {name: value for name, value in given.items() if name != "time_limit"}
    unit = fit.request.unit if parameter == "return_level" else 1.0
    exact = (math.nan, math.nan)
    if not fit.request.raw:
        exact = _exact_ends(model, parameter, words["conf"], unit)
    low, high = _range(ends, exact, estimate, fit, parameter)
    asked = request(
        "ismev",
        function,
        {**words, "xlow": low, "xup": high},
        mode=fit.request.mode,
        level=words["conf"],
        time_limit=given["time_limit"] or fit.request.time_limit,
        unit=fit.request.unit,
    )
    shim = f"ismev_tail_{function.replace('.', '_')}"
    inputs = {**fit.inputs, "profile": {"xlow": low, "xup": high, **words}}
    reply = ask(shim, inputs, asked)
    x, curve = numbers(reply.value["x"]) * unit, numbers(reply.value["profile"])
    cut = float(reply.value["cut"][0])
    lower, upper = crossings(x, curve, cut)
    notes = []
    if math.isnan(lower) or math.isnan(upper):
        notes.append("the drawn range does not hold both ends of the interval")
    return IsmevProfile(
        **common(
            asked,
            shim,
            inputs,
            reply,
            status=fit.status,
            engine_status=fit.engine_status,
            notes=notes,
        ),
        table={parameter: x, "log_likelihood": curve},
        parameter=parameter,
        estimate=estimate,
        lower=lower,
        upper=upper,
        exact_lower=exact[0],
        exact_upper=exact[1],
        top=float(reply.value["top"][0]),
        cut=cut,
    )


def _exact_ends(model: Model, parameter: str, level: float, unit: float) -> tuple[float, float]:
    from scipy.special import chdtri

    peak = optimum(model, {})
    if not peak.settled:
        return math.nan, math.nan
    name = "rlevel" if parameter == "return_level" else "shape"
    place = float(peak.theta[model.parameters.index(name)])
    step = (
        0.1 * (place - model.threshold)
        if name == "rlevel"
        else 0.5 / math.sqrt(model.excesses.size)
    )
    drop = 0.5 * float(chdtri(1, 1.0 - level))
    low, high = profile_ends(model=model, parameter=name, best=peak, step=step, drop=drop)
    return low * unit, high * unit


def _range(
    ends: tuple[Any, Any],
    exact: tuple[float, float],
    estimate: float,
    fit: IsmevFit,
    parameter: str,
) -> tuple[float, float]:
    threshold = float(fit.inputs["threshold"])
    found = []
    for name, given, end in zip(("xlow", "xup"), ends, exact):
        if given is not None:
            found.append(real_number(name, given))
        elif math.isfinite(end):
            found.append(end + _MARGIN * (end - estimate))
        else:
            raise InputError(
                f"ismev needs {name} to draw a profile",
                code="missing_limit",
                field=name,
                expected="where the profile is drawn to",
                got=None,
                hint="A guarded fit with a finite interval finds it by itself.",
            )
    low, high = found
    if parameter == "return_level" and ends[0] is None:
        low = max(low, threshold + 0.05 * (estimate - threshold))
    if not low < high or (parameter == "return_level" and low <= threshold):
        raise InputError(
            "the range must begin below its end" + ", above the threshold" * (low <= threshold),
            code="bad_limits",
            field="xlow",
            expected="threshold < xlow < xup" if parameter == "return_level" else "xlow < xup",
            got=f"{low:g}, {high:g}",
        )
    return low, high


def crossings(x: np.ndarray, curve: np.ndarray, cut: float) -> tuple[float, float]:
    """Where a (k,) curve falls below a line on each side of its top, between its points."""
    order = np.argsort(x)
    x, curve = x[order], curve[order]
    top = int(np.nanargmax(curve))
    ends = []
    for side in (-1, 1):
        k = top
        while 0 <= k < x.size and curve[k] >= cut:
            k += side
        if not 0 <= k < x.size or k == top:
            ends.append(math.nan)
            continue
        share = (cut - curve[k]) / (curve[k - side] - curve[k])
        ends.append(float(x[k] + share * (x[k - side] - x[k])))
    return ends[0], ends[1]
