"""Checks of tables and columns, each with the same structured error."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pybridge.errors import InputError

_SHOWN = 5


def listed(values: Iterable[Any], *, most: int = _SHOWN) -> str:
    """The first few values as text, with the count of the rest."""
    items = list(values)
    text = ", ".join(str(item) for item in items[:most])
    return text if len(items) <= most else f"{text} and {len(items) - most} more"


def need_frame(field: str, table: Any) -> pd.DataFrame:
    """A pandas table with at least one row and unique column names."""
    if not isinstance(table, pd.DataFrame):
        raise InputError(
            f"{field} must be a pandas DataFrame",
            code="not_a_table",
            field=field,
            expected="pandas.DataFrame",
            got=type(table).__name__,
            hint="Read files with pandas.read_csv, or pass the path to the command line.",
        )
    if not table.columns.is_unique:
        twice = table.columns[table.columns.duplicated()].unique()
        raise InputError(
            f"{field} has columns of the same name: {listed(twice)}",
            code="duplicate_column",
            field=field,
            expected="unique column names",
            got=listed(twice),
        )
    if len(table) == 0:
        raise InputError(
            f"{field} has no rows", code="empty_table", field=field, expected="rows", got="0 rows"
        )
    return table


def need_columns(table: pd.DataFrame, names: Iterable[str], *, field: str) -> None:
    """Raise InputError naming the columns that are not there, and the nearest ones that are."""
    there = [str(name) for name in table.columns]
    for name in names:
        if not isinstance(name, str):
            raise InputError(
                f"{field} must be the name of a column",
                code="bad_name",
                field=field,
                expected="text",
                got=name,
            )
        if name in table.columns:
            _refuse_complex(table[name], name, field)
            continue
        near = difflib.get_close_matches(str(name), there, n=3, cutoff=0.5)
        raise InputError(
            f"there is no column {name!r}",
            code="missing_column",
            field=field,
            expected=f"a column named {name!r}",
            got=f"columns {listed(there, most=12)}",
            hint=f"Nearest: {', '.join(near)}." if near else None,
        )


def _refuse_complex(column: Any, name: str, field: str) -> None:
    """Complex numbers are no use as anything; a cast would drop their imaginary part."""
    if getattr(getattr(column, "dtype", None), "kind", "") == "c":
        raise InputError(
            f"the column {name!r} holds complex numbers",
            code="not_numeric",
            field=field,
            expected="real numbers, or labels",
            got=f"dtype {column.dtype}",
        )


def numeric_column(
    table: pd.DataFrame, name: str, *, field: str, missing: bool = False
) -> np.ndarray:
    """A column as float64, in row order; text, and missing values unless allowed, are refused.

    Infinite values are always refused: no estimator here has a use for them.
    """
    values = float_column(table, name, field=field)
    # One sum tells that all is well, several times faster than looking at every value.
    with np.errstate(over="ignore", invalid="ignore"):
        if math.isfinite(values.sum()):
            return values
    if not missing and np.isnan(values).any():
        rows = np.flatnonzero(np.isnan(values))
        raise InputError(
            f"the column {name!r} has {rows.size} missing values",
            code="missing_values",
            field=field,
            expected="a number in every row",
            got=f"missing in rows {listed(rows)} (counted from 0)",
        )
    if np.isinf(values).any():
        rows = np.flatnonzero(np.isinf(values))
        raise InputError(
            f"the column {name!r} has infinite values",
            code="infinite_values",
            field=field,
            expected="finite numbers",
            got=f"infinite in rows {listed(rows)} (counted from 0)",
        )
    return values


def float_column(table: pd.DataFrame, name: str, *, field: str) -> np.ndarray:
    """A numeric column as float64, in row order, NaN where a value is missing; text is refused."""
    need_columns(table, [name], field=field)
    column = table[name]
    if column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) == "boolean":
        column = column.astype("boolean")  # true and false beside missing values
    numeric = pd.api.types.is_numeric_dtype(column.dtype)
    if not numeric:
        raise InputError(
            f"the column {name!r} is not numeric",
            code="not_numeric",
            field=field,
            expected="numbers (or true and false)",
            got=f"dtype {column.dtype}, first values {listed(column.head(3).tolist())}",
            hint=_text_hint(column),
        )
    return _as_float(column)


def _as_float(column: pd.Series) -> np.ndarray:
    """The column as float64; its own memory where it is float64 already."""
    if column.dtype == np.float64:
        return np.asarray(column)
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def _text_hint(column: pd.Series) -> str | None:
    converted = pd.to_numeric(column, errors="coerce")
    bad = column[converted.isna() & column.notna()]
    if 0 < len(bad) < len(column):
        return f"Not numbers: {listed(bad.unique())}."
    if not len(bad) and column.dtype == object:
        return "Every value reads as a number: convert the column, for example by astype(float)."
    return None


def key_column(table: pd.DataFrame, name: str, *, field: str) -> pd.Series:
    """A column of labels without missing values (domains, levels, strata, primary units)."""
    need_columns(table, [name], field=field)
    column = table[name]
    whole = isinstance(column.dtype, np.dtype) and column.dtype.kind in "biu"  # nothing missing
    if not whole and column.isna().any():
        rows = np.flatnonzero(column.isna().to_numpy())
        raise InputError(
            f"the column {name!r} has {rows.size} missing labels",
            code="missing_values",
            field=field,
            expected="a label in every row",
            got=f"missing in rows {listed(rows)} (counted from 0)",
        )
    return column


def name_list(field: str, value: str | Sequence[str] | None) -> tuple[str, ...]:
    """Column names as a tuple: one name, several, or none; each once."""
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Iterable):
        value = (value,)
    names = tuple(value)
    bad = [name for name in names if not isinstance(name, str) or not name]
    if bad:
        raise InputError(
            f"{field} must be names of columns",
            code="bad_name",
            field=field,
            expected="text",
            got=listed(bad),
        )
    if len(set(names)) != len(names):
        raise InputError(
            f"{field} names a column twice",
            code="duplicate_name",
            field=field,
            expected="each column once",
            got=listed(names),
        )
    return names


def collinear_columns(
    matrix: np.ndarray, *, names: Sequence[str] | None = None, field: str = "covariates"
) -> None:
    """Raise InputError naming the columns that the columns before them determine.

    Parameters
    ----------
    matrix : numpy.ndarray
        Shape (n, p), finite, n ≥ p.
    names : sequence of str, optional
        Names of the columns; their numbers otherwise.
    field : str
        The argument at fault.
    """
    labels = [f"column {k}" for k in range(matrix.shape[1])] if names is None else list(names)
    for k, label in enumerate(labels):
        need_range(matrix[:, k], label, field=field)
    largest = np.abs(matrix).max(axis=0)
    scaled = matrix / np.where(largest > 0, largest, 1.0)
    upper = np.asarray(np.linalg.qr(scaled / np.sqrt(len(matrix)), mode="r"))
    free: list[int] = []
    found: list[str] = []
    constant: list[str] = []
    for k in range(matrix.shape[1]):
        # What is left of the column beside the earlier ones, relative to its own length.
        length = float(np.linalg.norm(upper[: k + 1, k]))
        if abs(upper[k, k]) > 1e-11 * length and length > 0:
            free.append(k)
            continue
        part = np.linalg.lstsq(upper[:, free], upper[:, k], rcond=None)[0]
        partners = [labels[j] for j, c in zip(free, part) if abs(c) > 1e-9]
        if np.ptp(matrix[:, k]) == 0:
            constant.append(labels[k])
        found.append(f"{labels[k]} (from {listed(partners)})" if partners else labels[k])
    if not found:
        return
    if len(constant) == len(found):
        raise InputError(
            f"covariates are constant over the domains: {listed(constant)}",
            code="constant_covariate",
            field=field,
            expected="covariates that vary (the intercept is there already)",
            got=listed(constant),
            hint="Leave them out.",
        )
    raise InputError(
        f"covariates are collinear: {listed(found)}",
        code="collinear_covariates",
        field=field,
        expected="columns none of which is a combination of the others",
        got=listed(found),
        hint="Leave one of each set out.",
    )


def number_vector(field: str, values: Any) -> np.ndarray:
    """A sequence of finite numbers as a (n,) float64 array; text, missing and infinite refused.

    Raises
    ------
    InputError
        ``not_a_vector``, ``not_numeric``, ``empty``, ``missing_values``, ``infinite_values``.
    """
    array = np.asarray(np.ma.filled(values * 1.0, np.nan) if np.ma.is_masked(values) else values)
    if array.ndim != 1:
        raise InputError(
            f"{field} must be one column of numbers",
            code="not_a_vector",
            field=field,
            expected="a sequence of one dimension",
            got=f"{array.ndim} dimensions, shape {array.shape}",
        )
    if array.dtype.kind == "O":  # pandas' nullable numbers arrive as objects
        numeric = pd.to_numeric(pd.Series(values), errors="coerce")
        known = pd.isna(pd.Series(values)).to_numpy()
        if (numeric.isna().to_numpy() & ~known).any() or not len(array):
            array = np.asarray(array, dtype=str)
        else:
            array = numeric.to_numpy(dtype=np.float64, na_value=np.nan)
    if array.size == 0:
        raise InputError(
            f"{field} is empty", code="empty", field=field, expected="numbers", got="0 values"
        )
    if array.dtype.kind not in "fiub":
        raise InputError(
            f"{field} must be numbers",
            code="not_numeric",
            field=field,
            expected="numbers",
            got=f"dtype {array.dtype}, first values {listed(array[:3].tolist())}",
        )
    numbers = array.astype(np.float64, copy=False)
    # One pass in the common case: a sum is finite only if every value is (or it overflows).
    if not np.isfinite(numbers.sum()):
        _refuse_odd_numbers(field, numbers)
    return numbers


def _refuse_odd_numbers(field: str, numbers: np.ndarray) -> None:
    for odd, code, words in (
        (np.isnan(numbers), "missing_values", "missing values"),
        (np.isinf(numbers), "infinite_values", "infinite values"),
    ):
        if odd.any():
            places = np.flatnonzero(odd)
            raise InputError(
                f"{field} has {places.size} {words}",
                code=code,
                field=field,
                expected="finite numbers",
                got=f"in positions {listed(places)} (counted from 0)",
            )


# Numbers whose fourth powers, summed with weights, neither overflow nor vanish.
LARGEST, SMALLEST_SPREAD = 1e60, 1e-60


def need_range(values: np.ndarray, name: str, *, field: str) -> None:
    """Refuse finite numbers too large, or too close together, for moments of fourth order."""
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
    if max(-low, high) <= LARGEST and not 0 < high - low < SMALLEST_SPREAD:
        return
    raise InputError(
        f"the column {name!r} is out of the range that can be computed with",
        code="out_of_range",
        field=field,
        expected=f"at most {LARGEST:g} in size, and a spread of 0 or at least {SMALLEST_SPREAD:g}",
        got=f"{low:g} to {high:g}",
        hint="Choose another unit of measurement.",
    )


def real_array(field: str, values: Any, *, expected: str = "numbers") -> np.ndarray:
    """A new float64 array of any shape; text, complex numbers and ragged lists are refused."""
    try:
        # numpy would read text as numbers, and drop the imaginary part with a warning only.
        array = np.asarray(values)
        words = array.dtype.kind == "O" and any(isinstance(x, (str, bytes)) for x in array.flat)
        if array.dtype.kind in "fiubO" and not words:
            return np.array(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    got = type(values).__name__
    raise InputError(
        f"{field} must be numbers", code="not_numeric", field=field, expected=expected, got=got
    )
