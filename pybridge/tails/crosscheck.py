"""One tail by every engine, beside the exact maximum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pybridge._record import Record
from pybridge.tails.generalized_pareto import generalized_pareto

if TYPE_CHECKING:
    from pybridge.tails.records import ParetoFit

# In standard errors of the shape, and in log-likelihood. Guarded R comes to the exact maximum to
# about 1e-6 of either; a raw call in units near 1 to 2e-3 in shape (ismev's simplex stops early).
TOLERANCES = {"guarded": (1e-3, 1e-6), "raw": (5e-2, 1e-3)}


@dataclass(frozen=True, eq=False, repr=False)
class TailCrosscheck(Record):
    """Answers of several engines on the same excesses.

    Attributes
    ----------
    engine, mode, status : numpy.ndarray
        (r,) text.
    shape, scale, shape_standard_error, log_likelihood : numpy.ndarray
        (r,) float64.
    shape_gap : numpy.ndarray
        Distance of the shape from the exact maximum, in standard errors.
    likelihood_gap : numpy.ndarray
        What the log-likelihood lacks to its exact maximum.
    agrees : numpy.ndarray
        (r,) bool, within the tolerances.
    """

    engine: np.ndarray
    mode: np.ndarray
    status: np.ndarray
    shape: np.ndarray
    scale: np.ndarray
    shape_standard_error: np.ndarray
    log_likelihood: np.ndarray
    shape_gap: np.ndarray
    likelihood_gap: np.ndarray
    agrees: np.ndarray

    def to_frame(self) -> pd.DataFrame:
        """One row an engine and mode."""
        return pd.DataFrame({n: np.array(getattr(self, n)) for n in self.__dataclass_fields__})

    def summary(self) -> str:
        text = "all agree" if self.agrees.all() else "engines part"
        return f"Cross-check of a tail fit: {text}\n{self.to_frame().to_string(index=False)}"


def crosscheck_tail(
    fit: ParetoFit, *, engines: Sequence[str] = ("native", "evd", "ismev")
) -> TailCrosscheck:
    """Fit the excesses of ``fit`` again, by every engine, guarded and (in R) raw.

    Raises
    ------
    EngineUnavailable
        Without R or one of the packages; leave its engine out.
    """
    rows = []
    for engine in engines:
        for mode in ("guarded",) if engine == "native" else ("guarded", "raw"):
            other = generalized_pareto(fit.excesses, threshold=0.0, engine=engine, mode=mode)
            exact = generalized_pareto(fit.excesses, threshold=0.0, engine="native")
            gap = abs(other.shape - exact.shape) / exact.shape_standard_error
            lacking = exact.log_likelihood - other.log_likelihood
            widest, lowest = TOLERANCES[mode]
            both_without = not other.usable and not exact.usable
            agrees = both_without or bool(gap <= widest and lacking <= lowest)
            error = other.shape_standard_error
            rows.append(
                (engine, mode, other.status, other.shape, other.scale, error)
                + (other.log_likelihood, gap if math.isfinite(gap) else math.nan, lacking, agrees)
            )
    names = list(TailCrosscheck.__dataclass_fields__)
    kinds = [object] * 3 + [np.float64] * 6 + [np.bool_]
    columns = (np.array(column, dtype=kind) for column, kind in zip(zip(*rows), kinds))
    return TailCrosscheck(**dict(zip(names, columns)))
