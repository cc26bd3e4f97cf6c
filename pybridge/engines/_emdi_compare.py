"""Fits beside direct estimates and beside each other: emdi's compare, compare_pred, estimators."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from pybridge._options import MODES, choose, yes_or_no
from pybridge._record import Record
from pybridge.engines._emdi_benchmark import EmdiBenchmark
from pybridge.engines._emdi_direct_record import GROUPS, EmdiDirect
from pybridge.engines._emdi_answer import quiet, said
from pybridge.engines._emdi_known import light, made_by, need_fit, need_mse, need_record
from pybridge.engines._emdi_record import EmdiFit
from pybridge.engines._emdi_units import transformed
from pybridge.errors import InputError
from pybridge.provenance import Provenance
from pybridge.r import Reply, call


_OWN_INDICATORS = 10  # of emdi::direct, before custom ones


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class EmdiComparison(Record):
    """How the model's estimates go with the direct ones.

    Attributes
    ----------
    statistic, p_value : float
        Brown's goodness of fit test: the EBLUPs do not differ from the direct estimates. NaN
        without mean squared errors.
    degrees_of_freedom : int
        Number of domains with a direct estimate.
    correlation : float
        Between the synthetic part and the direct estimates; guarded, with a transformation, both
        on its scale.
    engine_correlation : float
        As emdi computes it.
    conditions : tuple of str
    provenance : Provenance
    """

    statistic: float
    degrees_of_freedom: int
    p_value: float
    correlation: float
    engine_correlation: float
    conditions: tuple[str, ...]
    provenance: Provenance

    def to_frame(self) -> pd.DataFrame:
        """One row: statistic, degrees_of_freedom, p_value, correlation."""
        names = ("statistic", "degrees_of_freedom", "p_value", "correlation")
        return pd.DataFrame({name: [getattr(self, name)] for name in names})

    def summary(self) -> str:
        """Both numbers in words."""
        lines = [
            f"Brown test: W = {self.statistic:.6g}, df = {self.degrees_of_freedom}, "
            f"p = {self.p_value:.4g}",
            f"correlation of synthetic part and direct estimates {self.correlation:.4g}",
        ]
        return "\n".join([*lines, *self.conditions])


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class EmdiTable(Record):
    """A table of emdi: a row a domain, a column an indicator.

    Attributes
    ----------
    domains : numpy.ndarray
        Shape (m,), object.
    names : tuple of str
        k names, emdi's own.
    values : numpy.ndarray
        Shape (m, k).
    title : str
    provenance : Provenance
    """

    domains: np.ndarray
    names: tuple[str, ...]
    values: np.ndarray
    title: str
    provenance: Provenance

    def to_frame(self) -> pd.DataFrame:
        """The domains and emdi's columns."""
        table = {"domain": np.array(self.domains)}
        return pd.DataFrame(
            {**table, **{name: self.values[:, k].copy() for k, name in enumerate(self.names)}}
        )

    def summary(self) -> str:
        """The title and the table."""
        return f"{self.title}\n{self.to_frame().to_string(index=False)}"


def compare(object: EmdiFit, *, mode: str = "guarded") -> EmdiComparison:
    """Compare EBLUPs and direct estimates by emdi::compare.

    Parameters
    ----------
    object : EmdiFit
    mode : {"guarded", "raw"}
        emdi finds the synthetic part from the estimates and γ, which mixes two scales where there
        is a transformation and divides by 0 where γ is 1. Guarded takes x'β itself.
    """
    fit = need_fit(object)
    guarded = choose("mode", mode, MODES) == "guarded"
    reply = call("emdi_compare", {"object": light(fit)}, packages=("emdi",), what="emdi::compare")
    value = reply.value
    theirs = _one(value["correlation"])
    ours, notes = theirs, list[str]()
    if guarded and fit.request.method != "reblupbc":
        ours, notes = _own_correlation(fit, theirs)
    return EmdiComparison(
        statistic=_one(value["statistic"]),
        degrees_of_freedom=int((~fit.out_of_sample).sum()),
        p_value=_one(value["p_value"]),
        correlation=ours,
        engine_correlation=theirs,
        conditions=(*notes, *said(reply)),
        provenance=made_by("compare", reply, {"mode": mode}),
    )


def _own_correlation(fit: EmdiFit, theirs: float) -> tuple[float, list[str]]:
    request = fit.request
    place = np.argsort(request.order)
    mean = (fit.linear - np.nan_to_num(fit.random_effects))[~fit.out_of_sample]
    direct = np.full(len(fit.domains), np.nan)
    direct[request.sampled] = transformed(request)[0]
    direct = direct[place][~fit.out_of_sample]
    if not (np.ptp(mean) > 0):
        return np.nan, ["the synthetic part is the same in every domain: no correlation"]
    ours = float(np.corrcoef(mean, direct)[0, 1])
    if abs(ours - theirs) <= 1e-8:
        return ours, []
    return ours, [f"emdi's correlation of synthetic part and direct estimates is {theirs:.6g}"]


