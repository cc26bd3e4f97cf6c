"""Exact refits of many samples at once: the rows of a matrix, in blocks, without a loop over rows.

The same scan and the same Newton iteration as for one sample (see ``_maximum``), carried out for
all rows of a block together. The block is small, so that its work space stays in the cache.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pybridge.tails._maximum import _NEAR_ZERO

_BLOCK = 1 << 16  # doubles in the work space of a block
_CLIMB_BLOCK = 1 << 17  # the same where there is a start, and fewer passes to share the overhead
_STEP = 2.0  # of the scan; wider than for one sample, since Newton's method is cheap here
_ITERATIONS = 40
_DEEPEST = 30.0  # of -v in a check far from the maximum
_LOWEST = 1e-9  # of 1 + t max x at a start


class Refits(NamedTuple):
    """Maximum likelihood fits of R samples.

    ``shape`` and ``scale`` are (R,) float64; ``at_boundary`` (R,) bool says where no interior
    maximum beats the boundary, shape -1 and scale the largest excess; rows without any excess
    have NaN.
    """

    shape: np.ndarray
    scale: np.ndarray
    at_boundary: np.ndarray


def refit_rows(
    *, excesses: np.ndarray, weights: np.ndarray | None = None, start: float | None = None
) -> Refits:
    """Fit every row.

    Parameters
    ----------
    excesses : (R, n) positive float64; with ``weights`` also (n,) or (1, n), shared by all rows
    weights : (R, n) counts, or None for one each; an excess of weight 0 is not in the row's sample
    start : shape / scale near which most rows have their maximum, such as that of the distribution
        they were drawn from; a row whose climb from there does not end at a maximum that beats
        points far on both sides and the boundary is scanned as without a start
    """
    if start is not None and weights is None:
        return _from_start(np.atleast_2d(excesses), start)
    x = np.atleast_2d(excesses)
    n_rows = x.shape[0] if weights is None else weights.shape[0]
    out = Refits(np.empty(n_rows), np.empty(n_rows), np.empty(n_rows, dtype=bool))
    per_block = max(1, _BLOCK // max(1, x.shape[1]))
    space = np.empty((3, min(per_block, n_rows), x.shape[1]))
    for start in range(0, n_rows, per_block):
        rows = slice(start, min(start + per_block, n_rows))
        part = x[rows] if x.shape[0] > 1 else x
        block = _Block(part, None if weights is None else weights[rows], space)
        for target, values in zip(out, _fit_block(block)):
            target[rows] = values
    return out


def _from_start(x: np.ndarray, start: float) -> Refits:
    """Climb from a common start; rows where that is not enough are fitted by the scan."""
    n_rows, n = x.shape
    out = Refits(np.empty(n_rows), np.empty(n_rows), np.zeros(n_rows, dtype=bool))
    per_block = max(1, _CLIMB_BLOCK // n)
    space = np.empty((3, min(per_block, n_rows), n))
    rest = []
    for first in range(0, n_rows, per_block):
        rows = slice(first, min(first + per_block, n_rows))
        block = _Block(x[rows], None, space)
        out.shape[rows], out.scale[rows], good = _climb(block, start)
        rest.append(first + np.flatnonzero(~good))
    left = np.concatenate(rest)
    if left.size:
        for target, values in zip(out, refit_rows(excesses=x[left])):
            target[left] = values
    return out


def _climb(block: _Block, start: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shape and scale of every row by Halley's method, and whether they can be relied on."""
    v = np.log1p(np.maximum(start * block.largest, _LOWEST - 1.0))
    v = np.where(np.abs(v) < 1e-2, 1e-2, v)  # the formulas divide by expm1(v)
    shape, ratio = np.zeros(v.size), np.ones(v.size)
    good = np.zeros(v.size, dtype=bool)
    active = np.arange(v.size)
    part = block
    for _ in range(4):
        theta = np.expm1(v[active])
        sums = part.sums(theta)
        slope, bend, third = _derivatives(theta, *sums)
        moved = -2.0 * slope * bend / (2.0 * bend * bend - slope * third)
        moved = np.where((bend < 0) & (np.abs(moved) < 2.0), moved, np.nan)
        v[active] += moved
        done = np.abs(moved) <= 3e-3  # the error after the step is about its cube
        step = np.expm1(v[active]) - theta
        a, b, c, d = sums
        moved_a = a + step * (b - step * (0.5 * c - step * d / 3.0))
        ended = active[done]
        shape[ended] = moved_a[done]
        ratio[ended] = (moved_a / (theta + step))[done]
        good[ended] = np.abs(theta + step)[done] > 1e-4
        active = active[~done & ~np.isnan(moved)]
        if active.size == 0:
            break
        part = block.take(active)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = -np.log(ratio) - shape - 1.0
        good &= (shape > -0.9) & (value > 0.0)
        for far in (-4.0, -1.5, 2.0, 6.0):
            theta = np.expm1(np.clip(v + far, -_DEEPEST, 300.0))
            a = block.log_mean(np.where(np.isnan(theta), 1.0, theta))
            good &= -np.log(a / theta) - a - 1.0 < np.where(a > -1.0, value, np.inf)
    return shape, ratio * block.largest, good


