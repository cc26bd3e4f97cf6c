"""The table of domains for emdi::fh: keys, columns, design matrix, proximity, errors, all checked.

emdi goes by position. Here every row has a label: a proximity matrix and the errors of covariates
are put in the table's order by their labels, and what R answers is matched to the same labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import (
    key_column,
    listed,
    need_columns,
    need_frame,
    numeric_column,
)
from pybridge._column_kinds import settled_column
from pybridge.engines._emdi_matrices import error_array, proximity
from pybridge.engines._emdi_numbers import check_numbers
from pybridge.engines._emdi_request import FhRequest
from pybridge.engines._r_formula import FUNCTIONS, RFormula, read_formula
from pybridge.engines._sae_input import r_integers
from pybridge.errors import InputError


def fh_request(
    fixed: str,
    vardir: str,
    combined_data: pd.DataFrame,
    domains: str | None,
    *,
    eff_smpsize: str | None,
    cor_matrix: Any,
    errors: Any,
    arguments: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> FhRequest:
    """A request from a table and R's formula; R itself makes the design matrix.

    Raises
    ------
    InputError
        Anything wrong with the table, the formula, the matrix or the errors.
    """
    table = need_frame("combined_data", combined_data)
    extra = [name for name in (vardir, domains, eff_smpsize) if name is not None]
    need_columns(table, [vardir], field="vardir")
    need_columns(table, extra, field="domains" if domains in extra[1:2] else "eff_smpsize")
    read = _formula(fixed, table, extra)
    if domains in read.columns:  # labels are text for emdi, which a covariate need not be
        table, domains = _copied(table, domains)
        extra = [vardir, domains, *([] if eff_smpsize is None else [eff_smpsize])]
        read = _formula(fixed, table, extra)
    labels = row_labels(table, domains)
    estimate = numeric_column(table, str(read.outcome), field="fixed", missing=True)
    variance = numeric_column(table, vardir, field="vardir", missing=True)
    _refuse_missing(table, read, labels)
    guarded = settings["mode"] == "guarded"
    computed = {read.outcome, vardir, eff_smpsize}
    columns = {
        name: (
            _labels_text(labels)
            if column == domains
            else _column(table[column], column, integers=column not in computed)
        )
        for column, name in read.names.items()
    }
    names, x, columns = _design(
        read,
        columns,
        guarded=guarded,
        sampled=~np.isnan(estimate),
        domains=None if domains is None else read.names[domains],
    )
    n_effective = None
    if eff_smpsize is not None:
        n_effective = numeric_column(table, eff_smpsize, field="eff_smpsize", missing=True)
    return assemble(
        read=read,
        columns=columns,
        domains=labels,
        estimate=estimate,
        variance=variance,
        n_effective=n_effective,
        covariates=x,
        covariate_names=names,
        cor_matrix=cor_matrix,
        errors=errors,
        arguments={
            **arguments,
            "vardir": read.names[vardir],
            "domains": None if domains is None else read.names[domains],
            "eff_smpsize": None if eff_smpsize is None else read.names[eff_smpsize],
        },
        settings=settings,
    )


def assemble(
    *,
    read: RFormula,
    columns: Mapping[str, Any],
    domains: np.ndarray,
    estimate: np.ndarray,
    variance: np.ndarray,
    n_effective: np.ndarray | None,
    covariates: np.ndarray,
    covariate_names: tuple[str, ...],
    cor_matrix: Any,
    errors: Any,
    arguments: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> FhRequest:
    """The request from checked columns; what is numeric in it is checked here."""
    sampled = ~np.isnan(estimate)
    check_numbers(estimate, variance, n_effective, domains, covariates, covariate_names, arguments)
    guarded = settings["mode"] == "guarded"
    order = np.arange(len(domains))
    if arguments["method"] == "me" and guarded and not sampled.all():
        # emdi takes the errors of the sampled domains from the first places.
        order = np.concatenate([np.flatnonzero(sampled), np.flatnonzero(~sampled)])
    matrix, remarks = proximity(
        cor_matrix,
        domains=domains,
        sampled=sampled,
        wanted=arguments["correlation"] == "spatial",
        guarded=guarded,
    )
    array = error_array(
        errors,
        domains=domains,
        n_coefficients=covariates.shape[1],
        wanted=arguments["method"] == "me",
    )
    return FhRequest(
        fixed=read.text,
        code=read.code,
        outcome=read.names[str(read.outcome)],
        columns={name: _ordered(column, order) for name, column in columns.items()},
        labels={name: column for column, name in read.names.items()},
        domains=domains[order],
        order=order,
        estimate=estimate[order],
        variance=variance[order],
        n_effective=None if n_effective is None else n_effective[order],
        proximity=matrix,
        errors=None if array is None else array[:, :, order],
        covariates=covariates[order],
        covariate_names=covariate_names,
        arguments=dict(arguments),
        remarks=remarks,
        **settings,
    )


def _formula(fixed: str, table: pd.DataFrame, extra: list[str]) -> RFormula:
    try:
        read = read_formula(fixed, table, also=tuple(extra))
    except InputError as error:
        raise _renamed(error) from None
    if read.outcome is None:
        raise InputError(
            "the left-hand side must be one column as it is",
            code="transformed_outcome",
            field="fixed",
            expected="'y ~ x'",
            got=fixed,
            hint="emdi transforms estimate and variance together: transformation='log'.",
        )
    if read.offset:
        raise InputError(
            "an offset is not supported: emdi would ignore it silently",
            code="offset_not_supported",
            field="fixed",
            expected="a formula without offset()",
            got=fixed,
            hint="Subtract it from the estimates and add it to the results.",
        )
    return read


def _renamed(error: InputError) -> InputError:
    """An error about the formula under emdi's name for it."""
    facts = error.facts()
    facts["field"] = "fixed" if facts["field"] == "formula" else facts["field"]
    return InputError(error.message, **facts)


