"""Quadrature over the model variance of the area-level model, deterministic and in O(m) memory.

The posterior of the model variance s, with the coefficients integrated out under a flat prior, is

    p(s | z)  ~  prod (d_i + s)^(-1/2)  |X'WX|^(-1/2)  exp(-Q(s) / 2),      W = diag 1 / (d_i + s).

In t = log s it falls off like exp(t) on the left and like exp(-t (m - p - 2) / 2) on the right, so
heavy tails in s are plain exponentials in t. The substitution t = mode + y - (exp(-y) - 1) makes
the left side fall off doubly exponentially (Takahasi and Mori 1974). The integrand is analytic in
a strip around the real line, so the trapezoidal rule in y converges exponentially; the step is
halved until the moments stand still.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from scipy.special import sici

# Array elements in one block of (nodes x domains): a few arrays of this size fit in the cache.
BLOCK_ELEMENTS = 1 << 17
# Nodes whose density is below exp(-CUT) of the highest carry nothing that doubles can see.
CUT = 42.0
_MOMENT_TOLERANCE = 1e-9
_MOST_HALVINGS = 12


@dataclasses.dataclass(frozen=True)
class AreaData:
    """The labelled domains in working units: residuals of a first fit, orthonormal covariates.

    ``z`` (m,), ``d`` (m,), ``x`` (m, p), ``products`` (m, q (q + 1) / 2) with q = p + 1: the
    products of the columns of (x, z), of which every quadratic form is a weighted sum.
    """

    z: np.ndarray
    d: np.ndarray
    x: np.ndarray
    products: np.ndarray

    @classmethod
    def of(cls, *, z: np.ndarray, d: np.ndarray, x: np.ndarray) -> AreaData:
        """Form the products of the columns of (x, z)."""
        columns = np.column_stack([x, z])
        upper = np.triu_indices(columns.shape[1])
        return cls(z=z, d=d, x=x, products=columns[:, upper[0]] * columns[:, upper[1]])


@dataclasses.dataclass(frozen=True)
class Conditional:
    """The Gaussian posterior of the coefficients given each of K variances.

    ``log_density`` (K,) of t = log s up to a constant; ``coefficients`` (K, p); ``root`` (K, p, p)
    with root' root = the covariance of the coefficients.
    """

    log_density: np.ndarray
    coefficients: np.ndarray
    root: np.ndarray


@dataclasses.dataclass(frozen=True)
class Nodes:
    """Nodes of the variance with normalised weights, and its posterior median and mean."""

    variance: np.ndarray
    weight: np.ndarray
    coefficients: np.ndarray
    root: np.ndarray
    median: float
    mean: float


def conditional(log_variance: np.ndarray, data: AreaData) -> Conditional:
    """Coefficients and log density of log s at K values of it, in blocks of nodes."""
    m = data.x.shape[0]
    q = data.x.shape[1] + 1
    k = log_variance.size
    full = np.empty((k, q, q))
    log_determinant = np.empty(k)
    block = max(1, BLOCK_ELEMENTS // m)
    for start in range(0, k, block):
        part = slice(start, start + block)
        total = data.d + np.exp(log_variance[part])[:, None]
        log_determinant[part] = np.log(total).sum(axis=1)
        np.reciprocal(total, out=total)
        full[part] = weighted_sums(total, data)
    coefficients, root, half_log_information, rest = least_squares(full)
    density = log_variance - 0.5 * log_determinant - half_log_information - 0.5 * rest
    return Conditional(log_density=density, coefficients=coefficients, root=root)


def weighted_sums(weight: np.ndarray, data: AreaData) -> np.ndarray:
    """Sums of products of the columns of (x, z), (K, q, q), for K sets of weights (K, m)."""
    sums = weight @ data.products
    upper = np.triu_indices(data.x.shape[1] + 1)
    full = np.empty((sums.shape[0],) + (data.x.shape[1] + 1,) * 2)
    full[:, upper[0], upper[1]] = sums
    full[:, upper[1], upper[0]] = sums
    return full


def least_squares(full: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Solve K sets of normal equations given as (K, q, q) sums of products of (x, z).

    Returns
    -------
    coefficients : (K, p)
    root : (K, p, p)
        Inverse of the lower Cholesky factor of X'WX: root' root is its inverse.
    half_log_information : (K,)
        Half the log determinant of X'WX.
    rest : (K,)
        Weighted sum of squares of the residuals.
    """
    p = full.shape[1] - 1
    information = full[:, :p, :p]
    # Unit diagonal first: the weights of the nodes differ by many orders of magnitude.
    size = np.sqrt(np.einsum("kii->ki", information))
    factor = _cholesky(information / (size[:, :, None] * size[:, None, :]))
    root = np.linalg.solve(factor, np.eye(p)[None, :, :] / size[:, None, :])
    turned = np.einsum("kij,kj->ki", root, full[:, :p, p])
    coefficients = np.einsum("kji,kj->ki", root, turned)
    half_log = (np.log(np.einsum("kii->ki", factor)) + np.log(size)).sum(axis=1)
    rest = np.maximum(full[:, p, p] - np.einsum("ki,ki->k", turned, turned), 0.0)
    return coefficients, root, half_log, rest


