"""The Fay-Herriot model: sae through the bridge, sae under Rscript, native, and written anew."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from pybridge.crosscheck.agreement import AgreementTable, joined
from pybridge.crosscheck.area import SAE_AREA, SAE_AREA_TIGHT, quantities, units_of
from pybridge.crosscheck.comparer import Pairing
from pybridge.crosscheck.tolerances import (
    EXACT,
    EXACT_LOG_LIKELIHOOD,
    IDENTICAL,
    NEVER_ABOVE,
    relative,
)
from pybridge.errors import EngineWarning, PybridgeError
from pybridge.smoothing.fay_herriot import fay_herriot
from pybridge.smoothing.fay_herriot_fit import FayHerriotFit
from validation.cases.fay_herriot import NAMES, Case, load
from validation.reimplementations import fay_herriot as slow
from validation.suites.gathered import Gathered
from validation.suites.plain_r import PlainR

SCRIPTS = ("fay_herriot_sae.R",)
METHODS = ("REML", "ML", "FH", "PR")
# sae and the optimum lie this share of the variance apart where sae went somewhere else.
_ELSEWHERE = 1e-2

_R_NAMES = {
    "model_variance": "model variance",
    "coefficient": "coefficients",
    "coefficient_se": "coefficient errors",
    "estimate": "estimate",
    "mse": "mse",
    "loglike": "log-likelihood",
    "restricted": "restricted log-likelihood",
}
_SAE = ("model variance", "coefficients", "estimate", "mse", "log-likelihood")
_SCRIPTED = ("model variance", "coefficients", "estimate", "mse")
_ATTAINED, _HIGHEST = "maximum attained", "maximum"
_MAXIMISED = {"REML": "restricted log-likelihood", "ML": "log-likelihood"}

_EXACTLY = {
    "model variance": EXACT,
    "coefficients": EXACT,
    "coefficient errors": relative(EXACT),
    "estimate": EXACT,
    "mse": relative(EXACT),
    "log-likelihood": EXACT_LOG_LIKELIHOOD,
    "restricted log-likelihood": EXACT_LOG_LIKELIHOOD,
}
_IDENTICAL = dict.fromkeys(_SAE, IDENTICAL)


def pairings(reference: str, method: str) -> list[Pairing]:
    """Who is held against whom; ``reference`` is who answers for plain R."""
    exact = [
        Pairing("native", f"{reference} exact", _EXACTLY),
        Pairing("reimplementation", "native", _EXACTLY),
    ]
    if method == "PR":  # sae has no such method
        return exact
    return [
        Pairing("bridge raw", "Rscript", _IDENTICAL),
        Pairing("bridge guarded", "r_script()", dict.fromkeys(_SCRIPTED, IDENTICAL)),
        Pairing("bridge sae", "native", SAE_AREA),
        Pairing("bridge guarded", "native", {_HIGHEST: NEVER_ABOVE}),
        Pairing(f"{reference} tight", "native", {n: SAE_AREA_TIGHT[n] for n in _SAE}),
        *exact,
    ]


def scripts(chosen: set[str]) -> tuple[str, ...]:
    """Scripts of r_reference that these cases need."""
    return SCRIPTS


def case_names() -> list[str]:
    """Names of all cases of this suite."""
    return [f"Fay-Herriot {name} {method}" for name in NAMES for method in METHODS]


def run(plain: PlainR, chosen: set[str]) -> AgreementTable:
    """All comparisons of the chosen cases."""
    return joined(_run_method(plain, chosen, method) for method in METHODS)


def _run_method(plain: PlainR, chosen: set[str], method: str) -> AgreementTable:
    reference, folder = plain.reference(SCRIPTS[0])
    gathered = Gathered()
    guarded: dict[str, FayHerriotFit] = {}
    for name in NAMES:
        label = f"Fay-Herriot {name} {method}"
        if label not in chosen:
            continue
        case = load(name, folder)
        gathered.keys[label] = case.domains
        _native(gathered, label, case, method)
        _reimplementation(gathered, label, case, method)
        _plain(gathered, label, case, method, reference, plain.why_not(SCRIPTS[0]))
        fit = None if method == "PR" else _bridge(gathered, label, case, method)
        if fit is not None:
            guarded[label] = fit
    if guarded:
        _own_scripts(gathered, guarded, plain)
    return gathered.compared(pairings(reference, method))


def _native(gathered: Gathered, label: str, case: Case, method: str) -> None:
    fit = fay_herriot(case.formula, case.frame(), engine="native", method=method)
    found = quantities(fit.fit)
    found["coefficient errors"] = np.sqrt(fit.fit.coefficient_covariance.diagonal())
    found["restricted log-likelihood"] = fit.restricted_log_likelihood
    gathered.say("native", label, found)
    for name, unit in units_of(fit.fit, fit.area).items():
        gathered.units[label, name] = unit
    if method in _MAXIMISED:
        height = found[_MAXIMISED[method]]
        gathered.say("native", label, {_ATTAINED: height, _HIGHEST: height})


def _reimplementation(gathered: Gathered, label: str, case: Case, method: str) -> None:
    twin = slow.fit(case.estimate, case.variance, case.covariates, method)
    found = {
        "model variance": twin.model_variance,
        "coefficients": twin.coefficients,
        "coefficient errors": np.sqrt(twin.coefficient_covariance.diagonal()),
        "estimate": twin.estimate,
        "mse": twin.mse,
        "log-likelihood": twin.log_likelihood,
        "restricted log-likelihood": twin.restricted_log_likelihood,
    }
    gathered.say("reimplementation", label, found)


def _plain(
    gathered: Gathered, label: str, case: Case, method: str, reference: str, why_not: str
) -> None:
    """R's answers: the plain call, the one with a tight PRECISION, and the exact optimum."""

    def of(setting: str) -> dict[str, Any]:
        found = {ours: case.answer(method, setting, name) for name, ours in _R_NAMES.items()}
        return {name: value for name, value in found.items() if value.size}

    exact = of("exact")
    gathered.say(f"{reference} exact", label, exact)
    if method == "PR":  # sae has none: nothing to be compared with it
        return
    if why_not:
        gathered.silent("Rscript", label, why_not)
    else:
        plain_call = of("default")
        gathered.say("Rscript", label, {n: v for n, v in plain_call.items() if n in _SAE})
        if not plain_call:
            gathered.silent("Rscript", label, "sae did not converge and returned NA")
    tight = of("tight")
    best = float(exact["model variance"][0])
    there = float(tight["model variance"][0]) if tight else np.nan
    if not tight:
        gathered.silent(f"{reference} tight", label, "sae did not converge")
    elif abs(there - best) > _ELSEWHERE * max(there, best):
        why = f"sae ends at {there:.4g}, the optimum of plain R is {best:.4g}"
        gathered.silent(f"{reference} tight", label, why)
    else:
        gathered.say(f"{reference} tight", label, {n: tight[n] for n in _SAE})


