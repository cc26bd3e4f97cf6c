"""Adapter of R's emdi: area-level models by emdi::fh, with all its options.

The call, its guards and the exact optimum are those of ``pb.engines.emdi.fh``, whose record is kept
in the fit; here its answer takes the form of every other fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import numeric_column
from pybridge._options import check_level, choose
from pybridge.engines import _emdi_fit as emdi
from pybridge.engines._emdi_exact import LIKELIHOODS, evaluate, sampled
from pybridge.engines._emdi_input import assemble, plain_column
from pybridge.engines._emdi_legal import METHODS, MSE_TYPES, TRANSFORMATIONS, check_combination
from pybridge.engines._emdi_matrices import error_array
from pybridge.engines._emdi_record import EmdiFit
from pybridge.engines._emdi_request import DEFAULT_SEED, DEFAULTS, FhRequest
from pybridge.engines._emdi_request import check_arguments, draws
from pybridge.engines._r_formula import read_formula
from pybridge.engines._sae_likelihood import AreaData
from pybridge.engines._sae_likelihood import eblup_weights, proximity, spatial_likelihoods
from pybridge.errors import InputError
from pybridge.smoothing._area_fit import AreaFit, AreaProblem
from pybridge.smoothing._area_model import prepare
from pybridge.smoothing._batches import numbered_table
from pybridge.smoothing._spec import FayHerriotSpec, refuse_options
from pybridge.tables.area import AreaTable

_OWN = ("method", "correlation", "seed")
_DATA = ("eff_smpsize", "Ci", "time_limit")


def complete_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """emdi's own options with its own defaults, but for MSE, which is True here.

    Without ``mse_type`` the first one that goes with the model is taken.

    Raises
    ------
    InputError
        Names that emdi does not have.
    """
    allowed = tuple(name for name in DEFAULTS if name not in _OWN) + _DATA
    refuse_options(given, allowed, engine="emdi")
    options = {name: value for name, value in DEFAULTS.items() if name not in _OWN}
    options.update(MSE=True, mse_type=None, eff_smpsize=None, Ci=None, time_limit=None)
    options.update(given)
    if options["mse_type"] is not None:
        choose("mse_type", options["mse_type"], MSE_TYPES)
    return options


def finish_options(
    options: Mapping[str, Any],
    rows: pd.DataFrame,
    table: AreaTable,
    method: str,
    correlation: str | None,
) -> dict[str, Any]:
    """The options with arrays in the table's order for what they name, and the kind of MSE.

    Raises
    ------
    InputError
        Combinations that emdi does not have, before anything is looked up.
    """
    found = dict(options)
    found["mse_type"] = _mse_type(found, method, correlation)
    if isinstance(found["eff_smpsize"], str):
        name = found["eff_smpsize"]
        found["eff_smpsize"] = numeric_column(rows, name, field="eff_smpsize", missing=True)
    if found["Ci"] is not None:
        p = table.covariates.shape[1]
        found["Ci"] = error_array(found["Ci"], domains=table.domains, n_coefficients=p, wanted=True)
    return found


def default_seed(options: Mapping[str, Any]) -> int | None:
    """emdi's own seed, where these options draw random numbers."""
    return DEFAULT_SEED if draws(options) else None


def _mse_type(options: Mapping[str, Any], method: str, correlation: str | None) -> str:
    """What was asked for, or the first kind that goes with the model."""
    legal = check_combination(
        method=method,
        transformation=choose("transformation", options["transformation"], TRANSFORMATIONS),
        backtransformation=options["backtransformation"],
        correlation=correlation or "no",
        mse_type=options["mse_type"] if options["MSE"] else None,
    )
    return options["mse_type"] or legal.mse_types[0]


def fit(table: AreaTable, spec: FayHerriotSpec) -> AreaFit:
    """Fit one checked table; R's warnings become Python's.

    Raises
    ------
    InputError
        Combinations that emdi does not have; too many domains.
    EngineError
        Where R stops with an error, in raw mode; a guarded fit has the status ``failed``.
    """
    return area_fit(emdi.fit(request_of(table, spec), stacklevel=3), table)


