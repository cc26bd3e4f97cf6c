"""The generalised Pareto distribution: evd and ismev through the bridge and under Rscript."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from pybridge.crosscheck.agreement import AgreementTable
from pybridge.crosscheck.comparer import Pairing
from pybridge.crosscheck.tail import TAIL, quantities, units_of
from pybridge.crosscheck.tolerances import (
    EXACT,
    EXACT_LOG_LIKELIHOOD,
    GOLDEN_SECTION,
    IDENTICAL,
    LAST_BITS,
    NUMERICAL_DERIVATIVES,
    likelihood,
    relative,
)
from pybridge.errors import EngineWarning, PybridgeError
from pybridge.tails.generalized_pareto import generalized_pareto
from pybridge.tails.records import ParetoFit
from validation.cases.gpd import answers, cases, scores
from validation.reimplementations import generalized_pareto as slow
from validation.suites.gathered import Gathered
from validation.suites.plain_r import PlainR

ENGINES = ("evd", "ismev")
SCRIPTS = ("gpd_exact.R", "gpd_evd.R", "gpd_ismev.R")

_EXACTLY = {
    "shape": EXACT,
    "scale": EXACT,
    "log-likelihood": EXACT_LOG_LIKELIHOOD,
    "standard errors": relative(EXACT),
}
_SLOWLY = {
    "shape": GOLDEN_SECTION,
    "scale": GOLDEN_SECTION,
    "log-likelihood": likelihood(GOLDEN_SECTION, 1e-7),
    "standard errors": NUMERICAL_DERIVATIVES,
}
_IDENTICAL = {
    "shape": IDENTICAL,
    "scale": IDENTICAL,
    "log-likelihood": IDENTICAL,
    "standard errors": LAST_BITS,
}


def _label(name: str, threshold: float) -> str:
    return f"tail {name} over {threshold:g}"


def scripts(chosen: set[str]) -> tuple[str, ...]:
    """Scripts of r_reference that these cases need."""
    return SCRIPTS


def case_names() -> list[str]:
    """Names of all cases of this suite."""
    return [_label(name, threshold) for name, threshold in cases()]


def pairings(reference: str) -> list[Pairing]:
    """Who is held against whom; ``reference`` is who answers for plain R."""
    pairs = []
    for engine in ENGINES:
        pairs += [
            Pairing(f"{engine} raw", f"Rscript {engine}", _IDENTICAL),
            Pairing(f"{engine} guarded", f"r_script() {engine}", _IDENTICAL),
            Pairing(f"{engine} guarded", "native", TAIL["guarded"]),
        ]
    return [
        *pairs,
        Pairing("native", f"{reference} exact", _EXACTLY),
        Pairing("reimplementation", "native", _SLOWLY),
    ]


def run(plain: PlainR, chosen: set[str]) -> AgreementTable:
    """All comparisons of the chosen cases."""
    gathered = Gathered()
    reference, folder = plain.reference("gpd_exact.R")
    guarded: dict[tuple[str, str], ParetoFit] = {}
    for name, threshold in cases():
        label = _label(name, threshold)
        if label not in chosen:
            continue
        x = scores(name)
        exact = generalized_pareto(x, threshold=threshold, engine="native")
        gathered.say("native", label, quantities(exact))
        for what, unit in units_of(exact).items():
            gathered.units[label, what] = unit
        known = answers(name, "R", folder)[threshold, "exact"]
        gathered.say(f"{reference} exact", label, _named(known))
        gathered.say("reimplementation", label, _anew(exact.excesses))
        for engine in ENGINES:
            fit = _bridge(gathered, label, x, threshold, engine)
            if fit is not None:
                guarded[label, engine] = fit
            _plain(gathered, plain, label, name, threshold, engine)
    _own_scripts(gathered, guarded, plain)
    return gathered.compared(pairings(reference))


def _named(found: dict[str, float]) -> dict[str, Any]:
    """R's answers in our words."""
    errors = np.array([found.get("scale_se", np.nan), found.get("shape_se", np.nan)])
    return {
        "shape": found["shape"],
        "scale": found["scale"],
        "log-likelihood": -found["nllh"],
        "standard errors": errors,
    }


def _anew(excesses: np.ndarray) -> dict[str, Any]:
    shape, scale, value = slow.fit(excesses)
    covariance = np.linalg.inv(slow.information(excesses, shape, scale))
    return {
        "shape": shape,
        "scale": scale,
        "log-likelihood": value,
        "standard errors": np.sqrt(covariance.diagonal()),
    }


def _bridge(
    gathered: Gathered, label: str, x: np.ndarray, threshold: float, engine: str
) -> ParetoFit | None:
    """The fit of an engine in both modes; the guarded one, where it has numbers."""
    producers = (f"{engine} raw", f"{engine} guarded", f"r_script() {engine}")
    fits = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EngineWarning)
            for mode in ("raw", "guarded"):
                fits.append(generalized_pareto(x, threshold=threshold, engine=engine, mode=mode))
    except PybridgeError as error:
        for producer in producers:
            gathered.silent(producer, label, error.message)
        return None
    for producer, fit in zip(producers, fits):
        if np.isfinite(fit.shape):
            gathered.say(producer, label, quantities(fit))
        else:
            gathered.silent(producer, label, f"{engine} gave no number: {fit.status}")
    if np.isfinite(fits[1].shape):
        return fits[1]
    gathered.silent(producers[2], label, f"{engine} gave no number: {fits[1].status}")
    return None


def _plain(
    gathered: Gathered, plain: PlainR, label: str, name: str, threshold: float, engine: str
) -> None:
    """The plain call of R's function under Rscript."""
    producer, script = f"Rscript {engine}", f"gpd_{engine}.R"
    why_not = plain.why_not(script)
    found = {} if why_not else answers(name, engine, plain.answers(script))[threshold, "default"]
    if why_not or "error" in found:
        gathered.silent(producer, label, why_not or f"{engine} stops with an error there too")
        return
    values = _named(found)
    if (label, "standard errors") not in gathered.values.get(f"{engine} raw", {}):
        del values["standard errors"]  # withheld by the record, which says why
    gathered.say(producer, label, values)


def _own_scripts(gathered: Gathered, fits: dict[tuple[str, str], ParetoFit], plain: PlainR) -> None:
    """The guarded fits' own scripts, all in one R."""
    if not fits:
        return
    texts = {
        f"{k}": fit.r_script() + f'show_bits("r{k}", result)\n'
        for k, fit in enumerate(fits.values())
    }
    shown, why_not = plain.bits(texts)
    for k, ((label, engine), fit) in enumerate(fits.items()):
        producer = f"r_script() {engine}"
        if why_not:
            gathered.silent(producer, label, why_not)
            continue
        scale, shape, scale_error, shape_error, negative = shown[f"r{k}"]
        found = {"shape": shape, "scale": scale, "log-likelihood": -negative}
        if np.isfinite(fit.shape_standard_error):
            found["standard errors"] = np.array([scale_error, shape_error])
        gathered.say(producer, label, found)
