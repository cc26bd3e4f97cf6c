"""The sums over excesses that the generalised Pareto likelihood is made of.

With t = shape / scale everything that the likelihood, its score and its information need is
    A = mean log(1 + t x),   B, C, D = means of x / (1 + t x), of its square and its cube,
and near t = 0 the first moments. Long samples are read in blocks, so the work space is bounded.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

_BLOCK = 1 << 13  # of doubles: small enough that the allocator hands the same pages out again
_OUTER = 1 << 14


class Sums(NamedTuple):
    """A, B, C, D of the module docstring, each a mean over the excesses."""

    log_mean: float
    ratio_mean: float
    ratio_square: float
    ratio_cube: float

    def divided(self, unit: float) -> Sums:
        """The sums of excesses that are divided by a unit (and t times it)."""
        b, c, d = self.ratio_mean / unit, self.ratio_square / unit**2, self.ratio_cube / unit**3
        return Sums(self.log_mean, b, c, d)

    def moved(self, step: float) -> Sums:
        """The sums at t + step, for a step so small that its fourth power is rounding."""
        a, b, c, d = self
        return Sums(
            a + step * (b - step * (0.5 * c - step * d / 3.0)),
            b - step * (c - step * d),
            c - 2.0 * step * d,
            d,
        )


def likelihood_sums(*, excesses: np.ndarray, t: float) -> Sums:
    """A to D at one t; ``excesses`` is (n,)."""
    n = excesses.size
    if n <= _BLOCK:
        total = _block_sums(excesses, t)
    else:
        parts = [_block_sums(excesses[i : i + _BLOCK], t) for i in range(0, n, _BLOCK)]
        total = [math.fsum(column) for column in zip(*parts)]
    return Sums(*(value / n for value in total))


def _block_sums(x: np.ndarray, t: float) -> list[float]:
    ratio = t * x
    work = np.log1p(ratio)
    a = float(np.add.reduce(work))
    ratio += 1.0
    np.divide(x, ratio, out=ratio)
    np.multiply(ratio, ratio, out=work)
    return [a, float(np.add.reduce(ratio)), float(np.add.reduce(work)), float(work @ ratio)]


def log_means(
    *, excesses: np.ndarray, t: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """A at several t: (k,) from (n,) excesses and (k,) values of t; ``weights`` (n,) sum to 1."""
    n, k = excesses.size, t.size
    columns = min(n, _OUTER)
    rows = max(1, min(k, _OUTER // columns))
    buffer = np.empty((rows, columns))  # one small buffer: fresh pages would cost more than logs
    total = np.zeros(k)
    for start in range(0, n, columns):
        part = excesses[start : start + columns]
        for first in range(0, k, rows):
            some = t[first : first + rows]
            work = buffer[: some.size, : part.size]
            np.multiply(some[:, np.newaxis], part, out=work)
            np.log1p(work, out=work)
            if weights is None:
                total[first : first + rows] += np.add.reduce(work, axis=1)
            else:
                total[first : first + rows] += work @ weights[start : start + columns]
    return total / n if weights is None else total


def moments(*, excesses: np.ndarray, powers: tuple[int, ...]) -> tuple[float, ...]:
    """Means of the given whole powers of (n,) excesses."""
    totals = np.zeros(len(powers))
    for start in range(0, excesses.size, _BLOCK):
        part = excesses[start : start + _BLOCK]
        totals += [float(np.sum(part**p)) for p in powers]
    return tuple(float(value) for value in totals / excesses.size)
