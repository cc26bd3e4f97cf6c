"""Variances and covariances of sums over groups of domains, by the one variance engine.

A group's estimate is a sum of scores over its domains, Σ_i c_i't_i, so its variance follows from
the totals of these scores by stratum and by primary unit; see `pybridge.design.variance`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pybridge.design.cells import Cells, unpack
from pybridge.design.variance import stratum_factors
from pybridge.errors import InputError

# A full covariance of more groups than this would fill the memory before it helps anybody.
MOST_GROUPS = 5000
# Numbers of a table of strata by groups that is made whole; above, only what is not 0.
_MOST_CELLS = 10_000_000


def group_covariance(
    cells: Cells, *, scores: np.ndarray, groups: np.ndarray, n_groups: int
) -> np.ndarray:
    """Covariance (G, G) of sums of domain scores over groups, from the whole sample.

    Parameters
    ----------
    cells : Cells
        From the pass.
    scores : numpy.ndarray
        Shape (m, p), the score coefficients c_i, each times its domain's part in the group.
    groups : numpy.ndarray
        Shape (m,), the group of every domain; −1 for none.
    n_groups : int
        G.
    """
    if n_groups > MOST_GROUPS:
        raise InputError(
            f"a full covariance of {n_groups} groups is not made",
            code="too_many_groups",
            field="groups",
            expected=f"at most {MOST_GROUPS}",
            got=n_groups,
        )
    if cells.plan.poisson:
        return np.diag(_of_pairs(cells, scores, groups, n_groups))
    square, product = _factors(cells)
    within = np.diag(_of_pairs(cells, scores, groups, n_groups))
    if cells.clusters is not None:
        totals = _cluster_totals(cells, scores, groups, n_groups)
        within = (totals.T @ totals.multiply(square[_stratum_of_psu(cells)][:, None])).toarray()
    table = _stratum_totals(cells, scores, groups, n_groups)
    if np.prod(table.shape) > _MOST_CELLS:
        return within - (table.T @ table.multiply(product[:, None])).toarray()
    dense = table.toarray()
    return within - dense.T @ (product[:, None] * dense)


def group_variances(
    cells: Cells, *, scores: np.ndarray, groups: np.ndarray, n_groups: int
) -> np.ndarray:
    """The diagonal (G,) of `group_covariance`, for any number of groups."""
    if cells.plan.poisson:
        return _of_pairs(cells, scores, groups, n_groups)
    square, product = _factors(cells)
    within = _of_pairs(cells, scores, groups, n_groups)
    if cells.clusters is not None:
        totals = _cluster_totals(cells, scores, groups, n_groups).power(2)
        within = totals.T @ square[_stratum_of_psu(cells)]
    table = _stratum_totals(cells, scores, groups, n_groups).power(2)
    return np.asarray(within - table.T @ product)


def _factors(cells: Cells) -> tuple[np.ndarray, np.ndarray]:
    plan = cells.plan
    return stratum_factors(
        n_psu=plan.stratum_psu.sum(axis=1).astype(np.float64),
        keep=1.0 - plan.sampling_fraction,
        lonely_psu=plan.lonely_psu,
    )


def _of_pairs(cells: Cells, scores: np.ndarray, groups: np.ndarray, n_groups: int) -> np.ndarray:
    """What units add by themselves (G,): Σ a_h c'Σ w²uu'c, with Poisson Σ (1 − π) w² (c'u)²."""
    if cells.plan.poisson:
        form = unpack((cells.square - cells.gram).sum(axis=1), cells.n_variables)
        factor = np.ones(len(cells.plan.stratum_psu))
    else:
        form = unpack(cells.square.sum(axis=1), cells.n_variables)
        factor = _factors(cells)[0]
    c = scores[cells.pair_domain]
    each = np.einsum("ai,aij,aj->a", c, form, c) * factor[cells.pair_stratum]
    group = groups[cells.pair_domain]
    used = group >= 0
    return np.bincount(group[used], weights=each[used], minlength=n_groups)


def _sparse(value: np.ndarray, row: np.ndarray, group: np.ndarray, shape: tuple[int, int]) -> Any:
    """A sparse table of sums; what belongs to no group is left out."""
    from scipy.sparse import coo_matrix

    used = group >= 0
    return coo_matrix((value[used], (row[used], group[used])), shape=shape).tocsr()


def _stratum_totals(cells: Cells, scores: np.ndarray, groups: np.ndarray, n_groups: int) -> Any:
    """Totals of the scores by stratum and group, sparse (H, G)."""
    value = np.einsum("aj,aj->a", cells.total.sum(axis=1), scores[cells.pair_domain])
    shape = (len(cells.plan.stratum_psu), n_groups)
    return _sparse(value, cells.pair_stratum, groups[cells.pair_domain], shape)


def _cluster_totals(cells: Cells, scores: np.ndarray, groups: np.ndarray, n_groups: int) -> Any:
    """Totals of the scores by primary unit and group, sparse."""
    clusters = cells.clusters
    assert clusters is not None
    value = np.einsum("cj,cj->c", clusters.total, scores[clusters.domain])
    shape = (int(clusters.psu.max()) + 1, n_groups)
    return _sparse(value, clusters.psu, groups[clusters.domain], shape)


def _stratum_of_psu(cells: Cells) -> np.ndarray:
    clusters = cells.clusters
    assert clusters is not None
    stratum = np.zeros(int(clusters.psu.max()) + 1, dtype=np.intp)
    stratum[clusters.psu] = clusters.stratum
    return stratum
