"""Likelihoods of sae's area-level models.

V is the covariance of the direct estimates, D = diag(d):

- Fay-Herriot: V = σ² I + D;
- spatial (SAR(1), Pratesi and Salvati 2008): V = σ² [(I − ρW)'(I − ρW)]⁻¹ + D;
- spatio-temporal (Marhuenda, Molina and Morales 2013): V = σ₁² Z Ω₁(ρ₁) Z' + σ₂² (I ⊗ Ω₂(ρ₂)) + D,
  Ω₁ as above over the domains, Ω₂ of an AR(1) over the instants, the identity in model S.

The restricted likelihood holds +½ log|X'X|, so that it does not depend on how covariates are coded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Likelihoods:
    """At one point: both log-likelihoods, and the coefficients with their covariance.

    Attributes
    ----------
    ordinary, restricted : float
    coefficients : numpy.ndarray
        Shape (p,).
    covariance : numpy.ndarray
        Shape (p, p), (X'V⁻¹X)⁻¹.
    """

    ordinary: float
    restricted: float
    coefficients: np.ndarray
    covariance: np.ndarray

    def of(self, method: str) -> float:
        """The one that a method maximises."""
        return self.ordinary if method == "ML" else self.restricted


@dataclass(frozen=True)
class AreaData:
    """Direct estimates (m,), sampling variances (m,), design matrix (m, p)."""

    y: np.ndarray
    d: np.ndarray
    x: np.ndarray


@dataclass(frozen=True)
class Proximity:
    """A proximity matrix W (m, m), with W + W', W'W and W's eigenvalues."""

    matrix: np.ndarray
    both: np.ndarray
    square: np.ndarray
    eigenvalues: np.ndarray


def proximity(matrix: np.ndarray) -> Proximity:
    """Prepare W (m, m) for many values of ρ."""
    w = np.asarray(matrix, dtype=np.float64)
    return Proximity(w, w + w.T, w.T @ w, np.linalg.eigvals(w))


def likelihoods(data: AreaData, *, log_det: float, solved: np.ndarray) -> Likelihoods:
    """Both log-likelihoods from log|V| and V⁻¹[X, y], shape (m, p + 1)."""
    m, p = data.x.shape
    gram = data.x.T @ solved[:, :p]
    covariance = np.linalg.inv(gram)
    beta = covariance @ (data.x.T @ solved[:, p])
    residual = data.y - data.x @ beta
    square = float(residual @ (solved[:, p] - solved[:, :p] @ beta))
    ordinary = -0.5 * (m * math.log(2 * math.pi) + log_det + square)
    log_gram = float(np.linalg.slogdet(data.x.T @ data.x)[1])
    change = log_gram - float(np.linalg.slogdet(gram)[1]) + p * math.log(2 * math.pi)
    return Likelihoods(ordinary, ordinary + 0.5 * change, beta, covariance)


def fay_herriot_likelihoods(data: AreaData, variance: float) -> Likelihoods:
    """At σ², in O(m p²)."""
    v = variance + data.d
    solved = np.column_stack([data.x, data.y]) / v[:, None]
    return likelihoods(data, log_det=float(np.log(v).sum()), solved=solved)


def spatial_likelihoods(data: AreaData, w: Proximity, variance: float, rho: float) -> Likelihoods:
    """At (σ², ρ); one Cholesky decomposition."""
    from scipy.linalg import cho_solve, cholesky

    if variance == 0.0:
        return fay_herriot_likelihoods(data, 0.0)
    m = len(data.y)
    root = (np.eye(m) + rho * (rho * w.square - w.both)) / variance
    if not (data.d > 0).all():
        return dense_likelihoods(data, np.linalg.inv(root) + np.diag(data.d))
    right = np.column_stack([data.x, data.y])
    # V⁻¹ = D⁻¹ − D⁻¹ (K + D⁻¹)⁻¹ D⁻¹ and |V| = |D| |K + D⁻¹| / |K|, K the inverse of V − D.
    inner = root + np.diag(1.0 / data.d)
    scaled = right / data.d[:, None]
    lower = cholesky(inner, lower=True, check_finite=False)
    solved = scaled - cho_solve((lower, True), scaled, check_finite=False) / data.d[:, None]
    log_root = 2.0 * float(np.log(np.abs(1.0 - rho * w.eigenvalues)).sum()) - m * math.log(variance)
    log_det = float(np.log(data.d).sum()) + 2.0 * float(np.log(lower.diagonal()).sum()) - log_root
    return likelihoods(data, log_det=log_det, solved=solved)


def dense_likelihoods(data: AreaData, v: np.ndarray) -> Likelihoods:
    """For any covariance V (m, m)."""
    from scipy.linalg import cho_solve, cholesky

    lower = cholesky(v, lower=True, check_finite=False)
    right = np.column_stack([data.x, data.y])
    solved = cho_solve((lower, True), right, check_finite=False)
    log_det = 2.0 * float(np.log(lower.diagonal()).sum())
    return likelihoods(data, log_det=log_det, solved=solved)


def eblup_weights(
    data: AreaData, w: Proximity, variance: float, rho: float
) -> tuple[np.ndarray, np.ndarray]:
    """Of the spatial model: the diagonal of G V⁻¹ (m,), and ∂ EBLUP / ∂ own estimate (m,).

    EBLUP = H z + (I − H) X b with H = G V⁻¹ and b = Q X'V⁻¹z, Q the covariance of b.
    """
    at = spatial_likelihoods(data, w, variance, rho)
    m = len(data.y)
    g = np.zeros((m, m))
    if variance > 0.0:
        g = variance * np.linalg.inv(np.eye(m) + rho * (rho * w.square - w.both))
    v = g + np.diag(data.d)
    weights = np.linalg.solve(v, g).T
    rest = (data.x - weights @ data.x) @ at.covariance
    own = np.array(weights.diagonal())
    return own, own + np.einsum("ij,ij->i", rest, np.linalg.solve(v, data.x))
