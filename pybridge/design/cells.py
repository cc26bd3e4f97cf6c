"""The one pass over the labelled units: moments a cell, after which no unit is needed.

A cell is a stratum × domain × fold, and also × primary unit where units come in clusters. With
u = (1, y − a, f − b) for one fixed shift (a, b), a cell holds Σ w u, Σ w u u' and Σ w² u u' (with
clusters Σ t t' over the primary units' totals t = Σ w u). Every direct estimate, its variance, its
covariance with every other one, and all of that in every fold, are functions of these. The
shift keeps digits where the mean is large beside the spread.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pybridge._record import Record
from pybridge.errors import InputError


@dataclass(frozen=True, eq=False, repr=False)
class ClusterTotals(Record):
    """Totals of primary units that are clusters, one row a primary unit × domain.

    Attributes
    ----------
    psu, domain, stratum, fold : numpy.ndarray
        Shape (C,), codes.
    total : numpy.ndarray
        Shape (C, p), Σ w u over the row's units.
    """

    psu: np.ndarray
    domain: np.ndarray
    stratum: np.ndarray
    fold: np.ndarray
    total: np.ndarray


def packed_index(p: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the packed upper triangle of a p × p matrix."""
    return np.triu_indices(p)


def unpack(packed: np.ndarray, p: int) -> np.ndarray:
    """Full symmetric matrices (..., p, p) from packed ones (..., T)."""
    rows, columns = packed_index(p)
    full = np.empty(packed.shape[:-1] + (p, p))
    full[..., rows, columns] = packed
    full[..., columns, rows] = packed
    return full


@dataclass(frozen=True, eq=False, repr=False)
class PassPlan(Record):
    """What every part of one sample must share for its cells to add.

    Attributes
    ----------
    variables : tuple of str
        Names of the outcome and the auxiliary variables (p − 1).
    n_domains : int
        m.
    shift : numpy.ndarray
        Shape (p,), 0 for the constant.
    domain_means : numpy.ndarray
        Shape (p − 1, m), about which the fourth moments are taken; NaN in domains with fewer than
        two units, which do not enter them.
    stratum_psu, rest_stratum, fold_stratum, sampling_fraction, poisson, lonely_psu
        As in `Cells`.
    """

    variables: tuple[str, ...]
    n_domains: int
    shift: np.ndarray
    domain_means: np.ndarray
    stratum_psu: np.ndarray
    rest_stratum: np.ndarray
    fold_stratum: np.ndarray
    sampling_fraction: np.ndarray
    poisson: bool
    lonely_psu: str


@dataclass(frozen=True, eq=False, repr=False)
class Cells(Record):
    """Moments of labelled units by stratum × domain × fold.

    Rows are the P pairs of stratum and domain that hold units, sorted by domain; p = 2 + q
    variables (1, y, f); symmetric p × p matrices are packed as their T = p(p+1)/2 upper entries.

    Attributes
    ----------
    plan : PassPlan
        Names, shift and the sample's counts by stratum and fold.
    pair_stratum, pair_domain : numpy.ndarray
        Shape (P,).
    n, n_psu : numpy.ndarray
        Shape (P, K), units and primary units.
    total : numpy.ndarray
        Shape (P, K, p), Σ w u.
    gram, square : numpy.ndarray
        Shape (P, K, T), Σ w u u' and Σ w² u u' (with clusters Σ t t').
    weight_square : numpy.ndarray
        Shape (P, K), Σ w² over units.
    fourth : numpy.ndarray
        Shape (1 + S, 1 + S), S = p(p−1)/2: Σ w q q', q = 1 and the products of (y, f) about
        the weighted domain means, over domains with at least two units; for the kurtosis of any
        residual.
    clusters : ClusterTotals or None
    outcome_range : tuple of float
        Smallest and largest outcome.
    """

    plan: PassPlan
    pair_stratum: np.ndarray
    pair_domain: np.ndarray
    n: np.ndarray
    n_psu: np.ndarray
    total: np.ndarray
    gram: np.ndarray
    square: np.ndarray
    weight_square: np.ndarray
    fourth: np.ndarray
    clusters: ClusterTotals | None
    outcome_range: tuple[float, float]

    @property
    def n_folds(self) -> int:
        """K."""
        return int(self.plan.stratum_psu.shape[1])

    @property
    def n_variables(self) -> int:
        """p, counting the constant."""
        return len(self.plan.shift)

    def __add__(self, other: Cells) -> Cells:
        return _add(self, other)

    def summary(self) -> str:
        """One line."""
        return (
            f"Cells of {int(self.n.sum()):,} labelled units: {len(self.pair_domain)} pairs of "
            f"stratum and domain × {self.n_folds} folds, variables "
            f"{', '.join(self.plan.variables)}"
        )


