"""The fixed point of the measurement error model, which emdi's iteration may miss.

θ_i = x_i'β + v_i with x_i known up to an error of covariance C_i. With weights
w_i = 1/(σ² + d_i + β'C_iβ): β = (X'WX − Σ w C)⁻¹ X'Wz, and
σ² = max(0, Σ [(z − x'β)² − d − β'C β] / (m − p)).

References
----------
Ybarra and Lohr (2008), Biometrika 95, 919.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_MOST_STEPS = 1000


@dataclass(frozen=True)
class MeasurementFit:
    """``model_variance``, ``coefficients`` (p,), and whether the iteration came to rest."""

    model_variance: float
    coefficients: np.ndarray
    converged: bool


def measurement_error_fit(
    *,
    estimate: np.ndarray,
    variance: np.ndarray,
    covariates: np.ndarray,
    errors: np.ndarray,
) -> MeasurementFit:
    """Iterate weights and coefficients to the fixed point.

    Parameters
    ----------
    estimate, variance : numpy.ndarray
        Shape (m,).
    covariates : numpy.ndarray
        Shape (m, p).
    errors : numpy.ndarray
        Shape (p, p, m).
    """
    m, p = covariates.shape
    size = np.sqrt((covariates**2).mean(axis=0))
    x = covariates / size
    c = errors / np.outer(size, size)[:, :, None]
    weight = np.ones(m)
    a, beta = np.nan, np.full(p, np.nan)
    for _ in range(_MOST_STEPS):
        before = a
        beta = _coefficients(weight, estimate, x, c)
        spread = np.einsum("i,ijm,j->m", beta, c, beta)
        residual = estimate - x @ beta
        a = max(0.0, float((residual**2 - variance - spread).sum()) / (m - p))
        weight = 1.0 / np.maximum(a + variance + spread, 1e-300)
        if abs(a - before) <= 1e-12 * max(a, float(np.median(variance))):
            return MeasurementFit(a, beta / size, True)
    return MeasurementFit(a, beta / size, False)


def _coefficients(weight: np.ndarray, z: np.ndarray, x: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Directions in which the errors explain (almost) all of the covariates are left out."""
    gram = x.T @ (x * weight[:, None])
    noise = c @ weight
    values, vectors = np.linalg.eigh(gram)
    root = (vectors / np.sqrt(values)) @ vectors.T
    share, axes = np.linalg.eigh(root @ noise @ root)
    kept = (1.0 - share) > 1.0 / len(z)
    half = root @ axes[:, kept]
    return half @ ((half.T @ (x.T @ (weight * z))) / (1.0 - share[kept]))
