"""Direct estimates and their covariances: native, R's survey, and written anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import pybridge as pb
from pybridge.crosscheck.agreement import AgreementTable
from pybridge.crosscheck.comparer import Pairing
from pybridge.crosscheck.tolerances import TWO_ROUTES
from pybridge.errors import PybridgeError
from validation.cases.survey import CASES, Case, load
from validation.reimplementations import direct as slow
from validation.suites.gathered import Gathered
from validation.suites.plain_r import PlainR

SCRIPTS = ("survey.R",)
_SLOPES: dict[str, Any] = {
    "greg": "pooled",
    "greg2": "pooled",
    "greg_within": "within",
    "greg_fixed": 0.5,
    "greg_domain": "domain",
}
_ALL = ("estimate", "standard errors", "covariance", "covariance with HT", "groups", "group errors")
_TOLERANCES = dict.fromkeys((*_ALL, "coefficients"), TWO_ROUTES)


def _label(name: str, estimator: str) -> str:
    return f"direct {name} {estimator}"


def _estimators(name: str) -> list[str]:
    return load(name).estimators


def scripts(chosen: set[str]) -> tuple[str, ...]:
    """Scripts of r_reference that these cases need."""
    return SCRIPTS


def case_names() -> list[str]:
    """Names of all cases of this suite."""
    return [_label(name, e) for name in CASES.index for e in _estimators(name)]


def pairings(reference: str) -> list[Pairing]:
    """Who is held against whom; ``reference`` is who answers for plain R."""
    return [
        Pairing("native", reference, _TOLERANCES),
        Pairing("reimplementation", reference, _TOLERANCES),
        Pairing("bridge survey", reference, _TOLERANCES),
    ]


def run(plain: PlainR, chosen: set[str]) -> AgreementTable:
    """All comparisons of the chosen cases."""
    gathered = Gathered()
    reference, folder = plain.reference(SCRIPTS[0])
    for name in CASES.index:
        wanted = [e for e in _estimators(name) if _label(name, e) in chosen]
        if not wanted:
            continue
        case = load(name, folder)
        for estimator in wanted:
            label = _label(name, estimator)
            known = _known(case, estimator)
            exists = _exists(case, estimator)
            gathered.keys[label] = tuple(np.array(case.domains)[exists])
            _say(gathered, label, reference, known, exists)
            _say(gathered, label, "native", _package(case, estimator, engine="native"), exists)
            _say(gathered, label, "reimplementation", _anew(case, estimator), exists)
            _units(gathered, label, known, case, exists)
            _bridge(gathered, label, case, estimator, exists)
    return gathered.compared(pairings(reference))


def _exists(case: Case, estimator: str) -> np.ndarray:
    """Domains with a variance: R calls that of a ratio of one unit 0, here it does not exist."""
    if estimator != "hajek":
        return np.ones(len(case.domains), dtype=bool)
    return case.answer("", "n_labelled", case.domains) > 1


def _say(
    gathered: Gathered, label: str, producer: str, found: dict[str, Any], exists: np.ndarray
) -> None:
    values = {"estimate": found["estimate"], "groups": found["groups"]}
    values["group errors"] = found["group errors"]
    V = found["covariance"][np.ix_(exists, exists)]
    values["standard errors"] = np.sqrt(V.diagonal())
    values["covariance"] = V[np.tril_indices(len(V), -1)]
    if found["covariance with HT"] is not None:
        values["covariance with HT"] = found["covariance with HT"][exists]
    if found.get("coefficients") is not None:
        values["coefficients"] = found["coefficients"]
    gathered.say(producer, label, values)


def _units(
    gathered: Gathered, label: str, known: dict[str, Any], case: Case, exists: np.ndarray
) -> None:
    """Scales: covariances relative to the two standard errors, the rest to itself."""
    error = np.sqrt(known["covariance"].diagonal())[exists]
    floor = 1e-12 * max(float(error.max()), float(np.abs(known["estimate"]).max()))
    product = np.maximum(np.outer(error, error), floor**2)
    gathered.units[label, "covariance"] = product[np.tril_indices(len(error), -1)]
    ht = case.answer("ht", "se", case.domains)[exists]
    gathered.units[label, "covariance with HT"] = np.maximum(error * ht, floor**2)
    gathered.units[label, "standard errors"] = np.maximum(error, floor)
    gathered.units[label, "group errors"] = np.maximum(known["group errors"], floor)


def _group_keys(case: Case) -> list[str]:
    return ["@all", *(f"@{g}" for g in dict.fromkeys(case.totals["group"]))]


def _known(case: Case, estimator: str) -> dict[str, Any]:
    """R's answers."""
    # A group's Hajek mean is the ratio mean of the group, not the mean of its domains' means.
    group = "hajek_of_group" if estimator == "hajek" else estimator
    keys = _group_keys(case)
    with_ht = None if estimator == "ht" else case.answer(estimator, "covariance_ht", case.domains)
    return {
        "estimate": case.answer(estimator, "estimate", case.domains),
        "covariance": case.covariance(estimator),
        "covariance with HT": with_ht,
        "coefficients": _or_none(case.coefficients(estimator)),
        "groups": case.answer(group, "estimate", keys),
        "group errors": case.answer(group, "se", keys),
    }


