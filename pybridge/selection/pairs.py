"""Pairs of candidates: Dong and Li's comparison, and the candidates that may be the best.

Notation as in ``scores``: C candidates, m domains, K folds.
"""

from __future__ import annotations

import numpy as np

# Draws from the joint distribution of the comparisons: the quantile is good to about 0.02.
_DRAWS = 10_000


def dong_li_comparison(
    *, rest: np.ndarray, adjusted: np.ndarray, variance_ht: np.ndarray, z: float
) -> tuple[np.ndarray, np.ndarray]:
    """Differences of adjusted scores, and the bounds within which a pair stays undecided.

    Δ = mean_i (adjusted_A − adjusted_B) is decided only outside ± [mean_i 2 √(d_i Var(A_i − B_i))
    + z SE(Δ)], d_i the variance of HT and Var(A_i − B_i) its jackknife over the folds: the first
    part is the most that the realised error of the sample's HT, which every fold inherits, can do
    to the difference (Cauchy and Schwarz).

    Parameters
    ----------
    rest : numpy.ndarray
        Shape (C, K, m).
    adjusted : numpy.ndarray
        Shape (C, m), NaN where a domain was not scored.
    variance_ht : numpy.ndarray
        Shape (m,), d_i.
    z : float
        Normal quantile.

    Returns
    -------
    difference, bound : numpy.ndarray
        Shape (C, C); NaN where a candidate has no score.

    References
    ----------
    Dong and Li (2026).
    """
    count, k, _ = rest.shape
    difference, bound = np.full((2, count, count), np.nan)
    about = rest - rest.mean(axis=1, keepdims=True)
    for a in range(count):
        gap = adjusted[a] - adjusted
        spread = (k - 1) / k * ((about[a] - about) ** 2).sum(axis=1)
        kept = np.isfinite(gap) & np.isfinite(spread) & np.isfinite(variance_ht)
        n = kept.sum(axis=1)
        own = np.where(kept, gap, 0.0)
        scored = np.where(n > 0, n, 1)
        mean = own.sum(axis=1) / scored
        square = np.where(kept, (gap - mean[:, None]) ** 2, 0.0).sum(axis=1)
        error = np.sqrt(square / np.where(n > 1, n - 1, 1) / scored)
        worst = 2.0 * np.sqrt(np.where(kept, variance_ht * spread, 0.0))
        difference[a] = np.where(n > 0, mean, np.nan)
        bound[a] = np.where(n > 1, worst.sum(axis=1) / scored + z * error, np.nan)
    return difference, bound


def may_be_best(scores: np.ndarray, *, level: float) -> np.ndarray:
    """The candidates that cannot be told from the best, shape (C,), bool.

    A candidate is out where some other one is better by more than q_c standard errors of their
    paired difference over domains. q_c is the ``level`` quantile of the largest of its C − 1
    standardised differences, which are taken as jointly t with the domains' own correlations: so
    the truly best candidate stays in with probability ``level``, however many compete.

    Parameters
    ----------
    scores : numpy.ndarray
        Shape (C, m), NaN where a domain was not scored, the same for all candidates; all NaN for a
        candidate without a score.
    level : float
        Confidence level of the whole set.

    References
    ----------
    Hsu (1981), Annals of Statistics 9, 1026: simultaneous comparisons with the best. Mogstad,
    Romano, Shaikh and Wilhelm (2024), Review of Economic Studies 91, 476: one-sided tests of every
    candidate against all others.
    """
    alive = np.isfinite(scores).any(axis=1)
    inside = np.zeros(len(scores), dtype=bool)
    common = np.isfinite(scores[alive]).all(axis=0) if alive.any() else np.zeros(0, dtype=bool)
    values = scores[alive][:, common] if alive.any() else scores[:0]
    count, n = values.shape
    if count == 0:
        return inside
    if count == 1 or n < 2:
        inside[alive] = True
        return inside
    # Best first, so that the draws do not depend on the order in which candidates were given.
    order = np.lexsort((values.std(axis=1), values.mean(axis=1)))
    values = values[order]
    about = values - values.mean(axis=1, keepdims=True)
    covariance = about @ about.T / (n - 1) / n
    mean = values.mean(axis=1)
    gap = mean[:, None] - mean
    variance = np.diag(covariance)[:, None] + np.diag(covariance) - 2.0 * covariance
    # Equal candidates differ by rounding only.
    size = np.diag(covariance)[:, None] + np.diag(covariance)
    error = np.sqrt(np.where(variance > 1e-12 * size, variance, 0.0))
    quantile = _largest_quantiles(covariance, error, n - 1, level)
    apart = np.where(error > 0, gap / np.where(error > 0, error, 1.0), 0.0)
    inside[np.flatnonzero(alive)[order]] = (apart <= quantile[:, None]).all(axis=1)
    return inside


def _largest_quantiles(
    covariance: np.ndarray, error: np.ndarray, degrees: int, level: float
) -> np.ndarray:
    """For every candidate (C,), the quantile of the largest of its standardised differences."""
    count = len(covariance)
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    rng = np.random.default_rng(20_260_101)  # of the method, not of the data: always the same
    draws = rng.standard_normal((_DRAWS, count)) @ root.T
    draws /= np.sqrt(rng.chisquare(degrees, size=_DRAWS) / degrees)[:, None]
    scale = np.where(error > 0, error, np.inf)
    out = np.empty(count)
    for c in range(count):
        out[c] = np.quantile(((draws[:, c, None] - draws) / scale[c]).max(axis=1), level)
    return out
