"""Return levels: the score that is exceeded once in so many observations, with intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pybridge._options import check_level, choose, real_number
from pybridge._record import Record
from pybridge.errors import InputError
from pybridge.tails._intervals import chi_square_drop, normal_quantile
from pybridge.tails._profile import quantile_interval

if TYPE_CHECKING:
    from pybridge.tails.records import ParetoFit

INTERVALS = ("delta", "profile")


@dataclass(frozen=True, eq=False, repr=False)
class ReturnLevels(Record):
    """Levels exceeded once in ``period`` units of ``observations_per_period`` observations.

    Attributes
    ----------
    period, probability, estimate, standard_error, lower, upper : numpy.ndarray
        (k,) float64. ``probability`` is that of one observation exceeding the level; the standard
        error is the delta method's, with the binomial error of the exceedance rate.
    observations_per_period : float
    interval : {"delta", "profile"}
        The profile interval holds the exceedance rate at its estimate, as is customary (Coles,
        2001, section 4.3.3).
    level : float
    """

    period: np.ndarray
    probability: np.ndarray
    estimate: np.ndarray
    standard_error: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    observations_per_period: float
    interval: str
    level: float

    def to_frame(self) -> pd.DataFrame:
        """One row a level."""
        names = ("period", "probability", "estimate", "standard_error", "lower", "upper")
        return pd.DataFrame({n: getattr(self, n).copy() for n in names}).assign(level=self.level)

    def summary(self) -> str:
        head = f"Return levels, {self.interval} intervals at {self.level:g}"
        return f"{head}\n{self.to_frame().to_string(index=False)}"


def excess_quantile(*, tail: float, shape: float, scale: float) -> tuple[float, float, float]:
    """The excess exceeded with probability ``tail``, and its derivatives in scale and shape."""
    rate = -math.log(tail)
    product = shape * rate
    if abs(product) < 1e-4:
        gain = rate * (1.0 + product / 2.0 + product**2 / 6.0)
        bent = rate**2 * (0.5 + product / 3.0 + product**2 / 8.0)
    else:
        gain = math.expm1(product) / shape
        bent = (rate * math.exp(product) - gain) / shape
    return scale * gain, gain, scale * bent


def return_levels(
    fit: ParetoFit,
    period: Any,
    *,
    observations_per_period: float = 1.0,
    interval: str = "delta",
    level: float | None = None,
) -> ReturnLevels:
    """See :meth:`pybridge.tails.records.ParetoFit.return_level`."""
    choose("interval", interval, INTERVALS)
    level = fit.level if level is None else check_level(level)
    if interval == "profile":
        fit.need_maximum_likelihood()
    per = real_number("observations_per_period", observations_per_period)
    periods = np.atleast_1d(np.asarray(period, dtype=np.float64))
    probability = 1.0 / (periods * per)
    bad = ~np.isfinite(periods) | (probability <= 0) | (probability > fit.exceedance_rate)
    if bad.any():
        least = 1.0 / (fit.exceedance_rate * per)
        raise InputError(
            "a return level lies below the threshold",
            code="below_threshold",
            field="period",
            expected=f"periods of at least {least:g}, the threshold's own",
            got=f"{float(periods[bad][0]):g}",
        )
    rows = np.array([_one_level(fit, p, interval, level) for p in probability.tolist()])
    estimate, error, lower, upper = rows.T
    return ReturnLevels(
        period=periods,
        probability=probability,
        estimate=estimate,
        standard_error=error,
        lower=lower,
        upper=upper,
        observations_per_period=per,
        interval=interval,
        level=level,
    )


def _one_level(
    fit: ParetoFit, probability: float, interval: str, level: float
) -> tuple[float, float, float, float]:
    """Estimate, standard error and interval of one level, probability that of exceeding it."""
    if not fit.usable:
        return (math.nan,) * 4
    tail = min(probability / fit.exceedance_rate, 1.0)
    excess, by_scale, by_shape = excess_quantile(tail=tail, shape=fit.shape, scale=fit.scale)
    # The derivative in the exceedance rate: the level rises by scale * tail^-shape per log unit.
    by_rate = fit.scale * math.exp(-fit.shape * math.log(tail)) / fit.exceedance_rate
    gradient = np.array([by_scale, by_shape])
    rate_variance = fit.exceedance_rate * (1.0 - fit.exceedance_rate) / fit.n_scores
    variance = float(gradient @ fit.covariance @ gradient) + by_rate**2 * rate_variance
    error = math.sqrt(variance) if variance >= 0 else math.nan
    estimate = fit.threshold + excess
    if interval == "delta" or not math.isfinite(error):
        half = normal_quantile(level) * error
        return estimate, error, estimate - half, estimate + half
    if tail == 1.0:
        return estimate, error, estimate, estimate
    low, high = quantile_interval(
        excesses=fit.excesses,
        maximum=fit.exact_maximum(),
        shape_error=fit.shape_standard_error,
        tail=tail,
        estimate=excess,
        drop=chi_square_drop(level),
    )
    return estimate, error, fit.threshold + low, fit.threshold + high
