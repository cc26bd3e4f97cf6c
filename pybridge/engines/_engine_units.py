"""Units and tables of domains for unit-level functions of R, and the record they share."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import (
    key_column,
    listed,
    need_columns,
    need_frame,
    need_range,
    numeric_column,
)
from pybridge._record import Record
from pybridge.engines._r_formula import made_up, r_names
from pybridge.engines._sae_input import column_values, refuse_twice
from pybridge.engines._sae_record import SaeRecord
from pybridge.errors import InputError


@dataclass(frozen=True, eq=False, repr=False)
class SaeUnitRecord(SaeRecord):
    """A record made from units, which it does not keep.

    Attributes
    ----------
    columns : mapping of str to str
        The columns of units that were used, and their names in R.
    as_text : tuple of str
        Those that R got as text: labels.
    units : str
        A digest of them, so that another table is not taken for this one.
    """

    columns: Mapping[str, str]
    as_text: tuple[str, ...]
    units: str

    def _complete(self, data: pd.DataFrame | None) -> dict[str, Any]:
        sent = self._send(need_units(data, self.columns))
        need_same_units(sent, self.units, columns=self.columns)
        named = made_up(self.columns) if self.request.package == "sae" else {}
        return {**self.inputs, "data": sent, **({"columns": named} if named else {})}

    def _send(self, data: pd.DataFrame) -> dict[str, Any]:
        """The columns of units as they cross."""
        return unit_columns(data, self.columns, self.as_text, integers=self.request.raw)


def need_units(data: pd.DataFrame | None, columns: Iterable[str]) -> pd.DataFrame:
    """The table of units, which a record does not keep; InputError without it."""
    if data is None:
        raise InputError(
            "the record does not keep the units",
            code="missing_argument",
            field="data",
            expected="data=, the table of units that was used",
            got=None,
        )
    need_frame("data", data)
    need_columns(data, list(columns), field="data")
    return data


def need_same_units(sent: Mapping[str, Any], units: str, *, columns: Iterable[str]) -> None:
    """InputError where columns as they cross have another digest than those of the record."""
    if digest(sent) != units:
        raise InputError(
            "this is not the table of units that was used",
            code="other_units",
            field="data",
            expected=f"the same rows of {listed(list(columns))}",
            got="rows that differ, are in another order, or more or fewer",
        )


def unit_columns(
    data: pd.DataFrame,
    names: Mapping[str, str],
    as_text: Sequence[str] = (),
    *,
    integers: bool = False,
) -> dict[str, Any]:
    """Columns for R by their names there; labels as text, whole numbers as in `column_values`."""
    return {
        name: (
            text_labels(data[column])
            if column in as_text
            else column_values(data[column], integers=integers)
        )
        for column, name in names.items()
    }


def digest(columns: Mapping[str, Any]) -> str:
    """SHA-256 of columns as they cross."""
    found = hashlib.sha256()
    for name, values in columns.items():
        found.update(name.encode())
        if isinstance(values, Mapping):
            found.update(digest(values).encode())
            continue
        array = np.asarray(values)
        if array.dtype.kind == "O":
            found.update("\x1f".join(map(str, array)).encode("utf-8", "surrogatepass"))
        else:
            found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def text_labels(column: Iterable[Any]) -> np.ndarray:
    """Labels as text (n,), object: sae loses a factor's labels, so that none is sent."""
    return np.array([str(label) for label in column], dtype=object)


def unit_numbers(data: pd.DataFrame, column: str, *, field: str) -> np.ndarray:
    """A column of units without gaps: sae would drop the rows in silence."""
    try:
        values = numeric_column(data, column, field=field)
    except InputError as error:
        if error.code != "missing_values":
            raise
        facts = {**error.facts(), "hint": "sae would drop these rows silently; drop them yourself."}
        raise InputError(error.message, **facts) from None
    need_range(values, column, field=field)
    return values


def used_columns(
    data: Any, given: Mapping[str, str | None], *, optional: Sequence[str] = ()
) -> tuple[pd.DataFrame, dict[str, str]]:
    """The table of units, and R's name of each column that is used."""
    need_frame("data", data)
    for argument, column in given.items():
        if column is not None or argument not in optional:
            need_columns(data, [column], field=argument)  # type: ignore[list-item]
    used = dict.fromkeys(column for column in given.values() if column is not None)
    return data, r_names(used, table=data)


