"""Bootstrap of a tail fit: resampling of scores, or samples from the fitted distribution."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pybridge._options import check_level, choose, whole_number
from pybridge._record import Record
from pybridge.errors import InputError
from pybridge.tails._batch import Refits, refit_rows
from pybridge.tails._distribution import draw
from pybridge.tails._intervals import Interval
from pybridge.tails._shared import prepare, refit_counts
from pybridge.tails._streams import stream

if TYPE_CHECKING:
    from pybridge.tails.records import ParetoFit

KINDS = ("resampling", "parametric")
_BLOCK = 1 << 17  # doubles


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
    choose("kind", kind, KINDS)
    whole_number("replicates", replicates, least=1)
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
    for rows in _block_sizes(replicates, space.n_rows):
        totals = rng.binomial(n_scores, n / n_scores, size=rows)
        parts.append(refit_counts(sample=sample, counts=space.draw(totals, rng)))
    return _joined(parts)


class CountSpace:
    """Room for counts of resamples, made once: fresh pages would cost more than the draws."""

    def __init__(self, n_rows: int, n: int) -> None:
        self.n_rows, self.n = n_rows, n
        width = n + 10 * math.isqrt(n) + 20
        self.uniforms = np.empty((n_rows, width))
        self.cells = np.empty((n_rows, width), dtype=np.int64)
        self.counts = np.empty((n_rows, n))
        self.offsets = np.arange(n_rows, dtype=np.int64)[:, np.newaxis] * n

    def draw(self, totals: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Counts of draws with replacement from n, row r having ``totals[r]`` of them.

        Returns
        -------
        (R, n) float64, a view that the next call overwrites; R is at most ``n_rows``.
        """
        n_rows, most = totals.size, int(totals.max(initial=0))
        if most > self.uniforms.shape[1]:
            return CountSpace(n_rows, max(most, self.n))._of(self.n).draw(totals, rng)
        least = int(totals.min(initial=0))
        flat = self.uniforms.ravel()[: n_rows * most]
        rng.random(out=flat)
        flat *= self.n
        cells = self.cells.ravel()[: n_rows * most].reshape(n_rows, most)
        np.copyto(cells.ravel(), flat, casting="unsafe")
        cells += self.offsets[:n_rows]
        # Rows have a few draws too many; these go to a cell of their own, which is dropped.
        surplus = np.arange(least, most) >= totals[:, np.newaxis]
        cells[:, least:][surplus] = n_rows * self.n
        found = np.bincount(cells.ravel(), minlength=n_rows * self.n + 1)[:-1]
        np.copyto(self.counts[:n_rows], found.reshape(n_rows, self.n))
        return self.counts[:n_rows]

    def _of(self, n: int) -> CountSpace:
        """The same room for another number of excesses."""
        self.n, self.counts = n, np.empty((self.n_rows, n))
        self.offsets = np.arange(self.n_rows, dtype=np.int64)[:, np.newaxis] * n
        return self


def _block_sizes(total: int, per_block: int) -> Iterator[int]:
    for start in range(0, total, per_block):
        yield min(per_block, total - start)


def _joined(parts: list[Refits]) -> Refits:
    return Refits(*(np.concatenate(values) for values in zip(*parts)))
