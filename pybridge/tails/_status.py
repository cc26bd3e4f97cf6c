"""What a tail fit is worth, in the words that every part of the package uses."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

STATUSES = (
    "converged",
    "nonregular",
    "weak_identification",
    "not_converged",
    "infeasible",
    "degenerate",
    "too_few",
    "failed",
)
# A fit with one of these has numbers that stand for something.
USABLE = ("converged", "nonregular", "weak_identification")

FEWEST = 5  # below, the likelihood of two parameters mostly has no interior maximum
WEAK_BELOW = 10
LARGEST_TIE = 0.2  # share of the exceedances that one value may have
WORST_GAP = 1e-3  # in log-likelihood, between an engine's answer and the exact maximum
_SAMPLED = 1 << 16


def largest_tie(excesses: np.ndarray) -> tuple[float, float]:
    """Share of the most frequent value among (n,) excesses, and that value.

    Long samples are thinned to 65,536 values first: a share that matters shows there too.
    """
    step = -(-excesses.size // _SAMPLED)
    ordered = np.sort(excesses[::step])
    starts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    if starts.size == ordered.size - 1:
        return 1.0 / ordered.size, float(ordered[0])
    edges = np.concatenate([[0], starts, [ordered.size]])
    runs = np.diff(edges)
    longest = int(runs.argmax())
    return float(runs[longest] / ordered.size), float(ordered[edges[longest]])


def is_tied(excesses: np.ndarray, share: float) -> bool:
    """Whether one value has so large a share that the sample is not one from a density."""
    count = round(share * excesses.size)
    return count == excesses.size or (count >= 3 and share > LARGEST_TIE)


def tail_status(
    *,
    n: int,
    tied: bool,
    shape: float,
    boundary: bool,
    converged: bool,
    gap: float,
    errors: Sequence[float] | np.ndarray,
    estimates: Sequence[float] | np.ndarray,
) -> str:
    """The status of one fit.

    Parameters
    ----------
    n : number of exceedances
    tied : whether one value has too large a share
    shape : the engine's estimate; boundary : whether the exact maximum lies at shape -1
    converged : the engine's own word; gap : what its log-likelihood lacks to the exact maximum
    errors, estimates : standard errors and estimates of (scale, shape)
    """
    if n < FEWEST:
        return "too_few"
    if tied:
        return "degenerate"
    if boundary or shape <= -1.0:
        return "infeasible"
    if not math.isfinite(shape):
        return "failed"
    if not converged or not gap < WORST_GAP:
        return "not_converged"
    if shape <= -0.5:
        return "nonregular"
    if not _trusted(errors, estimates):
        return "degenerate"
    return "weak_identification" if n < WEAK_BELOW else "converged"


def _trusted(errors: Sequence[float] | np.ndarray, estimates: Sequence[float] | np.ndarray) -> bool:
    # A standard error near 2e-6 is the mark of a numerical Hessian taken across the penalty of
    # 1e6 with which evd and ismev fence off impossible parameters; the first entry is the scale.
    if not all(0.0 < error < math.inf for error in errors):
        return False
    return bool(errors[0] > 1e-5 * abs(estimates[0]) and errors[1] > 1e-5)
