"""The Bayesian area-level model: hbsae, plain R's integrate(), native quadrature, panels anew."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pybridge.crosscheck.agreement import AgreementTable
from pybridge.crosscheck.area import HBSAE_AREA
from pybridge.crosscheck.comparer import Pairing
from pybridge.crosscheck.tolerances import IDENTICAL, QUADRATURE, relative
from pybridge.errors import EngineWarning, PybridgeError
from pybridge.smoothing.fay_herriot import fay_herriot
from validation.cases.taxonomy import AREA_NAMES, Case, load_area
from validation.reimplementations import bayes_fay_herriot as slow
from validation.suites.gathered import Gathered
from validation.suites.plain_r import PlainR

SCRIPTS = ("bayes_hbsae.R",)
# Ranges of the log variance that hold the posterior to 1e-12, found by widening them.
_RANGES = {"milk_areas": (-20.0, 6.0), "few7": (-40.0, 60.0), "few5": (-40.0, 90.0)}

_EXACTLY = {
    "variance's median": relative(QUADRATURE),
    "variance's mean": relative(QUADRATURE),
    "coefficients": QUADRATURE,
    "estimate": QUADRATURE,
    "mse": relative(QUADRATURE),
    "lower": QUADRATURE,
    "upper": QUADRATURE,
}
_HBSAE = ("variance's mean", "coefficients", "estimate", "mse")


def _label(name: str) -> str:
    return f"Bayesian Fay-Herriot {name}"


def case_names() -> list[str]:
    """Names of all cases of this suite."""
    return [_label(name) for name in AREA_NAMES]


def scripts(chosen: set[str]) -> tuple[str, ...]:
    """Scripts of r_reference that these cases need."""
    return SCRIPTS


def pairings(reference: str) -> list[Pairing]:
    """Who is held against whom; ``reference`` is who answers for plain R."""
    return [
        Pairing("hbsae raw", "Rscript hbsae", dict.fromkeys(_HBSAE, IDENTICAL)),
        Pairing("hbsae guarded", "native all", HBSAE_AREA),
        Pairing("native", f"{reference} integrate", _EXACTLY),
        Pairing("reimplementation", "native all", _EXACTLY),
    ]


def run(plain: PlainR, chosen: set[str]) -> AgreementTable:
    """All comparisons of the chosen cases."""
    gathered = Gathered()
    reference, folder = plain.reference(SCRIPTS[0])
    for name in AREA_NAMES:
        label = _label(name)
        if label not in chosen:
            continue
        case = load_area(name)
        fit = fay_herriot(case.formula, case.table, engine="native", method="bayes")
        numbers = fit.fit
        found = {
            "variance's median": numbers.model_variance,
            "variance's mean": _mean(numbers),
            "coefficients": numbers.coefficients,
            "estimate": numbers.estimate,
            "mse": numbers.mse,
            "lower": numbers.lower,
            "upper": numbers.upper,
        }
        gathered.keys[label] = tuple(case.table["domain"])
        spread = np.sqrt(numbers.mse)
        # Where no mean exists there is no deviation either: the width of the interval serves.
        spread = np.where(np.isfinite(spread), spread, (numbers.upper - numbers.lower) / 4)
        for what in ("estimate", "lower", "upper"):
            gathered.units[label, what] = spread
        errors = np.sqrt(numbers.coefficient_covariance.diagonal())
        gathered.units[label, "coefficients"] = np.where(np.isfinite(errors), errors, spread.mean())
        gathered.say("native all", label, found)
        _integrals(gathered, label, name, case, found, reference, folder)
        _anew(gathered, label, name, case, found)
        _hbsae(gathered, label, name, case, plain)
    return gathered.compared(pairings(reference))


def _mean(numbers: Any) -> float:
    """The posterior mean of the variance; NaN where it is infinite."""
    for place in (numbers.exact, numbers.criteria):
        if "model_variance_mean" in place:
            return float(place["model_variance_mean"])
    return float("nan")


def _answers(folder: Path, name: str, engine: str) -> dict[tuple[str, str], pd.Series]:
    """R's answers of one engine: {(setting, quantity): values by key}."""
    path = folder / f"bayes_{name}__{engine}.csv"
    if not path.is_file():
        return {}
    table = pd.read_csv(path, float_precision="round_trip", dtype={"key": str}).fillna({"key": ""})
    return {
        key: part.set_index("key")["value"] for key, part in table.groupby(["setting", "quantity"])
    }


