"""The exact maximum of the generalised Pareto likelihood of one sample.

For a given t = shape / scale the best shape is A(t) = mean log(1 + t x) and the best scale A(t)/t,
so the likelihood is a function of one parameter (Grimshaw, 1993, Technometrics 35). It is scanned
as a whole in v = log(1 + t max x), in which its curvature is tame on both sides, and the maximum
is then found by Newton's method inside a bracket.

The maximum is taken over shapes of at least -1. Below that the likelihood is unbounded; on that
boundary its best value is -n log max x, at scale max x. Local maxima cannot lie closer to the
boundary than v = -(log n + 5): there, the largest excess alone makes the profile fall towards it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pybridge.tails._sums import Sums, likelihood_sums, log_means, moments

_STEP = 1.25  # of the scan; the shape moves by less than this, typically by a tenth of it
_EVEN_UP_TO = 6.0
_GROWTH = 1.25  # of v beyond that, where the profile changes with log v only
_NEAR_ZERO = 1e-5  # |t max x| below which differences are taken from moments
_STEPS = 60


class Maximum(NamedTuple):
    """Where the likelihood is largest.

    ``at_boundary`` says that no interior maximum beats the boundary shape -1; ``sums`` are the
    sums of the likelihood at the maximum, of excesses divided by ``scale`` (NaN at the boundary).
    """

    shape: float
    scale: float
    log_likelihood: float
    at_boundary: bool
    t: float
    sums: Sums


def profile_maximum(*, excesses: np.ndarray) -> Maximum:
    """Maximum of the likelihood of (n,) positive excesses, n >= 1, over shapes >= -1."""
    n = excesses.size
    largest = float(excesses.max())
    r = excesses / largest  # in (0, 1]: nothing below overflows, whatever the units
    grid = scan_grid(n=n, smallest=float(r.min()))
    theta = np.expm1(grid)
    shape = log_means(excesses=r, t=theta)
    profile = -np.log(shape / theta) - shape - 1.0
    best_v, best, best_sums = math.nan, 0.0, Sums(math.nan, math.nan, math.nan)  # boundary: 0
    for k in interior_peaks(profile=profile, shape=shape):
        start = peak_of_parabola(grid[k - 1 : k + 2], profile[k - 1 : k + 2])
        v, sums = _polish(r, start, float(grid[k - 1]), float(grid[k + 1]))
        value = -math.log(scale_ratio(v, sums, r)) - sums.log_mean - 1.0
        if sums.log_mean > -1.0 and value >= best:
            best_v, best, best_sums = v, value, sums
    if math.isnan(best_v):
        return Maximum(-1.0, largest, -n * math.log(largest), True, -1.0 / largest, best_sums)
    ratio = scale_ratio(best_v, best_sums, r)
    return Maximum(
        shape=best_sums.log_mean,
        scale=largest * ratio,
        log_likelihood=n * (best - math.log(largest)),
        at_boundary=False,
        t=math.expm1(best_v) / largest,
        sums=Sums(
            best_sums.log_mean, best_sums.ratio_mean / ratio, best_sums.ratio_square / ratio**2
        ),
    )


def scan_grid(*, n: int, smallest: float) -> np.ndarray:
    """Values of v that enclose every stationary point, none of them 0.

    ``smallest`` is the smallest excess over the largest.

    Grimshaw's upper bound of the roots is 2 (mean - min) / min^2; with the mean replaced by the
    largest excess it needs no further pass, and v grows only with its logarithm.
    """
    ratio = max(smallest, 1e-150)
    upper = min(max(math.log1p(2.0 * (1.0 - ratio) / ratio**2), 3.0), 450.0)
    lower = -(math.log(n) + 5.0)
    grid = lower + _STEP * np.arange(-1, math.ceil((min(upper, _EVEN_UP_TO) - lower) / _STEP) + 1)
    if upper > _EVEN_UP_TO:
        n_more = 1 + math.ceil(math.log(upper / grid[-1]) / math.log(_GROWTH))
        grid = np.concatenate([grid, grid[-1] * _GROWTH ** np.arange(1, n_more + 1)])
    grid[np.abs(grid) < 1e-3] = 1e-3  # the formulas divide by expm1(v)
    return grid


def interior_peaks(*, profile: np.ndarray, shape: np.ndarray) -> np.ndarray:
    """Indices k of a (k,) scan that are higher than both neighbours, at shapes above -1.

    A peak whose left neighbour lies below shape -1 counts: the polishing decides.
    """
    higher = (profile[1:-1] > profile[:-2]) & (profile[1:-1] >= profile[2:])
    return np.flatnonzero(higher & (shape[1:-1] > -1.0)) + 1


def peak_of_parabola(v: np.ndarray, value: np.ndarray) -> float:
    """Abscissa of the top of the parabola through three points, inside them."""
    left, right = v[1] - v[0], v[2] - v[1]
    down, up = (value[1] - value[0]) / left, (value[2] - value[1]) / right
    bend = down - up
    if not bend > 0:
        return float(v[1])
    top = 0.5 * (v[0] + v[1]) + down * 0.5 * (left + right) / bend
    return float(min(max(top, v[0] + 0.05 * left), v[2] - 0.05 * right))


def _polish(r: np.ndarray, start: float, low: float, high: float) -> tuple[float, Sums]:
    """Newton's method for the root of the profile's slope in v, kept inside [low, high]."""
    v = start
    for _ in range(_STEPS):
        sums = likelihood_sums(excesses=r, t=math.expm1(v))
        slope, bend = slope_and_bend(v, sums, r)
        if slope > 0:
            low = v
        else:
            high = v
        step = -slope / bend if bend < 0 else math.inf
        after = v + step
        if not low <= after <= high:
            after = 0.5 * (low + high)
        moved = abs(after - v)
        v = after
        # The error after a Newton step is about the square of the step.
        if moved <= 1e-8 or high - low <= 1e-13 * max(1.0, abs(v)):
            break
    return v, likelihood_sums(excesses=r, t=math.expm1(v))


def slope_and_bend(v: float, sums: Sums, r: np.ndarray) -> tuple[float, float]:
    """First and second derivative of the profile (per excess) with respect to v."""
    theta, w = math.expm1(v), math.exp(v)
    if abs(theta) < _NEAR_ZERO:
        m1, m2, m3 = moments(excesses=r, powers=(1, 2, 3))
        second = m2 - 2.0 * m3 / (3.0 * m1) + m2**2 / (4.0 * m1**2)
        first = m2 / (2.0 * m1) - m1 + theta * second
    else:
        a, b, c = sums
        first = (a / theta - b) / a - b
        second = c + c / a + (b / a) ** 2 - 1.0 / theta**2
    return first * w, second * w * w + first * w


def scale_ratio(v: float, sums: Sums, r: np.ndarray) -> float:
    """Best scale over the largest excess, A / expm1(v), with its limit at v = 0."""
    theta = math.expm1(v)
    if abs(theta) > 1e-12:
        return sums.log_mean / theta
    return moments(excesses=r, powers=(1,))[0]
