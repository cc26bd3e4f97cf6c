"""The Bayesian taxonomy model on arrays: nested effects, deterministic quadrature or Gibbs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pybridge._options import choose
from pybridge.errors import InputError
from pybridge.smoothing._bayes_input import checked_arrays
from pybridge.smoothing._taxonomy_gibbs import Draws, sample
from pybridge.smoothing._taxonomy_lattice import Lattice, integrate
from pybridge.smoothing._taxonomy_means import means_alone, posterior_means
from pybridge.smoothing._taxonomy_moments import Moments, posterior_moments
from pybridge.smoothing._taxonomy_prior import TaxonomyPrior
from pybridge.smoothing._taxonomy_problem import Problem
from pybridge.smoothing._taxonomy_quantiles import mixture_intervals
from pybridge.smoothing._taxonomy_record import TaxonomyPosterior, common_fields
from pybridge.smoothing._taxonomy_tree import build_tree

INTEGRATIONS = ("auto", "quadrature", "gibbs")

_DEEPEST_LATTICE = 3
# Nodes lighter than this share of the heaviest are left out of moments and of quantiles.
_LIGHTEST = 1e-10
_LIGHTEST_QUANTILE = 1e-9
_LIGHTEST_OF_MANY = 1e-7
_MANY_COMPONENTS = 1 << 23
_WORST_R_HAT = 1.05
_SMALLEST_SIZE = 200.0


def fit_taxonomy_bayes(
    *,
    estimate: np.ndarray,
    variance: np.ndarray,
    covariates: np.ndarray,
    levels: Sequence[np.ndarray],
    prior: TaxonomyPrior | None = None,
    level: float = 0.95,
    quantiles: bool = True,
    integration: str = "auto",
    seed: int | None = None,
    n_draws: int = 1000,
    start: np.ndarray | None = None,
    means_only: bool = False,
) -> TaxonomyPosterior:
    """Posterior of theta_i = x_i'beta + sum over levels of v, from z_i ~ N(theta_i, d_i).

    Independent effects v ~ N(0, s_r) for the groups of level r, a flat prior on beta (the limit
    of a diffuse normal one) and inverse-gamma priors on the s_r. Lattice quadrature over the
    variances up to three levels, a Gibbs sampler beyond; given the variances, nested Gaussian
    algebra in O(m).

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
        Default: inverse-gamma(1, 0.1 median d_i), at the domain inverse-gamma(0.1, 0.1 median d_i).
    level : float
        Mass of the intervals.
    quantiles : bool
        False leaves the intervals out, which is faster.
    integration : {"auto", "quadrature", "gibbs"}
        ``auto``: quadrature for R <= 3.
    seed : int, optional
        Of the sampler.
    n_draws : int
        Draws of the sampler a chain (of eight), after 300 that are thrown away.
    start : (R,), optional
        Variances near the posterior mode, as a fit to most of the same data has them: the mode is
        then looked for from there. The answer differs by the quadrature's own error.
    means_only : bool
        The posterior means of the domains alone, NaN elsewhere: a third of the time. The sampler
        takes no notice.

    Raises
    ------
    InputError
        ``too_few_domains`` (m <= p + 2 with labels), ``collinear_covariates``,
        ``taxonomy_not_nested``, ``duplicate_domain``, ``too_many_levels`` (quadrature asked for
        R > 3), ``bad_prior``.
    """
    z, d, x = checked_arrays(estimate, variance, covariates)
    tree = build_tree(list(levels))
    deep = tree.depth > _DEEPEST_LATTICE
    if choose("integration", integration, INTEGRATIONS) == "auto":
        integration = "gibbs" if deep else "quadrature"
    if deep and integration == "quadrature":
        raise InputError(
            f"{tree.depth} levels are too many for quadrature",
            code="too_many_levels",
            field="integration",
            expected=f"at most {_DEEPEST_LATTICE} levels",
            got=tree.depth,
            hint="integration='gibbs' takes any number of levels.",
        )
    problem = Problem.of(z=z, d=d, x=x, tree=tree, prior=prior)
    if integration == "gibbs":
        return _by_sampling(
            problem, z, d, level=level, quantiles=quantiles, seed=seed, n_draws=n_draws
        )
    words: dict[str, Any] = {"quantiles": quantiles, "start": start, "means_only": means_only}
    return _by_quadrature(problem, z, d, level=level, **words)


def _by_quadrature(
    problem: Problem,
    z: np.ndarray,
    d: np.ndarray,
    *,
    level: float,
    quantiles: bool,
    start: np.ndarray | None,
    means_only: bool,
) -> TaxonomyPosterior:
    """Moments and intervals over the lattice's nodes."""
    lattice = integrate(
        problem.log_density,
        low=problem.low,
        high=problem.high,
        mean_exists=problem.mean_exists,
        start=None if start is None else np.log(start) - 2.0 * np.log(problem.scale),
        medians=not means_only,
    )
    variances, weight = _heavy(lattice, _LIGHTEST)
    if means_only:
        found = means_alone(posterior_means(variances, weight, problem.data), problem.data)
    else:
        found = posterior_moments(variances, weight, problem.data)
    ends = None
    if quantiles and not means_only:
        if weight.size * z.size > _MANY_COMPONENTS:
            # Half the nodes are enough for quantiles to about 1e-5 of a standard deviation.
            picked = _heavy(lattice, _LIGHTEST_OF_MANY, sparse=True)
        else:
            picked = _heavy(lattice, _LIGHTEST_QUANTILE)
        ends = _intervals(*picked, problem, found, level)
    none = np.full(problem.shape.size + problem.data.n_coefficients, np.nan)
    return _record(
        problem,
        found,
        ends,
        z,
        d,
        medians=lattice.median,
        means=lattice.mean,
        integration="quadrature",
        n_nodes=weight.size,
        accuracy=lattice.error,
        checks=(none, none),
    )


