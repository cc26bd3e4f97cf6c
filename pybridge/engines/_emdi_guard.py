"""The verdict on what emdi::fh answered: exact optimum, status, and what is worth saying."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from pybridge._checks import listed
from pybridge.engines._emdi_exact import Point, evaluate, optimum, sampled
from pybridge.engines._emdi_measurement import measurement_error_fit
from pybridge.engines._emdi_request import ROBUST, FhRequest
from pybridge.engines._emdi_spatial import SpatialProblem, spatial_at, spatial_optimum
from pybridge.engines._emdi_units import transformed

# This far below the maximum the variance is off by 0.045 of its standard error.
_SHORTFALL = 1e-3
# R's optimize cannot come nearer to 0 than about its tolerance, in the units of the call.
_FLOOR = 2.5e-4
_SAME_FIXED_POINT = 1e-3
_NEAR_FIXED_POINT = 1e-2
_FEW_SPARE_DOMAINS = 5
_LARGEST_CORRELATION = 0.9999
_AT_LIMIT = "falls at the interval limit"
NOT_SO = "(not so: the maximum lies inside)"


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What is added to emdi's numbers; fields as in `EmdiFit`."""

    status: str
    engine_status: str
    conditions: tuple[str, ...]
    exact: Mapping[str, Any]
    replaced: Mapping[str, np.ndarray]
    replicates: tuple[int, int] | None


def judge(
    request: FhRequest,
    value: Mapping[str, Any],
    words: tuple[str, ...],
    *,
    estimate: np.ndarray,
    mse: np.ndarray,
) -> Verdict:
    """Look at one answer of emdi.

    Parameters
    ----------
    request : FhRequest
    value : mapping
        What the shim returned.
    words : tuple of str
        R's own words.
    estimate, mse : numpy.ndarray
        Shape (m,), in R's order.
    """
    flag = value["convergence"]
    engine_status = "no flag"
    if flag is not None:
        engine_status = "converged" if flag[0] else "not_converged"
    replicates = _replicates(value)
    notes = [*request.remarks, *_intervals_note(request), *_notes(request, value, replicates)]
    status = "converged"
    exact: dict[str, Any] = {}
    replaced: dict[str, np.ndarray] = {}
    if request.guarded:
        exact, status, more = _compared(request, value)
        replaced, changes = _changes(request, value, estimate, mse)
        words = _about_the_limit(words, status, exact)
        notes += [*more, *changes]
    elif not np.isfinite(float(value["variance"][0])):
        status = "not_converged"
    if flag is not None and not flag[0]:
        status = "not_converged"
    n, p = int(request.sampled.sum()), request.covariates.shape[1]
    if status in ("converged", "boundary") and n <= p + _FEW_SPARE_DOMAINS:
        status = "weak_identification"
    return Verdict(status, engine_status, (*words, *notes), exact, replaced, replicates)


def _replicates(value: Mapping[str, Any]) -> tuple[int, int] | None:
    text = value["successful_bootstraps"]
    if text is None:
        return None
    good, _, asked = str(text[0]).partition(" out of ")
    return int(good), int(asked)


def _intervals_note(request: FhRequest) -> list[str]:
    if request.transformation == "no":
        return []
    return [
        "emdi gives no intervals for transformed estimates: these are normal ones on the "
        f"{request.transformation} scale, transformed back"
    ]


def _notes(
    request: FhRequest, value: Mapping[str, Any], replicates: tuple[int, int] | None
) -> list[str]:
    """What emdi does without a word."""
    notes = []
    inside = request.sampled
    if request.transformation == "logit":
        edge = inside & ((request.estimate == 0) | (request.estimate == 1))
        if edge.any():
            notes.append(
                "emdi takes direct estimates of 0 for 0.001 and of 1 for 0.999: "
                f"{listed(request.domains[edge])}"
            )
    if replicates is not None and replicates[0] < replicates[1]:
        notes.append(
            f"emdi dropped {replicates[1] - replicates[0]} of {replicates[1]} replicates that did "
            "not converge"
        )
    if value["mse"] is not None:
        negative = np.asarray(value["mse"]) < 0
        if negative.any():
            notes.append(f"negative mean squared errors: {listed(request.domains[negative])}")
    if at_correlation_limit(value):
        notes.append("the spatial correlation is at its limit, where emdi sets it")
    return notes