def _or_none(values: np.ndarray) -> np.ndarray | None:
    return values if values.size else None


def _common(coefficients: Any, estimator: str) -> np.ndarray | None:
    """The coefficients that all domains have in common, intercept first."""
    if coefficients is None or estimator not in _SLOPES or estimator == "greg_domain":
        return None
    return np.asarray(coefficients, dtype=float).reshape(-1, 1 + len(_auxiliary(estimator)))[0]


def _auxiliary(estimator: str) -> list[str]:
    return ["f", "g"] if estimator == "greg2" else ["f"]


def _estimate(case: Case, estimator: str, **options: Any) -> pb.DirectEstimates:
    """The package's own estimate of a case, by its public functions."""
    columns = case.columns
    design = pb.survey_design(
        case.units,
        weights="w",
        lonely_psu=columns["lonely_psu"],
        **{role: columns[role] or None for role in ("strata", "ids", "fpc", "pps")},
    )
    population = pb.population(
        case.totals,
        domain="domain",
        size="N",
        auxiliary_means=["f", "g"],
        taxonomy=["group", "domain"],
    )
    words = {"outcome": "y", "domain": columns["domain"], **options}
    if estimator == "ht":
        return pb.horvitz_thompson(design, population, **words)
    if estimator == "hajek":
        return pb.hajek(design, population, **words)
    if estimator == "ppi":
        return pb.prediction_powered(design, population, prediction="f", **words)
    words.update(auxiliary=_auxiliary(estimator), slope=_SLOPES[estimator])
    return pb.generalized_regression(design, population, **words)


def _package(case: Case, estimator: str, *, engine: str) -> dict[str, Any]:
    """The package's own numbers, by either engine."""
    result = _estimate(case, estimator, engine=engine)
    frame = result.to_frame()
    parts = [result.aggregate(level).to_frame() for level in (None, "group")]
    rows = pd.concat([part.assign(key=["@" + str(g) for g in part["group"]]) for part in parts])
    rows = rows.set_index("key").loc[_group_keys(case)]
    with_ht = None if estimator == "ht" else frame["covariance_ht"].to_numpy(dtype=float)
    return {
        "estimate": frame["estimate"].to_numpy(dtype=float),
        "covariance": np.array(result.covariance()),
        "covariance with HT": with_ht,
        "coefficients": _common(result.coefficients, estimator),
        "groups": rows["estimate"].to_numpy(dtype=float),
        "group errors": rows["standard_error"].to_numpy(dtype=float),
    }


def _anew(case: Case, estimator: str) -> dict[str, Any]:
    """The reimplementation."""
    auxiliary = _auxiliary(estimator)
    sample = slow.Sample(
        y=case.units["y"],
        w=case.units["w"],
        domain=pd.Index(case.totals["domain"]).get_indexer(case.column("domain")),
        F=case.units[auxiliary],
        stratum=case.column("strata"),
        psu=case.column("ids"),
        poisson=case.columns["pps"] == "poisson",
        lonely=case.columns["lonely_psu"],
    )
    fpc = case.column("fpc")
    if fpc is not None:
        sample.n_population = slow.n_population_from_fpc(fpc, sample.stratum, sample.psu)
    population = slow.Population(case.totals["N"], case.totals[auxiliary])
    if estimator in _SLOPES:
        mine = slow.generalized_regression(sample, population, slope=_SLOPES[estimator])
    else:
        mine = slow.ESTIMATORS[estimator](sample, population)
    ht = slow.horvitz_thompson(sample, population)
    found: dict[str, Any] = {
        "estimate": mine.estimate,
        "covariance": slow.covariance(mine.scores, sample),
        "covariance with HT": None,
        "coefficients": _common(mine.coefficients, estimator),
    }
    if estimator != "ht":
        found["covariance with HT"] = slow.covariance_between(mine, ht, sample).diagonal()
    parts = [_group(mine, sample, population, case, estimator, key) for key in _group_keys(case)]
    found["groups"] = np.array([value for value, _ in parts])
    found["group errors"] = np.array([error for _, error in parts])
    return found


def _group(
    mine: Any, sample: Any, population: Any, case: Case, estimator: str, key: str
) -> tuple[float, float]:
    """One group's estimate and standard error; of Hajek the ratio mean of the group."""
    inside = np.array([key == "@all" or f"@{g}" == key for g in case.totals["group"]])
    if estimator == "hajek":
        member = inside[sample.domain]
        size = float(sample.w[member].sum())
        value = float((sample.w * sample.y)[member].sum()) / size
        score = np.where(member, sample.w * (sample.y - value) / size, 0.0)
        return value, float(np.sqrt(slow.covariance(score[:, None], sample)[0, 0]))
    groups = np.where(inside, key, "other")
    labels, values, V = slow.aggregate(mine, sample, population, groups)
    place = list(labels).index(key)
    return float(values[place]), float(np.sqrt(V[place, place]))


def _bridge(gathered: Gathered, label: str, case: Case, estimator: str, exists: np.ndarray) -> None:
    """R's survey through the bridge."""
    try:
        found = _package(case, estimator, engine="survey")
    except PybridgeError as error:
        gathered.silent("bridge survey", label, error.message)
        return
    _say(gathered, label, "bridge survey", found, exists)
