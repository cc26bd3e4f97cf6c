"""A Fay-Herriot fit by every engine that has its method, beside the exact optimum."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from pybridge.crosscheck.agreement import AgreementTable
from pybridge.crosscheck.asking import ask_all
from pybridge.crosscheck.comparer import Answers, Pairing, compare_producers
from pybridge.crosscheck.fits import EngineAnswer, FitCrosscheck
from pybridge.crosscheck.one_level import ask_metafor
from pybridge.crosscheck.tolerances import (
    EMDI,
    EMDI_RAW,
    HBSAE,
    HBSAE_COEFFICIENTS,
    METAFOR,
    METAFOR_SHORTFALL,
    SAE,
    SAE_LOG_LIKELIHOOD,
    SAE_SHORTFALL,
    SAE_TIGHT,
    Tolerance,
    likelihood,
    relative,
)
from pybridge.smoothing._area_fit import AreaFit
from pybridge.smoothing._area_model import area_model_at, prepare
from pybridge.smoothing._area_profile import score_and_slope
from pybridge.smoothing.fay_herriot import ADAPTERS
from pybridge.smoothing.fay_herriot_fit import FayHerriotFit
from pybridge.tables.area import AreaTable

_CRITERIA = {"REML": "restricted_log_likelihood", "ML": "log_likelihood"}
_ROOT = "closeness to the moment equation's root"
_CASE = "this fit"
_OWN = "log-likelihood"
_ATTAINED = "maximum attained"
# Methods that metafor has too, with a random intercept a domain.
BY_METAFOR: tuple[str, ...] = ("REML", "ML")


def crosscheck_area(fit: FayHerriotFit) -> FitCrosscheck:
    """Fit the table of ``fit`` again, by every engine with its method, in every mode.

    The exact (native) optimum is the arbiter: each engine is compared with it, and the likelihood
    at every engine's model variance is computed natively, so that they can be ranked.

    Parameters
    ----------
    fit : FayHerriotFit

    Returns
    -------
    FitCrosscheck
        An engine that is missing, or refuses the table, is in ``unavailable``; nothing is raised
        for it.
    """
    if fit.spec.correlation is not None:
        from pybridge.crosscheck.spatial import crosscheck_spatial

        return crosscheck_spatial(fit)
    found, unavailable = ask_all(ADAPTERS, fit.area, fit.spec)
    if fit.spec.method.upper() in BY_METAFOR:
        answer = ask_metafor(fit.area, fit.spec)
        if isinstance(answer, AreaFit):
            found["metafor"] = answer
        else:
            unavailable["metafor"] = answer
    record = _record(fit, found, unavailable)
    return record if "native" in found else _beside_own_optimum(record, fit, found)


def _beside_own_optimum(
    record: FitCrosscheck, fit: FayHerriotFit, found: Mapping[str, AreaFit]
) -> FitCrosscheck:
    """For a method that the native engine lacks: the optimum that a guarded fit has beside it."""
    known = [a.exact["model_variance"] for a in found.values() if "model_variance" in a.exact]
    if not known:
        return record
    best = float(known[0])
    answers = [Answers("exact", {(_CASE, "model variance"): best})]
    for name, answer in found.items():
        values, absent = {(_CASE, "model variance"): answer.model_variance}, {}
        if not math.isfinite(answer.model_variance):
            values, absent = {}, {_CASE: f"{name} is {answer.status}"}
        answers.append(Answers(name, values, absent))
    only = ("model variance",)
    pairs = [
        Pairing(name, "exact", {n: t for n, t in tolerances_of(name).items() if n in only})
        for name in found
    ]
    unit = variance_error(best, fit.area.variance[fit.area.sampled])
    table = compare_producers(answers, pairs, units={(_CASE, "model variance"): unit})
    exact = EngineAnswer("exact", "converged", {"model_variance": best})
    return replace(record, answers=(*record.answers, exact), table=table)


def _record(
    fit: FayHerriotFit, found: Mapping[str, AreaFit], unavailable: Mapping[str, str]
) -> FitCrosscheck:
    method = fit.spec.method.upper()
    criterion = _ROOT if method == "FH" else _CRITERIA.get(method, "").replace("g_l", "g-l")
    answers, heights = [], {}
    for producer, answer in found.items():
        heights[producer] = _criterion(answer, fit.area, method)
        answers.append(
            EngineAnswer(
                producer=producer,
                status=answer.status,
                numbers={
                    "model_variance": answer.model_variance,
                    "log_likelihood": answer.log_likelihood,
                },
                criterion=heights[producer],
                conditions=answer.conditions,
            )
        )
    return FitCrosscheck(
        subject=f"Fay-Herriot model {fit.area.formula}, method {fit.spec.method}, "
        f"{len(fit.area.domains)} domains",
        answers=tuple(answers),
        table=_table(fit.area, found, heights, method),
        criterion_name=criterion.replace("_", " "),
        unavailable=unavailable,
    )


def _criterion(answer: AreaFit, area: AreaTable, method: str) -> float:
    """What the method maximises, at the answer's model variance; for FH minus |its equation|."""
    found = answer.model_variance
    if method not in (*_CRITERIA, "FH") or not found >= 0:
        return math.nan
    arrays: dict[str, Any] = {
        "estimate": area.estimate,
        "variance": area.variance,
        "covariates": area.covariates,
    }
    if method == "FH":
        scaled = prepare(**arrays)
        value, _ = score_and_slope(scaled.problem, found / scaled.unit**2, "FH")
        # The equation falls in σ²: where it is negative at 0, 0 is the estimate.
        return 0.0 if found == 0 and value <= 0 else -abs(value)
    return float(getattr(area_model_at(found, method=method, **arrays), _CRITERIA[method]))


