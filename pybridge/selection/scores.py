"""Cross-validation scores of one candidate, per domain: numbers only.

Notation of every function: m domains, K folds; ``rest`` (K, m) is the candidate fitted without each
fold, ``whole`` (m,) on the whole sample; ``ht_fold`` (K, m) is Horvitz–Thompson on each fold;
``reference`` and ``reference_rest`` are the direct estimate R on the whole sample (m,) and without
each fold (K, m). NaN where an estimate does not exist, and then in the score.
"""

from __future__ import annotations

import numpy as np


def naive_score(*, rest: np.ndarray, ht_fold: np.ndarray) -> np.ndarray:
    """Naive cross-validation (1/K) Σ (M(−k) − HT(k))², shape (m,)."""
    return ((rest - ht_fold) ** 2).mean(axis=0)


def adjusted_score(*, rest: np.ndarray, ht_fold: np.ndarray) -> np.ndarray:
    """The naive score less its fold-level bias, shape (m,).

    (1/K) Σ (m_k − HT(k))² − (1/K) Σ h_k² + (2/K) Σ (m_k − m̄) h_k, h_k = HT(k) − mean HT; this
    equals (1/K) Σ (m_k − mean HT)². Source: Dong and Li (2026).
    """
    return ((rest - ht_fold.mean(axis=0)) ** 2).mean(axis=0)


def debiased_score(
    *, rest: np.ndarray, reference: np.ndarray, variance: np.ndarray, covariance: np.ndarray
) -> np.ndarray:
    """DB-CV, (1/K) Σ (M(−k) − R)² − Var(R) + 2 Cov(R, M), shape (m,).

    From E[(M − R)²] = MSE(M) + Var(R) − 2 Cov(R, M) for a design-unbiased R. For M = R it
    estimates Var(R).
    """
    return ((rest - reference) ** 2).mean(axis=0) - variance + 2.0 * covariance


def sure_score(
    *, whole: np.ndarray, reference: np.ndarray, variance: np.ndarray, covariance: np.ndarray
) -> np.ndarray:
    """The same identity on the whole sample, without refits, shape (m,)."""
    return (whole - reference) ** 2 - variance + 2.0 * covariance


def jackknife_covariance(
    *, reference_rest: np.ndarray, rest: np.ndarray, fpc_factor: np.ndarray
) -> np.ndarray:
    """Delete-a-group covariance of R and M over the folds, shape (m,).

    φ (K−1)/K Σ_k (R(−k) − mean)(M(−k) − mean). φ is Var(R) over what this estimates for R itself:
    Var(R) without the finite population correction, which deleting groups cannot see, and more
    where the folds of a stratum are unequal or fewer than K.
    """
    k = len(rest)
    about_reference = reference_rest - reference_rest.mean(axis=0)
    about_candidate = rest - rest.mean(axis=0)
    return fpc_factor * (k - 1) / k * (about_reference * about_candidate).sum(axis=0)


def size_factor(n_folds: int, fpc_factor: np.ndarray) -> np.ndarray:
    """What a direct estimator's variance is over that of the same on (K−1)/K of the sample, (m,).

    Without finite population correction (K−1)/K; with φ = 1 − n/N the variance of the smaller
    sample is (K/(K−1) − n/N)/(1 − n/N) = 1 + 1/((K−1) φ) times larger, and on average over unequal
    folds too, with the φ of `jackknife_covariance`.
    """
    part = (n_folds - 1) * fpc_factor
    return part / (part + 1.0)


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """Mean over scored domains and its standard error, sd/√n; NaN where it does not exist."""
    kept = values[np.isfinite(values)]
    if kept.size == 0:
        return float("nan"), float("nan")
    error = kept.std(ddof=1) / np.sqrt(kept.size) if kept.size > 1 else float("nan")
    return float(kept.mean()), float(error)
