"""Posterior moments of the domains and of the effects, mixed over nodes of the variances.

Going down the tree, a node's effect given its prediction from above, u = mean_h'beta + P_parent, is

    v = k (z_h - u) + noise,   k = s A / (1 + s A),   noise variance s / (1 + s A),

linear in beta and P_parent. So only the first two moments of (beta, P) are needed, and they can be
averaged over all nodes that share the finer variances before the next level is entered: a level's
groups are touched once for every distinct set of variances from there to the leaves, and the
domains once for every distinct finest variance, not once for every node.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from pybridge.smoothing._taxonomy_algebra import TreeData, Upward, blocks, sweep_up


@dataclasses.dataclass(frozen=True)
class Moments:
    """Posterior moments in tree order and working units.

    ``mean``, ``variance``, ``ratio``, ``shrinkage``, ``synthetic`` (m,): of theta, posterior over
    sampling variance, the weight of the direct estimate, x'beta plus coarser effects.
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
class _Joint:
    """Moments of (beta, P) for J sets of variances and the n nodes of a level.

    ``weight`` (J,), ``beta`` (J, p), ``spread`` (J, p, p); ``mean`` (J, n), ``cross`` (J, p, n)
    and ``variance`` (J, n) of P and with beta.
    """

    weight: np.ndarray
    beta: np.ndarray
    spread: np.ndarray
    mean: np.ndarray
    cross: np.ndarray
    variance: np.ndarray

    def predict(self, x: np.ndarray, parent: np.ndarray) -> tuple[np.ndarray, ...]:
        """Mean and variance (J, n) of u = x'beta + P_parent, and Cov(beta, u) (J, p, n).

        ``x`` is (p, n) or (J, p, n).
        """
        turned = np.matmul(self.spread, x)
        above = np.take(self.cross, parent, axis=-1)
        mean = np.matmul(self.beta[:, None, :], x)[:, 0] + np.take(self.mean, parent, axis=-1)
        variance = ((turned + 2.0 * above) * x).sum(axis=1) + np.take(
            self.variance, parent, axis=-1
        )
        return mean, np.maximum(variance, 0.0), turned + above

    def collapse(self, row: np.ndarray, count: int) -> _Joint:
        """Mix the sets that ``row`` (J,) sends to the same one of ``count`` sets."""
        if count == row.size:
            order = np.argsort(row)
            fields = [getattr(self, field.name)[order] for field in dataclasses.fields(self)]
            return _Joint(*fields)
        weight = np.bincount(row, weights=self.weight, minlength=count)
        share = np.zeros((count, row.size))
        share[row, np.arange(row.size)] = self.weight / weight[row]
        beta, mean = share @ self.beta, share @ self.mean
        away, apart = self.beta - beta[row], self.mean - mean[row]
        return _Joint(
            weight=weight,
            beta=beta,
            spread=_mix(share, self.spread + away[:, :, None] * away[:, None, :]),
            mean=mean,
            cross=_mix(share, self.cross + away[:, :, None] * apart[:, None, :]),
            variance=share @ (self.variance + apart * apart),
        )


