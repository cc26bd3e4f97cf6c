"""Means and mean squared errors on the scale of the data, of a model on a transformed scale.

φ_i = x_i'β + v_i is the domain's value on the model's scale, φ̂ its EBLUP, and θ = g(φ) is wanted.
g(φ̂) is biased. With γ = σ²/(σ² + d) and h = x'(X'V⁻¹X)⁻¹x, the EBLUP at a known σ² has the
variance γσ² + (1 − γ²)h, short of the variance σ² of φ by

    c = σ²(1 − γ) − (1 − γ²)h,

so the mean of g over N(φ̂, c) has the expectation of g(φ): exactly for the exponential, and for
the squared sine while φ stays in [0, π/2].

Logarithm. θ̂ = exp(φ̂ + κ), κ = c/2 (``bc``), σ²(1 − γ)/2 (``bc_sm``, Slud and Maiti)
or 0 (``naive``). φ̂ and φ are jointly normal, so the MSE at known σ² is a sum of lognormal moments,
e^{2μ} F with F = e^{2V + 2κ} − 2e^{κ + (V + σ² + 2C)/2} + e^{2σ²}, V = Var φ̂, C = Cov(φ̂, φ). What
estimating σ² adds is E(∂θ̂/∂σ²)² Var(σ̂²), a lognormal moment again; what F is biased by at an
estimated σ², F'b + ½F'' Var(σ̂²), is divided out, so that the result stays positive.
e^{2μ} is estimated by e^{2φ̂ − 2V}, so that a domain's error goes with its own level.

Squared sine. φ outside [0, π/2] stands for a share of 0 or 1: g(φ) = sin² of φ cut to [0, π/2].
θ̂ = E g over N(φ̂, c); its MSE is E(g − θ̂)² over N(φ̂, M), M the MSE of φ̂. Both are sums of
normal probabilities and of characteristic functions cut to an interval, by the complex error
function.

References
----------
Slud and Maiti (2006), J. Royal Statistical Society B 68, 239; Rao and Molina (2015), Small Area
Estimation, section 6.6; Sugasawa and Kubokawa (2017), Computational Statistics and Data Analysis
114, 47.
"""

from __future__ import annotations

import math

import numpy as np

TRANSFORMATIONS = ("no", "log", "arcsin")
BACK_TRANSFORMATIONS = {"log": ("bc", "bc_sm", "naive"), "arcsin": ("bc", "naive")}
_TOP = math.pi / 2
# Beyond this deviation the density hardly bends between the ends, and the exponentials overflow.
_WIDEST = 8.0


