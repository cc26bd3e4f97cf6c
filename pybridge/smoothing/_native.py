"""Adapter of the native Fay-Herriot engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from pybridge.smoothing._area_fit import AreaFit
from pybridge.smoothing._area_model import fit_area_model, prepare
from pybridge.smoothing._native_options import area_options, needs_seed, with_sizes
from pybridge.smoothing._spec import FayHerriotSpec
from pybridge.tables.area import AreaTable

__all__ = ["complete_options", "finish_options", "fit", "needs_seed"]


def complete_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The optimum is exact, with nothing to tune: transformations, and the kind of MSE.

    Raises
    ------
    InputError
        Options that are not there, and those that do not go together.
    """
    return area_options(given)


def finish_options(
    options: Mapping[str, Any],
    rows: pd.DataFrame,
    table: AreaTable,
    method: str,
    correlation: str | None,
) -> dict[str, Any]:
    """The options with an array in the table's order for the column that they name."""
    return with_sizes(options, rows, len(table.domains))


def fit(table: AreaTable, spec: FayHerriotSpec) -> AreaFit:
    """Fit one checked table."""
    arrays: dict[str, Any] = {
        "estimate": table.estimate,
        "variance": table.variance,
        "covariates": table.covariates,
        "method": spec.method,
        "level": spec.level,
    }
    n_replicates = int(spec.options.get("B", 0))
    if "transformation" in spec.options:
        found = _transformed(table, spec, arrays, n_replicates)
    else:
        found = fit_area_model(**arrays)
        if n_replicates:
            found = replace(found, mse=_bootstrapped(table, spec, found, n_replicates))
    if not n_replicates:
        return found
    note = f"mean squared errors by parametric bootstrap, {n_replicates} replicates"
    return replace(found, conditions=(*found.conditions, note))


def _transformed(
    table: AreaTable, spec: FayHerriotSpec, arrays: dict[str, Any], n_replicates: int
) -> AreaFit:
    from pybridge.smoothing._transformed import Transformed, check_transformed, fit_transformed

    options = spec.options
    sizes = options.get("eff_smpsize")
    word = options["transformation"]
    check_transformed(
        estimate=table.estimate, domains=table.domains, transformation=word, n_effective=sizes
    )
    asked = Transformed(
        transformation=word,
        backtransformation=options["backtransformation"],
        n_effective=sizes,
        n_replicates=n_replicates,
        seed=int(spec.seed or 0),
    )
    return fit_transformed(asked=asked, **arrays)


def _bootstrapped(table: AreaTable, spec: FayHerriotSpec, found: AreaFit, n_replicates: int) -> Any:
    from pybridge.smoothing._area_bootstrap import Setting, bootstrap_mse

    setting = Setting.of(
        prepare(estimate=table.estimate, variance=table.variance, covariates=table.covariates),
        covariates=table.covariates,
        model_variance=found.model_variance,
        method=spec.method,
    )
    return bootstrap_mse(
        setting,
        n_replicates=n_replicates,
        seed=int(spec.seed or 0),
        corrected=spec.options["mse_type"] == "bootbc",
    )
