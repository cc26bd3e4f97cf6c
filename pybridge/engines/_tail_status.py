"""What R's answer for a tail is worth, in the words that tail fits have everywhere."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

WEAK_BELOW = 10
LARGEST_TIE = 0.2  # share of the exceedances that one value may have
WORST_GAP = 1e-3  # in log-likelihood, between R's answer and the exact maximum
WITH_ERRORS = ("converged", "weak_identification")
# Beyond this a guarded fit asks R once more, from the exact maximum.
SHORTFALL = 1e-6


def tied(excesses: np.ndarray) -> bool:
    """Whether one value has so large a share of (n,) excesses that no density fits them."""
    if excesses.size == 0:
        return False
    most = int(np.unique(excesses, return_counts=True)[1].max())
    return most == excesses.size or (most >= 3 and most > LARGEST_TIE * excesses.size)


def trusted(errors: np.ndarray, estimates: np.ndarray, scales: np.ndarray) -> bool:
    """Whether standard errors stand for something.

    One near 2e-6 is the mark of a numerical Hessian taken across the penalty of 1e6 with which evd
    and ismev fence off impossible parameters.

    Parameters
    ----------
    errors, estimates : (p,), in R's units
    scales : (p,) bool, parameters whose size says how large an error can be
    """
    if not np.all(np.isfinite(errors)) or not np.all(errors > 0):
        return False
    least = np.where(scales, 1e-5 * np.abs(estimates), 1e-5)
    return bool(np.all(errors > least))


def tail_status(
    *,
    n: int,
    is_tied: bool,
    shape: float,
    settled: bool,
    converged: bool,
    gap: float,
    good_errors: bool,
) -> str:
    """The verdict.

    Parameters
    ----------
    n : number of exceedances or clusters
    is_tied : whether one value has too large a share
    shape : R's estimate (the least one, with covariates)
    settled : whether there is a maximum above shape -1
    converged : R's own word
    gap : what R's log-likelihood lacks to the exact maximum; NaN where there is no exact one
    good_errors : whether the standard errors, where any were asked for, are to be trusted
    """
    if is_tied:
        return "degenerate"
    if not settled or shape <= -1.0:
        return "infeasible"
    if not math.isfinite(shape):
        return "failed"
    if not converged or gap >= WORST_GAP:
        return "not_converged"
    if shape <= -0.5:
        return "nonregular"
    if not good_errors:
        return "degenerate"
    return "weak_identification" if n < WEAK_BELOW else "converged"


def findings(status: str, exact: Mapping[str, Any], n: int) -> list[str]:
    """One sentence about a status that is not plain."""
    if status == "infeasible":
        return ["the likelihood is unbounded beyond shape -1 and has no maximum above: no estimate"]
    if status == "nonregular":
        return ["the usual asymptotics fail at shapes of at most -1/2: no standard errors"]
    if status == "degenerate":
        return ["ties, or standard errors that come from R's penalty: not to be trusted"]
    if status == "weak_identification":
        return [f"{n} exceedances say little about a shape"]
    if status == "not_converged" and "shortfall" in exact:
        return [f"R's log-likelihood lies {exact['shortfall']:.3g} below the exact maximum"]
    return []