def _cholesky(scaled: np.ndarray) -> np.ndarray:
    """Cholesky factors of K matrices with unit diagonal, singular ones made barely regular.

    Singular to rounding they are only where fewer census domains than coefficients outweigh all
    others by 1e15, at variances that carry no posterior mass.
    """
    try:
        return np.asarray(np.linalg.cholesky(scaled))
    except np.linalg.LinAlgError:
        least = np.linalg.eigvalsh(scaled)[:, 0]
        lift = np.where(least < 1e-13, 1e-13 - np.minimum(least, 0.0), 0.0)
        return np.asarray(
            np.linalg.cholesky(scaled + lift[:, None, None] * np.eye(scaled.shape[1]))
        )


def find_mode(data: AreaData, *, low: float, high: float) -> tuple[float, float]:
    """The mode of log s in [low, high] and the curvature's width 1 / sqrt(-second derivative).

    A grid, then zooms around its best point: the log density is smooth even where the density
    is a needle, so no start has to be guessed and no derivative is needed.
    """
    count = int(np.clip((high - low) / 0.7, 48, 512))
    grid = np.linspace(low, high, count)
    while True:
        value = conditional(grid, data).log_density
        best = int(np.clip(np.argmax(value), 1, grid.size - 2))
        step = grid[1] - grid[0]
        bend = value[best - 1] - 2.0 * value[best] + value[best + 1]
        drop = value[best] - min(value[best - 1], value[best + 1])
        # Between neighbours that differ by less than one unit the parabola is good enough.
        if drop < 0.05 and bend < 0.0 or step < 1e-9:
            break
        grid = np.linspace(grid[best - 1], grid[best + 1], 17)
    curvature = max(-bend / step**2, 1e-4)
    return float(grid[best]), float(1.0 / np.sqrt(curvature))


def substitution(y: np.ndarray, *, mode: float) -> tuple[np.ndarray, np.ndarray]:
    """log s and the log of its derivative, as functions of the working variable y."""
    inner = np.exp(-y)
    return mode + y - (inner - 1.0), np.log1p(inner)


def _edge(drop: Callable[[np.ndarray], np.ndarray], *, sign: int, width: float) -> float:
    """The distance from the mode beyond which the integrand is below exp(-CUT) of its peak."""
    reach = width * 2.0 ** np.arange(0.0, 60.0)
    reach = np.append(reach[reach < 200.0], 200.0)
    # The substitution is doubly exponential on the left: log s is below -600 there already.
    reach = np.minimum(reach, 6.4) if sign < 0 else reach
    reach = np.unique(reach)
    for _ in range(2):
        above = np.flatnonzero(drop(sign * reach) < CUT)
        last = int(above[-1]) if above.size else 0
        if last + 1 >= reach.size:
            return float(reach[-1])
        reach = np.linspace(reach[last], reach[last + 1], 9)
    return float(reach[-1])


