"""Variants of the Fay-Herriot model, the slow and obvious way.

Twins to test against, not to use: dense m x m matrices; likelihoods differentiated by complex
steps; moments by Gauss-Hermite and Gauss-Legendre sums instead of closed forms; the robust
equations handed to a general root finder; benchmarking as a constrained minimum, its MSE from the
covariance of all errors.

z = X b + v + e, v ~ N(0, A), e_i ~ N(0, d_i), V = A I + diag(d).
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq, root
from scipy.special import erfc

from validation.reimplementations.fay_herriot import (
    derivative_of,
    find_model_variance,
    log_likelihood,
    predictor_matrix,
    variance_and_bias,
)

# ------------------------------------------------------------------------- adjusted likelihoods

RESTRICTED = ("AMRL", "AMRL_YL")


def log_adjustment(A, d, method):
    """log of the factor that the likelihood is multiplied with; works for a complex A."""
    if not method.endswith("_YL"):
        return np.log(A)
    return np.log(np.arctan(np.sum(A / (A + d)))) / len(d)


def adjusted_likelihood(A, z, d, X, method):
    value = log_likelihood(A, z, d, X, restricted=method in RESTRICTED)
    return value + log_adjustment(A, d, method)


def adjusted_variance(z, d, X, method, n_grid=300):
    """The highest maximum over a dense grid of log A."""

    def slope(log_variance):
        return derivative_of(
            lambda a: adjusted_likelihood(a, z, d, X, method), np.exp(log_variance)
        )

    high = np.log(max(d.max(), np.var(z))) + 6
    grid = np.linspace(np.log(d.min()) - 14, high, n_grid)
    slopes = [slope(node) for node in grid]
    found = [
        np.exp(brentq(slope, left, right, xtol=1e-13, rtol=1e-14))
        for left, right, s, t in zip(grid[:-1], grid[1:], slopes[:-1], slopes[1:])
        if s > 0 >= t
    ]
    heights = [np.real(adjusted_likelihood(a, z, d, X, method)) for a in found]
    return found[int(np.argmax(heights))]


def adjusted_mse(A, z, d, X, method):
    """g1 + g2 + 2 g3 less the bias of the estimator of A, for domains with an estimate.

    The maximiser moves by the slope of the adjustment over the information; Yoshimori and Lahiri's
    is of smaller order and left out.
    """
    base = "REML" if method in RESTRICTED else "ML"
    variance, bias = variance_and_bias(A, z, d, X, base)
    if not method.endswith("_YL"):
        bias += variance * derivative_of(np.log, A)
    return eblup_error_covariance(A, d, X, variance, bias).diagonal()


def eblup_error_covariance(A, d, X, variance, bias):
    """Of the errors of all domains: the linear predictor's, and what estimating A adds to each."""
    m = len(d)
    H = predictor_matrix(A, d, X)
    linear = A * (H - np.eye(m)) @ (H - np.eye(m)).T + H @ np.diag(d) @ H.T
    share = d / (A + d)
    return linear + np.diag(2 * share**2 * variance / (A + d) - bias * share**2)


# ------------------------------------------------------------------------------ transformations

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(80)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


def correction(A, d, h):
    """By how much the variance of the EBLUP falls short of A; d = inf without an estimate."""
    gamma = 0.0 if np.isinf(d) else A / (A + d)
    variance_of_eblup = gamma**2 * (0 if np.isinf(d) else A + d) + (1 - gamma**2) * h
    return A - variance_of_eblup


def kappa_of(A, d, h, way):
    gamma = 0.0 if np.isinf(d) else A / (A + d)
    return {"naive": 0.0, "bc_sm": 0.5 * A * (1 - gamma), "bc": 0.5 * correction(A, d, h)}[way]


def log_error(A, d, h, way):
    """E (exp(phi_hat + kappa) - exp(phi))^2 for mu = 0, by a double sum over both normals."""
    gamma = 0.0 if np.isinf(d) else A / (A + d)
    kappa = kappa_of(A, d, h, way)
    V = A - correction(A, d, h)
    C = gamma * A + (1 - gamma) * gamma * h
    # phi_hat = sqrt(V) g, phi = C / sqrt(V) g + rest.
    one, two = np.meshgrid(_NODES, _NODES, indexing="ij")
    weight = np.outer(_WEIGHTS, _WEIGHTS)
    guess = np.sqrt(V) * one if np.real(V) > 0 else 0 * one
    slope = C / np.sqrt(V) if np.real(V) > 0 else 0.0
    phi = slope * one + np.sqrt(A - slope**2) * two
    return np.sum(weight * (np.exp(guess + kappa) - np.exp(phi)) ** 2)