def check_weights(data: pd.DataFrame, sweight: str | None) -> None:
    """Weights without gaps, greater than 0; nothing to do without a column."""
    if sweight is None:
        return
    weights = unit_numbers(data, sweight, field="sweight")
    if (weights <= 0).any():
        rows = np.flatnonzero(weights <= 0)
        raise InputError(
            "sampling weights must be positive",
            code="bad_weight",
            field="sweight",
            expected="numbers greater than 0",
            got=f"in rows {listed(rows)} (counted from 0)",
        )


@dataclass(frozen=True, eq=False, repr=False)
class DomainTable(Record):
    """A table of domains: labels as the user has them, their text, and columns of numbers.

    Attributes
    ----------
    labels, text : numpy.ndarray
        Shape (d,), object.
    values : mapping of str
        The other columns by name, each (d,).
    """

    labels: np.ndarray
    text: np.ndarray
    values: Mapping[str, np.ndarray]

    def for_r(self, key: str) -> dict[str, Any]:
        """With the domain first, as sae wants it."""
        return {key: self.text, **dict(self.values)}


def domain_table(
    table: Any, *, key: str, field: str, columns: Sequence[str] | None = None, missing: bool = False
) -> DomainTable:
    """Read a table of domains.

    Parameters
    ----------
    table : pandas.DataFrame
    key : str
        The column of labels; the first column where there is none of that name.
    field : str
        The argument, for messages.
    columns : sequence of str, optional
        The columns wanted, in this order; else all others.
    missing : bool
        Whether numbers may be missing.
    """
    need_frame(field, table)
    if not isinstance(key, str):
        need_columns(table, [key], field="domain")
    table = table.set_axis([str(name) for name in table.columns], axis=1)
    name = key if key in table.columns else str(table.columns[0])
    labels = key_column(table, name, field=field).to_numpy(dtype=object)
    refuse_twice(labels, field=field)
    others = [column for column in table.columns if column != name]
    wanted = others if columns is None else list(columns)
    need_columns(table, wanted, field=field)
    values = {c: numeric_column(table, c, field=field, missing=missing) for c in wanted}
    return DomainTable(labels, np.array([str(label) for label in labels], dtype=object), values)


def two_columns(table: Any, *, key: str, field: str, missing: bool = False) -> DomainTable:
    """A table of domains with one number each; more columns are refused, sae takes the second."""
    found = domain_table(table, key=key, field=field, missing=missing)
    if len(found.values) != 1:
        raise InputError(
            f"{field} must have two columns, the domain and a number",
            code="not_two_columns",
            field=field,
            expected="two columns",
            got=f"{1 + len(found.values)} columns: {listed(found.values)} beside the domain",
            hint="sae takes the second column, whatever it is.",
        )
    return found


def sizes(table: DomainTable, *, counts: Mapping[str, int], field: str) -> np.ndarray:
    """Population sizes (d,): positive, and no smaller than the sample."""
    (size,) = table.values.values()
    few = np.array([counts.get(text, 0) for text in table.text]) > size
    bad = few | (size <= 0)
    if bad.any():
        raise InputError(
            "population sizes must be positive, and no smaller than the sample",
            code="bad_size",
            field=field,
            expected="the number of units of each domain in the population",
            got=f"domains {listed(table.labels[bad])}",
        )
    return size


def need_domains(wanted: Sequence[str], table: DomainTable, *, field: str) -> None:
    """InputError for domains that a table does not have."""
    unknown = sorted(set(wanted) - set(table.text))
    if unknown:
        raise InputError(
            f"{field} does not have all domains",
            code="unknown_domain",
            field=field,
            expected="a row for each domain of the sample",
            got=f"not there: {listed(unknown)}",
            hint=f"Its domains are {listed(table.labels)}.",
        )


def positional(table: Any, field: str) -> dict[str, Any]:
    """A table as it is, for raw mode."""
    need_frame(field, table)
    return {str(name): column_values(table[name], integers=True) for name in table.columns}
