"""Anderson–Darling and Cramér–von Mises statistics, and their law with estimated parameters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pybridge.tails._batch import refit_rows
from pybridge.tails._distribution import draw_sorted, to_exponential

STATISTICS = ("anderson_darling", "cramer_von_mises")
_BLOCK = 1 << 17  # doubles


class Statistics(NamedTuple):
    """Both statistics, each of the leading shape of what they were computed from."""

    anderson_darling: np.ndarray
    cramer_von_mises: np.ndarray


def statistics(*, exponentials: np.ndarray) -> Statistics:
    """Both statistics of samples in rising order along the last axis.

    Parameters
    ----------
    exponentials : (..., n) float64
        e = -log P(X > x) at the fitted parameters, so that F = 1 - exp(-e). On this scale log F
        and log(1 - F) keep their digits in both tails.

    Returns
    -------
    Statistics
        A^2 = -n - sum (2i - 1)/n (log F_i + log(1 - F_{n+1-i})) and
        W^2 = 1/(12 n) + sum (F_i - (2i - 1)/(2n))^2; infinite where an e is 0 or infinite.
    """
    e = exponentials
    n = e.shape[-1]
    odd = np.arange(1.0, 2.0 * n, 2.0)  # 2i - 1
    f = -np.expm1(-e)
    cramer = 1.0 / (12.0 * n) + np.square(f - odd / (2.0 * n)).sum(axis=-1)
    with np.errstate(divide="ignore"):
        log_f = np.log(f)
    anderson = -n - (log_f @ odd - e @ odd[::-1]) / n
    return Statistics(anderson, cramer)


def bootstrap_statistics(
    *, shape: float, n: int, replicates: int, rng: np.random.Generator
) -> tuple[Statistics, int]:
    """Both statistics under the null, refitted in every replicate.

    Parameters
    ----------
    shape : that of the fitted distribution (the scale does not matter)
    n : size of a sample; replicates : how many

    Returns
    -------
    Statistics of the replicates that have a fit, each moved to the estimate ``shape`` (see
    :func:`given_shape`), and the number of those that have none (whose likelihood has no maximum
    above shape -1): the law is that given a fit with this estimate.
    """
    per_block = max(1, _BLOCK // n)
    parts, n_boundary = [], 0
    for start in range(0, replicates, per_block):
        rows = min(per_block, replicates - start)
        x = draw_sorted(rng=rng, n_rows=rows, n=n, shape=shape, scale=1.0)
        fits = refit_rows(excesses=x, start=shape)
        n_boundary += int(fits.at_boundary.sum())
        e = to_exponential(
            excesses=x, shape=fits.shape[:, np.newaxis], scale=fits.scale[:, np.newaxis]
        )
        found = statistics(exponentials=e)
        parts.append([values[~fits.at_boundary] for values in (fits.shape, *found)])
    shapes, anderson, cramer = (np.concatenate(values) for values in zip(*parts))
    law = given_shape(values=Statistics(anderson, cramer), shapes=shapes, at=shape)
    return law, n_boundary


def given_shape(*, values: Statistics, shapes: np.ndarray, at: float) -> Statistics:
    """The statistics as they would be with another estimate of the shape.

    A sample whose shape is estimated too low has a larger critical value than its true shape
    asks for, and mostly a smaller statistic, so that a test at the law of the estimated shape
    rejects too seldom: 4.2 % at 5 % with 50 exceedances. The law given the estimate hardly depends
    on the true shape and holds its size. It is had by the regression of the statistics'
    logarithms on the estimates, (R,) ``shapes``.
    """
    gap = shapes - at
    centred = gap - gap.mean() if gap.size else gap
    spread = float(centred @ centred)
    if gap.size < 10 or not spread > 0.0:
        return values
    out = []
    for one in values:
        logs = np.log(one)
        finite = np.isfinite(logs)
        slope = float(centred[finite] @ logs[finite]) / spread
        out.append(np.exp(logs - slope * gap))
    return Statistics(*out)
