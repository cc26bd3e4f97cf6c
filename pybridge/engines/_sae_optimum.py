"""Maxima of the likelihoods of sae's area-level models, to be put beside what sae found.

sae scores without constraints from one start and clips at the end, so that it may stop short, at a
lower maximum or at the border. Here: a grid for the start, then scoring within the borders, each
step shortened until the likelihood does not fall.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pybridge.engines._sae_likelihood import (
    AreaData,
    Likelihoods,
    Proximity,
    dense_likelihoods,
    fay_herriot_likelihoods,
    spatial_likelihoods,
)

# ρ beyond this is the border, where I − ρW is singular for a row-standardised W.
LARGEST_CORRELATION = 0.9999
_CORRELATIONS = (-0.95, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 0.95, 0.995)
_SETTLED = 1e-11
_MOST_STEPS = 40

# V (m, m) and its derivatives by each parameter.
Covariance = Callable[[np.ndarray], tuple[np.ndarray, list[np.ndarray]]]


@dataclass(frozen=True)
class Optimum:
    """Where a search ended.

    Attributes
    ----------
    theta : numpy.ndarray
        The parameters, shape (k,).
    at : Likelihoods
    """

    theta: np.ndarray
    at: Likelihoods


def fay_herriot_optimum(data: AreaData, method: str) -> Optimum:
    """σ² of REML or ML over σ² ≥ 0, or the root of the moment equation of method FH."""
    positive = data.d[data.d > 0]
    top = 10.0 * max(float(data.d.max()), float(np.var(data.y)))
    grid = np.geomspace(float(positive.min()) * 1e-4, top, 160)
    if len(positive) == len(data.d):
        grid = np.concatenate([[0.0], grid])
    variance = _moment_root(data, grid) if method == "FH" else _highest(data, grid, method)
    return Optimum(np.array([variance]), fay_herriot_likelihoods(data, variance))


def _moment_root(data: AreaData, grid: np.ndarray) -> float:
    from scipy.optimize import brentq

    target = len(data.y) - data.x.shape[1]

    def moment(variance: float) -> float:
        at = fay_herriot_likelihoods(data, variance)
        residual = data.y - data.x @ at.coefficients
        return float((residual**2 / (variance + data.d)).sum()) - target

    if moment(float(grid[0])) <= 0:
        return 0.0
    top = float(grid[-1])
    while moment(top) > 0:
        top *= 10.0
    return float(brentq(moment, float(grid[0]), top, xtol=1e-300, rtol=1e-14))


def _highest(data: AreaData, grid: np.ndarray, method: str) -> float:
    from scipy.optimize import minimize_scalar

    heights = [fay_herriot_likelihoods(data, float(a)).of(method) for a in grid]
    best = int(np.argmax(heights))
    high = float(grid[min(best + 1, len(grid) - 1)])
    found = minimize_scalar(
        lambda a: -fay_herriot_likelihoods(data, a).of(method),
        bounds=(float(grid[max(best - 1, 0)]), high),
        method="bounded",
        options={"xatol": 1e-9 * high},
    )
    return float(grid[best]) if heights[best] >= -found.fun else float(found.x)


def spatial_optimum(
    data: AreaData, w: Proximity, method: str, *, start: np.ndarray | None = None
) -> Optimum:
    """(σ², ρ) of the highest maximum: climbed from the best of a grid, and from ``start``.

    Where ``start`` lies higher than the whole grid, it is climbed from alone.
    """
    middle = math.sqrt(float(np.median(data.d[data.d > 0])))
    residual = data.y - data.x @ np.linalg.lstsq(data.x, data.y, rcond=None)[0]
    sizes = np.geomspace(0.2 * middle, 2.0 * max(middle, float(np.std(residual))), 5)

    def height(point: np.ndarray) -> float:
        try:
            at = spatial_likelihoods(data, w, float(point[0]) ** 2, float(point[1]))
        except np.linalg.LinAlgError:  # V is singular to rounding here
            return -math.inf
        return at.of(method) if math.isfinite(at.of(method)) else -math.inf

    grid = [np.array([size, rho]) for rho in _CORRELATIONS for size in sizes]
    heights = [height(point) for point in grid]
    starts = [grid[int(np.argmax(heights))]]
    if start is not None and np.isfinite(start).all():
        limit = LARGEST_CORRELATION
        near = np.array([math.sqrt(max(float(start[0]), 0.0)), np.clip(start[1], -limit, limit)])
        starts = [near] if height(near) >= max(heights) else [near, *starts]
    if (data.d > 0).all():
        starts.append(np.array([0.0, 0.0]))
    floor = 0.0 if (data.d > 0).all() else 1e-4 * middle
    tops = [_newton(height, start, unit=middle, floor=floor) for start in starts]
    top = max(tops, key=height)
    theta = np.array([top[0] ** 2, top[1]])
    return Optimum(theta, spatial_likelihoods(data, w, float(theta[0]), float(theta[1])))


def _newton(
    height: Callable[[np.ndarray], float], point: np.ndarray, *, unit: float, floor: float
) -> np.ndarray:
    """Newton's steps on (σ, ρ) with derivatives by differences, shortened until they climb."""
    if point[0] == 0.0:
        return point
    step_size = 1e-4 * np.array([unit, 1.0])
    low = np.array([floor, -LARGEST_CORRELATION])
    high = np.array([math.inf, LARGEST_CORRELATION])
    here = height(point)
    for _ in range(_MOST_STEPS):
        gradient, hessian = _differences(height, point, here, step_size)
        if not (np.isfinite(gradient).all() and np.isfinite(hessian).all()):
            break
        free = ~((point <= low) & (gradient <= 0)) & ~((point >= high) & (gradient >= 0))
        if not free.any():
            break
        values, vectors = np.linalg.eigh(hessian[np.ix_(free, free)])
        curvature = np.maximum(np.abs(values), 1e-8 * np.abs(values).max() + 1e-300)
        step = np.zeros(2)
        step[free] = vectors @ ((vectors.T @ gradient[free]) / curvature)
        # Near the top the heights differ by their rounding only, and the step knows better.
        fraction, rounding = 1.0, 1e-13 * (1.0 + abs(here))
        while fraction > 1e-3:
            new = np.clip(point + fraction * step, low, high)
            there = height(new)
            if there > here - rounding:
                break
            fraction *= 0.25
        else:
            break
        moved, point, here = float(np.max(np.abs(new - point) / step_size)), new, there
        if moved < 1e-3:
            break
    return point


