"""REML and ML of the taxonomy model: exact gradient, projected Newton steps, O(m) a likelihood.

The gradient comes from one sweep up and one down the tree. With c = A / (1 + s A) the weight of a
node, u its prediction from above and z its (pseudo-)observation,

    (Z'Py)_h = c (z - u),    (Z'PZ)_hh = c - c^2 Var(u),

and the score of level r is half the sum over its nodes of (Z'Py)_h^2 - (Z'PZ)_hh. Both stay
defined at variance 0. Under ML, Var(u) leaves the coefficients' uncertainty out.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from pybridge.smoothing._taxonomy_algebra import TreeData, blocks, sweep_down, sweep_up

_MOST_STEPS = 100
_TOLERANCE = 1e-13
# Rounding of a log-likelihood whose sampling variances differ by many orders of magnitude.
_ROUNDING = 1e-6


@dataclasses.dataclass(frozen=True)
class Optimum:
    """Variances (R,) in working units, log-likelihood up to a constant, Newton steps, success."""

    variances: np.ndarray
    log_likelihood: float
    iterations: int
    converged: bool


def log_likelihoods(variances: np.ndarray, data: TreeData, *, restricted: bool) -> np.ndarray:
    """Log-likelihoods (K,) at K sets of variances (K, R), up to a constant."""
    out = np.empty(variances.shape[0])
    for pick in blocks(variances, data):
        up = sweep_up(variances[pick], data)
        out[pick] = -0.5 * (up.log_determinant + up.rest)
        if restricted:
            out[pick] -= up.half_log_information
    return out


def scores(
    variances: np.ndarray, data: TreeData, *, restricted: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Score (K, R) and trace terms (K, R) at K sets of variances.

    The trace term is the sum over a level of (Z'PZ)_hh, under ML of (Z'V^-1 Z)_hh.
    """
    score, trace = np.empty_like(variances), np.empty_like(variances)
    for pick in blocks(variances, data, per_node=data.columns.size):
        _score_block(variances[pick], data, restricted, pick, score, trace)
    return score, trace


def _score_block(
    variances: np.ndarray,
    data: TreeData,
    restricted: bool,
    pick: np.ndarray,
    score: np.ndarray,
    trace: np.ndarray,
) -> None:
    p, tree = data.n_coefficients, data.tree
    up = sweep_up(variances, data)
    down = sweep_down(variances, up, data)
    k = variances.shape[0]
    for level in range(tree.depth):
        s = variances[:, level, None]
        if level < tree.depth - 1:
            stage = up.stages[level]
            precision, mean = stage.precision[stage.row], stage.mean[stage.row]
            weight = precision / (1.0 + s * precision)
        else:
            weight = data.seen / (data.d + s)
            mean = np.broadcast_to(data.columns, (k,) + data.columns.shape)
        constant, slope = np.zeros((k, 1)), np.zeros((k, p, 1))
        variance, parent = np.zeros((k, 1)), tree.parent[level]
        if level > 0:
            above = down[level - 1]
            constant, slope, variance = above.constant, above.slope, above.variance
        away = mean[:, :p] - np.take(slope, parent, axis=-1)
        u = np.matmul(up.coefficients[:, None, :], away)[:, 0] + np.take(constant, parent, axis=-1)
        spread = np.take(variance, parent, axis=-1)
        if restricted:
            spread = spread + (np.matmul(up.root, away) ** 2).sum(axis=1)
        pulled = weight * (mean[:, p] - u)
        trace[pick, level] = (weight - weight * weight * spread).sum(axis=1)
        score[pick, level] = 0.5 * (np.square(pulled).sum(axis=1) - trace[pick, level])


