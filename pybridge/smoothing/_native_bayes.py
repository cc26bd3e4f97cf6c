"""Adapter of the native Bayesian area-level model: the same record from its posterior."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pybridge.smoothing._area_fit import AreaFit, area_fit_of
from pybridge.smoothing._bayes import fit_area_model_bayes
from pybridge.smoothing._spec import FayHerriotSpec, refuse_options
from pybridge.tables.area import AreaTable


def complete_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The quadrature has nothing to tune and the flat priors nothing to choose."""
    refuse_options(given, (), engine="native")
    return {}


def fit(table: AreaTable, spec: FayHerriotSpec) -> AreaFit:
    """Fit one checked table; ``mse`` is the posterior variance, intervals are quantiles."""
    found = fit_area_model_bayes(
        estimate=table.estimate,
        variance=table.variance,
        covariates=table.covariates,
        level=spec.level,
    )
    return area_fit_of(
        found,
        engine="native",
        method=spec.method,
        level=spec.level,
        engine_status="converged",
        intervals=np.column_stack([found.lower, found.upper]),
        criteria={"model_variance_mean": found.model_variance_mean},
    )
