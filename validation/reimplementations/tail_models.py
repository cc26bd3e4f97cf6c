"""Tails with covariates, and as a point process, by a search that sees the likelihood only.

The package climbs by Newton's method on closed derivatives. Here the likelihood is written as in
its definition and handed to Powell's method and the simplex in turns, from several starts, and an
interval's ends are roots of a profile found in the same way. Slow, obvious, and good for about five
digits of a standard error.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import ndtri

LINKS = {"identity": lambda eta: eta, "exp": np.exp}


def regression_loss(x, scale_columns, shape_columns, links):
    """Minus the log-likelihood of excesses x, as a function of all coefficients."""
    p = scale_columns.shape[1]

    def loss(theta):
        with np.errstate(over="ignore"):
            scale = LINKS[links[0]](scale_columns @ theta[:p])
            shape = LINKS[links[1]](shape_columns @ theta[p:])
        if np.any(scale <= 0) or np.any(shape <= -1) or not np.all(np.isfinite(scale)):
            return 1e10
        w = 1 + shape * x / scale
        if np.any(w <= 0):
            return 1e10
        small = np.abs(shape) < 1e-7
        safe = np.where(small, 1.0, shape)
        tail = np.where(small, (1 + shape) * x / scale, (1 + 1 / safe) * np.log(w))
        return np.sum(np.log(scale) + tail)

    return loss


def process_loss(x, threshold, periods):
    """Minus the log-likelihood of a Poisson process of exceedances x: loc, scale, shape."""

    def loss(theta):
        loc, scale, shape = theta
        edge = 1 + shape * (threshold - loc) / scale
        w = 1 + shape * (x - loc) / scale
        if scale <= 0 or shape <= -1 or edge <= 0 or np.any(w <= 0) or abs(shape) < 1e-9:
            return 1e10
        with np.errstate(over="ignore"):
            rate = periods * edge ** (-1 / shape)
        return len(x) * np.log(scale) + (1 + 1 / shape) * np.sum(np.log(w)) + rate

    return loss


def level_loss(x, threshold, exceedances_per_period):
    """Minus the log-likelihood of exceedances x: return level and shape."""
    ones = np.ones((len(x), 1))
    plain = regression_loss(x - threshold, ones, ones, ("identity", "identity"))

    def loss(theta):
        level, shape = theta
        if abs(shape) < 1e-9:
            return 1e10
        scale = (level - threshold) * shape / (exceedances_per_period**shape - 1)
        return plain(np.array([scale, shape]))

    return loss


def search(loss, start, rounds=4):
    """The lowest point near a start: the simplex and Powell's method in turns."""
    theta = np.asarray(start, dtype=float)
    for _ in range(rounds):
        theta = minimize(
            loss,
            theta,
            method="Nelder-Mead",
            options={"xatol": 1e-10, "fatol": 1e-13, "maxiter": 6000, "maxfev": 6000},
        ).x
        theta = minimize(loss, theta, method="Powell", options={"xtol": 1e-11, "ftol": 1e-15}).x
    return theta, -loss(theta)


def fit(loss, starts):
    """Parameters and log-likelihood at the best of several starts."""
    found = [search(loss, start) for start in starts if loss(np.asarray(start, float)) < 1e9]
    return max(found, key=lambda one: one[1])


def profile_interval(loss, best, value, index, width, level=0.95):
    """Where the profile of one parameter has fallen by half the chi-squared quantile."""
    drop = 0.5 * ndtri(0.5 + level / 2) ** 2
    free = [k for k in range(len(best)) if k != index]
    last = np.array(best, dtype=float)

    def lacking(held):
        def inner(rest):
            theta = np.empty(len(best))
            theta[free], theta[index] = rest, held
            return loss(theta)

        rest, top = search(inner, last[free], rounds=2)
        last[free] = rest
        return value - top - drop

    ends = []
    for side in (-1, 1):
        last[:] = best
        inside, outside = best[index], best[index] + side * width
        while lacking(outside) < 0:
            inside, outside = outside, outside + side * width
        ends.append(brentq(lacking, inside, outside, xtol=1e-7 * width))
    return tuple(ends)
