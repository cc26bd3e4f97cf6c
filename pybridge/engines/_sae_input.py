"""Tables of domains for sae's area-level functions: keys, columns, and the order of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import (
    collinear_columns,
    key_column,
    listed,
    need_columns,
    need_frame,
    need_range,
    numeric_column,
)
from pybridge._integers import NA_INTEGER, Integers
from pybridge._record import Record
from pybridge.engines._r_formula import FUNCTIONS, RFormula, read_formula
from pybridge.engines._sae_likelihood import AreaData
from pybridge.engines._engine_request import EngineRequest, ask
from pybridge.errors import InputError
from pybridge.tables.area import check_counts, check_variances

_MOST = 2**31 - 1
OVERFLOW = (
    "Whole numbers are R's integers, whose products end at 2147483647: where that is the cause, "
    "convert the columns with astype('float64')."
)
# For messages: who predicts domains without a direct estimate.
_OTHERS = (
    "Drop these domains, or use fay_herriot(..., engine='sae') in guarded mode, engine='native' or "
    "engine='emdi', which predict them."
)


@dataclass(frozen=True, eq=False, repr=False)
class AreaInput(Record):
    """A table of m rows as sae gets it.

    Attributes
    ----------
    formula : RFormula
    vardir : str
        The column of sampling variances, by its name in R.
    domains : numpy.ndarray
        Shape (m,), object, labels in R's order of rows.
    times : numpy.ndarray or None
        Shape (m,), object, for a table of domains over time.
    order : numpy.ndarray
        Shape (m,): the user's row of each of R's rows.
    columns : mapping of str
        The columns by their names in R, in R's order of rows.
    direct, variance : numpy.ndarray
        Shape (m,), the outcome and its sampling variance; NaN where they are not numbers.
    """

    formula: RFormula
    vardir: str
    domains: np.ndarray
    times: np.ndarray | None
    order: np.ndarray
    columns: Mapping[str, Any]
    direct: np.ndarray
    variance: np.ndarray

    def for_r(self) -> dict[str, Any]:
        """The inputs that every area-level shim takes."""
        found: dict[str, Any] = {
            "formula": self.formula.code,
            "functions": list(FUNCTIONS),
            "data": dict(self.columns),
            "vardir": self.vardir,
        }
        if self.formula.made_up:
            found["columns"] = self.formula.made_up
        return found


def area_input(
    data: pd.DataFrame, formula: str, vardir: str, *, domain: str | None, asked: EngineRequest
) -> AreaInput:
    """Read and check a table with one row a domain.

    In raw mode only what must be there for a call at all is checked; R sees the rest.
    """
    need_frame("data", data)
    read = read_vardir_formula(formula, data, vardir)
    labels = domain_labels(data, domain)
    if not asked.raw:
        refuse_twice(labels, field="domain" if domain is None else domain)
    return ordered_input(data, read, vardir, domains=labels, asked=asked)


def read_vardir_formula(formula: str, data: pd.DataFrame, vardir: str) -> RFormula:
    """The formula, with the column of variances known to R too."""
    if isinstance(vardir, str) and vardir not in data.columns:
        words = "".join(c if c.isalnum() or c in "_." else " " for c in vardir).split()
        if len(words) > 1 and any(word in data.columns for word in words):
            raise InputError(
                f"vardir is the name of a column, not an expression: {vardir!r}",
                code="missing_column",
                field="vardir",
                expected="a column of sampling variances (squared standard errors)",
                got=vardir,
                hint="Compute it as a column first; sae itself cannot take an expression either.",
            )
    need_columns(data, [vardir], field="vardir")
    return read_formula(formula, data, also=(vardir,))


def ordered_input(
    data: pd.DataFrame,
    read: RFormula,
    vardir: str,
    *,
    domains: np.ndarray,
    asked: EngineRequest,
    times: np.ndarray | None = None,
    order: np.ndarray | None = None,
) -> AreaInput:
    """The input in the given order of rows, its columns checked."""
    rows = np.arange(len(data)) if order is None else order
    table = data if order is None else data.iloc[rows]
    domains = domains[rows]
    if not asked.raw:
        _check_columns(table, read, vardir, domains)
    return AreaInput(
        formula=read,
        vardir=read.names[vardir],
        domains=domains,
        times=None if times is None else times[rows],
        order=rows,
        columns={
            # Guarded, what sae computes with are doubles: R's integers overflow.
            name: column_values(
                table[column], integers=asked.raw or column not in (read.outcome, vardir)
            )
            for column, name in read.names.items()
        },
        direct=_numbers(table, read.outcome),
        variance=_numbers(table, vardir),
    )


def _numbers(table: pd.DataFrame, column: str | None) -> np.ndarray:
    if column is None or not pd.api.types.is_numeric_dtype(table[column].dtype):
        return np.full(len(table), np.nan)
    return table[column].to_numpy(dtype=np.float64, na_value=np.nan)


def column_values(column: pd.Series, *, integers: bool = False) -> Any:
    """A column as it is kept and crosses: an array, or codes and levels of a categorical.

    Parameters
    ----------
    column : pandas.Series
    integers : bool
        Whether whole numbers are R's integers where they fit, as they are in R's own tables: as
        doubles, as.factor() would name 100000 "1e+05" and sort it elsewhere.
    """
    if integers:
        whole = r_integers(column)
        if whole is not None:
            return whole
    if isinstance(column.dtype, pd.CategoricalDtype):
        levels = np.array([str(level) for level in column.cat.categories], dtype=object)
        return {"codes": np.asarray(column.cat.codes, dtype=np.float64), "levels": levels}
    if pd.api.types.is_bool_dtype(column.dtype) and not column.isna().any():
        return column.to_numpy(dtype=bool)
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.array([None if pd.isna(value) else value for value in column], dtype=object)


def own_labels(column: pd.Series | None, sent: Any, labels: Sequence[Any]) -> np.ndarray:
    """R's labels of groups (k,), object, as the user has them.

    Parameters
    ----------
    column : pandas.Series or None
        What they are the groups of; None where R made them, and they stay R's.
    sent : array or mapping
        The column as it crossed, `column_values` or text as codes and levels.
    labels : sequence
        Numbers, logicals or text.
    """
    plain = [label.item() if isinstance(label, np.generic) else label for label in labels]
    own: dict[Any, Any] = {}
    if column is not None and isinstance(column.dtype, pd.CategoricalDtype):
        own = dict(zip(sent["levels"], column.cat.categories))
    elif column is not None:
        if isinstance(sent, Mapping):
            sent = np.asarray(sent["levels"])[np.asarray(sent["codes"]).astype(int)]
        absent = column.isna().to_numpy()
        own = {s: value for s, value, gap in zip(sent, column, absent) if not gap}
    out = np.empty(len(plain), dtype=object)
    out[:] = [own.get(label, label) for label in plain]
    return out


def r_integers(column: pd.Series) -> Integers | None:
    """Whole numbers as R's integers (n,); None for any other column, and beyond 32 bits."""
    missing = column.isna().to_numpy()
    if column.dtype == object:
        if missing.any() or pd.api.types.infer_dtype(column, skipna=False) != "integer":
            return None
    elif not pd.api.types.is_integer_dtype(column.dtype):
        return None
    values = column[~missing]
    if len(values) == 0 or int(values.max()) > _MOST or int(values.min()) < -_MOST:
        return None
    found = np.full(len(column), NA_INTEGER, dtype=np.int32)
    found[~missing] = values.to_numpy(dtype=np.int64)
    return found.view(Integers)


