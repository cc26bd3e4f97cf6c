"""Goodness of fit with p-values that know that the parameters were estimated."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pybridge._options import MOST_REPLICATES, choose, need_kind, whole_number
from pybridge._record import Record
from pybridge.errors import InputError
from pybridge.tails._distribution import to_exponential
from pybridge.tails._goodness import STATISTICS, bootstrap_statistics, statistics
from pybridge.tails._streams import stream

if TYPE_CHECKING:
    from pybridge.tails.records import ParetoFit

METHODS = ("bootstrap", "table")


@dataclass(frozen=True, eq=False, repr=False)
class GoodnessOfFit(Record):
    """Anderson–Darling and Cramér–von Mises tests of a generalised Pareto fit.

    Attributes
    ----------
    anderson_darling, anderson_darling_p, cramer_von_mises, cramer_von_mises_p : float
        Statistics and p-values; NaN where there is no fit to test.
    method : {"bootstrap", "table"}
    replicates : int
        0 for the table.
    n_without_fit : int
        Bootstrap samples whose likelihood had no maximum above shape -1; the p-values are those
        given a fit.
    n_exceedances : int
    shape : float
    status : str
        That of the fit.
    """

    anderson_darling: float
    anderson_darling_p: float
    cramer_von_mises: float
    cramer_von_mises_p: float
    method: str
    replicates: int
    n_without_fit: int
    n_exceedances: int
    shape: float
    status: str

    @property
    def anderson_darling_p_error(self) -> float:
        """Monte Carlo standard error of the p-value; 0 for the table."""
        p, b = self.anderson_darling_p, self.replicates
        return math.sqrt(p * (1 - p) / b) if b else 0.0

    def to_frame(self) -> pd.DataFrame:
        """One row a statistic."""
        rows = [(name, getattr(self, name), getattr(self, f"{name}_p")) for name in STATISTICS]
        table = pd.DataFrame(rows, columns=["statistic", "value", "p_value"])
        return table.assign(method=self.method, replicates=self.replicates)

    def summary(self) -> str:
        how = f"bootstrap of {self.replicates}" if self.method == "bootstrap" else "table"
        return (
            f"Anderson–Darling {self.anderson_darling:.4g}, p {self.anderson_darling_p:.4g}; "
            f"Cramér–von Mises {self.cramer_von_mises:.4g}, p {self.cramer_von_mises_p:.4g} "
            f"({how}, {self.n_exceedances} exceedances, shape {self.shape:.4g})"
        )


def goodness_of_fit(
    fit: ParetoFit, *, method: str = "bootstrap", replicates: int = 999, seed: int = 1
) -> GoodnessOfFit:
    """Test a fit against its own family.

    Parameters
    ----------
    fit : ParetoFit
        By maximum likelihood.
    method : {"bootstrap", "table"}
        ``bootstrap`` simulates from the fit and refits in every replicate; the p-value is
        (1 + number of at least as large statistics) / (1 + replicates). ``table`` interpolates a
        table of the same law in shape, sample size and tail probability (after Choulakian and
        Stephens, 2001), from 30 exceedances and for shapes of -0.4 to 1.5. Both take the law
        given the estimated shape, so that the tests hold their size in small samples too
        (validation/studies/TAILS.md).
    replicates, seed : int
        For the bootstrap.

    Raises
    ------
    InputError
        ``not_maximum_likelihood``; ``outside_table``.
    """
    from pybridge.tails.records import ParetoFit

    need_kind("fit", fit, ParetoFit, "generalized_pareto")
    choose("method", method, METHODS)
    whole_number("replicates", replicates, least=19, most=MOST_REPLICATES)
    if fit.method != "ML":
        raise InputError(
            "the law of the statistics is known for maximum likelihood",
            code="not_maximum_likelihood",
            field="fit",
            expected="method ML",
            got=fit.method,
        )
    rng = stream(seed, "goodness of fit")
    values: tuple[float, ...]
    p_values: tuple[float, ...]
    if not fit.usable:
        none = math.nan
        values, p_values, b, without = (none, none), (none, none), 0, 0
    else:
        e = to_exponential(excesses=np.sort(fit.excesses), shape=fit.shape, scale=fit.scale)
        found = statistics(exponentials=e)
        values = (float(found.anderson_darling), float(found.cramer_von_mises))
        if method == "table":
            p_values = tuple(
                table_p_value(name, value, shape=fit.shape, n=fit.n_exceedances)
                for name, value in zip(STATISTICS, values)
            )
            b, without = 0, 0
        else:
            null, without = bootstrap_statistics(
                shape=fit.shape, n=fit.n_exceedances, replicates=replicates, rng=rng
            )
            b = replicates - without
            p_values = tuple(
                float((1 + np.count_nonzero(law >= value)) / (1 + b))
                for law, value in zip(null, values)
            )
    return GoodnessOfFit(
        anderson_darling=values[0],
        anderson_darling_p=p_values[0],
        cramer_von_mises=values[1],
        cramer_von_mises_p=p_values[1],
        method=method,
        replicates=b,
        n_without_fit=without,
        n_exceedances=fit.n_exceedances,
        shape=fit.shape,
        status=fit.status,
    )


@functools.lru_cache(maxsize=None)
def _table(statistic: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Shapes (s,), sizes (k,), tails (p,) and quantiles (s, k, p) of one statistic."""
    table = pd.read_csv(Path(__file__).with_name("goodness_table.csv"))
    part = table[table["statistic"] == statistic]
    tails = np.array([float(name) for name in part.columns[3:]])
    shapes, sizes = np.unique(part["shape"]), np.unique(part["n"])
    values = part.sort_values(["shape", "n"]).iloc[:, 3:].to_numpy(dtype=np.float64)
    return shapes, sizes, tails, values.reshape(shapes.size, sizes.size, tails.size)


