"""Adapter of the native robust Fay-Herriot model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pybridge.smoothing._area_fit import AreaFit
from pybridge.smoothing._native_options import needs_seed, robust_options
from pybridge.smoothing._robust_fit import Tuning, fit_robust_area_model
from pybridge.smoothing._spec import FayHerriotSpec
from pybridge.tables.area import AreaTable

__all__ = ["complete_options", "fit", "needs_seed"]

_KINDS = {
    "analytical": "over the model, in closed form",
    "pseudo": "by linearisation, the robust weights taken as fixed",
    "boot": "by parametric bootstrap",
}


def complete_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Huber's ``k``, ``mult_constant`` of the bias correction, ``mse_type`` and ``B``."""
    return robust_options(given)


def fit(table: AreaTable, spec: FayHerriotSpec) -> AreaFit:
    """Fit one checked table."""
    options = spec.options
    found = fit_robust_area_model(
        estimate=table.estimate,
        variance=table.variance,
        covariates=table.covariates,
        method=spec.method,
        tuning=Tuning(options["k"], options["mult_constant"]),
        level=spec.level,
        kind=options["mse_type"],
        n_replicates=int(options.get("B", 0)),
        seed=int(spec.seed or 0),
    )
    return replace(found, conditions=(f"mean squared errors {_KINDS[options['mse_type']]}",))
