"""What emdi::fh allows together: the one table, used to refuse the rest before R is called."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pandas as pd

from pybridge.errors import InputError


@dataclasses.dataclass(frozen=True)
class Legal:
    """One line of the table: every method with every kind of mean squared error.

    Attributes
    ----------
    correlation : str
        ``"no"``, or ``"spatial"``, which needs ``corMatrix``.
    transformation, backtransformation : str
        ``backtransformation`` is ``"no"`` where emdi ignores it.
    methods : tuple of str
    mse_types : tuple of str
        The first one is what `fay_herriot` takes by default.
    """

    correlation: str
    transformation: str
    backtransformation: str
    methods: tuple[str, ...]
    mse_types: tuple[str, ...]


_SPATIAL = (
    "analytical",
    "spatialparboot",
    "spatialparbootbc",
    "spatialnonparboot",
    "spatialnonparbootbc",
)
_JACKKNIVES = ("boot", "jackknife", "weighted_jackknife")
_LIKELIHOOD = ("reml", "ml")
_ADJUSTED = ("amrl", "ampl", "amrl_yl", "ampl_yl")
_ROBUST = ("reblup", "reblupbc")

LEGAL = (
    Legal("no", "no", "no", _LIKELIHOOD + _ADJUSTED, ("analytical",)),
    Legal("no", "no", "no", _ROBUST, ("pseudo", "boot")),
    Legal("no", "no", "no", ("me",), ("jackknife",)),
    Legal("no", "log", "bc_crude", _LIKELIHOOD, ("analytical",)),
    Legal("no", "log", "bc_sm", ("ml",), ("analytical",)),
    Legal("no", "arcsin", "naive", _LIKELIHOOD, _JACKKNIVES),
    Legal("no", "arcsin", "bc", _LIKELIHOOD, ("boot",)),
    Legal("no", "logit", "naive", _LIKELIHOOD, ("boot",)),
    Legal("no", "logit", "bc", _LIKELIHOOD, ("boot",)),
    Legal("spatial", "no", "no", ("reml",), _SPATIAL),
    Legal("spatial", "no", "no", ("ml",), _SPATIAL[:3]),
    Legal("spatial", "no", "no", _ROBUST, ("pseudo", "boot")),
)

METHODS = tuple(dict.fromkeys(method for row in LEGAL for method in row.methods))
TRANSFORMATIONS = tuple(dict.fromkeys(row.transformation for row in LEGAL))
BACKTRANSFORMATIONS = ("naive", "bc", "bc_crude", "bc_sm")
CORRELATIONS = ("no", "spatial")
MSE_TYPES = tuple(dict.fromkeys(kind for row in LEGAL for kind in row.mse_types))

BOOTSTRAPS = tuple(kind for kind in MSE_TYPES if "boot" in kind)
CRITERIA = ("AIC", "AICc", "AICb1", "AICb2", "BIC", "KIC", "KICc", "KICb1", "KICb2")
BOOTSTRAP_CRITERIA = ("AICc", "AICb1", "AICb2", "KICc", "KICb1", "KICb2")


def legal_methods(correlation: str) -> tuple[str, ...]:
    """The methods that go with a correlation."""
    rows = [row for row in LEGAL if row.correlation == correlation]
    return tuple(dict.fromkeys(method for row in rows for method in row.methods))


def combinations() -> Iterator[dict[str, Any]]:
    """Every legal combination as arguments of fh, first without, then with each MSE."""
    for row in LEGAL:
        for method in row.methods:
            words: dict[str, Any] = {
                "method": method,
                "transformation": row.transformation,
                "backtransformation": _given(row.backtransformation),
                "correlation": row.correlation,
            }
            yield {**words, "MSE": False}
            for kind in row.mse_types:
                yield {**words, "MSE": True, "mse_type": kind}


def legal_combinations() -> pd.DataFrame:
    """What emdi::fh allows together, a row for each combination.

    Columns: method, transformation, backtransformation (None where there is nothing to transform
    back), correlation, MSE, mse_type (None without MSE).
    """
    names = ("method", "transformation", "backtransformation", "correlation", "MSE", "mse_type")
    rows = [[one.get(name) for name in names] for one in combinations()]
    return pd.DataFrame(rows, columns=list(names), dtype=object)


def _given(backtransformation: str) -> str | None:
    return None if backtransformation == "no" else backtransformation


def check_combination(
    *,
    method: str,
    transformation: str,
    backtransformation: str | None,
    correlation: str,
    mse_type: str | None,
) -> Legal:
    """The row of the table, or an InputError that names what is legal beside the rest.

    Parameters
    ----------
    method, transformation, backtransformation, correlation : str
        As in emdi::fh; without a transformation ``backtransformation`` is ignored, as there.
    mse_type : str or None
        None where no mean squared error is asked for.
    """
    back = "no" if transformation == "no" else backtransformation or "none"
    asked = {
        "correlation": correlation,
        "transformation": transformation,
        "backtransformation": back,
        "method": method,
    }
    rows = list(LEGAL)
    for field, value in asked.items():
        left = [row for row in rows if value in _words(row, field)]
        if not left:
            raise _illegal(field, value, rows, asked)
        rows = left
    if mse_type is not None and mse_type not in rows[0].mse_types:
        raise _illegal("mse_type", mse_type, rows, asked)
    return rows[0]


def _words(row: Legal, field: str) -> tuple[str, ...]:
    if field == "method":
        return row.methods
    if field == "mse_type":
        return row.mse_types
    return (getattr(row, field),)


def _illegal(field: str, value: str, rows: list[Legal], asked: dict[str, str]) -> InputError:
    legal = dict.fromkeys(word for row in rows for word in _words(row, field))
    beside = ", ".join(f"{name}={word!r}" for name, word in _before(field, asked))
    elsewhere = [row for row in LEGAL if value in _words(row, field)]
    hint = None
    if elsewhere:
        places = dict.fromkeys(_place(row) for row in elsewhere)
        hint = f"It goes with {'; '.join(places)}."
    return InputError(
        f"emdi has no {field} {value!r} beside {beside}" if beside else f"emdi has no {value!r}",
        code="illegal_combination",
        field=field,
        expected=" | ".join(legal),
        got=value,
        hint=hint,
    )


def _before(field: str, asked: dict[str, str]) -> Iterator[tuple[str, str]]:
    for name, word in asked.items():
        if name == field:
            return
        yield name, word


def _place(row: Legal) -> str:
    back = "" if row.backtransformation == "no" else f" with {row.backtransformation!r}"
    return (
        f"correlation {row.correlation!r}, transformation {row.transformation!r}{back}, "
        f"method {', '.join(row.methods)}"
    )
