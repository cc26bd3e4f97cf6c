"""Arguments of ismev's fits: covariates, links and starts, in the user's words and in R's units."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import collinear_columns, number_vector, numeric_column
from pybridge._options import real_number, whole_number
from pybridge._record import Record
from pybridge.engines._tail_likelihood import LINKS
from pybridge.engines._tail_request import search_method
from pybridge.errors import InputError

# What gpd.fit hands on to optim's control list.
CONTROLS = (
    *("reltol", "abstol", "parscale", "ndeps", "fnscale", "trace", "REPORT", "alpha", "beta"),
    *("gamma", "type", "lmm", "factr", "pgtol", "temp", "tmax"),
)


@dataclass(frozen=True, eq=False, repr=False)
class Block(Record):
    """The linear predictor of one parameter.

    Attributes
    ----------
    name : str
        ``mu``, ``sig`` or ``sh``.
    columns : tuple of int
        ismev's numbers of the covariates, from 1.
    labels : tuple of str
        Their names.
    link : str
        ``identity``, ``exp``, or the text of an R function.
    centre, spread : numpy.ndarray
        (p,), what a guarded fit subtracts from the covariates and divides them by.
    """

    name: str
    columns: tuple[int, ...]
    labels: tuple[str, ...]
    link: str
    centre: np.ndarray
    spread: np.ndarray

    @property
    def size(self) -> int:
        """Coefficients, the intercept among them."""
        return 1 + len(self.columns)

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of the coefficients."""
        word = {"mu": "location", "sig": "scale", "sh": "shape"}[self.name]
        return (word, *(f"{word}:{label}" for label in self.labels))

    def unit_of(self, unit: float) -> float:
        """What its coefficients are divided by; a link of the user's has R divide its value."""
        return unit if self.name != "sh" and self.link == "identity" else 1.0

    def shift_of(self, unit: float) -> float:
        """What its intercept is less: with the link exp, a unit is a shift."""
        return math.log(unit) if self.name != "sh" and self.link == "exp" else 0.0

    def back(self, unit: float) -> tuple[np.ndarray, np.ndarray]:
        """A (p, p) and c (p,): the user's coefficients are A times R's plus c."""
        by = np.eye(self.size)
        by[0, 1:] = -self.centre / self.spread
        by[range(1, self.size), range(1, self.size)] = 1.0 / self.spread
        moved = np.zeros(self.size)
        moved[0] = self.shift_of(unit)
        return by * self.unit_of(unit), moved

    def to_r(self, coefficients: np.ndarray, unit: float) -> np.ndarray:
        """The user's coefficients in R's units."""
        by, moved = self.back(unit)
        return np.linalg.solve(by, coefficients - moved)

    def design(self, covariates: np.ndarray | None, rows: np.ndarray) -> np.ndarray:
        """(k, p): the intercept, and the covariates as R gets them, in some rows."""
        ones = np.ones((int(rows.sum()), 1))
        if covariates is None or not self.columns:
            return ones
        return np.column_stack([ones, covariates[rows][:, [c - 1 for c in self.columns]]])


def covariate_table(ydat: Any, n: int) -> tuple[np.ndarray | None, list[str]]:
    """The covariates (n, k), and their names."""
    if ydat is None:
        return None, []
    if isinstance(ydat, pd.DataFrame):
        names = [str(name) for name in ydat.columns]
        columns = [numeric_column(ydat, name, field="ydat") for name in ydat.columns]
        table = np.column_stack(columns) if columns else np.empty((n, 0))
    else:
        table = np.asarray(ydat)
        if table.ndim == 1:
            table = table[:, np.newaxis]
        if table.ndim != 2 or table.dtype.kind not in "fiub":
            raise InputError(
                "ydat must be a table of numbers",
                code="not_a_table",
                field="ydat",
                expected="a DataFrame, or an array with a row for each score",
                got=f"shape {table.shape}, dtype {table.dtype}",
            )
        table = np.column_stack(
            [number_vector(f"ydat column {k + 1}", column) for k, column in enumerate(table.T)]
        )
        names = [f"y{k + 1}" for k in range(table.shape[1])]
    if len(table) != n:
        raise InputError(
            "ydat must have a row for each score",
            code="wrong_length",
            field="ydat",
            expected=f"{n} rows",
            got=len(table),
        )
    return table, names


