"""Bootstrap of a tail fit: resampling of scores, or samples from the fitted distribution."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pybridge._options import MOST_REPLICATES, check_level, choose, need_kind, whole_number
from pybridge._record import Record
from pybridge.errors import InputError
from pybridge.tails._batch import Refits, refit_rows
from pybridge.tails._distribution import draw
from pybridge.tails._intervals import Interval
from pybridge.tails._shared import (
    SharedSample,
    node_sums,
    prepare,
    refit_alone,
    refit_sums,
)
from pybridge.tails._streams import stream

if TYPE_CHECKING:
    from pybridge.tails.records import ParetoFit

KINDS = ("resampling", "parametric")
_BLOCK = 1 << 17  # doubles
_DRAWS = 1 << 22  # places of excesses held at a time


@dataclass(frozen=True, eq=False, repr=False)
class ParetoBootstrap(Record):
    """Replicates of shape and scale.

    Attributes
    ----------
    kind : {"resampling", "parametric"}
    shape, scale : numpy.ndarray
        (replicates,) float64; shape -1 where a replicate's likelihood has no maximum above it, NaN
        where a resample held no exceedance.
    estimate_shape, estimate_scale : float
        Those of the fit.
    level : float
    seed : int
    """

    kind: str
    shape: np.ndarray
    scale: np.ndarray
    estimate_shape: float
    estimate_scale: float
    level: float
    seed: int

    @property
    def n_replicates(self) -> int:
        return self.shape.size

    @property
    def n_boundary(self) -> int:
        """Replicates without a maximum above shape -1."""
        return int(np.count_nonzero(self.shape <= -1.0))

    def interval(self, parameter: str = "shape", *, level: float | None = None) -> Interval:
        """Percentile interval of "shape" or "scale"."""
        choose("parameter", parameter, ("shape", "scale"))
        level = self.level if level is None else check_level(level)
        low, high = percentile_interval(getattr(self, parameter), level)
        estimate = self.estimate_shape if parameter == "shape" else self.estimate_scale
        return Interval(parameter, estimate, low, high, level, self.kind)

    def standard_error(self, parameter: str = "shape") -> float:
        """Standard deviation of the replicates."""
        choose("parameter", parameter, ("shape", "scale"))
        return float(np.nanstd(getattr(self, parameter), ddof=1))

    def to_frame(self) -> pd.DataFrame:
        """One row a parameter."""
        rows = []
        for name in ("shape", "scale"):
            one = self.interval(name)
            rows.append((name, one.estimate, self.standard_error(name), one.lower, one.upper))
        names = ["parameter", "estimate", "standard_error", "lower", "upper"]
        return pd.DataFrame(rows, columns=names).assign(level=self.level, kind=self.kind)

    def summary(self) -> str:
        head = f"{self.kind} bootstrap, {self.n_replicates} replicates, seed {self.seed}"
        return f"{head}\n{self.interval('shape').summary()}\n{self.interval('scale').summary()}"


def percentile_interval(values: np.ndarray, level: float) -> tuple[float, float]:
    """The percentile interval of (B,) replicates; NaN ones are left out."""
    known = values[~np.isnan(values)]
    if known.size == 0:
        return np.nan, np.nan
    low, high = np.quantile(known, [0.5 - 0.5 * level, 0.5 + 0.5 * level])
    return float(low), float(high)


def bootstrap(
    fit: ParetoFit,
    *,
    kind: str = "resampling",
    replicates: int = 2000,
    seed: int = 1,
    level: float | None = None,
) -> ParetoBootstrap:
    """Refit natively, by maximum likelihood, in every replicate; the threshold stays.

    Parameters
    ----------
    fit : ParetoFit
        With a status that stands for something.
    kind : {"resampling", "parametric"}
        ``resampling`` draws all scores with replacement, so that the number of exceedances varies
        from replicate to replicate; ``parametric`` draws as many excesses from the fit.
    replicates, seed : int
    level : float, optional
        Default: the fit's own.

    Raises
    ------
    InputError
        ``no_fit`` where there is nothing to resample from.
    """
    from pybridge.tails.records import ParetoFit

    need_kind("fit", fit, ParetoFit, "generalized_pareto")
    choose("kind", kind, KINDS)
    whole_number("replicates", replicates, least=1, most=MOST_REPLICATES)
    if not fit.usable:
        raise InputError(
            "a bootstrap needs a fit",
            code="no_fit",
            field="fit",
            expected="a fit with estimates",
            got=f"status {fit.status}",
        )
    rng = stream(seed, kind)
    if kind == "parametric":
        refits = parametric_refits(
            shape=fit.shape, scale=fit.scale, n=fit.n_exceedances, replicates=replicates, rng=rng
        )
    else:
        refits = resampling_refits(
            excesses=fit.excesses,
            shape=fit.exact_shape,
            scale=fit.exact_scale,
            n_scores=fit.n_scores,
            replicates=replicates,
            rng=rng,
        )
    return ParetoBootstrap(
        kind=kind,
        shape=refits.shape,
        scale=refits.scale,
        estimate_shape=fit.shape,
        estimate_scale=fit.scale,
        level=fit.level if level is None else check_level(level),
        seed=seed,
    )


def parametric_refits(
    *, shape: float, scale: float, n: int, replicates: int, rng: np.random.Generator
) -> Refits:
    """Fits of ``replicates`` samples of n excesses from the distribution."""
    per_block = max(1, _BLOCK // n)
    parts = [
        refit_rows(
            excesses=draw(rng=rng, size=(rows, n), shape=shape, scale=scale), start=shape / scale
        )
        for rows in _block_sizes(replicates, per_block)
    ]
    return _joined(parts)


def resampling_refits(
    *,
    excesses: np.ndarray,
    shape: float,
    scale: float,
    n_scores: int,
    replicates: int,
    rng: np.random.Generator,
) -> Refits:
    """Fits of resamples of all ``n_scores`` scores, of which (n,) ``excesses`` lie above.

    The number of exceedances of a resample is binomial, and given it they are drawn uniformly:
    the scores below the threshold need not be drawn.
    """
    ordered = np.sort(excesses)[::-1].copy()
    sample = prepare(excesses=ordered, shape=max(shape, -1.0 + 1e-9), scale=scale)
    n = ordered.size
    space = CountSpace(min(replicates, max(1, _BLOCK // n)), n)
    parts = []
    for rows in _block_sizes(replicates, max(1, _DRAWS // n)):
        totals = rng.binomial(n_scores, n / n_scores, size=rows)
        size = int(totals.sum())
        # 32 bits are faster, where they are enough.
        places: np.dtype[Any] = np.dtype(np.int32 if max(n, size) < 2**31 else np.int64)
        drawn = rng.integers(0, n, size=size, dtype=places)
        parts.append(_refit_drawn(sample, drawn, totals, space))
    return _joined(parts)


def _refit_drawn(
    sample: SharedSample, drawn: np.ndarray, totals: np.ndarray, space: CountSpace
) -> Refits:
    """Fit resamples given as places of excesses, ``totals[r]`` of them for row r."""
    ends = np.concatenate([[0], np.cumsum(totals)])
    sums = np.empty((totals.size, sample.nodes.size))
    for start in range(0, totals.size, space.n_rows):
        rows = slice(start, min(start + space.n_rows, totals.size))
        counts = space.count(drawn, ends[rows.start : rows.stop + 1])
        sums[rows] = node_sums(sample=sample, counts=counts)
    first = np.zeros(totals.size, dtype=np.int64)
    filled = np.flatnonzero(totals)
    if filled.size:
        first[filled] = np.minimum.reduceat(drawn, ends[filled])
    refits, safe = refit_sums(sample=sample, sums=sums, totals=totals, first=first)
    rest = np.flatnonzero(~safe)
    if rest.size:
        drawn = drawn[np.repeat(~safe, totals)]
        ends = np.concatenate([[0], np.cumsum(totals[rest])])
    for start in range(0, rest.size, space.n_rows):
        some = rest[start : start + space.n_rows]
        counts = space.count(drawn, ends[start : start + some.size + 1])
        refit_alone(sample=sample, counts=counts, rows=some, refits=refits)
    return refits


class CountSpace:
    """Room for counts of resamples, made once: fresh pages would cost more than the counting."""

    def __init__(self, n_rows: int, n: int) -> None:
        self.n_rows, self.n = n_rows, n
        self.counts = np.empty((n_rows, n))
        self.ones = np.ones(n_rows * (n + 10 * math.isqrt(n) + 20))

    def count(self, drawn: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """How often each of n places was drawn, row r from ``drawn[ends[r] : ends[r + 1]]``.

        Returns
        -------
        (R, n) float64, a view that the next call overwrites; R is at most ``n_rows``.
        """
        from scipy.sparse import csr_matrix

        part = drawn[ends[0] : ends[-1]]
        if part.size > self.ones.size:
            self.ones = np.ones(part.size)
        out = self.counts[: ends.size - 1]
        places = (ends - ends[0]).astype(part.dtype)
        # A sparse matrix with repeated entries, which add up when it is written out.
        csr_matrix((self.ones[: part.size], part, places), shape=out.shape).toarray(out=out)
        return out


def _block_sizes(total: int, per_block: int) -> Iterator[int]:
    for start in range(0, total, per_block):
        yield min(per_block, total - start)


def _joined(parts: list[Refits]) -> Refits:
    return Refits(*(np.concatenate(values) for values in zip(*parts)))
