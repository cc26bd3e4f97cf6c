"""A call of R's survey, and R's numbers in the record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pybridge._checks import listed
from pybridge.engines import _engine_request as requests
from pybridge.engines._r_formula import RFormula, read_formula, read_one_sided
from pybridge.engines._engine_request import EngineRequest
from pybridge.engines._engine_units import digest
from pybridge.engines._sae_input import own_labels
from pybridge.engines._survey_design import SvyDesign, design_request
from pybridge.engines._survey_record import SurveyEstimates
from pybridge.engines._survey_units import check_variables, refuse_overflow, units_for_r
from pybridge.errors import InputError
from pybridge.provenance import provenance
from pybridge.r import Reply

_SHIM = "survey_estimate"
_WORDS = ("FUN", "family", "link", "variance")
# Of a linear predictor in one more step of glm: separated it is about 1, converged about 0.
_DRIFT = 0.05
# Options of every call, which say little in a summary.
_ALWAYS = ("na.rm", "covmat", "drop.empty.groups")


def sent_units(design: SvyDesign, names: Mapping[str, str]) -> dict[str, Any]:
    return units_for_r(design.frame, names, guarded=design.mode == "guarded")


def without_names(sent: Mapping[str, Any]) -> dict[str, Any]:
    return {name: item for name, item in sent.items() if name != "names"}


def estimated(
    design: SvyDesign,
    call: Mapping[str, Any],
    *,
    level: float,
    time_limit: float | None,
) -> SurveyEstimates:
    """Ask R, and put its numbers into the record."""
    frame = design.frame
    two_sided = call["function"] == "svyglm"

    def read(name: str, text: str, names: Mapping[str, str] | None = None) -> RFormula:
        if two_sided:
            return read_formula(text, frame, names=names)
        return read_one_sided(text, frame, field=name, names=names)

    used = [c for name, text in call["formulas"].items() for c in read(name, text).columns]
    parts = call.get("expressions", {})
    for name, text in parts.items():
        used += read_one_sided(text, frame, field=name).columns
    sent = design.for_r(tuple(used))
    names = sent["names"]
    if design.mode == "guarded":
        check_variables(frame, dict.fromkeys(used), field="formula")
        if not call["options"].get("na.rm"):
            _refuse_gaps(design, used, call)
    formulas = {n: read(n, text, names).code for n, text in call["formulas"].items()}
    expressions = {
        name: read_one_sided(text, frame, field=name, names=names).code
        for name, text in parts.items()
    }
    options = dict(call["options"])
    if "contrasts" in options:
        options["contrasts"] = {names.get(k, k): v for k, v in options["contrasts"].items()}
    asked = design_request(
        design,
        call["function"],
        level=level,
        time_limit=time_limit,
        arguments={
            **call["formulas"],
            **{name: call[name] for name in _WORDS if call.get(name)},
            **parts,
            **{name: value for name, value in call["options"].items() if name not in _ALWAYS},
        },
    )
    inputs = {
        **without_names(sent),
        "call": {
            **call,
            "formulas": formulas,
            "expressions": expressions or None,
            "options": options,
        },
        "level": asked.level,
    }
    units = sent_units(design, names)
    reply = requests.ask(_SHIM, {**inputs, "data": units}, asked)
    refuse_overflow(reply, design)
    if "apart" in reply.value:
        _refuse_levels(_labelled(reply.value["apart"], names), call)
    return _record(design, asked, inputs, names, units, reply)


def _refuse_gaps(design: SvyDesign, columns: Sequence[str], call: Mapping[str, Any]) -> None:
    options = call["options"]
    glm = call["function"] == "svyglm"
    if glm and options.get("na.action") in ("na.omit", "na.exclude") and not call["expressions"]:
        return
    spared: tuple[str, ...] = ()
    if options.get("na.rm.by"):
        spared = read_one_sided(call["formulas"]["by"], design.frame, field="by").columns
    for column in columns:
        gaps = design.frame[column].isna().to_numpy()
        if gaps.any() and column not in spared:
            raise InputError(
                f"the column {column!r} is missing in {int(gaps.sum())} units",
                code="missing_values",
                field="formula",
                expected=f"a value in every row, or {'na_action' if glm else 'na_rm=True'}",
                got=f"rows {listed(np.flatnonzero(gaps))} (counted from 0)",
                hint="R's answer would be NA, or it would leave them out in silence.",
            )


def _refuse_levels(variables: np.ndarray, call: Mapping[str, Any]) -> None:
    raise InputError(
        f"the levels of {listed(variables)} are not the same in every group",
        code="levels_differ",
        field="formula",
        expected="categorical columns, whose levels are the same everywhere",
        got=call["formulas"]["formula"],
        hint="R's svyby makes them in each group anew, and puts all under the names of the first "
        "group, or into lists. Convert the column, for example by astype('category').",
    )


def _labelled(words: Sequence[str], names: Mapping[str, str]) -> np.ndarray:
    """R's names with the user's names of columns in them."""
    out = np.empty(len(words), dtype=object)
    for k, word in enumerate(words):
        for column, name in names.items():
            if name != column:
                word = word.replace(name, column)
        out[k] = word
    return out


def _record(
    design: SvyDesign,
    asked: EngineRequest,
    inputs: Mapping[str, Any],
    names: Mapping[str, str],
    units: Mapping[str, Any],
    reply: Reply,
) -> SurveyEstimates:
    requests.hand_on(reply, package="survey")
    value = reply.value
    k = len(value["estimate"])
    users = {name: column for column, name in names.items()}
    by, statistic = _margins(design, value, users, units, k)
    # The groups come again for every variable.
    n_units = np.full(k, float(value["n"][0]))
    if "n_units" in value:
        counts = np.asarray(value["n_units"])
        times = k // len(counts)
        n_units = np.repeat(counts, times) if "separate" in value else np.tile(counts, times)
    nothing = np.full(k, np.nan)
    numbers = {
        "estimate": requests.numbers(value["estimate"]),
        "standard_error": requests.numbers(value["standard_error"]),
        **{name: requests.numbers(value.get(name, nothing)) for name in ("lower", "upper")},
        "covariance": np.array(value["covariance"]),
    }
    domain_status = _domain_status(design, inputs["call"], bool(by), n_units, numbers)
    status, engine_status, notes = _how_it_ended(value, guarded=design.mode == "guarded")
    return SurveyEstimates(
        request=asked,
        shim=_SHIM,
        inputs=inputs,
        value=value,
        status=status,
        engine_status=engine_status,
        conditions=(*requests.said(reply), *_aliased(value, names), *notes),
        provenance=provenance(
            "survey",
            asked.function,
            options={**asked.arguments, "mode": asked.mode, "level": asked.level},
            versions=reply.versions,
        ),
        columns=dict(names),
        as_text=(),
        units=digest(units),
        names=_labelled(value["names"], names),
        by=by,
        statistic=statistic,
        **numbers,
        design_effect=requests.numbers(value.get("deff", nothing)),
        n_units=n_units,
        degrees_of_freedom=float(value["degrees"][0]),
        domain_status=domain_status,
        variation={name: requests.numbers(x) for name, x in value.get("variation", {}).items()},
        influence=_matrix(value.get("influence")),
    )


def _domain_status(
    design: SvyDesign,
    call: Mapping[str, Any],
    by: bool,
    n_units: np.ndarray,
    numbers: dict[str, np.ndarray],
) -> np.ndarray:
    """A word for each estimate; guarded, ``numbers`` loses those that nothing stands behind.

    R has the estimate 0 where no unit has a known value, and the standard error 0 where one has.
    """
    guarded = design.mode == "guarded"
    status = np.full(len(n_units), "ok", dtype=object)
    single, none = (n_units == 1) & (by or guarded), (n_units == 0) & guarded
    status[single], status[none] = "single_unit", "out_of_sample"
    total = "svytotal" in (call["function"], call.get("FUN"))  # one unit's total has an error
    gone = none | (single & guarded & (not total))
    for name in ("standard_error", "lower", "upper"):
        numbers[name] = np.where(gone, np.nan, numbers[name])
    if none.any():
        numbers["estimate"] = np.where(none, np.nan, numbers["estimate"])
        numbers["covariance"][none, :] = np.nan
        numbers["covariance"][:, none] = np.nan
    return status


def _how_it_ended(value: Mapping[str, Any], *, guarded: bool) -> tuple[str, str, list[str]]:
    """Status, R's own verdict, and what to say of them; all but svyglm have no search."""
    notes = []
    if value["without_covmat"][0] and not value["by_scores"][0]:
        notes.append(
            "the variances stand alone: R's svyby stops where it is to give the covariances of "
            "these ratios"
        )
    ungrouped = int(value["ungrouped"][0]) if "ungrouped" in value else 0
    if ungrouped:
        notes.append(f"{ungrouped} units are in no group of by: R leaves them out")
    if "converged" not in value:
        return "converged", "converged", notes
    status = engine_status = "converged"
    if value["boundary"][0]:
        status = "boundary"
        notes.append("R's glm stopped at the boundary of what the link allows")
    apart = _separated(value) if guarded else None
    if not value["converged"][0]:
        status = engine_status = "not_converged"
        notes.append("R's glm did not converge: more iterations (maxit), or another start")
    if apart:
        status = "not_converged"
        notes.append(apart)
    if value["fit_degrees"][0] <= 0:
        what = "the fit is saturated, a coefficient for each unit: its standard errors say nothing"
    elif value["degrees"][0] <= 0:
        what = "no residual degrees of freedom in this design: there are no intervals"
    else:
        return status, engine_status, notes
    if guarded and status == "converged":
        status = "weak_identification"
    return status, engine_status, [*notes, what]


