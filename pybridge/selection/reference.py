"""The direct estimator that the bias-corrected score refers to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pybridge.design.variance import domain_moments
from pybridge.direct.inputs import auxiliary_positions
from pybridge.direct.linear import DirectRequest, within_domain
from pybridge.direct.variances import modelled_variances
from pybridge.errors import FitError, InputError
from pybridge.selection.candidates import Candidate
from pybridge.selection.fits import Replicates, direct_request


@dataclass(frozen=True, eq=False)
class ReferenceEstimates:
    """One design-unbiased direct estimator in all replicates.

    Attributes
    ----------
    name : str
    request : DirectRequest
    whole, variance, fpc_factor : numpy.ndarray
        Shape (m,): estimate, direct variance, and that variance over what the delete-a-group
        jackknife of these folds estimates (see `jackknife_form`).
    rest : numpy.ndarray
        Shape (K, m), NaN in domains without units there.
    score : numpy.ndarray
        Shape (m, p), score coefficients on the whole sample.
    """

    name: str
    request: DirectRequest
    whole: np.ndarray
    variance: np.ndarray
    fpc_factor: np.ndarray
    rest: np.ndarray
    score: np.ndarray

    def covariance_with(self, candidate: Candidate, replicates: Replicates) -> np.ndarray:
        """Cov(R_i, z_i) with the direct input z of a candidate, shape (m,); NaN for functions."""
        if candidate.function is not None:
            return np.full(len(self.whole), np.nan)
        whole = replicates.sample.whole
        linear = replicates.linear(direct_request(candidate, replicates.population), whole)
        return within_domain(whole.form[0], self.score, linear.score[0])


@dataclass(frozen=True, eq=False)
class Reference:
    """The chosen reference, HT beside it, all that were looked at, and their sums of variances."""

    chosen: ReferenceEstimates
    horvitz_thompson: ReferenceEstimates
    looked_at: tuple[ReferenceEstimates, ...]
    variance_sums: Mapping[str, float]


def find_reference(
    reference: str, candidates: Sequence[Candidate], replicates: Replicates
) -> Reference:
    """The reference asked for, or the one of all direct estimators with the smallest variances.

    GREG and PPI as references use the auxiliary variables of the candidates that use them; where
    no candidate does, all that the population knows.
    """
    options = _options(candidates, replicates)
    form = jackknife_form(replicates)
    ht = _estimates("HT", options["HT"], replicates, form)
    if reference == "ht":
        return Reference(ht, ht, (ht,), {"HT": float(np.nansum(ht.variance))})
    wanted = {
        name: request
        for name, request in options.items()
        if reference == "auto" or request.method == reference
    }
    if not wanted:
        raise InputError(
            f"the reference {reference!r} needs an auxiliary variable",
            code="no_reference",
            field="reference",
            expected="an auxiliary variable in the population or in a candidate",
            got=reference,
        )
    found = [
        ht if name == "HT" else _estimates(name, request, replicates, form)
        for name, request in wanted.items()
    ]
    usable = np.isfinite(np.stack([item.variance for item in found])).all(axis=0)
    usable &= replicates.sample.whole.n[0] >= 2
    sums = {item.name: float(item.variance[usable].sum()) for item in found}
    if not usable.any():  # one label a domain: the design's variances over all domains
        form = replicates.sample.whole.form[0]
        sums = {
            item.name: float(np.nansum(within_domain(form, item.score, item.score)))
            for item in found
        }
    best = min(found, key=lambda item: sums[item.name])
    return Reference(best, ht, tuple(found), sums)


def _options(candidates: Sequence[Candidate], replicates: Replicates) -> dict[str, DirectRequest]:
    population = replicates.population
    options = {"HT": DirectRequest("ht"), "Hájek": DirectRequest("hajek")}
    for method, label in (("ppi", "PPI"), ("greg", "GREG")):
        used = dict.fromkeys(
            item.unit_auxiliary
            for item in candidates
            if item.function is None and item.direct == method
        )
        sets = list(used)
        if (
            not sets
            and population.auxiliary
            and (method == "greg" or len(population.auxiliary) == 1)
        ):
            sets = [population.auxiliary]
        for names in sets:
            positions = auxiliary_positions(population, names)
            name = label if len(sets) == 1 else f"{label}({', '.join(names)})"
            options[name] = DirectRequest(method, positions)
    return options


def jackknife_form(replicates: Replicates) -> np.ndarray:
    """The variance form (m, p, p) that deleting the folds one by one estimates.

    Deleting fold k from a stratum of n_h primary units moves an estimate by
    n_hk/(n_h − n_hk) times the fold's own deviation, so that (K−1)/K Σ_k (R(−k) − R)² has the
    stratum's variance without finite population correction times

        c_h = (K−1)/K Σ_k n_hk/(n_h − n_hk).

    With folds of equal size in the stratum c_h is 1. It is 1.6 with two units and K = 5, of which
    three folds leave the stratum as it is, and above 1 where folds are unequal.
    """
    sample = replicates.sample
    plan, whole = sample.cells.plan, sample.whole
    counts = np.zeros((int(plan.rest_stratum.max()) + 1, plan.stratum_psu.shape[1]))
    np.add.at(counts, plan.rest_stratum, plan.stratum_psu)
    n, k = counts.sum(axis=1, keepdims=True), counts.shape[1]
    left = n - counts
    share = np.where(left > 0, counts / np.where(left > 0, left, 1.0), np.nan).sum(axis=1)
    larger = np.nan_to_num((k - 1) / k * share, nan=1.0)
    if plan.poisson:
        return np.asarray(whole.form_with_replacement[0] * (n[:, 0] @ larger) / n.sum())
    # A sampling fraction of 1 − c_h gives every stratum the factor c_h.
    factors = replace(plan, sampling_fraction=1.0 - larger[plan.rest_stratum])
    return np.asarray(domain_moments(replace(sample.cells, plan=factors)).form[0])


def _estimates(
    name: str, request: DirectRequest, replicates: Replicates, jackknife: np.ndarray
) -> ReferenceEstimates:
    whole = replicates.sample.whole
    linear = replicates.linear(request, whole)
    score = linear.score[0]
    variance = within_domain(whole.form[0], score, score)
    without = within_domain(jackknife, score, score)
    n = whole.n[0]
    factor = np.where(without > 0, variance / np.where(without > 0, without, 1.0), 1.0)
    alone = n == 1
    if alone.any():
        variance = np.where(alone, _modelled(request, replicates, score), variance)
    return ReferenceEstimates(
        name=name,
        request=request,
        whole=np.where(n > 0, linear.estimate[0], np.nan),
        variance=np.where(n > 0, variance, np.nan),
        fpc_factor=factor,
        rest=replicates.direct(request, replicates.rest),
        score=score,
    )


def _modelled(request: DirectRequest, replicates: Replicates, score: np.ndarray) -> np.ndarray:
    """Smoothed variances, for domains whose one unit has no direct one."""
    whole, size = replicates.sample.whole, replicates.population.size
    scale = whole.total[0, :, 0] if request.method == "hajek" else size
    score_ht = replicates.linear(DirectRequest("ht"), whole).score[0]
    try:
        return modelled_variances(
            "smoothed",
            whole,
            0,
            score=score,
            score_ht=score_ht,
            scale=np.where(scale > 0, scale, np.nan),
            size=size,
        ).variance
    except FitError:
        return np.full(len(size), np.nan)
