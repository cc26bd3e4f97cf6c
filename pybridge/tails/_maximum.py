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

import functools
import math
from typing import NamedTuple

import numpy as np

from pybridge.tails._sums import Sums, likelihood_sums, log_means, moments

_STEP = 1.25  # of the scan; the shape moves by less than this, typically by a tenth of it
_EVEN_UP_TO = 6.0
_GROWTH = 1.25  # of v beyond that, where the profile changes with log v only
_NEAR_ZERO = 1e-5  # |t max x| below which differences are taken from moments
_STEPS = 60
_THIN_FROM, _THIN_TO = 512, 1 << 16
NO_SUMS = Sums(math.nan, math.nan, math.nan, math.nan)


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
    grid, theta = scan_grid(n=n, smallest=float(r.min()))
    some, weights = _thinned(r)
    shape = log_means(excesses=some, t=theta, weights=weights)
    profile = -np.log(shape / theta) - shape - 1.0
    best_v, best, best_sums = math.nan, 0.0, NO_SUMS  # the boundary's value is 0
    for k in interior_peaks(profile=profile, shape=shape):
        start = _top(grid, profile, int(k))
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
        sums=best_sums.divided(ratio),
    )


def scan_grid(*, n: int, smallest: float) -> tuple[np.ndarray, np.ndarray]:
    """Values of v that enclose every stationary point, none of them 0, and expm1 of them.

    ``smallest`` is the smallest excess over the largest. Grimshaw's upper bound of the roots is
    2 (mean - min) / min^2; with the mean replaced by the largest excess it needs no further pass,
    and v grows only with its logarithm.
    """
    ratio = max(smallest, 1e-150)
    upper = min(max(math.log1p(2.0 * (1.0 - ratio) / ratio**2), 3.0), 450.0)
    return _grid(n, math.ceil(max(0.0, math.log(upper / _EVEN_UP_TO) / math.log(_GROWTH))))


@functools.lru_cache(maxsize=256)
def _grid(n: int, n_more: int) -> tuple[np.ndarray, np.ndarray]:
    """Even steps up to about 6, then ``n_more`` growing ones, and one beyond."""
    lower = -(math.log(n) + 5.0)
    grid = lower + _STEP * np.arange(-1, math.ceil((_EVEN_UP_TO - lower) / _STEP) + 1)
    grid = np.concatenate([grid, grid[-1] * _GROWTH ** np.arange(1, n_more + 2)])
    grid[np.abs(grid) < 1e-3] = 1e-3  # the formulas divide by expm1(v)
    theta = np.expm1(grid)
    grid.flags.writeable = theta.flags.writeable = False  # shared by all callers
    return grid, theta


def _thinned(r: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Fewer values for the scan: the extremes, and means of neighbours in order between them.

    Only where the peaks are is asked of the scan; they are then climbed on all excesses. Short
    samples are scanned whole, and so are long ones, whose sorting would cost more.
    """
    if not _THIN_FROM <= r.size <= _THIN_TO:
        return r, None
    edges, weights = _groups(r.size)
    sums = np.add.reduceat(np.sort(r), edges)
    return sums / (weights * r.size), weights


@functools.lru_cache(maxsize=64)
def _groups(n: int) -> tuple[np.ndarray, np.ndarray]:
    """First positions and shares of 8 single values, 96 groups, and 48 single values."""
    edges = np.unique(
        np.concatenate([np.arange(8), np.linspace(8, n - 48, 97), np.arange(n - 48, n)]).astype(
            np.int64
        )
    )
    weights = np.diff(np.append(edges, n)) / n
    edges.flags.writeable = weights.flags.writeable = False
    return edges, weights


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


def _top(grid: np.ndarray, profile: np.ndarray, k: int) -> float:
    """The top near a peak of the scan: of the quartic through five even points where there are."""
    start = peak_of_parabola(grid[k - 1 : k + 2], profile[k - 1 : k + 2])
    if not 2 <= k < grid.size - 2 or grid[k + 2] - grid[k - 2] > 4.001 * _STEP:
        return start
    a, b, c, d, e = profile[k - 2 : k + 3].tolist()
    first, second = (8.0 * (d - b) + a - e) / 12.0, (16.0 * (b + d) - 30.0 * c - a - e) / 12.0
    third, fourth = 0.5 * (e - a) + b - d, a + e - 4.0 * (b + d) + 6.0 * c
    h = (start - float(grid[k])) / _STEP
    for _ in range(2):
        slope = first + h * (second + h * (0.5 * third + h * fourth / 6.0))
        bend = second + h * (third + 0.5 * h * fourth)
        h -= slope / bend if bend < 0 else 0.0
    return float(grid[k]) + _STEP * h if -1.0 < h < 1.0 else start


def _polish(r: np.ndarray, start: float, low: float, high: float) -> tuple[float, Sums]:
    """Halley's method for the root of the profile's slope in v, kept inside [low, high]."""
    v = start
    for _ in range(_STEPS):
        theta = math.expm1(v)
        sums = likelihood_sums(excesses=r, t=theta)
        slope, bend, third = slope_and_bends(v, sums, r)
        if slope > 0:
            low = v
        else:
            high = v
        after = math.inf
        if bend < 0:
            after = v - 2.0 * slope * bend / (2.0 * bend * bend - slope * third)
            if not low <= after <= high:
                after = v - slope / bend
        if not low <= after <= high:
            after = 0.5 * (low + high)
        moved, v = after - v, after
        # The error after such a step is about its cube, and the sums move with it.
        if abs(moved) <= 2e-5:
            return v, sums.moved(math.expm1(v) - theta)
    return v, likelihood_sums(excesses=r, t=math.expm1(v))


def slope_and_bends(v: float, sums: Sums, r: np.ndarray) -> tuple[float, float, float]:
    """First, second and third derivative of the profile (per excess) with respect to v."""
    theta, w = math.expm1(v), math.exp(v)
    third = 0.0
    if abs(theta) < _NEAR_ZERO:
        m1, m2, m3 = moments(excesses=r, powers=(1, 2, 3))
        second = m2 - 2.0 * m3 / (3.0 * m1) + m2**2 / (4.0 * m1**2)
        first = m2 / (2.0 * m1) - m1 + theta * second
        return first * w, second * w * w + first * w, 0.0
    a, b, c, d = sums
    ratio = b / a
    first = (a / theta - b) / a - b
    second = c + c / a + ratio**2 - 1.0 / theta**2
    if abs(theta) > 1e-3:  # below, the third derivative would be rounding
        third = (
            2.0 / theta**3 - 2.0 * d * (1.0 + 1.0 / a) - 3.0 * ratio * c / a - 2.0 * ratio**3
        )
        third = third * w**3 + 3.0 * second * w * w + first * w
    return first * w, second * w * w + first * w, third


def scale_ratio(v: float, sums: Sums, r: np.ndarray) -> float:
    """Best scale over the largest excess, A / expm1(v), with its limit at v = 0."""
    theta = math.expm1(v)
    if abs(theta) > 1e-12:
        return sums.log_mean / theta
    return moments(excesses=r, powers=(1,))[0]
