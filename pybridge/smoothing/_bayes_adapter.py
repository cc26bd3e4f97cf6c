"""Adapter of the native Bayesian area-level model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pybridge.smoothing._area_fit import AreaFit
from pybridge.smoothing._area_model import area_model_at
from pybridge.smoothing._bayes import fit_area_model_bayes
from pybridge.smoothing._spec import FayHerriotSpec, refuse_options
from pybridge.tables.area import AreaTable


def complete_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The quadrature refines itself: there is nothing to tune."""
    refuse_options(given, (), engine="native")
    return {}


def fit(table: AreaTable, spec: FayHerriotSpec) -> AreaFit:
    """Fit one checked table. ``model_variance`` is the posterior median.

    The likelihoods are those at the posterior median; ``exact`` holds the posterior mean of the
    model variance, NaN where it is infinite.
    """
    arrays: dict[str, Any] = {
        "estimate": table.estimate,
        "variance": table.variance,
        "covariates": table.covariates,
    }
    found = fit_area_model_bayes(**arrays, level=spec.level)
    at = area_model_at(found.model_variance, **arrays, method="ML", level=spec.level)
    return AreaFit(
        engine="native",
        method="bayes",
        level=spec.level,
        model_variance=found.model_variance,
        coefficients=found.coefficients,
        coefficient_covariance=found.coefficient_covariance,
        estimate=found.estimate,
        mse=found.mse,
        shrinkage=found.shrinkage,
        synthetic=found.synthetic,
        derivative=np.where(table.sampled, found.derivative, np.nan),
        log_likelihood=at.log_likelihood,
        restricted_log_likelihood=at.restricted_log_likelihood,
        iterations=0,
        status=found.status,
        engine_status=found.status,
        intervals=np.column_stack([found.lower, found.upper]),
        exact={"model_variance_mean": found.model_variance_mean},
    )
