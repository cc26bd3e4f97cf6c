"""Auxiliary variables by formula: the same columns for the population and for the sample.

patsy cannot pickle what it learnt from a table, so the record keeps the formula and the
categories of its factors, which is all that a formula without stateful transforms needs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import listed, need_columns
from pybridge.errors import InputError


def design_columns(
    formula: str, table: pd.DataFrame, *, categories: Mapping[str, Any] | None = None
) -> tuple[tuple[str, ...], np.ndarray, dict[str, tuple[Any, ...]]]:
    """The columns of a right-hand side such as ``"~ f + C(g)"``, without the intercept.

    Parameters
    ----------
    formula : str
        A patsy formula, right-hand side only.
    table : pandas.DataFrame
        n rows.
    categories : mapping, optional
        Categories of the categorical variables, as an earlier call returned them.

    Returns
    -------
    names : tuple of str
        q names, as patsy writes them.
    values : numpy.ndarray
        Shape (n, q).
    categories : dict
        Variable -> its categories, to pass when the same formula meets another table.
    """
    import patsy

    text = formula.strip()
    if not text.startswith("~"):
        raise InputError(
            "an auxiliary formula has a right-hand side only",
            code="bad_formula",
            field="formula",
            expected="'~ f' or '~ f + C(g)'",
            got=formula,
        )
    try:
        description = patsy.ModelDesc.from_formula(text)
    except patsy.PatsyError as error:
        raise InputError(
            f"the formula cannot be read: {error}", code="bad_formula", field="formula", got=formula
        ) from error
    frame = table if categories is None else _fixed_categories(table, categories)
    try:
        matrix = patsy.dmatrix(description, frame, NA_action="raise", return_type="matrix")
    except patsy.PatsyError as error:
        raise InputError(
            f"the formula cannot be used on this table: {str(error).splitlines()[0]}",
            code="bad_formula",
            field="formula",
            expected="columns without missing values",
            got=formula,
        ) from error
    _refuse_stateful(matrix.design_info, formula)
    names = list(matrix.design_info.column_names)
    values = np.asarray(matrix, dtype=np.float64)
    keep = [j for j, name in enumerate(names) if name != "Intercept"]
    known = _category_levels(matrix.design_info, table) if categories is None else categories
    return tuple(names[j] for j in keep), values[:, keep], dict(known)


def _category_levels(design_info: Any, table: pd.DataFrame) -> dict[str, tuple[Any, ...]]:
    """The categories of every column that enters a categorical factor."""
    codes = [f.name() for f, info in design_info.factor_infos.items() if info.type == "categorical"]
    names = {str(c) for c in table.columns for code in codes if _mentions(code, str(c))}
    return {name: _levels(table[name]) for name in sorted(names)}


def _mentions(code: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}(?![\w])", code) is not None


def _levels(column: pd.Series) -> tuple[Any, ...]:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return tuple(column.cat.categories)
    return tuple(sorted(pd.unique(column.dropna())))


def _fixed_categories(table: pd.DataFrame, categories: Mapping[str, Any]) -> pd.DataFrame:
    need_columns(table, list(categories), field="formula")
    changed = {}
    for name, levels in categories.items():
        unknown = [x for x in pd.unique(table[name]) if x not in set(levels)]
        if unknown:
            raise InputError(
                f"the column {name!r} has values that the population does not have",
                code="unknown_category",
                field="formula",
                expected=listed(levels),
                got=listed(unknown),
            )
        changed[name] = pd.Categorical(table[name], categories=list(levels))
    return table.assign(**changed)


def _refuse_stateful(design_info: Any, formula: str) -> None:
    for factor, info in design_info.factor_infos.items():
        if info.state.get("transforms"):
            raise InputError(
                f"{factor.name()!r} learns from the table it meets, and would learn something "
                "else from the sample than from the population",
                code="stateful_formula",
                field="formula",
                expected="terms whose value depends on the unit's own row only",
                got=formula,
                hint="Put the transformed variable into a column of both tables.",
            )
