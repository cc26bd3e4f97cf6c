"""Direct estimators as linear functions of the domain moments, for all replicates at once.

Every estimator is ``offset_i + Σ w c_i'u`` with u = (1, y, f) about the pass's shift, and c_i are
at the same time the scores of its linearised variance (β held fixed), so that estimate and
variance cannot drift apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pybridge._checks import listed
from pybridge._record import Record
from pybridge.design.variance import DomainMoments
from pybridge.errors import InputError

# A slope that a domain fits alone needs this many units more than it has coefficients.
_SPARE_UNITS = 2
_SINGULAR = 1e-11


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
    fitted = np.einsum("rmj,mj->rm", slope, auxiliary_means[:, list(auxiliary)])
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
        slope = _slopes(_centred(moments).sum(axis=1), columns, used)
    elif request.intercept:
        slope = _slopes(_about_mean(total, gram), columns, used)
    else:
        slope = _slopes(_about_zero(total, gram, moments.shift), columns, used)
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
        coefficients, own = _own_slopes(moments, columns, request.intercept, coefficients)
    return _difference(moments, size, auxiliary_means, request.auxiliary, coefficients, own)


def _about_mean(total: np.ndarray, gram: np.ndarray) -> np.ndarray:
    """Weighted products about the weighted mean, (..., p, p); 0 where there is no weight."""
    weight = total[..., :1, None]
    outer = total[..., :, None] * total[..., None, :]
    return gram - np.divide(outer, weight, out=np.zeros_like(outer), where=weight > 0)


def _centred(moments: DomainMoments) -> np.ndarray:
    return _about_mean(moments.total, moments.gram)


def _about_zero(total: np.ndarray, gram: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Σ w v v' of the variables on their own scale, from moments about the shift."""
    cross = total[..., :, None] * shift
    weight = total[..., :1, None]
    return gram + cross + np.swapaxes(cross, -1, -2) + weight * np.outer(shift, shift)


def _slopes(products: np.ndarray, columns: list[int], names: tuple[str, ...]) -> np.ndarray:
    """Weighted least-squares slopes (R, a) from products (R, p, p).

    The first replicate decides whether the auxiliary variables can be told apart; in a fold in
    which they cannot (a rare category is absent) the minimum-norm solution stands in.
    """
    left = products[:, columns][:, :, columns]
    right = products[:, columns, 1]
    scale = np.sqrt(np.einsum("rjj->rj", left))
    constant = scale[0] <= _SINGULAR * np.sqrt(np.abs(products[0, 0, 0]) + scale[0] ** 2)
    if constant.any():
        bad = [names[j] if names else str(j) for j in np.flatnonzero(constant)]
        raise InputError(
            f"the auxiliary variable {listed(bad)} is constant on the sample",
            code="constant_auxiliary",
            field="auxiliary",
            expected="an auxiliary variable that varies",
            got=listed(bad),
        )
    safe = np.where(scale > 0, scale, 1.0)
    correlation = left / (safe[:, :, None] * safe[:, None, :])
    values, vectors = np.linalg.eigh(correlation)
    if values[0, 0] <= _SINGULAR * len(columns):
        heavy = np.abs(vectors[0, :, 0]) > 0.1
        bad = [names[j] if names else str(j) for j in np.flatnonzero(heavy)]
        raise InputError(
            f"the auxiliary variables {listed(bad)} are collinear",
            code="collinear_auxiliary",
            field="auxiliary",
            expected="auxiliary variables none of which follows from the others",
            got=listed(bad),
        )
    inverse = np.where(values > _SINGULAR * len(columns), 1.0 / np.maximum(values, _SINGULAR), 0.0)
    rotated = np.einsum("rji,rj->ri", vectors, right / safe)
    return np.einsum("rji,ri->rj", vectors, inverse * rotated) / safe


def _own_slopes(
    moments: DomainMoments, columns: list[int], intercept: bool, pooled: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients (R, m, 1 + a) fitted in each domain alone, where it can carry them."""
    products = _centred(moments)
    if not intercept:
        products = _about_zero(moments.total, moments.gram, moments.shift)
    left = products[..., columns, :][..., columns]
    right = products[..., columns, 1]
    scale = np.sqrt(np.einsum("rmjj->rmj", left))
    safe = np.where(scale > 0, scale, 1.0)
    correlation = left / (safe[..., :, None] * safe[..., None, :])
    values, vectors = np.linalg.eigh(correlation)
    own = (values[..., 0] > 1e-8) & (moments.n >= len(columns) + 1 + _SPARE_UNITS)
    inverse = 1.0 / np.where(own[..., None], values, 1.0)
    rotated = np.einsum("rmji,rmj->rmi", vectors, right / safe)
    slope = np.einsum("rmji,rmi->rmj", vectors, inverse * rotated) / safe
    out = pooled.copy()
    out[..., 1:] = np.where(own[..., None], slope, pooled[..., 1:])
    if intercept:
        weight = np.where(own, moments.total[..., 0], 1.0)
        mean = moments.total / weight[..., None] + moments.shift
        alone = mean[..., 1] - np.einsum("rmj,rmj->rm", slope, mean[..., columns])
        out[..., 0] = np.where(own, alone, pooled[..., 0])
    return out, own


def within_domain(form: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Covariance c'V d of two estimators in every domain: forms (..., p, p), scores (..., p)."""
    return np.einsum("...i,...ij,...j->...", first, form, second)
