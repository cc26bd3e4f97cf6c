"""The nested-error model of units: its likelihood by the ratio of its variances, and the maximum.

y_di = x_di'β + v_d + e_di, v_d ~ N(0, σ_v²), e_di ~ N(0, σ_e²) (Battese, Harter and Fuller 1988,
JASA 83, 28). With λ = σ_v²/σ_e² the covariance within a domain is σ_e² (I + λ 11'), whose inverse
is I − λ/(1 + nλ) 11': sums over domains are all that is needed, and β and σ_e² have closed forms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class NestedOptimum:
    """The variances, and the log-likelihood as lme4 defines it (restricted: without log|X'X|)."""

    refvar: float
    errorvar: float
    log_likelihood: float


@dataclass(frozen=True)
class _Sums:
    n: np.ndarray  # (D,)
    xy: np.ndarray  # (D, p + 1), sums of [x, y] by domain
    gram: np.ndarray  # (p + 1, p + 1)


def nested_optimum(y: np.ndarray, x: np.ndarray, codes: np.ndarray, method: str) -> NestedOptimum:
    """The maximum over σ_v² ≥ 0 and σ_e² > 0.

    Parameters
    ----------
    y : numpy.ndarray
        Shape (n,).
    x : numpy.ndarray
        Shape (n, p).
    codes : numpy.ndarray
        Shape (n,), the domain of each unit, in [0, D).
    method : {"REML", "ML"}
    """
    from scipy.optimize import minimize_scalar

    both = np.column_stack([x, y])
    n = np.bincount(codes)
    by_domain = np.array([np.bincount(codes, weights=column) for column in both.T]).T
    sums = _Sums(n, by_domain, both.T @ both)
    grid = np.concatenate([[0.0], np.geomspace(1e-5, 1e5, 120)])
    heights = [_profile(sums, ratio, method)[0] for ratio in grid]
    best = int(np.argmax(heights))
    ratio = float(grid[best])
    if best > 0 or heights[1] > heights[0]:
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
        found = minimize_scalar(
            lambda r: -_profile(sums, r, method)[0],
            bounds=(low, high),
            method="bounded",
            options={"xatol": 1e-9 * high},
        )
        if -found.fun > heights[best]:
            ratio = float(found.x)
    height, error = _profile(sums, ratio, method)
    return NestedOptimum(ratio * error, error, height)


def nested_log_likelihood(
    y: np.ndarray, x: np.ndarray, codes: np.ndarray, method: str, ratio: float
) -> float:
    """The log-likelihood at σ_v²/σ_e², the other parameters at their best."""
    both = np.column_stack([x, y])
    by_domain = np.array([np.bincount(codes, weights=column) for column in both.T]).T
    return _profile(_Sums(np.bincount(codes), by_domain, both.T @ both), ratio, method)[0]


def _profile(sums: _Sums, ratio: float, method: str) -> tuple[float, float]:
    """Log-likelihood and σ_e² at a ratio of variances."""
    weight = ratio / (1.0 + sums.n * ratio)
    gram = sums.gram - (sums.xy * weight[:, None]).T @ sums.xy
    p = len(gram) - 1
    beta = np.linalg.solve(gram[:p, :p], gram[:p, p])
    square = float(gram[p, p] - gram[p, :p] @ beta)
    n = int(sums.n.sum())
    free = n - p if method == "REML" else n
    error = max(square, 1e-300) / free
    twice = free * (1.0 + math.log(2.0 * math.pi * error)) + float(np.log1p(sums.n * ratio).sum())
    if method == "REML":
        twice += float(np.linalg.slogdet(gram[:p, :p])[1])
    return -0.5 * twice, error