def _separated(value: Mapping[str, Any]) -> str | None:
    """What there is to say of an outcome that the terms separate, R's verdict notwithstanding.

    That the search would move on says so only where R takes it to be at its end.
    """
    if "drift" not in value:
        return None
    extreme, drift = int(value["extreme"][0]), float(value["drift"][0])
    if not extreme and not (value["converged"][0] and drift > _DRIFT):
        return None
    found = f"{extreme} fitted values are 0 or 1 to the last digits"
    if not extreme:
        found = f"one more step would move a linear predictor by {drift:.2g}"
    return (
        f"{found}: the terms seem to separate the outcome, some coefficients then have no finite "
        "value, and their estimates and standard errors say nothing"
    )


def _aliased(value: Mapping[str, Any], names: Mapping[str, str]) -> tuple[str, ...]:
    """svyglm leaves collinear terms out without a word."""
    left = list(value.get("aliased") or ())
    if not left:
        return ()
    return (f"collinear terms, which R leaves out: {listed(_labelled(left, names))}",)


def _matrix(values: Any) -> np.ndarray | None:
    return None if values is None else np.atleast_2d(requests.numbers(values))


def _margins(
    design: SvyDesign,
    value: Mapping[str, Any],
    users: Mapping[str, str],
    units: Mapping[str, Any],
    k: int,
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Labels of svyby's groups as the user has them, and which variable each number is of."""
    columns = {column: name for name, column in users.items()}
    if "separate" in value:
        return _strata(design, value, columns, units)
    if "by" not in value:
        return {}, _labelled(value["names"], columns)
    found = {}
    for name, labels in value["by"].items():
        # A column, or what R makes of one: cut(x, 3)
        column = users[name] if name in users else str(_labelled([name], columns)[0])
        values = design.frame[column] if name in users else None
        own = own_labels(values, units.get(name), labels)
        found[column] = np.tile(own, k // len(labels))
    variables = _labelled(value["statistics"], columns)
    return found, np.repeat(variables, k // len(variables))


def _strata(
    design: SvyDesign,
    value: Mapping[str, Any],
    columns: Mapping[str, str],
    units: Mapping[str, Any],
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Of separate ratios: the stratum and the ratio of each number, stratum by stratum."""
    (column,) = read_one_sided(design.formulas["strata"], design.frame, field="strata").columns[:1]
    labels = own_labels(design.frame[column], units.get(columns[column]), value["strata"])
    ratios = _labelled(value["statistics"], columns)
    return {column: np.repeat(labels, len(ratios))}, np.tile(ratios, len(labels))
