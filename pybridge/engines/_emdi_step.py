"""Stepwise choice of covariates by emdi::step."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import need_frame
from pybridge._options import choose, whole_number, yes_or_no
from pybridge._record import Record
from pybridge.engines._emdi_fit import fit as fit_request
from pybridge.engines._emdi_fit import inputs
from pybridge.engines._emdi_input import fh_request
from pybridge.engines._emdi_legal import BOOTSTRAP_CRITERIA, CRITERIA
from pybridge.engines._emdi_record import EmdiFit
from pybridge.engines._emdi_request import FhRequest
from pybridge.engines._emdi_units import time_limit
from pybridge.engines._r_formula import FUNCTIONS, read_formula, sides
from pybridge.errors import InputError
from pybridge.r import call

DIRECTIONS = ("both", "backward", "forward")
# Arguments of emdi::fh that name a column.
_ROLES = ("vardir", "domains", "eff_smpsize")


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class EmdiStep(Record):
    """The model that emdi::step ends at.

    Attributes
    ----------
    fit : EmdiFit
        That model, fitted like the one it started from.
    fixed : str
        Its formula.
    criteria : str
    start, end : float
        The criterion of the first and of the last model.
    path : tuple of str
        What R told and printed on the way, with ``trace=True``: guarded in the units of R's call,
        in which a criterion is another by the same number for every model.
    """

    fit: EmdiFit
    fixed: str
    criteria: str
    start: float
    end: float
    path: tuple[str, ...]

    def to_frame(self) -> pd.DataFrame:
        """The table of the last fit."""
        return self.fit.to_frame()

    def summary(self) -> str:
        """The choice, then the fit."""
        head = f"{self.criteria} from {self.start:.6g} to {self.end:.6g}: {self.fixed}"
        return "\n".join([head, *self.path, self.fit.summary()])


def step(
    object: EmdiFit,
    scope: str | Mapping[str, str] | None = None,
    criteria: str = "AIC",
    direction: str | None = None,
    trace: bool = True,
    steps: int = 1000,
    *,
    combined_data: pd.DataFrame | None = None,
) -> EmdiStep:
    """Add and drop covariates while a criterion falls, by emdi::step.

    Parameters
    ----------
    object : EmdiFit
        By method ``ml``; for AICc, AICb1, AICb2, KICc, KICb1 and KICb2 with B = (·, more than 1).
    scope : str or mapping, optional
        The largest formula, ``"~ x + z"``, or ``{"lower": ..., "upper": ...}``.
    criteria : str
    direction : {"both", "backward", "forward"}, optional
        R's default: "both", but "backward" without a scope.
    trace : bool
        Whether the path is kept.
    steps : int
    combined_data : pandas.DataFrame, optional
        The fit's own table again, where the scope names columns that its formula does not.

    Raises
    ------
    InputError
        Another method, criteria that the fit does not have, an unknown column.
    """
    start = getattr(getattr(object, "fit", None), "engine_fit", None) or object
    if not isinstance(start, EmdiFit):
        raise InputError(
            "step needs a fit by emdi",
            code="bad_object",
            field="object",
            expected="a fit by pybridge.engines.emdi.fh",
            got=type(object).__name__,
        )
    _check(start, criteria, direction)
    request = start.request
    formulas = _scope(scope, request)
    if combined_data is not None:
        request = _with_columns(request, formulas, combined_data)
    words: dict[str, Any] = {
        "criteria": criteria,
        "trace": yes_or_no("trace", trace),
        "steps": whole_number("steps", steps, least=1),
    }
    if formulas:
        words["scope"] = {name: _scope_code(text, request) for name, text in formulas.items()}
    if direction is not None:
        words["direction"] = direction
    asked = {**inputs(request), "step": words, "functions": list(FUNCTIONS)}
    reply = call(
        "emdi_step", asked, packages=("emdi",), what="emdi::step", time_limit=time_limit(request)
    )
    fixed = _user_words(str(reply.value["fixed"][0]), request)
    fit = fit_request(_again(request, fixed))
    lines = [line for text in reply.messages for line in text.splitlines()] + [*reply.printed]
    path = [_user_words(line, request) for line in lines if line.strip()]
    if request.unit != 1.0:
        path.insert(0, f"on the way {criteria} is that of estimates in units of {request.unit:g}")
    return EmdiStep(
        fit=fit,
        fixed=fixed,
        criteria=criteria,
        start=start.criteria[criteria],
        end=fit.criteria[criteria],
        path=tuple(path) if trace else (),
    )


def _check(fit: EmdiFit, criteria: str, direction: str | None) -> None:
    if fit.request.method != "ml":
        raise InputError(
            "models with different covariates are compared by method 'ml' only",
            code="illegal_combination",
            field="object",
            expected="a fit with method='ml'",
            got=fit.request.method,
        )
    choose("criteria", criteria, CRITERIA)
    if direction is not None:
        choose("direction", direction, DIRECTIONS)
    if criteria not in fit.criteria:
        more = criteria in BOOTSTRAP_CRITERIA
        raise InputError(
            f"the fit does not have {criteria}",
            code="missing_criterion",
            field="criteria",
            expected=" | ".join(name for name in CRITERIA if name in fit.criteria),
            got=criteria,
            hint="Fit with B=(50, 50): the second number is that of its replicates."
            if more
            else None,
        )


def _scope(scope: str | Mapping[str, str] | None, request: FhRequest) -> dict[str, str]:
    if scope is None:
        return {}
    given = {"upper": scope} if isinstance(scope, str) else dict(scope)
    whole = isinstance(scope, str) or set(given) == {"lower", "upper"}
    if not whole or not all(isinstance(t, str) and _has_terms(t) for t in given.values()):
        raise InputError(
            "scope must be a formula, or a lower and an upper one",
            code="bad_formula",
            field="scope",
            expected="'~ x + z', or {'lower': '~ 1', 'upper': '~ x + z'}",
            got=scope,
        )
    return {name: given[name] for name in ("lower", "upper") if name in given}


def _has_terms(text: str) -> bool:
    return "~" in text and sides(text)[1] != ""


def _with_columns(
    request: FhRequest, formulas: Mapping[str, str], table: pd.DataFrame
) -> FhRequest:
    """The request with the columns of the scope too, from the same table."""
    outcome = request.labels[request.outcome]
    need_frame("combined_data", table)
    domains = request.labels.get(request.arguments["domains"], "")
    source = domains.rpartition(".label")[0]
    if domains not in table.columns and source in table.columns:  # a covariate too: fh copied it
        table = table.assign(**{domains: table[source]})
    union = " + ".join(sides(text)[1] for text in (request.fixed, *formulas.values()))
    wide = _request(request, f"{_quoted(outcome)} ~ {union}", table)
    same = np.array_equal(wide.estimate, request.estimate, equal_nan=True)
    if not same or list(wide.domains) != list(request.domains):
        raise InputError(
            "combined_data is not the table of the fit",
            code="other_table",
            field="combined_data",
            expected="the same domains with the same direct estimates in the same order",
            got="other rows",
        )
    # Names that columns got for R are those of the wider table from here on.
    roles = {name: wide.arguments[name] for name in _ROLES}
    return dataclasses.replace(
        request,
        columns=wide.columns,
        labels=wide.labels,
        outcome=wide.outcome,
        arguments={**request.arguments, **roles},
        code=_code(request.fixed, wide),
    )


def _request(request: FhRequest, fixed: str, table: pd.DataFrame) -> FhRequest:
    """A request like this one for another formula."""
    arguments = dict(request.arguments)
    columns = {name: arguments.pop(name) for name in _ROLES}
    names = {
        name: None if column is None else request.labels[column] for name, column in columns.items()
    }
    matrix: Any = request.proximity
    if matrix is not None and request.guarded:
        kept = request.domains[request.sampled]
        matrix = pd.DataFrame(matrix, index=kept, columns=kept)
    return fh_request(
        fixed,
        str(names["vardir"]),
        table,
        names["domains"],
        eff_smpsize=names["eff_smpsize"],
        cor_matrix=matrix,
        errors=request.errors,
        arguments=arguments,
        settings={
            "mode": request.mode,
            "level": request.level,
            "time_limit": request.time_limit,
        },
    )


def _again(request: FhRequest, fixed: str) -> FhRequest:
    """The request for the chosen formula, on the columns that are there."""
    return _request(request, fixed, _table(request))


def _table(request: FhRequest) -> pd.DataFrame:
    """The request's columns as the user's table."""
    table: dict[str, Any] = {}
    for name, column in request.columns.items():
        if isinstance(column, Mapping):
            codes = np.asarray(column["codes"]).astype(int)
            values: Any = pd.Categorical.from_codes(codes, categories=list(column["levels"]))
        else:
            values = np.array(column)
        table[request.labels[name]] = values
    if request.arguments["domains"] is not None:
        table[request.labels[request.arguments["domains"]]] = np.array(request.domains)
    return pd.DataFrame(table)


def _code(text: str, request: FhRequest) -> str:
    """A formula under R's names of the columns."""
    outcome = request.labels[request.outcome]
    left, right = sides(text)
    sided = f"{left or _quoted(outcome)} ~ {right}"
    table = pd.DataFrame({column: [0.0] for column in request.labels.values()})
    names = {column: name for name, column in request.labels.items()}
    code = read_formula(sided, table, names=names).code
    return code if left else f"~ {sides(code)[1]}"


def _scope_code(text: str, request: FhRequest) -> str:
    try:
        return _code(text, request)
    except InputError as error:
        facts = {**error.facts(), "field": "scope"}
        if error.code == "missing_column":
            facts[
                "hint"
            ] = "combined_data=, the fit's own table, for columns that its formula does not name."
        raise InputError(error.message, **facts) from None


def _quoted(column: str) -> str:
    return f"`{column}`"


def _user_words(code: str, request: FhRequest) -> str:
    """R's words with the user's names of columns."""
    for name, column in request.labels.items():
        if name != column:
            code = code.replace(f"`{name}`", f"`{column}`").replace(name, f"`{column}`")
    return code
