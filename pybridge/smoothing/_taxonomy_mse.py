"""Mean squared error of the taxonomy model's EBLUP, second order, in O(m).

MSE = g1 + g2 + 2 g3 under REML, minus b'grad g1 under ML (Datta and Lahiri 2000). g3 needs, for
every domain, the covariance over repeated data of the predictor's derivatives with respect to the
variances. With p_h = p_g + k_h e_h, e_h = z_h - p_g, down the tree (g the parent of h), its
derivatives satisfy

    p_h' = (1 - k) p_g' + k' e_h + k z_h',

where z_h' depends on contrasts inside the node only; so the covariances follow from recursions up
(``W``: of z_h') and down (``Q``: of p_h'; ``k_``: of p_g' with e_h) the tree.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from pybridge.smoothing._taxonomy_algebra import TreeData, sweep_down, sweep_up
from pybridge.smoothing._taxonomy_likelihood import scores


@dataclasses.dataclass(frozen=True)
class _Level:
    """One level's nodes (n,): A, c = A / (1 + s A), derivatives of both (R, n), W (R, R, n)."""

    precision: np.ndarray
    weight: np.ndarray
    precision_slope: np.ndarray
    weight_slope: np.ndarray
    contrast: np.ndarray


def information(variances: np.ndarray, data: TreeData) -> np.ndarray:
    """Expected information (R, R), half the traces of V^-1 V_r V^-1 V_s.

    As minus half the derivative of the trace of V^-1 V_r, by central differences.
    """
    depth = variances.size
    width = 1e-5 * (variances + 1e-3 * float(np.median(data.d)) + 1e-3 * float(variances.sum()))
    low = np.where(variances > width, width, 0.0)
    nodes = np.concatenate([variances + np.diag(width), variances - np.diag(low)])
    trace = scores(nodes, data, restricted=False)[1]
    slope = -0.5 * (trace[:depth] - trace[depth:]) / (width + low)[:, None]
    return 0.5 * (slope + slope.T)


def third_term(variances: np.ndarray, data: TreeData, spread: np.ndarray) -> np.ndarray:
    """g3 (m,) in tree order, for the covariance (R, R) of the variances' estimator."""
    levels = _upward(variances, data)
    return _downward(variances, data, levels, spread)


def _upward(s: np.ndarray, data: TreeData) -> list[_Level]:
    """Leaves first; the list is coarse to fine."""
    tree, depth = data.tree, data.tree.depth
    total = s[-1] + data.d
    weight = data.seen / total
    slope = np.zeros((depth, weight.size))
    slope[-1] = -weight * weight
    nothing = np.zeros((depth, depth, weight.size))
    with np.errstate(divide="ignore"):
        precision = np.where(data.seen > 0.0, 1.0 / data.d, 0.0)
    found = [_Level(precision, weight, np.zeros_like(slope), slope, nothing)]
    for level in range(depth - 1, 0, -1):
        own = found[-1]
        safe = np.where(own.weight > 0.0, own.weight, 1.0)
        precision = tree.sums(own.weight, level)
        divisor = np.where(precision > 0.0, precision, 1.0)
        precision_slope = tree.sums(own.weight_slope, level)
        pairs = own.weight_slope[:, None, :] * own.weight_slope[None, :, :] / safe
        contrast = tree.sums(pairs + own.weight**2 * own.contrast, level)
        contrast = contrast - precision_slope[:, None] * precision_slope[None] / divisor
        contrast = contrast / divisor**2
        grown = 1.0 + s[level - 1] * precision
        weight = precision / grown
        slope = precision_slope / grown**2
        slope[level - 1] = -weight * weight
        found.append(_Level(precision, weight, precision_slope, slope, contrast))
    return found[::-1]


def _downward(
    s: np.ndarray, data: TreeData, levels: list[_Level], spread: np.ndarray
) -> np.ndarray:
    tree, depth = data.tree, data.tree.depth
    q = np.zeros((depth, depth, 1))
    with_error = np.zeros((depth, 1))
    zeta, variance, divisor = np.zeros(1), np.zeros(1), np.ones(1)
    precision_slope = np.zeros((depth, 1))
    for level, own in enumerate(levels):
        parent = tree.parent[level]
        share, share_slope, free = _shares(s, level, own, data)
        rest = 1.0 - share
        inverse = np.where(own.weight > 0.0, 1.0 / np.where(own.weight > 0.0, own.weight, 1.0), 0.0)
        above = zeta[parent] * own.weight / divisor[parent]
        # Cov(p_g', e_h): e_h is a contrast inside g plus what is left of g's own error.
        inside = own.weight_slope * inverse - precision_slope[:, parent] / divisor[parent]
        covariance = zeta[parent] * inside / divisor[parent] + with_error[:, parent]
        error = np.maximum(inverse - variance[parent], 0.0)
        cross = rest * covariance[:, None] * share_slope[None]
        q = (
            rest**2 * q[:, :, parent]
            + share_slope[:, None] * share_slope[None] * error
            + (share**2 + 2.0 * rest * share * above) * own.contrast
            + cross
            + np.swapaxes(cross, 0, 1)
        )
        with_error = rest * (rest * covariance + share_slope * error)
        zeta = share + rest * above
        variance = free + rest**2 * variance[parent]
        divisor = np.where(own.precision > 0.0, own.precision, 1.0)
        precision_slope = own.precision_slope
    return np.einsum("rt,rtm->m", spread, q)


def _shares(
    s: np.ndarray, level: int, own: _Level, data: TreeData
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """k = s A / (1 + s A), its derivatives (R, n), and the conditional variance s / (1 + s A)."""
    if level == data.tree.depth - 1:
        total = s[level] + data.d
        share = data.seen * s[level] / total
        slope = np.zeros_like(own.weight_slope)
        slope[level] = data.seen * data.d / total**2
        return share, slope, np.where(data.seen > 0.0, s[level] * data.d / total, s[level])
    grown = 1.0 + s[level] * own.precision
    slope = s[level] * own.precision_slope / grown**2
    slope[level] = own.precision / grown**2
    return s[level] * own.precision / grown, slope, s[level] / grown


def bias_term(variances: np.ndarray, data: TreeData, spread: np.ndarray) -> np.ndarray:
    """b'grad g1 (m,) of ML in tree order: the bias of its variances times the slope of g1."""
    depth = variances.size
    width = 1e-5 * (variances + 1e-3 * float(np.median(data.d)) + 1e-3 * float(variances.sum()))
    low = np.where(variances > width, width, 0.0)
    nodes = np.concatenate([variances + np.diag(width), variances - np.diag(low)])
    up = sweep_up(nodes, data)
    step = (width + low)[:, None]
    information_slope = np.subtract(*np.split(2.0 * up.half_log_information, 2)) / step[:, 0]
    first = _first_term(nodes, data)
    slope = (first[:depth] - first[depth:]) / step
    bias = 0.5 * spread @ information_slope
    return bias @ slope


def _first_term(nodes: np.ndarray, data: TreeData) -> np.ndarray:
    """g1 (K, m): the variance of theta given the data and the coefficients."""
    above = np.zeros((nodes.shape[0], 1))
    down = sweep_down(nodes, sweep_up(nodes, data), data)
    if down:
        above = down[-1].variance
    s = nodes[:, -1, None]
    total = s + data.d
    seen = data.seen > 0.0
    rest = np.where(seen, data.d / total, 1.0)
    own = np.where(seen, s * data.d / total, s)
    return own + rest**2 * np.take(above, data.tree.parent[-1], axis=-1)
