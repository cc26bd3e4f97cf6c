"""Auxiliary variables by formula: the same columns for the population and for the sample.

patsy cannot pickle what it learnt from a table, so the record keeps the formula and the
categories of its columns, which is all that a formula needs whose terms depend on the unit's own
row only. A term that looks at other rows (a mean, a maximum, cut points) would be another variable
in the sample than in the population, and is refused.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import key_column, listed, need_columns
from pybridge._column_kinds import settled_column
from pybridge.errors import InputError

# patsy calls itself once a term.
TOO_LONG = "the formula has too many terms to be read, several hundred of them"
# Functions that a formula may use beside patsy's own and numpy's as np.
FUNCTIONS = {"np": np, "log": np.log, "log10": np.log10, "exp": np.exp, "sqrt": np.sqrt}
# Rows on which it is tried whether a term looks at other rows.
_TRIED = 500


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
    description = _description(formula)
    used = tuple(dict.fromkeys(_used_columns(description, table)))
    for name in used:
        key_column(table, name, field="formula")
    frame = plain_columns(table, used)
    if categories is not None:
        frame = _fixed_categories(frame, categories)
    info, names, values = _evaluated(description, frame, formula)
    if categories is None:
        categories = {name: _levels(frame[name]) for name in _category_columns(info, frame)}
        fixed = _fixed_categories(frame, categories)
        for rows in (slice(0, 2 * _TRIED, 2), slice(1, 2 * _TRIED, 2)):
            _need_own_rows(description, fixed.iloc[rows], formula, names, values[rows])
    return names, values, dict(categories)


def _bad(message: str, formula: Any, expected: str = "'~ f' or '~ f + C(g)'") -> InputError:
    return InputError(message, code="bad_formula", field="formula", expected=expected, got=formula)


def _description(formula: Any) -> Any:
    import patsy

    if not isinstance(formula, str) or not formula.strip().startswith("~"):
        raise _bad("an auxiliary formula has a right-hand side only", formula)
    try:
        return patsy.ModelDesc.from_formula(formula.strip())
    except (patsy.PatsyError, SyntaxError) as error:
        words = str(error).splitlines()[0]
        raise _bad(f"the formula cannot be read: {words}", formula) from error
    except RecursionError:
        raise _bad(TOO_LONG, formula) from None


def _evaluated(
    description: Any, frame: pd.DataFrame, formula: str
) -> tuple[Any, tuple[str, ...], np.ndarray]:
    """patsy's account of the columns, their names and values (n, q) without the intercept."""
    import patsy

    space = patsy.EvalEnvironment([FUNCTIONS])
    try:
        with np.errstate(all="ignore"):
            matrix = patsy.dmatrix(description, frame, eval_env=space, NA_action=_keep_all())
    except Exception as error:  # whatever the formula's own expressions raise
        words = (str(error).splitlines() or [type(error).__name__])[0]
        raise _bad(f"the formula cannot be used on this table: {words}", formula) from error
    _refuse_stateful(matrix.design_info, formula)
    names = list(matrix.design_info.column_names)
    keep = [j for j, name in enumerate(names) if name != "Intercept"]
    values = np.asarray(matrix, dtype=np.float64)[:, keep]
    if not np.isfinite(values).all():
        bad = ~np.isfinite(values).all(axis=0)
        raise InputError(
            f"the formula's columns are not finite: {listed(np.array(names)[keep][bad])}",
            code="not_finite",
            field="formula",
            expected="a finite number in every row",
            got=f"rows {listed(np.flatnonzero(~np.isfinite(values).all(axis=1)))} (from 0)",
        )
    return matrix.design_info, tuple(names[j] for j in keep), values


def _keep_all() -> Any:
    """patsy would drop rows with missing values; they are refused here by their numbers."""
    import patsy

    return patsy.NAAction(NA_types=[])


