"""The model variance of many replicates of one problem at once.

Replicates share domains, sampling variances and covariates and differ in their direct estimates
only, so that everything is a product of matrices: scores of all replicates at the nodes of a grid,
then Newton steps inside each bracket, all brackets side by side. The rules are those of
`_model_variance`, which fits one problem.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pybridge.smoothing._adjusted import BASE, adjustment, base_of, highest_variance
from pybridge.smoothing._area_profile import Problem

_STEP = 0.35
_NEGLIGIBLE = 1e-8
_MOST_STEPS = 60
_RELATIVE = 1e-9


@dataclass(frozen=True)
class Solved:
    """Generalised least squares of K replicates, each at its own model variance.

    Attributes
    ----------
    weight, residual : numpy.ndarray
        Shape (K, m): 1/(A + d), and y − Xβ.
    shift : numpy.ndarray
        Shape (K, p), the coefficients in the basis.
    gram : numpy.ndarray
        Shape (K, p, p), B'WB.
    """

    weight: np.ndarray
    residual: np.ndarray
    shift: np.ndarray
    gram: np.ndarray


def solve_replicates(problem: Problem, responses: np.ndarray, model_variance: np.ndarray) -> Solved:
    """Generalised least squares of responses (K, m) at model variances (K,).

    A variance of 0 beside domains with d = 0 is taken as a negligible one.
    """
    weight = 1.0 / (_floored(problem, model_variance)[:, None] + problem.variance)
    basis = problem.basis
    gram = _grams(weight, basis)
    cross = (weight * responses) @ basis
    shift = np.linalg.solve(gram, cross[..., None])[..., 0]
    residual = responses - shift @ basis.T
    return Solved(weight, residual, shift, gram)


def replicate_variances(problem: Problem, responses: np.ndarray, method: str) -> np.ndarray:
    """Model variances (K,) of responses (K, m), by any of the native methods.

    Parameters
    ----------
    problem : Problem
        Sampling variances and basis, in units in which the median variance is about 1.
    responses : numpy.ndarray
        Shape (K, m), direct estimates, or their residuals around anything in the basis's span.
    method : str
    """
    basis, p = problem.basis, problem.basis.shape[1]
    root = 1.0 / (problem.variance + 1.0)
    residual = responses - ((responses * root) @ basis) @ basis.T
    if method == "PR":
        return _prasad_rao(problem, residual)
    square = float(np.einsum("km,km->k", residual, residual).max()) / (len(basis) - p)
    nodes = _nodes(problem, square, method)
    scores = _scores(problem, residual, nodes, method)
    which, left = np.nonzero((scores[:, :-1] > 0) & (scores[:, 1:] <= 0))
    found = _refined(problem, residual[which], nodes[left], nodes[left + 1], method)
    return _chosen(problem, residual, method, which, found, at_zero=scores[:, 0] <= 0)


def _floored(problem: Problem, model_variance: np.ndarray) -> np.ndarray:
    if (problem.variance > 0).all():
        return model_variance
    floor = _NEGLIGIBLE * float(np.median(problem.variance[problem.variance > 0]))
    return np.maximum(model_variance, floor)


def _grams(weight: np.ndarray, basis: np.ndarray) -> np.ndarray:
    p = basis.shape[1]
    a, b = np.triu_indices(p)
    packed = weight @ (basis[:, a] * basis[:, b])
    full = np.empty((len(weight), p, p))
    full[:, a, b] = packed
    full[:, b, a] = packed
    return full


def _prasad_rao(problem: Problem, residual: np.ndarray) -> np.ndarray:
    q = np.linalg.qr(problem.basis)[0]
    left = residual - (residual @ q) @ q.T
    leverage = np.einsum("ij,ij->i", q, q)
    moment = np.einsum("km,km->k", left, left) - float(problem.variance @ (1.0 - leverage))
    return np.maximum(0.0, moment / (q.shape[0] - q.shape[1]))


def _nodes(problem: Problem, mean_square: float, method: str) -> np.ndarray:
    """As in `_model_variance.grid`, wide enough for every replicate."""
    d, p = problem.variance, problem.basis.shape[1]
    positive = d[d > 0]
    median = float(np.median(positive))
    smallest = float(positive.min())
    negligible = smallest < _NEGLIGIBLE * median or len(positive) < len(d)
    low = _NEGLIGIBLE * median if negligible else 0.1 * smallest
    high = mean_square + math.sqrt(mean_square) * math.sqrt(float(positive.max()))
    if method in BASE:
        known = highest_variance(
            variance=d, mean_square=mean_square, n_coefficients=p, method=method
        )
        high = max(high, known)
    high = max(2.0 * high, 10.0 * low)
    nodes = np.geomspace(low, high, math.ceil(math.log(high / low) / _STEP) + 1)
    return nodes if negligible else np.concatenate([[0.0], nodes])


def _scores(problem: Problem, residual: np.ndarray, nodes: np.ndarray, method: str) -> np.ndarray:
    """The estimating function (K, G) of every replicate at every node."""
    basis, p = problem.basis, problem.basis.shape[1]
    weight = 1.0 / (nodes[:, None] + problem.variance)
    gram, k = _grams(weight, basis), len(residual)
    square = (residual * residual) @ weight.T
    cross = np.stack([(residual * basis[:, j]) @ weight.T for j in range(p)], axis=-1)
    shift = np.linalg.solve(gram[None], cross[..., None])[..., 0]
    if base_of(method) == "FH":
        quadratic = square - np.einsum("kgi,kgi->kg", cross, shift)
        return np.asarray(quadratic - (len(basis) - p))
    double = weight * weight
    gram2 = _grams(double, basis)
    square2 = (residual * residual) @ double.T
    cross2 = np.stack([(residual * basis[:, j]) @ double.T for j in range(p)], axis=-1)
    bent = np.einsum("gij,kgj->kgi", gram2, shift)
    norm = square2 + np.einsum("kgi,kgi->kg", shift, bent - 2.0 * cross2)
    trace = weight.sum(axis=1)
    if base_of(method) == "REML":
        trace = trace - np.trace(np.linalg.solve(gram, gram2), axis1=1, axis2=2)
    rise = adjustment(variance=problem.variance, model_variance=nodes, method=method)[1]
    return np.asarray(0.5 * (norm - trace) + np.broadcast_to(rise, (k, len(nodes))))


def _score_and_slope(
    problem: Problem, residual: np.ndarray, a: np.ndarray, method: str
) -> tuple[np.ndarray, np.ndarray]:
    """As in `_area_profile.score_and_slope`, for brackets (K,) each at its own A."""
    basis, base = problem.basis, base_of(method)
    at = solve_replicates(problem, residual, a)
    u = at.weight * at.residual
    square = np.einsum("km,km->k", u, u)
    if base == "FH":
        quadratic = np.einsum("km,km->k", u, at.residual)
        return quadratic - (basis.shape[0] - basis.shape[1]), -square
    wu = at.weight * u
    projected = wu @ basis
    inner = np.linalg.solve(at.gram, projected[..., None])[..., 0]
    cube = np.einsum("km,km->k", wu, u) - np.einsum("ki,ki->k", projected, inner)
    w2 = at.weight * at.weight
    trace, trace2 = at.weight.sum(axis=1), w2.sum(axis=1)
    if base == "REML":
        second = np.linalg.solve(at.gram, _grams(w2, basis))
        third = np.linalg.solve(at.gram, _grams(w2 * at.weight, basis))
        trace = trace - np.trace(second, axis1=1, axis2=2)
        trace2 = trace2 - 2.0 * np.trace(third, axis1=1, axis2=2)
        trace2 = trace2 + np.einsum("kij,kji->k", second, second)
    _, rise, bend = adjustment(variance=problem.variance, model_variance=a, method=method)
    return 0.5 * (square - trace) + rise, 0.5 * trace2 - cube + bend


def _refined(
    problem: Problem, residual: np.ndarray, low: np.ndarray, high: np.ndarray, method: str
) -> np.ndarray:
    """The roots (K,) in their brackets: Newton, bisection where it would leave."""
    low, high = low.copy(), high.copy()
    point = np.where(low > 0, np.sqrt(low * high), 0.5 * high)
    last = np.full(len(point), np.inf)
    open_ = np.arange(len(point))
    for _ in range(_MOST_STEPS):
        if not len(open_):
            break
        at = point[open_]
        score, slope = _score_and_slope(problem, residual[open_], at, method)
        up = score > 0
        low[open_], high[open_] = np.where(up, at, low[open_]), np.where(up, high[open_], at)
        with np.errstate(divide="ignore", invalid="ignore"):
            new = np.where(slope < 0, at - score / slope, np.nan)
        inside = (new >= low[open_]) & (new <= high[open_])
        inside &= np.abs(new - at) <= 0.5 * last[open_]
        new = np.where(inside, new, 0.5 * (low[open_] + high[open_]))
        last[open_], point[open_] = np.abs(new - at), new
        open_ = open_[last[open_] > _RELATIVE * new]
    return point


def _chosen(
    problem: Problem,
    residual: np.ndarray,
    method: str,
    which: np.ndarray,
    found: np.ndarray,
    *,
    at_zero: np.ndarray,
) -> np.ndarray:
    """Of each replicate's maxima the highest; 0 where the score falls from there on."""
    k = len(residual)
    count = np.bincount(which, minlength=k)
    unbounded = method in BASE or (method == "ML" and (problem.variance == 0).any())
    zero = at_zero & ~(unbounded & (count > 0))
    answer = np.zeros(k)
    if method == "FH":
        answer[which] = found  # the last one, in the order of the nodes
        return answer
    single = (count == 1) & ~zero
    answer[which[single[which]]] = found[single[which]]
    several = count + zero > 1
    if not several.any():
        return answer
    members = np.concatenate([which[several[which]], np.flatnonzero(several & zero)])
    values = np.concatenate([found[several[which]], np.zeros(int((several & zero).sum()))])
    heights = _heights(problem, residual[members], values, method)
    order = np.lexsort((heights, members))
    answer[members[order]] = values[order]  # the highest comes last
    return answer


def _heights(problem: Problem, residual: np.ndarray, a: np.ndarray, method: str) -> np.ndarray:
    """What the method maximises (K,), up to a constant."""
    at = solve_replicates(problem, residual, a)
    value = np.log(at.weight).sum(axis=1)
    value = value - np.einsum("km,km->k", at.weight * at.residual, at.residual)
    if base_of(method) == "REML":
        value = value - np.linalg.slogdet(at.gram)[1]
    value = 0.5 * value
    return value + adjustment(variance=problem.variance, model_variance=a, method=method)[0]