def block(
    name: str,
    chosen: Any,
    link: Any,
    *,
    table: np.ndarray | None,
    names: Sequence[str],
    rows: np.ndarray | None,
) -> Block:
    """One parameter's predictor.

    Parameters
    ----------
    chosen : names of covariates, or ismev's numbers from 1; one or several
    link : "identity", "exp", or the text of an R function
    rows : (n,) bool, the exceedances; None in raw mode, where covariates stay as they are
    """
    columns = _columns(f"{name}l", chosen, names)
    field = f"{name}link"
    if not isinstance(link, str) or not (link in LINKS or "function" in link):
        raise InputError(
            f"{field} must be identity, exp, or an R function as text",
            code="bad_link",
            field=field,
            expected="'identity', 'exp', or for example 'function(x) 1 / (1 + exp(-x))'",
            got=link,
        )
    centre, spread = np.zeros(len(columns)), np.ones(len(columns))
    if rows is not None and columns and table is not None:
        seen = table[rows][:, [c - 1 for c in columns]]
        labels = [names[c - 1] for c in columns]
        whole = np.column_stack([np.ones(len(seen)), seen])
        collinear_columns(whole, names=["the intercept", *labels], field=f"{name}l")
        centre = seen.mean(axis=0)
        spread = 2.0 ** np.round(np.log2(seen.std(axis=0)))
    return Block(name, columns, tuple(names[c - 1] for c in columns), link, centre, spread)


def _columns(field: str, chosen: Any, names: Sequence[str]) -> tuple[int, ...]:
    if chosen is None:
        return ()
    items: list[Any] = [chosen] if np.ndim(chosen) == 0 else list(chosen)
    found = []
    for item in items:
        if isinstance(item, str):
            if item not in names:
                raise InputError(
                    f"there is no covariate {item!r}",
                    code="missing_column",
                    field=field,
                    expected=f"among {', '.join(names) or 'the columns of ydat'}",
                    got=item,
                )
            found.append(names.index(item) + 1)
        else:
            if not names:
                raise InputError(
                    f"{field} names covariates, and there is no ydat",
                    code="no_covariates",
                    field=field,
                    expected="ydat, a table of covariates",
                    got=None,
                )
            found.append(whole_number(field, item, least=1, most=len(names)))
    if len(set(found)) != len(found):
        raise InputError(
            f"{field} names a covariate twice",
            code="duplicate_name",
            field=field,
            expected="each covariate once",
            got=items,
        )
    return tuple(found)


def start(name: str, value: Any, block: Block) -> np.ndarray | None:
    """A start in the user's coefficients."""
    if value is None:
        return None
    found = number_vector(name, np.atleast_1d(np.asarray(value)))
    if found.size != block.size:
        raise InputError(
            f"{name} must have a number for each coefficient",
            code="wrong_length",
            field=name,
            expected=f"{block.size} numbers: {', '.join(block.terms)}",
            got=found.size,
        )
    return found


def search(method: Any, maxit: Any, control: Mapping[str, Any], *, mode: str) -> dict[str, Any]:
    """method, maxit, and what goes to optim's control."""
    found: dict[str, Any] = {
        "method": search_method(method, mode=mode),
        "maxit": whole_number("maxit", maxit, least=1),
    }
    for name, value in control.items():
        if name not in CONTROLS:
            raise InputError(
                f"ismev and optim know no option {name}",
                code="unknown_option",
                field=name,
                expected=", ".join(CONTROLS),
                got=name,
            )
        many = isinstance(value, (list, tuple, np.ndarray))
        found[name] = number_vector(name, value) if many else real_number(name, value)
    return found


def threshold_of(value: Any, n: int) -> float | np.ndarray:
    """One threshold, or one for each score."""
    if np.ndim(value) == 0:
        return real_number("threshold", value)
    found = number_vector("threshold", value)
    if found.size != n:
        raise InputError(
            "threshold must be one number, or one for each score",
            code="wrong_length",
            field="threshold",
            expected=f"1 or {n} numbers",
            got=found.size,
        )
    return found