def plain_columns(table: pd.DataFrame, names: Any) -> pd.DataFrame:
    """The columns with numpy's types, which are the ones patsy knows; see `settled_column`."""
    frame = table[list(names)].copy()
    for name in frame.columns:
        frame[name] = settled_column(frame[name], name, field="formula")
        column = frame[name]
        if isinstance(column.dtype, (np.dtype, pd.CategoricalDtype)):
            continue
        if pd.api.types.is_bool_dtype(column.dtype) and not column.isna().any():
            frame[name] = column.to_numpy(dtype=bool)
        elif pd.api.types.is_numeric_dtype(column.dtype):
            frame[name] = column.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            frame[name] = pd.Series(list(column), index=frame.index, dtype=object)
    return frame


def _used_columns(description: Any, table: pd.DataFrame) -> Iterator[str]:
    """Columns that the terms name; what is neither a column nor a function is an InputError."""
    from patsy import builtins as words

    for factor in {f for term in description.rhs_termlist for f in term.factors}:
        for node in ast.walk(_expression(factor.code)):
            if _is_call_of(node, "Q"):
                name = str(ast.literal_eval(node.args[0]))  # type: ignore[attr-defined]
            elif isinstance(node, ast.Name):
                name = node.id
                known = name in FUNCTIONS or name in words.__all__ or hasattr(builtins, name)
                if name not in table.columns and known:
                    continue
            else:
                continue
            need_columns(table, [name], field="formula")
            yield name


def _expression(code: str) -> ast.expr:
    try:
        return ast.parse(code, mode="eval").body
    except SyntaxError as error:
        raise _bad(f"{code!r} cannot be read", code) from error


def _category_columns(info: Any, frame: pd.DataFrame) -> Iterator[str]:
    """Columns that enter as categories as they stand: g, C(g), Q('g'), C(Q('g'), ...).

    Categories of any other expression (true and false of a comparison) follow from the row.
    """
    for factor, what in info.factor_infos.items():
        if what.type != "categorical":
            continue
        node: ast.AST = _expression(factor.code)
        if _is_call_of(node, "C"):
            node = node.args[0]  # type: ignore[attr-defined]
        name = node.id if isinstance(node, ast.Name) else None
        if _is_call_of(node, "Q"):
            name = ast.literal_eval(node.args[0])  # type: ignore[attr-defined]
        if name in frame.columns and not pd.api.types.is_bool_dtype(frame[name].dtype):
            yield str(name)


def _is_call_of(node: ast.AST, name: str) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == name
        and len(node.args) > 0
    )


def _levels(column: pd.Series) -> tuple[Any, ...]:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return tuple(column.cat.categories)
    return tuple(sorted(pd.unique(column.dropna())))


def _fixed_categories(frame: pd.DataFrame, categories: Mapping[str, Any]) -> pd.DataFrame:
    need_columns(frame, list(categories), field="formula")
    changed = {}
    for name, levels in categories.items():
        unknown = [x for x in pd.unique(frame[name]) if x not in set(levels)]
        if unknown:
            raise InputError(
                f"the column {name!r} has values that the population does not have",
                code="unknown_category",
                field="formula",
                expected=listed(levels),
                got=listed(unknown),
            )
        changed[name] = pd.Categorical(frame[name], categories=list(levels))
    return frame.assign(**changed)


def _refuse_stateful(design_info: Any, formula: str) -> None:
    for factor, info in design_info.factor_infos.items():
        if info.state.get("transforms"):
            raise _stateful(factor.name(), formula)


def _need_own_rows(
    description: Any,
    part: pd.DataFrame,
    formula: str,
    names: tuple[str, ...],
    values: np.ndarray,
) -> None:
    """The same rows without the others give the same columns (n, q)."""
    if not len(part):
        return
    try:
        _, again, alone = _evaluated(description, part, formula)
    except InputError:
        again, alone = (), values
    if again != names or not np.allclose(alone, values, rtol=1e-9, atol=1e-12):
        changed = "the formula"
        if again == names:
            first = int((~np.isclose(alone, values, rtol=1e-9, atol=1e-12)).any(axis=0).argmax())
            changed = names[first]
        raise _stateful(changed, formula)


def _stateful(term: str, formula: str) -> InputError:
    return InputError(
        f"{term!r} learns from the table it meets, and would learn something else from the sample "
        "than from the population",
        code="stateful_formula",
        field="formula",
        expected="terms whose value depends on the unit's own row only",
        got=formula,
        hint="Put the transformed variable into a column of both tables.",
    )
