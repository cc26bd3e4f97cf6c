"""Estimates that add up to a total, and what that does to their mean squared errors.

All three methods move the estimates along one direction, θ̂ᵇ = θ̂ + a (t − Σ w θ̂), Σ w a = 1:

    difference   a_i = 1/Σw
    ratio        a_i = θ̂_i/Σ w θ̂
    mse          a_i = M_i/Σ w M        (M the MSE: what is least sure moves most)

which minimises Σ φ (θ̂ᵇ − θ̂)² with φ = w, w/θ̂ and w/M (Wang, Fuller and Qu 2008; Datta et
al. 2011). The MSE depends on what the total is:

- known, t = Σ w θ (census, register): the error of θ̂ᵇ is that of θ̂ less a times that of Σ w θ̂,

      M_i − 2 a_i (C w)_i + a_i² w'Cw  (+ a_i² Var(t) where it is an estimate from elsewhere),

  C the covariance of the errors, (1 − γ)²-weighted in what the common coefficients add;
- the direct estimates' own, t = Σ w z: Σ w (z − θ̂) does not correlate with the errors of the BLUP,

      M_i + a_i² [Σ w²(1 − γ)²(σ² + d) − (Σ w(1 − γ)x)' Q (Σ w(1 − γ)x)]

  (Steorts and Ghosh 2013, theorem 1, for the difference).

The directions of ``ratio`` and ``mse`` depend on the data; there this is a first-order formula, and
the parametric bootstrap the full one.

References
----------
Wang, Fuller and Qu (2008), Survey Methodology 34, 29; Datta, Ghosh, Steorts and Maples (2011), Test
20, 574; Steorts and Ghosh (2013), Statistica Sinica 23, 749; Rao and Molina (2015), Small Area
Estimation, section 6.4.6.
"""

from __future__ import annotations

import numpy as np

METHODS = ("difference", "ratio", "mse")


def directions(
    method: str, *, weight: np.ndarray, estimate: np.ndarray, mse: np.ndarray
) -> np.ndarray:
    """a (…, m) of a method.

    Parameters
    ----------
    weight : numpy.ndarray
        Shape (m,).
    estimate, mse : numpy.ndarray
        Shape (…, m).
    """
    if method == "difference":
        return np.broadcast_to(1.0 / weight.sum(), estimate.shape)
    size = estimate if method == "ratio" else mse
    return np.asarray(size / (size @ weight)[..., None])


def benchmarked(
    estimate: np.ndarray, direction: np.ndarray, *, weight: np.ndarray, total: np.ndarray
) -> np.ndarray:
    """θ̂ᵇ (…, m) for totals (…)."""
    gap = total - estimate @ weight
    return np.asarray(estimate + direction * gap[..., None])


def known_total_mse(
    *,
    mse: np.ndarray,
    share: np.ndarray,
    covariates: np.ndarray,
    coefficient_covariance: np.ndarray,
    weight: np.ndarray,
    direction: np.ndarray,
    total_variance: float,
) -> np.ndarray:
    """MSE (m,) of estimates brought to the true total.

    Parameters
    ----------
    mse, share, weight, direction : numpy.ndarray
        Shape (m,): M, 1 − γ, w, a.
    covariates : numpy.ndarray
        Shape (m, p).
    coefficient_covariance : numpy.ndarray
        Shape (p, p), Q.
    total_variance : float
        Var(t), of an estimate from elsewhere; 0 for a known total.
    """
    common = share[:, None] * covariates
    own = mse - np.einsum("ij,jk,ik->i", common, coefficient_covariance, common)
    with_total = own * weight + common @ (coefficient_covariance @ (common.T @ weight))
    whole = float(weight @ with_total)
    return np.asarray(
        mse - 2.0 * direction * with_total + direction**2 * (whole + total_variance)
    )


def direct_total_mse(
    *,
    mse: np.ndarray,
    share: np.ndarray,
    covariates: np.ndarray,
    coefficient_covariance: np.ndarray,
    weight: np.ndarray,
    direction: np.ndarray,
    variance: np.ndarray,
) -> np.ndarray:
    """MSE (m,) of estimates brought to the direct estimates' total; ``variance`` is σ² + d (m,)."""
    moved = weight * share
    common = covariates.T @ moved
    gap = float((moved * moved) @ variance) - float(common @ coefficient_covariance @ common)
    return np.asarray(mse + direction**2 * max(gap, 0.0))