def row_labels(table: pd.DataFrame, domains: str | None) -> np.ndarray:
    """Labels of the rows (m,), object: a column, else the number of the row from 1, as in emdi."""
    if domains is None:
        return np.arange(1, len(table) + 1).astype(object)
    labels = key_column(table, domains, field="domains").to_numpy(dtype=object)
    text = pd.Series([str(label) for label in labels], dtype=object)
    twice = text[text.duplicated()].unique()
    if len(twice):
        raise InputError(
            f"the table has domains more than once: {listed(twice)}",
            code="duplicate_domain",
            field="domains",
            expected="one row a domain",
            got=listed(twice),
            hint="emdi would take the rows for independent domains.",
        )
    return labels


def _refuse_missing(table: pd.DataFrame, read: RFormula, labels: np.ndarray) -> None:
    for column in read.columns:
        absent = table[column].isna().to_numpy()
        if column != read.outcome and absent.any():
            raise InputError(
                f"the covariate {column!r} is missing in {int(absent.sum())} domains",
                code="missing_covariate",
                field="fixed",
                expected="a value in every domain, those without a direct estimate included",
                got=f"missing in {listed(labels[absent])}",
            )


def _copied(table: pd.DataFrame, column: str) -> tuple[pd.DataFrame, str]:
    """The table with a column once more, and the copy's name."""
    name = f"{column}.label"
    while name in table.columns:
        name += "."
    return table.assign(**{name: table[column]}), name


def plain_column(column: pd.Series, labels: np.ndarray | None = None) -> np.ndarray:
    """A column of numbers, or labels as text."""
    if labels is not None:
        return _labels_text(labels)
    return np.asarray(_column(column, str(column.name)))


def _labels_text(labels: np.ndarray) -> np.ndarray:
    return np.array([str(label) for label in labels], dtype=object)


def _column(column: pd.Series, name: str, *, integers: bool = False) -> Any:
    """A column as it is kept: an array, or codes and levels; text as an object array.

    Whole numbers are R's integers where they fit, as in R's own tables: of a double, as.factor()
    would name 100000 "1e+05" and sort it elsewhere.
    """
    if not pd.api.types.is_numeric_dtype(column.dtype):
        column = settled_column(column, name, field="fixed")
    dtype = column.dtype
    if pd.api.types.is_bool_dtype(dtype) and not column.isna().any():
        return column.to_numpy(dtype=bool)
    if pd.api.types.is_numeric_dtype(dtype):
        whole = r_integers(column) if integers and not column.isna().any() else None
        return column.to_numpy(dtype=np.float64, na_value=np.nan) if whole is None else whole
    if not isinstance(dtype, pd.CategoricalDtype):
        return np.array([str(value) for value in column], dtype=object)
    return _factor(column.cat.codes, column.cat.categories)


def _factor(codes: Any, levels: Any) -> dict[str, np.ndarray]:
    return {
        "codes": np.asarray(codes, dtype=np.float64),
        "levels": np.array([str(level) for level in levels], dtype=object),
    }


def _ordered(column: Any, order: np.ndarray) -> Any:
    if isinstance(column, Mapping):
        return {"codes": np.asarray(column["codes"])[order], "levels": column["levels"]}
    return column[order]


def for_r(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Columns as they cross to R."""
    return {name: _crossing(column) for name, column in columns.items()}


def _crossing(column: Any) -> Any:
    if isinstance(column, Mapping):
        return {"codes": column["codes"], "levels": list(column["levels"])}
    return list(column) if column.dtype == object else column


def _design(
    read: RFormula,
    columns: Mapping[str, Any],
    *,
    guarded: bool,
    sampled: np.ndarray,
    domains: str | None,
) -> tuple[tuple[str, ...], np.ndarray, dict[str, Any]]:
    """R's own design matrix of all rows, and the columns; guarded, text as R's own factors.

    As text, emdi could not predict a domain elsewhere: R would see the levels there only.
    """
    from pybridge.r import call_many

    text = [
        name
        for name, column in columns.items()
        if not isinstance(column, Mapping) and column.dtype == object and name != domains
    ]
    inputs = {
        "data": for_r(columns),
        "text": text if guarded else None,
        "fixed": read.code,
        "functions": list(FUNCTIONS),
        "outcome": read.names[str(read.outcome)],
    }
    (reply,) = call_many("emdi_frame", [inputs], packages=("emdi",))
    if reply.error is not None:
        raise InputError(
            f"R cannot use the formula on this table: {reply.error['message']}",
            code="bad_formula",
            field="fixed",
            expected="'y ~ x + as.factor(g)', in R's words",
            got=read.text,
        )
    if guarded and not sampled.all() and not reply.value["own"][0]:
        raise InputError(
            "the formula makes columns that depend on which rows are there: emdi would predict "
            "the domains without a direct estimate from other columns than it was fitted on",
            code="bad_formula",
            field="fixed",
            expected="terms that each row has by itself, not scale(x) or poly(x, 2)",
            got=read.text,
            hint="Compute such a term as a column of the table; in place of as.factor(g), "
            "let g be a column of text or categories.",
        )
    names = tuple(read.label(name) for name in reply.value["names"] or ())
    x = np.asarray(reply.value["covariates"], dtype=np.float64).reshape(len(sampled), len(names))
    levels = reply.value["levels"] or {}
    made = {
        name: _factor(pd.Index(levels[name]).get_indexer(columns[name]), levels[name])
        for name in levels
    }
    return names, x, {**columns, **made}