def table_reaches(*, shape: float, n: int) -> bool:
    """Whether the table holds this shape and sample size."""
    shapes, sizes, _, _ = _table(STATISTICS[0])
    return bool(shapes[0] <= shape <= shapes[-1] and n >= sizes[0])


def table_p_value(statistic: str, value: float, *, shape: float, n: int) -> float:
    """The p-value of "anderson_darling" or "cramer_von_mises" by interpolation.

    Linear in the shape and in 1/n, and in the logarithm of the tail probability, which is where
    the quantiles of these statistics are nearly straight; beyond the table's last tail probability
    that line goes on.
    """
    shapes, sizes, tails, values = _table(statistic)
    if not table_reaches(shape=shape, n=n):
        raise InputError(
            "the table of the law does not reach so far",
            code="outside_table",
            field="method",
            expected=f"shapes of {shapes[0]} to {shapes[-1]}, from {sizes[0]} exceedances",
            got=f"shape {shape:.4g}, {n} exceedances",
            hint="Use method='bootstrap'.",
        )
    i = int(np.clip(np.searchsorted(shapes, shape) - 1, 0, shapes.size - 2))
    a = (shape - shapes[i]) / (shapes[i + 1] - shapes[i])
    j = int(np.clip(np.searchsorted(sizes, n) - 1, 0, sizes.size - 2))
    b = (1 / n - 1 / sizes[j]) / (1 / sizes[j + 1] - 1 / sizes[j])
    first = (1 - b) * values[i, j] + b * values[i, j + 1]
    second = (1 - b) * values[i + 1, j] + b * values[i + 1, j + 1]
    curve = np.maximum.accumulate((1 - a) * first + a * second)
    logs = np.log(tails)
    if value <= curve[0]:
        return 1.0 - (1.0 - tails[0]) * max(value, 0.0) / curve[0]
    if value >= curve[-1]:
        slope = (logs[-1] - logs[-3]) / (curve[-1] - curve[-3])
        return float(math.exp(logs[-1] + slope * (value - curve[-1])))
    return float(math.exp(np.interp(value, curve, logs)))
