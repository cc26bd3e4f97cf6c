"""What may cross to R of pandas: tables, columns, categoricals; see convert for the policy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from pybridge.r import convert
from pybridge.r.wire import Factor


def convert_pandas(value: Any, name: str) -> Any:
    """A table as a named list of its columns, a column as a vector or factor.

    Raises
    ------
    InputError
        For what R would change, naming the column.
    """
    if isinstance(value, pd.DataFrame):
        convert.check_names([*value.columns], name)
        return {column: _column(value[column], column) for column in value.columns}
    if isinstance(value, (pd.Series, pd.Index, pd.api.extensions.ExtensionArray)):
        return _column(value, name)
    raise convert.refusal(name, "numbers, true and false, or text", repr(value))


def _column(column: Any, name: str) -> Any:
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _categorical(pd.Categorical(column), name)
    if isinstance(dtype, np.dtype):
        return convert.array(np.asarray(column), name)
    if pd.api.types.is_float_dtype(dtype):
        return convert.doubles(pd.Series(column).to_numpy(dtype=np.float64, na_value=np.nan))
    if pd.api.types.is_bool_dtype(dtype) or pd.api.types.is_integer_dtype(dtype):
        if pd.isna(column).any():
            raise convert.refusal(
                name,
                "integers or flags without missing values",
                f"dtype {dtype} with missing values",
                hint=f"Fill them, or convert with {name}.astype('float64').",
            )
        wanted = bool if pd.api.types.is_bool_dtype(dtype) else np.int64
        if pd.api.types.is_unsigned_integer_dtype(dtype):
            wanted = np.uint64
        return convert.array(pd.Series(column).to_numpy(dtype=wanted), name)
    if pd.api.types.is_string_dtype(dtype):
        return convert.sequence(list(column), name)
    raise convert.refusal(name, "numbers, true and false, or text", f"dtype {dtype}")


def _categorical(values: pd.Categorical, name: str) -> Factor:
    levels = list(values.categories)
    if not all(isinstance(level, str) for level in levels):
        shown = ", ".join(repr(level) for level in levels[:5])
        raise convert.refusal(
            name,
            "a categorical whose categories are text",
            f"categories {shown}",
            hint=f"Convert with {name}.astype(str).",
        )
    codes = np.asarray(values.codes, dtype=np.int32)
    return convert.factor(Factor(codes, tuple(levels)), name)
