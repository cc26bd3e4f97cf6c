"""The parametric bootstrap of the area-level model: all replicates of a block in one go.

θ* = x'β̂ + v*, v* ~ N(0, σ̂²), z* ~ N(θ*, d), the whole fit anew on every z*. With normal effects
the error of the EBLUP is that of the best predictor at the true variance plus an independent part
(Kackar and Harville 1984). The first has the variance g₁ + g₂; only the second is simulated:

    boot    g₁(σ̂²) + g₂(σ̂²) + E*(θ̂* − θ̃*)²
    bootbc  2 [g₁(σ̂²) + g₂(σ̂²)] − E*[g₁(σ̂*²) + g₂(σ̂*²)] + E*(θ̂* − θ̃*)²

The second takes off the bias of g₁ at an estimated variance (Butar and Lahiri 2003); it may be
negative, the first cannot.

References
----------
Butar and Lahiri (2003), J. Statistical Planning and Inference 112, 63; Kackar and Harville (1984),
JASA 79, 853; Rao and Molina (2015), Small Area Estimation, section 6.2.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from pybridge.smoothing._area_model import Scaled
from pybridge.smoothing._area_profile import Problem
from pybridge.smoothing._replicate_variance import (
    Solved,
    replicate_variances,
    solve_replicates,
)

MSE_TYPES = ("analytical", "boot", "bootbc")
# Elements of one (replicates, domains) array: a few of them stay in the cache.
_BLOCK = 1 << 17
_LEAST_ROWS = 8


@dataclass(frozen=True)
class Block:
    """K replicates of M domains, around x'β̂, in the units of the scaled problem.

    Attributes
    ----------
    truth, direct, estimate : numpy.ndarray
        Shape (K, M): θ* − x'β̂, z* − x'β̂ (NaN where there is no direct estimate), and the EBLUP.
    at_truth : numpy.ndarray
        Shape (K, M), the best predictor at the variance that was drawn from.
    model_variance : numpy.ndarray
        Shape (K,), estimated anew.
    share : numpy.ndarray
        Shape (K, M), 1 − γ*.
    solved : Solved
        Least squares of the replicates.
    """

    truth: np.ndarray
    direct: np.ndarray
    estimate: np.ndarray
    at_truth: np.ndarray
    model_variance: np.ndarray
    share: np.ndarray
    solved: Solved


@dataclass(frozen=True)
class Setting:
    """What replicates are drawn from: the scaled problem, the design in its basis (M, p), σ̂²."""

    scaled: Scaled
    design: np.ndarray
    model_variance: float
    method: str

    @classmethod
    def of(
        cls, scaled: Scaled, *, covariates: np.ndarray, model_variance: float, method: str
    ) -> Setting:
        """``model_variance`` in the user's units."""
        design = np.asarray(covariates, dtype=np.float64) @ scaled.to_basis
        design[scaled.sampled] = scaled.problem.basis
        return cls(scaled, design, model_variance / scaled.unit**2, method)


def blocks(setting: Setting, *, n_replicates: int, seed: int) -> Iterator[Block]:
    """The replicates, block by block; the numbers drawn do not depend on the blocks."""
    problem, sampled = setting.scaled.problem, setting.scaled.sampled
    effects, errors = (np.random.default_rng([seed, stream]) for stream in (0, 1))
    rows = max(_LEAST_ROWS, _BLOCK // len(sampled))
    for start in range(0, n_replicates, rows):
        k = min(rows, n_replicates - start)
        truth = np.sqrt(setting.model_variance) * effects.standard_normal((k, len(sampled)))
        noise = errors.standard_normal((k, len(problem.variance)))
        responses = truth[:, sampled] + np.sqrt(problem.variance) * noise
        found = replicate_variances(problem, responses, setting.method)
        solved = solve_replicates(problem, responses, found)
        fixed = solve_replicates(problem, responses, np.full(k, setting.model_variance))
        direct = np.full(truth.shape, np.nan)
        direct[:, sampled] = responses
        estimate, share = _eblup(setting, responses, solved)
        at_truth, _ = _eblup(setting, responses, fixed)
        yield Block(truth, direct, estimate, at_truth, found, share, solved)


def _eblup(
    setting: Setting, responses: np.ndarray, solved: Solved
) -> tuple[np.ndarray, np.ndarray]:
    sampled = setting.scaled.sampled
    share = np.ones((len(responses), len(sampled)))
    share[:, sampled] = setting.scaled.problem.variance * solved.weight
    estimate = solved.shift @ setting.design.T
    estimate[:, sampled] = responses - share[:, sampled] * solved.residual
    return estimate, share


def leverages(design: np.ndarray, gram: np.ndarray) -> np.ndarray:
    """x'(X'WX)⁻¹x (K, M) of a design (M, p) at grams (K, p, p)."""
    half = np.linalg.inv(np.linalg.cholesky(gram))  # (K, p, p)
    total = np.zeros((len(gram), len(design)))
    for row in range(design.shape[1]):
        total += (half[:, row] @ design.T) ** 2
    return total


def leading(share: np.ndarray, spread: np.ndarray, model_variance: np.ndarray) -> np.ndarray:
    """g₁ + g₂ (K, M) of replicates: σ²(1 − γ) + (1 − γ)² x'Qx."""
    return np.asarray(model_variance[:, None] * share + share * share * spread)


def bootstrap_mse(setting: Setting, *, n_replicates: int, seed: int, corrected: bool) -> np.ndarray:
    """Bootstrap MSE (M,) of the EBLUP, in the user's units.

    Parameters
    ----------
    setting : Setting
    n_replicates, seed : int
    corrected : bool
        Take off the bias of g₁ + g₂ at an estimated variance.
    """
    at = np.array([setting.model_variance])
    problem = setting.scaled.problem
    base = _leading_at(problem, setting, at)
    extra, drift = np.zeros(len(setting.design)), np.zeros(len(setting.design))
    for block in blocks(setting, n_replicates=n_replicates, seed=seed):
        extra += ((block.estimate - block.at_truth) ** 2).sum(axis=0)
        if corrected:
            spread = leverages(setting.design, block.solved.gram)
            drift += leading(block.share, spread, block.model_variance).sum(axis=0)
    mse = base + extra / n_replicates
    if corrected:
        mse = mse + base - drift / n_replicates
    return np.asarray(mse * setting.scaled.unit**2)


def _leading_at(problem: Problem, setting: Setting, at: np.ndarray) -> np.ndarray:
    """g₁ + g₂ (M,) at one model variance."""
    nothing = np.zeros((1, len(problem.variance)))
    solved = solve_replicates(problem, nothing, at)
    share = np.ones((1, len(setting.design)))
    share[:, setting.scaled.sampled] = problem.variance * solved.weight
    return leading(share, leverages(setting.design, solved.gram), at)[0]


def bootstrap_errors(
    setting: Setting,
    errors_of: Callable[[Block], np.ndarray],
    *,
    n_replicates: int,
    seed: int,
) -> np.ndarray:
    """Mean squares (M,) over the replicates of any error that a block has.

    Parameters
    ----------
    setting : Setting
    errors_of : callable
        From a block to errors (K, M), in whatever units.
    n_replicates, seed : int
    """
    total = np.zeros(len(setting.design))
    for block in blocks(setting, n_replicates=n_replicates, seed=seed):
        total += (errors_of(block) ** 2).sum(axis=0)
    return total / n_replicates
