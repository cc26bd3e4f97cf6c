"""Gibbs sampler of the taxonomy model, for more levels than quadrature can take.

Two blocks: coefficients and all effects jointly, given the variances (one sweep up and one down,
so strongly correlated levels do not slow it); then each variance from its inverse-gamma. Chains run
side by side as array rows. Only the variances and coefficients are kept: the domains' moments are
then mixed exactly over the kept variances, which removes most of the Monte Carlo error.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from pybridge.smoothing._taxonomy_algebra import TreeData, sweep_up


@dataclasses.dataclass(frozen=True)
class Draws:
    """Kept draws in working units.

    ``variances`` (chains, draws, R), ``coefficients`` (chains, draws, p), ``r_hat`` and
    ``effective_size`` (R + p,): of the log variances, then of the coefficients.
    """

    variances: np.ndarray
    coefficients: np.ndarray
    r_hat: np.ndarray
    effective_size: np.ndarray


def sample(
    data: TreeData,
    *,
    shape: np.ndarray,
    rate: np.ndarray,
    start: np.ndarray,
    rng: np.random.Generator,
    n_chains: int = 8,
    n_warmup: int = 300,
    n_draws: int = 1000,
) -> Draws:
    """Draw from the posterior of the variances (R,) and the coefficients (p,).

    Parameters
    ----------
    data : TreeData
    shape, rate : (R,)
        Inverse-gamma priors of the variances.
    start : (R,)
        Typical variances; the chains start spread around them by a factor of about 10.
    rng : numpy.random.Generator
    n_chains, n_warmup, n_draws : int
        Chains, draws thrown away and draws kept, a chain.
    """
    depth, p = data.tree.depth, data.n_coefficients
    counts = _labelled_counts(data)
    variances = start * np.exp(rng.normal(scale=1.2, size=(n_chains, depth)))
    kept = np.empty((n_chains, n_draws, depth))
    beta = np.empty((n_chains, n_draws, p))
    for turn in range(n_warmup + n_draws):
        coefficients, squares = _effects(variances, data, rng)
        shapes = shape + 0.5 * counts
        variances = (rate + 0.5 * squares) / rng.gamma(shapes, size=(n_chains, depth))
        if turn >= n_warmup:
            kept[:, turn - n_warmup] = variances
            beta[:, turn - n_warmup] = coefficients
    watched = np.concatenate([np.log(kept), beta], axis=-1)
    checks = [convergence(watched[:, :, column]) for column in range(depth + p)]
    return Draws(
        variances=kept,
        coefficients=beta,
        r_hat=np.array([r_hat for r_hat, _ in checks]),
        effective_size=np.array([size for _, size in checks]),
    )


def _labelled_counts(data: TreeData) -> np.ndarray:
    """Groups with labels a level (R,): the others carry no information and are left out."""
    counts = []
    for level in range(data.tree.depth):
        there = np.bincount(data.tree.climb(level), weights=data.seen)
        counts.append(int((there > 0.0).sum()))
    return np.array(counts, dtype=np.float64)


def _effects(
    variances: np.ndarray, data: TreeData, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """A joint draw given the variances (C, R): coefficients (C, p), sums of squares (C, R)."""
    tree, p = data.tree, data.n_coefficients
    chains = variances.shape[0]
    up = sweep_up(variances, data)
    noise = rng.normal(size=(chains, p))
    beta = up.coefficients + np.einsum("kji,kj->ki", up.root, noise)
    above = np.zeros((chains, 1))
    squares = np.empty((chains, tree.depth))
    for level in range(tree.depth):
        s = variances[:, level, None]
        parent = tree.parent[level]
        if level < tree.depth - 1:
            stage = up.stages[level]
            precision, mean = stage.precision[stage.row], stage.mean[stage.row]
            free = s / (1.0 + s * precision)
            share = free * precision
            there = precision > 0.0
        else:
            total = s + data.d
            share = data.seen * s / total
            free = share * data.d
            mean = np.broadcast_to(data.columns, (chains,) + data.columns.shape)
            there = np.broadcast_to(data.seen > 0.0, share.shape)
        u = np.matmul(beta[:, None, :], mean[:, :p])[:, 0] + np.take(above, parent, axis=-1)
        draw = share * (mean[:, p] - u) + np.sqrt(free) * rng.normal(size=free.shape)
        squares[:, level] = np.where(there, draw * draw, 0.0).sum(axis=1)
        above = np.take(above, parent, axis=-1) + draw
    return beta, squares


def convergence(draws: np.ndarray) -> tuple[float, float]:
    """Split R-hat and effective sample size of one number, from draws (chains, n).

    References
    ----------
    Gelman et al. (2013), Bayesian Data Analysis, section 11.5; Geyer (1992), initial monotone
    sequence.
    """
    half = draws.shape[1] // 2
    parts = np.concatenate([draws[:, :half], draws[:, half : 2 * half]])
    m, n = parts.shape
    within = float(parts.var(axis=1, ddof=1).mean())
    between = n * float(parts.mean(axis=1).var(ddof=1))
    if not within > 0.0:
        return float("nan"), float("nan")
    total = (n - 1) / n * within + between / n
    centred = parts - parts.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, n=2 * n, axis=1)
    autocovariance = np.fft.irfft(np.abs(spectrum) ** 2, axis=1)[:, :n].mean(axis=0) / n
    correlation = 1.0 - (within - autocovariance * n / (n - 1)) / total
    pairs = correlation[: 2 * (n // 2)].reshape(-1, 2).sum(axis=1)
    stop = np.flatnonzero(pairs <= 0.0)
    pairs = np.minimum.accumulate(pairs[: stop[0]] if stop.size else pairs)
    time = max(2.0 * float(pairs.sum()) - 1.0, 1.0 / np.log10(max(m * n, 10)))
    return float(np.sqrt(total / within)), float(m * n / time)
