"""Analytic mean squared errors of the EBLUP, one rule a method.

References
----------
Prasad and Rao (1990), JASA 85, 163; Datta and Lahiri (2000), Statistica Sinica 10, 613;
Datta, Rao and Smith (2005), Biometrika 92, 183.
"""

from __future__ import annotations

import numpy as np


def variance_and_bias(
    *, weight: np.ndarray, half: np.ndarray, model_variance: float, method: str
) -> tuple[float, float]:
    """Asymptotic variance of the estimator of the model variance, and its bias.

    Parameters
    ----------
    weight : numpy.ndarray
        Shape (m,), 1/(σ² + d) of the sampled domains.
    half : numpy.ndarray
        Shape (m, p), Z with ZZ' = X (X'WX)⁻¹ X'.
    model_variance : float
        σ².
    method : str
        ``"REML"``, ``"ML"``, ``"FH"`` or ``"PR"``.
    """
    m = len(weight)
    w2 = weight * weight
    sum1, sum2 = float(weight.sum()), float(w2.sum())
    if method == "REML":
        return 2.0 / sum2, 0.0
    if method == "ML":  # Datta and Lahiri, eq. 4.7
        trace = float(np.dot(w2, np.einsum("ij,ij->i", half, half)))
        return 2.0 / sum2, -trace / sum2
    if method == "FH":  # Datta, Rao and Smith, eqs. 9 and 13
        return 2.0 * m / sum1**2, 2.0 * (m * sum2 - sum1**2) / sum1**3
    positive = weight[weight > 0]
    return 2.0 * float((1.0 / positive**2).sum()) / m**2, 0.0


def eblup_mse(
    *,
    variance: np.ndarray,
    spread: np.ndarray,
    model_variance: float,
    variance_of_variance: float,
    bias: float,
) -> np.ndarray:
    """MSE (m,) of the EBLUP: g₁ + g₂ + 2 g₃ − b B².

    A domain without a direct estimate is the limit d → ∞ of the same formula: B = 1, g₃ = 0,
    σ² + x'Cov(β)x − b. A domain with d = 0 is known: 0.

    Parameters
    ----------
    variance : numpy.ndarray
        Shape (m,), d; infinite where there is no direct estimate.
    spread : numpy.ndarray
        Shape (m,), x'(X'WX)⁻¹x.
    model_variance, variance_of_variance, bias : float
        σ², and what `variance_and_bias` returns.
    """
    known, absent = variance == 0, np.isinf(variance)
    d = np.where(absent, 1.0, variance)
    total = np.where(known, 1.0, model_variance + d)
    share = np.where(absent, 1.0, d / total)
    share2 = share * share
    g1 = np.where(absent, model_variance, model_variance * share)
    g3 = np.where(absent, 0.0, share2 * variance_of_variance / total)
    return g1 + share2 * spread + 2.0 * g3 - bias * share2
