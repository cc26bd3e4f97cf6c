"""The mean excess over each of many thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import number_vector
from pybridge._options import check_level
from pybridge._record import Record
from pybridge.errors import InputError
from pybridge.tails._intervals import normal_quantile


@dataclass(frozen=True, eq=False, repr=False)
class MeanResidualLife(Record):
    """Mean excess over thresholds; straight where the distribution is generalised Pareto.

    Attributes
    ----------
    threshold, mean_excess, standard_error, lower, upper : numpy.ndarray
        (k,) float64.
    n_exceedances : numpy.ndarray
    level : float
    """

    threshold: np.ndarray
    mean_excess: np.ndarray
    standard_error: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    n_exceedances: np.ndarray
    level: float

    def to_frame(self) -> pd.DataFrame:
        """One row a threshold."""
        names = [n for n in self.__dataclass_fields__ if n != "level"]
        return pd.DataFrame({n: np.array(getattr(self, n)) for n in names})

    def plot(self, ax: Any = None) -> Any:
        """Mean excess against the threshold; returns the axes."""
        from pybridge.report.tail_figures import mean_residual_life_figure

        return mean_residual_life_figure(self, ax)

    def summary(self) -> str:
        return f"Mean residual life\n{self.to_frame().to_string(index=False)}"


def mean_residual_life(
    scores: Any, *, thresholds: Sequence[float] | None = None, level: float = 0.95
) -> MeanResidualLife:
    """Mean excess over each threshold, with normal intervals.

    Parameters
    ----------
    scores : sequence of float, (n,)
    thresholds : sequence of float, optional
        Default: 100 between the median and the sixth largest score.
    level : float
    """
    ordered = np.sort(number_vector("scores", scores))
    z = normal_quantile(check_level(level))
    if thresholds is None:
        top = ordered[max(ordered.size - 6, 0)]
        grid = np.linspace(float(np.median(ordered)), float(top), 100)
    else:
        grid = number_vector("thresholds", thresholds)
    above = ordered.size - np.searchsorted(ordered, grid, side="right")
    if (above == 0).any():
        raise InputError(
            "no score lies above a threshold",
            code="no_exceedances",
            field="thresholds",
            expected=f"thresholds below the largest score, {float(ordered[-1])!r}",
            got=f"{float(grid[above == 0][0]):g}",
        )
    # Sums from the top, of differences from the largest, so that no digits are lost.
    gap = ordered[-1] - ordered
    first = np.concatenate([[0.0], np.cumsum(gap[::-1])])[above] / above
    second = np.concatenate([[0.0], np.cumsum(gap[::-1] ** 2)])[above] / above
    mean = ordered[-1] - grid - first
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.where(above > 1, (second - first**2) * above / (above - 1.0), np.nan)
    error = np.sqrt(np.maximum(variance, 0.0) / above)
    return MeanResidualLife(grid, mean, error, mean - z * error, mean + z * error, above, level)
