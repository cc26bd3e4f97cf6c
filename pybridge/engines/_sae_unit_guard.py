"""What the guarded mode does around sae's nested-error model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import collinear_columns, listed
from pybridge._integers import Integers
from pybridge.engines._sae_area import FEW_SPARE_DOMAINS
from pybridge.engines._sae_nested import nested_log_likelihood, nested_optimum
from pybridge.engines._engine_request import EngineRequest
from pybridge.engines._engine_units import DomainTable, need_domains
from pybridge.errors import InputError
from pybridge.r import Reply

# lme4 stops its search about this close to the top.
_SHORTFALL = 1e-5


def check_units(x: np.ndarray, terms: list[str], *, n_domains: int) -> None:
    """Enough units, and columns that determine their coefficients."""
    n, p = x.shape
    if n <= p or n_domains < 2 or n <= n_domains:
        raise InputError(
            "too few units to tell the variance between domains from that within",
            code="too_few_units",
            field="data",
            expected="more units than coefficients, two domains, one of them with two units",
            got=f"{n} units, {p} coefficients, {n_domains} domains",
        )
    # lme4 would drop such a column, and sae would then recycle the coefficients.
    collinear_columns(x, names=terms, field="formula")


def are_numbers(labels: pd.Series) -> bool:
    """Whether the units' domains are numbers, which sae gets as they are."""
    kind = pd.api.types.infer_dtype(labels, skipna=False)
    return kind in ("integer", "floating", "mixed-integer-float") and not isinstance(
        labels.dtype, pd.CategoricalDtype
    )


def with_numbers(tables: Mapping[str, Any], *, like: Any) -> dict[str, Any] | None:
    """The tables of domains and ``selectdom`` with their domains as numbers, as the units have
    them; None where a domain is not a number, or two are the same one."""
    known: dict[str, float] = {}
    for table in tables.values():
        texts = table["domain"] if isinstance(table, Mapping) else table
        try:
            known.update({text: float(text) for text in texts})
        except ValueError:
            return None
    values = np.array(list(known.values()))
    if not np.isfinite(values).all() or len(np.unique(values)) < len(values):
        return None
    whole = isinstance(like, Integers) and (values == np.round(values)).all()
    if isinstance(like, Integers) and (not whole or np.abs(values).max() > 2**31 - 1):
        return None

    def numbered(texts: Any) -> np.ndarray:
        found = np.array([known[text] for text in texts], dtype=np.float64)
        return found.astype(np.int32).view(Integers) if whole else found

    return {
        name: (
            {**table, "domain": numbered(table["domain"])}
            if isinstance(table, Mapping)
            else numbered(table)
        )
        for name, table in tables.items()
    }


def selected_domains(
    wanted: Sequence[Any] | None,
    sample: Mapping[str, Any],
    means: DomainTable,
    population: DomainTable,
) -> np.ndarray:
    """The domains wanted, each once, known to both tables."""
    if isinstance(wanted, str) or not (wanted is None or isinstance(wanted, Iterable)):
        raise InputError(
            "selectdom must be a list of domains",
            code="not_a_list",
            field="selectdom",
            expected="one or more domains, each once",
            got=wanted,
            hint=f"Write selectdom=[{wanted!r}].",
        )
    labels = list(sample.values()) if wanted is None else list(wanted)
    texts = [str(label) for label in labels]
    if len(set(texts)) != len(texts) or not texts:
        raise InputError(
            "selectdom must name each domain once",
            code="duplicate_domain",
            field="selectdom",
            expected="one or more domains, each once",
            got=listed(texts),
        )
    if "" in texts:
        raise InputError(
            "a domain has a label without text, which sae cannot look up",
            code="empty_label",
            field="dom",
            expected="labels with text",
            got="''",
        )
    need_domains(texts, means, field="meanxpop")
    need_domains(texts, population, field="popnsize")
    found = np.empty(len(labels), dtype=object)
    found[:] = labels
    return found


def beside_the_optimum(
    reply: Reply, y: np.ndarray, x: np.ndarray, codes: np.ndarray, asked: EngineRequest
) -> tuple[dict[str, Any], str | None, list[str]]:
    """lme4's answer beside the likelihood's maximum, and the status that follows."""
    method = asked.arguments["method"]
    optimum = nested_optimum(y, x, codes, method)
    exact = {
        "refvar": optimum.refvar,
        "errorvar": optimum.errorvar,
        "log_likelihood": optimum.log_likelihood,
    }
    if reply.error is not None or "refvar" not in reply.value:
        return exact, None, []
    found = float(reply.value["refvar"][0])
    ratio = found / float(reply.value["errorvar"][0])
    at = nested_log_likelihood(y, x, codes, method, ratio)
    exact["shortfall"] = optimum.log_likelihood - at
    if exact["shortfall"] > _SHORTFALL:
        return (
            exact,
            "not_converged",
            [f"lme4 ended at a variance of {found:.6g}; the optimum is {optimum.refvar:.6g}"],
        )
    if codes.max() + 1 <= x.shape[1] + FEW_SPARE_DOMAINS:
        return exact, "weak_identification", []
    return exact, "boundary" if found == 0 else "converged", []
