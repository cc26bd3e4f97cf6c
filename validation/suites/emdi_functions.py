"""emdi::fh in every legal combination: the bridge and Rscript, and the exact optima."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd

import pybridge as pb
from pybridge.crosscheck.agreement import AgreementTable
from pybridge.crosscheck.comparer import Pairing
from pybridge.crosscheck.tolerances import DENSE_SEARCH, IDENTICAL, relative
from pybridge.engines._emdi_legal import combinations
from pybridge.errors import PybridgeError, PybridgeWarning
from validation.cases.emdi import EmdiCase, load, name_of
from validation.suites.gathered import Gathered
from validation.suites.plain_r import KEPT, PlainR

SCRIPTS = ("emdi_fh.R",)
_NAMES = {
    "variance": "model variance",
    "correlation": "correlation",
    "coefficient": "coefficients",
    "standard_error": "coefficient errors",
    "estimate": "estimate",
    "mse": "mse",
    "criterion": "criteria",
}
_IDENTICAL = dict.fromkeys(_NAMES.values(), IDENTICAL)
_OPTIMA = {"optimum": relative(DENSE_SEARCH)}


def _label(combination: dict[str, Any]) -> str:
    words = [word for word in name_of(combination).split("|") if word and word != "no"]
    return "emdi fh " + " ".join(words)


def case_names() -> list[str]:
    """Names of all cases of this suite."""
    return [_label(one) for one in combinations()]


def scripts(chosen: set[str]) -> tuple[str, ...]:
    """Scripts of r_reference that these cases need."""
    return SCRIPTS


def run(plain: PlainR, chosen: set[str]) -> AgreementTable:
    """All comparisons of the chosen cases."""
    gathered = Gathered()
    why_not = plain.why_not(SCRIPTS[0])
    reference = "kept" if why_not else "Rscript"
    case = load(KEPT if why_not else plain.answers(SCRIPTS[0]))
    optima = case.answers[~case.answers["combination"].str.contains("|", regex=False)]
    for one in combinations():
        label = _label(one)
        if label not in chosen:
            continue
        if why_not:
            gathered.silent("Rscript", label, why_not)
        else:
            gathered.say("Rscript", label, _known(case, name_of(one)))
        _bridge(gathered, label, case, one)
        if not one["MSE"] and one["transformation"] == "no":
            _optimum(gathered, label, case, one, optima, reference)
    pairs = [
        Pairing("bridge raw", "Rscript", _IDENTICAL),
        Pairing("found beside emdi", f"{reference} optimum", _OPTIMA),
    ]
    return gathered.compared(pairs)


def _known(case: EmdiCase, name: str) -> dict[str, np.ndarray]:
    found = {ours: case.answer(name, theirs) for theirs, ours in _NAMES.items()}
    return {name: value for name, value in found.items() if value.size}


def _fit(case: EmdiCase, one: dict[str, Any], mode: str) -> Any:
    words = {**case.words(one), "mode": mode}
    if mode == "raw" and words["corMatrix"] is not None:
        words["corMatrix"] = words["corMatrix"].to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PybridgeWarning)
        return pb.engines.emdi.fh(**words)


def _bridge(gathered: Gathered, label: str, case: EmdiCase, one: dict[str, Any]) -> None:
    if one["method"].startswith("reblup") and one["correlation"] == "spatial":
        why = "robust spatial fits take a minute (tests/live_r compares them)"
        gathered.silent("bridge raw", label, why)
        return
    try:
        fit = _fit(case, one, "raw")
    except PybridgeError as error:
        gathered.silent("bridge raw", label, error.message)
        return
    found = {
        "model variance": np.atleast_1d(fit.model_variance),
        "coefficients": fit.coefficients,
        "coefficient errors": fit.standard_errors,
        "estimate": fit.estimate,
    }
    if one["correlation"] == "spatial":
        found["correlation"] = np.atleast_1d(fit.spatial_correlation)
    if one["MSE"]:
        found["mse"] = fit.mse
    if fit.criteria:
        found["criteria"] = np.array(list(fit.criteria.values()))
    gathered.say("bridge raw", label, found)


def _optimum(
    gathered: Gathered,
    label: str,
    case: EmdiCase,
    one: dict[str, Any],
    optima: pd.DataFrame,
    reference: str,
) -> None:
    """The optimum that a guarded fit has beside emdi's answer, and that of plain R."""
    name = f"spatial {one['method']}" if one["correlation"] == "spatial" else one["method"]
    rows = optima[optima["combination"] == name]
    if rows.empty:
        return
    quantities = ["variance", "correlation"] if "spatial" in name else ["variance"]
    known = np.concatenate([rows.loc[rows["quantity"] == q, "value"] for q in quantities])
    gathered.say(f"{reference} optimum", label, {"optimum": known})
    try:
        exact = _fit(case, one, "guarded").exact
    except PybridgeError as error:
        gathered.silent("found beside emdi", label, error.message)
        return
    found = [exact["model_variance"]]
    if "spatial" in name:
        found.append(exact["spatial_correlation"])
    gathered.say("found beside emdi", label, {"optimum": np.array(found)})
