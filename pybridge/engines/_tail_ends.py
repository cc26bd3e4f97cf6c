"""Ends of profile-likelihood intervals by bracketing, beside R's interpolation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from pybridge.engines._tail_likelihood import Peak, climb
from pybridge.engines._tail_optimum import LEAST_SHAPE, Model, best_shape, optimum

_FARTHEST = 1e4  # steps


def profile_ends(
    *,
    model: Model,
    parameter: str,
    best: Peak,
    step: float,
    drop: float,
    held: Mapping[str, float] | None = None,
) -> tuple[float, float]:
    """Both ends of a profile-likelihood interval.

    Parameters
    ----------
    best : the model's peak
    step : the first step outward, for example the standard error
    drop : half the chi-squared quantile
    held : other parameters that do not move

    Returns
    -------
    Two floats; NaN where the profile does not fall far enough above shape -1.
    """
    from scipy.optimize import brentq

    if model.kind == "rlevel" and parameter == "shape":
        best = Peak(model.to_internal(best.theta), best.value, best.settled)
        model = model._replace(kind="gpd")
    centre = float(best.theta[model.parameters.index(parameter)])
    ends = []
    for side in (-1.0, 1.0):
        lacking = _lacking(model, parameter, best, drop, held or {})
        border = _border(model, parameter) if side < 0 else math.inf
        inner, reach, end = centre, step, math.nan
        while reach < _FARTHEST * step:
            outer = centre + side * reach
            if side < 0 and outer <= border:
                outer = 0.5 * (inner + border)
                if inner - border < 1e-6 * (centre - border):
                    break
            if lacking(outer) > 0:
                end = float(brentq(lacking, inner, outer, xtol=1e-13, rtol=1e-11))
                break
            inner, reach = outer, 1.6 * reach
        ends.append(end)
    return ends[0], ends[1]


def _border(model: Model, parameter: str) -> float:
    lowest = {"shape": LEAST_SHAPE, "scale": 0.0, "rlevel": model.threshold}
    return lowest.get(parameter, -1e300)


def _lacking(
    model: Model, parameter: str, best: Peak, drop: float, held: Mapping[str, float]
) -> Callable[[float], float]:
    """By how much the profile at a value lacks more than ``drop``; each call starts at the last."""
    if model.kind == "rlevel":
        width = 1.0 / math.sqrt(model.excesses.size)
        shapes = [float(best.theta[1])]

        def by_level(value: float) -> float:
            shape, top = best_shape(model, value, shapes[-1], width)
            if not math.isfinite(top):
                return 1e6
            shapes.append(shape)
            return best.value - top - drop

        return by_level
    index = model.parameters.index(parameter)
    free = np.array([name != parameter and name not in held for name in model.parameters])
    function = model.function()
    last = [best.theta]

    def by_climbing(value: float) -> float:
        theta = last[-1].copy()
        theta[index] = value
        peak = climb(function, theta, free=free)
        if not peak.settled:
            peak = optimum(model, {**held, parameter: value})
        if not peak.settled:
            return 1e6
        last.append(peak.theta)
        return best.value - peak.value - drop

    return by_climbing
