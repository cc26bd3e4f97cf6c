"""Adjusted likelihoods of the area-level model, whose maximum keeps away from a variance of 0.

Maximum likelihood often puts the model variance at 0, where every domain gets its synthetic
estimate whatever its own data say. An adjusted likelihood multiplies the profile (AMPL) or the
restricted likelihood (AMRL) by a factor h(A) that is 0 at A = 0:

- Li and Lahiri (2010): h = A, a bias of order 1/m that the MSE takes off;
- Yoshimori and Lahiri (2014): h = (arctan Σ A/(A + d))^(1/m), whose bias is of smaller order.

References
----------
Li and Lahiri (2010), J. Multivariate Analysis 101, 882; Yoshimori and Lahiri (2014),
J. Multivariate Analysis 124, 281.
"""

from __future__ import annotations

import math

import numpy as np

from pybridge.errors import InputError

# Each with the likelihood that it adjusts.
BASE = {"AMRL": "REML", "AMPL": "ML", "AMRL_YL": "REML", "AMPL_YL": "ML"}
ADJUSTED_METHODS = tuple(BASE)


def base_of(method: str) -> str:
    """The likelihood that a method maximises, adjusted or not."""
    return BASE.get(method, method)


def adjustment(
    *, variance: np.ndarray, model_variance: np.ndarray, method: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """log h at model variances A, its first and its second derivative.

    Parameters
    ----------
    variance : numpy.ndarray
        Shape (m,), d.
    model_variance : numpy.ndarray
        Shape (k,), A. At A = 0: log h = −∞ and a slope of ∞.
    method : str
        One of ``ADJUSTED_METHODS``; anything else has h = 1.

    Returns
    -------
    value, slope, curvature : numpy.ndarray
        Shape (k,).
    """
    a = np.asarray(model_variance, dtype=np.float64)
    if method not in BASE:
        return np.zeros_like(a), np.zeros_like(a), np.zeros_like(a)
    zero = a <= 0
    safe = np.where(zero, 1.0, a)
    if not method.endswith("_YL"):
        found = np.log(safe), 1.0 / safe, -1.0 / safe**2
    else:
        found = _arctan(variance, safe)
    ends = (-math.inf, math.inf, -math.inf)
    value, slope, bend = (np.where(zero, end, part) for end, part in zip(ends, found))
    return value, slope, bend


def _arctan(variance: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """log(arctan(s))/m with s = Σ A/(A + d), and its derivatives."""
    weight = 1.0 / (a[:, None] + variance)
    s = a * weight.sum(axis=1)
    share = variance * weight * weight
    first = share.sum(axis=1)
    second = -2.0 * (share * weight).sum(axis=1)
    angle, square = np.arctan(s), 1.0 + s * s
    slope = first / (square * angle)
    bend = second / (square * angle) - slope * (slope + first * 2.0 * s / square)
    m = len(variance)
    return np.log(angle) / m, slope / m, bend / m


def highest_variance(
    *, variance: np.ndarray, mean_square: float, n_coefficients: int, method: str
) -> float:
    """A model variance beyond which the adjusted likelihood falls.

    With n = m − p (m for the profile likelihood), D the largest d and E the residual sum of
    squares: ½ tr ≥ ½ n/(A + D), ½ y'P²y ≤ ½ E/A², and the slope of log h is 1/A, or at most
    2.2 D/A² beyond D.
    """
    m = len(variance)
    largest = float(variance.max())
    square = mean_square * (m - n_coefficients)
    n = m - n_coefficients if base_of(method) == "REML" else m
    if method.endswith("_YL"):
        return max(largest, 2.0 * (square + 4.4 * largest) / n)
    return max(largest * (n + 2) / (n - 2), 2.0 * square / (n - 2))


def check_adjusted_counts(*, n_sampled: int, n_coefficients: int, method: str) -> None:
    """InputError where Li and Lahiri's factor A outgrows the likelihood, which has no maximum."""
    if method not in ("AMRL", "AMPL"):
        return
    spare = n_sampled - (n_coefficients if method == "AMRL" else 0)
    if spare <= 2:
        needed = n_coefficients + 2 if method == "AMRL" else 2
        raise InputError(
            f"too few domains for {method}: its likelihood grows without bound",
            code="too_few_domains",
            field="method",
            expected=f"more than {needed} domains with a direct estimate",
            got=f"{n_sampled} domains with a direct estimate, {n_coefficients} coefficients",
            hint="AMRL_YL and AMPL_YL exist with fewer domains, and so do REML and ML.",
        )
