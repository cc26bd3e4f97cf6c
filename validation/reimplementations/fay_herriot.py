"""The Fay-Herriot model, the slow and obvious way.

A twin to test against, not to use: dense m x m matrices throughout; the likelihood as a textbook
writes it, differentiated by complex steps instead of by hand; the model variance by a dense grid
and bracketing; the MSE from its definition, with numerical derivatives of the predictor's weights.

z = X b + v + e, v ~ N(0, A), e_i ~ N(0, d_i), V = A I + diag(d).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

COMPLEX_STEP = 1e-25


@dataclass
class Fit:
    """The answers: A, beta (p,), estimate, mse and derivative (m,), the two log-likelihoods."""

    model_variance: float
    coefficients: np.ndarray
    coefficient_covariance: np.ndarray
    estimate: np.ndarray
    mse: np.ndarray
    derivative: np.ndarray
    log_likelihood: float
    restricted_log_likelihood: float


def log_likelihood(A, z, d, X, *, restricted):
    """The log-likelihood with beta profiled out; works for a complex A (derivatives)."""
    m, p = X.shape
    V = np.diag(A + d)
    W = np.linalg.inv(V)
    information = X.T @ W @ X
    beta = np.linalg.solve(information, X.T @ W @ z)
    r = z - X @ beta
    value = -0.5 * (m * np.log(2 * np.pi) + np.sum(np.log(np.diag(V))) + r @ W @ r)
    if restricted:
        # log det by its derivative-friendly form: numpy's slogdet drops the complex phase.
        value += 0.5 * p * np.log(2 * np.pi)
        value -= 0.5 * np.sum(np.log(np.linalg.eigvals(information).astype(complex)))
        value += 0.5 * np.linalg.slogdet(X.T @ X)[1]
    return value if np.iscomplexobj(A) else np.real(value)


def derivative_of(function, A):
    """d function / d A by a complex step: no subtraction, so no cancellation."""
    return np.imag(function(A + 1j * COMPLEX_STEP)) / COMPLEX_STEP


def moment_equation(A, z, d, X):
    """Weighted residual sum of squares minus its expectation m - p (Fay and Herriot 1979)."""
    W = np.linalg.inv(np.diag(A + d))
    beta = np.linalg.solve(X.T @ W @ X, X.T @ W @ z)
    r = z - X @ beta
    return r @ W @ r - (X.shape[0] - X.shape[1])


def estimating_function(A, z, d, X, method):
    if method == "FH":
        return moment_equation(A, z, d, X)
    return derivative_of(lambda a: log_likelihood(a, z, d, X, restricted=method == "REML"), A)


def moments_of_prasad_and_rao(z, d, X):
    m, p = X.shape
    H = X @ np.linalg.inv(X.T @ X) @ X.T
    r = z - H @ z
    return max(0.0, (r @ r - np.trace((np.eye(m) - H) @ np.diag(d))) / (m - p))


def find_model_variance(z, d, X, method, n_grid=400):
    """All maxima on a dense grid, each bracketed and solved; the highest is the answer."""
    if method == "PR":
        return moments_of_prasad_and_rao(z, d, X)
    positive = d[d > 0]
    low, high = positive.min() * 1e-3, 10 * max(positive.max(), np.var(z))
    grid = np.exp(np.linspace(np.log(low), np.log(high), n_grid))
    has_zero = (d == 0).any()
    if not has_zero:
        grid = np.concatenate([[0.0], grid])
    values = np.array([estimating_function(A, z, d, X, method) for A in grid])
    candidates = [
        brentq(estimating_function, left, right, args=(z, d, X, method), xtol=1e-300, rtol=1e-14)
        for left, right, s, t in zip(grid[:-1], grid[1:], values[:-1], values[1:])
        if s > 0 >= t
    ]
    if values[0] <= 0 and not has_zero:
        candidates.append(0.0)
    if method == "FH":
        return max(candidates)
    heights = [log_likelihood(A, z, d, X, restricted=method == "REML") for A in candidates]
    return candidates[int(np.argmax(heights))]


def predictor_matrix(A, d, X):
    """H with estimate = H z at a fixed A: the best linear unbiased predictor."""
    m = len(d)
    W = np.linalg.inv(np.diag(A + d))
    fit = X @ np.linalg.solve(X.T @ W @ X, X.T @ W)
    return fit + A * W @ (np.eye(m) - fit)


def variance_and_bias(A, z, d, X, method):
    """Asymptotic variance and bias of the estimator of A."""
    m, _ = X.shape
    W = np.linalg.inv(np.diag(A + d))
    information = 0.5 * np.trace(W @ W)
    if method in ("REML", "ML"):
        bias = 0.0
        if method == "ML":
            # -(1/2I) d/dA log|X'V^-1 X| with its sign: Datta and Lahiri (2000).
            def half_log_det(a):
                inner = X.T @ np.linalg.inv(np.diag(a + d)) @ X
                return 0.5 * np.sum(np.log(np.linalg.eigvals(inner).astype(complex)))

            bias = derivative_of(half_log_det, A) / information
        return 1 / information, bias
    if method == "FH":
        trace = np.trace(W)
        return 2 * m / trace**2, 2 * (m * np.trace(W @ W) - trace**2) / trace**3
    return 2 * np.trace(np.diag(A + d) @ np.diag(A + d)) / m**2, 0.0


def mean_squared_errors(A, z, d, X, method):
    """MSE of H z as a predictor of theta at fixed A, plus what estimating A adds.

    First part from its definition: error H z - theta = (H - I) v + H e, beta dropping out.
    """
    m = len(d)
    H = predictor_matrix(A, d, X)
    own = np.diag(A * (H - np.eye(m)) @ (H - np.eye(m)).T + H @ np.diag(d) @ H.T)
    variance, bias = variance_and_bias(A, z, d, X, method)
    # g3: variance of the weight's derivative against the marginal error (Kackar and Harville).
    slope = np.imag((A + 1j * COMPLEX_STEP) / (A + 1j * COMPLEX_STEP + d)) / COMPLEX_STEP
    g3 = slope**2 * (A + d) * variance
    share = 1 - A / (A + d)
    return own + 2 * g3 - bias * share**2


def fit(z, d, X, method="REML"):
    """The whole fit of m domains, all of them with an estimate."""
    A = find_model_variance(z, d, X, method)
    W = np.linalg.inv(np.diag(A + d))
    covariance = np.linalg.inv(X.T @ W @ X)
    H = predictor_matrix(A, d, X)
    return Fit(
        model_variance=A,
        coefficients=covariance @ X.T @ W @ z,
        coefficient_covariance=covariance,
        estimate=H @ z,
        mse=mean_squared_errors(A, z, d, X, method),
        derivative=np.diag(H),
        log_likelihood=float(log_likelihood(A, z, d, X, restricted=False)),
        restricted_log_likelihood=float(log_likelihood(A, z, d, X, restricted=True)),
    )
