"""What may cross to R, and in which form: the policy of the border.

Everything that R would change silently is refused here, with the name of the column: integers
beyond R's 32 bits, nullable columns with missing integers or flags, columns of mixed objects,
names that are empty or occur twice, text that is not valid Unicode or holds a NUL.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import listed
from pybridge.errors import InputError
from pybridge.r.wire import NA_REAL, Factor

_MOST = 2**31 - 1


def to_r(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """A named list of plain vectors, ready for :func:`pybridge.r.writer.encode`.

    float64 stays as it is (NaN becomes R's NA_real_), bool becomes logical, integers become
    doubles, one Python int an R integer, text a character vector (None, NaN and NA become
    NA_character_), a categorical a factor, a table or a dict a named list, None NULL.

    Raises
    ------
    InputError
        For anything else, naming the entry.
    """
    return _named(inputs, "inputs")


def _named(items: Mapping[Any, Any] | pd.DataFrame, place: str) -> dict[str, Any]:
    if isinstance(items, pd.DataFrame):
        _check_names([*items.columns], place)
        return {name: _value(items[name], name) for name in items.columns}
    _check_names([*items], place)
    return {name: _value(item, name) for name, item in items.items()}


def _check_names(names: list[Any], place: str) -> None:
    bad = [name for name in names if not isinstance(name, str) or not name]
    if bad:
        raise InputError(
            f"{place} has names that R cannot hold",
            code="bad_name",
            field=place,
            expected="non-empty text",
            got=listed(map(repr, bad)),
        )
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(
            f"{place} has a name twice: {listed(twice)}",
            code="duplicate_name",
            field=place,
            expected="each name once",
            got=listed(twice),
        )
    _text(names, place)


def _value(value: Any, name: str) -> Any:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, (Mapping, pd.DataFrame)):
        return _named(value, name)
    if isinstance(value, Factor):
        return _factor(value, name)
    if isinstance(value, (str, bool, int, float, np.generic)) or value is pd.NA:
        return _scalar(value, name)
    if isinstance(value, (pd.Series, pd.Index, pd.api.extensions.ExtensionArray)):
        return _column(value, name)
    if isinstance(value, np.ndarray):
        return _array(value, name)
    if isinstance(value, (list, tuple)):
        return _sequence(value, name)
    raise _refuse(name, "numbers, true and false, or text", type(value).__name__)


def _scalar(value: Any, name: str) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return _text([value], name)
    if isinstance(value, bool):
        return np.array([value])
    if isinstance(value, int):
        _check_range(np.array([value], dtype=object), name)
        return np.array([value], dtype=np.int32)
    if isinstance(value, float):
        return np.array([NA_REAL if math.isnan(value) else value])
    raise _refuse(name, "a number, true or false, or text", repr(value))


def _array(array: np.ndarray, name: str) -> Any:
    kind = array.dtype.kind
    if array.ndim == 0:
        return _value(array.item(), name)
    if isinstance(array, np.ma.MaskedArray):
        raise _refuse(name, "an array without a mask", "a masked array")
    if kind == "f" and array.dtype.itemsize <= 8:
        return _doubles(array.astype(np.float64, copy=False))
    if kind == "b":
        return array
    if kind in "iu":
        _check_range(array, name)
        return array.astype(np.float64)
    if kind in "OU" and array.ndim == 1:
        return _sequence(array.tolist(), name)
    raise _refuse(name, "numbers, true and false, or text", f"dtype {array.dtype}")


def _doubles(array: np.ndarray) -> np.ndarray:
    missing = np.isnan(array)
    if missing.any():
        array = array.copy(order="K")
        array[missing] = NA_REAL
    return array


def _column(column: Any, name: str) -> Any:
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _categorical(pd.Categorical(column), name)
    if isinstance(dtype, np.dtype):
        return _array(column.to_numpy(), name)
    if pd.api.types.is_float_dtype(dtype):
        return _doubles(pd.Series(column).to_numpy(dtype=np.float64, na_value=np.nan))
    if pd.api.types.is_bool_dtype(dtype) or pd.api.types.is_integer_dtype(dtype):
        if pd.isna(column).any():
            raise _refuse(
                name,
                "integers or flags without missing values",
                f"dtype {dtype} with missing values",
                hint=f"Fill them, or convert with {name}.astype('float64').",
            )
        return _array(np.asarray(column, dtype=dtype.numpy_dtype), name)
    if pd.api.types.is_string_dtype(dtype):
        return _sequence(list(column), name)
    raise _refuse(name, "numbers, true and false, or text", f"dtype {dtype}")


def _sequence(items: list[Any] | tuple[Any, ...], name: str) -> Any:
    """Python objects: all text (or missing), or all numbers of one kind; no mixture."""
    texts = [None if _missing(item) else item for item in items]
    if all(item is None or isinstance(item, str) for item in texts):
        # Nothing but NaN is a column of numbers.
        if any(item is not None for item in texts) or all(item is None for item in items):
            return _text(texts, name)
    plain = [item.item() if isinstance(item, np.generic) else item for item in items]
    if all(isinstance(item, bool) for item in plain):
        return np.array(plain, dtype=bool)
    if all(isinstance(item, int) and not isinstance(item, bool) for item in plain):
        _check_range(np.array(plain, dtype=object), name)
        return np.array(plain, dtype=np.float64)
    if all(isinstance(item, (int, float)) and not isinstance(item, bool) for item in plain):
        return _doubles(np.array(plain, dtype=np.float64))
    if all(isinstance(item, Mapping) for item in plain):
        return tuple(_named(item, f"{name}[{i}]") for i, item in enumerate(plain))
    kinds = sorted({type(item).__name__ for item in items})
    raise _refuse(name, "one kind of value", f"a mixture of {listed(kinds)}")


def _missing(item: Any) -> bool:
    return item is None or item is pd.NA or (isinstance(item, float) and math.isnan(item))


def _text(items: list[Any], name: str) -> list[str | None]:
    for item in items:
        if item is None:
            continue
        if "\0" in item:
            raise _refuse(name, "text without the NUL character", repr(item))
        if not item.isascii():
            try:
                item.encode("utf-8")
            except UnicodeEncodeError:
                raise _refuse(name, "valid Unicode text", repr(item)) from None
    return [None if item is None else str(item) for item in items]


def _categorical(values: pd.Categorical, name: str) -> Factor:
    levels = list(values.categories)
    if not all(isinstance(level, str) for level in levels):
        raise _refuse(
            name,
            "a categorical whose categories are text",
            f"categories {listed(map(repr, levels))}",
            hint=f"Convert with {name}.astype(str).",
        )
    return _factor(Factor(np.asarray(values.codes, dtype=np.int32), tuple(levels)), name)


def _factor(factor: Factor, name: str) -> Factor:
    levels = _text(list(factor.levels), name)
    codes = np.asarray(factor.codes)
    if len(set(levels)) != len(levels) or None in levels:
        raise _refuse(name, "each level of a factor once", listed(map(repr, levels)))
    if codes.size and (codes.max() >= len(levels) or codes.min() < -1):
        raise _refuse(name, f"codes from -1 to {len(levels) - 1}", f"up to {codes.max()}")
    return Factor(codes.astype(np.int32), tuple(str(level) for level in levels))


def _check_range(values: np.ndarray, name: str) -> None:
    """R's integers have 32 bits, and the least of them stands for NA."""
    if values.size and (values.max() > _MOST or values.min() < -_MOST):
        worst = max(values.max(), values.min(), key=lambda value: abs(int(value)))
        raise InputError(
            f"{name!r} holds integers that R cannot hold",
            code="integer_too_large",
            field=name,
            expected=f"at most {_MOST} in absolute value",
            got=int(worst),
            hint=f"Convert with {name}.astype('float64') if a double will do.",
        )


def _refuse(name: str, expected: str, got: str, *, hint: str | None = None) -> InputError:
    return InputError(
        f"{name!r} cannot be passed to R",
        code="cannot_cross",
        field=name,
        expected=expected,
        got=got,
        hint=hint,
    )
