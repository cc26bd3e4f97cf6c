"""sae::ssd: the composite of direct and synthetic estimates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import key_column, listed
from pybridge._options import real_number
from pybridge._record import Record
from pybridge.engines import _engine_request as requests
from pybridge.engines._sae_direct import direct_inputs, direct_request
from pybridge.engines._sae_direct_record import (
    SaeDomainEstimates,
    UnitFacts,
    domain_estimates,
    unit_facts,
)
from pybridge.engines._engine_units import (
    DomainTable,
    check_weights,
    need_domains,
    positional,
    sizes,
    two_columns,
    unit_columns,
    used_columns,
)
from pybridge.errors import InputError


def ssd(
    data: pd.DataFrame,
    dom: str,
    sweight: str,
    domsize: pd.DataFrame,
    direct: pd.DataFrame | Record,
    synthetic: pd.DataFrame | Record,
    *,
    delta: float = 1.0,
    level: float = 0.95,
    mode: str = "guarded",
    time_limit: float | None = None,
) -> SaeDomainEstimates:
    """Sample size dependent composite of direct and synthetic estimates by sae::ssd.

    Parameters
    ----------
    data, dom, sweight, domsize, level, mode, time_limit
        As in `direct`.
    direct, synthetic : record or pandas.DataFrame
        Estimates of the same domains: a record with the columns ``domain`` and ``estimate`` (of
        `direct` and `pssynt`, say), or a table of two columns. sae takes the second column
        whatever it is, the sample size if it is given all of R's own table: in raw mode a table
        goes as it is.
    delta : float
        Positive; the larger, the more weight the synthetic estimate has.

    Notes
    -----
    A domain without units has no direct estimate, for which sae returns NA; guarded, it gets the
    synthetic one, which is what its weight of 0 says.

    References
    ----------
    Drew, Singh and Choudhry (1982), Survey Methodology 8, 17.
    """
    asked = direct_request("ssd", locals(), {"delta": _positive("delta", delta)})
    data, names = used_columns(data, {"dom": dom, "sweight": sweight})
    inputs = direct_inputs(names, {"dom": dom, "sweight": sweight}, {"delta": float(delta)})
    estimator = "sample size dependent composite"
    if asked.raw:
        tables = {"domsize": domsize, "direct": direct, "synthetic": synthetic}
        inputs.update({name: positional(_own(table), name) for name, table in tables.items()})
        sent = unit_columns(data, names, integers=True)
        reply = requests.ask("sae_direct_ssd", {**inputs, "data": sent}, asked)
        return domain_estimates(
            asked, "sae_direct_ssd", inputs, names, sent, reply, estimator=estimator
        )
    check_weights(data, sweight)
    facts = unit_facts(key_column(data, dom, field="dom"), None)
    sent = unit_columns(data, names, (dom,))
    known = two_columns(domsize, key=dom, field="domsize")
    need_domains([str(label) for label in facts.labels], known, field="domsize")
    size = sizes(known, counts=facts.counts(), field="domsize")
    inputs["domsize"] = known.for_r("domain")
    inputs["synthetic"] = _estimates(synthetic, known, dom, "synthetic").for_r("domain")
    own, notes = _direct_for_ssd(_estimates(direct, known, dom, "direct", missing=True), facts)
    inputs["direct"] = own
    reply = requests.ask("sae_direct_ssd", {**inputs, "data": sent}, asked)
    return domain_estimates(
        asked,
        "sae_direct_ssd",
        inputs,
        names,
        sent,
        reply,
        estimator=estimator,
        as_text=(dom,),
        labels=known.labels,
        facts=facts,
        sizes=size,
        notes=notes,
    )


def _positive(name: str, value: Any) -> float:
    number = real_number(name, value)
    if number <= 0:
        raise InputError(
            f"{name} must be positive",
            code="bad_number",
            field=name,
            expected="a number greater than 0",
            got=value,
        )
    return number


def _own(table: Any) -> Any:
    """A record's domains and estimates as R has them, for raw mode."""
    return table.to_frame()[["domain", "estimate"]] if isinstance(table, Record) else table


def _estimates(
    table: Any, known: DomainTable, key: str, field: str, *, missing: bool = False
) -> DomainTable:
    """Estimates of exactly the known domains."""
    if isinstance(table, Record):
        table, key = table.to_frame()[["domain", "estimate"]], "domain"
    found = two_columns(table, key=key, field=field, missing=missing)
    if set(found.text) != set(known.text):
        raise InputError(
            f"{field} has other domains than domsize",
            code="unknown_domain",
            field=field,
            expected=f"{len(known.text)} domains, those of domsize",
            got=listed(sorted(set(found.text) ^ set(known.text))),
        )
    return found


def _direct_for_ssd(found: DomainTable, facts: UnitFacts) -> tuple[dict[str, Any], list[str]]:
    (name, values), *_ = found.values.items()
    empty = np.array([facts.counts().get(text, 0) == 0 for text in found.text])
    gaps = np.isnan(values) & ~empty
    if gaps.any():
        raise InputError(
            "direct estimates are missing in domains that have units",
            code="missing_values",
            field="direct",
            expected="an estimate in every domain with units",
            got=listed(found.labels[gaps]),
        )
    filled = np.where(empty & np.isnan(values), 0.0, values)
    notes = []
    if empty.any():
        notes.append(f"synthetic only, without units: {listed(found.labels[empty])}")
    return {"domain": found.text, name: filled}, notes
