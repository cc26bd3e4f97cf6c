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
from pybridge.engines._survey_design import SvyDesign, design_request
from pybridge.engines._survey_record import SurveyEstimates
from pybridge.engines._survey_units import check_variables, units_for_r
from pybridge.errors import InputError
from pybridge.provenance import provenance
from pybridge.r import Reply

_SHIM = "survey_estimate"
_WORDS = ("FUN", "family", "link", "variance")
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
    by, statistic = _margins(design, value, users, k)
    # The groups come again for every variable.
    n_units = np.full(k, float(value["n"][0]))
    if "n_units" in value:
        counts = np.asarray(value["n_units"])
        times = k // len(counts)
        n_units = np.repeat(counts, times) if "separate" in value else np.tile(counts, times)
    status = np.full(k, "ok", dtype=object)
    error, covariance = requests.numbers(value["standard_error"]), np.array(value["covariance"])
    nothing = np.full(k, np.nan)
    ends = [requests.numbers(value.get(name, nothing)) for name in ("lower", "upper")]
    single = (n_units == 1) & bool(by)
    status[single] = "single_unit"
    if design.mode == "guarded" and single.any() and inputs["call"].get("FUN") != "svytotal":
        error, *ends = (np.where(single, np.nan, column) for column in (error, *ends))
    return SurveyEstimates(
        request=asked,
        shim=_SHIM,
        inputs=inputs,
        value=value,
        status="converged",
        engine_status="converged",
        conditions=(*requests.said(reply), *_aliased(value, names)),
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
        estimate=requests.numbers(value["estimate"]),
        standard_error=error,
        lower=ends[0],
        upper=ends[1],
        covariance=covariance,
        design_effect=requests.numbers(value.get("deff", nothing)),
        n_units=n_units,
        degrees_of_freedom=float(value["degrees"][0]),
        domain_status=status,
        variation={name: requests.numbers(x) for name, x in value.get("variation", {}).items()},
        influence=_matrix(value.get("influence")),
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
    design: SvyDesign, value: Mapping[str, Any], users: Mapping[str, str], k: int
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Labels of svyby's groups as the user has them, and which variable each number is of."""
    if "separate" in value:
        return _strata(design, value, users)
    if "by" not in value:
        return {}, _labelled(value["names"], {column: name for name, column in users.items()})
    found = {}
    for name, labels in value["by"].items():
        column = users.get(name, name)
        found[column] = np.tile(_own_labels(design, column, labels), k // len(labels))
    variables = _labelled(value["statistics"], {column: name for name, column in users.items()})
    return found, np.repeat(variables, k // len(variables))


def _strata(
    design: SvyDesign, value: Mapping[str, Any], users: Mapping[str, str]
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Of separate ratios: the stratum and the ratio of each number, stratum by stratum."""
    (column,) = read_one_sided(design.formulas["strata"], design.frame, field="strata").columns[:1]
    labels = _own_labels(design, column, value["strata"])
    ratios = _labelled(value["statistics"], {user: name for name, user in users.items()})
    return {column: np.repeat(labels, len(ratios))}, np.tile(ratios, len(labels))


def _own_labels(design: SvyDesign, column: str, labels: Sequence[Any]) -> np.ndarray:
    """R's labels of groups as the user has them in this column."""
    own = {}
    if column in design.frame.columns:
        own = {_as_r_writes(label): label for label in design.frame[column].dropna().unique()}
    return np.array([own.get(str(label), label) for label in labels], dtype=object)


def _as_r_writes(label: Any) -> str:
    """A label as R's as.character() has it: whole numbers without a decimal point."""
    if isinstance(label, (float, np.floating)) and float(label).is_integer():
        return str(int(label))
    if isinstance(label, (bool, np.bool_)):
        return str(bool(label)).upper()
    return str(label)
