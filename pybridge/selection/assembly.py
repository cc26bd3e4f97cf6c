"""A candidate's fit from an engine's answers: the whole sample's, and those without each fold."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pybridge.direct.estimates import domain_statuses
from pybridge.errors import FitError, InputError, PybridgeError
from pybridge.selection.candidates import Candidate
from pybridge.selection.finite import finite_domains
from pybridge.selection.fits import CandidateFit, Replicates, failed_fit
from pybridge.selection.smoothed import SmoothingProblem
from pybridge.smoothing._area_fit import AreaProblem

# What a sample may do to a model: leave it nothing to smooth (all outcomes equal, a perfect
# predictor), or too few domains for its prior. The candidate fails with the reason, the others
# stand.
_OF_THE_SAMPLE = ("all_variances_zero", "degenerate", "too_few_domains", "census_not_supported")


def whole_fit(
    candidate: Candidate, problem: SmoothingProblem, answer: Any, replicates: Replicates
) -> CandidateFit:
    """The record of the whole sample's fit, ``rest`` still empty.

    Raises
    ------
    InputError
        What was asked for cannot be had from any sample of these domains.
    """
    if isinstance(answer, InputError) and answer.code not in _OF_THE_SAMPLE:
        raise answer
    fit = getattr(answer, "numbers", answer)
    if _failed(fit):
        code = getattr(answer, "code", "fit_failed")
        return failed_fit(candidate, replicates, _reason(answer), code=code)
    if candidate.finite_population:
        fit = _finite(fit, problem)
    k, m = replicates.rest.n_replicates, replicates.population.n_domains
    return CandidateFit(
        candidate=candidate,
        estimate=fit.estimate,
        mse=fit.mse,
        lower=fit.lower,
        upper=fit.upper,
        shrinkage=fit.shrinkage,
        derivative=fit.derivative,
        status=_statuses(fit, problem.area, replicates),
        rest=np.full((k, m), np.nan),
        fit_status=fit.status,
        model_variance=float(fit.model_variance),
        spread=problem.spread,
        conditions=tuple(str(text) for text in getattr(answer, "conditions", ())),
        versions=dict(getattr(answer, "versions", {})),
    )


def with_rest(
    whole: CandidateFit, problems: Sequence[SmoothingProblem | FitError], answers: Sequence[Any]
) -> CandidateFit:
    """The same with the fits without each fold; what failed there is in the conditions."""
    if whole.fit_status == "failed":
        return whole
    rest = np.full((len(answers), len(whole.estimate)), np.nan)
    said: list[str] = []
    for k, (problem, answer) in enumerate(zip(problems, answers)):
        fit = getattr(answer, "numbers", answer)
        if isinstance(problem, FitError) or _failed(fit):
            said.append(f"without fold {k + 1}: {_reason(answer)}")
            continue
        rest[k] = (_finite(fit, problem) if whole.candidate.finite_population else fit).estimate
    return replace(whole, rest=rest, conditions=(*whole.conditions, *said))


def _failed(fit: Any) -> bool:
    return (
        isinstance(fit, Exception)
        or fit.status == "failed"
        or not np.isfinite(fit.estimate).any()  # an iteration limit, in R's words NA
    )


def _finite(fit: Any, problem: SmoothingProblem) -> Any:
    return finite_domains(
        fit, estimate=problem.area.estimate, variance=problem.variance, spread=problem.spread
    )


def _statuses(fit: Any, problem: AreaProblem, replicates: Replicates) -> np.ndarray:
    status = np.array(domain_statuses(replicates.sample), dtype=object)
    with np.errstate(invalid="ignore"):
        status[(status == "ok") & (fit.mse < 0)] = "negative_mse"
    status[np.isnan(problem.estimate)] = "out_of_sample"
    return status


def _reason(answer: Any) -> str:
    if isinstance(answer, PybridgeError):
        return re.sub(r"^problem \d+: ", "", answer.message)  # of a batch
    if isinstance(answer, Exception):
        return str(answer)
    return "; ".join(str(text) for text in getattr(answer, "conditions", ())) or "the fit failed"
