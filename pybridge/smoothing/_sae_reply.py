"""What R's sae answered, as an AreaFit; in guarded mode with the exact optimum beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pybridge.smoothing._area_fit import AreaFit, AreaProblem, fit_status
from pybridge.smoothing._area_model import area_model_at, fit_area_model
from pybridge.smoothing._spec import FayHerriotSpec

if TYPE_CHECKING:
    from pybridge.r import Reply

# sae stops at a relative change of 1e-4, which costs about 1e-10 in the log-likelihood; beyond
# this it stopped elsewhere. The moment equation has no likelihood: relative difference there.
_SHORTFALL = 1e-6
_MOMENT_DIFFERENCE = 1e-2


def area_fit(problem: AreaProblem, spec: FayHerriotSpec, reply: Reply) -> AreaFit:
    """The record, from what R said."""
    said = tuple(
        f"R {kind}: {text.strip()}"
        for kind, texts in (("warning", reply.warnings), ("message", reply.messages))
        for text in texts
    ) + tuple(f"R printed: {line}" for line in reply.printed if line.strip())
    if reply.error is not None:
        said += (f"R error: {reply.error['message']}",)
        return _without_numbers(problem, spec, reply, said, status="failed", engine_status="error")
    value = reply.value
    if "refvar" in value and not np.isfinite(value["refvar"][0]):
        said += ("sae returned a model variance that is not a number",)
        return _without_numbers(problem, spec, reply, said, status="failed")
    if "refvar" not in value:
        iterations = int(value["iterations"][0])
        said += (f"sae did not converge in {iterations} iterations and returned NA",)
        return _without_numbers(
            problem, spec, reply, said, status="not_converged", iterations=iterations
        )
    return _with_numbers(problem, spec, reply, said)


def _with_numbers(
    problem: AreaProblem, spec: FayHerriotSpec, reply: Reply, said: tuple[str, ...]
) -> AreaFit:
    value = reply.value
    found = float(value["refvar"][0])
    base = _at(found, problem, spec)
    sampled = ~np.isnan(problem.estimate)
    estimate, mse, synthetic = base.estimate.copy(), base.mse.copy(), base.synthetic.copy()
    estimate[sampled] = value["eblup"]
    mse[sampled] = value["mse"]
    if "mse_outside" in value:
        estimate[~sampled] = synthetic[~sampled] = value["synthetic_outside"]
        mse[~sampled] = value["mse_outside"]
    criteria = dict(zip(value["goodness_names"], map(float, value["goodness"])))
    fitted = replace(
        base,
        engine="sae",
        coefficients=np.array(value["beta"]),
        estimate=estimate,
        mse=mse,
        synthetic=synthetic,
        model_variance=found,
        log_likelihood=criteria["loglike"],
        iterations=int(value["iterations"][0]),
        engine_status="converged" if value["convergence"][0] else "not_converged",
        criteria=criteria,
        conditions=said,
        versions=dict(reply.versions),
    )
    return fitted if spec.mode == "raw" else _guarded(fitted, base, problem, spec, value)


def _guarded(
    fitted: AreaFit,
    base: AreaFit,
    problem: AreaProblem,
    spec: FayHerriotSpec,
    value: Mapping[str, Any],
) -> AreaFit:
    """The exact optimum beside the engine's, and the status that follows.

    ``base`` holds the likelihoods at the engine's model variance, computed as the exact ones are.
    """
    exact = _exact(problem, spec)
    said = fitted.conditions
    if value["at_zero"][0]:
        said += ("sae did not converge; the moment equation has its solution at 0, taken here",)
    compared: dict[str, Any] = {
        "model_variance": exact.model_variance,
        "log_likelihood": exact.log_likelihood,
        "restricted_log_likelihood": exact.restricted_log_likelihood,
    }
    if spec.method == "FH":
        larger = max(exact.model_variance, fitted.model_variance)
        apart = abs(exact.model_variance - fitted.model_variance) > _MOMENT_DIFFERENCE * larger
    else:
        which = "restricted_log_likelihood" if spec.method == "REML" else "log_likelihood"
        compared["shortfall"] = getattr(exact, which) - getattr(base, which)
        apart = compared["shortfall"] > _SHORTFALL
    status = fit_status(
        model_variance=fitted.model_variance,
        n_sampled=int((~np.isnan(problem.estimate)).sum()),
        n_coefficients=problem.covariates.shape[1],
    )
    if apart:
        status = "not_converged"
        said += (
            f"sae ended at model variance {fitted.model_variance:.6g}; the optimum is "
            f"{exact.model_variance:.6g} (engine='native' gives the estimates there)",
        )
    return replace(fitted, exact=compared, conditions=said, status=status)


def _exact(problem: AreaProblem, spec: FayHerriotSpec) -> AreaFit:
    return fit_area_model(
        estimate=problem.estimate,
        variance=problem.variance,
        covariates=problem.covariates,
        method=spec.method,
        level=spec.level,
    )


def _at(model_variance: float, problem: AreaProblem, spec: FayHerriotSpec) -> AreaFit:
    return area_model_at(
        model_variance,
        estimate=problem.estimate,
        variance=problem.variance,
        covariates=problem.covariates,
        method=spec.method,
        level=spec.level,
    )


def _without_numbers(
    problem: AreaProblem,
    spec: FayHerriotSpec,
    reply: Reply,
    said: tuple[str, ...],
    *,
    status: str,
    engine_status: str = "not_converged",
    iterations: int = 0,
) -> AreaFit:
    """NaN wherever a number would stand."""
    m, p = problem.covariates.shape
    nothing = np.full(m, np.nan)
    compared: dict[str, Any] = {}
    if spec.mode == "guarded":
        exact = _exact(problem, spec)
        compared = {
            "model_variance": exact.model_variance,
            "log_likelihood": exact.log_likelihood,
            "restricted_log_likelihood": exact.restricted_log_likelihood,
        }
    return AreaFit(
        engine="sae",
        method=spec.method,
        level=spec.level,
        model_variance=np.nan,
        coefficients=np.full(p, np.nan),
        coefficient_covariance=np.full((p, p), np.nan),
        estimate=nothing,
        mse=nothing,
        shrinkage=nothing,
        synthetic=nothing,
        derivative=nothing,
        log_likelihood=np.nan,
        restricted_log_likelihood=np.nan,
        iterations=iterations,
        status=status,
        engine_status=engine_status,
        exact=compared,
        conditions=said,
        versions=dict(reply.versions),
    )
