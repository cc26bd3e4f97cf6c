"""The exact optimum over a range of thresholds, beside R's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pybridge.engines._tail_likelihood import plain_excesses
from pybridge.engines._tail_optimum import pareto_peak
from pybridge.engines._tail_request import TailRequest, ask, exceeding
from pybridge.engines._tail_status import WORST_GAP
from pybridge.r import Reply


def exact_over_thresholds(
    data: np.ndarray, thresholds: np.ndarray, estimate: np.ndarray
) -> dict[str, np.ndarray]:
    """The exact optimum at each threshold, and what R's answer lacks to it in log-likelihood.

    Parameters
    ----------
    data : (n,)
    thresholds : (k,)
    estimate : (2 k,), R's modified scales, then its shapes

    Returns
    -------
    dict of exact and shortfall, (2 k,) each
    """
    size = thresholds.size
    exact = np.full((2, size), math.nan)
    shortfall = np.full(size, math.nan)
    for k, threshold in enumerate(thresholds.tolist()):
        excesses = exceeding(data, threshold)
        peak = pareto_peak(excesses)
        if peak.settled:
            exact[:, k] = peak.theta[0] - peak.theta[1] * threshold, peak.theta[1]
        shape = estimate[size + k]
        theirs = np.array([estimate[k] + shape * threshold, shape])
        if np.isfinite(theirs).all():
            shortfall[k] = peak.value - plain_excesses(excesses)(theirs)[0]
    return {"exact": exact.ravel(), "shortfall": np.tile(shortfall, 2)}


def stability_verdict(shortfall: np.ndarray, package: str) -> tuple[str, list[str]]:
    """The status of fits over thresholds, and what is wrong: R stopped short, or has no fit."""
    known = shortfall[np.isfinite(shortfall)]
    worst = float(known.max()) if known.size else 0.0
    notes = []
    if not worst < WORST_GAP:
        notes.append(f"{package}'s log-likelihood lies up to {worst:.3g} below the exact maximum")
    lost = int(shortfall.size - known.size) // 2  # a row a parameter
    if lost:
        notes.append(f"{package} has no fit at {lost} of {shortfall.size // 2} thresholds")
    return ("not_converged" if notes else "converged"), notes


def by_threshold(
    shim: str, inputs: dict[str, Any], asked: TailRequest
) -> tuple[dict[str, Any], Reply, list[str]]:
    """R's own function, and where it stops in a guarded call, each threshold for itself.

    Returns
    -------
    tuple
        The inputs that were answered, the reply, and a sentence where it was the second way.
    """
    first = ask(shim, inputs, asked, may_fail=not asked.raw)
    if first.error is None:
        return inputs, first, []
    again = {**inputs, "each": True}
    note = (
        f"{asked.package}::{asked.function} stopped ({first.error['message'].strip()}): each "
        "threshold was fitted for itself"
    )
    return again, ask(shim, again, asked), [note]
