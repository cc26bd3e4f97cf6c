"""A within-model perturbation pilot, simulated: what noise alone seems to do to the tail's shape.

One model answers the same items under several levels of noise that leave the distribution of its
scores as it is, so that every true difference of shapes is 0. The pilot is repeated, which a real
one cannot be: a single one shows one draw of what is tabulated here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from pybridge._options import whole_number
from pybridge._record import Record
from pybridge.simulate.tail_scores import TailModel, perturbed_model
from pybridge.tails.generalized_pareto import fit_many
from pybridge.tails.planning import detectable_difference, required_exceedances
from pybridge.tails.thresholds import check_quantile


@dataclass(frozen=True, eq=False, repr=False)
class PerturbationPilot(Record):
    """The largest apparent difference of shapes between noise levels, over repetitions.

    Attributes
    ----------
    noise_levels : tuple of float
    n_items, n_exceedances : numpy.ndarray
        (k,) integers, one for each size of the pilot.
    largest : numpy.ndarray
        (k, repetitions) float64: the largest |difference of estimated shapes| of all pairs of
        levels; the same repetition holds the same first items at every size.
    apart : numpy.ndarray
        (k, repetitions) bool: some pair's 95 % delta intervals do not overlap.
    required : int
        Exceedances that G3 asks for.
    seed : int
    """

    noise_levels: tuple[float, ...]
    n_items: np.ndarray
    n_exceedances: np.ndarray
    largest: np.ndarray
    apart: np.ndarray
    required: int
    seed: int

    def to_frame(self) -> pd.DataFrame:
        """A row a size: quantiles of the largest apparent difference, and what G3 says."""
        low, middle, high = np.quantile(self.largest, [0.05, 0.5, 0.95], axis=1)
        return pd.DataFrame(
            {
                "n_items": self.n_items,
                "n_exceedances": self.n_exceedances,
                "apparent_median": middle,
                "apparent_5_percent": low,
                "apparent_95_percent": high,
                "share_above_0.10": (self.largest > 0.10).mean(axis=1),
                "share_intervals_apart": self.apart.mean(axis=1),
                "detectable": [detectable_difference(int(n)) for n in self.n_exceedances],
                "G3": np.where(self.n_exceedances >= self.required, "pass", "fail"),
            }
        )

    def shrinkage(self) -> np.ndarray:
        """(repetitions,) largest apparent difference at the first size over that at the last."""
        return self.largest[0] / self.largest[-1]

    def summary(self) -> str:
        times = np.quantile(self.shrinkage(), [0.05, 0.5, 0.95])
        levels = ", ".join(f"{level:g}" for level in self.noise_levels)
        expected = math.sqrt(self.n_exceedances[-1] / self.n_exceedances[0])
        return (
            f"One model under noise of {levels}: every true difference of shapes is 0\n"
            f"{self.to_frame().to_string(index=False, float_format=lambda v: f'{v:.3f}')}\n"
            f"From {self.n_items[0]} to {self.n_items[-1]} items the largest apparent difference "
            f"shrinks {times[1]:.1f}-fold in the median repetition ({times[0]:.1f} to "
            f"{times[2]:.1f}; the square root of the ratio of exceedances is {expected:.1f}), "
            f"{self.largest.shape[1]} repetitions, seed {self.seed}"
        )


def perturbation_pilot(
    noise_levels: Sequence[float] = (0.1, 0.2, 0.4, 0.8),
    *,
    n_items: Sequence[int] = (2000, 30_000),
    model: TailModel = TailModel(),
    quantile: float = 0.95,
    repetitions: int = 100,
    seed: int = 1,
) -> PerturbationPilot:
    """Repeat a pilot of one model under several levels of noise, at several sizes.

    Parameters
    ----------
    noise_levels : sequence of float
        As in :func:`pybridge.simulate.tail_scores.perturbed_model`; at least two.
    n_items : sequence of int
        Sizes of the pilot, rising.
    quantile : float
        Where the tail begins.
    repetitions, seed : int

    Returns
    -------
    PerturbationPilot
    """
    sizes = [whole_number("n_items", n, least=100) for n in n_items]
    times = whole_number("repetitions", repetitions, least=1)
    check_quantile("quantile", quantile)
    largest = np.empty((len(sizes), times))
    apart = np.empty((len(sizes), times), dtype=bool)
    counts = np.empty(len(sizes), dtype=np.int64)
    for r in range(times):
        # One draw of the largest size; the smaller pilots are its first items.
        table = perturbed_model(noise_levels, n_items=max(sizes), model=model, seed=seed + r)
        scores = [part["score"].to_numpy() for _, part in table.groupby("model", sort=False)]
        tasks = [(x[:n], {"quantile": quantile}) for n in sizes for x in scores]
        fits = fit_many(tasks, engine="native", options={})
        shape = np.array([fit.shape for fit in fits]).reshape(len(sizes), -1)
        half = np.array([1.96 * fit.shape_standard_error for fit in fits]).reshape(shape.shape)
        largest[:, r] = np.ptp(shape, axis=1)
        apart[:, r] = (shape - half).max(axis=1) > (shape + half).min(axis=1)
        counts = np.array([fit.n_exceedances for fit in fits]).reshape(shape.shape)[:, 0]
    return PerturbationPilot(
        noise_levels=tuple(float(level) for level in noise_levels),
        n_items=np.array(sizes),
        n_exceedances=counts,
        largest=largest,
        apart=apart,
        required=required_exceedances(),
        seed=seed,
    )