def log_mse(linear, A, d, h, variance, bias, way):
    """One MSE: the error at known A, what estimating A adds, less the bias of the error."""
    gamma = 0.0 if np.isinf(d) else A / (A + d)
    V = A - correction(A, d, h)
    step = 1e-4 * A
    at = [log_error(A + k * step, d, 0.0, way) for k in (-2, -1, 0, 1, 2)]
    first = (at[0] - 8 * at[1] + 8 * at[3] - at[4]) / (12 * step)
    second = (-at[0] + 16 * at[1] - 30 * at[2] + 16 * at[3] - at[4]) / (12 * step**2)
    F = log_error(A, d, h, way)
    excess = (first * bias + 0.5 * second * variance) / F
    rest = F / (1 + excess) if excess > 0 else F * (1 - excess)

    def guess(a, r):
        weight = 0.0 if np.isinf(d) else a / (a + d)
        return weight * r + kappa_of(a, d, 0.0, way)

    r = _NODES * (0.0 if np.isinf(d) else np.sqrt(A + d))
    moved = np.array([derivative_of(lambda a, x=x: guess(a, x), A) for x in r])
    level = np.exp(2 * (gamma * r + kappa_of(A, d, h, way)))
    third = variance * np.sum(_WEIGHTS * moved**2 * level)
    return np.exp(2 * (linear - V)) * (rest + third)


def squared_sine(phi):
    return np.sin(np.clip(phi, 0, np.pi / 2)) ** 2


def squared_sine_mean(mean, variance, power=1):
    """E g^power over N(mean, variance), by Gauss-Legendre between the ends."""
    if variance <= 0:
        return squared_sine(mean) ** power
    s = np.sqrt(variance)
    low, high = max(0.0, mean - 12 * s), min(np.pi / 2, mean + 12 * s)
    total = 0.5 * erfc((np.pi / 2 - mean) / s / np.sqrt(2))
    if low < high:
        nodes, weights = np.polynomial.legendre.leggauss(200)
        phi = 0.5 * (high - low) * nodes + 0.5 * (high + low)
        density = np.exp(-0.5 * ((phi - mean) / s) ** 2) / (s * np.sqrt(2 * np.pi))
        total += 0.5 * (high - low) * np.sum(weights * density * np.sin(phi) ** (2 * power))
    return total


def arcsin_answer(linear, A, d, h, mse):
    """One domain's estimate and MSE as a share; ``mse`` is that of the linear predictor."""
    estimate = squared_sine_mean(linear, max(correction(A, d, h), 0.0))
    first, second = (squared_sine_mean(linear, mse, power) for power in (1, 2))
    return estimate, second - 2 * estimate * first + estimate**2


# ---------------------------------------------------------------------------------------- robust


def psi(u, k):
    return np.clip(u, -k, k)


def robust_fit(z, d, X, k):
    """Coefficients, A, domain effects.

    The coefficients by a general root finder at every A; A by a grid from above and bracketing;
    the effects by bracketing each.
    """
    # E psi^2 of a standard normal, by Gauss-Legendre between the knees and the tails.
    nodes, weights = np.polynomial.legendre.leggauss(200)
    values = (k * nodes) ** 2 * np.exp(-0.5 * (k * nodes) ** 2) / np.sqrt(2 * np.pi)
    K = k * np.sum(weights * values) + k**2 * erfc(k / np.sqrt(2))

    def coefficients(A):
        s = np.sqrt(A + d)

        def equations(beta):
            return X.T @ (psi((z - X @ beta) / s, k) / s)

        start = np.linalg.lstsq(X / s[:, None], z / s, rcond=None)[0]
        return root(equations, start, method="hybr", options={"xtol": 1e-14}).x

    def balance(log_variance):
        tau = np.exp(log_variance) + d
        scores = psi((z - X @ coefficients(np.exp(log_variance))) / np.sqrt(tau), k)
        return np.sum((scores**2 - K) / tau)

    grid = np.linspace(np.log(np.var(z)) + 2, np.log(d.min()) - 5, 80)
    signs = [balance(node) for node in grid]
    last = next(j for j, value in enumerate(signs) if value > 0)
    A = np.exp(brentq(balance, grid[last], grid[last - 1], xtol=1e-14, rtol=1e-14))
    beta = coefficients(A)
    effects = []
    for r, noise in zip(z - X @ beta, d):

        def difference(u, r=r, noise=noise):
            left = psi((r - u) / np.sqrt(noise), k) / np.sqrt(noise)
            return left - psi(u / np.sqrt(A), k) / np.sqrt(A)

        reach = abs(r) + 1e-9
        effects.append(brentq(difference, -reach, reach, xtol=1e-14, rtol=1e-14))
    return beta, A, np.array(effects)


