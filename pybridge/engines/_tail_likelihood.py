"""Log-likelihoods of excesses, with closed first and second derivatives, and how they are climbed.

evd and ismev search with differences of the likelihood; here it is Newton's method. Two models: the
generalised Pareto distribution with covariates in scale and shape, and the point process.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

LINKS = ("identity", "exp")
# Below this size of shape times excess over scale the series is exact to rounding.
_SERIES = 2e-3
_STEPS = 200

Function = Callable[[np.ndarray], tuple[float, np.ndarray, np.ndarray]]


class Peak(NamedTuple):
    """Where a likelihood is largest; ``settled`` says that the slope is 0 there."""

    theta: np.ndarray
    value: float
    settled: bool


def log_part(*, z: np.ndarray, shape: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """L = log(1 + shape z)/shape with its first and second derivative in the shape, each (n,)."""
    product = shape * z
    small = np.abs(product) < _SERIES
    safe = np.where(small, 1.0, shape)
    w = 1.0 + product
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.log1p(product) / safe
        first = (z / w - value) / safe
        second = (-((z / w) ** 2) - 2.0 * first) / safe
    k = np.arange(8)
    if small.any():
        p, x = product[small], z[small]
        powers = (-p[:, np.newaxis]) ** k
        value[small] = x * (powers @ (1.0 / (k + 1)))
        first[small] = -(x**2) * (powers @ ((k + 1) / (k + 2)))
        second[small] = x**3 * (powers @ ((k + 1) * (k + 2) / (k + 3)))
    return value, first, second


def regression(
    *, excesses: np.ndarray, scale_design: np.ndarray, shape_design: np.ndarray, links: tuple
) -> Function:
    """The likelihood of (n,) excesses; parameters are p of the scale, then q of the shape.

    Parameters
    ----------
    scale_design, shape_design : (n, p) and (n, q)
    links : two of "identity", "exp": of the scale and of the shape
    """
    p = scale_design.shape[1]

    def at(theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        scale, scale_1, scale_2 = _linked(scale_design @ theta[:p], links[0])
        shape, shape_1, shape_2 = _linked(shape_design @ theta[p:], links[1])
        if not (np.all(scale > 0) and np.all(np.isfinite(scale) & np.isfinite(shape))):
            return _nowhere(theta.size)
        z = excesses / scale
        w = 1.0 + shape * z
        if not np.all(w > 0):
            return _nowhere(theta.size)
        log, log_1, log_2 = log_part(z=z, shape=shape)
        value = -np.log(scale) - shape * log - log
        by_scale = (-1.0 + (1.0 + shape) * z / w) / scale
        by_shape = -z / w - log_1
        both_scale = (1.0 - (1.0 + shape) * z * (2.0 + shape * z) / w**2) / scale**2
        mixed = z * (1.0 - z) / w**2 / scale
        both_shape = (z / w) ** 2 - log_2
        gradient = np.concatenate(
            [scale_design.T @ (by_scale * scale_1), shape_design.T @ (by_shape * shape_1)]
        )
        blocks = (
            (both_scale * scale_1**2 + by_scale * scale_2),
            (mixed * scale_1 * shape_1),
            (both_shape * shape_1**2 + by_shape * shape_2),
        )
        top = (scale_design.T * blocks[0]) @ scale_design
        side = (scale_design.T * blocks[1]) @ shape_design
        low = (shape_design.T * blocks[2]) @ shape_design
        return float(value.sum()), gradient, np.block([[top, side], [side.T, low]])

    return _quiet(at)


def _linked(eta: np.ndarray, link: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A parameter and its derivatives in the linear predictor."""
    if link == "identity":
        return eta, np.ones_like(eta), np.zeros_like(eta)
    with np.errstate(over="ignore"):
        value = np.exp(eta)
    return value, value, value


def plain_excesses(excesses: np.ndarray) -> Function:
    """The likelihood of (n,) excesses without covariates: (scale, shape)."""
    ones = np.ones((excesses.size, 1))
    return regression(
        excesses=excesses,
        scale_design=ones,
        shape_design=ones,
        links=("identity", "identity"),
    )


