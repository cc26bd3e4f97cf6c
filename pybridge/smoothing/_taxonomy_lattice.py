"""Deterministic quadrature over the variances of up to three levels.

The nodes form a lattice in t = log variances, centred at the posterior mode and scaled by the
Cholesky factor of the curvature there, finest level first, so that few distinct values of the
finest variance occur. The trapezoidal rule on a lattice converges exponentially for an analytic
integrand. Only points that carry weight are kept: the lattice is explored outward from the mode,
so skewed posteriors and long tails need no box.

The density is then filled in at half the step. Of that fine lattice the expectations use the points
whose coordinates are all even or all odd (a body-centred lattice: twice the coarse points, with the
square of the coarse lattice's error); their moments are checked against the fine lattice's, which
also serves the medians. Where they are not quite good enough the fine lattice's own points are,
since its error is a power of theirs; only beyond that is the step halved again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from scipy.special import sici

LogDensity = Callable[[np.ndarray], np.ndarray]

# A lattice point is kept while its density is above exp(-CUT) of the peak; where the mean of a
# variance exists, also while the integrand of that mean is above exp(-MEAN_CUT) of its size there.
CUT = 20.0
MEAN_CUT = 14.0
# Steps in standard deviations of the normal approximation, and the longest ones in log variance,
# where the prior's own shape needs resolution; by the number of levels.
_STEP = {1: 0.9, 2: 1.0, 3: 1.15}
_LONGEST_STEP = {1: 0.5, 2: 0.6, 3: 0.75}
# Differences of the moments between the nodes and the fine lattice that are good enough; the nodes'
# own error is a fraction of it. Where it is larger the step is halved, within reason.
_TOLERANCE = {1: 1e-8, 2: 1e-7, 3: 2e-6}
_MOST_HALVINGS = 2
_MOST_POINTS = 100_000
_RADIX = 1 << 14
_REACH = 70.0


@dataclasses.dataclass(frozen=True)
class Lattice:
    """Nodes with normalised weights.

    ``log_variance`` (K, R) coarse to fine, ``weight`` (K,), ``sparse`` (K,) half of the nodes,
    which form a lattice themselves, good to about the square root of the error; ``median``,
    ``mean`` (R,) of the variances; ``error``: difference of the moments to those of the fine
    lattice, or, where the nodes are that lattice itself, the error expected of it.
    """

    log_variance: np.ndarray
    weight: np.ndarray
    sparse: np.ndarray
    median: np.ndarray
    mean: np.ndarray
    error: float


@dataclasses.dataclass(frozen=True)
class _Frame:
    """Integer coordinates n to log variances: mode + turn @ n; ``mean_exists`` (R,)."""

    mode: np.ndarray
    turn: np.ndarray
    peak: float
    mean_exists: np.ndarray

    def place(self, points: np.ndarray) -> np.ndarray:
        # Column by column, so that equal leading coordinates give bitwise equal variances.
        t = np.broadcast_to(self.mode, points.shape).copy()
        for axis in range(points.shape[1]):
            t += points[:, axis, None] * self.turn[:, axis]
        return t

    def halved(self) -> _Frame:
        return dataclasses.replace(self, turn=0.5 * self.turn)


def find_mode(
    log_density: LogDensity,
    *,
    low: np.ndarray,
    high: np.ndarray,
    start: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Mode (R,) of the log density, its second derivatives (R, R) nearby, and its height.

    A grid, or a point that is near by, then Newton steps on a quadratic through a stencil, up to
    a tenth of the width: the lattice that is laid around it needs no more.
    """
    depth = low.size
    if start is None:
        axes = [np.linspace(a, b, 8) for a, b in zip(low, high)]
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, depth)
    else:
        grid = np.clip(start, low, high)[None]
    value = log_density(grid)
    point, best = grid[int(np.argmax(value))], float(value.max())
    width = np.full(depth, 0.5)
    for _ in range(40):
        gradient, bend = _stencil(log_density, point, width)
        curvature, vectors = np.linalg.eigh(bend)
        # Ascend along directions that curve the wrong way, too.
        safe = np.maximum(np.abs(curvature), 1e-2)
        step = vectors @ ((vectors.T @ gradient) / safe)
        step *= min(1.0, 1.5 / float(np.abs(step).max() + 1e-300))
        lengths = np.array([1.0, 0.5, 0.2, 0.05])
        tried = log_density(point + lengths[:, None] * step)
        pick = int(np.argmax(tried))
        used = width
        width = np.clip(0.5 / np.sqrt(np.maximum(np.abs(np.diag(bend)), 1e-6)), 1e-5, 0.5)
        small = bool(((np.abs(step) < 0.2 * width) & (used < 4.0 * width)).all())
        if tried[pick] <= best and not small:
            width = np.maximum(0.25 * width, 1e-5)
            continue
        if tried[pick] > best:
            point, best = point + lengths[pick] * step, float(tried[pick])
        if small:
            break
    return point, bend, best