def robust_mse(z, d, X, beta, A, effects, k):
    """The prediction as W z with W fixed: variance of W z - theta, and its bias."""
    m = len(z)
    tau = A + d
    r = z - X @ beta
    omega = np.minimum(1, k / np.abs(r / np.sqrt(tau))) / tau
    fit = X @ np.linalg.solve(X.T @ np.diag(omega) @ X, X.T @ np.diag(omega))
    W = fit + np.diag(effects / r) @ (np.eye(m) - fit)
    error = A * (W - np.eye(m)) @ (W - np.eye(m)).T + W @ np.diag(d) @ W.T
    return error.diagonal() + (W @ X @ beta - X @ beta) ** 2


def robust_degrees_of_freedom(m, p, k):
    """m times the efficiency of Huber's scale, less p: moments of psi by sums, slopes by steps.

    For the scale equation E psi(Z / s)^2 = K the variance of log s^2 is Var psi^2 over the squared
    slope in log s^2, per domain; maximum likelihood's is 2.
    """
    nodes, weights = np.polynomial.legendre.leggauss(200)

    def moment(power, log_variance=0.0):
        knee = min(k * np.exp(0.5 * log_variance), 12.0)  # beyond that a normal has nothing
        z = knee * nodes
        values = (z * np.exp(-0.5 * log_variance)) ** power * np.exp(-0.5 * z * z)
        return knee * np.sum(weights * values) / np.sqrt(2 * np.pi) + k**power * erfc(
            k * np.exp(0.5 * log_variance) / np.sqrt(2)
        )

    step = 1e-4
    slope = (moment(2, step) - moment(2, -step)) / (2 * step)
    return max(1.0, m * 2 * slope**2 / (moment(4) - moment(2) ** 2) - p)


# ---------------------------------------------------------------------------------- benchmarking


def benchmarked(estimate, penalty, w, total):
    """The minimum of sum penalty (t - estimate)^2 under w't = total, by its Lagrange equations."""
    m = len(estimate)
    left = np.zeros((m + 1, m + 1))
    left[:m, :m] = np.diag(2 * penalty)
    left[:m, m] = left[m, :m] = w
    return np.linalg.solve(left, np.append(2 * penalty * estimate, total))[:m]


def known_total_mse(C, penalty, w):
    """Of estimates with error covariance C brought to the truth's own total."""
    m = len(w)
    move = np.column_stack([benchmarked(np.eye(m)[j], penalty, w, 0.0) for j in range(m)])
    return (move @ C @ move.T).diagonal()


def direct_total_mse(A, d, X, penalty, w, extra):
    """Of linear predictors brought to w'z; ``extra`` (m,) is what estimating A adds to each."""
    m = len(w)
    H = predictor_matrix(A, d, X)
    move = np.column_stack([benchmarked(np.eye(m)[j], penalty, w, 0.0) for j in range(m)])
    gain = benchmarked(np.zeros(m), penalty, w, 1.0)
    B = move @ H + np.outer(gain, w)
    error = A * (B - np.eye(m)) @ (B - np.eye(m)).T + B @ np.diag(d) @ B.T
    return error.diagonal() + extra


# -------------------------------------------------------------------------------- finite domains


def finite_domains(z, d, c, X, A, outside):
    """BLUP and MSE at a known A of theta = x'b + v + eps, Var(eps) = c, from z = theta + e.

    ``outside`` marks domains without z. General theory: theta is predicted by its regression on z.
    """
    seen = ~outside
    G = np.diag(A + c)
    V = (G + np.diag(np.where(seen, d, 0.0)))[np.ix_(seen, seen)]
    cross = G[:, seen]
    S = X[seen]
    Q = np.linalg.inv(S.T @ np.linalg.solve(V, S))
    beta = Q @ S.T @ np.linalg.solve(V, z[seen])
    weights = np.linalg.solve(V, cross.T).T
    estimate = X @ beta + weights @ (z[seen] - S @ beta)
    rest = X - weights @ S
    mse = (G - weights @ cross.T + rest @ Q @ rest.T).diagonal()
    return estimate, mse


# ------------------------------------------------------------------------------------- bootstrap


def bootstrap_errors(A, beta, d, X, seed, n_replicates):
    """Squared errors (n_replicates, m) of the whole fit, REML, on draws from the fitted model.

    The textbook loop: draw the truth and the estimates, fit, predict; no part is worked out.
    """
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n_replicates):
        truth = X @ beta + np.sqrt(A) * rng.normal(size=len(d))
        z = truth + np.sqrt(d) * rng.normal(size=len(d))
        again = find_model_variance(z, d, X, "REML", n_grid=40)
        found.append((predictor_matrix(again, d, X) @ z - truth) ** 2)
    return np.array(found)
