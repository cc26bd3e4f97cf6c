"""What kind of values a column holds, where pandas' dtype does not say it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from pybridge._checks import listed
from pybridge.errors import InputError


def settled_column(column: pd.Series, name: str, *, field: str) -> pd.Series:
    """A covariate as numbers, true and false, categories or text; anything else is refused.

    Objects that are all real numbers become numbers, as they would be for anyone who looks at
    them; left as objects they would be taken for categories. The column has no missing values.
    """
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_numeric_dtype(dtype):
        return column  # flags are numeric to pandas
    if isinstance(dtype, pd.StringDtype):
        return column
    kind = pd.api.types.infer_dtype(column, skipna=False)
    if kind in ("string", "empty"):
        return column
    wanted = {"boolean": bool, "floating": np.float64, "mixed-integer-float": np.float64}
    if kind in wanted:
        return column.astype(wanted[kind])
    if kind == "integer":
        least, most = min(column), max(column)
        inside = -(2**63) <= least and most < 2**63
        return column.astype(np.int64 if inside else np.float64)
    found = sorted({type(item).__name__ for item in column})
    raise InputError(
        f"the column {name!r} holds neither numbers, nor true and false, nor text",
        code="mixed_column",
        field=field,
        expected="values of one kind: numbers, true and false, text, or a categorical",
        got=f"dtype {dtype}, values of type {listed(found)}",
        hint="Convert it, for example by astype(float) or astype(str).",
    )
