"""Parametric bootstrap of benchmarked estimates: every replicate is fitted and benchmarked anew."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pybridge.smoothing._area_bootstrap import Block, Setting, bootstrap_errors, leading, leverages
from pybridge.smoothing._back_transformation import from_model_scale, predicted
from pybridge.smoothing._benchmark import benchmarked, directions
from pybridge.smoothing._finite import finite_weights


@dataclass(frozen=True)
class Replicated:
    """What is benchmarked in every replicate, and how.

    Attributes
    ----------
    setting : Setting
        Of the model, with variances d + c for finite domains.
    synthetic : numpy.ndarray
        Shape (m,), x'β̂ on the model's scale.
    method, weight : str, numpy.ndarray
        Of benchmarking; weights (m,).
    direct_total : bool
        Whether the total is that of the direct estimates.
    total_variance : float
        Of a total from elsewhere.
    mse, direction : numpy.ndarray
        Shape (m,), the fit's own; the directions of ``mse`` where the estimates are transformed.
    estimate, variance, spread : numpy.ndarray or None
        Shape (m,), z, d and c of finite domains.
    transformation, backtransformation : str
    """

    setting: Setting
    synthetic: np.ndarray
    method: str
    weight: np.ndarray
    direct_total: bool
    total_variance: float
    mse: np.ndarray
    direction: np.ndarray
    estimate: np.ndarray
    variance: np.ndarray
    spread: np.ndarray | None
    transformation: str
    backtransformation: str


def bootstrap_change(
    asked: Replicated, *, n_replicates: int, seed: int, beside_fixed: bool
) -> np.ndarray:
    """What benchmarking adds to the MSE (m,), in the user's units.

    A difference of two mean squares over the same replicates, so that most of the noise drops out.

    Parameters
    ----------
    asked : Replicated
    n_replicates, seed : int
    beside_fixed : bool
        The difference to benchmarking along the fit's own directions, whose closed form is known,
        instead of that to no benchmarking.
    """
    streams = {name: np.random.default_rng([seed, k]) for k, name in enumerate("et", start=2)}
    kept: list[np.ndarray] = []

    def errors(block: Block) -> np.ndarray:
        truth, guess, direct, mse = _on_data_scale(asked, block, streams["e"])
        if asked.direct_total:
            total = np.nan_to_num(direct) @ asked.weight
        else:
            noise = np.sqrt(asked.total_variance) * streams["t"].standard_normal(len(truth))
            total = truth @ asked.weight + noise
        way = directions(asked.method, weight=asked.weight, estimate=guess, mse=mse)
        found = benchmarked(guess, way, weight=asked.weight, total=total)
        if beside_fixed:
            fixed = np.broadcast_to(asked.direction, guess.shape)
            guess = benchmarked(guess, fixed, weight=asked.weight, total=total)
        kept.append(((guess - truth) ** 2).sum(axis=0))
        return np.asarray(found - truth)

    after = bootstrap_errors(asked.setting, errors, n_replicates=n_replicates, seed=seed)
    return np.asarray(after - np.sum(kept, axis=0) / n_replicates)


def _on_data_scale(
    asked: Replicated, block: Block, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Truth, estimate, direct estimate and MSE (K, m) of a block, in the user's units."""
    unit = asked.setting.scaled.unit
    truth = asked.synthetic + unit * block.truth
    guess = asked.synthetic + unit * block.estimate
    direct = asked.synthetic + unit * block.direct
    if asked.transformation != "no":
        spread = unit**2 * leverages(asked.setting.design, block.solved.gram)
        guess = predicted(
            guess,
            share=block.share,
            spread=spread,
            model_variance=unit**2 * block.model_variance[:, None],
            transformation=asked.transformation,
            backtransformation=asked.backtransformation,
        )
        truth = from_model_scale(truth, asked.transformation)
        direct = from_model_scale(direct, asked.transformation)
        return truth, guess, direct, np.broadcast_to(asked.mse, truth.shape)
    mse = unit**2 * _analytic(asked.setting, block)
    if asked.spread is None:
        return truth, guess, direct, mse
    return _finite(asked, truth, guess, direct, mse, rng)


def _analytic(setting: Setting, block: Block) -> np.ndarray:
    """g₁ + g₂ + 2 g₃ (K, M) of every replicate."""
    spread = leverages(setting.design, block.solved.gram)
    found = leading(block.share, spread, block.model_variance)
    weight = block.solved.weight
    spare = 2.0 / (weight * weight).sum(axis=1, keepdims=True)
    inside = setting.scaled.sampled
    found[:, inside] += 2.0 * block.share[:, inside] ** 2 * spare * weight
    return found


def _finite(
    asked: Replicated,
    truth: np.ndarray,
    guess: np.ndarray,
    direct: np.ndarray,
    mse: np.ndarray,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """From the model's means φ to those of the finite domains, θ given φ and z."""
    assert asked.spread is not None
    seen = ~np.isnan(asked.estimate)
    own, model = finite_weights(
        estimate=asked.estimate, variance=asked.variance, spread=asked.spread
    )
    d = np.where(seen, asked.variance, 0.0)
    left = np.where(seen, own * d, asked.spread)
    z = np.where(seen, direct, 0.0)
    theta = np.where(seen, own * z + model * truth, truth)
    theta = theta + np.sqrt(left) * rng.standard_normal(truth.shape)
    estimate = np.where(seen, own * z + model * guess, guess)
    return theta, estimate, direct, np.where(seen, own * d + model**2 * mse, mse + asked.spread)
