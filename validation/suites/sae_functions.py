"""sae's other functions (spatial, over time, of units, of designs): the bridge and Rscript."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import pybridge as pb
from pybridge.crosscheck.agreement import AgreementTable
from pybridge.crosscheck.comparer import Pairing
from pybridge.crosscheck.tolerances import IDENTICAL
from pybridge.errors import PybridgeError, PybridgeWarning
from validation.cases.sae import inputs, proximity
from validation.suites.gathered import Gathered
from validation.suites.plain_r import PlainR

# file of answers -> its script
FILES = {
    "spatial_grapes": "sae_spatial.R",
    "spatial_ring": "sae_spatial.R",
    "spatial_negative": "sae_spatial.R",
    "spatial_spacetime": "sae_spatial.R",
    "unit_cornsoybean": "sae_unit.R",
    "direct_income": "sae_direct.R",
}
_TIGHT = {"MAXITER": 1000, "PRECISION": 1e-12}
_NAMES = {
    "estimate": "estimate",
    "coefficient": "coefficients",
    "coefficient_se": "coefficient errors",
    "mse": "mse",
    "mse_corrected": "mse corrected",
    "refvar": "model variance",
    "errorvar": "error variance",
    "loglike": "log-likelihood",
    "model_variance": "model variance",
    "spatial_correlation": "correlation",
    "component": "components",
    "component_se": "component errors",
    "Direct": "estimate",
    "SD": "standard errors",
    "PsSynthetic": "estimate",
    "ssd": "estimate",
    "CompWeight": "weights",
}
_IDENTICAL = dict.fromkeys(_NAMES.values(), IDENTICAL)


def _calls() -> dict[tuple[str, str, str], Callable[[], Any]]:
    """The calls of the scripts, in raw mode: (file, call, setting) -> record."""
    sae = pb.engines.sae
    found: dict[tuple[str, str, str], Callable[[], Any]] = {}
    for name, formula in {
        "grapes": "y ~ x1 + x2 - 1",
        "ring": "y ~ x",
        "negative": "y ~ x",
    }.items():
        file = f"spatial_{name}"
        for method in ("REML", "ML"):
            words = {"formula": formula, "method": method}
            found[file, "mseSFH", method] = partial(_spatial, sae.mseSFH, file, **words)
            found[file, "eblupSFH", f"{method} tight"] = partial(
                _spatial, sae.eblupSFH, file, **words, **_TIGHT
            )
    for call in ("pbmseSFH", "npbmseSFH"):
        found["spatial_ring", call, "REML"] = partial(
            _spatial, getattr(sae, call), "spatial_ring", formula="y ~ x", B=5, seed=3
        )
    for model in ("S", "ST"):
        words = {"formula": "y ~ x1 + x2", "model": model, "D": 11, "T": 3}
        file = "spatial_spacetime"
        found[file, "pbmseSTFH", model] = partial(
            _spatial, sae.pbmseSTFH, file, size=11, B=5, seed=3, **words
        )
        found[file, "eblupSTFH", f"{model} tight"] = partial(
            _spatial, sae.eblupSTFH, file, size=11, **words, **_TIGHT
        )
    return {**found, **_unit_calls(sae), **_direct_calls(sae)}


def _spatial(function: Any, name: str, *, size: int | None = None, **words: Any) -> Any:
    table = inputs(name)
    matrix = proximity(name, size or len(table))
    formula = words.pop("formula")
    return function(table, formula, "d", matrix, mode="raw", **words)


def _unit_calls(sae: Any) -> dict[tuple[str, str, str], Callable[[], Any]]:
    file = "unit_cornsoybean"
    found: dict[tuple[str, str, str], Callable[[], Any]] = {
        (file, "eblupBHF", f"corn {method}"): partial(_units, sae.eblupBHF, "corn", method=method)
        for method in ("REML", "ML")
    }
    found[file, "eblupBHF", "soybeans ML"] = partial(
        _units, sae.eblupBHF, "soybeans", method="ML", selectdom=[10, 1, 5]
    )
    found[file, "pbmseBHF", "corn REML"] = partial(_units, sae.pbmseBHF, "corn", B=5, seed=3)
    return found


def _units(function: Any, outcome: str, **words: Any) -> Any:
    segments, counties = inputs("unit_segments"), inputs("unit_counties")
    if outcome == "corn":
        segments = segments.drop(index=32)
    means = counties[["county", "corn_pixels", "soybean_pixels"]]
    sizes = counties[["county", "segments"]]
    formula = f"{outcome} ~ corn_pixels + soybean_pixels"
    return function(segments, formula, "county", means, sizes, mode="raw", **words)


@lru_cache(maxsize=1)
def _persons() -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    sizes = pb.datasets.from_r("sae", "sizeprov")[["provlab", "Nd"]]
    strata = pb.datasets.from_r("sae", "sizeprovedu").drop(columns="prov")
    strata.columns = ["provlab", "0", "1", "2", "3"]
    return pb.datasets.incomedata(), sizes, strata


def _direct_calls(sae: Any) -> dict[tuple[str, str, str], Callable[[], Any]]:
    file = "direct_income"

    def direct(**words: Any) -> Any:
        persons, sizes, _ = _persons()
        sized = {} if words.get("replace") and not words.get("sweight") else {"domsize": sizes}
        return sae.direct(persons, "income", "provlab", mode="raw", **sized, **words)

    def synthetic() -> Any:
        persons, _, strata = _persons()
        return sae.pssynt(persons, "income", "weight", "educ", strata, domain="provlab", mode="raw")

    def composite(delta: float) -> Any:
        persons, sizes, _ = _persons()
        both = direct(sweight="weight"), synthetic()
        words = {"delta": delta, "mode": "raw"}
        return sae.ssd(persons, "provlab", "weight", sizes, *both, **words)

    return {
        (file, "direct", "weights"): partial(direct, sweight="weight"),
        (file, "direct", "simple"): direct,
        (file, "direct", "weights_replacement"): partial(direct, sweight="weight", replace=True),
        (file, "direct", "simple_replacement"): partial(direct, replace=True),
        (file, "pssynt", "education"): synthetic,
        (file, "ssd", "delta 1"): partial(composite, 1.0),
        (file, "ssd", "delta 1.5"): partial(composite, 1.5),
    }


def _label(file: str, call: str, setting: str) -> str:
    return f"sae {call} {file.partition('_')[2]} {setting}"


def case_names() -> list[str]:
    """Names of all cases of this suite."""
    return [_label(*key) for key in _calls()]


def scripts(chosen: set[str]) -> tuple[str, ...]:
    """Scripts of r_reference that these cases need."""
    return tuple(dict.fromkeys(FILES[key[0]] for key in _calls() if _label(*key) in chosen))


def run(plain: PlainR, chosen: set[str]) -> AgreementTable:
    """All comparisons of the chosen cases."""
    gathered = Gathered()
    for key, ask in _calls().items():
        label = _label(*key)
        if label not in chosen:
            continue
        why_not = plain.why_not(FILES[key[0]])
        known = {} if why_not else _known(plain.answers(FILES[key[0]]), *key)
        if why_not:
            gathered.silent("Rscript", label, why_not)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PybridgeWarning)
                record = ask()
        except PybridgeError as error:
            gathered.silent("bridge raw", label, error.message)
            gathered.say("Rscript", label, known)
            continue
        gathered.say("Rscript", label, known)
        found = {name: value for name, value in _values(record, key[1]).items() if value.size}
        gathered.say("bridge raw", label, found)
    return gathered.compared([Pairing("bridge raw", "Rscript", _IDENTICAL)])


def _known(folder: Path, file: str, call: str, setting: str) -> dict[str, np.ndarray]:
    """R's answers to one call, in our words."""
    text = {name: str for name in ("call", "setting", "quantity", "key", "value")}
    table = pd.read_csv(folder / f"sae_{file}__sae.csv", dtype=text, keep_default_na=False)
    table = table[(table["call"] == call) & (table["setting"] == setting)]
    found: dict[str, np.ndarray] = {}
    for quantity, rows in table.groupby("quantity", sort=False):
        if quantity in _NAMES:
            numbers = [float(word) if word else np.nan for word in rows["value"]]
            found[_NAMES[quantity]] = np.array(numbers)
    return found


