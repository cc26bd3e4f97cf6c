"""Serially dependent scores: extremal index, declustering by runs, block bootstrap."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pybridge._checks import number_vector
from pybridge._options import MOST_REPLICATES, check_level, whole_number
from pybridge._record import Record
from pybridge.errors import InputError
from pybridge.tails._shared import prepare, refit_counts
from pybridge.tails._streams import stream
from pybridge.tails.bootstrap import ParetoBootstrap
from pybridge.tails.generalized_pareto import generalized_pareto
from pybridge.tails.thresholds import find_exceedances


@dataclass(frozen=True, eq=False, repr=False)
class Clusters(Record):
    """Exceedances grouped into clusters, and the scores with one exceedance a cluster.

    Attributes
    ----------
    scores : numpy.ndarray
        (n,) float64: every exceedance that is not the first largest of its cluster is set to the
        threshold. A tail fit of these scores at the same threshold sees one excess a cluster.
    threshold : float
    run : int
    n_exceedances, n_clusters : int
    """

    scores: np.ndarray
    threshold: float
    run: int
    n_exceedances: int
    n_clusters: int

    @property
    def extremal_index(self) -> float:
        """Clusters per exceedance; 1 without dependence."""
        return self.n_clusters / self.n_exceedances

    def summary(self) -> str:
        return (
            f"{self.n_exceedances} exceedances of {self.threshold:g} in {self.n_clusters} clusters "
            f"(run {self.run}): extremal index {self.extremal_index:.3f}"
        )


def decluster(
    scores: Any, *, threshold: float | None = None, quantile: float | None = None, run: int
) -> Clusters:
    """Group exceedances: a cluster ends when ``run`` consecutive scores lie below the threshold.

    Parameters
    ----------
    scores : sequence of float, (n,)
        In the order of time.
    threshold, quantile : float
        Exactly one.
    run : int
        At least 1.

    Raises
    ------
    InputError
        As :func:`pybridge.tails.thresholds.find_exceedances`; ``bad_count`` for the run.
    """
    values = number_vector("scores", scores)
    run = whole_number("run", run, least=1)
    u = find_exceedances(values, threshold=threshold, quantile=quantile).threshold
    places = np.flatnonzero(values > u)
    starts = np.concatenate([[0], np.flatnonzero(np.diff(places) > run) + 1])
    cluster = np.repeat(np.arange(starts.size), np.diff(np.append(starts, places.size)))
    # First largest of each cluster: sort by cluster, then by falling score, then by place.
    order = np.lexsort((places, -values[places], cluster))
    keep = places[order[starts]]
    out = values.copy()
    out[places] = u
    out[keep] = values[keep]
    return Clusters(out, u, run, places.size, starts.size)


def extremal_index(
    scores: Any, *, threshold: float | None = None, quantile: float | None = None
) -> float:
    """The intervals estimator of Ferro and Segers (2003, JRSS B 65), at most 1.

    The reciprocal is the mean size of clusters of exceedances; NaN with a single exceedance.
    """
    values = number_vector("scores", scores)
    u = find_exceedances(values, threshold=threshold, quantile=quantile).threshold
    return _intervals_estimate(np.diff(np.flatnonzero(values > u)))


def _intervals_estimate(gaps: np.ndarray) -> float:
    if gaps.size == 0:
        return math.nan
    t = gaps.astype(np.float64)
    if t.max() <= 2:
        value = 2.0 * t.sum() ** 2 / (t.size * (t**2).sum())
    else:
        value = 2.0 * (t - 1).sum() ** 2 / (t.size * ((t - 1) * (t - 2)).sum())
    return float(min(1.0, value))


def block_bootstrap(
    scores: Any,
    *,
    threshold: float | None = None,
    quantile: float | None = None,
    block_length: int,
    replicates: int = 2000,
    level: float = 0.95,
    seed: int = 1,
) -> ParetoBootstrap:
    """Resample circular blocks of consecutive scores and refit; the threshold stays.

    Keeps the dependence within blocks (Politis and Romano, 1992); with ``block_length`` 1 it is
    the ordinary bootstrap.

    Raises
    ------
    InputError
        ``no_fit`` where the whole sample has no usable fit; a block longer than the sample.
    """
    values = number_vector("scores", scores)
    length = whole_number("block_length", block_length, least=1, most=values.size)
    fit = generalized_pareto(
        values, threshold=threshold, quantile=quantile, engine="native", level=check_level(level)
    )
    if not fit.usable:
        raise InputError(
            "a bootstrap needs a fit",
            code="no_fit",
            field="scores",
            expected="a sample with a usable fit",
            got=f"status {fit.status}",
        )
    places = np.flatnonzero(values > fit.threshold)
    places = places[np.argsort(-values[places], kind="stable")]
    sample = prepare(excesses=values[places] - fit.threshold, shape=fit.shape, scale=fit.scale)
    rng = stream(seed, "block")
    shapes, scales = [], []
    rows = max(1, (1 << 20) // values.size)
    for start in range(
        0, whole_number("replicates", replicates, least=1, most=MOST_REPLICATES), rows
    ):
        counts = block_counts(values.size, length, min(rows, replicates - start), rng)
        refits = refit_counts(sample=sample, counts=counts[:, places])
        shapes.append(refits.shape)
        scales.append(refits.scale)
    return ParetoBootstrap(
        kind="block",
        shape=np.concatenate(shapes),
        scale=np.concatenate(scales),
        estimate_shape=fit.shape,
        estimate_scale=fit.scale,
        level=fit.level,
        seed=seed,
    )


def block_counts(n: int, length: int, rows: int, rng: np.random.Generator) -> np.ndarray:
    """(rows, n) counts of resamples made of circular blocks.

    As many blocks are drawn as give n scores or a little more; the last is cut to fit.
    """
    n_blocks = -(-n // length)
    starts = rng.integers(0, n, size=(rows, n_blocks))
    last = n - (n_blocks - 1) * length
    counts = np.zeros((rows, n + length), dtype=np.int64)
    line = np.arange(rows)[:, np.newaxis]
    np.add.at(counts, (line, starts), 1)
    ends = starts + length
    ends[:, -1] = starts[:, -1] + last
    np.add.at(counts, (line, ends), -1)
    cover = np.cumsum(counts, axis=1)
    cover[:, :length] += cover[:, n:]
    return cover[:, :n]


def label_order(labels: np.ndarray) -> np.ndarray:
    """Places of (n,) text labels in their order: by value where all are numbers, else as text."""
    try:
        keys = labels.astype(np.float64)
    except ValueError:
        keys = labels.astype(str)
    return np.argsort(keys, kind="stable")


def lag_one_association(exceeds: np.ndarray) -> tuple[float, float]:
    """Autocorrelation at lag 1 of (n,) exceedance indicators, and its z-score if independent."""
    x = exceeds - exceeds.mean()
    total = float(x @ x)
    if total == 0.0 or x.size < 3:
        return math.nan, math.nan
    value = float(x[1:] @ x[:-1]) / total
    return value, value * math.sqrt(x.size)
