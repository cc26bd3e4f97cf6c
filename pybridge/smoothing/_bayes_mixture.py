"""Quantiles of finite mixtures of normals, one mixture a domain, exact to rounding."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import ndtr, ndtri

BLOCK_ELEMENTS = 1 << 17
# A component lighter than this cannot move a quantile at any usual level by 1e-9 of its spread.
LIGHTEST = 1e-13
_MOST_STEPS = 80
_TOLERANCE = 1e-11
_ROOT_TWO_PI = np.sqrt(2.0 * np.pi)

Components = Callable[[slice], tuple[np.ndarray, np.ndarray]]


def mixture_intervals(
    components: Components,
    *,
    weight: np.ndarray,
    mean: np.ndarray,
    variance: np.ndarray,
    level: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Equal-tailed intervals of m mixtures of K normals with common weights.

    Parameters
    ----------
    components : callable
        ``components(slice of domains) -> (means (K, block), standard deviations (K, block))``.
    weight : (K,)
        Weights of the components.
    mean, variance : (m,)
        Moments of the mixtures, for the start; the variance may be NaN where it is infinite.
    level : float
        Mass inside the interval.

    Returns
    -------
    lower, upper : (m,)
    """
    m = mean.size
    lower, upper = np.empty(m), np.empty(m)
    tail = 0.5 * (1.0 - level)
    block = max(1, BLOCK_ELEMENTS // weight.size)
    for start in range(0, m, block):
        part = slice(start, min(start + block, m))
        centre, spread = components(part)
        for target, out in ((tail, lower), (1.0 - tail, upper)):
            out[part] = _quantile(
                centre, spread, weight, target, start=mean[part], width=np.sqrt(variance[part])
            )
    return lower, upper


def _quantile(
    centre: np.ndarray,
    spread: np.ndarray,
    weight: np.ndarray,
    target: float,
    *,
    start: np.ndarray,
    width: np.ndarray,
) -> np.ndarray:
    """Newton's method on the probit scale, where a near-normal mixture is a near-straight line.

    The quantile of a mixture lies between the smallest and the largest quantile of its
    components, which brackets it; a step that leaves the bracket is replaced by a bisection.
    """
    aim = float(ndtri(target))
    each = centre + aim * spread
    low, high = each.min(axis=0), each.max(axis=0)
    point = start + aim * width
    middle = each[int(np.argmax(weight))]
    point = np.where(np.isfinite(point) & (point >= low) & (point <= high), point, middle)
    scale = spread[int(np.argmax(weight))]
    rest = np.arange(point.size)
    for _ in range(_MOST_STEPS):
        where = point[rest]
        standard = (where - centre[:, rest]) / spread[:, rest]
        below = weight @ ndtr(standard)
        density = weight @ (np.exp(-0.5 * standard * standard) / spread[:, rest]) / _ROOT_TWO_PI
        low[rest] = np.where(below < target, where, low[rest])
        high[rest] = np.where(below > target, where, high[rest])
        probit = ndtri(np.clip(below, 1e-300, 1.0 - 1e-16))
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            slope = density * _ROOT_TWO_PI * np.exp(0.5 * probit * probit)
            moved = where - (probit - aim) / slope
        inside = np.isfinite(moved) & (moved >= low[rest]) & (moved <= high[rest])
        moved = np.where(inside, moved, 0.5 * (low[rest] + high[rest]))
        point[rest] = moved
        still = np.abs(moved - where) > _TOLERANCE * (scale[rest] + 1e-3 * np.abs(where))
        rest = rest[still]
        if rest.size == 0:
            break
    return point