def fit_many(
    problems: Sequence[AreaProblem],
    *,
    method: str = "reml",
    level: float = 0.95,
    mode: str = "guarded",
    workers: int = 1,
    return_errors: bool = False,
    **engine_options: Any,
) -> list[Any]:
    """Fit several problems in one round trip to R, for refits in cross-validation.

    Parameters and answers are as those of sae's: an AreaFit for each problem, or with
    ``return_errors`` the InputError of one that cannot be fitted. Models with a transformation,
    errors of covariates or correlated effects need a table, and are not fitted here.
    """
    spec = FayHerriotSpec(
        engine="emdi",
        method=choose("method", method.lower(), METHODS),
        mode=choose("mode", mode, ("guarded", "raw")),
        level=check_level(level),
        options=complete_options(engine_options),
    )
    tables = [numbered_table(problem) for problem in problems]
    asked: list[Any] = []
    for k, table in enumerate(tables):
        try:
            prepare(estimate=table.estimate, variance=table.variance, covariates=table.covariates)
            asked.append(request_of(table, spec))
        except InputError as error:
            asked.append(InputError(f"problem {k}: {error.message}", **error.facts()))
    errors = [item for item in asked if isinstance(item, InputError)]
    if errors and not return_errors:
        raise errors[0]
    good = [k for k, item in enumerate(asked) if isinstance(item, FhRequest)]
    if good:
        for k, found in zip(good, emdi.fit_many([asked[k] for k in good], workers=workers)):
            asked[k] = area_fit(found, tables[k])
    return asked


def request_of(table: AreaTable, spec: FayHerriotSpec) -> FhRequest:
    """The request for emdi::fh, whose formula gives the table's design matrix back."""
    options = dict(spec.options)
    data = {name: options.pop(name) for name in _DATA}
    options["mse_type"] = _mse_type(options, spec.method, spec.correlation)
    correlation = spec.correlation or "no"
    seed = DEFAULT_SEED if spec.seed is None else spec.seed
    arguments = check_arguments(
        {**options, "method": spec.method, "correlation": correlation, "seed": seed}
    )
    frame, formula, roles = _frame(table, data["eff_smpsize"])
    read = read_formula(formula, frame, also=tuple(role for role in roles.values() if role))
    labels = table.domains
    columns = {
        name: plain_column(frame[column], labels if column == roles["domains"] else None)
        for column, name in read.names.items()
    }
    found = assemble(
        read=read,
        columns=columns,
        domains=labels,
        estimate=table.estimate,
        variance=table.variance,
        n_effective=data["eff_smpsize"],
        covariates=table.covariates,
        covariate_names=table.covariate_names,
        cor_matrix=_matrix(table, spec),
        errors=data["Ci"],
        arguments={
            **arguments,
            **{role: column and read.names[column] for role, column in roles.items()},
        },
        settings={"mode": spec.mode, "level": spec.level, "time_limit": data["time_limit"]},
    )
    return replace(found, fixed=table.formula)


def _matrix(table: AreaTable, spec: FayHerriotSpec) -> Any:
    """W as emdi's function takes it: in guarded mode in the table's order, hence labelled so."""
    if spec.proximity is None or spec.mode == "raw":
        return spec.proximity
    return pd.DataFrame(spec.proximity, index=table.domains, columns=table.domains)


