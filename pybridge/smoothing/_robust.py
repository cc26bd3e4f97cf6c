"""Huber's estimating equations of the area-level model, for one problem or many replicates.

With τ = σ² + d, ψ Huber's function at k, K = E ψ² of a standard normal, r = z − Xβ:

    Σ x ψ(r/√τ)/√τ = 0,    Σ (ψ(r/√τ)² − K)/τ = 0,    ψ((r − u)/√d)/√d = ψ(u/σ)/σ

for the coefficients, the model variance and the domain effects u (Sinha and Rao 2009; for the
area-level model Warnholz 2016, whose package saeRobust iterates the same equations). The second
is solved at its largest root, where an iteration from above ends; the third is piecewise linear
and has a closed form.

References
----------
Sinha and Rao (2009), Canadian J. Statistics 37, 381; Warnholz (2016), Small area estimation using
robust extensions to area level models, Freie Universität Berlin; Chambers, Chandra, Salvati and
Tzavidis (2014), J. Royal Statistical Society B 76, 47, on the linearised MSE.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pybridge.smoothing._area_profile import Problem

_MOST_STEPS = 500
_TIGHT = 1e-13
# Enough to see the sign of the equation but beside its root, which the next node then brackets.
_COARSE = 1e-6
_NEGLIGIBLE = 1e-8
_BLOCK = 1 << 21


@dataclass(frozen=True)
class RobustState:
    """The solution of K replicates.

    Attributes
    ----------
    model_variance : numpy.ndarray
        Shape (K,).
    shift : numpy.ndarray
        Shape (K, p), the coefficients in the basis.
    residual : numpy.ndarray
        Shape (K, m), y − Xβ.
    """

    model_variance: np.ndarray
    shift: np.ndarray
    residual: np.ndarray


def huber_second_moment(k: float) -> float:
    """E ψ(Z)² of a standard normal Z."""
    below = 0.5 * math.erfc(-k / math.sqrt(2.0))
    density = math.exp(-0.5 * k * k) / math.sqrt(2.0 * math.pi)
    return 2.0 * below - 1.0 - 2.0 * k * density + 2.0 * k * k * (1.0 - below)


def solve_robust(
    problem: Problem, responses: np.ndarray, *, k: float, step: float = 0.5, tight: float = 1e-12
) -> RobustState:
    """Coefficients and model variances of responses (K, m).

    Parameters
    ----------
    problem : Problem
        Sampling variances and basis; its residual is not used.
    responses : numpy.ndarray
        Shape (K, m).
    k : float
        Huber's constant.
    step : float
        Of the grid on the logarithm of the variance on which roots are looked for.
    tight : float
        Relative error of the variances.
    """
    nodes = _nodes(problem, responses, k, step)
    count, size = len(responses), responses.shape[1]
    low, high = np.zeros(count), np.full(count, nodes[0])
    rows = max(1, _BLOCK // (size * count))
    for start in range(len(nodes), 0, -rows):
        part = nodes[max(0, start - rows) : start]
        stacked = np.repeat(responses[None], len(part), axis=0).reshape(-1, size)
        at = np.repeat(part, count)
        values = _score(problem, stacked, at, k, accuracy=_COARSE)[0].reshape(len(part), count)
        for j in range(len(part))[::-1]:  # from above: the largest root
            new = (values[j] > 0) & (low == 0)
            low[new], high[new] = part[j], nodes[min(start - len(part) + j + 1, len(nodes) - 1)]
        if (low > 0).all():
            break
    return _finish(problem, responses, low, high, k, tight)


def _finish(
    problem: Problem,
    responses: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    k: float,
    tight: float,
) -> RobustState:
    inside = np.flatnonzero(low > 0)
    found = np.zeros(len(responses))
    if len(inside):
        found[inside] = _root(problem, responses[inside], low[inside], high[inside], k, tight)
    _, shift, residual = _score(problem, responses, found, k, accuracy=_TIGHT)
    return RobustState(found, shift, residual)


def _nodes(problem: Problem, responses: np.ndarray, k: float, step: float) -> np.ndarray:
    """Variances from a small part of the smallest d to where no scaled residual counts."""
    positive = problem.variance[problem.variance > 0]
    median = float(np.median(positive))
    low = max(1e-3 * float(positive.min()), _NEGLIGIBLE * median)
    root = 1.0 / (problem.variance + 1.0)
    left = responses - ((responses * root) @ problem.basis) @ problem.basis.T
    high = 10.0 * float((left * left).max()) / huber_second_moment(k) + float(positive.max())
    return np.geomspace(low, max(high, 10.0 * low), math.ceil(math.log(high / low) / step) + 2)


def _total(problem: Problem, model_variance: np.ndarray) -> np.ndarray:
    a = model_variance
    if (problem.variance == 0).any():
        positive = problem.variance[problem.variance > 0]
        a = np.maximum(a, _NEGLIGIBLE * float(np.median(positive)))
    return np.asarray(a[:, None] + problem.variance)


def _score(
    problem: Problem,
    responses: np.ndarray,
    a: np.ndarray,
    k: float,
    *,
    accuracy: float,
    start: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Σ (ψ² − K)/τ (K,) at the robust coefficients of each variance, these and the residuals."""
    total = _total(problem, a)
    shift, residual = robust_regression(
        problem, responses, total, k, accuracy=accuracy, start=start
    )
    clipped = np.minimum(np.abs(residual) / np.sqrt(total), k)
    value = ((clipped * clipped - huber_second_moment(k)) / total).sum(axis=1)
    return value, shift, residual


