"""Posterior means of the domains alone, for refits that need nothing else.

As the full moments: going down the tree, a node's effect is linear in the coefficients and in the
sum of effects above it, so that means can be averaged over all sets of variances that share the
finer ones before the next level is entered.
"""

from __future__ import annotations

import numpy as np

from pybridge.smoothing._taxonomy_algebra import TreeData, blocks, sweep_up
from pybridge.smoothing._taxonomy_moments import Moments


def posterior_means(variances: np.ndarray, weight: np.ndarray, data: TreeData) -> np.ndarray:
    """Posterior means (m,), in tree order and working units, over nodes (K, R) of weights (K,)."""
    total = np.zeros(data.d.size)
    for pick in blocks(variances, data):
        total += _block(variances[pick], weight[pick], data)
    return total


def _block(variances: np.ndarray, weight: np.ndarray, data: TreeData) -> np.ndarray:
    """A block's share of the means."""
    p, tree = data.n_coefficients, data.tree
    up = sweep_up(variances, data)
    beta, above = up.coefficients, np.zeros((weight.size, 1))
    held, member = variances, np.arange(weight.size)
    for level, stage in enumerate(up.stages):
        row = stage.row[member]
        grown = held[:, level, None] * stage.precision[row]
        centre, parent = stage.mean[row], tree.parent[level]
        higher = np.take(above, parent, axis=-1)
        predicted = np.matmul(beta[:, None, :], centre[:, :p])[:, 0] + higher
        above = higher + grown / (1.0 + grown) * (centre[:, p] - predicted)
        count = stage.precision.shape[0]
        # Mix the sets that differ in the coarser variances only.
        mixed = np.bincount(row, weights=weight, minlength=count)
        share = np.zeros((count, row.size))
        share[row, np.arange(row.size)] = weight / mixed[row]
        beta, above, weight = share @ beta, share @ above, mixed
        first = np.zeros(count, dtype=np.intp)
        first[row] = np.arange(row.size)
        held, member = held[first], member[first]
    s = held[:, -1, None]
    regression = beta @ data.columns[:p] + np.take(above, tree.parent[-1], axis=-1)
    gamma = data.seen * s / (s + data.d)
    rest = np.where(data.seen > 0.0, data.d / (s + data.d), 1.0)
    return np.asarray(weight @ (gamma * data.columns[p] + rest * regression))


def means_alone(mean: np.ndarray, data: TreeData) -> Moments:
    """The means (m,) as moments of which nothing else is known."""
    nothing, p = np.full(mean.size, np.nan), data.n_coefficients
    levels = tuple(np.full(size, np.nan) for size in data.tree.sizes)
    return Moments(
        mean=mean,
        variance=nothing,
        ratio=nothing,
        shrinkage=nothing,
        synthetic=nothing,
        effects=tuple((level, level) for level in levels),
        coefficients=np.full(p, np.nan),
        covariance=np.full((p, p), np.nan),
    )
