"""The one pass over the labelled units: cost O(n), in blocks, no loop over units or domains."""

from __future__ import annotations

import numpy as np

from pybridge.design.cells import (
    Cells,
    ClusterTotals,
    PassPlan,
    with_cluster_squares,
)
from pybridge.design.folds import Folds, psu_counts
from pybridge.design.survey_design import SurveyDesign
from pybridge.design.unit_sums import (
    UnitArrays,
    cell_sums,
    fourth_moments,
    weighted_domain_means,
)


def unit_arrays(
    design: SurveyDesign,
    folds: Folds,
    *,
    domain: np.ndarray,
    outcome: np.ndarray,
    auxiliary: tuple[np.ndarray, ...],
) -> UnitArrays:
    """The whole sample as arrays; every argument has shape (n,)."""
    return UnitArrays(
        domain=domain,
        stratum=design.stratum,
        psu=design.psu,
        fold=folds.unit_fold,
        weight=design.weights,
        outcome=outcome,
        auxiliary=auxiliary,
    )


def plan_pass(
    design: SurveyDesign,
    folds: Folds,
    units: UnitArrays,
    *,
    n_domains: int,
    variables: tuple[str, ...],
) -> PassPlan:
    """Plan the pass over a whole sample: shift at the weighted means, domain means, counts."""
    weight = units.weight
    centre = [_centre(weight, column) for column in units.columns]
    return PassPlan(
        variables=variables,
        n_domains=n_domains,
        shift=np.array([0.0, *centre]),
        domain_means=weighted_domain_means(units, n_domains),
        stratum_psu=psu_counts(design, folds.unit_fold, folds.n_folds),
        rest_stratum=folds.rest_stratum,
        fold_stratum=folds.fold_stratum,
        sampling_fraction=design.sampling_fraction,
        poisson=design.poisson,
        lonely_psu=design.lonely_psu,
    )


def _centre(weight: np.ndarray, column: np.ndarray) -> float:
    """The weighted mean; of a constant exactly the constant, so that nothing is left of it."""
    if column.min() == column.max():
        return float(column[0])
    return float(weight @ column / weight.sum())


def make_cells(units: UnitArrays, plan: PassPlan) -> Cells:
    """Pass over labelled units once and return their moments.

    Parameters
    ----------
    units : UnitArrays
        The sample or a part of it, n units.
    plan : PassPlan
        The plan of the whole sample: cells of its parts add (``first + second``).

    Returns
    -------
    Cells
        Cost O(n), working memory that of one block of units.
    """
    k = plan.stratum_psu.shape[1]
    n_strata = len(plan.stratum_psu)
    code, pair_stratum, pair_domain = _pairs(units.stratum, units.domain, n_strata, plan.n_domains)
    cell = code
    if k > 1:
        cell = code * k
        cell += units.fold
    sums = cell_sums(cell, len(pair_stratum) * k, units, plan.shift)
    shape = (len(pair_stratum), k)
    cells = Cells(
        plan=plan,
        pair_stratum=pair_stratum,
        pair_domain=pair_domain,
        n=sums.n.reshape(shape),
        n_psu=sums.n.reshape(shape),
        total=sums.total.reshape(*shape, -1),
        gram=sums.gram.reshape(*shape, -1),
        square=sums.square.reshape(*shape, -1),
        weight_square=sums.weight_square.reshape(shape),
        fourth=fourth_moments(units, plan.domain_means),
        clusters=None if units.psu is None else _cluster_totals(units, plan),
        outcome_range=(float(units.outcome.min()), float(units.outcome.max())),
    )
    return cells if units.psu is None else with_cluster_squares(cells)


def _pairs(
    stratum: np.ndarray, domain: np.ndarray, n_strata: int, n_domains: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number the pairs of stratum and domain that occur, sorted by domain, then stratum."""
    key = domain if n_strata == 1 else domain.astype(np.int64) * n_strata + stratum
    size = n_domains * n_strata
    if size <= max(4 * len(domain), 1 << 16):
        used = np.bincount(key, minlength=size) > 0
        found = np.flatnonzero(used)
        code = np.asarray(key, dtype=np.intp) if used.all() else (np.cumsum(used) - 1)[key]
    else:
        found, code = np.unique(key, return_inverse=True)
        code = code.reshape(-1)
    return code, found % n_strata, found // n_strata


def _cluster_totals(units: UnitArrays, plan: PassPlan) -> ClusterTotals:
    assert units.psu is not None
    key = units.psu.astype(np.int64) * plan.n_domains + units.domain
    _, first, code = np.unique(key, return_index=True, return_inverse=True)
    code = code.reshape(-1)
    w = units.weight
    total = [np.bincount(code, weights=w)]
    for x, a in zip(units.columns, plan.shift[1:]):
        total.append(np.bincount(code, weights=w * (x - a)))
    return ClusterTotals(
        psu=units.psu[first],
        domain=np.asarray(units.domain[first], dtype=np.intp),
        stratum=units.stratum[first],
        fold=np.asarray(units.fold[first], dtype=np.intp),
        total=np.column_stack(total),
    )