def robust_regression(
    problem: Problem,
    responses: np.ndarray,
    total: np.ndarray,
    k: float,
    *,
    accuracy: float,
    start: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Huber's regression by reweighting: coefficients (K, p) and residuals (K, m).

    Parameters
    ----------
    total : numpy.ndarray
        Shape (K, m), τ.
    accuracy : float
        Largest change of a residual, in its standard deviations, at which it stops.
    start : numpy.ndarray, optional
        Shape (K, p), coefficients to start from; generalised least squares by default.
    """
    basis, p = problem.basis, problem.basis.shape[1]
    first, second = np.triu_indices(p)
    pairs = basis[:, first] * basis[:, second]
    root = np.sqrt(total)
    shift = np.zeros((len(responses), p)) if start is None else np.array(start)
    residual = responses - shift @ basis.T
    weight = 1.0 / total
    if start is not None:
        weight = np.minimum(1.0, k / np.maximum(np.abs(residual) / root, 1e-300)) / total
    open_ = np.arange(len(responses))
    for iteration in range(_MOST_STEPS):
        gram = np.empty((len(open_), p, p))
        gram[:, first, second] = weight @ pairs
        gram[:, second, first] = gram[:, first, second]
        cross = (weight * residual[open_]) @ basis
        move = np.linalg.solve(gram, cross[..., None])[..., 0]
        shift[open_] += move
        change = move @ basis.T
        residual[open_] -= change
        moved = np.abs(change / root[open_]).max(axis=1) > accuracy
        open_ = open_[moved | (iteration == 0)]
        if not len(open_):
            break
        scaled = np.abs(residual[open_]) / root[open_]
        weight = np.minimum(1.0, k / np.maximum(scaled, 1e-300)) / total[open_]
    return shift, residual


def _root(
    problem: Problem,
    responses: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    k: float,
    tight: float,
) -> np.ndarray:
    """Roots (K,) in their brackets on the logarithm: false position, the Illinois way."""
    a, b = np.log(low), np.log(high)
    fa, shift, _ = _score(problem, responses, np.exp(a), k, accuracy=_TIGHT)
    fb, shift, _ = _score(problem, responses, np.exp(b), k, accuracy=_TIGHT, start=shift)
    open_ = np.flatnonzero(fa != fb)
    for _ in range(_MOST_STEPS):
        width = b[open_] - a[open_]
        open_ = open_[np.abs(width) > tight]
        if not len(open_):
            break
        new = b[open_] - fb[open_] * (b[open_] - a[open_]) / (fb[open_] - fa[open_])
        value, shift[open_], _ = _score(
            problem, responses[open_], np.exp(new), k, accuracy=_TIGHT, start=shift[open_]
        )
        crossed = np.sign(value) != np.sign(fb[open_])
        a[open_] = np.where(crossed, b[open_], a[open_])
        fa[open_] = np.where(crossed, fb[open_], 0.5 * fa[open_])
        done = np.abs(new - b[open_]) <= tight
        b[open_], fb[open_] = new, value
        open_ = open_[~(done | (value == 0) | (fa[open_] == value))]
    return np.exp(b)


def domain_effects(
    residual: np.ndarray, *, variance: np.ndarray, model_variance: np.ndarray, k: float
) -> np.ndarray:
    """u (…, m) with ψ((r − u)/√d)/√d = ψ(u/σ)/σ.

    The residual r is shrunk by γ until, where σ ≤ √d, what is left of it is cut, and u stays at
    kσ²/√d; or, where σ > √d, until u itself is cut, and u keeps kd/σ away from r.

    Parameters
    ----------
    residual, variance : numpy.ndarray
        Shape (…, m), r and d.
    model_variance : numpy.ndarray
        σ², broadcast against them.
    """
    a = np.broadcast_to(model_variance, np.broadcast_shapes(residual.shape, variance.shape))
    d = np.broadcast_to(variance, a.shape)
    size = np.abs(residual)
    total = np.where(a + d > 0, a + d, 1.0)
    straight = np.where(a + d > 0, a / total, 1.0) * size
    noisy = a <= d
    cut = k * a / np.sqrt(np.where(noisy & (d > 0), d, 1.0))
    kept = size - k * d / np.sqrt(np.where(noisy, 1.0, a))
    u = np.where(noisy, np.minimum(straight, cut), np.maximum(straight, kept))
    return np.asarray(np.sign(residual) * np.where(d == 0, size, u))
