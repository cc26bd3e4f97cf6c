"""What R's survey would pass over in a design, and its units as they cross."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pybridge._checks import listed, need_range, numeric_column
from pybridge.engines._r_formula import read_one_sided
from pybridge.engines._sae_input import OVERFLOW, column_values
from pybridge.errors import InputError
from pybridge.r import Reply

if TYPE_CHECKING:
    from pybridge.engines._survey_design import SvyDesign

# Of pandas' words for what a column of objects holds.
_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal")
_MIXED = ("mixed", "mixed-integer", "complex", "bytes")
_ROLES = ("ids", "probs", "strata", "fpc", "weights")


def units_for_r(table: pd.DataFrame, names: Mapping[str, str], *, guarded: bool) -> dict[str, Any]:
    """The columns of units that are used, by their names in R.

    Guarded, text goes as a factor with its levels in the order of their characters' codes: R would
    order them by the session's locale, and with them domains and contrasts. Numbers in a column of
    Python objects go as numbers. Whole numbers are R's integers.

    Raises
    ------
    InputError
        ``mixed_labels``, guarded, for a column that holds neither numbers nor labels of one kind.
    """
    if not names:  # a design or a formula of no column at all: R needs the number of rows
        return {".rows.": np.zeros(len(table))}
    found: dict[str, Any] = {}
    for column, name in names.items():
        values = _of_one_kind(table[column], column) if guarded else table[column]
        text = not pd.api.types.is_numeric_dtype(values.dtype)
        if guarded and text and not isinstance(values.dtype, pd.CategoricalDtype):
            labels = np.array([None if pd.isna(item) else str(item) for item in values], object)
            levels = sorted({label for label in labels if label is not None})
            place = {label: k for k, label in enumerate(levels)}
            codes = np.array([-1 if label is None else place[label] for label in labels])
            found[name] = {
                "codes": codes.astype(np.float64),
                "levels": np.array(levels, dtype=object),
            }
        else:
            found[name] = column_values(values, integers=True)
    return found


def _of_one_kind(values: pd.Series, name: str) -> pd.Series:
    """A column of objects as the numbers or labels that it holds."""
    if values.dtype != object:
        return values
    kind = pd.api.types.infer_dtype(values, skipna=True)
    if kind == "boolean":
        return values.astype("boolean")
    if kind == "integer":
        try:
            return values.astype("Int64")
        except OverflowError:
            pass  # as numbers
    if kind in _NUMBERS:
        return pd.Series(
            [np.nan if pd.isna(item) else float(item) for item in values], index=values.index
        )
    if kind in _MIXED:
        raise InputError(
            f"the column {name!r} mixes values of several kinds",
            code="mixed_labels",
            field=name,
            expected="numbers, or text, or dates throughout",
            got=listed(dict.fromkeys(type(item).__name__ for item in values)),
            hint="Labels 1 and '1' would be one group in R: convert the column, for example by "
            "astype(str).",
        )
    return values


def refuse_overflow(reply: Reply, design: SvyDesign) -> None:
    """InputError where R's integers did not hold a product, guarded: R has NA in its place."""
    said = [text for text in reply.warnings if "integer overflow" in text]
    if said and design.mode == "guarded":
        raise InputError(
            "a formula computes whole numbers that R's integers cannot hold",
            code="integer_overflow",
            field="formula",
            expected="numbers below 2^31",
            got=said[0].strip(),
            hint=OVERFLOW,
        )


def check_variables(table: pd.DataFrame, columns: Iterable[str], *, field: str) -> None:
    """InputError for numbers that are infinite, or whose squares are: R's answer would be NaN."""
    for column in columns:
        values = _of_one_kind(table[column], column)
        if not pd.api.types.is_numeric_dtype(values.dtype):
            continue
        numbers = numeric_column(
            table.assign(**{column: values}), column, field=field, missing=True
        )
        need_range(numbers[~np.isnan(numbers)], column, field=field)


def check_design(design: SvyDesign) -> None:
    """What R would pass over, or stop at when it estimates."""
    table = design.frame
    for role in ("weights", "probs"):
        for column in _columns(design, role):
            values = numeric_column(table, column, field=role)
            if (values <= 0).any():
                raise InputError(
                    f"{role} must be positive, R takes others in silence",
                    code="bad_weight",
                    field=role,
                    expected="numbers above 0",
                    got=f"rows {listed(np.flatnonzero(values <= 0))} (counted from 0)",
                )
            need_range(values, column, field=role)
            if role == "probs" and (values > 1).any():
                raise InputError(
                    "inclusion probabilities are at most 1, R takes others in silence",
                    code="bad_probability",
                    field=role,
                    expected="0 < p <= 1",
                    got=f"rows {listed(np.flatnonzero(values > 1))} (counted from 0)",
                )
    for role in _ROLES:
        for column in _columns(design, role):
            absent = table[column].isna()
            if absent.any():
                raise InputError(
                    f"{role} has gaps",
                    code="missing_values",
                    field=role,
                    expected="a value in every row",
                    got=f"rows {listed(np.flatnonzero(absent.to_numpy()))} (counted from 0)",
                )
    _check_lonely(design)


def _columns(design: SvyDesign, role: str) -> tuple[str, ...]:
    text = design.formulas.get(role)
    return () if text is None else read_one_sided(text, design.frame, field=role).columns


def _check_lonely(design: SvyDesign) -> None:
    """Strata with one primary unit, where nothing says what to do (a certain one R lets pass)."""
    strata, ids = _columns(design, "strata")[:1], _columns(design, "ids")[:1]
    if design.lonely_psu != "fail" or not strata or design.pps or "fpc" in design.formulas:
        return
    table = design.frame
    units = table[ids[0]] if ids else pd.Series(np.arange(len(table)), index=table.index)
    counts = units.groupby(table[strata[0]], observed=True, sort=False).nunique()
    lonely = counts.index[counts.to_numpy() == 1]
    if len(lonely):
        raise InputError(
            f"strata with one primary unit have no variance: {listed(lonely)}",
            code="lonely_psu",
            field="strata",
            expected="at least two primary units a stratum",
            got=f"{len(lonely)} strata with one",
            hint="Join strata, or choose lonely_psu='adjust', 'average', 'certainty' or 'remove'.",
        )


def check_strata(
    design: SvyDesign, columns: tuple[str, ...], population: pd.DataFrame, *, partial: bool
) -> None:
    """InputError where the post-strata of sample and population are not the same."""
    ours = {tuple(map(str, row)) for row in design.frame[list(columns)].to_numpy(dtype=object)}
    theirs = {tuple(map(str, row)) for row in population[list(columns)].to_numpy(dtype=object)}
    missing = ours - theirs if partial else ours ^ theirs
    if missing:
        raise InputError(
            "the post-strata of sample and population differ",
            code="unknown_post_stratum",
            field="population",
            expected="the same post-strata in both (partial=True: in the sample at most)",
            got=listed(sorted(" ".join(item) for item in missing)),
        )
