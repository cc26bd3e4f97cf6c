"""Observed information of the generalised Pareto likelihood, and what follows from it."""

from __future__ import annotations

import numpy as np

from pybridge.tails._sums import Sums, likelihood_sums, moments

_NEAR_ZERO_SHAPE = 3e-5


def log_likelihood(*, excesses: np.ndarray, shape: float, scale: float) -> float:
    """The log-likelihood of (n,) excesses; -inf where an excess lies beyond the end point."""
    n = excesses.size
    y = excesses / scale
    if shape * float(y.max()) <= -1.0:
        return -np.inf
    a, b, _, _ = likelihood_sums(excesses=y, t=shape)
    # A / shape, the mean of -log P(X > x), has the limit mean y at shape 0.
    mean_exponential = a / shape if abs(shape) > 1e-12 else b
    return float(-n * (np.log(scale) + a + mean_exponential))


def observed_information(
    *, excesses: np.ndarray, shape: float, scale: float, sums: Sums | None = None
) -> np.ndarray:
    """Minus the second derivatives of the log-likelihood at any feasible point.

    Parameters
    ----------
    excesses : (n,) float64
    sums : the sums of the likelihood of excesses / scale at t = shape, where they are known

    Returns
    -------
    (2, 2) float64 in R's order of the parameters: scale, shape.
    """
    n = float(excesses.size)
    if sums is None:
        sums = likelihood_sums(excesses=excesses / scale, t=shape)
    a, b, c, _ = sums
    second_scale = (1.0 - (1.0 + shape) * (2.0 * b - shape * c)) / scale**2
    mixed = (b - (1.0 + shape) * c) / scale
    if abs(shape) < _NEAR_ZERO_SHAPE:
        m3, m4 = moments(excesses=excesses / scale, powers=(3, 4))
        second_shape = c - 2.0 * m3 / 3.0 + 1.5 * shape * m4
    else:
        second_shape = c + c / shape + 2.0 * b / shape**2 - 2.0 * a / shape**3
    second_scale, mixed, second_shape = -n * second_scale, -n * mixed, -n * second_shape
    return np.array([[second_scale, mixed], [mixed, second_shape]])


def inverse_information(information: np.ndarray) -> np.ndarray:
    """The inverse of a (2, 2) information matrix; NaN where it is not positive definite."""
    (p, q), (_, r) = information.tolist()
    # A determinant that is all rounding error, relative to its terms, is no information.
    # It is divided by the diagonal first: 1 / scale^2 squared would overflow in small units.
    left = 1.0 - (q / p) * (q / r) if p > 0 and r > 0 else np.nan
    if not left > 1e-12:
        return np.full((2, 2), np.nan)
    mixed = -(q / p) / r / left
    return np.array([[1.0 / p / left, mixed], [mixed, 1.0 / r / left]])


def expected_covariance(*, shape: float, scale: float, n: int) -> np.ndarray:
    """Smith's (1987) asymptotic covariance of (scale, shape) for shape > -1/2."""
    common = (1.0 + shape) / n
    return common * np.array([[2.0 * scale**2, -scale], [-scale, 1.0 + shape]])
