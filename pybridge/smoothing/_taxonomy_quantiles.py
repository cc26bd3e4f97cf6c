"""Exact mixture quantiles of the taxonomy model, in passes over blocks of nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import ndtr, ndtri

from pybridge.smoothing._taxonomy_algebra import TreeData, blocks, sweep_down, sweep_up

_KEPT_ELEMENTS = 1 << 22
_MOST_PASSES = 60
_TOLERANCE = 2e-4
_ROOT_TWO_PI = np.sqrt(2.0 * np.pi)

Components = tuple[np.ndarray, np.ndarray, np.ndarray]


def mixture_intervals(
    variances: np.ndarray,
    weight: np.ndarray,
    data: TreeData,
    *,
    mean: np.ndarray,
    variance: np.ndarray,
    level: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Equal-tailed intervals (m,), (m,) of the mixtures over the nodes, in tree order."""

    def components() -> Iterator[Components]:
        return _components(variances, weight, data)

    return intervals_of(components, n_nodes=weight.size, mean=mean, variance=variance, level=level)


def intervals_of(
    components: Callable[[], Iterator[Components]],
    *,
    n_nodes: int,
    mean: np.ndarray,
    variance: np.ndarray,
    level: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Equal-tailed intervals (m,), (m,) of mixtures of normals that come in blocks of nodes.

    Newton's method on the probit scale for all domains at once, from the normal approximation;
    it converges quadratically, so a last step of 2e-4 standard deviations leaves about 1e-8.

    Parameters
    ----------
    components : callable
        Gives the blocks, each time anew: weights (K,), or (K, m) where they differ between the
        mixtures, means (K, m) and standard deviations (K, m).
    n_nodes : int
        Nodes in all blocks together.
    mean, variance : (m,)
        Moments of the mixtures, for the start and the brackets.
    level : float
    """
    kept = None
    if n_nodes * mean.size <= _KEPT_ELEMENTS:
        kept = list(components())
    half = 0.5 * (1.0 - level)
    target = np.array([half, 1.0 - half])
    aim = ndtri(target)
    scale = np.sqrt(variance)
    low = np.repeat((mean - 60.0 * scale)[None], 2, axis=0)
    high = np.repeat((mean + 60.0 * scale)[None], 2, axis=0)
    point = mean + aim[:, None] * scale
    for _ in range(_MOST_PASSES):
        below, density = np.zeros_like(point), np.zeros_like(point)
        for part in kept if kept is not None else components():
            _accumulate(point, part, below, density)
        moved, low, high = _newton(point, below, density, low, high, target, aim)
        largest = float(np.max(np.abs(moved - point) / np.where(scale > 0, scale, 1.0)))
        point = moved
        if largest < _TOLERANCE:
            break
    return point[0], point[1]


def _components(nodes: np.ndarray, weight: np.ndarray, data: TreeData) -> Iterator[Components]:
    """Weights (K,), means (K, m) and standard deviations (K, m) of theta, block by block."""
    z, seen = data.columns[-1], data.seen > 0.0
    for pick, mean, spread in leaf_predictions(nodes, data):
        s = nodes[pick, -1, None]
        total = s + data.d
        gamma = data.seen * s / total
        rest = np.where(seen, data.d / total, 1.0)
        own = np.where(seen, gamma * data.d, s)
        deviation = np.sqrt(np.maximum(own + rest * rest * spread, 1e-300))
        yield weight[pick], gamma * z + rest * mean, deviation


def leaf_predictions(
    nodes: np.ndarray, data: TreeData
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """What the coefficients and the coarser effects say of every domain, block by block.

    Yields the places (k,) of the block's nodes, and mean and variance (k, m) of x'beta + P_parent
    given all data.
    """
    p = data.n_coefficients
    x, parent = data.columns[:p], data.tree.parent[-1]
    for block in blocks(nodes, data, per_node=data.columns.shape[0] * sum(data.tree.sizes[:-1])):
        up = sweep_up(nodes[block], data)
        down = sweep_down(nodes[block], up, data)
        most = max(1, _KEPT_ELEMENTS // 16 // data.d.size)
        for start in range(0, block.size, most):
            part = slice(start, start + most)
            mean = up.coefficients[part] @ x
            spread = np.zeros_like(mean)
            if down:
                last = down[-1]
                group = last.constant[part] - np.einsum(
                    "kp,kpn->kn", up.coefficients[part], last.slope[part]
                )
                mean += np.take(group, parent, axis=-1)
                spread += np.take(last.variance[part], parent, axis=-1)
            for row in range(p):
                root = up.root[part, row]
                if down:
                    turned = np.einsum("kp,kpn->kn", root, last.slope[part])
                    spread += (root @ x - np.take(turned, parent, axis=-1)) ** 2
                else:
                    spread += (root @ x) ** 2
            yield block[part], mean, spread


def _accumulate(
    point: np.ndarray, part: Components, below: np.ndarray, density: np.ndarray
) -> None:
    """Add a block's share of the distribution function and density at both points (2, m)."""
    weight, centre, spread = part
    inverse = 1.0 / spread
    for side in range(2):
        standard = (point[side] - centre) * inverse
        below[side] += _mixed(weight, ndtr(standard))
        bell = np.exp(-0.5 * standard * standard) * inverse
        density[side] += _mixed(weight, bell) / _ROOT_TWO_PI


def _mixed(weight: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Weighted sums over the nodes of (K, m), with weights (K,) or (K, m)."""
    return weight @ values if weight.ndim == 1 else np.einsum("km,km->m", weight, values)


def _newton(
    point: np.ndarray,
    below: np.ndarray,
    density: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    target: np.ndarray,
    aim: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One safeguarded step, and the tightened brackets."""
    low = np.where(below < target[:, None], np.maximum(low, point), low)
    high = np.where(below > target[:, None], np.minimum(high, point), high)
    probit = ndtri(np.clip(below, 1e-300, 1.0 - 1e-16))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        slope = density * _ROOT_TWO_PI * np.exp(0.5 * probit * probit)
        moved = point - (probit - aim[:, None]) / slope
    good = np.isfinite(moved) & (moved >= low) & (moved <= high)
    return np.where(good, moved, 0.5 * (low + high)), low, high