def _differences(
    height: Callable[[np.ndarray], float], point: np.ndarray, here: float, h: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Gradient (2,) and Hessian (2, 2) of a function of two numbers."""
    along = np.diag(h)
    plus = [height(point + along[k]) for k in (0, 1)]
    minus = [height(point - along[k]) for k in (0, 1)]
    signs = ((1, 1), (1, -1), (-1, 1), (-1, -1))
    corners = [height(point + along[0] * a + along[1] * b) for a, b in signs]
    with np.errstate(invalid="ignore"):  # infinite where V is singular
        gradient = (np.array(plus) - np.array(minus)) / (2.0 * h)
        hessian = np.diag((np.array(plus) - 2.0 * here + np.array(minus)) / h**2)
        cross = np.subtract(corners[0] + corners[3], corners[1] + corners[2]) / (4.0 * h[0] * h[1])
    hessian[0, 1] = hessian[1, 0] = cross
    return gradient, hessian


def space_time_optimum(
    data: AreaData, w: Proximity, starts: list[np.ndarray], n_times: int
) -> Optimum | None:
    """The highest restricted maximum reached from the given starts; None if V is singular there."""
    return climb(data, space_time_covariance(data, w, n_times), starts)


def space_time_restricted(data: AreaData, w: Proximity, theta: np.ndarray, n_times: int) -> float:
    """The restricted log-likelihood at (σ₁², ρ₁, σ₂²) or (σ₁², ρ₁, σ₂², ρ₂)."""
    return dense_likelihoods(data, space_time_covariance(data, w, n_times)(theta)[0]).restricted


def _between(w: Proximity, rho: float) -> tuple[np.ndarray, np.ndarray]:
    """Ω = [(I − ρW)'(I − ρW)]⁻¹ (m, m) and its derivative by ρ."""
    omega = np.linalg.inv(np.eye(len(w.matrix)) + rho * (rho * w.square - w.both))
    return omega, -omega @ (2.0 * rho * w.square - w.both) @ omega


def space_time_covariance(data: AreaData, w: Proximity, n_times: int) -> Covariance:
    """V and its derivatives at (σ₁², ρ₁, σ₂²) of model S or (σ₁², ρ₁, σ₂², ρ₂) of model ST."""
    ones = np.ones((n_times, n_times))
    domains = np.eye(len(w.matrix))
    lag = np.abs(np.subtract.outer(np.arange(n_times), np.arange(n_times)))

    def covariance(theta: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        between, slope = _between(w, float(theta[1]))
        within = np.eye(n_times)
        if len(theta) == 4:
            rho, rest = theta[3], 1.0 - theta[3] ** 2
            within = rho**lag / rest
            turn = np.where(lag > 0, lag * rho ** np.maximum(lag - 1.0, 0.0), 0.0) / rest
            turn += 2.0 * rho / rest * within
        derivatives = [np.kron(between, ones), np.kron(theta[0] * slope, ones)]
        derivatives.append(np.kron(domains, within))
        if len(theta) == 4:
            derivatives.append(np.kron(domains, theta[2] * turn))
        v = theta[0] * derivatives[0] + theta[2] * derivatives[2] + np.diag(data.d)
        return v, derivatives

    return covariance


def climb(data: AreaData, covariance: Covariance, starts: list[np.ndarray]) -> Optimum | None:
    """The highest restricted likelihood reached; variances are in the even places of theta."""
    places = np.arange(len(starts[0])) % 2 == 0
    low = np.where(places, 0.0, -LARGEST_CORRELATION)
    high = np.where(places, np.inf, LARGEST_CORRELATION)
    if not (data.d > 0).all():
        low = np.where(places, 1e-8 * np.median(data.d[data.d > 0]), low)
    tops: list[Optimum] = []
    for start in starts:
        try:
            theta = np.clip(start, low, high)
            tops.append(_scoring(data, covariance, theta, low=low, high=high))
        except np.linalg.LinAlgError:
            continue
    return max(tops, key=lambda top: top.at.restricted) if tops else None


def _scoring(
    data: AreaData,
    covariance: Covariance,
    theta: np.ndarray,
    *,
    low: np.ndarray,
    high: np.ndarray,
) -> Optimum:
    at = dense_likelihoods(data, covariance(theta)[0])
    for _ in range(_MOST_STEPS):
        score, information = _score(data, *covariance(theta))
        free = ~((theta <= low) & (score <= 0)) & ~((theta >= high) & (score >= 0))
        step = np.zeros_like(theta)
        inside = information[np.ix_(free, free)]
        step[free] = np.linalg.lstsq(inside, score[free], rcond=1e-12)[0]
        fraction, tolerance = 1.0, 1e-12 * (1.0 + abs(at.restricted))
        while fraction > 1e-9:
            new = np.clip(theta + fraction * step, low, high)
            there = _try(data, covariance, new)
            if there is not None and there.restricted >= at.restricted - tolerance:
                break
            fraction *= 0.5
        else:
            break
        assert there is not None
        change = float(np.max(np.abs(new - theta) / np.maximum(np.abs(new), 1e-8)))
        theta, at = new, there
        if change < _SETTLED:
            break
    return Optimum(theta, at)


def _try(data: AreaData, covariance: Covariance, theta: np.ndarray) -> Likelihoods | None:
    try:
        return dense_likelihoods(data, covariance(theta)[0])
    except np.linalg.LinAlgError:
        return None


def _score(
    data: AreaData, v: np.ndarray, derivatives: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Score (k,) and expected information (k, k) of the restricted likelihood."""
    inverse = np.linalg.inv(v)
    vx = inverse @ data.x
    p = inverse - vx @ np.linalg.solve(data.x.T @ vx, vx.T)
    py = p @ data.y
    left = [p @ one for one in derivatives]
    score = np.array(
        [0.5 * float(py @ one @ py) - 0.5 * float(np.trace(a)) for one, a in zip(derivatives, left)]
    )
    return score, np.array([[0.5 * float((a * b.T).sum()) for b in left] for a in left])