def point_process(*, exceedances: np.ndarray, threshold: float, periods: float) -> Function:
    """The likelihood of a Poisson process of (n,) exceedances: (loc, scale, shape).

    Parameters
    ----------
    periods : how many periods were observed, evd's length(x)/npp
    """

    def at(theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        loc, scale, shape = theta.tolist()
        if not (scale > 0 and np.all(np.isfinite(theta))):
            return _nowhere(3)
        z = (exceedances - loc) / scale
        w = 1.0 + shape * z
        edge = np.array([(threshold - loc) / scale])
        if not (np.all(w > 0) and 1.0 + shape * edge[0] > 0):
            return _nowhere(3)
        log, log_1, log_2 = log_part(z=z, shape=np.full(z.size, shape))
        # A = (1 + shape) L of every exceedance, and L at the threshold.
        tails, tails_2 = _chained(
            scale,
            z,
            ((1.0 + shape) / w, z / w + log_1),
            (-shape * (1.0 + shape) / w**2, (1.0 - z) / w**2, log_2 - (z / w) ** 2),
        )
        u, u_1, u_2 = log_part(z=edge, shape=np.array([shape]))
        w_u = 1.0 + shape * edge
        edges, edges_2 = _chained(
            scale, edge, (1.0 / w_u, u_1), (-shape / w_u**2, -edge / w_u**2, u_2)
        )
        rate = periods * math.exp(min(-float(u[0]), 700.0))
        n = exceedances.size
        gradient = -tails + rate * edges
        hessian = -tails_2 + rate * (edges_2 - np.outer(edges, edges))
        gradient[1] -= n / scale
        hessian[1, 1] += n / scale**2
        value = -n * math.log(scale) - (1.0 + shape) * float(log.sum()) - rate
        return value, gradient, hessian

    return _quiet(at)


def _chained(
    scale: float,
    z: np.ndarray,
    first: tuple[np.ndarray, np.ndarray],
    second: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives in (loc, scale, shape) of a sum over z = (x - loc)/scale.

    Parameters
    ----------
    first : in z and in the shape, each (n,)
    second : in z twice, in both, in the shape twice, each (n,)
    """
    by_z, by_shape = first
    twice, mixed, shape_twice = second
    gradient = np.array([-by_z.sum() / scale, -(by_z @ z) / scale, by_shape.sum()])
    loc_scale = (twice @ z + by_z.sum()) / scale**2
    scale_twice = (twice @ z**2 + 2.0 * (by_z @ z)) / scale**2
    loc_shape, scale_shape = -mixed.sum() / scale, -(mixed @ z) / scale
    hessian = np.array(
        [
            [twice.sum() / scale**2, loc_scale, loc_shape],
            [loc_scale, scale_twice, scale_shape],
            [loc_shape, scale_shape, shape_twice.sum()],
        ]
    )
    return gradient, hessian


def _quiet(function: Function) -> Function:
    """Numbers beyond a double's range are no likelihood, and no warning."""

    def at(theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        try:
            with np.errstate(all="ignore"):
                value, gradient, hessian = function(theta)
        except (OverflowError, ZeroDivisionError):  # of Python's own floats
            return _nowhere(theta.size)
        if math.isfinite(value) and np.all(np.isfinite(gradient)) and np.all(np.isfinite(hessian)):
            return value, gradient, hessian
        return _nowhere(theta.size)

    return at


def _nowhere(size: int) -> tuple[float, np.ndarray, np.ndarray]:
    return -math.inf, np.zeros(size), np.zeros((size, size))


def climb(function: Function, start: np.ndarray, *, free: np.ndarray | None = None) -> Peak:
    """The peak above ``start`` by Newton's method, damped where the likelihood is not concave.

    Parameters
    ----------
    function : value, gradient and Hessian; the value is -inf where there is no likelihood
    start : (p,)
    free : (p,) bool, which parameters move; all by default
    """
    theta = np.array(start, dtype=np.float64)
    move = np.ones(theta.size, dtype=bool) if free is None else np.asarray(free, dtype=bool)
    value, gradient, hessian = function(theta)
    if not math.isfinite(value) or not move.any():
        return Peak(theta, value, not move.any())
    settled = False
    for _ in range(_STEPS):
        step, gain = _step(gradient[move], hessian[np.ix_(move, move)])
        if not gain > 1e-22 * (1.0 + abs(value)):
            settled = True
            break
        length, found = 1.0, False
        while length > 1e-9 and not found:
            after = theta.copy()
            after[move] += length * step
            there = function(after)
            found = there[0] > value
            length *= 0.5
        if not found:
            # Rounding hides what is left to gain, or there is a cliff.
            settled = gain < 1e-9
            break
        theta, (value, gradient, hessian) = after, there
    if settled:
        theta = _polished(function, theta, move)
    return Peak(theta, value, settled)


def _polished(function: Function, theta: np.ndarray, move: np.ndarray) -> np.ndarray:
    """A few more steps by the slope alone, which sees further than the likelihood's digits."""
    _, gradient, hessian = function(theta)
    step, gain = _step(gradient[move], hessian[np.ix_(move, move)])
    for _ in range(4):
        after = theta.copy()
        after[move] += step
        value, gradient, hessian = function(after)
        if not math.isfinite(value):
            break
        step, less = _step(gradient[move], hessian[np.ix_(move, move)])
        if not less < gain:
            break
        theta, gain = after, less
    return theta


def _step(gradient: np.ndarray, hessian: np.ndarray) -> tuple[np.ndarray, float]:
    """Newton's step uphill, and what it promises to gain."""
    unit = 1.0 / np.sqrt(np.maximum(np.abs(np.diag(hessian)), 1e-300))
    values, vectors = np.linalg.eigh(-hessian * np.outer(unit, unit))
    bends = np.maximum(np.abs(values), 1e-9)
    along = vectors.T @ (gradient * unit)
    return unit * (vectors @ (along / bends)), float(0.5 * np.sum(along**2 / bends))
