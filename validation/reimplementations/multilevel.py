"""Multilevel models of estimates with a known covariance: dense matrices, maximised by a search.

y ~ N(Xβ, V + Σ_r σ_r² Z_r R_r Z_r'), the restricted or the ordinary likelihood over the σ_r² ≥ 0 by
Nelder and Mead's search in their roots, from several starts (Rao and Molina 2015, ch. 5).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize


def same_group(labels: Sequence[object], correlation: dict | None = None) -> np.ndarray:
    """Z R Z' (m, m) of a factor; R the identity, or correlations by pairs of labels."""
    m = len(labels)
    out = np.zeros((m, m))
    for i, j in itertools.product(range(m), range(m)):
        if correlation is None:
            out[i, j] = 1.0 if labels[i] == labels[j] else 0.0
        else:
            out[i, j] = correlation[labels[i], labels[j]]
    return out


def log_likelihood(
    variances: np.ndarray,
    y: np.ndarray,
    V: np.ndarray,
    X: np.ndarray,
    parts: Sequence[np.ndarray],
    *,
    reml: bool,
) -> tuple[float, np.ndarray]:
    """The log-likelihood (restricted: with ½ log|X'X|), and β."""
    total = V + sum(s * part for s, part in zip(variances, parts))
    inverse = np.linalg.inv(total)
    information = X.T @ inverse @ X
    beta = np.linalg.solve(information, X.T @ inverse @ y)
    residual = y - X @ beta
    count = len(y) - (X.shape[1] if reml else 0)
    twice = count * np.log(2 * np.pi) + np.linalg.slogdet(total)[1] + residual @ inverse @ residual
    if reml:
        twice += np.linalg.slogdet(information)[1] - np.linalg.slogdet(X.T @ X)[1]
    return -0.5 * float(twice), beta


def fit(
    y: np.ndarray,
    V: np.ndarray,
    X: np.ndarray,
    parts: Sequence[np.ndarray],
    *,
    reml: bool = True,
    fixed: Sequence[float] | None = None,
) -> dict[str, np.ndarray]:
    """The maximum; ``fixed`` holds NaN for the variances to be searched."""
    held = np.full(len(parts), np.nan) if fixed is None else np.asarray(fixed, dtype=float)
    free = np.isnan(held)
    unit = float(np.var(y))

    def all_of(roots: np.ndarray) -> np.ndarray:
        found = held.copy()
        found[free] = unit * roots**2
        return found

    def down(roots: np.ndarray) -> float:
        return -log_likelihood(all_of(roots), y, V, X, parts, reml=reml)[0]

    best = None
    for start in itertools.product((0.3, 1.0), repeat=int(free.sum())):
        found = np.array(start)
        for _ in range(2):
            options = {"xatol": 1e-10, "fatol": 1e-13, "maxiter": 4000}
            found = minimize(down, found, method="Nelder-Mead", options=options).x
        if best is None or down(found) < down(best):
            best = found
    variances = all_of(best)
    height, beta = log_likelihood(variances, y, V, X, parts, reml=reml)
    return {"sigma2": variances, "coefficients": beta, "log-likelihood": np.array([height])}
