"""Tables, formulas and matrices for metafor::rma.mv, read and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import key_column, need_columns, need_frame, real_array
from pybridge.engines import _engine_request as requests
from pybridge.engines._r_formula import FUNCTIONS, RFormula, condition_of, r_names, read_one_sided
from pybridge.engines._engine_request import EngineRequest
from pybridge.engines._sae_input import own_labels
from pybridge.errors import InputError


def read_columns(
    table: pd.DataFrame, yi: str, V: Any, mods: str | None, formulas: Sequence[str], **words: Any
) -> dict[str, Any]:
    """The formulas read against the table, and one set of names for all columns.

    ``words`` are slab (a column) and subset (a condition as text, or flags of the rows).
    """
    slab, subset = words["slab"], words["subset"]
    also = [yi]
    if isinstance(V, str):
        need_columns(table, [V], field="V")
        also.append(V)
    if slab is not None:
        key_column(table, slab, field="slab")
        also.append(slab)
    condition = condition_of(subset)
    parts = [read_one_sided(text, table, field="random") for text in formulas]
    whole = None if mods is None else read_one_sided(mods, table, field="mods")
    if condition is not None:
        parts.append(read_one_sided(condition, table, field="subset"))
    used = [column for one in [*parts, *([whole] if whole else [])] for column in one.columns]
    names = r_names(dict.fromkeys([*also, *used]), table=table)

    def again(text: str, field: str) -> RFormula:
        return read_one_sided(text, table, field=field, names=names)

    return {
        "names": names,
        "mods": None if mods is None else again(mods, "mods"),
        "random": [again(text, "random") for text in formulas],
        "subset": None if condition is None else again(condition, "subset"),
        "slab": None if slab is None else names[slab],
    }


def square(matrix: Any, m: int, field: str) -> np.ndarray:
    found = real_array(field, matrix)
    if found.shape != (m, m):
        raise InputError(
            f"{field} must be a matrix of rows by rows",
            code="bad_shape",
            field=field,
            expected=f"shape ({m}, {m})",
            got=f"shape {found.shape}",
        )
    return found


def weights(W: Any, m: int) -> np.ndarray:
    found = real_array("W", W)
    return found if found.shape == (m,) else square(W, m, "W")


def mapping(field: str, given: Any) -> Mapping[str, Any]:
    if isinstance(given, Mapping) and all(isinstance(name, str) for name in given):
        return given
    raise InputError(
        f"{field} must be a mapping by name",
        code="not_a_mapping",
        field=field,
        expected="{'name': value}",
        got=type(given).__name__,
    )


def correlations(given: Mapping[str, pd.DataFrame], names: Mapping[str, str]) -> dict[str, Any]:
    """Matrices and labels by R's name of the factor; ``names`` are R's of the columns."""
    found = {}
    for name, table in mapping("R", given).items():
        need_frame("R", table)
        labels = [str(label) for label in table.index]
        if labels != [str(label) for label in table.columns]:
            raise InputError(
                f"the correlations of {name!r} must have the same labels as index and columns",
                code="bad_labels",
                field="R",
                expected="index and columns alike",
                got=f"{len(table.index)} rows, {len(table.columns)} columns",
            )
        own = names.get(name, name)
        found[own] = {"matrix": real_array("R", table), "labels": labels}
    return found


def control_list(given: Mapping[str, Any]) -> dict[str, Any]:
    for name, value in given.items():
        if not isinstance(value, (bool, int, float, str)) and value is not None:
            raise InputError(
                f"the entry {name!r} of control must be a number, a word or a logical",
                code="unknown_option",
                field="control",
                expected="an entry of metafor's control list",
                got=value,
            )
    return dict(given)


def flags_of_rows(subset: Any, m: int) -> np.ndarray | None:
    """A subset given as flags (m,); None for none, and for a condition."""
    if subset is None or isinstance(subset, str):
        return None
    flags = np.asarray(subset)
    if flags.dtype == object and all(isinstance(item, (bool, np.bool_)) for item in flags.flat):
        flags = flags.astype(bool)
    if flags.dtype.kind == "b" and flags.shape == (m,):
        return np.array(flags)
    raise InputError(
        "subset must be a condition in R's words, or a flag for each row",
        code="bad_shape",
        field="subset",
        expected=f"text such as 'x > 10', or {m} times True or False",
        got=f"{flags.dtype} of shape {flags.shape}",
    )


def kept_rows(inputs: Mapping[str, Any], m: int, asked: EngineRequest) -> np.ndarray:
    """Which rows are in the subset (m,), as R would have them; all without one."""
    rows = np.ones(m, dtype=bool)
    if inputs["rows"] is not None:
        rows = np.array(inputs["rows"])
    elif inputs["subset"] is not None:
        sent = {"subset": inputs["subset"], "functions": list(FUNCTIONS), "data": inputs["data"]}
        rows = np.array(requests.ask("metafor_rows", sent, asked).value["rows"], dtype=bool)
    if not rows.any():
        raise InputError(
            "no row is in the subset",
            code="empty",
            field="subset",
            expected="a condition that some rows meet",
            got=inputs["subset"] or "no True",
        )
    return rows


def of_rows(inputs: Mapping[str, Any], rows: np.ndarray) -> dict[str, Any]:
    """The inputs of some rows only."""
    if rows.all():
        return dict(inputs)

    def part(column: Any) -> Any:
        if isinstance(column, Mapping):
            return {**column, "codes": np.asarray(column["codes"])[rows]}
        return column[rows]

    found = {**inputs, "data": {name: part(column) for name, column in inputs["data"].items()}}
    if inputs["matrix"] is not None:
        found["matrix"] = inputs["matrix"][np.ix_(rows, rows)]
    return found


def own_groups(
    value: dict[str, Any], table: pd.DataFrame, sent: Mapping[str, Any], names: Mapping[str, str]
) -> None:
    """Groups in R's answer as the user has them, where they are of a single column."""
    users = {name: column for column, name in names.items()}
    effects = {}
    for level, found in (value.get("effects") or {}).items():
        name = value["s.names"][int(level.removeprefix("level")) - 1]
        if name in users:
            found = {**found, "group": own_labels(table[users[name]], sent[name], found["group"])}
        effects[level] = found
    if effects:
        value["effects"] = effects
