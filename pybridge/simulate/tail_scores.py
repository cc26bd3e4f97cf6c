"""Simulated severity scores with known tails: paired models, saturated scorers, noise levels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import expit, ndtr

from pybridge._options import check_level, real_number, whole_number
from pybridge.errors import InputError
from pybridge.tails._streams import stream
from pybridge.tails.thresholds import check_quantile


@dataclass(frozen=True)
class TailModel:
    """A unit exponential body with a generalised Pareto tail, or on the logit scale of one.

    Attributes
    ----------
    shape : float
        Of the tail.
    tail_scale : float
        Of the tail; 1 continues the body's density.
    tail_from : float
        The tail begins at this quantile.
    dents : tuple of (float, float, float)
        (from, to, factor) each: between these two quantiles scores lie ``factor`` times as far
        apart, which leaves the tail above as it is and disturbs every fit that begins below.
    location, spread : float
        The score is location + spread times that.
    sigmoid : bool
        The score is the logistic function of that, in [0, 1].
    """

    shape: float = 0.0
    tail_scale: float = 1.0
    tail_from: float = 0.90
    dents: tuple[tuple[float, float, float], ...] = ()
    location: float = 0.0
    spread: float = 1.0
    sigmoid: bool = False

    def __post_init__(self) -> None:
        real_number("shape", self.shape)
        check_quantile("tail_from", self.tail_from)
        for field in ("tail_scale", "spread"):
            if not real_number(field, getattr(self, field)) > 0:
                raise InputError(
                    f"{field} must be positive",
                    code="bad_scale",
                    field=field,
                    expected=f"{field} > 0",
                    got=getattr(self, field),
                )

    def quantile(self, exponentials: np.ndarray) -> np.ndarray:
        """Scores at -log(1 - p), of any array shape."""
        e = np.asarray(exponentials, dtype=np.float64)
        start = -math.log1p(-self.tail_from)
        beyond = np.maximum(e - start, 0.0)
        gain = np.expm1(self.shape * beyond) / self.shape if self.shape != 0 else beyond
        x = np.minimum(e, start) + self.tail_scale * gain
        for begin, end, factor in self.dents:
            slope = self.tail_scale * math.exp(self.shape * max(-math.log1p(-begin) - start, 0.0))
            low, high = -math.log1p(-begin), -math.log1p(-end)
            x = x + (factor - 1.0) * slope * (np.clip(e, low, high) - low)
        x = self.location + self.spread * x
        return expit(x) if self.sigmoid else x


def equal_tail_means(shape: float, *, other_shape: float, other_scale: float = 1.0) -> float:
    """The tail scale at which TVaR beyond the tail's start, and so the mean, equals another's.

    The mean excess is scale / (1 - shape) for shapes below 1.
    """
    return other_scale * (1.0 - shape) / (1.0 - other_shape)


def simulate_tail_scores(
    models: Mapping[str, TailModel],
    *,
    n_items: int,
    correlation: float | Mapping[str, float] = 0.5,
    seed: int = 1,
    scorer: str | None = None,
) -> pd.DataFrame:
    """Scores of several models on the same items.

    Parameters
    ----------
    models : mapping of str to TailModel
    n_items : int
        The first items are the same for every larger number.
    correlation : float or mapping of str to float
        Of a model's normal scores with the difficulty of the items, in [0, 1); two models with
        correlations r and s have r s between them (Gaussian copula).
    seed : int
    scorer : str, optional
        Adds that column.

    Returns
    -------
    pandas.DataFrame
        model, item, score (and scorer), model by model.
    """
    n = whole_number("n_items", n_items, least=1)
    difficulty = stream(seed, "items").standard_normal(n)
    parts = []
    for name, model in models.items():
        r = correlation[name] if isinstance(correlation, Mapping) else correlation
        if not 0.0 <= real_number("correlation", r) < 1.0:
            raise InputError(
                "a correlation must lie in [0, 1)",
                code="bad_correlation",
                field="correlation",
                expected="0 <= correlation < 1",
                got=r,
            )
        own = stream(seed, "model", name).standard_normal(n)
        z = r * difficulty + math.sqrt(1.0 - r * r) * own
        # 1 - p = P(Z > z), from the upper tail so that no digits are lost there.
        score = model.quantile(-np.log(ndtr(-z)))
        parts.append(pd.DataFrame({"model": name, "item": np.arange(n), "score": score}))
    table = pd.concat(parts, ignore_index=True)
    return table if scorer is None else table.assign(scorer=scorer)


def perturbed_model(
    noise_levels: Sequence[float], *, n_items: int, model: TailModel = TailModel(), seed: int = 1
) -> pd.DataFrame:
    """One model under several levels of noise: how a perturbation pilot looks without any effect.

    A level of noise loosens the tie between a score and its item and leaves the distribution as
    it is, so that every true difference of shapes is 0.

    Parameters
    ----------
    noise_levels : sequence of float
        In (0, 1]: the share of the normal score's standard deviation that is noise.

    Returns
    -------
    pandas.DataFrame
        As :func:`simulate_tail_scores`, models named "noise 0.1" and so on.
    """
    names = {f"noise {level:g}": math.sqrt(1.0 - level**2) for level in map(_level, noise_levels)}
    models = {name: model for name in names}
    return simulate_tail_scores(models, n_items=n_items, correlation=names, seed=seed)


def _level(value: float) -> float:
    number = real_number("noise_levels", value)
    return number if number == 1.0 else check_level(number)