def integrate(data: AreaData, *, low: float, high: float) -> Nodes:
    """Nodes and weights for posterior expectations, refined until the moments stand still.

    The rule that is returned has every second node of the finest one computed, and its moments
    agree with the finest rule's to 1e-9; the median uses the finest one.
    """
    m, p = data.x.shape
    has_mean = m > p + 4
    mode, width = find_mode(data, low=low, high=high)
    peak = float(conditional(np.array([mode]), data).log_density[0])

    highest = 0.0

    def drop(y: np.ndarray) -> np.ndarray:
        nonlocal highest
        t, log_jacobian = substitution(y, mode=mode)
        value = conditional(t, data).log_density + log_jacobian - peak
        if not has_mean:
            return -value
        # Where the mean of s exists, its integrand has the longer right tail.
        with_mean = value + (t - mode)
        highest = max(highest, float(with_mean.max()))
        return -np.maximum(value, with_mean - highest)

    # The derivative of the substitution is 2 at the mode, so y is half as wide as log s.
    left = _edge(drop, sign=-1, width=width / 2.0)
    right = _edge(drop, sign=1, width=width / 2.0)
    step = min(0.4 * width, 0.4)
    count = max(int(np.ceil((left + right) / step)), 16)
    y = np.linspace(-left, right, count + 1)
    found = _evaluate(y, data, mode)
    before = _moments(found, mode=mode)
    for _ in range(_MOST_HALVINGS):
        y, found = _halve(y, found, data, mode)
        after = _moments(found, mode=mode)
        settled = np.abs(after - before).max() < _MOMENT_TOLERANCE
        before = after
        if settled:
            break
    return _collect(y, found, mode=mode, has_mean=has_mean)


_Found = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # t, log density of y, beta, root


def _evaluate(y: np.ndarray, data: AreaData, mode: float) -> _Found:
    t, log_jacobian = substitution(y, mode=mode)
    given = conditional(t, data)
    return t, given.log_density + log_jacobian, given.coefficients, given.root


def _halve(y: np.ndarray, found: _Found, data: AreaData, mode: float) -> tuple[np.ndarray, _Found]:
    """The rule with half the step: old nodes at the even places, their midpoints between."""
    new = _evaluate(0.5 * (y[1:] + y[:-1]), data, mode)
    finer = np.linspace(y[0], y[-1], 2 * y.size - 1)
    merged = []
    for old, extra in zip(found, new):
        both = np.empty((finer.size,) + old.shape[1:])
        both[::2], both[1::2] = old, extra
        merged.append(both)
    return finer, (merged[0], merged[1], merged[2], merged[3])


def _moments(found: _Found, *, mode: float) -> np.ndarray:
    """Numbers that must stand still: the integral, two moments of log s, two bounded shapes.

    The shapes are s / (s + c), the form in which s enters the estimates. All are smooth, because
    a kink would hide the exponential convergence of everything else.
    """
    t, log_density = found[0], found[1]
    density = np.exp(log_density - log_density.max())
    total = density.sum()
    weight = density / total
    away = t - mode
    centre = np.dot(weight, away)
    spread = np.sqrt(np.dot(weight, (away - centre) ** 2))
    shapes = [
        np.dot(weight, 1.0 / (1.0 + np.exp(-np.clip(away - shift, -700.0, 700.0))))
        for shift in (0.0, 2.0)
    ]
    level = np.log(total / (t.size - 1)) + log_density.max()
    return np.array([level, centre / max(spread, 1e-300), np.log(spread), *shapes])


def _collect(y: np.ndarray, found: _Found, *, mode: float, has_mean: bool) -> Nodes:
    t, log_density, coefficients, root = found
    density = np.exp(log_density - log_density.max())
    weight = density / density.sum()
    mean = float(np.dot(weight, np.exp(t))) if has_mean else float("nan")
    place = median_place(y, weight)
    median = float(np.exp(substitution(np.array([place]), mode=mode)[0][0]))
    half = slice(0, None, 2)
    keep = weight[half] > 1e-18
    chosen = weight[half][keep]
    return Nodes(
        variance=np.exp(t[half][keep]),
        weight=chosen / chosen.sum(),
        coefficients=coefficients[half][keep],
        root=root[half][keep],
        median=median,
        mean=mean,
    )


def median_place(y: np.ndarray, weight: np.ndarray) -> float:
    """The median of a density known at equal steps, by the integral of its sinc interpolant.

    The running sum of a trapezoidal rule is of second order only; the sinc interpolant
    integrates to sum w_k (1/2 + Si(pi (y - y_k) / h) / pi), which converges exponentially.
    """
    step = y[1] - y[0]
    low, high = float(y[0]), float(y[-1])
    for _ in range(60):
        middle = 0.5 * (low + high)
        below = np.dot(weight, 0.5 + sici(np.pi * (middle - y) / step)[0] / np.pi)
        if below < 0.5:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)
