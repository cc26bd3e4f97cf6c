"""The exact optimum over a range of thresholds, beside R's."""

from __future__ import annotations

import math

import numpy as np

from pybridge.engines._tail_likelihood import plain_excesses
from pybridge.engines._tail_optimum import pareto_peak
from pybridge.engines._tail_request import exceeding
from pybridge.engines._tail_status import WORST_GAP


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
        shortfall[k] = peak.value - plain_excesses(excesses)(theirs)[0]
    return {"exact": exact.ravel(), "shortfall": np.tile(shortfall, 2)}


def stability_verdict(shortfall: np.ndarray, package: str) -> tuple[str, list[str]]:
    """The status of fits over thresholds, and a sentence where R stopped short at one of them."""
    worst = float(np.nanmax(shortfall))
    if worst < WORST_GAP:
        return "converged", []
    text = f"{package}'s log-likelihood lies up to {worst:.3g} below the exact maximum"
    return "not_converged", [text]
