"""Nested Gaussian algebra: one sweep up the tree and one down, for many variances at once.

Given the variances s_1..s_R the model is Gaussian, and integrating out the effects of one level
leaves a model of the same form one level up: a group acts as a pseudo-observation with precision
A = sum of its children's weights, and its own weight is c = A / (1 + s A). So a likelihood costs
O(m) whatever the tree, and no matrix larger than p x p is formed. Within-group scatter is summed
around the group's mean, which keeps the digits when groups are far apart.

Arrays carry the K nodes (sets of variances) first and the tree's nodes last. Work that depends on
the finer variances only is done once for each distinct value of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from pybridge.smoothing._bayes_quadrature import least_squares
from pybridge.smoothing._taxonomy_tree import Tree

BLOCK_ELEMENTS = 1 << 20


@dataclasses.dataclass(frozen=True)
class TreeData:
    """Domains in tree order and working units.

    ``seen`` (m,) 1 where there are labels, else 0; ``d`` (m,) sampling variances (1 where not
    seen); ``columns`` (q, m) the p covariates and then the estimates (0 where not seen).
    """

    tree: Tree
    seen: np.ndarray
    d: np.ndarray
    columns: np.ndarray

    @property
    def n_coefficients(self) -> int:
        """The number p of coefficients."""
        return self.columns.shape[0] - 1


@dataclasses.dataclass(frozen=True)
class Stage:
    """Groups of one level as pseudo-observations.

    ``precision`` (J, n), ``mean`` (J, q, n) for J distinct sets of finer variances, and ``row``
    (K,): which of the J belongs to each node.
    """

    precision: np.ndarray
    mean: np.ndarray
    row: np.ndarray


@dataclasses.dataclass(frozen=True)
class Upward:
    """Result of the sweep up: coefficients given K sets of variances, and the groups' stages.

    ``log_likelihood`` (K,) restricted, up to a constant; ``log_determinant``, ``rest`` (K,) of
    the marginal covariance and the weighted residuals; ``half_log_information`` (K,).
    """

    log_determinant: np.ndarray
    half_log_information: np.ndarray
    rest: np.ndarray
    coefficients: np.ndarray
    root: np.ndarray
    stages: tuple[Stage, ...]

    @property
    def log_likelihood(self) -> np.ndarray:
        """The restricted log-likelihood up to a constant."""
        return -0.5 * self.log_determinant - self.half_log_information - 0.5 * self.rest


@dataclasses.dataclass(frozen=True)
class Effects:
    """Sums of effects down to one level, given beta: mean a - b'beta, variance t.

    ``constant`` (K, n), ``slope`` (K, p, n), ``variance`` (K, n).
    """

    constant: np.ndarray
    slope: np.ndarray
    variance: np.ndarray


def sweep_up(variances: np.ndarray, data: TreeData) -> Upward:
    """Integrate the effects out, leaves first. ``variances`` (K, R), coarse to fine."""
    tree = data.tree
    leaf_value, row = np.unique(variances[:, -1], return_inverse=True)
    row = row.reshape(-1)
    total = data.d + leaf_value[:, None]
    log_determinant = np.log(total) @ data.seen
    weight = data.seen / total
    mean = np.broadcast_to(data.columns, (leaf_value.size,) + data.columns.shape)
    scatter = np.zeros((leaf_value.size, data.columns.shape[0], data.columns.shape[0]))
    stages: list[Stage] = []
    for level in range(tree.depth - 1, 0, -1):
        precision, centre, within = _gather(weight, mean, tree, level)
        scatter = scatter + within
        stages.append(Stage(precision=precision, mean=centre, row=row))
        value = variances[:, level - 1]
        pair, pick = _distinct(row, value)
        s = value[pick][:, None]
        old = row[pick]
        grown = s * precision[old]
        log_determinant = log_determinant[old] + np.log1p(grown).sum(axis=1)
        weight = precision[old] / (1.0 + grown)
        mean, scatter, row = centre[old], scatter[old], pair
    scatter = scatter + np.matmul(mean * weight[:, None, :], np.swapaxes(mean, 1, 2))
    coefficients, root, half_log, rest = least_squares(scatter)
    return Upward(
        log_determinant=log_determinant[row],
        half_log_information=half_log[row],
        rest=rest[row],
        coefficients=coefficients[row],
        root=root[row],
        stages=tuple(reversed(stages)),
    )


def _distinct(row: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct pairs of (row, value): the pair of each node, and one node of each pair."""
    rank = np.unique(value, return_inverse=True)[1].reshape(-1)
    key = row.astype(np.int64) * (rank.max() + 1) + rank
    _, pick, pair = np.unique(key, return_index=True, return_inverse=True)
    return pair.reshape(-1), pick


