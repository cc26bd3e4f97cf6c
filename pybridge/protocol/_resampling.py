"""Resampled items, shared by all models that answered the same ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pybridge.tails._shared import SharedSample, prepare, refit_counts
from pybridge.tails.records import ParetoFit
from pybridge.tails.tail_means import columns_needed, resampled_tail_means

# Numbers at a time. Small blocks, and one buffer for all of them: fresh pages cost more than sums.
_BLOCK = 1 << 17
_FITTED = 1 << 19


class Target(NamedTuple):
    """One model to resample.

    Attributes
    ----------
    values : (N,) scores on the scale of the equivalence gates, in the order of the items
    transformed : (N,) scores on the scale of the fits; the same order from large to small
    fits : fits whose thresholds stay fixed
    """

    values: np.ndarray
    transformed: np.ndarray
    fits: tuple[ParetoFit, ...]


class Resamples(NamedTuple):
    """``means`` and ``tail_means`` (B,), ``shapes`` (k, B), one row a fit; NaN without a fit."""

    means: np.ndarray
    tail_means: np.ndarray
    shapes: np.ndarray


def resample_group(
    *,
    targets: Sequence[Target],
    replicates: int,
    tail_quantile: float,
    rng: np.random.Generator,
) -> list[Resamples]:
    """Resample items with replacement, the same ones for every model of the group.

    The quantile of the tail mean is taken anew in each resample; the thresholds of the fits stay.
    Only the upper part of a model's scores takes part in tail mean and fits, so of the counts only
    those columns are kept, small.
    """
    n = targets[0].values.size
    values = np.stack([target.values for target in targets], axis=1)
    # Clipping may tie transformed scores that differ on the raw scale.
    orders = [np.lexsort((-target.values, -target.transformed)) for target in targets]
    widths = [_width(t, order, tail_quantile) for t, order in zip(targets, orders)]
    means = np.empty((replicates, len(targets)))
    tops = [np.empty((replicates, width), dtype=np.int16) for width in widths]
    per_block = max(1, _BLOCK // n)
    for start in range(0, replicates, per_block):
        rows = min(per_block, replicates - start)
        counts = item_counts(n, rows, rng)
        block = slice(start, start + rows)
        means[block] = counts.astype(np.float64) @ values / n
        for top, order in zip(tops, orders):
            top[block] = counts[:, order[: top.shape[1]]]
    return [
        _one_model(target, order, top, means[:, k], tail_quantile)
        for k, (target, order, top) in enumerate(zip(targets, orders, tops))
    ]


def item_counts(n: int, rows: int, rng: np.random.Generator) -> np.ndarray:
    """(rows, n) counts of n draws with replacement from n items."""
    drawn = rng.integers(0, n, size=(rows, n), dtype=np.int32).astype(np.int64)
    drawn += np.arange(rows, dtype=np.int64)[:, np.newaxis] * n
    return np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n)


def _width(target: Target, order: np.ndarray, tail_quantile: float) -> int:
    reach = columns_needed(ordered=target.values[order], quantile=tail_quantile)
    return max(reach, *(fit.n_exceedances for fit in target.fits))


def _one_model(
    target: Target, order: np.ndarray, top: np.ndarray, means: np.ndarray, tail_quantile: float
) -> Resamples:
    n, width = order.size, top.shape[1]
    largest = target.values[order[:width]]
    tail_means = np.empty(top.shape[0])
    shapes = np.full((len(target.fits), top.shape[0]), np.nan)
    samples = [
        (k, fit.n_exceedances, _prepared(target, order, fit))
        for k, fit in enumerate(target.fits)
        if fit.usable
    ]
    rows = max(1, _BLOCK // width)
    for start in range(0, top.shape[0], rows):
        block = slice(start, start + rows)
        tail_means[block] = resampled_tail_means(
            ordered=largest, counts=top[block], quantile=tail_quantile, total=n
        )
    most = max((n_above for _, n_above, _ in samples), default=1)
    buffer = np.empty((max(1, _FITTED // most), most))
    for start in range(0, top.shape[0], buffer.shape[0]):
        block = slice(start, min(start + buffer.shape[0], top.shape[0]))
        counts = buffer[: block.stop - block.start]
        np.copyto(counts, top[block, :most])
        for k, n_above, sample in samples:
            shapes[k, block] = refit_counts(sample=sample, counts=counts[:, :n_above]).shape
    return Resamples(means, tail_means, shapes)


def _prepared(target: Target, order: np.ndarray, fit: ParetoFit) -> SharedSample:
    x = target.transformed[order[: fit.n_exceedances]] - fit.threshold
    return prepare(excesses=x, shape=fit.exact_shape, scale=fit.exact_scale)
