"""Variants of the Fay-Herriot model: native, emdi under Rscript, exact optima, and written anew."""

from __future__ import annotations

from typing import Any

import numpy as np

from pybridge.crosscheck.agreement import AgreementTable, joined
from pybridge.crosscheck.comparer import Pairing
from pybridge.crosscheck.tolerances import RELATIVE, Tolerance
from pybridge.smoothing._area_mse import variance_and_bias
from pybridge.smoothing._back_transformation import squared_sine_moments
from pybridge.smoothing.fay_herriot import fay_herriot
from pybridge.smoothing.fay_herriot_fit import FayHerriotFit
from validation.cases.fay_herriot_variants import NAMES, Variants, load, options_of
from validation.reimplementations import fay_herriot_variants as slow
from validation.suites.gathered import Gathered
from validation.suites.plain_r import KEPT, PlainR

SCRIPTS = ("fay_herriot_emdi.R",)
_TYPES = {"raking": "difference", "ratio": "ratio", "MSE_adj": "mse"}

LED = Tolerance(
    3e-6, RELATIVE, "R's optimize sees the likelihood only, and stops at the root of rounding"
)
FIXED_POINT = Tolerance(
    1e-8, RELATIVE, "saeRobust's iteration stops at a mean change of 1e-13, not at the root"
)
ANEW = Tolerance(1e-9, RELATIVE, "two exact routes: rounding, and where a root finder stops")
DIFFERENCES = Tolerance(
    1e-6, RELATIVE, "second derivatives by differences of five points keep seven digits"
)


def case_names() -> list[str]:
    """Names of all cases of this suite."""
    return [_label(name, setting) for name in NAMES for setting in load(name).settings]


def _label(name: str, setting: str) -> str:
    return f"variants {name} {setting.replace('|', ' ')}"


def scripts(chosen: set[str]) -> tuple[str, ...]:
    """Scripts of r_reference that these cases need."""
    return SCRIPTS


def run(plain: PlainR, chosen: set[str]) -> AgreementTable:
    """All comparisons of the chosen cases."""
    why_not = plain.why_not(SCRIPTS[0])
    reference = "kept" if why_not else "Rscript"
    tables = []
    for name in NAMES:
        case = load(name, KEPT if why_not else plain.answers(SCRIPTS[0]))
        for setting in case.settings:
            label = _label(name, setting)
            if label in chosen:
                tables.append(_compared(case, setting, label, reference))
    return joined(tables)


def _compared(case: Variants, setting: str, label: str, reference: str) -> AgreementTable:
    """The native numbers against everyone who has the same."""
    gathered = Gathered()
    gathered.keys[label] = tuple(case.frame["domain"])
    found = ours(case, setting)
    robust = setting.startswith("reblup")
    method = setting.partition("|")[0]
    emdi = f"{reference} {'saeRobust' if robust else 'emdi'}"
    others = {
        emdi: (emdis(case, setting, found), FIXED_POINT if robust else LED),
        "reimplementation": (anew(case, setting), ANEW),
    }
    if method in case.optima:
        optimum = {"model variance": case.optima[method]}
        others[f"{reference} optimum"] = (optimum, LED)
    gathered.say("native", label, found)
    pairs = []
    for producer, (told, tolerance) in others.items():
        both = {quantity: tolerance for quantity in told if quantity in found}
        if producer == "reimplementation" and "mse" in both:
            both["mse"] = DIFFERENCES
        gathered.say(producer, label, told)
        if both:
            pairs.append(Pairing("native", producer, both))
    if robust and not others[emdi][0]:
        gathered.silent(emdi, label, "saeRobust ends at its floor of 1e-5, where the root is 0")
        pairs.append(Pairing("native", emdi, {"model variance": FIXED_POINT}))
    return gathered.compared(pairs)


# ------------------------------------------------------------------------------------ the answers


def native_fit(case: Variants, setting: str) -> FayHerriotFit:
    """The native fit of what one of emdi's settings asks."""
    words: dict[str, Any] = options_of(case, setting)
    return fay_herriot(case.formula, case.frame, domain="domain", engine="native", **words)


def ours(case: Variants, setting: str) -> dict[str, Any]:
    """The native numbers; of a benchmark the benchmarked means."""
    if setting.startswith("benchmark"):
        fit = fay_herriot(case.formula, case.frame, domain="domain", engine="native", method="ML")
        share = (case.frame["n"] / case.frame["n"].sum()).to_numpy()
        target = 1.02 * float(share @ case.frame["estimate"])
        way = _TYPES[setting.partition("|")[2]]
        found = fit.benchmark(total=target, weights=share, method=way, mse_type="analytical")
        return {"model variance": fit.model_variance, "benchmarked": found.benchmarked}
    fit = native_fit(case, setting)
    numbers: dict[str, Any] = {
        "model variance": fit.model_variance,
        "coefficients": fit.fit.coefficients,
        "estimate": fit.fit.estimate,
        "mse": fit.fit.mse,
    }
    if setting.endswith("|bc"):
        inside = fit.area.sampled
        own = fit.model_variance * (1.0 - fit.fit.shrinkage)
        linear = fit.fit.engine_fit.linear
        numbers["posterior mean"] = squared_sine_moments(linear[inside], own[inside])[0]
    return numbers


