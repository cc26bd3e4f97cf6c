"""The record of sae's design-based estimates of domains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import listed
from pybridge._record import Record, plain
from pybridge.engines._engine_request import EngineRequest, hand_on, numbers, said
from pybridge.engines._engine_units import SaeUnitRecord, digest
from pybridge.provenance import provenance
from pybridge.r import Factor, Reply
from pybridge.tables.labels import encode

# Columns of R's tables that are the estimate.
_ESTIMATES = ("Direct", "PsSynthetic", "ssd")


@dataclass(frozen=True, eq=False, repr=False)
class UnitFacts(Record):
    """Counts of units by domain: labels (as they first appear), numbers of units, and whether the
    outcome is constant; each (d,)."""

    labels: np.ndarray
    n: np.ndarray
    constant: np.ndarray

    def counts(self) -> dict[str, int]:
        """Units by the text of the label."""
        return {str(label): int(n) for label, n in zip(self.labels, self.n)}


def unit_facts(domains: pd.Series, outcome: np.ndarray | None) -> UnitFacts:
    """Counts by domain, in the order of first appearance."""
    found = encode(domains)
    n = np.bincount(found.codes)
    constant = np.zeros(len(n), dtype=bool)
    if outcome is not None:
        low, high = np.full(len(n), np.inf), np.full(len(n), -np.inf)
        np.minimum.at(low, found.codes, outcome)
        np.maximum.at(high, found.codes, outcome)
        constant = low == high
    first = np.full(len(n), len(domains))
    np.minimum.at(first, found.codes, np.arange(len(domains)))
    order = np.argsort(first)
    return UnitFacts(found.labels[order], n[order], constant[order])


@dataclass(frozen=True, eq=False, repr=False)
class SaeDomainEstimates(SaeUnitRecord):
    """Estimates of the means of d domains by sae::direct, pssynt or ssd.

    Attributes
    ----------
    estimator : str
        Which estimator it is.
    domains : numpy.ndarray
        Shape (d,), object.
    estimate, standard_error : numpy.ndarray
        Shape (d,), R's numbers; NaN where there is none.
    n_labelled, size : numpy.ndarray
        Shape (d,), units in the sample and in the population; NaN where not known.
    weight : numpy.ndarray
        Shape (d,), of the direct estimate in a composite (R's CompWeight); NaN elsewhere.
    domain_status : numpy.ndarray
        Shape (d,), object: ``ok``, ``out_of_sample``, ``single_unit``, ``constant_outcome``,
        ``census``.
    """

    estimator: str
    domains: np.ndarray
    estimate: np.ndarray
    standard_error: np.ndarray
    n_labelled: np.ndarray
    size: np.ndarray
    weight: np.ndarray
    domain_status: np.ndarray

    def to_frame(self) -> pd.DataFrame:
        """Columns: domain, n_labelled, size, estimate, variance, standard_error, cv, lower, upper,
        level, weight (of a composite), status."""
        length = np.abs(self.estimate)
        reach = NormalDist().inv_cdf(0.5 + self.request.level / 2) * self.standard_error
        table = {
            "domain": self.domains,
            "n_labelled": self.n_labelled,
            "size": self.size,
            "estimate": self.estimate,
            "variance": self.standard_error**2,
            "standard_error": self.standard_error,
            "cv": np.divide(
                self.standard_error, length, out=np.full(len(length), np.nan), where=length > 0
            ),
            "lower": self.estimate - reach,
            "upper": self.estimate + reach,
            "level": np.full(len(length), self.request.level),
        }
        if self.request.function == "ssd":
            table["weight"] = self.weight
        table["status"] = self.domain_status
        return pd.DataFrame({name: np.array(column) for name, column in table.items()})

    def summary(self) -> str:
        """The estimates as text."""
        lines = [
            self.request.summary(),
            f"{len(self.domains)} domains: {self.estimator}",
        ]
        for word in ("out_of_sample", "single_unit", "constant_outcome", "census"):
            which = self.domains[self.domain_status == word]
            if len(which):
                lines.append(f"{word}: {listed(which)}")
        return "\n".join([*lines, *self.conditions])

    def to_dict(self) -> dict[str, Any]:
        """Everything but the inputs as plain Python values."""
        return {
            "request": plain(self.request),
            "estimator": self.estimator,
            "status": self.status,
            "domains": plain(self.to_frame().to_dict("list")),
            "conditions": list(self.conditions),
            "provenance": plain(self.provenance),
        }


def domain_estimates(
    asked: EngineRequest,
    shim: str,
    inputs: Mapping[str, Any],
    names: Mapping[str, str],
    sent: Mapping[str, Any],
    reply: Reply,
    *,
    estimator: str,
    as_text: tuple[str, ...] = (),
    labels: np.ndarray | None = None,
    facts: UnitFacts | None = None,
    sizes: np.ndarray | None = None,
    notes: Sequence[str] = (),
) -> SaeDomainEstimates:
    """The record: rows by the given labels, or R's own rows and labels where none are given."""
    hand_on(reply)
    value = dict(reply.value)
    own = _own_labels(value["Domain"])
    value["Domain"] = own
    place = np.arange(len(own))
    if labels is None:
        labels = own
    else:
        where = {str(label): k for k, label in enumerate(own)}
        place = np.array([where[str(label)] for label in labels], dtype=np.intp)
    empty = np.full(len(labels), np.nan)

    def column(name: str) -> np.ndarray:
        return numbers(value[name])[place] if name in value else empty

    counted = column("SampSize")
    if facts is not None:
        counts = facts.counts()
        counted = np.array([float(counts.get(str(label), 0)) for label in labels])
    return SaeDomainEstimates(
        request=asked,
        shim=shim,
        inputs=inputs,
        value=value,
        status="converged",
        engine_status="converged",
        conditions=(*said(reply), *notes),
        provenance=provenance(
            "sae",
            f"{asked.function}: {estimator}",
            options={**asked.arguments, "mode": asked.mode, "level": asked.level},
            versions=reply.versions,
        ),
        columns=names,
        as_text=as_text,
        units=digest(sent),
        estimator=estimator,
        domains=labels,
        estimate=column(next(name for name in _ESTIMATES if name in value)),
        standard_error=column("SD"),
        n_labelled=counted,
        size=empty if sizes is None else np.asarray(sizes, dtype=np.float64),
        weight=column("CompWeight"),
        domain_status=_statuses(labels, counted, sizes, facts),
    )


def _own_labels(values: Any) -> np.ndarray:
    """R's own domains: text, a factor's labels, whole numbers as such."""
    items = (
        values.labels() if isinstance(values, Factor) else list(np.asarray(values, dtype=object))
    )
    found = np.empty(len(items), dtype=object)
    found[:] = [int(v) if isinstance(v, float) and v.is_integer() else v for v in items]
    return found


def _statuses(
    labels: np.ndarray, counted: np.ndarray, sizes: np.ndarray | None, facts: UnitFacts | None
) -> np.ndarray:
    words = np.full(len(labels), "ok", dtype=object)
    if facts is not None:
        constant = {str(label) for label in facts.labels[facts.constant]}
        words[[str(label) in constant for label in labels]] = "constant_outcome"
    words[counted == 1] = "single_unit"
    if sizes is not None:
        words[counted == sizes] = "census"
    words[counted == 0] = "out_of_sample"
    return words
