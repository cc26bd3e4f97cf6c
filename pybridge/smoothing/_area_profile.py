"""The profile of the Fay-Herriot likelihood over the model variance A, in O(m p²).

V = diag(A + d) is diagonal, so nothing here is larger than (m, p). The coefficients are profiled
out; the covariates enter through a basis B that is orthonormal under the weights 1/(d + median d),
and the estimates through their residual e under the same weights: every quantity below depends
on them only through the residual space of X, and no digits are lost to a large mean or to
covariates on far apart scales.

References
----------
Fay and Herriot (1979), JASA 74, 269; Prasad and Rao (1990), JASA 85, 163; Datta and Lahiri (2000),
Statistica Sinica 10, 613.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

# Beyond this ratio of the Cholesky factor's diagonal the normal equations lose too many digits.
_WORST_RATIO = 1e4


@dataclass(frozen=True)
class Problem:
    """The sampled domains of one problem, rescaled.

    Attributes
    ----------
    variance : numpy.ndarray
        Shape (m,), d.
    residual : numpy.ndarray
        Shape (m,), e = y − B b₀.
    basis : numpy.ndarray
        Shape (m, p), B.
    half_log_gram : float
        ½ log|B'B|.
    rounding : float
        Residuals below this are rounding errors of the estimates.
    """

    variance: np.ndarray
    residual: np.ndarray
    basis: np.ndarray
    half_log_gram: float
    rounding: float = 0.0


@dataclass(frozen=True)
class State:
    """Generalised least squares at one model variance.

    Attributes
    ----------
    weight : numpy.ndarray
        Shape (m,), w = 1/(A + d); 0 where A + d is 0.
    residual : numpy.ndarray
        Shape (m,), y − Xβ.
    half : numpy.ndarray
        Shape (m, k), Z with Z'WZ = I and ZZ' = X (X'WX)⁻¹ X'; k = p but for A = 0 beside
        variances of 0, where those rows bind β.
    transform : numpy.ndarray
        Shape (p, k), Z = B · transform.
    shift : numpy.ndarray
        Shape (p,), β in the basis, over b₀.
    log_det : float
        log|B'WB|.
    """

    weight: np.ndarray
    residual: np.ndarray
    half: np.ndarray
    transform: np.ndarray
    shift: np.ndarray
    log_det: float


def solve_gls(problem: Problem, model_variance: float) -> State:
    """Generalised least squares of e on B at the model variance A ≥ 0."""
    total = model_variance + problem.variance
    if model_variance == 0 and (problem.variance == 0).any():
        return _solve_bound(problem, total)
    weight = 1.0 / total
    gram = problem.basis.T @ (problem.basis * weight[:, None])
    try:
        factor = np.linalg.cholesky(gram)
    except np.linalg.LinAlgError:
        return _solve_stiff(problem, weight)
    diagonal = factor.diagonal()
    if diagonal.max() > _WORST_RATIO * diagonal.min():
        return _solve_stiff(problem, weight)
    transform = np.linalg.inv(factor).T
    return _finish(problem, weight, transform, 2.0 * float(np.log(diagonal).sum()))


def _solve_stiff(problem: Problem, weight: np.ndarray) -> State:
    """By a row-sorted, column-pivoted QR, for weights that a few domains dominate."""
    from scipy.linalg import qr, solve_triangular

    order = np.argsort(-weight)
    rows = (problem.basis * np.sqrt(weight)[:, None])[order]
    upper, pivot = qr(rows, mode="r", pivoting=True, check_finite=False)
    p = rows.shape[1]
    upper = upper[:p]
    transform = np.empty((p, p))
    transform[pivot] = solve_triangular(upper, np.eye(p), check_finite=False)
    return _finish(problem, weight, transform, 2.0 * float(np.log(np.abs(upper.diagonal())).sum()))


def _finish(problem: Problem, weight: np.ndarray, transform: np.ndarray, log_det: float) -> State:
    half = problem.basis @ transform
    shift = half.T @ (weight * problem.residual)
    residual = problem.residual - half @ shift
    # One step of refinement: costs little, and mends what a stiff system lost.
    again = half.T @ (weight * residual)
    residual = residual - half @ again
    return State(weight, residual, half, transform, transform @ (shift + again), log_det)


def _solve_bound(problem: Problem, total: np.ndarray) -> State:
    """The limit A → 0 beside domains with d = 0: these bind β, the others fit what is left."""
    known = total == 0
    u, size, vt = np.linalg.svd(problem.basis[known], full_matrices=True)
    rank = int((size > 1e-12 * size[0]).sum())
    bound = vt[:rank].T @ ((u[:, :rank].T @ problem.residual[known]) / size[:rank])
    free = vt[rank:].T
    weight = np.divide(1.0, total, out=np.zeros_like(total), where=~known)
    residual = np.where(known, 0.0, problem.residual - problem.basis @ bound)
    log_det = 2.0 * float(np.log(size[:rank]).sum())
    if rank == len(vt):
        nothing = np.empty((len(total), 0))
        return State(weight, residual, nothing, np.empty((rank, 0)), bound, log_det)
    basis = np.where(known[:, None], 0.0, problem.basis @ free)
    state = _solve_stiff(Problem(total, residual, basis, 0.0), weight)
    shift = bound + free @ state.shift
    log_det += state.log_det
    return State(weight, state.residual, state.half, free @ state.transform, shift, log_det)


def log_likelihoods(problem: Problem, state: State, model_variance: float) -> tuple[float, float]:
    """The ordinary and the restricted log-likelihood, β profiled out.

    ordinary    −½ [m log 2π + Σ log(A + d) + Σ w r²]
    restricted  −½ [(m − p) log 2π + Σ log(A + d) + log|X'WX| − log|X'X| + Σ w r²]

    At A = 0 beside variances of 0 the ordinary one does not exist (NaN); the restricted one is
    the limit, which exists while the domains with d = 0 leave no residual.
    """
    m, p = problem.basis.shape
    total = model_variance + problem.variance
    known = total == 0
    log_total = float(np.log(total[~known]).sum())
    quadratic = float(np.dot(state.weight * state.residual, state.residual))
    restricted = (
        -0.5 * ((m - p) * math.log(2 * math.pi) + log_total + state.log_det + quadratic)
        + problem.half_log_gram
    )
    if known.any():
        determined = state.half.shape[1] == p - int(known.sum())
        return math.nan, restricted if determined else math.nan
    ordinary = -0.5 * (m * math.log(2 * math.pi) + log_total + quadratic)
    return ordinary, restricted


def score_and_slope(problem: Problem, model_variance: float, method: str) -> tuple[float, float]:
    """The estimating function of the method at A > 0 (or A = 0 with all d > 0), and its slope.

    ML    s = −½ tr V⁻¹ + ½ y'P²y          s' = ½ tr V⁻² − y'P³y
    REML  s = −½ tr P + ½ y'P²y            s' = ½ tr P² − y'P³y
    FH    s = y'Py − (m − p)               s' = −y'P²y
    """
    state = solve_gls(problem, model_variance)
    w, r, z = state.weight, state.residual, state.half
    u = w * r
    square = float(np.dot(u, u))
    if method == "FH":
        m, p = problem.basis.shape
        return float(np.dot(u, r)) - (m - p), -square
    wu = w * u
    projected = z.T @ wu
    cube = float(np.dot(wu, u) - np.dot(projected, projected))
    w2 = w * w
    if method == "ML":
        return 0.5 * (square - float(w.sum())), 0.5 * float(w2.sum()) - cube
    q = np.einsum("ij,ij->i", z, z)
    inner = z.T @ (z * w2[:, None])
    trace = float(w.sum() - np.dot(w2, q))
    trace2 = float(w2.sum() - 2.0 * np.dot(w2 * w, q) + (inner * inner).sum())
    return 0.5 * (square - trace), 0.5 * trace2 - cube
