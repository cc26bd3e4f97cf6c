"""Posterior moments of the domains and of the effects, mixed over nodes of the variances.

Given the variances and beta, a domain's regression plus coarser effects T_i is x_i'beta + P_g with
P_g = a_g - b_g'beta + noise, so over all nodes that share the finest variance the first two
moments of T_i follow from moments at the level of the groups. The domains themselves are touched
once for every distinct finest variance, not once for every node.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from pybridge.smoothing._taxonomy_algebra import (
    Effects,
    TreeData,
    Upward,
    blocks,
    sweep_down,
    sweep_up,
)


@dataclasses.dataclass(frozen=True)
class Moments:
    """Posterior moments in tree order and working units.

    ``mean``, ``variance``, ``shrinkage``, ``synthetic``, ``ratio`` (m,): of theta, the weight of
    the direct estimate, x'beta plus coarser effects, and posterior over sampling variance.
    ``effects``: for each level (mean, variance) of its effects (n_r,). ``coefficients`` (p,),
    ``covariance`` (p, p).
    """

    mean: np.ndarray
    variance: np.ndarray
    ratio: np.ndarray
    shrinkage: np.ndarray
    synthetic: np.ndarray
    effects: tuple[tuple[np.ndarray, np.ndarray], ...]
    coefficients: np.ndarray
    covariance: np.ndarray


@dataclasses.dataclass(frozen=True)
class _Slice:
    """Nodes that share one finest variance: T_i has mean x'b + g and variance x'Mx - 2 x'c + e."""

    weight: float
    variance: float
    coefficients: np.ndarray
    spread: np.ndarray
    group_mean: np.ndarray
    group_cross: np.ndarray
    group_spread: np.ndarray


class _Mixture:
    """Running mean and variance of weighted parts, around a first guess so that digits stay."""

    def __init__(self) -> None:
        self.guess: np.ndarray | None = None
        self.first: np.ndarray | float = 0.0
        self.second: np.ndarray | float = 0.0
        self.within: np.ndarray | float = 0.0

    def add(self, weight: float, mean: np.ndarray, variance: np.ndarray) -> None:
        """A part with this weight, mean and variance."""
        if self.guess is None:
            self.guess = mean.copy()
        away = mean - self.guess
        self.first = self.first + weight * away
        self.second = self.second + weight * away * away
        self.within = self.within + weight * variance

    @property
    def mean(self) -> np.ndarray:
        """Mean of the mixture."""
        assert self.guess is not None
        return self.guess + self.first

    @property
    def between(self) -> np.ndarray:
        """Variance of the parts' means."""
        return np.maximum(self.second - np.square(self.first), 0.0)


