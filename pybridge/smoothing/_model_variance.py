"""The model variance: the global optimum over A ≥ 0, not the first one an iteration meets.

The profile likelihood of the Fay-Herriot model may have several maxima and its maximum at 0. All
functions of A here are smooth in log A on the scale of one unit (their poles lie at −d, hence
at imaginary part π in log A), so a grid with steps of a third of a unit sees every maximum that
matters; each one found is then refined by Newton steps on the analytic score inside its bracket.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pybridge.smoothing._adjusted import BASE, adjustment, base_of, highest_variance
from pybridge.smoothing._area_profile import Problem, log_likelihoods, score_and_slope, solve_gls

_STEP = 0.35
# Elements of one block of weights, allocated once: it stays in the cache. Fresh large blocks would
# cost more in page faults than the arithmetic on them.
_CHUNK = 1 << 14
_MOST_STEPS = 200
# A variance this much smaller than the median counts as 0 in deciding whether A = 0 is best:
# below it the score of the few domains that have it is lost in rounding.
_NEGLIGIBLE = 1e-8


@dataclass(frozen=True)
class Optimum:
    """The optimum: ``model_variance``, Newton ``iterations``, and how many maxima there were."""

    model_variance: float
    iterations: int
    n_maxima: int


def find_model_variance(problem: Problem, method: str) -> Optimum:
    """The model variance by a likelihood, adjusted or not, or the Fay-Herriot moment equation.

    Parameters
    ----------
    problem : Problem
        m domains, p coefficients, m > p.
    method : str
        ``"ML"``, ``"REML"``, an adjusted method, or ``"FH"``.
    """
    base = base_of(method)
    nodes = grid(problem, method)
    scores = _scores(problem, nodes, base)
    if method in BASE:
        # One node at a time: an array of nodes by domains would be large.
        scores = scores + [_adjusted(problem, node, method)[1] for node in nodes]
    rises = np.flatnonzero((scores[:-1] > 0) & (scores[1:] <= 0))
    maxima: list[float] = []
    iterations = 0
    for i in rises:
        root, steps = _refine(problem, method, float(nodes[i]), float(nodes[i + 1]))
        maxima.append(root)
        iterations += steps
    at_zero = scores[0] <= 0
    unbounded = method in BASE or (method == "ML" and (problem.variance == 0).any())
    if at_zero and not (maxima and unbounded):
        # With d = 0 in no more domains than coefficients, ML grows without bound as A → 0:
        # an inner maximum, where there is one, is then the estimate.
        maxima.insert(0, 0.0)
    if len(maxima) == 1 or method == "FH":
        return Optimum(maxima[-1], iterations, len(maxima))
    which = 1 if base == "REML" else 0
    heights = [
        log_likelihoods(problem, solve_gls(problem, a), a)[which] + _adjusted(problem, a, method)[0]
        for a in maxima
    ]
    best = int(np.nanargmax(heights)) if not np.isnan(heights).all() else -1
    return Optimum(maxima[best], iterations, len(maxima))


def prasad_rao_variance(*, estimate: np.ndarray, variance: np.ndarray, basis: np.ndarray) -> float:
    """The moment estimator of Prasad and Rao (1990, eq. 3.2): closed form, ordinary least squares.

    Parameters
    ----------
    estimate, variance : numpy.ndarray
        Shape (m,).
    basis : numpy.ndarray
        Shape (m, p), any basis of the columns of X.
    """
    m, p = basis.shape
    q = np.linalg.qr(basis)[0]
    residual = estimate - q @ (q.T @ estimate)
    residual = residual - q @ (q.T @ residual)
    leverage = np.einsum("ij,ij->i", q, q)
    moment = (float(residual @ residual) - float(variance @ (1.0 - leverage))) / (m - p)
    return max(0.0, moment)


def _adjusted(problem: Problem, model_variance: float, method: str) -> tuple[float, float, float]:
    """log h of an adjusted likelihood, its slope and curvature; zeros for the others."""
    if method not in BASE:
        return 0.0, 0.0, 0.0
    at = np.array([model_variance])
    value, slope, bend = adjustment(variance=problem.variance, model_variance=at, method=method)
    return float(value[0]), float(slope[0]), float(bend[0])


def grid(problem: Problem, method: str) -> np.ndarray:
    """Nodes from 0 (or a negligible value) to where the score is certainly negative.

    For any residual e: y'P²y ≤ Σe²/(A + d_min)² and tr P ≥ (m − p)/(A + d_max), which gives the
    upper end.
    """
    d, e = problem.variance, problem.residual
    m, p = problem.basis.shape
    positive = d[d > 0]
    median = float(np.median(positive))
    mean_square = float(e @ e) / (m - p)
    high = mean_square + math.sqrt(mean_square) * math.sqrt(float(positive.max()))
    n_small = int((d < _NEGLIGIBLE * median).sum())
    if 0 < n_small <= p:
        first = low = _NEGLIGIBLE * median
    elif len(positive) < m:
        spread = _mean_square_of_known(problem, d == 0)
        exact = spread <= problem.rounding**2
        low = _NEGLIGIBLE * median if exact else min(0.1 * float(positive.min()), 0.01 * spread)
        first = low
    else:
        first, low = 0.0, 0.1 * float(positive.min())
    if method in BASE:
        known = highest_variance(
            variance=d, mean_square=mean_square, n_coefficients=p, method=method
        )
        high = max(high, known)
    high = max(2.0 * high, 10.0 * low)
    steps = math.ceil(math.log(high / low) / _STEP)
    nodes = np.geomspace(low, high, steps + 1)
    return nodes if first else np.concatenate([[0.0], nodes])


def _mean_square_of_known(problem: Problem, known: np.ndarray) -> float:
    """The mean square that domains with d = 0 leave around their own fit."""
    basis, residual = problem.basis[known], problem.residual[known]
    shift = np.linalg.lstsq(basis, residual, rcond=None)[0]
    left = residual - basis @ shift
    return float(left @ left) / len(left)


def _scores(problem: Problem, nodes: np.ndarray, method: str) -> np.ndarray:
    """The estimating function at all nodes (G,), from moments that add over chunks of domains."""
    zero, first, second = _moments(problem, nodes, method != "FH")
    p = problem.basis.shape[1]
    gram, cross, square = _unpack(first, p)
    shift = np.linalg.solve(gram, cross[..., None])[..., 0]
    quadratic = square - np.einsum("gi,gi->g", cross, shift)
    if method == "FH":
        return quadratic - (len(problem.variance) - p)
    gram2, cross2, square2 = _unpack(second, p)
    bent = np.einsum("gij,gj->gi", gram2, shift)
    square_norm = square2 + np.einsum("gi,gi->g", shift, bent - 2.0 * cross2)
    trace = zero
    if method == "REML":
        trace = zero - np.trace(np.linalg.solve(gram, gram2), axis1=1, axis2=2)
    return 0.5 * (square_norm - trace)


def _moments(
    problem: Problem, nodes: np.ndarray, squares: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Σ w (G,), Σ w z_a z_b and Σ w² z_a z_b (G, K), z = (basis, residual), pairs a ≤ b."""
    d = problem.variance
    columns = np.column_stack([problem.basis, problem.residual])
    a, b = np.triu_indices(columns.shape[1])
    zero = np.zeros(len(nodes))
    first = np.zeros((len(nodes), len(a)))
    second = np.zeros_like(first)
    size = min(len(d), max(1, _CHUNK // max(len(nodes), len(a))))
    buffer = np.empty((len(nodes), size))
    for start in range(0, len(d), size):
        part = slice(start, start + size)
        rows = columns[part]
        weight = buffer[:, : len(rows)]
        np.add(nodes[:, None], d[part], out=weight)
        np.reciprocal(weight, out=weight)
        pairs = rows[:, a] * rows[:, b]
        zero += weight.sum(axis=1)
        first += weight @ pairs
        if squares:
            np.multiply(weight, weight, out=weight)
            second += weight @ pairs
    return zero, first, second


def _unpack(moments: np.ndarray, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The (G, p, p), (G, p) and (G,) parts of packed symmetric (p + 1, p + 1) moments."""
    a, b = np.triu_indices(p + 1)
    full = np.empty((len(moments), p + 1, p + 1))
    full[:, a, b] = moments
    full[:, b, a] = moments
    return full[:, :p, :p], full[:, :p, p], full[:, p, p]


def _refine(problem: Problem, method: str, low: float, high: float) -> tuple[float, int]:
    """The root in (low, high], score positive at low: Newton, bisection where it would leave."""
    point = math.sqrt(low * high) if low > 0 else 0.5 * high
    last = math.inf
    for step in range(1, _MOST_STEPS + 1):
        score, slope = score_and_slope(problem, point, base_of(method))
        if method in BASE:
            _, rise, bend = _adjusted(problem, point, method)
            score, slope = score + rise, slope + bend
        if score > 0:
            low = point
        else:
            high = point
        new = point - score / slope if slope < 0 else math.nan
        if not low <= new <= high or abs(new - point) > 0.5 * last:
            new = 0.5 * (low + high)
        last = abs(new - point)
        # Newton converges quadratically: after a step this small only rounding is left.
        if last <= 1e-10 * new:
            return new, step
        point = new
    return point, _MOST_STEPS