def _values(record: Any, call: str) -> dict[str, np.ndarray]:
    """The bridge's numbers of the same call."""
    value = record.value
    if call in ("direct", "pssynt", "ssd"):
        return {_NAMES[name]: np.array(value[name]) for name in value if name in _NAMES}
    coefficients = record.coefficients
    found = {"estimate": record.estimate, "coefficients": coefficients["estimate"].to_numpy()}
    if call.endswith("BHF"):
        found["model variance"] = np.atleast_1d(record.model_variance)
        found["error variance"] = np.atleast_1d(record.error_variance)
    else:
        found["coefficient errors"] = coefficients["standard_error"].to_numpy()
        parameters = record.parameters
        if "sigma21" in parameters:
            found["components"] = np.array(list(parameters.values()))
            found["component errors"] = record.components["standard_error"].to_numpy()
        else:
            found["model variance"] = np.atleast_1d(parameters["model_variance"])
            found["correlation"] = np.atleast_1d(parameters["spatial_correlation"])
    found["log-likelihood"] = np.atleast_1d(record.log_likelihood)
    if not call.startswith("eblup"):
        found["mse"] = record.mse
        corrected = getattr(record, "mse_corrected", None)
        if corrected is not None:
            found["mse corrected"] = corrected
    return {name: np.asarray(numbers, dtype=float) for name, numbers in found.items()}
