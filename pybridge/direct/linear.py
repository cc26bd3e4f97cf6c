"""Direct estimators as linear functions of the domain moments, for all replicates at once.

Every estimator is ``offset_i + Σ w c_i'u`` with u = (1, y, f) about the pass's shift, and c_i are
at the same time the scores of its linearised variance (β held fixed), so that estimate and
variance cannot drift apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pybridge._record import Record
from pybridge.design.variance import ROUNDING, DomainMoments
from pybridge.direct.slopes import (
    about_mean,
    about_zero,
    own_slopes,
    pooled_slopes,
    without_spread,
)


@dataclass(frozen=True, eq=False, repr=False)
class DirectRequest(Record):
    """Which direct estimator, with what.

    Attributes
    ----------
    method : str
        "ht", "hajek", "ppi" or "greg".
    auxiliary : tuple of int
        Positions of the auxiliary variables among the q of the cells.
    slope : object
        "pooled", "within", "domain", or fixed numbers, one per auxiliary.
    intercept : bool
        Whether the working model has one.
    """

    method: str
    auxiliary: tuple[int, ...] = ()
    slope: Any = "pooled"
    intercept: bool = True


@dataclass(frozen=True, eq=False, repr=False)
class LinearEstimates(Record):
    """Estimates of m domains in R replicates.

    Attributes
    ----------
    estimate : numpy.ndarray
        Shape (R, m); in a domain without units its formal value (0 for HT, synthetic for PPI and
        GREG), which aggregates need.
    score : numpy.ndarray
        Shape (R, m, p), c_i.
    coefficients : numpy.ndarray
        Shape (R, m, 1 + number of auxiliaries): intercept and slopes on the variables' own
        scale; empty last axis where the estimator has none.
    own_slope : numpy.ndarray
        Shape (R, m), bool: the domain fitted a slope of its own.
    """

    estimate: np.ndarray
    score: np.ndarray
    coefficients: np.ndarray
    own_slope: np.ndarray


def linear_estimates(
    request: DirectRequest,
    moments: DomainMoments,
    *,
    size: np.ndarray,
    auxiliary_means: np.ndarray,
    names: tuple[str, ...] = (),
) -> LinearEstimates:
    """Compute one direct estimator in every replicate.

    Parameters
    ----------
    request : DirectRequest
    moments : DomainMoments
        R replicates, m domains.
    size : numpy.ndarray
        Shape (m,), N_i.
    auxiliary_means : numpy.ndarray
        Shape (m, q), population means of the cells' auxiliary variables.
    names : tuple of str
        Names of the q auxiliary variables, for messages.
    """
    if request.method == "ht":
        return _fixed_model(moments, size, auxiliary_means, (), np.zeros(0), 0.0)
    if request.method == "hajek":
        return _hajek(moments)
    if request.method == "ppi":
        return _fixed_model(moments, size, auxiliary_means, request.auxiliary, np.ones(1), 0.0)
    return _greg(request, moments, size, auxiliary_means, names)


def _hajek(moments: DomainMoments) -> LinearEstimates:
    weight = moments.total[..., 0]
    safe = np.where(weight > 0, weight, np.nan)
    about = moments.total[..., 1] / safe
    score = np.zeros_like(moments.total)
    score[..., 0] = -about / safe
    score[..., 1] = 1.0 / safe
    empty = weight.shape + (0,)
    own = np.zeros(weight.shape, dtype=bool)
    return LinearEstimates(about + moments.shift[1], np.nan_to_num(score), np.zeros(empty), own)


def _fixed_model(
    moments: DomainMoments,
    size: np.ndarray,
    auxiliary_means: np.ndarray,
    auxiliary: tuple[int, ...],
    slope: np.ndarray,
    intercept: float | np.ndarray,
) -> LinearEstimates:
    """Difference estimator with a given working model (HT: no model at all)."""
    replicates, m = moments.n.shape
    coefficients = np.empty((replicates, m, 1 + len(auxiliary)))
    coefficients[..., 0] = np.reshape(intercept, (-1, 1))
    coefficients[..., 1:] = slope
    own = np.zeros((replicates, m), dtype=bool)
    return _difference(moments, size, auxiliary_means, auxiliary, coefficients, own)


def _difference(
    moments: DomainMoments,
    size: np.ndarray,
    auxiliary_means: np.ndarray,
    auxiliary: tuple[int, ...],
    coefficients: np.ndarray,
    own: np.ndarray,
) -> LinearEstimates:
    """x̄_i'β + (1/N_i) Σ w (y − x'β), with β (R, m, 1 + a)."""
    columns = [2 + j for j in auxiliary]
    slope = coefficients[..., 1:]
    score = np.zeros_like(moments.total)
    # e = (u_y + shift_y) − β0 − β'(u_f + shift_f): the constant collects all that is not u.
    score[..., 0] = moments.shift[1] - coefficients[..., 0] - slope @ moments.shift[columns]
    score[..., 1] = 1.0
    score[..., columns] = -slope
    score /= size[:, None]
    # Not einsum: without auxiliaries numpy 1.24 multiplies 0 by what lies behind the empty array,
    # which is NaN at times.
    fitted = (slope * auxiliary_means[:, list(auxiliary)]).sum(axis=-1)
    residual = np.einsum("rmp,rmp->rm", score, moments.total)
    return LinearEstimates(coefficients[..., 0] + fitted + residual, score, coefficients, own)


def _greg(
    request: DirectRequest,
    moments: DomainMoments,
    size: np.ndarray,
    auxiliary_means: np.ndarray,
    names: tuple[str, ...],
) -> LinearEstimates:
    columns = [2 + j for j in request.auxiliary]
    used = tuple(names[j] for j in request.auxiliary) if names else ()
    total, gram = moments.total.sum(axis=1), moments.gram.sum(axis=1)
    if not isinstance(request.slope, str):
        slope = np.broadcast_to(np.asarray(request.slope, float), (len(total), len(columns)))
    elif request.slope == "within":
        products = about_mean(moments.total, moments.gram).sum(axis=1)
        slope = pooled_slopes(
            products, without_spread(products, gram, moments.shift), columns, used
        )
    elif request.intercept:
        products = about_mean(total, gram)
        slope = pooled_slopes(
            products, without_spread(products, gram, moments.shift), columns, used
        )
    else:
        products = about_zero(total, gram, moments.shift)
        slope = pooled_slopes(
            products, without_spread(products, products, 0.0 * moments.shift), columns, used
        )
    if request.intercept:
        mean = total / total[:, :1] + moments.shift
        intercept = mean[:, 1] - np.einsum("rj,rj->r", slope, mean[:, columns])
    else:
        intercept = np.zeros(len(total))
    replicates, m = moments.n.shape
    coefficients = np.empty((replicates, m, 1 + len(columns)))
    coefficients[..., 0], coefficients[..., 1:] = intercept[:, None], slope[:, None, :]
    own = np.zeros((replicates, m), dtype=bool)
    if request.slope == "domain":
        coefficients, own = own_slopes(moments, columns, request.intercept, coefficients)
    return _difference(moments, size, auxiliary_means, request.auxiliary, coefficients, own)


def within_domain(form: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Covariance c'V d of two estimators in every domain: forms (..., p, p), scores (..., p).

    0 where only rounding is left of the sum, as of a perfect predictor's residuals.
    """
    value = np.einsum("...i,...ij,...j->...", first, form, second)
    size = np.einsum("...i,...ij,...j->...", np.abs(first), np.abs(form), np.abs(second))
    return np.where(np.abs(value) <= ROUNDING * size, 0.0, value)
