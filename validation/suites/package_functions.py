"""Functions of survey, hbsae, metafor and rjags: the bridge, Rscript, and written anew."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pybridge.crosscheck.agreement import AgreementTable, joined
from pybridge.crosscheck.comparer import Pairing
from pybridge.crosscheck.tolerances import (
    DENSE_SEARCH,
    IDENTICAL,
    MONTE_CARLO_ERRORS,
    QUADRATURE,
    RELATIVE,
    TWO_ROUTES,
    Tolerance,
    likelihood,
    relative,
)
from pybridge.errors import PybridgeError, PybridgeWarning
from validation.cases import package_functions as cases
from validation.suites.gathered import Gathered
from validation.suites.plain_r import PlainR

PACKAGES = ("survey", "hbsae", "metafor", "rjags")
_IDENTICAL = (
    *("estimate", "error", "covariance", "weight", "mse", "coefficient", "effect", "variance"),
    *("coefficient_error", "lower", "log_likelihood", "QE", "fitted", "sigma2", "effect1"),
    *("effect2", "tau2", "rho", "mean", "deviation", "upper"),
)
_SURVEY = ("estimate", "error", "covariance", "weight")
# Derived from what JAGS drew in sums of their own order.
_DRAWS = ("r_hat", "effective_size", "monte_carlo_error")
_ANEW = {
    "estimate": TWO_ROUTES,
    "error": TWO_ROUTES,
    "covariance": TWO_ROUTES,
    "weight": TWO_ROUTES,
    "sigma2": DENSE_SEARCH,
    "coefficient": DENSE_SEARCH,
    "log_likelihood": likelihood(DENSE_SEARCH, 1e-7),
    "mean": MONTE_CARLO_ERRORS,
    "deviation": relative(MONTE_CARLO_ERRORS, 0.05),
}
# Weights and coefficients that R iterates for: it stops at a relative gap of 1e-7 in the totals,
# and in glm() at 1e-8 in the deviance, with the covariance at the weights of the step before.
_ITERATED = {
    "raked": Tolerance(1e-6, RELATIVE, "R's raking stops at a gap of 1e-7 in the totals"),
    "logit": Tolerance(1e-4, RELATIVE, "R's glm stops at 1e-8 in the deviance, one step late"),
}
_BY_INTEGRALS = {"mean": relative(QUADRATURE), "deviation": relative(QUADRATURE)}


def _label(package: str, call: str) -> str:
    return f"{package} {call}"


def case_names() -> list[str]:
    """Names of all cases of this suite."""
    return [_label(package, call) for package in PACKAGES for call in cases.CALLS[package]]


def scripts(chosen: set[str]) -> tuple[str, ...]:
    """Scripts of r_reference that these cases need."""
    return tuple(f"{p}_functions.R" for p in PACKAGES if _chosen(p, chosen))


def _chosen(package: str, chosen: set[str]) -> list[str]:
    return [call for call in cases.CALLS[package] if _label(package, call) in chosen]


def pairings(reference: str, package: str = "", call: str = "") -> list[Pairing]:
    """Who is held against whom; ``reference`` is who answers for plain R."""
    exact = {**dict.fromkeys(_IDENTICAL, IDENTICAL), **dict.fromkeys(_DRAWS, TWO_ROUTES)}
    anew = _ANEW
    if call in _ITERATED:
        anew = dict.fromkeys(_SURVEY, _ITERATED[call])
    pairs = [
        Pairing("bridge raw", "Rscript", exact),
        Pairing("reimplementation", reference, anew),
    ]
    if package == "rjags":
        pairs.append(Pairing("reimplementation", f"{reference} integrate", _BY_INTEGRALS))
    return pairs


def run(plain: PlainR, chosen: set[str]) -> AgreementTable:
    """All comparisons of the chosen cases."""
    tables = []
    for package in PACKAGES:
        wanted = _chosen(package, chosen)
        if wanted:
            tables.append(_of_package(plain, package, wanted))
    return joined(tables)


def _of_package(plain: PlainR, package: str, wanted: list[str]) -> AgreementTable:
    script = f"{package}_functions.R"
    reference, folder = plain.reference(script)
    why_not = plain.why_not(script)
    tables = []
    for call in wanted:
        gathered, label = Gathered(), _label(package, call)
        known = _answers(folder, package, call)
        gathered.say(reference, label, known)
        if package == "rjags":
            found = _answers(folder, package, call, engine="stats")
            gathered.say(f"{reference} integrate", label, found)
        if why_not:
            gathered.silent("Rscript", label, why_not)
        _bridge(gathered, label, cases.CALLS[package][call])
        _anew(gathered, label, package, call, known)
        tables.append(gathered.compared(pairings(reference, package, call)))
    return joined(tables)


def _answers(
    folder: Path, package: str, call: str, *, engine: str | None = None
) -> dict[str, np.ndarray]:
    """R's answers to one call, by quantity."""
    path = folder / f"{package}_functions__{engine or package}.csv"
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    table = table[table["call"] == call]
    if package == "rjags":  # of the mean, by simulation
        table = table.replace({"quantity": {"error": "monte_carlo_error"}})
    return {
        str(quantity): np.array([float(text) if text else np.nan for text in rows["value"]])
        for quantity, rows in table.groupby("quantity", sort=False)
    }


def _bridge(gathered: Gathered, label: str, ask: Callable[[], dict[str, Any]]) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PybridgeWarning)
            found = ask()
    except PybridgeError as error:
        gathered.silent("bridge raw", label, error.message)
        return
    gathered.say("bridge raw", label, {k: np.asarray(v, dtype=float) for k, v in found.items()})


def _anew(
    gathered: Gathered, label: str, package: str, call: str, known: dict[str, np.ndarray]
) -> None:
    """The reimplementation, with the scales of its comparison."""
    written = cases.ANEW[package].get(call)
    if written is None:
        gathered.silent("reimplementation", label, cases.WHY_NOT[package])
        return
    gathered.say("reimplementation", label, written())
    if "error" in known and "covariance" in known:
        error = np.maximum(known["error"], 1e-12 * np.abs(known["estimate"]).max())
        gathered.units[label, "covariance"] = np.outer(error, error).ravel()
        gathered.units[label, "error"] = error
        gathered.units[label, "estimate"] = np.maximum(np.abs(known["estimate"]), error)
    if "coefficient_error" in known:
        gathered.units[label, "coefficient"] = known["coefficient_error"]
    if "sigma2" in known:
        gathered.units[label, "sigma2"] = np.maximum(known["sigma2"], 0.01)
    if package == "rjags":
        gathered.units[label, "mean"] = known["monte_carlo_error"]