def at_correlation_limit(value: Mapping[str, Any]) -> bool:
    """Whether emdi ended at a spatial correlation of 1 or -1; saeRobust stops at 0.99999."""
    correlation = value["correlation"]
    return correlation is not None and abs(float(correlation[0])) >= _LARGEST_CORRELATION


def _compared(
    request: FhRequest, value: Mapping[str, Any]
) -> tuple[dict[str, Any], str, list[str]]:
    """The exact optimum, the status that follows, and what is to be said."""
    found = float(value["variance"][0])
    if not np.isfinite(found):
        return {}, "not_converged", ["emdi returned a model variance that is not a number"]
    if request.method in ROBUST:
        return _compared_robust(request, value, found)
    if request.method == "me":
        return _compared_me(request, found)
    if request.spatial:
        return _compared_spatial(request, value, found)
    y, d = transformed(request)
    problem = sampled(estimate=y, variance=d, covariates=request.covariates[request.sampled])
    best = optimum(problem, request.method)
    there = evaluate(problem, found, request.method)[0]
    exact = _as_mapping(best, best.objective - there.objective)
    if best.model_variance == 0 and found <= _FLOOR * request.unit**2:
        return (
            exact,
            "boundary",
            [f"the maximum is at a model variance of 0; emdi ends at {found:.3g}, never at 0"],
        )
    return _verdict(request, found, best.model_variance, exact)


def _compared_robust(
    request: FhRequest, value: Mapping[str, Any], found: float
) -> tuple[dict[str, Any], str, list[str]]:
    """By the same equations with a tighter tolerance; spatial ones take too long for that."""
    tight = (value["replaced"] or {}).get("tight")
    small = found <= _FLOOR * request.unit**2 / 10
    status = "boundary" if small or at_correlation_limit(value) else "converged"
    if tight is None:
        return {}, status, []
    best = float(tight[0])
    exact = {"model_variance": best}
    if abs(found - best) <= _SAME_FIXED_POINT * max(best, found):
        return exact, status, []
    words = f"emdi stopped at model variance {found:.6g}; with tol / 100 it comes to {best:.6g}"
    near = abs(found - best) <= _NEAR_FIXED_POINT * max(best, found)
    return exact, status if near else "not_converged", [words]


def _as_mapping(best: Point, shortfall: float) -> dict[str, Any]:
    return {
        "model_variance": best.model_variance,
        "log_likelihood": best.log_likelihood,
        "restricted_log_likelihood": best.restricted_log_likelihood,
        "shortfall": max(0.0, shortfall),
    }


def _verdict(
    request: FhRequest, found: float, best: float, exact: dict[str, Any]
) -> tuple[dict[str, Any], str, list[str]]:
    if exact["shortfall"] <= _SHORTFALL:
        notes = []
        if abs(found - best) > 1e-3 * best:
            notes.append(
                f"emdi stopped at model variance {found:.6g}; the exact maximum is {best:.6g}"
            )
        return exact, "boundary" if found == 0 else "converged", notes
    hint = ""
    if request.arguments["interval"] is not None:
        hint = f"; interval was {tuple(request.arguments['interval'])}"
    return (
        exact,
        "not_converged",
        [
            f"emdi ended at model variance {found:.6g}, {exact['shortfall']:.3g} below the "
            f"maximum, which is at {best:.6g}{hint}"
        ],
    )