def _mix(share: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Weighted sums over the first axis of a three-dimensional array."""
    flat = share @ values.reshape(values.shape[0], -1)
    return flat.reshape((share.shape[0],) + values.shape[1:])


class _Mixture:
    """Running mean and variance of weighted parts, around a first guess so that digits stay."""

    def __init__(self) -> None:
        self.guess: np.ndarray | None = None
        self.first: np.ndarray | float = 0.0
        self.second: np.ndarray | float = 0.0
        self.within: np.ndarray | float = 0.0

    def add(self, weight: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> None:
        """Parts with weights (J,), means (J, n) and variances (J, n)."""
        if self.guess is None:
            self.guess = mean[int(np.argmax(weight))].copy()
        away = mean - self.guess
        self.first = self.first + weight @ away
        self.second = self.second + weight @ (away * away)
        self.within = self.within + weight @ variance

    @property
    def mean(self) -> np.ndarray:
        """Mean of the mixture."""
        assert self.guess is not None
        return self.guess + self.first

    @property
    def inner(self) -> np.ndarray:
        """Mean of the parts' variances plus variance of their means."""
        return self.within + np.maximum(self.second - np.square(self.first), 0.0)


class _Totals:
    """What is summed over blocks of nodes."""

    def __init__(self, data: TreeData) -> None:
        p = data.n_coefficients
        self.theta, self.regression, self.beta = _Mixture(), _Mixture(), _Mixture()
        self.effects = [_Mixture() for _ in range(data.tree.depth)]
        self.shrinkage = np.zeros(data.d.size)
        self.within = np.zeros((p, p))
        self.second = np.zeros((p, p))

    def add_coefficients(self, weight: np.ndarray, up: Upward) -> None:
        """Coefficients of a block's nodes."""
        self.beta.add(weight, up.coefficients, np.zeros_like(up.coefficients))
        assert self.beta.guess is not None
        away = up.coefficients - self.beta.guess
        self.within += np.einsum("k,kri,krj->ij", weight, up.root, up.root)
        self.second += (weight[:, None] * away).T @ away

    @property
    def covariance(self) -> np.ndarray:
        """Posterior covariance of the coefficients."""
        return self.within + self.second - np.outer(self.beta.first, self.beta.first)


def posterior_moments(variances: np.ndarray, weight: np.ndarray, data: TreeData) -> Moments:
    """Mix the conditional Gaussian posteriors over nodes (K, R) with weights (K,)."""
    totals = _Totals(data)
    parts = list(blocks(variances, data))
    # The block of the heaviest node gives the first guesses of the running moments.
    parts.sort(key=lambda pick: -float(weight[pick].max()))
    for pick in parts:
        up = sweep_up(variances[pick], data)
        totals.add_coefficients(weight[pick], up)
        joint, finest = _descend(variances[pick], weight[pick], up, data, totals)
        _add_domains(joint, finest, data, totals)
    observed = data.seen > 0.0
    inner = totals.theta.inner
    own = np.where(observed, data.d * totals.shrinkage, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(data.d > 0.0, totals.shrinkage + inner / data.d, 1.0)
    return Moments(
        mean=totals.theta.mean,
        variance=own + inner,
        ratio=np.where(observed, ratio, 0.0),
        shrinkage=totals.shrinkage,
        synthetic=totals.regression.mean,
        effects=tuple((level.mean, level.inner) for level in totals.effects),
        coefficients=totals.beta.mean,
        covariance=totals.covariance,
    )


def _descend(
    variances: np.ndarray, weight: np.ndarray, up: Upward, data: TreeData, totals: _Totals
) -> tuple[_Joint, np.ndarray]:
    """From the root to the parents of the leaves; returns them and the finest variances (J,)."""
    k, p = up.coefficients.shape
    covariance = np.matmul(np.swapaxes(up.root, 1, 2), up.root)
    zero = np.zeros((k, 1))
    joint = _Joint(weight, up.coefficients, covariance, zero, np.zeros((k, p, 1)), zero)
    held = variances
    if not up.stages:
        finest, row = np.unique(variances[:, -1], return_inverse=True)
        return joint.collapse(row.reshape(-1), finest.size), finest
    # Stage by stage: sets that differ in coarser variances only have been merged already.
    member = np.arange(k)
    for level, stage in enumerate(up.stages):
        row = stage.row[member]
        s = held[:, level, None]
        precision, centre = stage.precision[row], stage.mean[row]
        free = s / (1.0 + s * precision)
        share = free * precision
        x, parent = centre[:, :p], data.tree.parent[level]
        mean, variance, with_beta = joint.predict(x, parent)
        effect = share * (centre[:, p] - mean)
        totals.effects[level].add(joint.weight, effect, free + share * share * variance)
        # Cov(P_parent, u) = x'Cov(beta, P_parent) + Var(P_parent).
        above = np.take(joint.variance, parent, axis=-1)
        shared = (np.take(joint.cross, parent, axis=-1) * x).sum(axis=1) + above
        joint = _Joint(
            weight=joint.weight,
            beta=joint.beta,
            spread=joint.spread,
            mean=np.take(joint.mean, parent, axis=-1) + effect,
            cross=np.take(joint.cross, parent, axis=-1) - share[:, None, :] * with_beta,
            variance=np.maximum(free + above - 2.0 * share * shared + share**2 * variance, 0.0),
        )
        count = stage.precision.shape[0]
        joint = joint.collapse(row, count)
        first = np.zeros(count, dtype=np.intp)
        first[row] = np.arange(row.size)
        held, member = held[first], member[first]
    return joint, held[:, -1]


def _add_domains(joint: _Joint, finest: np.ndarray, data: TreeData, totals: _Totals) -> None:
    """The leaves, once for every distinct finest variance (J,)."""
    p = data.n_coefficients
    x, z = data.columns[:p], data.columns[p]
    mean, variance, _ = joint.predict(x, data.tree.parent[-1])
    s = finest[:, None]
    total = s + data.d
    gamma = data.seen * s / total
    # Not 1 - gamma, which loses the digits of a small d.
    rest = np.where(data.seen > 0.0, data.d / total, 1.0)
    free = np.where(data.seen > 0.0, 0.0, s)
    effect = gamma * (z - mean)
    totals.theta.add(joint.weight, gamma * z + rest * mean, rest * rest * variance + free)
    own = gamma * data.d + free
    totals.effects[-1].add(joint.weight, effect, own + gamma * gamma * variance)
    totals.regression.add(joint.weight, mean, variance)
    totals.shrinkage += joint.weight @ gamma
