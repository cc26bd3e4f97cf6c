"""sae::direct and pssynt: design-based estimates of domain means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import key_column, listed
from pybridge._options import yes_or_no
from pybridge.engines import _engine_request as requests
from pybridge.engines._sae_direct_record import SaeDomainEstimates, domain_estimates, unit_facts
from pybridge.engines._engine_request import EngineRequest
from pybridge.engines._engine_units import (
    DomainTable,
    domain_table,
    need_domains,
    check_weights,
    positional,
    sizes,
    two_columns,
    unit_columns,
    unit_numbers,
    used_columns,
)
from pybridge.errors import InputError

# Which estimator sae::direct is, by what it is given. emdi's function of the same name is another
# one, the weighted mean: they are not to be compared with each other.
HORVITZ_THOMPSON = "Horvitz-Thompson mean with known domain size, sum(w y)/N, without replacement"
_ESTIMATORS = {
    # (weights, sizes, replacement)
    (True, True, False): HORVITZ_THOMPSON,
    (False, True, False): "sample mean, simple random sampling without replacement in each domain",
    (
        True,
        True,
        True,
    ): "Horvitz-Thompson mean with known domain size, sum(w y)/N, with replacement",
    (False, False, True): "sample mean, simple random sampling with replacement in each domain",
    (False, True, True): "sample mean, simple random sampling with replacement in each domain",
}
_COMMON = ("mode", "level", "time_limit")


def direct(
    data: pd.DataFrame,
    y: str,
    dom: str,
    sweight: str | None = None,
    domsize: pd.DataFrame | None = None,
    *,
    replace: bool = False,
    level: float = 0.95,
    mode: str = "guarded",
    time_limit: float | None = None,
) -> SaeDomainEstimates:
    """Direct estimates of domain means by sae::direct.

    Parameters
    ----------
    data : pandas.DataFrame
        One row a unit of the sample.
    y, dom : str
        Columns of the outcome and the domain.
    sweight : str, optional
        Column of sampling weights.
    domsize : pandas.DataFrame, optional
        Two columns, domains and their numbers of units; domains without units in the sample may
        be among them. Only sampling with replacement does without it, and without weights.
    replace : bool
    level : float
        Confidence level.
    mode : {"guarded", "raw"}
        Raw: labels go as they are, rows come in R's order (sae loses the labels of a categorical
        where a domain has no units). Guarded: labels are matched as text and come back unchanged,
        rows in the order of ``domsize``, else of first appearance.
    time_limit : float, optional

    Returns
    -------
    SaeDomainEstimates
        ``estimator`` says which estimator it is: with weights the Horvitz-Thompson mean with the
        known size, not the weighted mean.

    References
    ----------
    Särndal, Swensson and Wretman (1992), Model Assisted Survey Sampling, ch. 2, 3.
    """
    asked = direct_request("direct", locals(), {"replace": yes_or_no("replace", replace)})
    data, names = used_columns(
        data, {"y": y, "dom": dom, "sweight": sweight}, optional=("sweight",)
    )
    estimator = _estimator(sweight, domsize, replace)
    inputs = direct_inputs(names, {"y": y, "dom": dom, "sweight": sweight}, {"replace": replace})
    if asked.raw:
        if domsize is not None:
            inputs["domsize"] = positional(domsize, "domsize")
        sent = unit_columns(data, names, integers=True)
        reply = requests.ask("sae_direct_direct", {**inputs, "data": sent}, asked)
        return domain_estimates(
            asked, "sae_direct_direct", inputs, names, sent, reply, estimator=estimator
        )
    outcome = unit_numbers(data, y, field="y")
    check_weights(data, sweight)
    sent = unit_columns(data, names, (dom,))
    facts = unit_facts(key_column(data, dom, field="dom"), outcome)
    known = None
    if domsize is not None:
        known = two_columns(domsize, key=dom, field="domsize")
        need_domains([str(label) for label in facts.labels], known, field="domsize")
        sizes(known, counts=facts.counts(), field="domsize")
        inputs["domsize"] = known.for_r("domain")
    reply = requests.ask("sae_direct_direct", {**inputs, "data": sent}, asked)
    return domain_estimates(
        asked,
        "sae_direct_direct",
        inputs,
        names,
        sent,
        reply,
        estimator=estimator,
        as_text=(dom,),
        labels=facts.labels if known is None else known.labels,
        facts=facts,
        sizes=None if known is None else next(iter(known.values.values())),
    )


def pssynt(
    data: pd.DataFrame,
    y: str,
    sweight: str,
    ps: str,
    domsizebyps: pd.DataFrame,
    *,
    domain: str = "domain",
    level: float = 0.95,
    mode: str = "guarded",
    time_limit: float | None = None,
) -> SaeDomainEstimates:
    """Post-stratified synthetic estimates of domain means by sae::pssynt.

    Parameters
    ----------
    data, y, sweight, level, mode, time_limit
        As in `direct`.
    ps : str
        Column of post-strata.
    domsizebyps : pandas.DataFrame
        A column of domains (``domain``, else the first), and one of population sizes for each
        post-stratum under its code. sae gives 0 everywhere where a code is not the name of a
        column: guarded, that is refused, and so is a post-stratum without units, or one alone.
    """
    asked = direct_request("pssynt", locals(), {"domsizebyps": "domsizebyps"})
    data, names = used_columns(data, {"y": y, "sweight": sweight, "ps": ps})
    inputs = direct_inputs(names, {"y": y, "sweight": sweight, "ps": ps}, {})
    estimator = "post-stratified synthetic mean"
    if asked.raw:
        inputs["domsizebyps"] = positional(domsizebyps, "domsizebyps")
        sent = unit_columns(data, names, integers=True)
        reply = requests.ask("sae_direct_pssynt", {**inputs, "data": sent}, asked)
        return domain_estimates(
            asked, "sae_direct_pssynt", inputs, names, sent, reply, estimator=estimator
        )
    unit_numbers(data, y, field="y")
    check_weights(data, sweight)
    key_column(data, ps, field="ps")
    sent = unit_columns(data, names, (ps,))
    table = domain_table(domsizebyps, key=domain, field="domsizebyps")
    _check_strata(set(sent[names[ps]]), table)
    inputs["domsizebyps"] = table.for_r(".domain.")
    reply = requests.ask("sae_direct_pssynt", {**inputs, "data": sent}, asked)
    return domain_estimates(
        asked,
        "sae_direct_pssynt",
        inputs,
        names,
        sent,
        reply,
        estimator=estimator,
        as_text=(ps,),
        labels=table.labels,
        sizes=np.sum(list(table.values.values()), axis=0),
    )


def direct_request(
    function: str, given: Mapping[str, Any], more: Mapping[str, Any]
) -> EngineRequest:
    """What is asked of one of the three functions, from their arguments."""
    names = ("y", "dom", "sweight", "ps")
    arguments = {name: given[name] for name in names if given.get(name) is not None}
    for name in ("domsize", "direct", "synthetic"):
        if given.get(name) is not None:
            arguments[name] = name
    arguments.update(more)
    common = {name: given[name] for name in _COMMON}
    return requests.request(function, arguments, **common, seed=None)


def direct_inputs(
    names: Mapping[str, str], given: Mapping[str, str | None], options: Mapping[str, Any]
) -> dict[str, Any]:
    """The names in R of the columns, and the options."""
    places = {name: None if column is None else names[column] for name, column in given.items()}
    return {**places, "options": dict(options)}


def _estimator(sweight: str | None, domsize: Any, replace: bool) -> str:
    found = _ESTIMATORS.get((sweight is not None, domsize is not None, replace))
    if found is None:
        raise InputError(
            "sae::direct needs the domain sizes for this design",
            code="missing_argument",
            field="domsize",
            expected="domsize=, a table of two columns; only replace=True without weights goes "
            "without",
            got=None,
        )
    return found


def _check_strata(codes: set[Any], table: DomainTable) -> None:
    unknown = sorted(codes - set(table.values))
    absent = sorted(
        name for name, size in table.values.items() if name not in codes and (size > 0).any()
    )
    if unknown or absent:
        got = [f"codes without a column: {listed(unknown)}"] if unknown else []
        got += [f"columns without units: {listed(absent)}"] if absent else []
        raise InputError(
            "the post-strata of the sample are not the columns of domsizebyps",
            code="unknown_post_stratum",
            field="domsizebyps",
            expected="one column for each code of the sample, under that code",
            got="; ".join(got),
            hint="sae would take their means for 0, silently or with a warning only.",
        )
    if len(table.values) == 1:
        raise InputError(
            "sae::pssynt needs two post-strata or more: with one it returns NA for every domain",
            code="one_post_stratum",
            field="domsizebyps",
            expected="columns of two or more post-strata",
            got=listed(list(table.values)),
            hint="With one, the estimate of every domain is sum(w y) / N, N the whole population.",
        )