def _compared_me(request: FhRequest, found: float) -> tuple[dict[str, Any], str, list[str]]:
    inside = request.sampled
    assert request.errors is not None
    best = measurement_error_fit(
        estimate=request.estimate[inside],
        variance=request.variance[inside],
        covariates=request.covariates[inside],
        errors=request.errors[:, :, inside],
    )
    exact = {"model_variance": best.model_variance, "coefficients": best.coefficients}
    size = max(best.model_variance, 1e-2 * float(np.median(request.variance[inside])))
    if best.converged and abs(found - best.model_variance) <= _SAME_FIXED_POINT * size:
        return exact, "boundary" if found == 0 else "converged", []
    if not best.converged:
        return exact, "not_converged", ["the iteration of the measurement error model has no rest"]
    return (
        exact,
        "not_converged",
        [
            f"emdi ended at model variance {found:.6g}; the fixed point of its equations is "
            f"{best.model_variance:.6g}"
        ],
    )


def _compared_spatial(
    request: FhRequest, value: Mapping[str, Any], found: float
) -> tuple[dict[str, Any], str, list[str]]:
    inside = request.sampled
    assert request.proximity is not None
    correlation = float(value["correlation"][0])
    if (request.variance[inside] == 0).any():
        return {}, "boundary" if found == 0 else "converged", []
    problem = SpatialProblem(
        request.estimate[inside],
        request.variance[inside],
        request.covariates[inside],
        request.proximity,
    )
    best = spatial_optimum(problem, request.method)
    there = spatial_at(problem, float(np.clip(correlation, -0.9999, 0.9999)), found, request.method)
    exact = _as_mapping(best.point, best.point.objective - there.point.objective)
    exact["spatial_correlation"] = best.correlation
    exact, status, notes = _verdict(request, found, best.point.model_variance, exact)
    if status == "not_converged":
        notes[0] += f" with correlation {best.correlation:.4g} (emdi: {correlation:.4g})"
    return exact, status, notes


def _about_the_limit(
    words: tuple[str, ...], status: str, exact: Mapping[str, Any]
) -> tuple[str, ...]:
    """emdi's own warning about the interval is wrong as often as not."""
    if status != "converged" or not exact.get("model_variance"):
        return words
    return tuple(f"{text} {NOT_SO}" if _AT_LIMIT in text else text for text in words)


def _changes(
    request: FhRequest, value: Mapping[str, Any], estimate: np.ndarray, mse: np.ndarray
) -> tuple[dict[str, np.ndarray], list[str]]:
    """emdi's own numbers where the record has others, and why."""
    theirs = value["replaced"] or {}
    replaced: dict[str, np.ndarray] = {}
    notes: list[str] = []
    for name, ours in (("estimate", estimate), ("mse", mse)):
        old = theirs.get(name)
        if old is not None and not np.array_equal(old, ours, equal_nan=True):
            replaced[name] = np.array(old)
    outside = ~request.sampled
    if outside.any() and replaced:
        marginal = (
            "with the mean variance of the other domains' effects"
            if request.spatial
            else ("which is the limit of the method's own as the sampling variance grows")
        )
        notes.append(
            "domains without a direct estimate: x'beta and its mean squared error, "
            f"{marginal}, where emdi has none or takes its bias with the wrong sign"
        )
    kind = request.arguments["mse_type"] if request.arguments["MSE"] else ""
    if request.transformation == "arcsin" and "jackknife" in kind:
        notes.append(
            "jackknife MSEs are multiplied by the square of the derivative of the "
            "back-transformation; emdi multiplies by the derivative itself"
        )
    if request.exact:
        replaced_bc, said = _bias_correction(request, theirs, estimate)
        replaced.update(replaced_bc)
        notes.append(said)
    return replaced, notes


def _bias_correction(
    request: FhRequest, theirs: Mapping[str, Any], estimate: np.ndarray
) -> tuple[dict[str, np.ndarray], str]:
    old = theirs.get("bias_corrected")
    how = "closed form" if request.transformation == "arcsin" else "a rule exact to rounding"
    start = f"the {request.transformation} bias correction is computed by {how}"
    if old is None:
        return {}, f"{start}; emdi's own integral stops with an error on these data"
    apart = float(np.nanmax(np.abs(np.asarray(old) - estimate)))
    return {"bias_corrected": np.array(old)}, (
        f"{start}; emdi's own integral differs by up to {apart:.2g}"
    )