def to_model_scale(
    *,
    estimate: np.ndarray,
    variance: np.ndarray,
    transformation: str,
    n_effective: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Direct estimates and their variances (m,) on the model's scale, to first order.

    log: log z and d/z². arcsin: arcsin √z and 1/(4n), n the effective sample size.
    """
    if transformation == "log":
        return np.log(estimate), variance / estimate**2
    if transformation == "arcsin":
        return np.arcsin(np.sqrt(estimate)), 1.0 / (4.0 * np.asarray(n_effective))
    return estimate, variance


def from_model_scale(value: np.ndarray, transformation: str) -> np.ndarray:
    """g: the exponential, or the squared sine of the value cut to [0, π/2]."""
    if transformation == "log":
        return np.asarray(np.exp(value))
    if transformation == "arcsin":
        return np.asarray(np.sin(np.clip(value, 0.0, _TOP)) ** 2)
    return value


def missing_variance(
    *, share: np.ndarray, spread: np.ndarray, model_variance: np.ndarray | float
) -> np.ndarray:
    """c (…, m), by how much the variance of φ̂ falls short of that of φ.

    Parameters
    ----------
    share : numpy.ndarray
        Shape (…, m), 1 − γ.
    spread : numpy.ndarray
        Shape (…, m), h.
    model_variance : float or numpy.ndarray
        σ², or shape (…, 1).
    """
    return np.asarray(model_variance * share - share * (2.0 - share) * spread)


def predicted(
    linear: np.ndarray,
    *,
    share: np.ndarray,
    spread: np.ndarray,
    model_variance: np.ndarray | float,
    transformation: str,
    backtransformation: str,
) -> np.ndarray:
    """θ̂ (…, m) from φ̂ (…, m); the other arguments as in `missing_variance`."""
    if backtransformation == "naive":
        return from_model_scale(linear, transformation)
    if backtransformation == "bc_sm":
        return np.asarray(np.exp(linear + 0.5 * model_variance * share))
    missing = missing_variance(share=share, spread=spread, model_variance=model_variance)
    if transformation == "log":
        return np.asarray(np.exp(linear + 0.5 * missing))
    return squared_sine_moments(linear, np.maximum(missing, 0.0))[0]


def log_mse(
    linear: np.ndarray,
    *,
    variance: np.ndarray,
    spread: np.ndarray,
    model_variance: float,
    variance_of_variance: float,
    bias: float,
    backtransformation: str,
) -> np.ndarray:
    """MSE (m,) of θ̂ = exp(φ̂ + κ) on the scale of the data.

    Parameters
    ----------
    linear : numpy.ndarray
        Shape (m,), φ̂.
    variance : numpy.ndarray
        Shape (m,), d on the model's scale; infinite where there is no direct estimate.
    spread : numpy.ndarray
        Shape (m,), h.
    model_variance, variance_of_variance, bias : float
        σ² and, of its estimator, variance and bias.
    backtransformation : {"bc", "bc_sm", "naive"}
    """
    a = model_variance
    known, absent = variance == 0, np.isinf(variance)
    d = np.where(absent | known, 1.0, variance)
    total = a + d
    share = np.where(known, 0.0, np.where(absent, 1.0, d / total))
    gamma = 1.0 - share
    pull = np.where(absent | known, 0.0, share / total)  # ∂γ/∂σ²
    weight = 0.0 if backtransformation == "naive" else 1.0
    kappa = 0.5 * weight * a * share
    if backtransformation == "bc":
        kappa = kappa - 0.5 * (1.0 - gamma * gamma) * spread
    var = gamma * a + (1.0 - gamma * gamma) * spread
    cov = gamma * a + share * gamma * spread
    # F, each exponent over that of the largest term: what is left is exact to rounding.
    f = np.exp(2.0 * a) * (
        np.expm1(2.0 * (var + kappa - a))
        - 2.0 * np.expm1(kappa + 0.5 * (var + 2.0 * cov - 3.0 * a))
    )
    slope = 0.5 * weight * share * share  # ∂κ/∂σ²
    tilt = slope + 2.0 * gamma * pull * np.where(absent, 0.0, total)
    moved = tilt * tilt + np.where(absent, 0.0, pull * share)
    third = np.exp(2.0 * (gamma * a + kappa)) * moved * variance_of_variance
    first, second = _slopes(a, share, pull, weight)
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = np.where(f > 0, (first * bias + 0.5 * second * variance_of_variance) / f, 0.0)
    rest = f / (1.0 + np.maximum(excess, 0.0)) - np.minimum(excess, 0.0) * f
    return np.where(known, 0.0, np.exp(2.0 * (linear - var)) * (rest + third))


def _slopes(
    a: float, share: np.ndarray, pull: np.ndarray, weight: float
) -> tuple[np.ndarray, np.ndarray]:
    """F' and F'' (m,) over σ², at h = 0: exponents are combinations of σ² and q = γσ²."""
    q = (1.0 - share) * a
    q1, q2 = 1.0 - share * share, 2.0 * share * pull
    first, second = np.zeros_like(share), np.zeros_like(share)
    for factor, straight, bent in (
        (1.0, weight, 2.0 - weight),
        (-2.0, 0.5 * (1.0 + weight), 0.5 * (3.0 - weight)),
        (1.0, 2.0, 0.0),
    ):
        size = factor * np.exp(straight * a + bent * q)
        rise = straight + bent * q1
        first += size * rise
        second += size * (rise * rise + bent * q2)
    return first, second


def arcsin_mse(linear: np.ndarray, estimate: np.ndarray, *, mse: np.ndarray) -> np.ndarray:
    """MSE (m,) of θ̂ as a share, from the MSE of φ̂ (m,); to first order where that is negative."""
    mean, square = squared_sine_moments(linear, np.maximum(mse, 0.0))
    found = np.maximum(square - 2.0 * estimate * mean + estimate**2, 0.0)
    return np.where(mse < 0, mse * np.sin(2.0 * linear) ** 2, np.where(mse == 0, 0.0, found))


def squared_sine_moments(mean: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """E g and E g² (…, m) of g(φ), φ ~ N(mean, variance), φ cut to [0, π/2].

    sin² = (1 − cos 2φ)/2 and sin⁴ = (3 − 4 cos 2φ + cos 4φ)/8 between the ends, 1 above.
    """
    from scipy.special import ndtr

    at = from_model_scale(mean, "arcsin")
    sharp = variance <= 0
    deviation = np.sqrt(np.where(sharp, 1.0, variance))
    low, high = -mean / deviation, (_TOP - mean) / deviation
    inside, above = ndtr(high) - ndtr(low), ndtr(-high)
    two = _cut_cosine(2.0, mean, deviation, low, high)
    four = _cut_cosine(4.0, mean, deviation, low, high)
    first = 0.5 * (inside - two) + above
    second = (3.0 * inside - 4.0 * two + four) / 8.0 + above
    return np.where(sharp, at, first), np.where(sharp, at * at, second)


def _cut_cosine(
    frequency: float, mean: np.ndarray, deviation: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """E[cos(fφ); 0 < φ < π/2] (…, m): the characteristic function with its ends cut off."""
    from scipy.special import erf

    s = np.minimum(deviation, _WIDEST)
    low, high = low * deviation / s, high * deviation / s
    turn = 1j * frequency * s
    ends = 0.5 * (erf((high - turn) / math.sqrt(2)) - erf((low - turn) / math.sqrt(2)))
    wave = np.real(np.exp(1j * frequency * mean - 0.5 * (frequency * s) ** 2) * ends)
    # What is left is the bend of the density, which goes with the third power of its width.
    return np.asarray(wave * (s / deviation) ** 3)
