"""The three sums over excesses that the generalised Pareto likelihood is made of.

With t = shape / scale everything that the likelihood, its score and its information need is
    A = mean log(1 + t x),   B = mean x / (1 + t x),   C = mean (x / (1 + t x))^2,
and near t = 0 the first moments. Long samples are read in blocks, so the work space is bounded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_BLOCK = 1 << 13  # of doubles: small enough that the allocator hands the same pages out again
_OUTER = 1 << 14


class Sums(NamedTuple):
    """A, B, C of the module docstring, each a mean over the excesses."""

    log_mean: float
    ratio_mean: float
    ratio_square: float


def likelihood_sums(*, excesses: np.ndarray, t: float) -> Sums:
    """A, B and C at one t; ``excesses`` is (n,)."""
    n = excesses.size
    if n <= _BLOCK:
        a, b, c = _block_sums(excesses, t)
    else:
        parts = [_block_sums(excesses[i : i + _BLOCK], t) for i in range(0, n, _BLOCK)]
        a, b, c = (float(np.sum(column)) for column in zip(*parts))
    return Sums(a / n, b / n, c / n)


def _block_sums(x: np.ndarray, t: float) -> tuple[float, float, float]:
    work = t * x
    a = float(np.add.reduce(np.log1p(work)))
    work += 1.0
    np.divide(x, work, out=work)
    return a, float(np.add.reduce(work)), float(work @ work)


def log_means(*, excesses: np.ndarray, t: np.ndarray) -> np.ndarray:
    """A at several t: (k,) from (n,) excesses and (k,) values of t."""
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
            total[first : first + rows] += np.add.reduce(work, axis=1)
    return total / n


def moments(*, excesses: np.ndarray, powers: tuple[int, ...]) -> tuple[float, ...]:
    """Means of the given whole powers of (n,) excesses."""
    totals = np.zeros(len(powers))
    for start in range(0, excesses.size, _BLOCK):
        part = excesses[start : start + _BLOCK]
        totals += [float(np.sum(part**p)) for p in powers]
    return tuple(float(value) for value in totals / excesses.size)