def domain_labels(data: pd.DataFrame, domain: str | None) -> np.ndarray:
    """Labels of the rows (m,), object: a column, else ``domain``, else the table's index."""
    if domain is None and "domain" not in data.columns:
        return np.asarray(data.index, dtype=object)
    name = "domain" if domain is None else domain
    return key_column(data, name, field="domain").to_numpy(dtype=object)


def refuse_twice(labels: np.ndarray, *, field: str) -> None:
    """InputError where a label comes twice, also as number and as text."""
    text = pd.Series([str(label) for label in labels], dtype=object)
    twice = text[text.duplicated()].unique()
    if len(twice):
        raise InputError(
            f"the table has domains more than once: {listed(twice)}",
            code="duplicate_domain",
            field=field,
            expected="one row a domain",
            got=listed(twice),
            hint="sae would take the rows for independent domains.",
        )


def _check_columns(table: pd.DataFrame, read: RFormula, vardir: str, domains: np.ndarray) -> None:
    """What sae would pass over in silence, or stop at with words that do not help."""
    refuse_formula(read)
    direct = numeric_column(table, str(read.outcome), field="formula", missing=True)
    absent = np.isnan(direct)
    if absent.any():
        raise InputError(
            f"{int(absent.sum())} domains have no direct estimate, and sae does not predict those",
            code="out_of_sample",
            field="formula",
            expected="a direct estimate in every domain",
            got=f"missing in {listed(domains[absent])}",
            hint=_OTHERS,
        )
    variances = numeric_column(table, vardir, field="vardir", missing=True)
    check_variances(variances, labels=domains)
    need_range(direct, str(read.outcome), field="formula")
    need_range(variances, vardir, field="vardir")
    refuse_missing(table, read, domains)


