"""REML and ML fits of the taxonomy model on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from pybridge._options import choose
from pybridge.smoothing._area_fit import standard_errors
from pybridge.smoothing._bayes_input import checked_arrays, need_variation
from pybridge.smoothing._leave_out_arrays import (
    LeftOut,
    filled,
    from_fit,
    joined,
    without_leverage,
)
from pybridge.smoothing._taxonomy_likelihood import Optimum, log_likelihoods, maximise
from pybridge.smoothing._taxonomy_moments import posterior_moments
from pybridge.smoothing._taxonomy_mse import bias_term, information, third_term
from pybridge.smoothing._taxonomy_problem import Problem
from pybridge.smoothing._taxonomy_record import TaxonomyEstimate, common_fields
from pybridge.smoothing._taxonomy_tree import build_tree

METHODS = ("REML", "ML")
_LOG_TWO_PI = float(np.log(2.0 * np.pi))


def fit_taxonomy_likelihood(
    *,
    estimate: np.ndarray,
    variance: np.ndarray,
    covariates: np.ndarray,
    levels: Sequence[np.ndarray],
    method: str = "REML",
    level: float = 0.95,
) -> TaxonomyEstimate:
    """REML or ML of the taxonomy model, its EBLUP and second-order mean squared error.

    The model of ``metafor::rma.mv`` with nested random intercepts and known sampling variances,
    maximised to the rounding of doubles in O(m) a likelihood.

    Parameters
    ----------
    estimate : (m,)
        Direct estimates z_i; NaN for a domain without labels.
    variance : (m,)
        Sampling variances d_i >= 0, finite where there is an estimate.
    covariates : (m, p)
        Covariates of every domain.
    levels : R arrays (m,)
        Codes of the groups, coarse to fine; the last one is the domain itself.
    method : {"REML", "ML"}
    level : float
        Confidence level of the normal intervals.

    References
    ----------
    Datta and Lahiri (2000), Statistica Sinica 10, 613: the mean squared error.
    """
    restricted = choose("method", method, METHODS) == "REML"
    z, d, x = checked_arrays(estimate, variance, covariates)
    problem = Problem.of(z=z, d=d, x=x, tree=build_tree(list(levels)), prior=None)
    seen = ~np.isnan(z)
    need_variation(z=z[seen], d=d[seen], x=x[seen])
    optimum = maximise(problem.data, restricted=restricted)
    return _record(problem, optimum, z, d, method=method, level=level)


def leave_out_likelihood(
    *,
    estimate: np.ndarray,
    variance: np.ndarray,
    covariates: np.ndarray,
    levels: Sequence[np.ndarray],
    method: str = "REML",
    level: float = 0.95,
) -> LeftOut:
    """Predictions of every labelled domain by the fit to the others, n fits from a warm start.

    Parameters
    ----------
    estimate, variance, covariates, levels, method, level
        As in `fit_taxonomy_likelihood`.
    """
    restricted = choose("method", method, METHODS) == "REML"
    z, d, x = checked_arrays(estimate, variance, covariates)
    tree = build_tree(list(levels))
    labelled = np.flatnonzero(~np.isnan(z))
    usable = without_leverage(x[labelled])
    whole = Problem.of(z=z, d=d, x=x, tree=tree, prior=None)
    near = maximise(whole.data, restricted=restricted).variances * whole.scale**2
    words = {"estimate": z, "variance": d, "level": level}
    found = []
    for i in labelled[usable]:
        alone = np.where(np.arange(z.size) == i, np.nan, z)
        problem = Problem.of(z=alone, d=d, x=x, tree=tree, prior=None)
        start = near / problem.scale**2
        optimum = maximise(problem.data, restricted=restricted, start=start)
        fit = _record(problem, optimum, alone, d, method=method, level=level)
        found.append(from_fit(fit, int(i), words))
    return filled(usable, joined(found), n_refitted=len(found))


def taxonomy_at(
    variances: np.ndarray,
    *,
    estimate: np.ndarray,
    variance: np.ndarray,
    covariates: np.ndarray,
    levels: Sequence[np.ndarray],
    method: str = "REML",
    level: float = 0.95,
) -> TaxonomyEstimate:
    """What `fit_taxonomy_likelihood` gives, at given variances (R,) instead of the optimum."""
    z, d, x = checked_arrays(estimate, variance, covariates)
    problem = Problem.of(z=z, d=d, x=x, tree=build_tree(list(levels)), prior=None)
    scaled = np.asarray(variances, dtype=np.float64) / problem.scale / problem.scale
    optimum = Optimum(variances=scaled, log_likelihood=float("nan"), iterations=0, converged=True)
    return _record(problem, optimum, z, d, method=method, level=level)


def _record(
    problem: Problem, optimum: Optimum, z: np.ndarray, d: np.ndarray, *, method: str, level: float
) -> TaxonomyEstimate:
    """Everything that follows from the variances."""
    found = posterior_moments(optimum.variances[None], np.ones(1), problem.data)
    fields = common_fields(problem, found, z, d)
    correction = _correction(problem, optimum, restricted=method == "REML")
    census = ~np.isnan(z) & (d == 0.0)
    fields["mse"] = np.where(census, 0.0, fields["mse"] + correction)
    half = NormalDist().inv_cdf(0.5 + level / 2.0) * standard_errors(fields["mse"])
    ordinary, restricted = _log_likelihoods(problem, optimum)
    scale = problem.scale**2
    return TaxonomyEstimate(
        method=method,
        model_variance=float(optimum.variances[-1]) * scale,
        model_variances=optimum.variances * scale,
        lower=fields["estimate"] - half,
        upper=fields["estimate"] + half,
        log_likelihood=ordinary,
        restricted_log_likelihood=restricted,
        iterations=optimum.iterations,
        status=_status(problem, optimum),
        **fields,
    )


def _correction(problem: Problem, optimum: Optimum, *, restricted: bool) -> np.ndarray:
    """2 g3, under ML minus b'grad g1, in the user's units and order (m,)."""
    data = problem.data
    spread = np.linalg.pinv(information(optimum.variances, data), hermitian=True)
    out = 2.0 * third_term(optimum.variances, data, spread)
    if not restricted:
        out = out - bias_term(optimum.variances, data, spread)
    return out[np.argsort(data.tree.order)] * problem.scale**2


def _log_likelihoods(problem: Problem, optimum: Optimum) -> tuple[float, float]:
    """Ordinary and restricted log-likelihood with their constants.

    The working covariates are orthonormal over the labelled domains, which makes log|X'X| of the
    user's covariates drop out of the restricted one.
    """
    m, p = float(problem.data.seen.sum()), problem.data.n_coefficients
    both = [
        float(log_likelihoods(optimum.variances[None], problem.data, restricted=word)[0])
        for word in (False, True)
    ]
    unit = np.log(problem.scale) + 0.5 * _LOG_TWO_PI
    return both[0] - m * unit, both[1] - (m - p) * unit


def _status(problem: Problem, optimum: Optimum) -> str:
    m, p = int(problem.data.seen.sum()), problem.data.n_coefficients
    if not optimum.converged:
        return "not_converged"
    if m <= p + 5:
        return "weak_identification"
    return "boundary" if (optimum.variances == 0.0).any() else "converged"
