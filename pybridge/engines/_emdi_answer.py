"""The record of one answer of emdi::fh."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from pybridge.engines._emdi_exact import mean_squared_errors
from pybridge.engines._emdi_guard import Verdict, judge
from pybridge.engines._emdi_record import EmdiFit, normal_intervals
from pybridge.engines._emdi_request import FhRequest
from pybridge.engines._emdi_units import transformed
from pybridge.errors import EngineError
from pybridge.provenance import provenance
from pybridge.r import Reply, r_stopped

_COUNTING = re.compile(r"\s*(b|domain) ?= ?\d+\s*")


def said(reply: Reply) -> tuple[str, ...]:
    """R's own words; a bootstrap's count of its replicates left out."""
    lines = []
    for kind, texts in (("warning", reply.warnings), ("message", reply.messages)):
        for text in dict.fromkeys(texts):
            if not _COUNTING.fullmatch(text):
                lines.append(f"R {kind}: {' '.join(text.split())}")
    lines += [f"R printed: {text}" for text in dict.fromkeys(reply.printed) if text.strip()]
    if reply.error is not None:
        lines.append(f"R error: {' '.join(str(reply.error['message']).split())}")
    return tuple(lines)


def record(request: FhRequest, reply: Reply) -> EmdiFit:
    """The record of one answer.

    Raises
    ------
    EngineError
        Where R stopped, in raw mode.
    """
    words = said(reply)
    if reply.error is not None:
        if not request.guarded:
            raise r_stopped("emdi::fh", reply)
        return _failed(request, reply, words)
    value = reply.value
    _same_domains(request, value)
    parts = _numbers(request, value)
    verdict = judge(request, value, words, estimate=parts["estimate"], mse=parts["mse"])
    return _assembled(request, reply, parts, verdict)


def _same_domains(request: FhRequest, value: Mapping[str, Any]) -> None:
    asked = [str(label) for label in request.domains]
    if request.arguments["domains"] is not None and list(value["domain"]) != asked:
        raise EngineError(
            "emdi returned the domains in another order",
            code="misaligned_ids",
            field="domains",
            expected="the rows of the table",
            got="another order",
        )


def _numbers(request: FhRequest, value: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Arrays (m,) in R's order of rows."""
    m, inside = len(request.domains), request.sampled
    x, beta = request.covariates, np.asarray(value["coefficients"])
    if request.covariates_unit is None:
        mean = x @ beta
    else:
        mean = (x / request.covariates_unit) @ (beta * request.covariates_unit)
    mean[inside] = value["fitted"]
    effect = _spread(value["random_effects"], inside, m)
    linear = np.where(inside, mean + effect, mean)
    gamma = np.full(m, np.nan)
    if value["gamma"] is not None:
        gamma = np.where(inside, quiet(value["gamma"]), 0.0)
    return {
        "estimate": quiet(value["estimate"]),
        "mse": np.full(m, np.nan) if value["mse"] is None else quiet(value["mse"]),
        "shrinkage": gamma,
        "synthetic": _back(request, mean),
        "linear": linear,
        "random_effects": effect,
        "residuals": _spread(value["real_residuals"], inside, m),
        "standardised_residuals": _spread(value["std_real_residuals"], inside, m),
    }


def quiet(values: Any) -> np.ndarray:
    """A copy in which R's NA, whose bits are those of a signalling NaN, is a plain NaN."""
    found = np.array(values, dtype=np.float64)
    found[np.isnan(found)] = np.nan
    return found


def _spread(values: Any, inside: np.ndarray, m: int) -> np.ndarray:
    found = np.full(m, np.nan)
    found[inside] = values
    return found


def _back(request: FhRequest, values: np.ndarray) -> np.ndarray:
    """From the model's scale to the estimates', monotone and without correction."""
    if request.transformation == "log":
        return np.exp(values)
    if request.transformation == "arcsin":
        return np.sin(np.clip(values, 0.0, np.pi / 2)) ** 2
    if request.transformation == "logit":
        return 0.5 * (1.0 + np.tanh(0.5 * values))
    return np.array(values)


def _intervals(request: FhRequest, parts: Mapping[str, np.ndarray], variance: float) -> np.ndarray:
    if request.transformation == "no":
        return normal_intervals(parts["estimate"], parts["mse"], request.level)
    d = np.full(len(request.domains), np.nan)
    d[request.sampled] = transformed(request)[1]
    mse = mean_squared_errors(
        model_variance=variance,
        variance=d,
        covariates=request.covariates,
        sampled=request.sampled,
        method=request.method,
    )
    ends = normal_intervals(parts["linear"], mse, request.level)
    return _back(request, ends)


def _assembled(
    request: FhRequest, reply: Reply, parts: Mapping[str, np.ndarray], verdict: Verdict
) -> EmdiFit:
    value = reply.value
    variance = float(value["variance"][0])
    place = np.argsort(request.order)
    ends = _intervals(request, parts, variance)
    criteria = dict(zip(value["criteria_names"] or [], map(float, value["criteria"])))
    correlation = value["correlation"]
    return EmdiFit(
        request=request,
        domains=request.domains[place],
        direct=request.estimate[place],
        direct_variance=request.variance[place],
        intervals=ends[place],
        **{name: array[place] for name, array in parts.items()},
        coefficients=np.array(value["coefficients"]),
        standard_errors=np.array(value["std_error"]),
        statistics=np.array(value["t_value"]),
        p_values=np.array(value["p_value"]),
        coefficient_covariance=np.array(value["beta_vcov"]),
        model_variance=variance,
        spatial_correlation=np.nan if correlation is None else float(correlation[0]),
        criteria=criteria,
        mse_method=str(value["mse_method"][0]),
        replicates=verdict.replicates,
        replaced={
            name: quiet(array[place] if array.shape == place.shape else array)
            for name, array in verdict.replaced.items()
        },
        exact=verdict.exact,
        status=verdict.status,
        engine_status=verdict.engine_status,
        conditions=verdict.conditions,
        provenance=_provenance(request, reply),
    )


def _failed(request: FhRequest, reply: Reply, words: tuple[str, ...]) -> EmdiFit:
    """NaN wherever a number would stand."""
    m, p = request.covariates.shape
    nothing, none = np.full(m, np.nan), np.full(p, np.nan)
    place = np.argsort(request.order)
    return EmdiFit(
        request=request,
        domains=request.domains[place],
        direct=request.estimate[place],
        direct_variance=request.variance[place],
        estimate=nothing,
        mse=nothing,
        shrinkage=nothing,
        synthetic=nothing,
        linear=nothing,
        intervals=np.full((m, 2), np.nan),
        coefficients=none,
        standard_errors=none,
        statistics=none,
        p_values=none,
        coefficient_covariance=np.full((p, p), np.nan),
        random_effects=nothing,
        residuals=nothing,
        standardised_residuals=nothing,
        model_variance=np.nan,
        spatial_correlation=np.nan,
        criteria={},
        mse_method="no mse estimated",
        replicates=None,
        replaced={},
        exact={},
        status="failed",
        engine_status="error",
        conditions=(*request.remarks, *words),
        provenance=_provenance(request, reply),
    )


def _provenance(request: FhRequest, reply: Reply) -> Any:
    options = {
        name: value for name, value in request.arguments.items() if name not in ("method", "seed")
    }
    return provenance(
        "emdi",
        request.method,
        options={"fixed": request.fixed, "mode": request.mode, "unit": request.unit, **options},
        seed=request.arguments["seed"],
        versions=reply.versions,
    )
