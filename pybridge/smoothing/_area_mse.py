"""Analytic mean squared errors of the EBLUP, one rule a method.

References
----------
Prasad and Rao (1990), JASA 85, 163; Datta and Lahiri (2000), Statistica Sinica 10, 613;
Datta, Rao and Smith (2005), Biometrika 92, 183; Li and Lahiri (2010), J. Multivariate Analysis 101,
882; Yoshimori and Lahiri (2014), J. Multivariate Analysis 124, 281.
"""

from __future__ import annotations

import numpy as np

from pybridge.smoothing._adjusted import base_of


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
        ``"REML"``, ``"ML"``, ``"FH"``, ``"PR"`` or an adjusted likelihood.
    """
    m = len(weight)
    w2 = weight * weight
    sum1, sum2 = float(weight.sum()), float(w2.sum())
    if base_of(method) in ("REML", "ML"):
        bias = 0.0
        if base_of(method) == "ML":  # Datta and Lahiri, eq. 4.7
            bias = -float(np.dot(w2, np.einsum("ij,ij->i", half, half))) / sum2
        if method in ("AMRL", "AMPL") and model_variance > 0:  # Li and Lahiri, theorem 1
            bias += 2.0 / (model_variance * sum2)
        # Yoshimori and Lahiri's factor adds less than 1/m.
        return 2.0 / sum2, bias
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