def maximise(data: TreeData, *, restricted: bool, start: np.ndarray | None = None) -> Optimum:
    """The variances >= 0 (R,) that maximise the (restricted) likelihood.

    A coarse grid that holds 0, with ``start`` (R,), the optimum of a problem nearby, where there is
    one, gives the start; then Newton steps on the variances that are free, with the curvature from
    differences of the exact gradient.
    """
    depth = data.tree.depth
    axis = _start_values(data, depth)
    grid = np.stack(np.meshgrid(*[axis] * depth, indexing="ij"), axis=-1).reshape(-1, depth)
    if start is not None:
        grid = np.vstack([grid, start])
    grid = grid[_has_spread(grid, data)]
    value = log_likelihoods(grid, data, restricted=restricted)
    point, best = grid[int(np.argmax(value))], float(value.max())
    for step in range(1, _MOST_STEPS + 1):
        gradient, bend = _curvature(point, data, restricted)
        free = (point > 0.0) | (gradient > 0.0)
        if not free.any():
            return Optimum(point, best, step, True)
        move, gain = _newton_step(gradient, bend, free)
        tried, values = _along(point, move, data, restricted)
        pick = int(np.argmax(values))
        settled = gain < _TOLERANCE * max(1.0, abs(best))
        if values[pick] >= best:
            point, best = tried[pick], float(values[pick])
        else:
            # No step ascends: at the top to the likelihood's rounding, or it has none.
            return Optimum(point, best, step, gain < _ROUNDING)
        if settled:
            return Optimum(point, best, step, True)
    return Optimum(point, best, _MOST_STEPS, False)


def _start_values(data: TreeData, depth: int) -> np.ndarray:
    """Values of a variance to start from: 0, shares of the estimates' mean square about their
    regression, and, where some sampling variances are far smaller, their own size."""
    seen = data.seen > 0.0
    d = data.d[seen]
    unit = float(np.mean(data.columns[-1, seen] ** 2) + 0.1 * np.median(d))
    axis = unit * np.array([0.0, 0.02, 0.1, 0.4, 1.5])
    if depth > 3:
        return axis[[0, 2, 4]]
    smallest = d.size / float(np.sum(1.0 / np.maximum(d, 1e-12 * unit)))
    if smallest < 0.01 * unit:
        axis = np.append(axis, np.geomspace(smallest, 0.02 * unit, 4)[:-1])
    return axis


def _along(
    point: np.ndarray, move: np.ndarray, data: TreeData, restricted: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Points along a direction, shorter and shorter, cut off at 0, and their likelihoods."""
    tried = np.maximum(point + 0.5 ** np.arange(30.0)[:, None] * move, 0.0)
    legal = _has_spread(tried, data)
    values = np.full(len(tried), -np.inf)
    for part in (slice(0, 6), slice(6, 30)):
        inside = np.flatnonzero(legal[part]) + part.start
        values[inside] = log_likelihoods(tried[inside], data, restricted=restricted)
        if values.max() > log_likelihoods(point[None], data, restricted=restricted)[0]:
            break
    return tried, values


def _has_spread(variances: np.ndarray, data: TreeData) -> np.ndarray:
    """False where a domain with d = 0 would have leaf variance 0: its density is not defined."""
    if (data.d[data.seen > 0.0] > 0.0).all():
        return np.ones(variances.shape[0], dtype=bool)
    return np.asarray(variances[:, -1] > 0.0)


def _curvature(
    point: np.ndarray, data: TreeData, restricted: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Gradient (R,) and second derivatives (R, R) from differences of the exact gradient."""
    depth = point.size
    # Each level's own scale: the precision that its nodes have at hand, on average.
    trace = scores(point[None], data, restricted=False)[1][0]
    scale = np.array(data.tree.sizes) / np.maximum(trace, 1e-300)
    width = 1e-5 * (point + 1e-2 * scale)
    low = np.where(point > width, width, 0.0)
    nodes = np.concatenate([point[None], point + np.diag(width), point - np.diag(low)])
    found = scores(nodes, data, restricted=restricted)[0]
    bend = (found[1 : depth + 1] - found[depth + 1 :]) / (width + low)[:, None]
    return found[0], 0.5 * (bend + bend.T)


def _newton_step(
    gradient: np.ndarray, bend: np.ndarray, free: np.ndarray
) -> tuple[np.ndarray, float]:
    """Ascent direction on the free variances, and the gain that the quadratic promises."""
    inner = np.ix_(free, free)
    size = np.sqrt(np.maximum(np.abs(np.diag(bend))[free], 1e-300))
    curvature, vectors = np.linalg.eigh(bend[inner] / np.outer(size, size))
    safe = np.maximum(np.abs(curvature), 1e-3)
    turned = vectors.T @ (gradient[free] / size)
    move = np.zeros(gradient.size)
    move[free] = (vectors @ (turned / safe)) / size
    return move, float(0.5 * np.sum(turned**2 / safe))
