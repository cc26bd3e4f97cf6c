"""Mean squared errors of the robust area-level predictor in closed form.

``pseudo`` takes the predictor as a linear one with its robust weights fixed (Chambers et al. 2014),
as saeRobust does. Where a residual was cut its weight went with it, so that this is too small, and
stays so however many domains there are.

``analytical`` is the MSE over the model: of the predictor at known parameters, where u leaves the
line γr beyond a threshold t by a fixed part of |r| − t,

    g₁ + γ² or (1 − γ)² · 2 E(|r| − t)₊²,    r ~ N(0, τ),

with what the coefficients add, (1 − γ)² x'Cov(β̂)x, and σ², 2 g₃ − b (1 − γ)²,
with variance and bias of σ̂² from its estimating equation at the model, by its slope.

By simulation at k = 1.345 and γ of 0.4 to 0.7 it is 0.88, 0.91 and 0.97 of the MSE with 40, 20 and
120 domains, the pseudo one 0.74, 0.63 and 0.91. So intervals are Student's, with the degrees of
freedom that σ̂² leaves: 95 % ones cover 0.956, 0.944 and 0.951 with 20, 40 and 120 domains and γ of
0.5, normal ones 0.933, 0.931 and 0.948 (errors 0.003); at γ of 0.25 and 0.8 0.95 to 0.98. Domains
without an estimate stay below: 0.84 and 0.91 with 16 and 36 domains that have one (normal: 0.80 and
0.89), where much of σ̂² is chance.
"""

from __future__ import annotations

import math

import numpy as np

from pybridge.smoothing._area_profile import Problem
from pybridge.smoothing._robust import huber_second_moment


def degrees_of_freedom(n_sampled: int, n_coefficients: int, k: float) -> float:
    """m e(k) − p, at least 1, e(k) being the efficiency of Huber's estimator of σ².

    Satterthwaite's 2τ⁴/Var(τ̂²), with the asymptotic variance of Huber's estimator of one scale,
    less the coefficients: m − p at k = ∞, 0.66 m − p at k = 1.345 (Huber 1981, section 5.6).
    """
    spread, below = _scale_moments(k)
    return max(1.0, n_sampled * 2.0 * below * below / spread - n_coefficients)


def linearised(
    problem: Problem,
    design: np.ndarray,
    inside: np.ndarray,
    a: float,
    own: np.ndarray,
    omega: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The predictor as a linear one with its robust weights fixed: MSE (M,), A V A', a_ii (m,).

    The coefficients are A z with A = (Σ ω x x')⁻¹ (ω x)', the prediction x'A z + B (z − x'A z) with
    B = u/r, without bias for z of mean Xβ.
    """
    b, d = problem.basis, problem.variance
    inner = np.linalg.inv(b.T @ (b * omega[:, None]))
    square = (omega * omega)[:, None]
    plain = inner @ (b.T @ (b * square)) @ inner
    noisy = inner @ (b.T @ (b * (square * d[:, None]))) @ inner
    length = np.einsum("ij,jk,ik->i", design, plain, design)
    noise = np.einsum("ij,jk,ik->i", design, noisy, design)
    mse = a * (1.0 + length) + noise
    leverage = np.einsum("ij,jk,ik->i", b, inner, b) * omega
    rest = 1.0 - own
    mse[inside] = (
        a * rest**2 * (length[inside] - 2.0 * leverage + 1.0)
        + rest**2 * noise[inside]
        + 2.0 * own * rest * leverage * d
        + own**2 * d
    )
    return mse, a * plain + noisy, leverage


def analytic(
    problem: Problem,
    design: np.ndarray,
    inside: np.ndarray,
    a: float,
    k: float,
    coefficient_covariance: np.ndarray,
) -> np.ndarray:
    """MSE (M,) of the robust predictor over the model, in the problem's units.

    Parameters
    ----------
    problem : Problem
        The sampled domains.
    design : numpy.ndarray
        Shape (M, p), all domains' covariates in the basis.
    inside : numpy.ndarray
        Shape (M,), bool.
    a, k : float
        σ² and Huber's constant.
    coefficient_covariance : numpy.ndarray
        Shape (p, p), A V A'.
    """
    d = problem.variance
    total = np.where(a + d > 0, a + d, np.inf)
    weight = 1.0 / total
    share = np.where(d == 0, 0.0, d * weight)
    spread = np.einsum("ij,jk,ik->i", design, coefficient_covariance, design)
    variance, bias = _variance_and_bias(problem, weight, k)
    mse = a + spread - bias
    mse[inside] = (
        a * share
        + _cut(a, d, total, share, k)
        + share**2 * (spread[inside] + 2.0 * variance * weight - bias)
    )
    return mse


def _cut(a: float, d: np.ndarray, total: np.ndarray, share: np.ndarray, k: float) -> np.ndarray:
    """E(u − γr)² (m,): what cutting costs where the model holds."""
    from scipy.special import ndtr

    noisy = a <= d
    smaller = np.where(noisy, d, a)
    # The threshold over √τ; where one of the two variances is 0 nothing is ever cut.
    usable = np.isfinite(total) & (d > 0) & (a > 0)
    edge = k * np.sqrt(np.where(usable, total / np.where(smaller > 0, smaller, 1.0), 1.0))
    density = np.exp(-0.5 * edge * edge) / math.sqrt(2.0 * math.pi)
    excess = 2.0 * ((1.0 + edge * edge) * ndtr(-edge) - edge * density)
    part = np.where(noisy, (1.0 - share) ** 2, share**2)
    return np.where(usable, part * np.where(usable, total, 0.0) * excess, 0.0)


def _variance_and_bias(problem: Problem, weight: np.ndarray, k: float) -> tuple[float, float]:
    """Of the estimator of σ² where the model holds, from moments of ψ and a normal Z.

    Variance Var ψ²/(κ² Σw²), κ = E Z²1{|Z| < k}; bias −(2κ − E ψ²)/(κ E ψ') · Σw²h/Σw², which is
    that of maximum likelihood at k = ∞.
    """
    inner = 1.0 - math.erfc(k / math.sqrt(2.0))
    second = huber_second_moment(k)
    spread, below = _scale_moments(k)
    gram = problem.basis.T @ (problem.basis * weight[:, None])
    leverage = np.einsum("ij,jk,ik->i", problem.basis, np.linalg.inv(gram), problem.basis)
    square = float((weight * weight).sum())
    variance = spread / (below * below * square)
    bias = -(2.0 * below - second) / (below * inner) * float((weight**2) @ leverage) / square
    return variance, bias


def _scale_moments(k: float) -> tuple[float, float]:
    """Var ψ(Z)² and κ = E Z²1{|Z| < k} of a standard normal Z."""
    outside = math.erfc(k / math.sqrt(2.0))
    density = math.exp(-0.5 * k * k) / math.sqrt(2.0 * math.pi)
    fourth = 3.0 * (1.0 - outside) - 2.0 * density * (k**3 + 3.0 * k) + k**4 * outside
    return fourth - huber_second_moment(k) ** 2, 1.0 - outside - 2.0 * k * density
