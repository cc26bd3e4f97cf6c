"""Fits over a grid of thresholds, for one model or all."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import number_vector
from pybridge._options import MOST_REPLICATES, check_level, choose, whole_number
from pybridge._record import Record
from pybridge.errors import InputError
from pybridge.tables.scores import score_table
from pybridge.tails._streams import stream
from pybridge.tails.bootstrap import percentile_interval, resampling_refits
from pybridge.tails.generalized_pareto import fit_many
from pybridge.tails.goodness import goodness_of_fit, table_reaches
from pybridge.tails.records import ParetoFit
from pybridge.tails.thresholds import check_quantile
from pybridge.tails.transforms import Transform

QUANTILES = (0.95, 0.955, 0.96, 0.965, 0.97, 0.975, 0.98, 0.985, 0.99)
INTERVALS = ("profile", "delta", "bootstrap")


@dataclass(frozen=True, eq=False, repr=False)
class TailScan(Record):
    """Fits of one or several models at several thresholds.

    Attributes
    ----------
    model, status : numpy.ndarray
        (r,) text; r rows in the order models × quantiles.
    quantile, threshold, shape, shape_standard_error, lower, upper, scale : numpy.ndarray
        (r,) float64; ``lower`` and ``upper`` are the ends of the shape's interval.
    modified_scale, modified_scale_standard_error : numpy.ndarray
        scale - shape * threshold, which stays the same above a threshold from which the
        distribution is generalised Pareto (Coles, 2001, section 4.3.4).
    n_exceedances : numpy.ndarray
        (r,) integers.
    anderson_darling_p : numpy.ndarray
    interval : {"profile", "delta", "bootstrap"}
    level : float
    engine : str
    """

    model: np.ndarray
    quantile: np.ndarray
    threshold: np.ndarray
    n_exceedances: np.ndarray
    shape: np.ndarray
    shape_standard_error: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    scale: np.ndarray
    modified_scale: np.ndarray
    modified_scale_standard_error: np.ndarray
    anderson_darling_p: np.ndarray
    status: np.ndarray
    interval: str
    level: float
    engine: str

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.model.tolist()))

    def to_frame(self) -> pd.DataFrame:
        """One row a model and threshold."""
        names = [name for name in self.__dataclass_fields__ if name not in ("interval", "engine")]
        columns = {n: getattr(self, n) for n in names if n != "level"}
        table = pd.DataFrame({n: np.array(v) for n, v in columns.items()})
        return table.assign(level=self.level)

    def plot(self, ax: Any = None) -> Any:
        """The shape of every model over the thresholds; returns the axes."""
        from pybridge.report.tail_figures import stability_figure

        return stability_figure(self, ax)

    def summary(self) -> str:
        shown = ["model", "quantile", "n_exceedances", "shape", "lower", "upper", "scale"]
        table = self.to_frame()[[*shown, "anderson_darling_p", "status"]]
        head = f"Scan by {self.engine}, {self.interval} intervals at {self.level:g}"
        return f"{head}\n{table.to_string(index=False, float_format=lambda v: f'{v:.4g}')}"


def tail_scan(
    scores: Any,
    *,
    quantiles: Sequence[float] = QUANTILES,
    scorer: str | None = None,
    engine: str = "evd",
    transform: Transform | str | None = None,
    interval: str = "profile",
    replicates: int = 1000,
    level: float = 0.95,
    seed: int = 1,
    **engine_options: Any,
) -> TailScan:
    """Fit at every quantile of a grid, for one model or all.

    Parameters
    ----------
    scores : sequence of float, mapping of str to sequences, or long table
        A sample; samples by name; or a table with the columns model, item, score (and scorer).
    quantiles : sequence of float
        In rising order, strictly between 0 and 1.
    scorer : str, optional
        Which scorer of the table, where there are several.
    engine : {"evd", "ismev", "native"}
    transform : Transform or str, optional
    interval : {"profile", "delta", "bootstrap"}
        Of the shape. ``bootstrap`` resamples the scores and refits natively.
    replicates, seed : int
        For the bootstrap.
    level : float

    Returns
    -------
    TailScan
        A threshold at which a model has no usable fit has NaN and its status. The p-values are
        those of the table where it reaches, else of a bootstrap.
    """
    choose("interval", interval, INTERVALS)
    whole_number("replicates", replicates, least=1, most=MOST_REPLICATES)
    listed_ones = list(quantiles) if np.iterable(quantiles) else [quantiles]
    grid = [check_quantile("quantiles", q) for q in listed_ones]
    if not grid or any(a >= b for a, b in zip(grid, grid[1:])):
        raise InputError(
            "quantiles must rise",
            code="bad_quantile",
            field="quantiles",
            expected="one or more, each larger than the one before",
            got=listed_ones,
        )
    samples = samples_by_name(scores, scorer)
    tasks = [(values, {"quantile": q}) for values in samples.values() for q in grid]
    fits = fit_many(
        tasks, engine=engine, transform=transform, level=check_level(level), options=engine_options
    )
    names = [name for name in samples for _ in grid]
    columns = [_row(fit, interval, replicates, level, seed, name) for name, fit in zip(names, fits)]
    numbers = np.array(columns, dtype=np.float64).T
    return TailScan(
        model=np.array(names, dtype=object),
        quantile=np.array(grid * len(samples)),
        threshold=np.array([fit.threshold for fit in fits]),
        n_exceedances=np.array([fit.n_exceedances for fit in fits]),
        shape=np.array([fit.shape for fit in fits]),
        shape_standard_error=np.array([fit.shape_standard_error for fit in fits]),
        lower=numbers[0],
        upper=numbers[1],
        scale=np.array([fit.scale for fit in fits]),
        modified_scale=np.array([fit.scale - fit.shape * fit.threshold for fit in fits]),
        modified_scale_standard_error=numbers[2],
        anderson_darling_p=numbers[3],
        status=np.array([fit.status for fit in fits], dtype=object),
        interval=interval,
        level=level,
        engine=engine,
    )


def joined_scans(scans: Mapping[str, TailScan]) -> TailScan:
    """One scan of several models from a scan of each, by the names given; alike in all else."""
    first = next(iter(scans.values()))
    columns = {
        name: np.concatenate([getattr(scan, name) for scan in scans.values()])
        for name in first.__dataclass_fields__
        if isinstance(getattr(first, name), np.ndarray)
    }
    names = [name for name, scan in scans.items() for _ in range(scan.model.size)]
    columns["model"] = np.array(names, dtype=object)
    return dataclasses.replace(first, **columns)


def samples_by_name(scores: Any, scorer: str | None = None) -> dict[str, np.ndarray]:
    """Samples by model, from an array, a mapping or a long table."""
    if isinstance(scores, pd.DataFrame) or hasattr(scores, "shares_items"):
        table = score_table(scores)
        return {name: table.scores(name, scorer) for name in table.models}
    if scorer is not None:
        raise InputError(
            "scorer is of a table of scores",
            code="not_available",
            field="scorer",
            expected="None, or a table with a column scorer",
            got=scorer,
        )
    if isinstance(scores, Mapping):
        if not scores:
            raise InputError(
                "there are no scores",
                code="empty",
                field="scores",
                expected="samples by the names of models",
                got="an empty mapping",
            )
        return {str(name): number_vector(str(name), values) for name, values in scores.items()}
    return {"scores": number_vector("scores", scores)}


def _row(
    fit: ParetoFit, interval: str, replicates: int, level: float, seed: int, name: str
) -> tuple[float, float, float, float]:
    """Interval ends, error of the modified scale, and p-value of one fit."""
    u, v = fit.threshold, fit.covariance
    error = (
        math.sqrt(max(v[0, 0] + u * u * v[1, 1] - 2.0 * u * v[0, 1], 0.0))
        if fit.usable
        else math.nan
    )
    if not fit.usable:
        return math.nan, math.nan, math.nan, math.nan
    if interval == "bootstrap":
        refits = resampling_refits(
            excesses=fit.excesses,
            shape=fit.exact_shape,
            scale=fit.exact_scale,
            n_scores=fit.n_scores,
            replicates=replicates,
            rng=stream(seed, "scan", name),
        )
        low, high = percentile_interval(refits.shape, level)
    else:
        ends = fit.interval("shape", kind=interval)
        low, high = ends.lower, ends.upper
    in_table = table_reaches(shape=fit.shape, n=fit.n_exceedances)
    found = goodness_of_fit(fit, method="table" if in_table else "bootstrap", seed=seed)
    return low, high, error, found.anderson_darling_p