def _table(
    area: AreaTable, found: Mapping[str, AreaFit], heights: Mapping[str, float], method: str
) -> AgreementTable:
    answers = []
    for producer, answer in found.items():
        values = quantities(answer)
        if method == "BAYES":
            # Which summary of σ² an engine reports is its own affair: median here, mean there.
            values = {n: v for n, v in values.items() if n not in ("model variance", _OWN)}
        elif method in _CRITERIA and not np.isnan(heights[producer]):
            values[_ATTAINED] = np.array(heights[producer])
        if not np.isfinite(answer.model_variance):
            answers.append(Answers(producer, {}, {_CASE: f"{producer} is {answer.status}"}))
        else:
            answers.append(Answers(producer, {(_CASE, n): v for n, v in values.items()}))
    arbiter = found.get("native")
    pairs = [
        Pairing(name, "native", tolerances_of(name))
        for name in found
        if name.split()[0] != "native"
    ]
    if arbiter is None:
        return compare_producers([], [])
    units = {(_CASE, name): value for name, value in units_of(arbiter, area).items()}
    keys = {_CASE: [str(label) for label in area.domains]}
    return compare_producers(answers, pairs, units=units, keys=keys)


def quantities(answer: AreaFit) -> dict[str, Any]:
    """The numbers of a fit that engines are compared by, by name."""
    return {
        "model variance": np.array(answer.model_variance),
        "coefficients": answer.coefficients,
        "estimate": answer.estimate,
        "mse": answer.mse,
        _OWN: np.array(answer.log_likelihood),
    }


def units_of(exact: AreaFit, area: AreaTable) -> dict[str, Any]:
    """Standard errors of these quantities, at the exact answer.

    Where an MSE is not positive, the direct estimate's variance takes its place.
    """
    square = np.where(exact.mse > 0, exact.mse, area.variance)
    return {
        "model variance": variance_error(exact.model_variance, area.variance[area.sampled]),
        "coefficients": np.sqrt(exact.coefficient_covariance.diagonal()),
        "estimate": np.sqrt(square),
        "mse": np.where(square > 0, square, 1.0),
    }


def variance_error(model_variance: float, variance: np.ndarray) -> float:
    """Asymptotic standard error of σ² by likelihood, √(2/Σ(σ² + d)⁻²) (d of shape (m,))."""
    total = model_variance + variance
    total = total[total > 0]
    return float(np.sqrt(2.0 / np.sum(total**-2.0)))


def _like(parameters: Tolerance, own: Tolerance, shortfall: Tolerance) -> dict[str, Tolerance]:
    return {
        "model variance": parameters,
        "coefficients": parameters,
        "estimate": parameters,
        "mse": relative(parameters),
        _OWN: own,
        _ATTAINED: shortfall,
    }


SAE_AREA = _like(SAE, SAE_LOG_LIKELIHOOD, SAE_SHORTFALL)
SAE_AREA_TIGHT = _like(SAE_TIGHT, likelihood(SAE_TIGHT, 1e-7), likelihood(SAE_TIGHT, 1e-8))
EMDI_AREA = _like(EMDI, likelihood(EMDI, 1e-2), likelihood(EMDI, 1e-4))
EMDI_AREA_RAW = _like(EMDI_RAW, likelihood(EMDI_RAW, 1.0), likelihood(EMDI_RAW, 1e-2))
# Its mean squared errors are the native ones at its variance, its own log-likelihood is of the
# method.
METAFOR_AREA = {
    "model variance": METAFOR,
    "coefficients": METAFOR,
    "estimate": METAFOR,
    _ATTAINED: METAFOR_SHORTFALL,
}
HBSAE_AREA = {
    "coefficients": HBSAE_COEFFICIENTS,
    "estimate": HBSAE,
    "mse": relative(HBSAE),
}


def tolerances_of(producer: str) -> dict[str, Tolerance]:
    """By engine and quantity; ``producer`` begins with the engine's name."""
    engine, _, mode = producer.partition(" ")
    if engine == "emdi":
        return EMDI_AREA_RAW if mode == "raw" else EMDI_AREA
    return {"sae": SAE_AREA, "hbsae": HBSAE_AREA, "metafor": METAFOR_AREA}[engine]
