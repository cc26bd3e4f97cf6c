"""sae::eblupBHF and pbmseBHF: domain means from the nested-error model of units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import key_column, need_columns, need_frame
from pybridge._options import choose, whole_number
from pybridge.engines import _engine_request as requests
from pybridge.engines._r_formula import FUNCTIONS, RFormula, read_formula
from pybridge.engines._sae_input import (
    checked_design,
    column_values,
    refuse_formula,
    refuse_missing,
)
from pybridge.engines._engine_request import EngineRequest
from pybridge.engines._sae_unit_guard import (
    are_numbers,
    beside_the_optimum,
    check_units,
    selected_domains,
    with_numbers,
)
from pybridge.engines._sae_unit_record import SaeUnitFit
from pybridge.engines._engine_units import (
    digest,
    domain_table,
    positional,
    sizes,
    text_labels,
    two_columns,
    unit_columns,
    unit_numbers,
)
from pybridge.provenance import provenance
from pybridge.r import Reply

_COMMON = ("mode", "level", "seed", "time_limit")


def eblupBHF(
    data: pd.DataFrame,
    formula: str,
    dom: str,
    meanxpop: pd.DataFrame,
    popnsize: pd.DataFrame,
    *,
    selectdom: Sequence[Any] | None = None,
    method: str = "REML",
    level: float = 0.95,
    mode: str = "guarded",
    time_limit: float | None = None,
) -> SaeUnitFit:
    """Domain means by the nested-error model of Battese, Harter and Fuller: sae::eblupBHF.

    Parameters
    ----------
    data : pandas.DataFrame
        One row a unit of the sample.
    formula : str
        In R's words.
    dom : str
        The column of domains.
    meanxpop : pandas.DataFrame
        Population means of the covariates, a row a domain: a column of domains (named as ``dom``,
        else the first), and a column for each term of the model under the term's name. In raw
        mode sae takes the columns by position.
    popnsize : pandas.DataFrame
        Two columns: domains and their numbers of units.
    selectdom : sequence, optional
        Domains wanted, in this order; those without units get the synthetic prediction. By
        default those of the sample, as they first appear.
    method : {"REML", "ML"}
    level, mode, time_limit
        As in `eblupFH`.

    References
    ----------
    Battese, Harter and Fuller (1988), JASA 83, 28.
    """
    return _fit("eblupBHF", locals())


def pbmseBHF(
    data: pd.DataFrame,
    formula: str,
    dom: str,
    meanxpop: pd.DataFrame,
    popnsize: pd.DataFrame,
    *,
    selectdom: Sequence[Any] | None = None,
    B: int = 200,
    method: str = "REML",
    level: float = 0.95,
    mode: str = "guarded",
    seed: int | None = None,
    time_limit: float | None = None,
) -> SaeUnitFit:
    """As `eblupBHF`, with MSEs by parametric bootstrap: sae::pbmseBHF.

    B replicates, a seed (a fresh one, kept in the record, where none is given), and a time limit of
    600 s where none is given.

    References
    ----------
    González-Manteiga, Lombardía, Molina, Morales and Santamaría (2008), Journal of Statistical
    Computation and Simulation 78, 443.
    """
    return _fit("pbmseBHF", locals())


def _fit(function: str, given: Mapping[str, Any]) -> SaeUnitFit:
    data = need_frame("data", given["data"])
    need_columns(data, [given["dom"]], field="dom")
    arguments = {"formula": given["formula"], "dom": given["dom"]}
    arguments.update(meanxpop="meanxpop", popnsize="popnsize")
    if given["selectdom"] is not None:
        arguments["selectdom"] = "selectdom"
    if "B" in given:
        arguments["B"] = whole_number("B", given["B"], least=1)
    arguments["method"] = choose("method", given["method"], ("REML", "ML"))
    common: dict[str, Any] = {name: given.get(name) for name in _COMMON}
    asked = requests.request(function, arguments, **common, random="B" in arguments)
    read = read_formula(given["formula"], data, also=(given["dom"],))
    shim = f"sae_unit_{function}"
    if asked.raw:
        sent = unit_columns(data, read.names, integers=True)
        inputs = _inputs(given, read, asked) | {
            "meanxpop": positional(given["meanxpop"], "meanxpop"),
            "popnsize": positional(given["popnsize"], "popnsize"),
            "selectdom": _rawselected_domains(given["selectdom"]),
        }
        reply = requests.ask(shim, {**inputs, "data": sent}, asked)
        return _record(given, read, asked, shim, inputs, sent, reply)
    return _guarded(given, data, read, asked, shim)


def _inputs(given: Mapping[str, Any], read: RFormula, asked: EngineRequest) -> dict[str, Any]:
    names = ("B", "method")
    return {
        "formula": read.code,
        "functions": list(FUNCTIONS),
        "dom": read.names[given["dom"]],
        "options": {name: asked.arguments[name] for name in names if name in asked.arguments},
        "seed": asked.seed,
    }


def _rawselected_domains(selected: Sequence[Any] | None) -> Any:
    return None if selected is None else column_values(pd.Series(selected), integers=True)


def _guarded(
    given: Mapping[str, Any], data: pd.DataFrame, read: RFormula, asked: EngineRequest, shim: str
) -> SaeUnitFit:
    refuse_formula(read)
    unit_numbers(data, str(read.outcome), field="formula")
    labels = key_column(data, given["dom"], field="dom")
    refuse_missing(data, read, np.asarray(data.index, dtype=object))
    as_text = () if are_numbers(labels) else (given["dom"],)
    sent = unit_columns(data, read.names, as_text, integers=True)
    inputs = _inputs(given, read, asked)
    x, terms = checked_design(
        requests.ask("sae_design", {**inputs, "data": sent}, asked, may_fail=True), read
    )
    text = text_labels(labels)
    first = {str(label): label for label in labels.unique()}
    check_units(x, terms, n_domains=len(first))
    wanted = [term for term in terms if term != "(Intercept)"]
    means = domain_table(given["meanxpop"], key=given["dom"], field="meanxpop", columns=wanted)
    population = two_columns(given["popnsize"], key=given["dom"], field="popnsize")
    counts = pd.Series(text).value_counts().to_dict()
    size = sizes(population, counts=counts, field="popnsize")
    selected = selected_domains(given["selectdom"], first, means, population)
    tables = {
        "meanxpop": means.for_r("domain"),
        "popnsize": population.for_r("domain"),
        "selectdom": text_labels(selected),
    }
    numbered = None if as_text else with_numbers(tables, like=sent[inputs["dom"]])
    if numbered is None:
        as_text = (given["dom"],)
        sent = unit_columns(data, read.names, as_text, integers=True)
    inputs.update(numbered or tables, coded=numbered is None)
    reply = requests.ask(shim, {**inputs, "data": sent}, asked, may_fail=True)
    codes = pd.factorize(pd.Series(text))[0]
    y = np.asarray(sent[read.names[str(read.outcome)]], dtype=np.float64)
    exact, status, notes = beside_the_optimum(reply, y, x, codes, asked)
    known = dict(zip(population.text, size))
    return _record(
        given,
        read,
        asked,
        shim,
        inputs,
        sent,
        reply,
        as_text=as_text,
        domains=selected,
        size=np.array([known[str(label)] for label in selected]),
        counts=counts,
        exact=exact,
        status=status,
        notes=notes,
    )


def _record(
    given: Mapping[str, Any],
    read: RFormula,
    asked: EngineRequest,
    shim: str,
    inputs: Mapping[str, Any],
    sent: Mapping[str, Any],
    reply: Reply,
    *,
    as_text: tuple[str, ...] = (),
    domains: np.ndarray | None = None,
    size: np.ndarray | None = None,
    counts: Mapping[str, int] | None = None,
    exact: Mapping[str, Any] | None = None,
    status: str | None = None,
    notes: Sequence[str] = (),
) -> SaeUnitFit:
    """The record; domains and counts are R's own where they are not given (raw)."""
    requests.hand_on(reply)
    value = dict(reply.value)
    if "terms" in value:
        value["terms"] = [read.label(term) for term in value["terms"]]
    if domains is None:
        domains = _labels(value.get("domain", ()))
        size = np.full(len(domains), np.nan)
    empty = np.full(len(domains), np.nan)
    counted = value.get("sampsize")
    if counted is None:
        counted = [float((counts or {}).get(str(label), 0)) for label in domains]
    engine_status = "error"
    if reply.error is None:
        engine_status = "converged" if value["convergence"][0] else "not_converged"
    if status is None:
        done = {"error": "failed", "not_converged": "not_converged"}
        variance = float(value["refvar"][0]) if "refvar" in value else np.nan
        status = done.get(engine_status, "boundary" if variance == 0 else "converged")
    return SaeUnitFit(
        request=asked,
        shim=shim,
        inputs=inputs,
        value=value,
        status=status,
        engine_status=engine_status,
        conditions=(*requests.said(reply), *notes),
        provenance=provenance(
            "sae",
            f"{asked.function} {asked.arguments['method']}",
            options={**asked.arguments, "mode": asked.mode, "level": asked.level},
            seed=asked.seed,
            versions=reply.versions,
        ),
        columns=read.names,
        as_text=as_text,
        units=digest(sent),
        domains=domains,
        n_labelled=requests.numbers(counted),
        size=empty if size is None else size,
        estimate=requests.numbers(value.get("eblup", empty)),
        mse=requests.numbers(value.get("mse", empty)),
        exact=exact or {},
    )


def _labels(values: Any) -> np.ndarray:
    """R's own domains, as labels: whole numbers as such."""
    items = list(np.asarray(values, dtype=object))
    found = np.empty(len(items), dtype=object)
    found[:] = [int(v) if isinstance(v, float) and v.is_integer() else v for v in items]
    return found