def refuse_formula(read: RFormula) -> None:
    """An outcome that is not a column, and an offset."""
    if read.outcome is None:
        raise InputError(
            "the left-hand side must be one column as it is",
            code="transformed_outcome",
            field="formula",
            expected="'y ~ x'",
            got=read.text,
            hint="sae would leave the results on the transformed scale, with the variances of "
            "the original one. Put the transformed outcome and its variance into columns.",
        )
    if read.offset:
        raise InputError(
            "an offset is not supported: R's sae would ignore it silently",
            code="offset_not_supported",
            field="formula",
            expected="a formula without offset()",
            got=read.text,
            hint="Subtract it from the outcome and add it to the results.",
        )


def refuse_missing(table: pd.DataFrame, read: RFormula, labels: np.ndarray) -> None:
    """InputError for covariates with missing or infinite values."""
    for column in read.columns:
        values = table[column]
        bad = values.isna().to_numpy()
        if pd.api.types.is_float_dtype(values.dtype):
            bad = bad | np.isinf(values.to_numpy(dtype=np.float64, na_value=np.nan))
        if bad.any() and column != read.outcome:
            raise InputError(
                f"the covariate {column!r} is missing or infinite in {int(bad.sum())} rows",
                code="missing_covariate",
                field="formula",
                expected="a value in every row",
                got=f"missing in {listed(labels[bad])}",
            )


def design(table: AreaInput, asked: EngineRequest) -> AreaData:
    """Outcome, variances and R's own design matrix, checked before sae is called.

    Raises
    ------
    InputError
        A formula that R refuses; covariates that are not finite, constant or collinear; no more
        rows than coefficients.
    """
    reply = ask("sae_design", table.for_r(), asked, may_fail=True)
    x, terms = checked_design(reply, table.formula)
    check_counts(n_sampled=len(x), n_coefficients=x.shape[1])
    collinear_columns(x, names=terms, field="formula")
    return AreaData(np.asarray(reply.value["y"]), table.variance, x)


def checked_design(reply: Any, formula: RFormula) -> tuple[np.ndarray, list[str]]:
    """The design matrix (n, p), finite, and its p names in the user's words."""
    if reply.error is not None:
        raise InputError(
            f"R cannot use the formula on this table: {reply.error['message']}",
            code="bad_formula",
            field="formula",
            expected="'y ~ x + as.factor(g)', in R's words",
            got=formula.text,
        )
    x = np.asarray(reply.value["X"], dtype=np.float64)
    terms = [formula.label(term) for term in reply.value.get("terms") or []]
    bad = ~np.isfinite(x).all(axis=0) if x.size else np.zeros(0, dtype=bool)
    if bad.any():
        raise InputError(
            f"covariates are not finite: {listed(np.array(terms, dtype=object)[bad])}",
            code="not_finite",
            field="formula",
            expected="finite numbers in every row",
            got=listed(np.array(terms, dtype=object)[bad]),
            hint=OVERFLOW,
        )
    return x, terms
