"""The Bayesian taxonomy model on arrays: nested effects, deterministic quadrature or Gibbs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from pybridge._record import Record
from pybridge.errors import InputError
from pybridge.smoothing._bayes_input import checked_arrays
from pybridge.smoothing._taxonomy_lattice import Lattice, integrate
from pybridge.smoothing._taxonomy_moments import Moments, posterior_moments
from pybridge.smoothing._taxonomy_prior import TaxonomyPrior
from pybridge.smoothing._taxonomy_problem import Problem
from pybridge.smoothing._taxonomy_quantiles import mixture_intervals
from pybridge.smoothing._taxonomy_tree import build_tree

_DEEPEST_LATTICE = 3
# Nodes lighter than this share of the heaviest are left out of moments and of quantiles.
_LIGHTEST = 1e-10
_LIGHTEST_QUANTILE = 1e-9
_LIGHTEST_OF_MANY = 1e-7
_MANY_COMPONENTS = 1 << 23


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
    n_nodes : int
        Nodes of the quadrature, or kept draws of the sampler.
    accuracy : float
        Largest change of the standardised moments when the quadrature's step was halved.
    status : str
        ``converged``, ``weak_identification`` (m <= p + 5) or ``not_converged``.
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
    n_nodes: int
    accuracy: float
    status: str


def fit_taxonomy_bayes(
    *,
    estimate: np.ndarray,
    variance: np.ndarray,
    covariates: np.ndarray,
    levels: Sequence[np.ndarray],
    prior: TaxonomyPrior | None = None,
    level: float = 0.95,
    quantiles: bool = True,
) -> TaxonomyPosterior:
    """Posterior of theta_i = x_i'beta + sum over levels of v, from z_i ~ N(theta_i, d_i).

    Independent effects v ~ N(0, s_r) for the groups of level r, a flat prior on beta (the limit
    of a diffuse normal one) and inverse-gamma priors on the s_r. Lattice quadrature over the
    variances; given them, nested Gaussian algebra in O(m).

    Parameters
    ----------
    estimate : (m,)
        Direct estimates z_i; NaN for a domain without labels.
    variance : (m,)
        Sampling variances d_i >= 0, finite where there is an estimate.
    covariates : (m, p)
        Covariates of every domain, with the column of ones if there is to be an intercept.
    levels : R arrays (m,)
        Codes of the groups, coarse to fine; the last one is the domain itself.
    prior : TaxonomyPrior, optional
        Default: inverse-gamma(1, 0.1 median d_i) at every level.
    level : float
        Mass of the intervals.
    quantiles : bool
        False leaves the intervals out, which is faster.

    Raises
    ------
    InputError
        ``too_few_domains`` (m <= p + 2 with labels), ``collinear``, ``not_nested``,
        ``duplicate_domain``, ``too_many_levels`` (R > 3), ``bad_prior``.
    """
    z, d, x = checked_arrays(estimate, variance, covariates)
    tree = build_tree(list(levels))
    if tree.depth > _DEEPEST_LATTICE:
        raise InputError(
            f"{tree.depth} levels are too many for quadrature",
            code="too_many_levels",
            field="levels",
            expected=f"at most {_DEEPEST_LATTICE} levels",
            got=tree.depth,
            hint="Use the Gibbs sampler (method='gibbs') for more levels.",
        )
    problem = Problem.of(z=z, d=d, x=x, tree=tree, prior=prior)
    lattice = integrate(
        problem.log_density,
        low=problem.low,
        high=problem.high,
        mean_exists=problem.mean_exists,
    )
    return _posterior(problem, lattice, z, d, level=level, quantiles=quantiles)


def _posterior(
    problem: Problem,
    lattice: Lattice,
    z: np.ndarray,
    d: np.ndarray,
    *,
    level: float,
    quantiles: bool,
) -> TaxonomyPosterior:
    """Moments and intervals over the nodes, back in the user's units and order."""
    data = problem.data
    variances, weight = _heavy(lattice, _LIGHTEST)
    found = posterior_moments(variances, weight, data)
    lower = upper = np.full(z.size, np.nan)
    if quantiles:
        if weight.size * z.size > _MANY_COMPONENTS:
            # Half the nodes are enough for quantiles to about 1e-5 of a standard deviation.
            picked = _heavy(lattice, _LIGHTEST_OF_MANY, sparse=True)
        else:
            picked = _heavy(lattice, _LIGHTEST_QUANTILE)
        lower, upper = mixture_intervals(
            *picked, data, mean=found.mean, variance=found.variance, level=level
        )
    return assemble(
        problem,
        found,
        lattice.median,
        lattice.mean,
        z,
        d,
        lower=lower,
        upper=upper,
        n_nodes=weight.size,
        accuracy=lattice.error,
    )


def _heavy(
    lattice: Lattice, lightest: float, *, sparse: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Variances (K, R) and weights (K,) of the nodes that are not light beside the heaviest."""
    pick = lattice.weight > lightest * lattice.weight.max()
    if sparse:
        pick &= lattice.sparse
    weight = lattice.weight[pick]
    return np.exp(lattice.log_variance[pick]), weight / weight.sum()


def assemble(
    problem: Problem,
    found: Moments,
    median: np.ndarray,
    mean: np.ndarray,
    z: np.ndarray,
    d: np.ndarray,
    *,
    lower: np.ndarray,
    upper: np.ndarray,
    n_nodes: int,
    accuracy: float,
) -> TaxonomyPosterior:
    """The record, from working units and tree order."""
    tree, scale = problem.data.tree, problem.scale
    back = np.argsort(tree.order)
    seen = ~np.isnan(z)
    census = seen & (d == 0.0)
    m, p = int(seen.sum()), problem.data.n_coefficients
    beta = found.coefficients
    mse = _unknown_variances(problem, found.variance)[back] * scale * scale
    effects = tuple(
        LevelEffects(codes=label, mean=scale * centre, standard_error=scale * np.sqrt(spread))
        for label, (centre, spread) in zip(tree.labels, found.effects)
    )
    return TaxonomyPosterior(
        model_variance=float(median[-1]) * scale * scale,
        model_variances=median * scale * scale,
        model_variance_means=mean * scale * scale,
        coefficients=problem.offset + scale * (problem.turn @ beta),
        coefficient_covariance=problem.turn @ found.covariance @ problem.turn.T * scale**2,
        estimate=np.where(census, z, problem.regression + scale * found.mean[back]),
        mse=np.where(census, 0.0, mse),
        shrinkage=found.shrinkage[back],
        synthetic=problem.regression + scale * found.synthetic[back],
        derivative=found.ratio[back],
        lower=np.where(census, z, problem.regression + scale * lower[back]),
        upper=np.where(census, z, problem.regression + scale * upper[back]),
        effects=effects,
        prior=problem.prior,
        n_nodes=n_nodes,
        accuracy=accuracy,
        status="weak_identification" if m <= p + 5 else "converged",
    )


def _unknown_variances(problem: Problem, variance: np.ndarray) -> np.ndarray:
    """NaN where a domain hangs on a group without labels whose variance has no finite mean."""
    data, out = problem.data, variance.copy()
    for level, exists in enumerate(problem.mean_exists):
        if not exists:
            place = data.tree.climb(level)
            labelled = np.bincount(place, weights=data.seen) > 0.0
            out[~labelled[place]] = np.nan
    return out
