"""Slopes of the working model: one least-squares fit over all domains, or one a domain."""

from __future__ import annotations

from typing import Any

import numpy as np

from pybridge._checks import listed
from pybridge._options import SLOPES, real_number
from pybridge.design.variance import DomainMoments
from pybridge.errors import InputError

# A slope that a domain fits alone needs this many units more than it has coefficients.
_SPARE_UNITS = 2
_SINGULAR = 1e-11
# What rounding leaves of the spread of a constant: of the moments about the shift, and of the
# shift itself.
_FLAT, _FLAT_OF_SHIFT = 1e-13, 1e-14


def check_slope(slope: Any, n_auxiliary: int) -> str | tuple[float, ...]:
    """One of the words, or one finite number for each auxiliary variable."""
    if isinstance(slope, str):
        if slope not in SLOPES:
            raise InputError(
                f"slope must be one of {', '.join(SLOPES)} or numbers",
                code="unknown_option",
                field="slope",
                expected=" | ".join(SLOPES) + " | a number for each auxiliary variable",
                got=slope,
            )
        return slope
    numbers = np.atleast_1d(np.asarray(slope, dtype=object))
    fixed = tuple(real_number("slope", value) for value in numbers)
    if len(fixed) != n_auxiliary:
        raise InputError(
            "a fixed slope needs one number for each auxiliary variable",
            code="wrong_length",
            field="slope",
            expected=f"{n_auxiliary} numbers",
            got=f"{len(fixed)}",
        )
    return fixed


def about_mean(total: np.ndarray, gram: np.ndarray) -> np.ndarray:
    """Weighted products about the weighted mean, (..., p, p); 0 where there is no weight."""
    weight = total[..., :1, None]
    outer = total[..., :, None] * total[..., None, :]
    return gram - np.divide(outer, weight, out=np.zeros_like(outer), where=weight > 0)


def about_zero(total: np.ndarray, gram: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Σ w v v' of the variables on their own scale, from moments about the shift."""
    cross = total[..., :, None] * shift
    weight = total[..., :1, None]
    return gram + cross + np.swapaxes(cross, -1, -2) + weight * np.outer(shift, shift)


def without_spread(products: np.ndarray, gram: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Whether a variable has no spread but rounding, (..., p), from products (..., p, p).

    ``gram`` (..., p, p) are the moments about ``shift`` (p,) that the products were made from.
    """
    left, raw = (np.einsum("...jj->...j", matrix) for matrix in (products, gram))
    return np.asarray(left <= _FLAT * raw + gram[..., :1, 0] * (_FLAT_OF_SHIFT * shift) ** 2)


def _scaled(
    products: np.ndarray, flat: np.ndarray, columns: list[int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Correlations (..., a, a) of the columns and with y (..., a); 1/length (..., a), 0 if flat."""
    left = products[..., columns, :][..., columns]
    length = np.sqrt(np.maximum(np.einsum("...jj->...j", left), 0.0))
    inverse = np.where(flat[..., columns], 0.0, 1.0 / np.where(length > 0, length, 1.0))
    correlation = left * inverse[..., :, None] * inverse[..., None, :]
    return correlation, products[..., columns, 1] * inverse, inverse


def pooled_slopes(
    products: np.ndarray, flat: np.ndarray, columns: list[int], names: tuple[str, ...]
) -> np.ndarray:
    """Weighted least-squares slopes (R, a) from products (R, p, p).

    The whole sample (R = 1) decides whether the auxiliary variables can be told apart; without a
    fold in which a rare category is, they cannot, and the minimum-norm solution stands in.
    """
    correlation, right, inverse = _scaled(products, flat, columns)
    values, vectors = np.linalg.eigh(correlation)
    small = _SINGULAR * len(columns)
    if len(products) == 1:
        _refuse_constant(flat[0, columns], names)
        if values[0, 0] <= small:
            _refuse_collinear(np.abs(vectors[0, :, 0]) > 0.1, names)
    weight = np.where(values > small, 1.0 / np.maximum(values, small), 0.0)
    rotated = np.einsum("rji,rj->ri", vectors, right)
    return np.einsum("rji,ri->rj", vectors, weight * rotated) * inverse


def _named(which: np.ndarray, names: tuple[str, ...]) -> str:
    return listed(names[j] if names else str(j) for j in np.flatnonzero(which))


def _refuse_constant(constant: np.ndarray, names: tuple[str, ...]) -> None:
    if not constant.any():
        return
    bad = _named(constant, names)
    raise InputError(
        f"the auxiliary variable {bad} is constant on the sample",
        code="constant_auxiliary",
        field="auxiliary",
        expected="an auxiliary variable that varies",
        got=bad,
    )


def _refuse_collinear(heavy: np.ndarray, names: tuple[str, ...]) -> None:
    bad = _named(heavy, names)
    raise InputError(
        f"the auxiliary variables {bad} are collinear",
        code="collinear_auxiliary",
        field="auxiliary",
        expected="auxiliary variables none of which follows from the others",
        got=bad,
    )


def own_slopes(
    moments: DomainMoments, columns: list[int], intercept: bool, pooled: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients (R, m, 1 + a) fitted in each domain alone, where it can carry them."""
    if intercept:
        products = about_mean(moments.total, moments.gram)
        flat = without_spread(products, moments.gram, moments.shift)
    else:
        products = about_zero(moments.total, moments.gram, moments.shift)
        flat = without_spread(products, products, 0.0 * moments.shift)
    correlation, right, inverse = _scaled(products, flat, columns)
    values, vectors = np.linalg.eigh(correlation)
    own = (values[..., 0] > 1e-8) & (moments.n >= len(columns) + 1 + _SPARE_UNITS)
    weight = 1.0 / np.where(own[..., None], values, 1.0)
    rotated = np.einsum("rmji,rmj->rmi", vectors, right)
    slope = np.einsum("rmji,rmi->rmj", vectors, weight * rotated) * inverse
    out = pooled.copy()
    out[..., 1:] = np.where(own[..., None], slope, pooled[..., 1:])
    if intercept:
        weight = np.where(own, moments.total[..., 0], 1.0)
        mean = moments.total / weight[..., None] + moments.shift
        alone = mean[..., 1] - np.einsum("rmj,rmj->rm", slope, mean[..., columns])
        out[..., 0] = np.where(own, alone, pooled[..., 0])
    return out, own