def _gather(
    weight: np.ndarray, mean: np.ndarray, tree: Tree, level: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Children (J, n), (J, q, n) to parents: precision, mean, and the scatter within (J, q, q)."""
    precision = tree.sums(weight, level)
    # A group without labels has precision 0, and any mean will do.
    divisor = np.where(precision > 0.0, precision, 1.0)
    weighted = mean * weight[:, None, :]
    centre = tree.sums(weighted, level) / divisor[:, None, :]
    away = mean - np.take(centre, tree.parent[level], axis=-1)
    np.multiply(away, weight[:, None, :], out=weighted)
    within = np.matmul(weighted, np.swapaxes(away, 1, 2))
    return precision, centre, within


def sweep_down(variances: np.ndarray, up: Upward, data: TreeData) -> list[Effects]:
    """Sums of effects P_g down to each level above the leaves, given beta, coarse to fine.

    P_h = k (mean_h - x_h'beta) + (1 - k) P_parent + noise, k = s A / (1 + s A).
    """
    p = data.n_coefficients
    found: list[Effects] = []
    for level, stage in enumerate(up.stages):
        s = variances[:, level, None]
        precision, mean = stage.precision[stage.row], stage.mean[stage.row]
        free = s / (1.0 + s * precision)
        share = free * precision
        constant = share * mean[:, p]
        slope = share[:, None, :] * mean[:, :p]
        variance = free
        if level > 0:
            rest, above, parent = 1.0 - share, found[-1], data.tree.parent[level]
            constant = constant + rest * np.take(above.constant, parent, axis=-1)
            slope = slope + rest[:, None, :] * np.take(above.slope, parent, axis=-1)
            variance = free + rest * rest * np.take(above.variance, parent, axis=-1)
        found.append(Effects(constant=constant, slope=slope, variance=variance))
    return found


def blocks(variances: np.ndarray, data: TreeData, *, per_node: int = 0) -> Iterator[np.ndarray]:
    """Indices of nodes in blocks of bounded memory, sorted so that fine variances repeat.

    A level costs memory once for every distinct set of the variances up to it; ``per_node`` is
    what every single node costs beside, in elements.
    """
    if variances.shape[0] == 0:
        return
    tree, q = data.tree, data.columns.shape[0]
    most = q * q + 8 + per_node + q * sum(tree.sizes)
    if most * variances.shape[0] <= BLOCK_ELEMENTS:
        yield np.arange(variances.shape[0])
        return
    order = np.lexsort(tuple(variances[:, level] for level in range(tree.depth)))
    cost = np.full(order.size, float(q * q + 8 + per_node))
    new = np.zeros(order.size, dtype=bool)
    new[0] = True
    for level in range(tree.depth - 1, -1, -1):
        value = variances[order, level]
        new = new | (np.diff(value, prepend=value[0]) != 0.0)
        cost += q * tree.sizes[level] * new
    group = (np.cumsum(cost) // BLOCK_ELEMENTS).astype(np.int64)
    yield from np.split(order, np.flatnonzero(np.diff(group)) + 1)
