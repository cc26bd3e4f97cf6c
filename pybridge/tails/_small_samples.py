"""Two estimators for small samples: probability-weighted moments and a penalised likelihood."""

from __future__ import annotations

import math

import numpy as np

from pybridge.tails._maximum import Maximum, profile_maximum
from pybridge.tails._sums import Sums, likelihood_sums


def weighted_moments(*, excesses: np.ndarray) -> tuple[float, float]:
    """Shape and scale by probability-weighted moments (Hosking and Wallis, 1987).

    Uses the unbiased moments: the weight of the i-th smallest of n excesses is (n - i)/(n - 1).
    """
    ordered = np.sort(excesses)
    n = ordered.size
    first = float(ordered.mean())
    second = float(ordered @ np.arange(n - 1, -1, -1)) / (n * (n - 1.0))
    shape = 2.0 - first / (first - 2.0 * second)
    scale = 2.0 * first * second / (first - 2.0 * second)
    return shape, scale


def weighted_moments_covariance(*, shape: float, scale: float, n: int) -> np.ndarray:
    """Asymptotic covariance of (scale, shape) of the above; NaN for shapes of 1/2 and more.

    Hosking and Wallis (1987), equation for k > -1/2 with k = -shape.
    """
    if not shape < 0.5:
        return np.full((2, 2), np.nan)
    k = -shape
    common = n * (1 + 2 * k) * (3 + 2 * k)
    of_scale = scale**2 * (7 + 18 * k + 11 * k**2 + 2 * k**3)
    of_shape = (1 + k) * (2 + k) ** 2 * (1 + k + 2 * k**2)
    mixed = -scale * (2 + k) * (2 + 6 * k + 7 * k**2 + 2 * k**3)  # sign turned with the shape's
    return np.array([[of_scale, mixed], [mixed, of_shape]]) / common


def penalised_maximum(*, excesses: np.ndarray, strength: float, power: float) -> Maximum:
    """Maximum of the likelihood times the penalty of Coles and Dixon (1999).

    The penalty is exp(-strength (1/(1 - shape) - 1)^power) for shapes in (0, 1), 1 below, 0 above.
    It depends on the shape alone, so its maximum lies on the shape's profile, which has an
    explicit form in t = shape / scale: shape(t) = 1/m - 1, m = mean 1/(1 + t x), where the
    profile's derivative with respect to the shape is n (A - shape) / shape^2.
    """
    best = profile_maximum(excesses=excesses)
    if best.shape <= 0.0:
        return best  # unpenalised there, and no penalised value elsewhere can be larger
    from scipy.optimize import brentq

    n, largest = excesses.size, float(excesses.max())
    r = excesses / largest

    def slope(v: float) -> float:
        shape, _, sums = shape_profile_point(r, math.expm1(v))
        if shape >= 1.0:
            return -1e300
        odds = shape / (1.0 - shape)
        penalty = strength * power * odds ** (power - 1.0) / (1.0 - shape) ** 2
        return n * (sums.log_mean - shape) / shape**2 - penalty

    low, high = 1e-4, math.log1p(best.t * largest)
    if high <= low or slope(low) <= 0.0:
        mean = float(r.mean())
        value = -n * (math.log(mean * largest) + 1.0)
        y = r / mean
        sums = Sums(0.0, 1.0, float(np.mean(y**2)), float(np.mean(y**3)))
        return Maximum(0.0, mean * largest, value, False, 0.0, sums)
    theta = math.expm1(brentq(slope, low, high, xtol=1e-13, rtol=1e-14))
    shape, ratio, sums = shape_profile_point(r, theta)
    value = -n * (math.log(ratio * largest) + sums.log_mean * (1.0 + 1.0 / shape))
    return Maximum(shape, ratio * largest, value, False, theta / largest, sums.divided(ratio))


def penalty_information(*, shape: float, strength: float, power: float) -> float:
    """Minus the second derivative of the log penalty with respect to the shape."""
    if shape <= 0.0:
        return 0.0
    odds, left = shape / (1.0 - shape), 1.0 - shape
    first = power * (power - 1.0) * odds ** (power - 2.0) / left**4 if power != 1.0 else 0.0
    return strength * (first + 2.0 * power * odds ** (power - 1.0) / left**3)


def shape_profile_point(excesses: np.ndarray, t: float) -> tuple[float, float, Sums]:
    """The shape for which this t is best, with its scale and the sums (t not 0)."""
    sums = likelihood_sums(excesses=excesses, t=t)
    kept = 1.0 - t * sums.ratio_mean  # mean of 1 / (1 + t x)
    scale = sums.ratio_mean / kept
    return t * scale, scale, sums
