"""Array records of the taxonomy model: the posterior, and the likelihood fit."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from pybridge._record import Record
from pybridge.smoothing._taxonomy_moments import Moments
from pybridge.smoothing._taxonomy_prior import TaxonomyPrior
from pybridge.smoothing._taxonomy_problem import Problem


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LevelEffects(Record):
    """Posterior of one level's effects.

    ``codes`` (n,) of the groups, ``mean`` and ``standard_error`` (n,) of their effects.
    """

    codes: np.ndarray
    mean: np.ndarray
    standard_error: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class TaxonomyPosterior(Record):
    """Posterior of the taxonomy model; fields as in ``AreaPosterior`` where the names agree.

    Attributes
    ----------
    model_variance : float
        Posterior median of the leaf level's variance.
    model_variances, model_variance_means : (R,)
        Posterior medians and means of the levels' variances, coarse to fine; a mean is NaN where
        it does not exist.
    coefficients, coefficient_covariance : (p,), (p, p)
        Posterior means and covariance of the coefficients.
    estimate, mse : (m,)
        Posterior means and variances of the domain means.
    shrinkage : (m,)
        Posterior mean of s_R / (s_R + d_i): the weight of the direct estimate against the
        regression with the coarser effects.
    synthetic : (m,)
        Posterior mean of x_i'beta plus the coarser levels' effects.
    derivative : (m,)
        d estimate_i / d direct estimate_i = posterior variance / d_i.
    lower, upper : (m,)
        Quantiles of the exact mixture; NaN where not asked for.
    effects : tuple of R LevelEffects
        Effects of the groups of every level.
    prior : TaxonomyPrior
        The prior that was used.
    integration : str
        ``quadrature`` or ``gibbs``, or the name of the R package.
    n_nodes : int
        Nodes of the quadrature, or kept draws of the sampler.
    accuracy : float
        Quadrature: difference of the standardised moments to those of a finer lattice; NaN for
        a sampler.
    r_hat, effective_size : (R + p,)
        Sampler: split R-hat and effective sample size of the log variances, then of the
        coefficients; NaN for quadrature.
    status : str
        ``converged``, ``weak_identification`` (m <= p + 5) or ``not_converged`` (R-hat above
        1.05 or an effective size below 200).
    """

    model_variance: float
    model_variances: np.ndarray
    model_variance_means: np.ndarray
    coefficients: np.ndarray
    coefficient_covariance: np.ndarray
    estimate: np.ndarray
    mse: np.ndarray
    shrinkage: np.ndarray
    synthetic: np.ndarray
    derivative: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    effects: tuple[LevelEffects, ...]
    prior: TaxonomyPrior
    integration: str
    n_nodes: int
    accuracy: float
    r_hat: np.ndarray
    effective_size: np.ndarray
    status: str


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class TaxonomyEstimate(Record):
    """A REML or ML fit of the taxonomy model; fields as in ``TaxonomyPosterior`` by their names.

    Attributes
    ----------
    method : str
        ``REML`` or ``ML``.
    estimate, mse : (m,)
        EBLUP, and its second-order mean squared error.
    derivative : (m,)
        d estimate_i / d direct estimate_i at fixed variances; 0 without labels.
    effects : tuple of R LevelEffects
        Predicted effects, with standard errors at fixed variances.
    log_likelihood, restricted_log_likelihood : float
        Both at the variances found; the restricted one holds +1/2 log|X'X|.
    iterations : int
        Newton steps.
    status : str
        ``converged``, ``boundary`` (a variance is 0), ``weak_identification`` or
        ``not_converged``.
    """

    method: str
    model_variance: float
    model_variances: np.ndarray
    coefficients: np.ndarray
    coefficient_covariance: np.ndarray
    estimate: np.ndarray
    mse: np.ndarray
    shrinkage: np.ndarray
    synthetic: np.ndarray
    derivative: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    effects: tuple[LevelEffects, ...]
    log_likelihood: float
    restricted_log_likelihood: float
    iterations: int
    status: str


def common_fields(problem: Problem, found: Moments, z: np.ndarray, d: np.ndarray) -> dict[str, Any]:
    """The fields that both records share, in the user's units and order; mse not corrected."""
    tree, scale = problem.data.tree, problem.scale
    back = np.argsort(tree.order)
    census = ~np.isnan(z) & (d == 0.0)
    effects = tuple(
        LevelEffects(codes=label, mean=scale * centre, standard_error=scale * np.sqrt(spread))
        for label, (centre, spread) in zip(tree.labels, found.effects)
    )
    return {
        "coefficients": problem.offset + scale * (problem.turn @ found.coefficients),
        "coefficient_covariance": problem.turn @ found.covariance @ problem.turn.T * scale**2,
        "estimate": np.where(census, z, problem.regression + scale * found.mean[back]),
        "mse": np.where(census, 0.0, found.variance[back] * scale * scale),
        "shrinkage": found.shrinkage[back],
        "synthetic": problem.regression + scale * found.synthetic[back],
        "derivative": found.ratio[back],
        "effects": effects,
    }