def sampled(
    problem: Problem, *, seed: int | None, n_draws: int
) -> tuple[Draws, np.ndarray, np.ndarray]:
    """The sampler's draws, as variances (K, R) with equal weights (K,)."""
    draws = sample(
        problem.data,
        shape=problem.shape,
        rate=problem.rate,
        start=np.exp(0.5 * (problem.low + problem.high)),
        rng=np.random.default_rng(seed),
        n_draws=n_draws,
    )
    variances = draws.variances.reshape(-1, problem.shape.size)
    return draws, variances, np.full(variances.shape[0], 1.0 / variances.shape[0])


def _by_sampling(
    problem: Problem,
    z: np.ndarray,
    d: np.ndarray,
    *,
    level: float,
    quantiles: bool,
    seed: int | None,
    n_draws: int,
) -> TaxonomyPosterior:
    """Moments and intervals over the variances that the sampler kept, with equal weights."""
    draws, variances, weight = sampled(problem, seed=seed, n_draws=n_draws)
    found = posterior_moments(variances, weight, problem.data)
    ends = _intervals(variances, weight, problem, found, level) if quantiles else None
    return _record(
        problem,
        found,
        ends,
        z,
        d,
        medians=np.median(variances, axis=0),
        means=np.where(problem.mean_exists, variances.mean(axis=0), np.nan),
        integration="gibbs",
        n_nodes=weight.size,
        accuracy=float("nan"),
        checks=(draws.r_hat, draws.effective_size),
    )


def _intervals(
    variances: np.ndarray, weight: np.ndarray, problem: Problem, found: Moments, level: float
) -> tuple[np.ndarray, np.ndarray]:
    return mixture_intervals(
        variances, weight, problem.data, mean=found.mean, variance=found.variance, level=level
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


def _record(
    problem: Problem,
    found: Moments,
    ends: tuple[np.ndarray, np.ndarray] | None,
    z: np.ndarray,
    d: np.ndarray,
    *,
    medians: np.ndarray,
    means: np.ndarray,
    integration: str,
    n_nodes: int,
    accuracy: float,
    checks: tuple[np.ndarray, np.ndarray],
) -> TaxonomyPosterior:
    """The record, in the user's units and order."""
    scale = problem.scale
    back = np.argsort(problem.data.tree.order)
    fields = common_fields(problem, found, z, d)
    lower = upper = np.full(z.size, np.nan)
    if ends is not None:
        census = ~np.isnan(z) & (d == 0.0)
        lower, upper = (np.where(census, z, problem.regression + scale * end[back]) for end in ends)
    fields["mse"] = np.where(_without_variance(problem)[back], np.nan, fields["mse"])
    return TaxonomyPosterior(
        model_variance=float(medians[-1]) * scale * scale,
        model_variances=medians * scale * scale,
        model_variance_means=means * scale * scale,
        lower=lower,
        upper=upper,
        prior=problem.prior,
        integration=integration,
        n_nodes=n_nodes,
        accuracy=accuracy,
        r_hat=checks[0],
        effective_size=checks[1],
        status=_status(problem, *checks),
        **fields,
    )


def _status(problem: Problem, r_hat: np.ndarray, effective_size: np.ndarray) -> str:
    m, p = int(problem.data.seen.sum()), problem.data.n_coefficients
    if np.any(r_hat > _WORST_R_HAT) or np.any(effective_size < _SMALLEST_SIZE):
        return "not_converged"
    return "weak_identification" if m <= p + 5 else "converged"


def _without_variance(problem: Problem) -> np.ndarray:
    """Domains (m,) that hang on a group without labels whose variance has no finite mean."""
    data = problem.data
    out = np.zeros(data.d.size, dtype=bool)
    for level, exists in enumerate(problem.mean_exists):
        if not exists:
            place = data.tree.climb(level)
            labelled = np.bincount(place, weights=data.seen) > 0.0
            out |= ~labelled[place]
    return out
