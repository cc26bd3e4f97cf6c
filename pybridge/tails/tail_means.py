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


def columns_needed(*, ordered: np.ndarray, quantile: float) -> int:
    """How many of the largest scores a resample's tail can reach down to, but for bad luck.

    Twelve standard deviations beyond the expected place, and to the end of a tie.
    """
    wanted = _n_beyond(ordered.size, quantile)
    reach = min(ordered.size, math.ceil(wanted + 12.0 * math.sqrt(wanted) + 12))
    return 1 + int(_group_ends(ordered)[reach - 1])


def resampled_tail_means(
    *, ordered: np.ndarray, counts: np.ndarray, quantile: float, total: int
) -> np.ndarray:
    """The tail mean of every resample, with its own quantile.

    Parameters
    ----------
    ordered : (n,) scores in falling order
    counts : (R, k) how often each of the first k is in the resample, k <= n
    quantile : in (0, 1)
    total : size of every resample

    Returns
    -------
    (R,) float64; NaN where the first k scores do not reach down to the quantile.
    """
    k = counts.shape[1]
    wanted = _n_beyond(total, quantile)
    cumulative = np.cumsum(counts, axis=1, dtype=np.int64)
    reached = cumulative[:, -1] >= wanted
    # Column of the wanted-th largest; every equal score beside it is at or above the quantile too.
    last = np.minimum((cumulative < wanted).sum(axis=1), k - 1)
    end = np.minimum(_group_ends(ordered[:k])[last], k - 1)
    sums = np.cumsum(counts * ordered[:k], axis=1)
    rows = np.arange(counts.shape[0])
    return np.where(reached, sums[rows, end] / np.maximum(cumulative[rows, end], 1), np.nan)


def _group_ends(ordered: np.ndarray) -> np.ndarray:
    """For each of (n,) ordered values the last position that holds an equal one."""
    n = ordered.size
    is_end = np.concatenate([ordered[1:] != ordered[:-1], [True]])
    ends = np.flatnonzero(is_end)
    return ends[np.searchsorted(ends, np.arange(n))]