def _integrals(
    gathered: Gathered,
    label: str,
    name: str,
    case: Case,
    found: dict[str, Any],
    reference: str,
    folder: Path,
) -> None:
    """Plain R's integrals, which it takes for a few domains; the native numbers of the same."""
    known = _answers(folder, name, "stats")
    theirs: dict[str, Any] = {}
    ours: dict[str, Any] = {}
    words = {
        "estimate": "estimate",
        "mse": "mse",
        "quantile_0.025": "lower",
        "quantile_0.975": "upper",
    }
    for quantity, what in words.items():
        answer = known["exact", quantity]
        rows = case.rows(answer.index)
        theirs[what], ours[what] = answer.to_numpy(), np.asarray(found[what])[rows]
        if (label, what) in gathered.units:
            gathered.units[f"{label}, some domains", what] = gathered.units[label, what][rows]
    for quantity, what in (
        ("variance_median", "variance's median"),
        ("variance_mean", "variance's mean"),
        ("coefficient", "coefficients"),
    ):
        theirs[what], ours[what] = known["exact", quantity].to_numpy(), found[what]
    gathered.units[f"{label}, some domains", "coefficients"] = gathered.units[label, "coefficients"]
    gathered.say("native", f"{label}, some domains", ours)
    gathered.say(f"{reference} integrate", f"{label}, some domains", theirs)


def _anew(gathered: Gathered, label: str, name: str, case: Case, found: dict[str, Any]) -> None:
    if name not in _RANGES:
        why = "the panels cover the ranges of three cases only"
        gathered.silent("reimplementation", label, why)
        return
    low, high = _RANGES[name]
    twin = slow.posterior(*case.area_arrays().values(), low=low, high=high)
    values = {"variance's median": twin["variance_median"]}
    values.update({what: twin[what] for what in ("coefficients", "estimate", "mse")})
    if np.isfinite(found["variance's mean"]):
        values["variance's mean"] = twin["variance_mean"]
    # Quantiles by bracketing are taken for a few domains in the tests.
    for what in ("lower", "upper", "variance's mean"):
        if what not in values:
            gathered.values["native all"].pop((label, what), None)
    gathered.say("reimplementation", label, values)


def _hbsae(gathered: Gathered, label: str, name: str, case: Case, plain: PlainR) -> None:
    """hbsae through the bridge and under Rscript."""
    why_not = plain.why_not(SCRIPTS[0])
    known = {} if why_not else _answers(plain.answers(SCRIPTS[0]), name, "hbsae")
    if not why_not and not known:
        why_not = "hbsae is not asked about so few domains: its integral does not exist"
    if why_not:
        gathered.silent("Rscript hbsae", label, why_not)
    else:
        answer = {
            "variance's mean": known["default", "variance_mean"],
            "coefficients": known["default", "coefficient"],
            "estimate": known["default", "estimate"].reindex(case.table["domain"]),
            "mse": known["default", "mse"].reindex(case.table["domain"]),
        }
        gathered.say("Rscript hbsae", label, {n: v.to_numpy() for n, v in answer.items()})
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EngineWarning)
            for mode in ("raw", "guarded"):
                fit = fay_herriot(
                    case.formula, case.table, engine="hbsae", method="bayes", mode=mode
                ).fit
                values = {
                    "variance's mean": fit.model_variance,
                    "coefficients": fit.coefficients,
                    "estimate": fit.estimate,
                    "mse": fit.mse,
                }
                gathered.say(f"hbsae {mode}", label, values)
    except PybridgeError as error:
        for producer in ("hbsae raw", "hbsae guarded"):
            gathered.silent(producer, label, error.message)
