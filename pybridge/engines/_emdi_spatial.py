"""The exact optimum of the spatial model's likelihood, which emdi approaches by Fisher scoring.

u = ρ W u + e, e ~ N(0, σ²): the effects have the covariance σ² [(I − ρW')(I − ρW)]⁻¹. For each ρ
one eigendecomposition makes the covariance of the estimates diagonal, so that the best σ² is a
problem of one dimension; ρ is then looked for on a grid and refined.

References
----------
Pratesi and Salvati (2008), Statistical Methods and Applications 17, 113.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from pybridge.engines._emdi_exact import Point, Sampled, evaluate, optimum, sampled

_EDGE = 0.999
_NODES = 25


@dataclasses.dataclass(frozen=True)
class SpatialProblem:
    """The sampled domains, and their proximity.

    Attributes
    ----------
    estimate, variance : numpy.ndarray
        Shape (m,), variances positive.
    covariates : numpy.ndarray
        Shape (m, p).
    proximity : numpy.ndarray
        Shape (m, m), W.
    """

    estimate: np.ndarray
    variance: np.ndarray
    covariates: np.ndarray
    proximity: np.ndarray


@dataclasses.dataclass(frozen=True)
class SpatialPoint:
    """``correlation`` ρ, and ``point``: the variance that goes with it, and the likelihoods."""

    correlation: float
    point: Point


def spatial_at(
    problem: SpatialProblem, correlation: float, model_variance: float, method: str
) -> SpatialPoint:
    """The likelihoods at given parameters."""
    point = evaluate(_diagonal(problem, correlation), model_variance, method)[0]
    return SpatialPoint(correlation, _in_units(problem, point))


def spatial_optimum(problem: SpatialProblem, method: str) -> SpatialPoint:
    """The global maximum over ρ in (−1, 1) and σ² ≥ 0.

    Parameters
    ----------
    problem : SpatialProblem
    method : {"reml", "ml"}
    """
    from scipy.optimize import minimize_scalar

    def best(correlation: float) -> Point:
        return optimum(_diagonal(problem, correlation), method)

    nodes = np.linspace(-_EDGE, _EDGE, _NODES)
    heights = [best(node).objective for node in nodes]
    k = int(np.argmax(heights))
    low, high = nodes[max(0, k - 1)], nodes[min(_NODES - 1, k + 1)]
    found = minimize_scalar(
        lambda correlation: -best(correlation).objective,
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-9},
    )
    correlation = float(found.x) if -found.fun >= heights[k] else float(nodes[k])
    return SpatialPoint(correlation, _in_units(problem, best(correlation)))


def _diagonal(problem: SpatialProblem, correlation: float) -> Sampled:
    """The problem at one ρ in coordinates where covariances are diagonal, sampling variances 1."""
    root = 1.0 / np.sqrt(problem.variance)
    inner = np.eye(len(root)) - correlation * problem.proximity
    half = root[:, None] * np.linalg.inv(inner)
    values, vectors = np.linalg.eigh(half @ half.T)
    turned = vectors.T * root
    return sampled(
        estimate=turned @ problem.estimate,
        variance=np.ones(len(root)),
        covariates=turned @ problem.covariates,
        scale=np.maximum(values, 1e-12 * values[-1]),
    )


def _in_units(problem: SpatialProblem, point: Point) -> Point:
    """Log-likelihoods of the estimates themselves, not of the turned ones."""
    x = problem.covariates
    shift = -0.5 * float(np.log(problem.variance).sum())
    gram = np.linalg.slogdet(x.T @ x)[1] - np.linalg.slogdet(x.T @ (x.T / problem.variance).T)[1]
    change = {"ordinary": shift, "restricted": shift + 0.5 * float(gram)}
    restricted = point.restricted_log_likelihood + change["restricted"]
    ordinary = point.log_likelihood + change["ordinary"]
    moved = restricted if point.objective == point.restricted_log_likelihood else ordinary
    return Point(point.model_variance, ordinary, restricted, moved)
