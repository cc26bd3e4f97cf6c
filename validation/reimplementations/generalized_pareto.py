"""The generalised Pareto fit by another route: shape by shape, with numerical derivatives.

The package maximises the profile likelihood in shape / scale by Newton's method on closed forms.
Here, for each shape on a grid the best scale is bracketed and found by golden section, the best
shape is refined in the same way on that profile, and the information comes from central
differences. Slow, obvious, and good for about eight digits. Statistics are written as in their
definitions.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import ndtri


def negative_log_likelihood(x, shape, scale):
    if scale <= 0:
        return np.inf
    z = np.asarray(x) / scale
    if abs(shape) < 1e-9:
        return len(x) * np.log(scale) + z.sum() - shape * (z**2 / 2 - z).sum()
    if (shape * z).min() <= -1:
        return np.inf
    return len(x) * np.log(scale) + (1 + 1 / shape) * np.log1p(shape * z).sum()


def best_scale(x, shape):
    """The scale that is best for a shape, and the negative log-likelihood there."""
    low = np.log(-shape * x.max()) + 1e-12 if shape < 0 else np.log(np.min(x)) - 3
    grid = np.linspace(low, np.log(x.max()) + 3, 60)
    values = [negative_log_likelihood(x, shape, np.exp(s)) for s in grid]
    k = int(np.argmin(values))
    bounds = (grid[max(k - 1, 0)], grid[min(k + 1, 59)])
    found = minimize_scalar(
        lambda s: negative_log_likelihood(x, shape, np.exp(s)),
        bounds=bounds,
        method="bounded",
        options={"xatol": 1e-12},
    )
    return np.exp(found.x), found.fun


def maximum_likelihood(x, shapes=None):
    """(shape, scale, log-likelihood) over shapes > -1; shape -1 and scale max x if that is best."""
    x = np.asarray(x, dtype=float) / np.max(x)
    shapes = np.concatenate([np.linspace(-0.995, 1, 81), np.geomspace(1.1, 40, 30)])
    profile = np.array([best_scale(x, s)[1] for s in shapes])
    inner = [
        k
        for k in range(1, len(shapes) - 1)
        if profile[k] <= profile[k - 1] and profile[k] <= profile[k + 1]
    ]
    best = (-1.0, 1.0, 0.0)
    for k in inner:
        found = minimize_scalar(
            lambda s: best_scale(x, s)[1],
            bounds=(shapes[k - 1], shapes[k + 1]),
            method="bounded",
            options={"xatol": 1e-10},
        )
        if -found.fun >= best[2]:
            best = (found.x, best_scale(x, found.x)[0], -found.fun)
    return best


def fit(x):
    """Maximum likelihood in the units of x."""
    unit = np.max(x)
    shape, scale, value = maximum_likelihood(x)
    return shape, scale * unit, value - len(x) * np.log(unit)


def information(x, shape, scale):
    """(2, 2) observed information of (scale, shape) by central differences."""
    h = np.array([1e-4 * scale, 1e-4])

    def value(a, b):
        return negative_log_likelihood(x, shape + b * h[1], scale + a * h[0])

    centre = value(0, 0)
    out = np.empty((2, 2))
    out[0, 0] = (value(1, 0) - 2 * centre + value(-1, 0)) / h[0] ** 2
    out[1, 1] = (value(0, 1) - 2 * centre + value(0, -1)) / h[1] ** 2
    mixed = value(1, 1) - value(1, -1) - value(-1, 1) + value(-1, -1)
    out[0, 1] = out[1, 0] = mixed / (4 * h[0] * h[1])
    return out


def profile_interval(x, level=0.95):
    """Shapes at which the profile likelihood has fallen by half the chi-squared quantile."""
    shape, scale, value = fit(x)
    drop = 0.5 * ndtri(0.5 + level / 2) ** 2

    def lacking(s):
        return best_scale(x, s)[1] + value - drop

    low = brentq(lacking, max(shape - 2, -0.99), shape, xtol=1e-10)
    return low, brentq(lacking, shape, shape + 4, xtol=1e-10)


def quantile_profile_interval(x, tail, level=0.95):
    """Profile interval of the excess exceeded with probability ``tail``."""
    shape, scale, value = fit(x)
    drop = 0.5 * ndtri(0.5 + level / 2) ** 2
    estimate = scale * (tail**-shape - 1) / shape

    def lacking(q):
        def loss(s):
            s = s if abs(s) > 1e-8 else 1e-8
            return negative_log_likelihood(x, s, q * s / (tail**-s - 1))

        grid = np.linspace(-0.9, 2.5, 200)
        values = np.array([loss(s) for s in grid])
        k = int(np.argmin(values))
        found = minimize_scalar(
            loss, bounds=(grid[max(k - 1, 0)], grid[min(k + 1, 199)]), method="bounded"
        )
        return found.fun + value - drop

    low = brentq(lacking, 0.3 * estimate, estimate, xtol=1e-8 * estimate)
    return low, brentq(lacking, estimate, 8 * estimate, xtol=1e-8 * estimate)


def distribution(x, shape, scale):
    """P(X <= x) in the textbook's form."""
    if shape == 0:
        return 1 - np.exp(-np.asarray(x) / scale)
    return 1 - (1 + shape * np.asarray(x) / scale) ** (-1 / shape)


def anderson_darling(x, shape, scale):
    """A^2 as n times the integral of (Fn - F)^2 / (F (1 - F)) dF, step by step in closed form."""
    u = np.sort(distribution(x, shape, scale))
    n = len(u)
    ends = np.concatenate([[0.0], u, [1.0]])
    total = 0.0
    for k in range(n + 1):
        a, b, share = ends[k], ends[k + 1], k / n
        # integral of (share - v)^2 / (v (1 - v)): -v + share^2 log v - (1 - share)^2 log(1 - v)
        total -= b - a
        if k > 0:
            total += share**2 * np.log(b / a)
        if k < n:
            total -= (1 - share) ** 2 * np.log((1 - b) / (1 - a))
    return n * total


def cramer_von_mises(x, shape, scale):
    """W^2 as n times the integral of (Fn - F)^2 dF, step by step."""
    u = np.sort(distribution(x, shape, scale))
    n = len(u)
    ends = np.concatenate([[0.0], u, [1.0]])
    shares = np.arange(n + 1) / n
    pieces = (ends[1:] - shares) ** 3 - (ends[:-1] - shares) ** 3
    return n * pieces.sum() / 3


def weighted_moments(x):
    """Shape and scale from the unbiased probability-weighted moments, by explicit sums."""
    x = sorted(x)
    n = len(x)
    first = sum(x) / n
    second = sum((n - 1 - i) * x[i] for i in range(n)) / (n * (n - 1))
    return 2 - first / (first - 2 * second), 2 * first * second / (first - 2 * second)


def tail_mean(scores, probability):
    """E[X | X >= q] with the sample quantile of type 7."""
    scores = np.sort(np.asarray(scores, dtype=float))
    place = probability * (len(scores) - 1)
    k = int(np.floor(place))
    q = scores[k] + (place - k) * (scores[min(k + 1, len(scores) - 1)] - scores[k])
    return np.mean([s for s in scores if s >= q])


def required_exceedances(shape_a, shape_b, difference, power, alpha):
    """Exceedances a model for the two-sample z-test of the shapes (Smith, 1987)."""
    z = ndtri(1 - alpha / 2) + ndtri(power)
    return int(np.ceil(((1 + shape_a) ** 2 + (1 + shape_b) ** 2) * z**2 / difference**2))
