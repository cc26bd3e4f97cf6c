"""The taxonomy model: metafor and JAGS, plain R's dense matrices, native, and written anew."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pybridge.crosscheck.agreement import AgreementTable, joined
from pybridge.crosscheck.comparer import Pairing
from pybridge.crosscheck.taxonomy import METAFOR_TAXONOMY, variance_errors
from pybridge.crosscheck.tolerances import (
    DENSE_SEARCH,
    IDENTICAL,
    MONTE_CARLO_ERRORS,
    NEVER_ABOVE,
    QUADRATURE,
    likelihood,
    relative,
)
from pybridge.errors import EngineWarning, PybridgeError
from pybridge.smoothing._taxonomy import fit_taxonomy_bayes
from pybridge.smoothing.taxonomy import taxonomy_model
from validation.cases.taxonomy import TAXONOMY_NAMES, Case, load_taxonomy
from validation.reimplementations import taxonomy as slow
from validation.suites.gathered import Gathered
from validation.suites.plain_r import KEPT, PlainR

SCRIPTS = ("taxonomy_metafor.R",)
METHODS = ("REML", "ML", "bayes")
# The reimplementation's dense search takes minutes on three levels.
_ANEW = ("cross63", "flat34", "groups34", "milk")

_R_NAMES = {
    "variance": "variances",
    "coefficient": "coefficients",
    "log_likelihood": "maximum",
    "eblup": "estimate",
}
_SEARCHED = {
    "variances": DENSE_SEARCH,
    "coefficients": DENSE_SEARCH,
    "estimate": DENSE_SEARCH,
    "maximum": likelihood(DENSE_SEARCH, 1e-8),
}
# Boxes of the log variances that hold the posterior, and the nodes a level.
_BOXES = {"groups34": [(-6.0, 7.0), (-6.0, 3.5)]}
_GRID = 80
_ON_GRID = {
    "estimate": QUADRATURE,
    "mse": relative(QUADRATURE, 2e-6),
    "medians": relative(QUADRATURE, 2e-5),
}
_SAMPLED = ("estimate", "estimate_sd", "coefficient", "variance_median")


def _label(name: str, method: str) -> str:
    return f"taxonomy {name} {method}"


def case_names() -> list[str]:
    """Names of all cases of this suite."""
    return [_label(name, method) for method in METHODS for name in TAXONOMY_NAMES]


def scripts(chosen: set[str]) -> tuple[str, ...]:
    """Scripts of r_reference that these cases need."""
    return SCRIPTS if any(not name.endswith("bayes") for name in chosen) else ()


def run(plain: PlainR, chosen: set[str]) -> AgreementTable:
    """All comparisons of the chosen cases."""
    tables = [_by_likelihood(plain, chosen, method) for method in METHODS[:2]]
    return joined([*tables, _by_sampling(chosen), _by_grid(chosen)])


# ------------------------------------------------------------------------------------- likelihood


def pairings(reference: str) -> list[Pairing]:
    """Who is held against whom; ``reference`` is who answers for plain R."""
    names = ("variances", "coefficients", "maximum")
    return [
        Pairing("metafor bridge", "Rscript metafor", dict.fromkeys(names, IDENTICAL)),
        Pairing("metafor sound", "native labelled", METAFOR_TAXONOMY),
        Pairing("metafor bridge", "native", {"highest": NEVER_ABOVE}),
        Pairing("native", f"{reference} dense", _SEARCHED),
        Pairing("reimplementation", "native", {n: _SEARCHED[n] for n in ("variances", "maximum")}),
    ]


def _by_likelihood(plain: PlainR, chosen: set[str], method: str) -> AgreementTable:
    gathered = Gathered()
    named = [name for name in TAXONOMY_NAMES if _label(name, method) in chosen]
    reference, folder = plain.reference(SCRIPTS[0]) if named else ("kept", KEPT)
    for name in named:
        label = _label(name, method)
        case = load_taxonomy(name)
        fit = _model(case, engine="native", method=method)
        found = _numbers(fit, method)
        gathered.keys[label] = tuple(case.table["domain"])
        gathered.units[label, "variances"] = variance_errors(fit)
        gathered.units[label, "coefficients"] = np.sqrt(
            fit.numbers.coefficient_covariance.diagonal()
        )
        gathered.units[label, "estimate"] = np.sqrt(fit.numbers.mse)
        gathered.say("native", label, {**found, "highest": found["maximum"]})
        gathered.say("native labelled", label, found)
        known = _answers(folder, name, "stats", method)
        gathered.say(f"{reference} dense", label, known)
        _anew(gathered, label, name, case, method)
        _metafor(gathered, label, name, case, method, plain)
    return gathered.compared(pairings(reference))


def _model(case: Case, **words: Any) -> Any:
    return taxonomy_model(case.formula, case.table, levels=case.levels, **words)


def _numbers(fit: Any, method: str) -> dict[str, Any]:
    numbers = fit.numbers
    height = numbers.restricted_log_likelihood if method == "REML" else numbers.log_likelihood
    return {
        "variances": numbers.model_variances,
        "coefficients": numbers.coefficients,
        "estimate": numbers.estimate,
        "maximum": height,
    }


def _answers(folder: Path, name: str, engine: str, setting: str) -> dict[str, np.ndarray]:
    table = pd.read_csv(folder / f"taxonomy_{name}__{engine}.csv", float_precision="round_trip")
    rows = table[table["setting"] == setting]
    return {
        ours: rows.loc[rows["quantity"] == theirs, "value"].to_numpy()
        for theirs, ours in _R_NAMES.items()
    }


def _anew(gathered: Gathered, label: str, name: str, case: Case, method: str) -> None:
    if name not in _ANEW:
        gathered.silent("reimplementation", label, "its dense search takes minutes here")
        return
    z, d, x, codes = case.arrays().values()
    reml = method == "REML"
    variances = slow.likelihood_fit(z, d, x, codes, reml=reml)
    same = slow.incidence(codes)
    height = slow.log_likelihood(variances[None], z, d, x, same, reml=reml)[0]
    gathered.say("reimplementation", label, {"variances": variances, "maximum": height})


def _metafor(
    gathered: Gathered, label: str, name: str, case: Case, method: str, plain: PlainR
) -> None:
    """metafor through the bridge and under Rscript."""
    why_not = plain.why_not(SCRIPTS[0])
    if why_not:
        gathered.silent("Rscript metafor", label, why_not)
    else:
        known = _answers(plain.answers(SCRIPTS[0]), name, "metafor", f"{method} default")
        del known["estimate"]
        gathered.say("Rscript metafor", label, known)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EngineWarning)
            fit = _model(case, engine="metafor", method=method)
    except PybridgeError as error:
        for producer in ("metafor bridge", "metafor sound"):
            gathered.silent(producer, label, error.message)
        return
    found = _numbers(fit, method)
    del found["estimate"]
    gathered.say("metafor bridge", label, {**found, "highest": found["maximum"]})
    if fit.status == "not_converged":
        why = "metafor stopped short, and the status says so"
        gathered.silent("metafor sound", label, why)
    else:
        gathered.say("metafor sound", label, _numbers(fit, method))


# --------------------------------------------------------------------------------------- sampling


def _by_sampling(chosen: set[str]) -> AgreementTable:
    """JAGS's kept answers with the native quadrature, in Monte Carlo errors."""
    gathered = Gathered()
    for name in TAXONOMY_NAMES:
        label = _label(name, "bayes")
        if label not in chosen:
            continue
        case = load_taxonomy(name)
        fit = fit_taxonomy_bayes(**case.arrays())
        ours = (fit.estimate, np.sqrt(fit.mse), fit.coefficients, fit.model_variances)
        gathered.say("native", label, dict(zip(_SAMPLED, ours)))
        known = {what: case.answer("rjags", "default", what) for what in _SAMPLED}
        if known["estimate"].empty:
            gathered.silent("kept rjags", label, "r_reference has no answer of JAGS to this case")
            continue
        gathered.say("kept rjags", label, {what: v.to_numpy() for what, v in known.items()})
        for what in _SAMPLED:
            error = case.answer("rjags", "default", f"{what}_error")
            gathered.units[label, what] = error.to_numpy()
    tolerances = dict.fromkeys(_SAMPLED, MONTE_CARLO_ERRORS)
    return gathered.compared([Pairing("native", "kept rjags", tolerances)])


def _by_grid(chosen: set[str]) -> AgreementTable:
    """The native posterior with the reimplementation's tensor grid, where that is small enough."""
    gathered = Gathered()
    for name, box in _BOXES.items():
        label = _label(name, "bayes")
        if label not in chosen:
            continue
        case = load_taxonomy(name)
        fit = fit_taxonomy_bayes(**case.arrays())
        shape, scale = fit.prior.arrays(len(box))
        twin = slow.posterior(
            *case.arrays().values(), shape=shape, scale=scale, box=box, nodes=_GRID, domains=()
        )
        ours = {"estimate": fit.estimate, "mse": fit.mse, "medians": fit.model_variances}
        theirs = {"estimate": twin["estimate"], "mse": twin["mse"]}
        gathered.say("native", label, ours)
        gathered.say("reimplementation", label, {**theirs, "medians": twin["variance_medians"]})
        gathered.units[label, "estimate"] = np.sqrt(fit.mse)
    return gathered.compared([Pairing("reimplementation", "native", _ON_GRID)])
