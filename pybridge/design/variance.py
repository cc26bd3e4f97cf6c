"""The one variance engine: ultimate clusters in strata, with or without replacement, or Poisson.

A direct estimate of domain i is linear in scores ``w c_i'u`` of its units, u = (1, y, f), so its
variance and its covariance with every other direct estimate of the domain are ``c' V_i d`` with
one p × p form V_i per domain. The engine computes V_i; estimators bring their c_i.

    V_i = Σ_h a_h [ Σ_psu t t' − δ_h (Σ t)(Σ t)' / n_h ],   a_h = (1 − n_h/N_h) n_h/(n_h − 1)

where t are a primary unit's totals Σ w u over the domain's units (0 for primary units of the
stratum without any: domains are indicators on the whole sample). Source: the linearised variance
of R's ``survey::svyrecvar`` at the first stage; Poisson: Σ (1 − π) w² u u'.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pybridge._record import Record
from pybridge.design.cells import Cells, unpack
from pybridge.design.within_tails import TailMoments, tail_moments
from pybridge.errors import InputError

# A difference of sums that is this small beside them is 0.
ROUNDING = 1e-13


@dataclass(frozen=True, eq=False, repr=False)
class DomainMoments(Record):
    """Moments and variance forms of every domain, for R replicates of the sample.

    A replicate is the whole sample, the sample without a fold, or a fold, each with its weights
    rescaled to the population.

    Attributes
    ----------
    n, n_psu, n_strata : numpy.ndarray
        Shape (R, m): units, primary units with units in the domain, strata with units in it.
    total : numpy.ndarray
        Shape (R, m, p), Σ w u.
    gram : numpy.ndarray
        Shape (R, m, p, p), Σ w u u'.
    weight_square : numpy.ndarray
        Shape (R, m), Σ w².
    form : numpy.ndarray
        Shape (R, m, p, p), V_i.
    form_with_replacement : numpy.ndarray
        Shape (R, m, p, p), V_i without the finite population correction.
    shift : numpy.ndarray
        Shape (p,), of the variables u.
    fourth : numpy.ndarray
        Shape (1 + S, 1 + S), pooled fourth moments of the whole sample, as in `Cells`.
    tails : TailMoments
        How heavy the tails of a residual are within domains, of the whole sample.
    """

    n: np.ndarray
    n_psu: np.ndarray
    n_strata: np.ndarray
    total: np.ndarray
    gram: np.ndarray
    weight_square: np.ndarray
    form: np.ndarray
    form_with_replacement: np.ndarray
    shift: np.ndarray
    fourth: np.ndarray
    tails: TailMoments

    @property
    def n_replicates(self) -> int:
        """R."""
        return int(self.n.shape[0])


def domain_moments(cells: Cells, replicates: str = "whole") -> DomainMoments:
    """Moments of every domain and its variance form.

    Parameters
    ----------
    cells : Cells
        From the pass over the units.
    replicates : {"whole", "rest", "fold"}
        The whole sample (R = 1), the sample without each fold, or each fold alone (R = K).
        The latter two rescale weights by realised counts of primary units, w n_h/(n_h − n_hk) and
        w n_h/n_hk, inside the folds' ``rest_stratum`` and ``fold_stratum``, which are the strata
        of their variances too.
    """
    plan = cells.plan
    if replicates == "whole":
        stratum = np.arange(len(plan.stratum_psu))
        include = np.ones((1, cells.n_folds), dtype=bool)
    else:
        stratum = plan.fold_stratum if replicates == "fold" else plan.rest_stratum
        include = np.eye(cells.n_folds, dtype=bool)
        include = include if replicates == "fold" else ~include
    counts = _sum_by(plan.stratum_psu.astype(np.float64), stratum)
    kept = include.astype(np.float64) @ counts.T
    factor = (
        include[:, None, :] * (counts.sum(axis=1) / np.where(kept > 0, kept, np.inf))[..., None]
    )
    rows = _StratumRows.of(cells, stratum)
    weights = _stratum_weights(cells, stratum, counts, kept, replicates == "whole")
    return _moments(cells, rows, factor, include, weights)


def _sum_by(values: np.ndarray, code: np.ndarray) -> np.ndarray:
    out = np.zeros((int(code.max()) + 1,) + values.shape[1:])
    np.add.at(out, code, values)
    return out


@dataclass(frozen=True)
class _StratumRows:
    """The pairs of cells, with the strata renumbered: one row a (stratum, domain), by domain."""

    stratum: np.ndarray
    domain: np.ndarray
    row_of_pair: np.ndarray

    @classmethod
    def of(cls, cells: Cells, stratum: np.ndarray) -> _StratumRows:
        n_strata = int(stratum.max()) + 1
        key = cells.pair_domain.astype(np.int64) * n_strata + stratum[cells.pair_stratum]
        found, row = np.unique(key, return_inverse=True)
        return cls(found % n_strata, found // n_strata, row.reshape(-1))


@dataclass(frozen=True)
class _StratumWeights:
    """What a stratum's squares and products of totals count, each (R, H)."""

    square: np.ndarray
    product: np.ndarray
    square_with_replacement: np.ndarray
    product_with_replacement: np.ndarray


