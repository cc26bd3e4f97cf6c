"""The generalised Pareto distribution, with its exponential limit, for arrays.

P(X > x) = (1 + shape x / scale)^(-1/shape) for an excess x >= 0, exp(-x / scale) at shape 0.
Everything goes through the unit-exponential scale e = -log P(X > x) = log1p(shape y) / shape with
y = x / scale, which keeps its digits for shapes of any size (R's evd loses them below 1e-10).
"""

from __future__ import annotations

import numpy as np

# Below this a shape is zero: the exponential limit is then exact to the last digit for every y
# that a double can hold without overflowing the survival function.
_ZERO_SHAPE = 1e-290

Values = np.ndarray | float


def to_exponential(*, excesses: np.ndarray, shape: Values, scale: Values) -> np.ndarray:
    """-log P(X > x), unit exponential when X has this distribution.

    Parameters
    ----------
    excesses, shape, scale : arrays that broadcast against one another

    Returns
    -------
    array of the broadcast shape; +inf at and beyond the upper end point of a negative shape.
    """
    y = np.asarray(excesses, dtype=np.float64) / scale
    shape = np.asarray(shape, dtype=np.float64)
    flat = np.abs(shape) < _ZERO_SHAPE
    safe = np.where(flat, 1.0, shape)
    product = safe * y
    inside = product > -1.0
    value = np.log1p(np.where(inside, product, 0.0)) / safe
    value = np.where(inside, value, np.inf)
    return np.where(flat, y, value)


def from_exponential(*, exponentials: np.ndarray, shape: Values, scale: Values) -> np.ndarray:
    """The excess x with -log P(X > x) equal to the given values (the inverse of the above)."""
    e = np.asarray(exponentials, dtype=np.float64)
    shape = np.asarray(shape, dtype=np.float64)
    flat = np.abs(shape) < _ZERO_SHAPE
    safe = np.where(flat, 1.0, shape)
    return scale * np.where(flat, e, np.expm1(safe * e) / safe)


def draw(
    *, rng: np.random.Generator, size: tuple[int, ...], shape: float, scale: float
) -> np.ndarray:
    """Independent excesses of the given array shape."""
    # log1p of a uniform is about twice as fast as the generator's own exponential.
    exponentials = -np.log1p(-rng.random(size))
    return from_exponential(exponentials=exponentials, shape=shape, scale=scale)


def draw_sorted(
    *, rng: np.random.Generator, n_rows: int, n: int, shape: float, scale: float
) -> np.ndarray:
    """``n_rows`` samples of ``n`` excesses, each row in rising order, without sorting.

    Rényi (1953): the gaps of ordered unit exponentials are independent exponentials, the k-th
    divided by n - k + 1.

    Returns
    -------
    (n_rows, n) float64
    """
    gaps = -np.log1p(-rng.random((n_rows, n)))
    gaps /= np.arange(n, 0, -1, dtype=np.float64)
    np.cumsum(gaps, axis=1, out=gaps)
    return from_exponential(exponentials=gaps, shape=shape, scale=scale)
