"""The mean beyond a quantile, TVaR: E[X | X >= q], of a sample and of its resamples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pybridge._checks import number_vector
from pybridge.tails.thresholds import check_quantile


def tail_value_at_risk(scores: Any, *, quantile: float = 0.9) -> float:
    """Mean of the scores at or above their sample quantile (type 7)."""
    values = number_vector("scores", scores)
    place = values.size - _n_beyond(values.size, check_quantile("quantile", quantile))
    return float(values[values >= np.partition(values, place)[place]].mean())


def _n_beyond(n: int, quantile: float) -> int:
    """How many of n scores without ties lie at or above their quantile.

    Type 7 interpolates between order statistics at 1 + quantile (n - 1); where that is a whole
    number but for rounding, the quantile is a score itself and counts.
    """
    place = quantile * (n - 1)
    below = math.floor(place + 1e-9)
    return n - below - (0 if abs(place - below) < 1e-9 else 1)


def resampled_tail_means(*, ordered: np.ndarray, counts: np.ndarray, quantile: float) -> np.ndarray:
    """The tail mean of every resample, with its own quantile.

    Parameters
    ----------
    ordered : (n,) scores in falling order
    counts : (R, n) how often each is in the resample; every row has the same sum N
    quantile : in (0, 1)

    Returns
    -------
    (R,) float64
    """
    n_rows, n = counts.shape
    wanted = _n_beyond(int(counts[0].sum()), quantile)
    # Only the upper part of each row can matter; if a row's part is too short, all are done whole.
    ends = _group_ends(ordered)
    width = 1 + int(ends[min(n, math.ceil(wanted + 12.0 * math.sqrt(wanted) + 12)) - 1])
    cumulative = np.cumsum(counts[:, :width], axis=1)
    if (cumulative[:, -1] < wanted).any():
        width, cumulative = n, np.cumsum(counts, axis=1)
    last = (cumulative < wanted).sum(axis=1)  # column of the wanted-th largest
    rows = np.arange(n_rows)
    # Every copy of that score is at or above the quantile, and so are equal scores beside it.
    group_end = ends[last]
    sums = np.cumsum(counts[:, :width] * ordered[:width], axis=1)
    return np.asarray(sums[rows, group_end] / cumulative[rows, group_end])


def _group_ends(ordered: np.ndarray) -> np.ndarray:
    """For each of (n,) ordered values the last position that holds an equal one."""
    n = ordered.size
    is_end = np.concatenate([ordered[1:] != ordered[:-1], [True]])
    ends = np.flatnonzero(is_end)
    return ends[np.searchsorted(ends, np.arange(n))]
