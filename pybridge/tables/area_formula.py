"""The formula of an area-level model: which column is smoothed, and on which covariates.

Everything patsy would do silently is refused by name: rows dropped for missing values, a
transformed left-hand side (whose sampling variance would not be transformed with it), categories
without a domain that could tell their effect.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import listed, need_columns
from pybridge.errors import InputError
from pybridge.tables.formula import FUNCTIONS, TOO_LONG, plain_columns


@dataclass(frozen=True)
class AreaFormula:
    """A parsed formula: the column on the left, the columns used on the right."""

    text: str
    outcome: str
    used: tuple[str, ...]
    description: Any


def _bad(message: str, text: Any, *, code: str = "bad_formula", hint: str | None = None) -> Any:
    return InputError(
        message,
        code=code,
        field="formula",
        expected="'estimate ~ f' or 'estimate ~ f + C(g)'",
        got=text,
        hint=hint,
    )


def parse_area_formula(formula: str, table: pd.DataFrame) -> AreaFormula:
    """Read ``"estimate ~ f + C(g)"`` against the table's columns.

    Raises
    ------
    InputError
        ``bad_formula``, ``missing_column``, ``transformed_outcome``, ``offset_not_supported``.
    """
    import patsy

    if not isinstance(formula, str) or "~" not in formula:
        raise _bad("the formula needs a direct estimate, '~' and covariates", formula)
    try:
        description = patsy.ModelDesc.from_formula(formula)
    except patsy.PatsyError as error:
        words = str(error).splitlines()[0]
        raise _bad(f"the formula cannot be read: {words}", formula) from None
    except RecursionError:
        raise _bad(TOO_LONG, formula) from None
    outcome = _outcome(description, formula, table)
    used = tuple(dict.fromkeys(_columns_used(description, formula, table)))
    if outcome in used:
        raise _bad(f"the column {outcome!r} stands on both sides of the formula", formula)
    return AreaFormula(formula, outcome, used, description)


def _outcome(description: Any, formula: str, table: pd.DataFrame) -> str:
    terms = description.lhs_termlist
    if not terms:
        raise _bad("the formula has no left-hand side", formula, hint="Write 'estimate ~ ...'.")
    if len(terms) != 1 or len(terms[0].factors) != 1:
        raise _bad("the left-hand side must be one column", formula)
    code = terms[0].factors[0].code
    tree = _parsed(code, formula).body
    if isinstance(tree, ast.Name):
        name = tree.id
    elif _is_quote(tree):
        name = str(tree.args[0].value)  # type: ignore[attr-defined]
    else:
        raise _bad(
            f"the left-hand side {code!r} is not a column",
            formula,
            code="transformed_outcome",
            hint="The sampling variance belongs to the estimate as it is. Put the transformed "
            "estimate and its variance into columns, or use an engine that transforms.",
        )
    need_columns(table, [name], field="formula")
    return name


def _parsed(code: str, formula: str) -> ast.Expression:
    try:
        return ast.parse(code, mode="eval")
    except SyntaxError:
        hint = "Name the covariates one by one." if code.strip() == "." else None
        raise _bad(f"{code!r} cannot be read", formula, hint=hint) from None


def _is_quote(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Q"
        and len(node.args) == 1
        and isinstance(node.args[0], ast.Constant)
    )


def _columns_used(description: Any, formula: str, table: pd.DataFrame) -> Iterator[str]:
    """Columns on the right; a name that is neither a column nor a function is an InputError."""
    from patsy import builtins

    known = set(builtins.__all__) | set(FUNCTIONS) | {"True", "False", "None"}
    for term in description.rhs_termlist:
        for factor in term.factors:
            tree = _parsed(factor.code, formula)
            called = {n.func.id for n in ast.walk(tree) if _is_named_call(n)}  # type: ignore
            if "offset" in called:
                raise _bad(
                    "an offset is not supported: R's sae would ignore it silently",
                    formula,
                    code="offset_not_supported",
                    hint="Subtract it from the estimates and add it to the results.",
                )
            for wrong in called & {"factor", "as.factor"}:
                raise _bad(f"{wrong}() is R's word", formula, hint="Write C(g) for a factor.")
            for node in ast.walk(tree):
                if _is_quote(node):
                    name = str(node.args[0].value)  # type: ignore[attr-defined]
                elif isinstance(node, ast.Name):
                    name = node.id
                    if name not in table.columns and (name in known or _is_builtin(name, called)):
                        continue
                else:
                    continue
                need_columns(table, [name], field="formula")
                yield name


def _is_named_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


def _is_builtin(name: str, called: set[str]) -> bool:
    import builtins

    return name in called and hasattr(builtins, name)


def area_covariates(
    formula: AreaFormula, table: pd.DataFrame, *, sampled: np.ndarray, labels: np.ndarray
) -> tuple[tuple[str, ...], np.ndarray]:
    """The design matrix of all domains.

    Parameters
    ----------
    formula : AreaFormula
    table : pandas.DataFrame
        m rows.
    sampled : numpy.ndarray
        Shape (m,), bool: domains with a direct estimate.
    labels : numpy.ndarray
        Shape (m,), for messages.

    Returns
    -------
    names : tuple of str
        p names, as patsy writes them.
    values : numpy.ndarray
        Shape (m, p), finite.
    """
    import patsy

    for name in formula.used:
        absent = table[name].isna().to_numpy()
        if absent.any():
            raise InputError(
                f"the covariate {name!r} is missing in {int(absent.sum())} domains",
                code="missing_covariate",
                field="formula",
                expected="a value in every domain, those without a direct estimate included",
                got=f"missing in {listed(labels[absent])}",
                hint="Fill it, or drop these domains.",
            )
    frame = plain_columns(table, formula.used)
    right = patsy.ModelDesc([], formula.description.rhs_termlist)
    space = patsy.EvalEnvironment([FUNCTIONS])
    try:
        with np.errstate(all="ignore"):
            matrix = patsy.dmatrix(right, frame, eval_env=space, NA_action=_keep_all())
    except (patsy.PatsyError, TypeError, ValueError, NameError, AttributeError) as error:
        words = (str(error).splitlines() or [type(error).__name__])[0]
        raise _bad(f"the formula cannot be used on this table: {words}", formula.text) from None
    values = np.asarray(matrix, dtype=np.float64)
    names = tuple(matrix.design_info.column_names)
    bad = ~np.isfinite(values)
    if bad.any():
        columns = [name for name, any_bad in zip(names, bad.any(axis=0)) if any_bad]
        raise InputError(
            f"covariates are not finite: {listed(columns)}",
            code="not_finite",
            field="formula",
            expected="finite numbers in every domain",
            got=f"domains {listed(labels[bad.any(axis=1)])}",
        )
    _check_categories(matrix.design_info, frame, sampled)
    return names, values


def _keep_all() -> Any:
    """patsy drops rows with missing values unless told that nothing is missing."""
    import patsy

    return patsy.NAAction(NA_types=[])


def _check_categories(info: Any, table: pd.DataFrame, sampled: np.ndarray) -> None:
    """Every category has a domain with a direct estimate, and every factor two categories."""
    from patsy.categorical import categorical_to_int

    for factor, what in info.factor_infos.items():
        if what.type != "categorical":
            continue
        raw = factor.eval(what.state, table)
        codes = np.asarray(categorical_to_int(raw, what.categories, _keep_all()))
        counts = np.bincount(codes[sampled], minlength=len(what.categories))
        empty = [level for level, n in zip(what.categories, counts) if n == 0]
        if len(what.categories) < 2:
            raise InputError(
                f"the factor {factor.name()!r} has one category only",
                code="one_level_factor",
                field="formula",
                expected="two categories or more",
                got=listed(what.categories),
                hint="Leave it out.",
            )
        if empty:
            raise InputError(
                f"categories of {factor.name()!r} have no domain with a direct estimate",
                code="empty_category",
                field="formula",
                expected="a domain with a direct estimate in every category",
                got=listed(empty),
                hint="Merge these categories with others; their effect cannot be estimated.",
            )