def emdis(case: Variants, setting: str, found: dict[str, Any]) -> dict[str, Any]:
    """emdi's numbers, without those that are known to be something else.

    Its MSE outside the sample by ML adds the bias that it should take off, its Slud-Maiti MSE has
    the bias of ML twice, its crude correction is another estimator; its robust MSE of a domain
    kept to its direct estimate depends on where 0 is. Its arcsine correction, bc, is the mean of
    a normal at known coefficients.
    """
    variance = case.answer(setting, "variance")
    if setting.startswith("reblup") and variance[0] <= 1e-5 * (1 + 1e-9):
        return {}  # saeRobust's floor, where the root is 0
    estimate = case.answer(setting, "estimate")
    if setting.startswith("benchmark"):
        return {"benchmarked": estimate}
    told: dict[str, Any] = {"model variance": variance}
    told["coefficients"] = case.answer(setting, "coefficient")
    inside = case.frame["estimate"].notna().to_numpy()
    if setting.endswith("|bc"):
        told["posterior mean"] = estimate[inside]
    elif not setting.endswith("|bc_crude"):
        told["estimate"] = np.where(np.isnan(estimate), found["estimate"], estimate)
    mse = case.answer(setting, "mse")
    if len(mse) and "|bc" not in setting:
        ours_too = np.isnan(mse)
        if setting == "ml":
            ours_too |= ~inside
        if setting.startswith("reblupbc"):
            ours_too |= _kept_back(case, found["estimate"])
        told["mse"] = np.where(ours_too, found["mse"], mse)
    return told


def _kept_back(case: Variants, estimate: np.ndarray) -> np.ndarray:
    reach = np.sqrt(case.frame["variance"].to_numpy())
    apart = np.abs(estimate - case.frame["estimate"].to_numpy())
    return np.asarray(np.isclose(apart, reach, rtol=1e-9))


# ---------------------------------------------------------------------------------- written anew


def anew(case: Variants, setting: str) -> dict[str, Any]:
    """The same by dense matrices, sums over nodes and general root finders, where it is there."""
    method = setting.partition("|")[0]
    inside = case.frame["estimate"].notna().to_numpy()
    z, d = (case.frame[name].to_numpy(dtype=float)[inside] for name in ("estimate", "variance"))
    X = case.covariates[inside]
    if method in ("amrl", "ampl", "amrl_yl", "ampl_yl"):
        return {"model variance": slow.adjusted_variance(z, d, X, method.upper())}
    if method == "reblup" and case.name == "outlying":
        beta, A, _ = slow.robust_fit(z, d, X, float(setting.partition("|")[2]))
        return {"model variance": A, "coefficients": beta}
    if case.name in ("income", "shares"):
        return _back(case, setting)
    return {}


def _back(case: Variants, setting: str) -> dict[str, Any]:
    """Estimates and MSE on the scale of the data, domain by domain, at the native parameters."""
    if setting.endswith(("|naive", "|bc_crude")):
        return {}
    fit = native_fit(case, setting)
    scale, A, X = fit.fit.engine_fit, fit.model_variance, case.covariates
    h = np.einsum("ij,jk,ik->i", X, fit.fit.coefficient_covariance, X)
    d = np.where(np.isnan(scale.direct), np.inf, scale.variance)
    inside = np.isfinite(d)
    if case.name == "shares":
        pairs = [
            slow.arcsin_answer(*each)
            for each in zip(scale.linear, np.full(len(d), A), d, h, scale.mse)
        ]
        estimate, mse = (np.array(side) for side in zip(*pairs))
        return {"estimate": estimate, "mse": mse}
    spare, bias = variance_and_bias(
        weight=1.0 / (A + d[inside]),
        half=np.sqrt(h[inside])[:, None],
        model_variance=A,
        method=fit.spec.method,
    )
    way = "bc_sm"
    mse = [
        slow.log_mse(linear, A, noise, spread, spare, bias, way)
        for linear, noise, spread in zip(scale.linear, d, h)
    ]
    estimate = [
        np.exp(linear + slow.kappa_of(A, noise, spread, way))
        for linear, noise, spread in zip(scale.linear, d, h)
    ]
    return {"estimate": np.array(estimate), "mse": np.array(mse)}
