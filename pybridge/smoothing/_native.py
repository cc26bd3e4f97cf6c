"""Adapter of the native Fay-Herriot engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pybridge.smoothing._area_fit import AreaFit
from pybridge.smoothing._area_model import fit_area_model
from pybridge.smoothing._spec import FayHerriotSpec, refuse_options
from pybridge.tables.area import AreaTable


def complete_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The native engine finds the exact optimum: it has nothing to tune."""
    refuse_options(given, (), engine="native")
    return {}


def fit(table: AreaTable, spec: FayHerriotSpec) -> AreaFit:
    """Fit one checked table."""
    return fit_area_model(
        estimate=table.estimate,
        variance=table.variance,
        covariates=table.covariates,
        method=spec.method,
        level=spec.level,
    )