def compare_pred(
    object1: EmdiFit | EmdiDirect, object2: EmdiFit | EmdiDirect, MSE: bool = False
) -> EmdiTable:
    """Two sets of estimates side by side, sorted by domain, by emdi::compare_pred.

    Parameters
    ----------
    object1, object2 : EmdiFit or EmdiDirect
        Of the same domains, or one with more of them.
    MSE : bool
        Mean squared errors instead of estimates.
    """
    pair = [need_record(name, one) for name, one in (("object1", object1), ("object2", object2))]
    first, second = ({str(label) for label in one.domains} for one in pair)
    yes_or_no("MSE", MSE)
    small, large = sorted((first, second), key=len)
    if small - large:
        raise InputError(
            "the two objects hold different domains",
            code="unknown_domain",
            field="object2",
            expected="the domains of one among those of the other",
            got=f"only in one: {sorted(small - large)[:3]}",
        )
    if MSE:
        for name, one in zip(("object1", "object2"), pair):
            need_mse(name, one)
    asked = {"object1": light(pair[0]), "object2": light(pair[1]), "MSE": bool(MSE)}
    reply = call("emdi_compare_pred", asked, packages=("emdi",), what="emdi::compare_pred")
    title = "mean squared errors" if MSE else "estimates"
    return _table(reply, f"emdi::compare_pred, {title}", "compare_pred", pair)


def estimators(
    object: EmdiFit | EmdiDirect | EmdiBenchmark,
    indicator: str | Sequence[str] = "all",
    MSE: bool = False,
    CV: bool = False,
) -> EmdiTable:
    """Estimates with their mean squared errors and coefficients of variation.

    Parameters
    ----------
    object : EmdiFit, EmdiBenchmark or EmdiDirect
    indicator : str or sequence of str
        For a fit "all", "FH" or "Direct", benchmarked also "FH_Bench"; for direct estimates
        "all", names of indicators, or "Quantiles", "Poverty", "Inequality", "Custom".
    MSE, CV : bool
    """
    benchmarked, of = None, object
    if isinstance(of, EmdiBenchmark):
        benchmarked, of = of.benchmarked, of.fit
    one = need_record("object", of)
    known = light(one)
    if benchmarked is not None:
        known = {**known, "mse": None, "benchmarked": benchmarked}
    words = _indicators(indicator, one, benchmarked is not None)
    yes_or_no("MSE", MSE)
    yes_or_no("CV", CV)
    if MSE or CV:
        need_mse("object", object if benchmarked is not None else one)
    # Of several words for a fit emdi looks at one.
    several = isinstance(one, EmdiFit) and len(words) > 1 and "all" not in words
    asked = {"object": known, "indicator": ["all"] if several else words, "MSE": MSE, "CV": CV}
    reply = call("emdi_estimators", asked, packages=("emdi",), what="emdi::estimators")
    table = _table(reply, str(reply.value["ind_name"][0]), "estimators", [one])
    if not several:
        return table
    own = [f"{word}{end}" for word in words for end in ("", "_MSE", "_CV")]
    kept = [k for k, name in enumerate(table.names) if name in own]
    return dataclasses.replace(
        table,
        names=tuple(table.names[k] for k in kept),
        values=table.values[:, kept],
        title=", ".join(words),
    )


def _indicators(indicator: Any, one: EmdiFit | EmdiDirect, benchmarked: bool) -> list[str]:
    """The words that were asked for, as emdi writes them; it takes small letters too."""
    if isinstance(one, EmdiFit):
        allowed = ("all", "FH", "Direct", *(("FH_Bench",) if benchmarked else ()))
        groups = allowed
    else:
        groups = GROUPS if len(one.names) > _OWN_INDICATORS else GROUPS[:-1]
        allowed = ("all", *groups, *one.names)
    small = {word.lower(): word for word in ("all", *groups)}
    given = [indicator] if isinstance(indicator, str) else indicator
    if not isinstance(given, (list, tuple, np.ndarray)) or not len(given):
        raise InputError(
            "indicator must be a word or a list of words",
            code="unknown_option",
            field="indicator",
            expected=" | ".join(allowed),
            got=indicator,
        )
    words = [small.get(word, word) if isinstance(word, str) else word for word in given]
    for word in words:
        choose("indicator", word, allowed)
    return list(dict.fromkeys(words))


def _table(reply: Reply, title: str, function: str, records: list[Any]) -> EmdiTable:
    labels = {str(label): label for one in records for label in one.domains}
    domains = np.array([labels[name] for name in reply.value["domain"]], dtype=object)
    rows = np.arange(len(domains))
    fits = function == "compare_pred" and all(isinstance(one, EmdiFit) for one in records)
    if fits and all(isinstance(label, Real) for label in domains):
        # R's merge() sorts by the domains, which it has as text here and in emdi::direct's object.
        rows = np.argsort(domains.astype(np.float64), kind="stable")
    return EmdiTable(
        domains=domains[rows],
        names=tuple(reply.value["names"]),
        values=quiet(reply.value["values"])[rows],
        title=title,
        provenance=made_by(function, reply, {}),
    )


def _one(value: Any) -> float:
    return float("nan") if value is None else float(value[0])