def _stencil(
    log_density: LogDensity, point: np.ndarray, width: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Central differences: gradient (R,) and second derivatives (R, R)."""
    depth = point.size
    unit = np.diag(width)
    first, second = np.triu_indices(depth, 1)
    corners = [
        point + a * unit[first] + b * unit[second] for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1))
    ]
    value = log_density(np.concatenate([point[None], point + unit, point - unit, *corners]))
    plus, minus = value[1 : depth + 1], value[depth + 1 : 2 * depth + 1]
    gradient = (plus - minus) / (2.0 * width)
    bend = np.diag((plus - 2.0 * value[0] + minus) / width**2)
    cross = value[2 * depth + 1 :].reshape(4, -1)
    mixed = (cross[0] - cross[1] - cross[2] + cross[3]) / (4.0 * width[first] * width[second])
    bend[first, second] = mixed
    bend[second, first] = mixed
    return gradient, bend


def integrate(
    log_density: LogDensity,
    *,
    low: np.ndarray,
    high: np.ndarray,
    mean_exists: np.ndarray,
    start: np.ndarray | None = None,
    medians: bool = True,
) -> Lattice:
    """Lattice quadrature of a posterior of log variances (R,), R <= 3.

    Parameters
    ----------
    log_density : callable
        (K, R) log variances, coarse to fine, to (K,) log densities up to a constant.
    low, high : (R,)
        Box in which the mode is looked for.
    mean_exists : (R,) bool
        Where the posterior mean of the variance is finite.
    start : (R,), optional
        Log variances near the mode, of a posterior like this one.
    medians : bool
        Whether medians are wanted; NaN otherwise.
    """
    mode, bend, peak = find_mode(log_density, low=low, high=high, start=start)
    frame = _Frame(mode=mode, turn=_axes(bend), peak=peak, mean_exists=mean_exists)
    points, value = _explore(log_density, frame)
    for _ in range(_MOST_HALVINGS):
        frame = frame.halved()
        points, value = _refine(log_density, frame, points, value)
        chosen = _body_centred(points)
        all_moments = _moments(frame, points, value, cell=1.0)
        part = _moments(frame, points[chosen], value[chosen], cell=2.0 ** (mode.size - 1))
        error = float(np.abs(all_moments - part).max())
        if error < _TOLERANCE[mode.size] or len(points) > _MOST_POINTS:
            break
        # Of the order of exp(-c/h) at worst, in steps h shorter by the root of the ratio of counts.
        expected = error ** (2.0 ** (1.0 - 1.0 / mode.size))
        if expected < _TOLERANCE[mode.size]:
            chosen, error = np.ones(len(points), dtype=bool), expected
            break
    return _collect(frame, points, value, chosen, error, medians)


def _body_centred(points: np.ndarray) -> np.ndarray:
    """Points whose coordinates are all even or all odd."""
    odd = points % 2
    return (odd == odd[:, :1]).all(axis=1)


def _axes(bend: np.ndarray) -> np.ndarray:
    """Lattice vectors as columns, finest level first, each with its own step."""
    curvature, vectors = np.linalg.eigh(-bend)
    # A direction in which the log density is nearly flat gets the width of the prior.
    curvature = np.maximum(curvature, 0.1)
    covariance = (vectors / curvature) @ vectors.T
    flipped = np.linalg.cholesky(covariance[::-1, ::-1])
    turn = flipped[::-1]
    longest = np.abs(turn).max(axis=0)
    depth = longest.size
    return turn * np.minimum(_STEP[depth], _LONGEST_STEP[depth] / longest)


def _explore(log_density: LogDensity, frame: _Frame) -> tuple[np.ndarray, np.ndarray]:
    """Lattice points (K, R) with weight and their log density relative to the peak."""
    depth = frame.mode.size
    radius = int(np.ceil(5.0 / _STEP[depth]))
    axes = [np.arange(-radius, radius + 1)] * depth
    seeds = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, depth)
    frontier = seeds[np.einsum("ki,ki->k", seeds, seeds) <= radius**2]
    # Two steps at a time along the axes: fewer rounds, hardly more points.
    axes_moves = [sign * np.eye(depth, dtype=int) for sign in (1, -1, 2, -2)]
    moves = np.concatenate(axes_moves)
    seen = np.empty(0, dtype=np.int64)
    points, values = [], []
    while frontier.size:
        t = frame.place(frontier)
        value = log_density(t) - frame.peak
        keep = _matters(value, t, frame)
        points.append(frontier[keep])
        values.append(value[keep])
        seen = np.union1d(seen, _key(frontier))
        near = (frontier[keep][:, None, :] + moves).reshape(-1, depth)
        key, first = np.unique(_key(near), return_index=True)
        fresh = ~np.isin(key, seen, assume_unique=True)
        frontier = near[first[fresh]]
    return np.concatenate(points), np.concatenate(values)


def _matters(value: np.ndarray, t: np.ndarray, frame: _Frame) -> np.ndarray:
    """Which points carry weight for the posterior or for the mean of a variance."""
    away = t - frame.mode
    with_mean = np.where(frame.mean_exists, value[:, None] + away, -np.inf)
    near = (np.abs(away) < _REACH).all(axis=1)
    return near & ((value > -CUT) | (with_mean > -MEAN_CUT).any(axis=1))


def _key(points: np.ndarray) -> np.ndarray:
    """One integer a lattice point."""
    key = np.zeros(points.shape[0], dtype=np.int64)
    for axis in range(points.shape[1]):
        key = key * _RADIX + (points[:, axis] + _RADIX // 2)
    return key


def _refine(
    log_density: LogDensity, fine: _Frame, points: np.ndarray, value: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The lattice with half the step over the same region; known densities are kept."""
    depth = points.shape[1]
    moves = np.stack(np.meshgrid(*[[-1, 0, 1]] * depth, indexing="ij"), axis=-1).reshape(-1, depth)
    near = (2 * points[:, None, :] + moves).reshape(-1, depth)
    key, first = np.unique(_key(near), return_index=True)
    known = _key(2 * points)
    order = np.argsort(known)
    place = np.searchsorted(key, known[order])
    found = np.empty(key.size)
    found[place] = value[order]
    new = np.ones(key.size, dtype=bool)
    new[place] = False
    candidates = near[first]
    found[new] = log_density(fine.place(candidates[new])) - fine.peak
    return candidates, found


def _moments(frame: _Frame, points: np.ndarray, value: np.ndarray, *, cell: float) -> np.ndarray:
    """Integral and standardised moments of the log variances, which must stand still."""
    density = np.exp(value)
    total = density.sum()
    weight = density / total
    away = frame.place(points) - frame.mode
    centre = weight @ away
    spread = np.sqrt(weight @ (away - centre) ** 2)
    shape = weight @ (1.0 / (1.0 + np.exp(-away)))
    return np.concatenate([[np.log(total * cell)], centre / spread, np.log(spread), shape])


def _collect(
    frame: _Frame,
    points: np.ndarray,
    value: np.ndarray,
    chosen: np.ndarray,
    error: float,
    medians: bool,
) -> Lattice:
    t = frame.place(points)
    weight = np.exp(value)
    weight /= weight.sum()
    median = np.full(t.shape[1], np.nan)
    for level in range(t.shape[1] if medians else 0):
        median[level] = _median(t[:, level], weight, frame.turn[level])
    mean = np.where(frame.mean_exists, weight @ np.exp(t), np.nan)
    kept = weight[chosen]
    whole = bool(chosen.all()) and t.shape[1] > 1
    return Lattice(
        log_variance=t[chosen],
        weight=kept / kept.sum(),
        sparse=_body_centred(points) if whole else points[chosen, 0] % 2 == 0,
        median=np.exp(median),
        mean=mean,
        error=error,
    )


def _median(t: np.ndarray, weight: np.ndarray, vector: np.ndarray) -> float:
    """Median of a linear function of lattice points, by the integral of the sinc interpolant.

    The projection of a band-limited density keeps its frequencies up to pi over the largest
    component of the lattice vectors, beyond which the lattice's own copies begin.
    """
    cutoff = np.pi / float(np.abs(vector).max())
    centre = float(weight @ t)
    spread = float(np.sqrt(weight @ (t - centre) ** 2))

    def below(middle: float) -> float:
        return float(weight @ sici(cutoff * (middle - t))[0])

    from scipy.optimize import brentq

    low, high = centre - 2.0 * spread, centre + 2.0 * spread
    # Each step is a sine integral a node: secants need a fifth of bisection's sixty.
    if below(low) >= 0.0 or below(high) <= 0.0:
        return centre
    return float(brentq(below, low, high, xtol=1e-15 * spread, rtol=1e-15))
