"""The sums over labelled units that make a pass: O(n), in blocks that fit a processor's cache."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pybridge.design.cells import packed_index

# Labelled units handled at once: what fits a processor's cache, more where cells are many, since
# every block adds to all of them.
BLOCK, BLOCK_MOST = 1 << 14, 1 << 17


@dataclass(frozen=True, eq=False)
class UnitArrays:
    """Labelled units as arrays, n of each: what the pass reads.

    ``psu`` is None where every unit is its own primary unit.
    """

    domain: np.ndarray
    stratum: np.ndarray
    psu: np.ndarray | None
    fold: np.ndarray
    weight: np.ndarray
    outcome: np.ndarray
    auxiliary: tuple[np.ndarray, ...]

    @property
    def columns(self) -> tuple[np.ndarray, ...]:
        """Outcome and auxiliary variables."""
        return (self.outcome, *self.auxiliary)


def weighted_domain_means(units: UnitArrays, m: int) -> np.ndarray:
    """Weighted means (p − 1, m) of outcome and auxiliaries; NaN with fewer than two units."""
    n = np.bincount(units.domain, minlength=m)
    total: np.ndarray = n.astype(np.float64)
    columns = units.columns
    if common_weight(units.weight) is None:
        total = np.bincount(units.domain, weights=units.weight, minlength=m)
        columns = tuple(units.weight * column for column in units.columns)
    total[n < 2] = np.nan
    sums = [np.bincount(units.domain, weights=column, minlength=m) for column in columns]
    return np.stack(sums) / total


@dataclass(frozen=True)
class CellSums:
    """Sums of C cells with p variables (1, y, f) and T = p(p+1)/2 packed products.

    Attributes
    ----------
    n, weight_square : numpy.ndarray
        Shape (C,), units and Σ w².
    total : numpy.ndarray
        Shape (C, p), Σ w u.
    gram, square : numpy.ndarray
        Shape (C, T), Σ w u u' and Σ w² u u'.
    """

    n: np.ndarray
    weight_square: np.ndarray
    total: np.ndarray
    gram: np.ndarray
    square: np.ndarray


def cell_sums(cell: np.ndarray, n_cells: int, units: UnitArrays, shift: np.ndarray) -> CellSums:
    """The sums of every cell; ``cell`` has shape (n,), ``shift`` shape (p,)."""
    p = len(shift)
    rows, cols = packed_index(p)
    n = np.zeros(n_cells)
    total = np.zeros((p, n_cells))
    gram = np.zeros((len(rows), n_cells))
    square = np.zeros((len(rows), n_cells))
    common = common_weight(units.weight)
    block = max(BLOCK, min(2 * n_cells, BLOCK_MOST))
    for start in range(0, len(cell), block):
        part = slice(start, start + block)
        code = cell[part]
        u = [np.ones(1), *(x[part] - a for x, a in zip(units.columns, shift[1:]))]
        wu = u
        n += np.bincount(code, minlength=n_cells)
        if common is None:
            w = units.weight[part]
            wu = [w, *(w * x for x in u[1:])]
            total[0] += np.bincount(code, weights=w, minlength=n_cells)
            for t, (a, b) in enumerate(zip(rows, cols)):
                square[t] += np.bincount(code, weights=wu[a] * wu[b], minlength=n_cells)
        for j in range(1, p):
            total[j] += np.bincount(code, weights=wu[j], minlength=n_cells)
        for t in range(p, len(rows)):
            product = wu[cols[t]] * u[rows[t]]
            gram[t] += np.bincount(code, weights=product, minlength=n_cells)
    if common is not None:
        total[0] = n
        total *= common
        gram *= common
    gram[:p] = total  # the constant's row of Σ w u u' is Σ w u
    if common is not None:
        square = gram * common
    return CellSums(n, square[0].copy(), total.T.copy(), gram.T.copy(), square.T.copy())


def common_weight(weight: np.ndarray) -> float | None:
    """The one weight of all units: moments without weights need half the sums."""
    return float(weight[0]) if weight.min() == weight.max() else None


def fourth_moments(units: UnitArrays, domain_means: np.ndarray) -> np.ndarray:
    """Σ w q q', q = 1 and the products of the variables about their weighted domain means."""
    rows, cols = packed_index(len(domain_means))
    fourth = np.zeros((1 + len(rows), 1 + len(rows)))
    common = common_weight(units.weight)
    some_alone = bool(np.isnan(domain_means[0]).any())
    for start in range(0, len(units.domain), BLOCK):
        part = slice(start, start + BLOCK)
        code = units.domain[part]
        z = [x[part] - np.take(mean, code) for x, mean in zip(units.columns, domain_means)]
        q = np.empty((1 + len(rows), len(code)))
        q[0] = 1.0
        for t, (a, b) in enumerate(zip(rows, cols), start=1):
            np.multiply(z[a], z[b], out=q[t])
        if some_alone:
            q[:, np.isnan(z[0])] = 0.0
        fourth += (q if common is not None else q * units.weight[part]) @ q.T
    return fourth if common is None else fourth * common
