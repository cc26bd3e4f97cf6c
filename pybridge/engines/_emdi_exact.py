"""The exact optimum of the likelihoods that emdi maximises with R's ``optimize``.

emdi stops at an absolute change of 1.2e-4 of the model variance, and evaluates two of its six
objectives without the logarithm. Here the root of each objective's score is bracketed on a grid of
the logarithm of the variance and found to machine precision; 0 is a candidate like every root.

References
----------
Li and Lahiri (2010), J. Multivariate Analysis 101, 882; Yoshimori and Lahiri (2014),
J. Multivariate Analysis 124, 281; Datta and Lahiri (2000), Statistica Sinica 10, 613.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

RESTRICTED = ("reml", "amrl", "amrl_yl")
LIKELIHOODS = ("reml", "ml", "amrl", "ampl", "amrl_yl", "ampl_yl")

_NODES_PER_UNIT = 4.0  # of log variance
_WIDEN = 40


@dataclass(frozen=True)
class Sampled:
    """The sampled domains of one problem.

    Attributes
    ----------
    residual : numpy.ndarray
        Shape (m,), the estimates less their least squares fit.
    variance : numpy.ndarray
        Shape (m,), d.
    basis : numpy.ndarray
        Shape (m, p), orthonormal columns that span the covariates.
    scale : numpy.ndarray
        Shape (m,): the effects' variances are ``model variance × scale``.
    """

    residual: np.ndarray
    variance: np.ndarray
    basis: np.ndarray
    scale: np.ndarray


@dataclass(frozen=True)
class Point:
    """One model variance, with its likelihoods.

    Attributes
    ----------
    model_variance : float
    log_likelihood : float
    restricted_log_likelihood : float
        With +½ log|X'X|, so that it does not depend on the coding of the covariates.
    objective : float
        What the method maximises, up to that constant.
    """

    model_variance: float
    log_likelihood: float
    restricted_log_likelihood: float
    objective: float


def sampled(
    *,
    estimate: np.ndarray,
    variance: np.ndarray,
    covariates: np.ndarray,
    scale: np.ndarray | None = None,
) -> Sampled:
    """The problem in an orthonormal basis.

    Parameters
    ----------
    estimate, variance : numpy.ndarray
        Shape (m,), without missing values.
    covariates : numpy.ndarray
        Shape (m, p), of full rank.
    scale : numpy.ndarray, optional
        Shape (m,), positive; ones by default.
    """
    basis = np.linalg.qr(covariates)[0]
    residual = estimate - basis @ (basis.T @ estimate)
    residual = residual - basis @ (basis.T @ residual)
    ones = np.ones(len(estimate)) if scale is None else scale
    return Sampled(residual, variance, basis, ones)


def evaluate(problem: Sampled, model_variance: float, method: str) -> tuple[Point, float]:
    """Likelihoods and the method's objective at one model variance, and the objective's slope."""
    m, p = problem.basis.shape
    total = model_variance * problem.scale + problem.variance
    weight = 1.0 / total
    weighted = problem.basis * weight[:, None]
    factor = np.linalg.cholesky(problem.basis.T @ weighted)
    half = np.linalg.solve(factor, weighted.T)  # (p, m): half' half = W X Q X' W
    u = weight * problem.residual
    residual = u - half.T @ (half @ problem.residual)  # P e = P y
    quadratic = float(problem.residual @ residual)
    log_total = float(np.log(total).sum())
    log_det = 2.0 * float(np.log(factor.diagonal()).sum())
    ordinary = -0.5 * (m * math.log(2 * math.pi) + log_total + quadratic)
    restricted = -0.5 * ((m - p) * math.log(2 * math.pi) + log_total + log_det + quadratic)
    trace = float(problem.scale @ weight)
    if method in RESTRICTED:
        trace -= float(problem.scale @ np.einsum("km,km->m", half, half))
    slope = 0.5 * (float(problem.scale @ residual**2) - trace)
    adjustment, bend = _adjustment(problem, model_variance, method)
    value = (restricted if method in RESTRICTED else ordinary) + adjustment
    return Point(model_variance, ordinary, restricted, value), slope + bend


def _adjustment(problem: Sampled, a: float, method: str) -> tuple[float, float]:
    """The logarithm of the adjusting factor and its slope."""
    if method in ("amrl", "ampl"):
        return (math.log(a), 1.0 / a) if a > 0 else (-math.inf, math.inf)
    if method not in ("amrl_yl", "ampl_yl"):
        return 0.0, 0.0
    if a <= 0:
        return -math.inf, math.inf
    m = len(problem.variance)
    total = a + problem.variance
    share = float((a / total).sum())
    bend = float((problem.variance / total**2).sum()) / ((1.0 + share**2) * math.atan(share))
    return math.log(math.atan(share)) / m, bend / m


def optimum(problem: Sampled, method: str) -> Point:
    """The global maximum of the method's objective over model variances of 0 and more.

    Parameters
    ----------
    problem : Sampled
    method : str
        One of ``LIKELIHOODS``.
    """
    from scipy.optimize import brentq

    def slope(log_variance: float) -> float:
        return evaluate(problem, math.exp(log_variance), method)[1]

    nodes = _grid(problem, method)
    slopes = [slope(node) for node in nodes]
    maxima = [
        evaluate(problem, math.exp(brentq(slope, low, high, xtol=1e-13, rtol=1e-15)), method)[0]
        for low, high, rising, falling in zip(nodes, nodes[1:], slopes, slopes[1:])
        if rising > 0 >= falling
    ]
    if method in ("reml", "ml") and (problem.variance > 0).all():
        at_zero, rise = evaluate(problem, 0.0, method)
        if rise <= 0:
            maxima.append(at_zero)
    if not maxima:
        # The objective falls from the first node on beside variances of 0.
        maxima.append(evaluate(problem, math.exp(nodes[0]), method)[0])
    return max(maxima, key=lambda point: point.objective)


def _grid(problem: Sampled, method: str) -> list[float]:
    """Logarithms of variances from far below the smallest d to where the objective falls."""
    positive = problem.variance[problem.variance > 0]
    spread = float(problem.scale.max())
    low = math.log(float(positive.min()) / spread) - 12.0
    square = float(problem.residual @ problem.residual) / len(problem.residual)
    size = max(square, float(positive.max()))
    high = max(low + 1.0, math.log(size / float(problem.scale.min())) + 2.0)
    for _ in range(_WIDEN):
        if evaluate(problem, math.exp(high), method)[1] < 0:
            break
        high += 2.0
    count = math.ceil((high - low) * _NODES_PER_UNIT)
    return [low + (high - low) * k / count for k in range(count + 1)]


def mean_squared_errors(
    *,
    model_variance: float,
    variance: np.ndarray,
    covariates: np.ndarray,
    sampled: np.ndarray,
    method: str,
) -> np.ndarray:
    """The analytic MSE (m,) by REML or ML, out-of-sample domains included.

    Parameters
    ----------
    model_variance : float
    variance : numpy.ndarray
        Shape (m,); anything where a domain is not sampled.
    covariates : numpy.ndarray
        Shape (m, p).
    sampled : numpy.ndarray
        Shape (m,), bool.
    method : {"reml", "ml"}
    """
    d = variance[sampled]
    x = covariates[sampled]
    weight = 1.0 / (model_variance + d)
    covariance = np.linalg.inv(x.T @ (x * weight[:, None]))
    square = float((weight**2).sum())
    bias = 0.0
    if method == "ml":
        bias = -float(np.trace(covariance @ (x.T @ (x * (weight**2)[:, None])))) / square
    share = np.ones(len(variance))
    share[sampled] = d * weight
    spread = np.einsum("ij,jk,ik->i", covariates, covariance, covariates)
    third = np.zeros(len(variance))
    third[sampled] = 2.0 / square * weight
    return model_variance * share + share**2 * (spread + 2.0 * third - bias)
