"""Posterior predictions of every domain without its own label, by reweighting quadrature nodes.

Given the variances s the model is Gaussian, and with P = V⁻¹ − V⁻¹X(X'V⁻¹X)⁻¹X'V⁻¹ of all domains

    z_i | z_(−i), s  ~  N( z_i − (Pz)_i / P_ii,  1 / P_ii ).

The likelihood without domain i is the whole one divided by this density, so the posterior of s
without it has the same nodes with weights w_k / p(z_i | z_(−i), s_k): exact, no refit. Where an
outlying domain would move the posterior to where the rule has hardly any nodes, that domain is
fitted again.

References
----------
Geisser and Eddy (1979), Journal of the American Statistical Association 74, 153. Gelfand, Dey and
Chang (1992), in Bayesian Statistics 4: predictive distributions without one observation.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import ndtr

from pybridge.smoothing._taxonomy_quantiles import Components, intervals_of

_HALF_LOG_TWO_PI = 0.5 * float(np.log(2.0 * np.pi))
# A domain's own part of a precision, as 1 minus a leverage, keeps this many digits at least.
_LEAST_SHARE = 1e-9


@dataclasses.dataclass(frozen=True)
class Block:
    """Some nodes of the variances, for the n labelled domains.

    ``log_weight`` (k,) or (k, n) of the nodes in the posterior of the predictions; ``residual``
    (k, n), direct estimates minus predictions; ``spread`` (k, n), variances of the direct
    estimates about their predictions; ``thin`` bool, (k, 1) or (k, n), nodes at the rule's edge.
    """

    log_weight: np.ndarray
    residual: np.ndarray
    spread: np.ndarray
    thin: np.ndarray


@dataclasses.dataclass(frozen=True)
class Predictions:
    """Predictions of the n labelled domains, each without its own label; arrays (n,).

    ``prediction``, ``mse``, ``lower``, ``upper`` of the domain mean; ``spread``: variance of the
    direct estimate about the prediction; ``probability``: the predictive distribution function at
    the direct estimate; ``log_density``: the predictive density there; ``edge``: share of the
    weight at the rule's edge.
    """

    prediction: np.ndarray
    mse: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    spread: np.ndarray
    probability: np.ndarray
    log_density: np.ndarray
    edge: np.ndarray


def without_own(
    *,
    log_weight: np.ndarray,
    pulled: np.ndarray,
    own: np.ndarray,
    share: np.ndarray,
    thin: np.ndarray,
) -> Block:
    """The block of nodes reweighted, from (Pz)_i and P_ii = own × share (k, n) of all domains.

    Where next to nothing is left of a share (a domain known exactly, at a variance near 0), it is
    rounding: such a node counts as one at the edge.
    """
    lost = share < _LEAST_SHARE
    precision = own * np.where(lost, _LEAST_SHARE, share)
    residual = pulled / precision
    density = 0.5 * np.log(precision) - 0.5 * residual * pulled
    return Block(log_weight[:, None] - density, residual, 1.0 / precision, thin[:, None] | lost)


def predict(
    blocks: Callable[[], Iterator[Block]],
    *,
    estimate: np.ndarray,
    variance: np.ndarray,
    n_nodes: int,
    level: float,
    reweighted: bool = True,
) -> Predictions:
    """Mix the predictions over the nodes.

    Parameters
    ----------
    blocks : callable
        Gives all blocks, each time anew.
    estimate, variance : (n,)
        Direct estimates and sampling variances.
    n_nodes : int
    level : float
        Mass of the intervals of the domain means.
    reweighted : bool
        Whether the weights were divided by the density of the domain's own estimate.
    """
    sums = _Sums(estimate.size)
    for block in blocks():
        sums.add(block, reweighted)
    total = sums.total
    mean = sums.first / total
    spread = sums.within / total + np.maximum(sums.second / total - mean * mean, 0.0)
    scale = sums.top + np.log(total)
    # For reweighted nodes the sum of the weights is 1 / p(z_i | z_(−i)).
    log_density = -scale if reweighted else np.log(sums.density / total)
    prediction, mse = estimate - mean, np.maximum(spread - variance, 0.0)

    def components() -> Iterator[Components]:
        for block in blocks():
            weight = np.exp(_wide(block) - scale)
            own = np.sqrt(np.maximum(block.spread - variance, 1e-300))
            yield weight, estimate - block.residual, own

    lower, upper = intervals_of(
        components, n_nodes=n_nodes, mean=prediction, variance=mse, level=level
    )
    return Predictions(
        prediction=prediction,
        mse=mse,
        lower=lower,
        upper=upper,
        spread=spread,
        probability=np.clip(sums.below / total, 0.0, 1.0),
        log_density=log_density - _HALF_LOG_TWO_PI,
        edge=sums.edge / total,
    )


def _wide(block: Block) -> np.ndarray:
    """Log weights (k, n)."""
    own = block.log_weight
    return np.broadcast_to(own[:, None], block.residual.shape) if own.ndim == 1 else own


class _Sums:
    """Weighted sums over blocks of nodes, relative to each domain's heaviest node so far."""

    def __init__(self, n: int) -> None:
        self.top = np.full(n, -np.inf)
        self.total, self.first, self.second = np.zeros(n), np.zeros(n), np.zeros(n)
        self.within, self.below, self.density = np.zeros(n), np.zeros(n), np.zeros(n)
        self.edge = np.zeros(n)

    def add(self, block: Block, reweighted: bool) -> None:
        """One block of nodes."""
        log_weight = _wide(block)
        top = np.maximum(self.top, log_weight.max(axis=0))
        with np.errstate(invalid="ignore"):
            shrink = np.where(np.isfinite(self.top), np.exp(self.top - top), 0.0)
        for name in ("total", "first", "second", "within", "below", "density", "edge"):
            setattr(self, name, getattr(self, name) * shrink)
        self.top = top
        weight = np.exp(log_weight - top)
        standard = block.residual / np.sqrt(block.spread)
        self.total += weight.sum(axis=0)
        self.first += (weight * block.residual).sum(axis=0)
        self.second += (weight * block.residual**2).sum(axis=0)
        self.within += (weight * block.spread).sum(axis=0)
        self.below += (weight * ndtr(standard)).sum(axis=0)
        self.edge += np.where(block.thin, weight, 0.0).sum(axis=0)
        if not reweighted:
            bell = np.exp(-0.5 * standard * standard) / np.sqrt(block.spread)
            self.density += (weight * bell).sum(axis=0)