def _stratum_weights(
    cells: Cells, stratum: np.ndarray, counts: np.ndarray, kept: np.ndarray, whole: bool
) -> _StratumWeights:
    plan = cells.plan
    per_stratum = plan.stratum_psu.sum(axis=1).astype(np.float64)
    with np.errstate(divide="ignore"):
        population = _sum_by(per_stratum / plan.sampling_fraction, stratum)
    keep = 1.0 - kept / population
    rule = plan.lonely_psu if whole and not plan.poisson else "adjust"
    corrected = stratum_factors(n_psu=kept, keep=keep, lonely_psu=rule)
    without = stratum_factors(n_psu=kept, keep=np.ones_like(keep), lonely_psu=rule)
    return _StratumWeights(*corrected, *without)


def stratum_factors(
    *, n_psu: np.ndarray, keep: np.ndarray, lonely_psu: str
) -> tuple[np.ndarray, np.ndarray]:
    """Factors of Σ t t' and of (Σ t)(Σ t)' of every stratum, as R's ``survey`` has them.

    Parameters
    ----------
    n_psu, keep : numpy.ndarray
        Shape (..., H): primary units in the sample, and 1 − n_h/N_h.
    lonely_psu : str
        For strata with one primary unit: "adjust" does not centre, "certainty" and "remove" count
        nothing, "average" gives them the mean of the other strata.
    """
    several = n_psu > 1
    alone = n_psu == 1
    square = np.where(several, keep * n_psu / np.where(several, n_psu - 1, 1.0), 0.0)
    product = square / np.where(several, n_psu, 1.0)
    if lonely_psu == "adjust":
        square = np.where(alone, keep, square)
    if lonely_psu == "average":
        open_ = alone & (keep > 0)
        present = (n_psu > 0).sum(axis=-1, keepdims=True)
        known = present - open_.sum(axis=-1, keepdims=True)
        if (known == 0).any():
            raise InputError(
                "every stratum has one primary unit, so there is nothing to average",
                code="lonely_psu",
                field="lonely_psu",
                expected="a stratum with two primary units, or another rule",
                got="average",
            )
        square, product = square * (present / known), product * (present / known)
    return square, product


def _moments(
    cells: Cells,
    rows: _StratumRows,
    factor: np.ndarray,
    include: np.ndarray,
    weights: _StratumWeights,
) -> DomainMoments:
    p, m = cells.n_variables, cells.plan.n_domains
    n_rows, replicates = len(rows.domain), len(include)
    by_row = factor[:, rows.stratum, :]
    shape = (replicates, m)

    def folded(values: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Sum over pairs of a row, then over folds with the replicate's factor: (R, rows, ...)."""
        grouped = values
        if n_rows != len(values):
            grouped = np.zeros((n_rows,) + values.shape[1:])
            np.add.at(grouped, rows.row_of_pair, values)
        return np.einsum("rak,ak...->ra...", scale, grouped)

    def to_domain(values: np.ndarray) -> np.ndarray:
        """Sum over the strata of a domain; domains without units get 0."""
        out = np.zeros((replicates, m) + values.shape[2:])
        starts = np.flatnonzero(np.r_[True, np.diff(rows.domain) > 0])
        out[:, rows.domain[starts]] = np.add.reduceat(values, starts, axis=1)
        return out

    plain = np.broadcast_to(include[:, None, :].astype(np.float64), by_row.shape)
    n = folded(cells.n, plain)
    total = folded(cells.total, by_row)
    square = unpack(folded(cells.square, by_row**2), p)
    gram = unpack(folded(cells.gram, by_row), p)

    def form(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        wide = a[:, rows.stratum, None, None] * square
        outer = total[..., :, None] * total[..., None, :]
        outer *= b[:, rows.stratum, None, None]
        # Equal weights in a domain that is a stratum: what rounding leaves of Σ w² − (Σ w)²/n would
        # be multiplied by the square of the outcome's level.
        nothing = np.abs(wide - outer) <= ROUNDING * (np.abs(wide) + np.abs(outer))
        return to_domain(np.where(nothing, 0.0, wide - outer))

    if cells.plan.poisson:
        corrected, without = to_domain(square - gram), to_domain(square)
    else:
        corrected = form(weights.square, weights.product)
        without = form(weights.square_with_replacement, weights.product_with_replacement)
    return DomainMoments(
        n=to_domain(n),
        n_psu=to_domain(folded(cells.n_psu, plain)),
        n_strata=to_domain((n > 0).astype(np.float64)),
        total=to_domain(total).reshape(*shape, p),
        gram=to_domain(gram),
        weight_square=to_domain(folded(cells.weight_square, by_row**2)),
        form=corrected,
        form_with_replacement=without,
        shift=cells.plan.shift,
        fourth=cells.fourth,
        tails=tail_moments(cells),
    )
