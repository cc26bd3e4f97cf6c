"""The native engine: exact maximum likelihood, weighted moments, penalised likelihood."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pybridge.tails._information import (
    inverse_information,
    log_likelihood,
    observed_information,
)
from pybridge.tails._maximum import Maximum, profile_maximum
from pybridge.tails._small_samples import (
    penalised_maximum,
    penalty_information,
    weighted_moments,
    weighted_moments_covariance,
)

METHODS = ("ML", "PWM", "penalised")
NO_COVARIANCE = np.full((2, 2), np.nan)
NO_COVARIANCE.flags.writeable = False


class EngineAnswer(NamedTuple):
    """What any engine gives back; ``covariance`` is (2, 2) of (scale, shape).

    ``said`` are sentences for the record's conditions, ``versions`` of R and its packages.
    """

    shape: float
    scale: float
    covariance: np.ndarray
    log_likelihood: float
    converged: bool
    engine_status: str
    said: tuple[str, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()


def fit_excesses(
    *, excesses: np.ndarray, method: str = "ML", penalty: tuple[float, float] = (1.0, 1.0)
) -> EngineAnswer:
    """Fit (n,) positive excesses, n >= 2.

    Parameters
    ----------
    method : "ML", "PWM" (Hosking and Wallis, 1987) or "penalised" (Coles and Dixon, 1999)
    penalty : strength and power of the penalty

    Returns
    -------
    EngineAnswer
        NaN covariance for shapes of at most -1/2, where the information says nothing.
    """
    if method == "PWM":
        return _by_weighted_moments(excesses)
    if method == "penalised":
        best = penalised_maximum(excesses=excesses, strength=penalty[0], power=penalty[1])
        extra = penalty_information(shape=best.shape, strength=penalty[0], power=penalty[1])
    else:
        best, extra = profile_maximum(excesses=excesses), 0.0
    return _from_maximum(excesses, best, extra)


def _from_maximum(excesses: np.ndarray, best: Maximum, extra: float) -> EngineAnswer:
    covariance = NO_COVARIANCE
    if not best.at_boundary and best.shape > -0.5:
        information = observed_information(
            excesses=excesses, shape=best.shape, scale=best.scale, sums=best.sums
        )
        information[1, 1] += extra
        covariance = inverse_information(information)
    said = "boundary" if best.at_boundary else "maximum found"
    return EngineAnswer(best.shape, best.scale, covariance, best.log_likelihood, True, said)


def _by_weighted_moments(excesses: np.ndarray) -> EngineAnswer:
    shape, scale = weighted_moments(excesses=excesses)
    if not (math.isfinite(shape) and scale > 0.0):
        return EngineAnswer(math.nan, math.nan, NO_COVARIANCE, math.nan, True, "no solution")
    covariance = weighted_moments_covariance(shape=shape, scale=scale, n=excesses.size)
    value = log_likelihood(excesses=excesses, shape=shape, scale=scale)
    said: tuple[str, ...] = ()
    if not math.isfinite(value):
        said = ("the weighted moments put the upper end point below the largest score",)
    return EngineAnswer(shape, scale, covariance, value, True, "solved", said)