def with_cluster_squares(cells: Cells) -> Cells:
    """The cells with Σ t t' and the count of primary units, by pair × fold, from the clusters."""
    clusters, k = cells.clusters, cells.n_folds
    assert clusters is not None
    n_strata = len(cells.plan.stratum_psu)
    keys = cells.pair_domain.astype(np.int64) * n_strata + cells.pair_stratum
    pair = np.searchsorted(keys, clusters.domain.astype(np.int64) * n_strata + clusters.stratum)
    cell = pair * k + clusters.fold
    n_cells = len(keys) * k
    rows, cols = packed_index(clusters.total.shape[1])
    square = np.empty((n_cells, len(rows)))
    for t, (a, b) in enumerate(zip(rows, cols)):
        product = clusters.total[:, a] * clusters.total[:, b]
        square[:, t] = np.bincount(cell, weights=product, minlength=n_cells)
    n_psu = np.bincount(cell, minlength=n_cells).astype(np.float64)
    return replace(cells, square=square.reshape(len(keys), k, -1), n_psu=n_psu.reshape(-1, k))


def _add(first: Cells, second: Cells) -> Cells:
    if first.plan != second.plan:
        raise InputError(
            "these cells are not of two parts of one sample",
            code="cells_do_not_add",
            field="cells",
            expected="cells made with one plan",
            got="two plans",
        )
    n_strata = len(first.plan.stratum_psu)
    both = [first, second]
    key = np.concatenate([c.pair_domain.astype(np.int64) * n_strata + c.pair_stratum for c in both])
    found, code = np.unique(key, return_inverse=True)

    def summed(name: str) -> np.ndarray:
        parts = np.concatenate([getattr(c, name) for c in both])
        out = np.zeros((len(found),) + parts.shape[1:])
        np.add.at(out, code.reshape(-1), parts)
        return out

    low, high = zip(first.outcome_range, second.outcome_range)
    names = ("n", "n_psu", "total", "gram", "square", "weight_square")
    cells = replace(
        first,
        pair_stratum=found % n_strata,
        pair_domain=found // n_strata,
        fourth=first.fourth + second.fourth,
        outcome_range=(min(low), max(high)),
        **{name: summed(name) for name in names},
    )
    if first.clusters is None or second.clusters is None:
        return cells
    clusters = _add_clusters(first.clusters, second.clusters, first.plan.n_domains)
    return with_cluster_squares(replace(cells, clusters=clusters))


def _add_clusters(first: ClusterTotals, second: ClusterTotals, n_domains: int) -> ClusterTotals:
    """Rows of both; a primary unit that lies in both parts has its totals added."""
    stacked = {
        name: np.concatenate([getattr(first, name), getattr(second, name)])
        for name in ("psu", "domain", "stratum", "fold", "total")
    }
    key = stacked["psu"].astype(np.int64) * n_domains + stacked["domain"]
    found, row, code = np.unique(key, return_index=True, return_inverse=True)
    total = np.zeros((len(found), stacked["total"].shape[1]))
    np.add.at(total, code.reshape(-1), stacked["total"])
    rest = {name: stacked[name][row] for name in ("psu", "domain", "stratum", "fold")}
    return ClusterTotals(total=total, **rest)
