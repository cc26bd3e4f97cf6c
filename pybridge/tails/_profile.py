"""Profile-likelihood intervals of the shape, the scale and a high quantile.

For the shape and the scale the profile curve is explicit in t = shape / scale (derived by setting
the derivative of the likelihood along t to zero), so that an interval end is the root of a function
of one variable; only a quantile needs an inner maximum.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pybridge.tails._maximum import Maximum
from pybridge.tails._small_samples import shape_profile_point
from pybridge.tails._sums import Sums, likelihood_sums, moments

Curve = Callable[[float], tuple[float, float]]


def _value(scale: float, t: float, sums: Sums) -> float:
    """Log-likelihood per excess at (shape = t scale, scale)."""
    ratio = sums.log_mean / t if t != 0.0 else sums.ratio_mean
    return -math.log(scale) - sums.log_mean - ratio / scale


def shape_curve(r: np.ndarray) -> Curve:
    """v -> (shape, profile log-likelihood per excess), v = log(1 + t max x), of r = x / max x."""

    def at(v: float) -> tuple[float, float]:
        theta = math.expm1(v)
        shape, scale, sums = shape_profile_point(r, theta)
        return shape, _value(scale, theta, sums)

    return at


def scale_curve(r: np.ndarray) -> Curve:
    """v -> (scale, profile log-likelihood per excess): scale(t) = (A/t - B) / (t B)."""

    def at(v: float) -> tuple[float, float]:
        theta = math.expm1(v)
        sums = likelihood_sums(excesses=r, t=theta)
        if abs(theta) < 1e-3:
            m2, m3, m4, m5 = moments(excesses=r, powers=(2, 3, 4, 5))
            bent = m2 / 2 - 2 * theta * m3 / 3 + 3 * theta**2 * m4 / 4 - 4 * theta**3 * m5 / 5
            scale = bent / sums.ratio_mean
        else:
            scale = (sums.log_mean / theta - sums.ratio_mean) / (theta * sums.ratio_mean)
        return scale, _value(scale, theta, sums)

    return at


def curve_interval(
    *, curve: Curve, centre: float, lowest: float, n: int, best: float, drop: float
) -> tuple[float, float]:
    """Both ends, in v, of the region where the curve stays within ``drop`` of its best value.

    Parameters
    ----------
    centre : v of the maximum; lowest : v below which the search does not go
    n : number of excesses; best : log-likelihood per excess at the maximum
    drop : half the chi-squared quantile

    Returns
    -------
    Two values of v; ``-inf`` on the left when the curve does not fall far enough.
    """
    from scipy.optimize import brentq

    def excess_drop(v: float) -> float:
        return n * (best - curve(v)[1]) - drop

    ends = []
    for direction in (-1.0, 1.0):
        step, inner = 0.25, centre
        while True:
            outer = centre + direction * step
            if outer < lowest:
                outer = lowest
            if excess_drop(outer) > 0:
                ends.append(brentq(excess_drop, inner, outer, xtol=1e-12, rtol=1e-13))
                break
            if outer == lowest or step > 400.0:
                ends.append(direction * math.inf)
                break
            inner, step = outer, 2.0 * step
    return ends[0], ends[1]


def parameter_interval(
    *, excesses: np.ndarray, maximum: Maximum, parameter: str, drop: float
) -> tuple[float, float]:
    """Profile-likelihood interval of "shape" or "scale" around an interior maximum.

    The lower end of the shape is -1 when the likelihood does not fall far enough above it.
    """
    n, largest = excesses.size, float(excesses.max())
    r = excesses / largest
    curve = shape_curve(r) if parameter == "shape" else scale_curve(r)
    best = maximum.log_likelihood / n + math.log(largest)
    low, high = curve_interval(
        curve=curve,
        centre=math.log1p(maximum.t * largest),
        lowest=-(math.log(n) + 30.0),
        n=n,
        best=best,
        drop=drop,
    )
    if parameter == "shape":
        return (curve(low)[0] if math.isfinite(low) else -1.0), curve(high)[0]
    # The scale falls as t rises. Beyond the largest excess its best shape is the boundary -1.
    top = curve(low)[0] if math.isfinite(low) else math.exp(drop / n - best)
    return largest * curve(high)[0], largest * top


def quantile_profile(
    *, excesses: np.ndarray, tail: float, quantile: float, start: float, width: float
) -> tuple[float, float]:
    """Largest log-likelihood per excess among fits with P(X > quantile) = tail, and its shape.

    ``start`` and ``width`` say where the shape is searched first; the bracket follows the maximum.
    """
    from scipy.optimize import minimize_scalar

    largest = float(excesses.max())
    rate = -math.log(tail)
    # 1 + t x > 0 for the largest excess, with t = expm1(shape rate) / quantile.
    lowest = -0.999999
    if quantile < largest:
        lowest = max(lowest, math.log1p(-quantile / largest * (1 - 1e-12)) / rate)

    def loss(shape: float) -> float:
        gain = math.expm1(shape * rate) / shape if abs(shape) > 1e-300 else rate
        scale = quantile / gain
        t = shape / scale
        return -_value(scale, t, likelihood_sums(excesses=excesses, t=t))

    low, high = max(lowest, start - width), max(start + width, lowest + width)
    for _ in range(60):
        found = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-9})
        span = high - low
        if found.x > high - 1e-3 * span:
            low, high = found.x - span, found.x + span
        elif found.x < low + 1e-3 * span and low > lowest:
            low, high = max(lowest, found.x - span), found.x + span
        else:
            break
    return -float(found.fun), float(found.x)


def quantile_interval(
    *,
    excesses: np.ndarray,
    maximum: Maximum,
    shape_error: float,
    tail: float,
    estimate: float,
    drop: float,
) -> tuple[float, float]:
    """Profile-likelihood interval of the excess that is exceeded with probability ``tail``."""
    from scipy.optimize import brentq

    n, unit = excesses.size, maximum.scale
    y = excesses / unit
    best = maximum.log_likelihood / n + math.log(unit)
    last = {"shape": maximum.shape}
    width = 3.0 * shape_error

    def excess_drop(log_quantile: float) -> float:
        value, last["shape"] = quantile_profile(
            excesses=y,
            tail=tail,
            quantile=math.exp(log_quantile),
            start=last["shape"],
            width=width,
        )
        return n * (best - value) - drop

    ends = []
    for direction in (-1.0, 1.0):
        last["shape"] = maximum.shape
        inner, step = math.log(estimate / unit), 0.1
        while excess_drop(inner + direction * step) <= 0 and step < 50.0:
            inner, step = inner + direction * step, 1.7 * step
        if step >= 50.0:
            ends.append(math.inf if direction > 0 else 0.0)
            continue
        root = brentq(excess_drop, inner, inner + direction * step, xtol=1e-10)
        ends.append(unit * math.exp(root))
    return ends[0], ends[1]