def _frame(
    table: AreaTable, n_effective: np.ndarray | None
) -> tuple[pd.DataFrame, str, dict[str, str | None]]:
    """Columns for R, the formula over them, and which is which."""
    taken = {table.outcome, table.variance_name, table.domain_name}
    columns: dict[str, Any] = {
        table.outcome: table.estimate,
        table.variance_name: table.variance,
        table.domain_name: np.array([str(label) for label in table.domains], dtype=object),
    }
    roles: dict[str, str | None] = {
        "vardir": table.variance_name,
        "domains": table.domain_name,
        "eff_smpsize": None,
    }
    if n_effective is not None:
        roles["eff_smpsize"] = _unused("n_effective", taken)
        columns[str(roles["eff_smpsize"])] = n_effective
    first = table.covariate_names[0] == "Intercept" and (table.covariates[:, 0] == 1.0).all()
    terms = []
    for j, name in enumerate(table.covariate_names):
        if j == 0 and first:
            continue
        terms.append(_unused(name.replace("`", "'"), taken))
        columns[terms[-1]] = table.covariates[:, j]
    right = " + ".join(["1" if first else "0", *(f"`{term}`" for term in terms)])
    return pd.DataFrame(columns), f"`{table.outcome}` ~ {right}", roles


def _unused(name: str, taken: set[str]) -> str:
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}.{number}"
    taken.add(found)
    return found


def area_fit(found: EmdiFit, table: AreaTable) -> AreaFit:
    """The record in the form of every other fit; what emdi does not return is computed."""
    request = found.request
    shrinkage, derivative, restricted = found.shrinkage, np.full(len(table.domains), np.nan), np.nan
    if found.status != "failed" and request.transformation == "no":
        if request.spatial:
            shrinkage, derivative, restricted = _spatial(found, request)
        elif request.method in LIKELIHOODS:
            derivative, restricted = _independent(found, request, table)
    return AreaFit(
        engine="emdi",
        method=request.method,
        level=request.level,
        model_variance=found.model_variance,
        coefficients=found.coefficients,
        coefficient_covariance=found.coefficient_covariance,
        estimate=found.estimate,
        mse=found.mse,
        shrinkage=shrinkage,
        synthetic=found.synthetic,
        derivative=derivative,
        log_likelihood=float(found.criteria.get("loglike", np.nan)),
        restricted_log_likelihood=restricted,
        iterations=0,
        status=found.status,
        engine_status=found.engine_status,
        intervals=found.intervals,
        criteria=found.criteria,
        exact={**found.exact, **({"replaced": found.replaced} if found.replaced else {})},
        conditions=found.conditions,
        versions={"R": str(found.provenance.r), **found.provenance.packages},
        correlation=found.spatial_correlation if request.spatial else None,
        engine_fit=found,
    )


def _independent(found: EmdiFit, request: FhRequest, table: AreaTable) -> tuple[np.ndarray, float]:
    """∂ EBLUP / ∂ own estimate (m,), and the restricted log-likelihood."""
    inside = table.sampled
    a, d, x = found.model_variance, table.variance[inside], table.covariates[inside]
    derivative = np.full(len(inside), np.nan)
    gamma = found.shrinkage[inside]
    leverage = np.einsum("ij,jk,ik->i", x, found.coefficient_covariance, x) / (a + d)
    derivative[inside] = gamma + (1.0 - gamma) * leverage
    problem = sampled(estimate=table.estimate[inside], variance=d, covariates=x)
    return derivative, evaluate(problem, a, request.method)[0].restricted_log_likelihood


def _spatial(found: EmdiFit, request: FhRequest) -> tuple[np.ndarray, np.ndarray, float]:
    """The domains' own weights, ∂ EBLUP / ∂ own estimate (m,), the restricted log-likelihood."""
    inside = request.sampled
    m, rho = len(inside), found.spatial_correlation
    shrinkage, derivative = np.zeros(m), np.full(m, np.nan)
    if abs(rho) >= 1.0 or request.method not in LIKELIHOODS:
        return np.full(m, np.nan), derivative, np.nan
    data = AreaData(request.estimate[inside], request.variance[inside], request.covariates[inside])
    w = proximity(np.asarray(request.proximity))
    shrinkage[inside], derivative[inside] = eblup_weights(data, w, found.model_variance, rho)
    return (
        shrinkage,
        derivative,
        spatial_likelihoods(data, w, found.model_variance, rho).restricted,
    )