def _bridge(gathered: Gathered, label: str, case: Case, method: str) -> FayHerriotFit | None:
    """sae through the bridge, raw and guarded; the guarded fit."""
    everyone = ("bridge raw", "bridge guarded", "bridge sae", "r_script()")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EngineWarning)
            raw, guarded = (
                fay_herriot(case.formula, case.frame(), method=method, mode=mode)
                for mode in ("raw", "guarded")
            )
    except PybridgeError as error:
        for producer in everyone:
            gathered.silent(producer, label, error.message)
        return None
    for producer, fit in zip(everyone, (raw, guarded)):
        if np.isfinite(fit.model_variance):
            gathered.say(producer, label, quantities(fit.fit))
        else:
            gathered.silent(producer, label, f"sae gave no number: {fit.status}")
    if guarded.status == "not_converged":
        # Its own record says that the numbers, where there are any, are not those of the optimum.
        gathered.silent("bridge sae", label, "sae stopped short, and the status says so")
    else:
        gathered.say("bridge sae", label, quantities(guarded.fit))
    if method in _MAXIMISED and np.isfinite(guarded.model_variance):
        height = guarded.exact[_MAXIMISED[method].replace("-", "_").replace(" ", "_")]
        attained = height - guarded.exact["shortfall"]
        gathered.say("bridge guarded", label, {_HIGHEST: attained})
        if guarded.status != "not_converged":
            gathered.say("bridge sae", label, {_ATTAINED: attained})
    return guarded


def _own_scripts(gathered: Gathered, fits: dict[str, FayHerriotFit], plain: PlainR) -> None:
    """The guarded fits' own scripts, all in one R."""
    texts = {}
    for k, (label, fit) in enumerate(fits.items()):
        show = {"v": "refvar", "b": "beta", "e": "result$estimate", "m": "result$mse"}
        texts[label] = fit.r_script() + "".join(
            f'show_bits("{letter}{k}", {what})\n' for letter, what in show.items()
        )
    shown, why_not = plain.bits(texts)
    for k, label in enumerate(fits):
        found = {name: shown.get(f"{letter}{k}") for name, letter in zip(_SCRIPTED, "vbem")}
        if why_not or found["coefficients"] is None or np.isnan(found["model variance"]).any():
            gathered.silent("r_script()", label, why_not or "sae gave no number there either")
        else:
            gathered.say("r_script()", label, found)
