"""The taxonomy model in working units: checked, residualised, orthonormal, in tree order."""

from __future__ import annotations

import dataclasses

import numpy as np

from pybridge._checks import collinear_columns
from pybridge.smoothing._bayes_input import need_enough
from pybridge.smoothing._bayes_units import unit_of, weighted_fit
from pybridge.smoothing._taxonomy_algebra import TreeData, blocks, sweep_up
from pybridge.smoothing._taxonomy_prior import TaxonomyPrior
from pybridge.smoothing._taxonomy_tree import Tree


@dataclasses.dataclass(frozen=True)
class Problem:
    """The model in working units: z = scale z_w + x offset, x_w = x turn, tree order.

    ``shape``, ``rate`` (R,) of the inverse-gamma priors in working units; ``low``, ``high`` (R,)
    the box that holds the posterior mode of the log variances; ``mean_exists`` (R,) where the
    posterior mean of the variance is finite; ``mean_exists_without`` (R,) the same with one
    labelled group fewer.
    """

    data: TreeData
    prior: TaxonomyPrior
    shape: np.ndarray
    rate: np.ndarray
    scale: float
    offset: np.ndarray
    turn: np.ndarray
    regression: np.ndarray
    low: np.ndarray
    high: np.ndarray
    mean_exists: np.ndarray
    mean_exists_without: np.ndarray

    @classmethod
    def of(
        cls,
        *,
        z: np.ndarray,
        d: np.ndarray,
        x: np.ndarray,
        tree: Tree,
        prior: TaxonomyPrior | None,
    ) -> Problem:
        """Check, residualise, orthonormalise and sort."""
        seen = ~np.isnan(z)
        m, p = int(seen.sum()), x.shape[1]
        need_enough(m, p)
        collinear_columns(x[seen])
        offset, turn, residual = weighted_fit(z[seen], x[seen], np.ones(m))
        scale = unit_of(residual, d[seen])
        chosen = prior or TaxonomyPrior.default(d[seen], residual=residual, depth=tree.depth)
        shape, rate = chosen.arrays(tree.depth)
        rate = rate / scale / scale
        regression = x @ offset
        order = tree.order
        columns = np.vstack([(x @ turn).T, np.where(seen, (z - regression) / scale, 0.0)])
        data = TreeData(
            tree=tree,
            seen=seen[order].astype(np.float64),
            d=np.where(seen, d / scale / scale, 1.0)[order],
            columns=np.ascontiguousarray(columns[:, order]),
        )
        top = np.log(max(float(np.mean(residual**2)) / scale**2, float(rate.max()), 1e-12))
        return cls(
            data=data,
            prior=chosen,
            shape=shape,
            rate=rate,
            scale=scale,
            offset=offset,
            turn=turn,
            regression=regression,
            low=np.log(rate) - 0.5 * np.log(m) - 3.0,
            high=np.maximum(top, np.log(rate)) + 1.0,
            mean_exists=_means(data, shape),
            mean_exists_without=_means(data, shape, fewer=1),
        )

    def log_density(self, log_variance: np.ndarray) -> np.ndarray:
        """Posterior log density (K,) of log variances (K, R), up to a constant."""
        variances = np.exp(log_variance)
        out = -(log_variance @ self.shape) - np.exp(-log_variance) @ self.rate
        for pick in blocks(variances, self.data):
            out[pick] += sweep_up(variances[pick], self.data).log_likelihood
        return out


def _means(data: TreeData, shape: np.ndarray, *, fewer: int = 0) -> np.ndarray:
    """Where E[s_r | z] is finite: prior shape + (groups - dimensions lost to beta) / 2 > 1."""
    tree, p = data.tree, data.n_coefficients
    out = np.empty(tree.depth, dtype=bool)
    x = data.columns[:p] * data.seen
    for level in range(tree.depth):
        place = tree.climb(level)
        count = np.bincount(place, weights=data.seen)
        centred = x.copy()
        for row in range(p):
            mean = np.bincount(place, weights=x[row]) / np.maximum(count, 1.0)
            centred[row] -= mean[place] * data.seen
        lost = p - int(np.linalg.matrix_rank(centred @ centred.T, tol=1e-9))
        spare = int((count > 0).sum()) - fewer - lost
        out[level] = shape[level] + 0.5 * spare > 1.0
    return out
