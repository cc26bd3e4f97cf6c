"""Adapter of R's sae: domain effects correlated with their neighbours, by sae::mseSFH.

The call, its guards and the exact optimum are those of ``pb.engines.sae.mseSFH``; here its answer
takes the form of every other fit: what sae does not return (weights, the covariance of the
coefficients, the synthetic part) is computed at its parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import listed
from pybridge.engines import _engine_request as requests
from pybridge.engines._sae_input import area_input
from pybridge.engines._sae_likelihood import (
    AreaData,
    eblup_weights,
    proximity,
    spatial_likelihoods,
)
from pybridge.engines._sae_record import SaeFit
from pybridge.engines._engine_request import EngineRequest
from pybridge.engines._sae_spatial import TIGHT, mseSFH
from pybridge.errors import InputError
from pybridge.smoothing._area_fit import AreaFit
from pybridge.smoothing._spec import FayHerriotSpec, refuse_options
from pybridge.tables.area import AreaTable


def complete_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """sae's own options with its own defaults, and a time limit for the call."""
    refuse_options(given, ("MAXITER", "PRECISION", "time_limit"), engine="sae")
    return {
        "MAXITER": requests.iterations(given.get("MAXITER", 100)),
        "PRECISION": requests.precision(given.get("PRECISION", 1e-4)),
        "time_limit": given.get("time_limit"),
    }


def fit(table: AreaTable, spec: FayHerriotSpec) -> AreaFit:
    """Fit one checked table.

    Raises
    ------
    InputError
        Domains without a direct estimate: sae does not predict them.
    EngineError
        Where R stops with an error, in raw mode.
    """
    _refuse_outside(table)
    frame, formula = _as_frame(table)
    w = spec.proximity
    # In guarded mode the matrix is in the table's order already, and labelled by it.
    labels = np.arange(len(frame))
    matrix = w if spec.mode == "raw" else pd.DataFrame(w, index=labels, columns=labels)
    found = mseSFH(
        frame,
        formula,
        "variance",
        matrix,
        method=spec.method,
        domain="row",
        level=spec.level,
        mode=spec.mode,
        **spec.options,
    )
    return _area_fit(found, table, spec)


def call_of(
    table: AreaTable, spec: FayHerriotSpec, exact: Mapping[str, Any]
) -> tuple[EngineRequest, dict[str, Any]]:
    """What was asked of sae, and its inputs, to ask again or to write a script.

    Domains without a direct estimate, which sae is not given, are left out; ``exact`` tells of a
    tighter asking.
    """
    options: dict[str, Any] = {"method": spec.method, **spec.options}
    time_limit = options.pop("time_limit")
    if "as_given" in exact:
        options.update(TIGHT)
    frame, formula = _as_frame(table)
    frame = frame[table.sampled].reset_index(drop=True)
    arguments: dict[str, Any] = {"formula": formula, "vardir": "variance", **options}
    if spec.correlation is not None:
        arguments["proxmat"] = "proxmat"
    function = "mseFH" if spec.correlation is None else "mseSFH"
    asked = EngineRequest(function, arguments, spec.mode, spec.level, spec.seed, time_limit)
    inputs = area_input(frame, formula, "variance", domain="row", asked=asked).for_r()
    names = {f"x{j + 1}": str(name) for j, name in enumerate(table.covariate_names)}
    return asked, {**inputs, "proxmat": spec.proximity, "options": options, "columns": names}


def _refuse_outside(table: AreaTable) -> None:
    outside = ~table.sampled
    if outside.any():
        raise InputError(
            "sae has no spatial prediction for domains without a direct estimate",
            code="out_of_sample",
            field="area",
            expected="a direct estimate in every domain",
            got=f"missing in {listed(table.domains[outside])}",
            hint="Drop them and cut the proximity matrix, or use engine='emdi'; without "
            "correlation engine='native' predicts them.",
        )


def _as_frame(table: AreaTable) -> tuple[pd.DataFrame, str]:
    """The design matrix as columns, and a formula that gives it back."""
    p = table.covariates.shape[1]
    frame = pd.DataFrame({"row": np.arange(len(table.estimate)), "estimate": table.estimate})
    frame["variance"] = table.variance
    for j in range(p):
        frame[f"x{j + 1}"] = table.covariates[:, j]
    return frame, "estimate ~ " + " + ".join(f"x{j + 1}" for j in range(p)) + " - 1"


def _area_fit(found: SaeFit, table: AreaTable, spec: FayHerriotSpec) -> AreaFit:
    usable = len(found.coefficients) and abs(found.spatial_correlation) < 1.0
    return area_fit_of(found, table, spec, _at(found, table, spec) if usable else {})


def area_fit_of(
    found: SaeFit, table: AreaTable, spec: FayHerriotSpec, at: Mapping[str, Any]
) -> AreaFit:
    """sae's record in the form of every other fit.

    Parameters
    ----------
    at : mapping
        What was computed at sae's parameters: ``covariance``, ``shrinkage``, ``derivative`` and
        ``restricted``; what is not there is NaN.
    """
    m, p = table.covariates.shape
    nothing = np.full(m, np.nan)
    beta = np.array(found.coefficients["estimate"])
    exact = dict(found.exact)
    if found.as_given:
        exact["as_given"] = dict(found.as_given)
    return AreaFit(
        engine="sae",
        method=spec.method,
        level=spec.level,
        model_variance=found.model_variance,
        coefficients=beta if len(beta) else np.full(p, np.nan),
        coefficient_covariance=at.get("covariance", np.full((p, p), np.nan)),
        estimate=found.estimate,
        mse=found.mse,
        shrinkage=at.get("shrinkage", nothing),
        synthetic=table.covariates @ beta if len(beta) else nothing,
        derivative=at.get("derivative", nothing),
        log_likelihood=found.log_likelihood,
        restricted_log_likelihood=at.get("restricted", np.nan),
        iterations=found.iterations,
        status=found.status,
        engine_status=found.engine_status,
        criteria=found.criteria,
        exact=exact,
        conditions=found.conditions,
        versions={"R": str(found.provenance.r), **found.provenance.packages},
        correlation=found.spatial_correlation,
    )


def _at(found: SaeFit, table: AreaTable, spec: FayHerriotSpec) -> dict[str, Any]:
    """Weights, covariance and restricted likelihood at sae's parameters."""
    data = AreaData(table.estimate, table.variance, table.covariates)
    w = proximity(np.asarray(spec.proximity))
    parameters = (found.model_variance, found.spatial_correlation)
    at = spatial_likelihoods(data, w, *parameters)
    shrinkage, derivative = eblup_weights(data, w, *parameters)
    return {
        "covariance": at.covariance,
        "shrinkage": shrinkage,
        "derivative": derivative,
        "restricted": at.restricted,
    }