def posterior_moments(variances: np.ndarray, weight: np.ndarray, data: TreeData) -> Moments:
    """Mix the conditional Gaussian posteriors over K nodes, (K, R) and (K,), heaviest first."""
    tree, p = data.tree, data.n_coefficients
    theta, leaf, regression = _Mixture(), _Mixture(), _Mixture()
    groups = [_Mixture() for _ in range(tree.depth - 1)]
    beta = _Mixture()
    shrinkage = np.zeros(data.d.size)
    covariance = np.zeros((p, p))
    cross = np.zeros((p, p))
    for pick in _heaviest_first(variances, weight, data):
        up = sweep_up(variances[pick], data)
        down = sweep_down(variances[pick], up, data)
        share = weight[pick]
        _add_groups(groups, share, variances[pick], up, down, data)
        away = up.coefficients - up.coefficients[0]
        covariance += np.einsum("k,kri,krj->ij", share, up.root, up.root)
        for part in _slices(variances[pick, -1], share, up, down, data):
            gamma = _add_slice(theta, leaf, regression, part, data)
            shrinkage += part.weight * gamma
        beta.add(float(share.sum()), share @ up.coefficients / share.sum(), np.zeros(p))
        local = share @ away / share.sum()
        cross += (share[:, None] * (away - local)).T @ (away - local)
        cross += share.sum() * np.outer(*(2 * [up.coefficients[0] + local - beta.guess]))
    cross -= np.outer(beta.first, beta.first)
    observed = data.seen > 0.0
    inner = theta.within + theta.between
    own = np.where(observed, data.d * shrinkage, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(data.d > 0.0, shrinkage + inner / data.d, 1.0)
    effects = [(group.mean, group.within + group.between) for group in groups]
    effects.append((leaf.mean, leaf.within + leaf.between))
    return Moments(
        mean=theta.mean,
        variance=own + inner,
        ratio=np.where(observed, ratio, 0.0),
        shrinkage=shrinkage,
        synthetic=regression.mean,
        effects=tuple(effects),
        coefficients=beta.mean,
        covariance=covariance + cross,
    )


def _heaviest_first(variances: np.ndarray, weight: np.ndarray, data: TreeData) -> list[np.ndarray]:
    """Blocks of nodes, the one with the heaviest node first: it gives the first guesses."""
    parts = list(blocks(variances, data, full=True))
    parts.sort(key=lambda pick: -float(weight[pick].max()))
    return parts


def _add_groups(
    groups: list[_Mixture],
    weight: np.ndarray,
    variances: np.ndarray,
    up: Upward,
    down: list[Effects],
    data: TreeData,
) -> None:
    """Effects v = P_h - P_parent of every level above the leaves."""
    total = float(weight.sum())
    share = weight / total
    for level, (stage, own) in enumerate(zip(up.stages, down)):
        s = variances[:, level, None]
        precision = stage.precision[stage.row]
        free = s / (1.0 + s * precision)
        constant, slope, variance = own.constant, own.slope, free
        if level > 0:
            parent, above = data.tree.parent[level], down[level - 1]
            constant = constant - above.constant[:, parent]
            slope = slope - above.slope[:, :, parent]
            variance = free + (free * precision) ** 2 * above.variance[:, parent]
        mean = constant - np.einsum("kp,kpn->kn", up.coefficients, slope)
        variance = variance + (np.matmul(up.root, slope) ** 2).sum(axis=1)
        centre = share @ mean
        groups[level].add(total, centre, share @ (variance + (mean - centre) ** 2))


def _slices(
    finest: np.ndarray, weight: np.ndarray, up: Upward, down: list[Effects], data: TreeData
) -> list[_Slice]:
    """The nodes of a block, collected by their finest variance."""
    values, row = np.unique(finest, return_inverse=True)
    row = row.reshape(-1)
    parts = []
    for place, value in enumerate(values):
        pick = np.flatnonzero(row == place)
        total = float(weight[pick].sum())
        share = weight[pick] / total
        beta, root = up.coefficients[pick], up.root[pick]
        centre = share @ beta
        away = beta - centre
        spread = np.einsum("k,kri,krj->ij", share, root, root)
        spread += (share[:, None] * away).T @ away
        group = _group_parts(share, beta, away, root, pick, down, data)
        parts.append(_Slice(total, float(value), centre, spread, *group))
    return parts


def _group_parts(
    share: np.ndarray,
    beta: np.ndarray,
    away: np.ndarray,
    root: np.ndarray,
    pick: np.ndarray,
    down: list[Effects],
    data: TreeData,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean (n,), cross moment (p, n) and spread (n,) of the leaves' parents in one slice."""
    if not down:
        p = data.n_coefficients
        return np.zeros(1), np.zeros((p, 1)), np.zeros(1)
    last = down[-1]
    slope = last.slope[pick]
    level = last.constant[pick] - np.einsum("kp,kpn->kn", beta, slope)
    mean = share @ level
    turned = np.matmul(root, slope)
    cross = np.einsum("k,krp,krn->pn", share, root, turned)
    cross -= (share[:, None] * away).T @ (level - mean)
    spread = share @ ((turned**2).sum(axis=1) + last.variance[pick] + (level - mean) ** 2)
    return mean, cross, spread


def _add_slice(
    theta: _Mixture, leaf: _Mixture, regression: _Mixture, part: _Slice, data: TreeData
) -> np.ndarray:
    """Add one slice to the domains' moments; returns gamma (m,)."""
    p = data.n_coefficients
    x, z = data.columns[:p], data.columns[p]
    parent = data.tree.parent[-1]
    mean = part.coefficients @ x + part.group_mean[parent]
    spread = np.einsum("im,im->m", x, part.spread @ x - 2.0 * part.group_cross[:, parent])
    spread = np.maximum(spread + part.group_spread[parent], 0.0)
    total = part.variance + data.d
    gamma = data.seen * part.variance / total
    # Not 1 - gamma, which loses the digits of a small d.
    rest = np.where(data.seen > 0.0, data.d / total, 1.0)
    free = np.where(data.seen > 0.0, 0.0, part.variance)
    own = gamma * data.d + free
    theta.add(part.weight, gamma * z + rest * mean, rest * rest * spread + free)
    leaf.add(part.weight, gamma * (z - mean), own + gamma * gamma * spread)
    regression.add(part.weight, mean, spread)
    return gamma