def _derivatives(
    theta: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """First three derivatives of the profile in v; see ``_maximum.slope_and_bends``."""
    w = theta + 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = b / a
        first = (a / theta - b) / a - b
        second = c + c / a + ratio**2 - 1.0 / theta**2
        third = (
            2.0 / theta**3 - 2.0 * d * (1.0 + 1.0 / a) - 3.0 * ratio * c / a - 2.0 * ratio**3
        )
    third = np.where(np.abs(theta) > 1e-3, third, 0.0)
    return (
        first * w,
        second * w * w + first * w,
        third * w**3 + 3.0 * second * w * w + first * w,
    )


class _Block:
    """Rows scaled by their largest excess, and their weighted means."""

    def __init__(self, x: np.ndarray, weights: np.ndarray | None, space: np.ndarray) -> None:
        n_rows = x.shape[0] if weights is None else weights.shape[0]
        self.work, self.ratio = space[0, :n_rows], space[1, :n_rows]
        if weights is None:
            self.weights, self.count = None, np.full(n_rows, float(x.shape[1]))
            self.largest = x.max(axis=1)
            self.smallest = x.min(axis=1)
        else:
            self.weights = np.asarray(weights, dtype=np.float64)
            self.count = self.weights.sum(axis=1)
            present = self.weights > 0
            self.largest = np.where(present, x, 0.0).max(axis=1)
            self.smallest = np.where(present, x, np.inf).min(axis=1)
        if weights is None:
            self.scaled = np.divide(x, self.largest[:, np.newaxis], out=space[2, :n_rows])
        else:
            # Excesses of weight 0 may exceed the row's largest; any value in (0, 1] does for them.
            largest = np.where(self.largest > 0, self.largest, 1.0)
            self.scaled = np.minimum(x / largest[:, np.newaxis], 1.0)

    def mean(self, values: np.ndarray) -> np.ndarray:
        if self.weights is None:
            total = np.add.reduce(values, axis=1)
        else:
            total = np.einsum("ij,ij->i", values, self.weights)
        return total / np.maximum(self.count, 1.0)

    def take(self, rows: np.ndarray) -> _Block:
        """The same for some of the rows, without weights."""
        part = object.__new__(_Block)
        part.weights, part.count = None, self.count[rows]
        part.largest, part.smallest = self.largest[rows], self.smallest[rows]
        part.scaled = self.scaled[rows]
        part.work, part.ratio = self.work[: rows.size], self.ratio[: rows.size]
        return part

    def mean_product(self, values: np.ndarray, others: np.ndarray) -> np.ndarray:
        if self.weights is None:
            total = np.einsum("ij,ij->i", values, others)
        else:
            total = np.einsum("ij,ij,ij->i", values, others, self.weights)
        return total / np.maximum(self.count, 1.0)

    def log_mean(self, theta: np.ndarray) -> np.ndarray:
        """A of every row at its own theta = t max x."""
        np.multiply(self.scaled, theta[:, np.newaxis], out=self.work)
        np.log1p(self.work, out=self.work)
        return self.mean(self.work)

    def sums(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """A to D of every row (see ``_sums``), in units of its largest excess."""
        np.multiply(self.scaled, theta[:, np.newaxis], out=self.ratio)
        np.log1p(self.ratio, out=self.work)
        a = self.mean(self.work)
        self.ratio += 1.0
        np.divide(self.scaled, self.ratio, out=self.ratio)
        np.multiply(self.ratio, self.ratio, out=self.work)
        return (
            a,
            self.mean(self.ratio),
            self.mean(self.work),
            self.mean_product(self.work, self.ratio),
        )

    def moment(self, rows: np.ndarray, power: int) -> np.ndarray:
        values = self.scaled[rows] ** power
        if self.weights is None:
            return values.mean(axis=1)
        return (values * self.weights[rows]).sum(axis=1) / self.count[rows]


def _fit_block(block: _Block) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    grid = _scan_points(block)
    shapes = np.empty((block.count.size, grid.size))
    for k, v in enumerate(grid):
        shapes[:, k] = block.log_mean(np.full(block.count.size, math.expm1(v)))
    with np.errstate(divide="ignore", invalid="ignore"):  # rows without any excess
        profile = -np.log(shapes / np.expm1(grid)) - shapes - 1.0
    peak, found = _highest_peak(profile, shapes)
    v = _newton(block, grid[peak], grid[peak - 1], grid[np.minimum(peak + 1, grid.size - 1)])
    theta = np.expm1(v)
    shape = block.log_mean(theta)
    ratio = _scale_ratio(block, theta, shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = -np.log(ratio) - shape - 1.0
    inner = found & (shape > -1.0) & (value >= 0.0)
    empty = block.count == 0
    shape = np.where(empty, np.nan, np.where(inner, shape, -1.0))
    scale = np.where(empty, np.nan, np.where(inner, ratio, 1.0) * block.largest)
    return shape, scale, ~inner & ~empty


def _scan_points(block: _Block) -> np.ndarray:
    """One grid for the block, wide enough for each of its rows (see ``scan_grid``)."""
    lower = -(math.log(max(2.0, float(block.count.max()))) + 5.0)
    with np.errstate(invalid="ignore"):
        ratios = block.smallest / block.largest
    ratio = max(float(np.nanmin(ratios, initial=1.0)), 1e-150)
    upper = min(max(math.log1p(2.0 * (1.0 - ratio) / ratio**2), 3.0), 450.0)
    grid = lower + _STEP * np.arange(-1, math.ceil((min(upper, 6.0) - lower) / _STEP) + 1)
    if upper > 6.0:
        n_more = 1 + math.ceil(math.log(upper / grid[-1]) / math.log(1.4))
        grid = np.concatenate([grid, grid[-1] * 1.4 ** np.arange(1, n_more + 1)])
    grid[np.abs(grid) < 1e-3] = 1e-3
    return grid


def _highest_peak(profile: np.ndarray, shapes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Index of each row's highest interior peak, and whether it has one."""
    middle = profile[:, 1:-1]
    higher = (middle > profile[:, :-2]) & (middle >= profile[:, 2:]) & (shapes[:, 1:-1] > -1.0)
    peak = np.where(higher, middle, -np.inf).argmax(axis=1) + 1
    return peak, higher.any(axis=1)


def _newton(block: _Block, v: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Root of the profile's slope in v, each row inside its own bracket."""
    v, low, high = v.copy(), low.copy(), high.copy()
    for _ in range(_ITERATIONS):
        slope, bend = _slope_and_bend(block, v)
        rising = slope > 0
        low, high = np.where(rising, v, low), np.where(rising, high, v)
        with np.errstate(divide="ignore", invalid="ignore"):
            after = v - slope / bend
        good = (bend < 0) & (after >= low) & (after <= high)
        after = np.where(good, after, 0.5 * (low + high))
        moved = np.abs(after - v)
        v = after
        if np.all((moved <= 1e-6) | (high - low <= 1e-12) | (block.count == 0)):
            break  # the error after a Newton step is about the square of the step
    return v


def _slope_and_bend(block: _Block, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    theta, w = np.expm1(v), np.exp(v)
    a, b, c, _ = block.sums(theta)
    with np.errstate(divide="ignore", invalid="ignore"):
        first = (a / theta - b) / a - b
        second = c + c / a + (b / a) ** 2 - 1.0 / theta**2
    near = np.flatnonzero(np.abs(theta) < _NEAR_ZERO)
    if near.size:
        m1, m2, m3 = (block.moment(near, power) for power in (1, 2, 3))
        second[near] = m2 - 2.0 * m3 / (3.0 * m1) + m2**2 / (4.0 * m1**2)
        first[near] = m2 / (2.0 * m1) - m1 + theta[near] * second[near]
    return first * w, second * w * w + first * w


def _scale_ratio(block: _Block, theta: np.ndarray, shape: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = shape / theta
    near = np.flatnonzero(np.abs(theta) < 1e-12)
    if near.size:
        ratio[near] = block.moment(near, 1)
    return ratio
