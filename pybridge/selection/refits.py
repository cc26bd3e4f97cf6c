"""Every candidate on the whole sample and without each fold, from the cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pybridge.design.folds import Folds
from pybridge.design.survey_design import SurveyDesign
from pybridge.direct.estimates import direct_estimates
from pybridge.errors import FitError
from pybridge.selection.assembly import whole_fit, with_rest
from pybridge.selection.candidates import Candidate
from pybridge.selection.engines import NATIVE, batch_key, fit_in_r, fit_native
from pybridge.selection.fits import CandidateFit, Replicates, direct_request, failed_fit
from pybridge.selection.functions import FunctionFailed, function_rest, function_whole
from pybridge.selection.smoothed import Known, SmoothingProblem, area_problems, taxonomy_codes

Announce = Callable[[str], None]
# One split's problems of one candidate; an error where a fold leaves too little to make one.
Problems = list[SmoothingProblem | FitError]


@dataclass(frozen=True, eq=False)
class Resample:
    """One split of the sample, and the replicates that are made from it."""

    replicates: Replicates
    folds: Folds | None = None


def fit_candidates(
    candidates: Sequence[Candidate],
    replicates: Replicates,
    *,
    design: SurveyDesign | None = None,
    folds: Folds | None = None,
    announce: Announce | None = None,
) -> tuple[CandidateFit, ...]:
    """Fit every candidate on the whole sample and without each fold; see `fit_resamples`."""
    resample = Resample(replicates, folds)
    return fit_resamples(candidates, [resample], design=design, announce=announce)[0]


def fit_resamples(
    candidates: Sequence[Candidate],
    resamples: Sequence[Resample],
    *,
    design: SurveyDesign | None = None,
    announce: Announce | None = None,
) -> list[tuple[CandidateFit, ...]]:
    """Fit every candidate on the whole sample, and without each fold of every split of it.

    The whole sample is fitted once. Candidates of one R engine go to R in one call, with all
    splits and folds. A candidate that fails stays in the result with its reason; the others go on.

    Parameters
    ----------
    candidates : sequence of Candidate
    resamples : sequence of Resample
        Splits of one sample.
    design : SurveyDesign, optional
        The units, which only functions of the user's need.
    announce : callable, optional
        Told what is being done, one line a step.

    Returns
    -------
    list of tuple of CandidateFit
        One tuple a split, in the order of the candidates.
    """
    say = announce or (lambda text: None)
    found: dict[str, list[CandidateFit]] = {}
    problems: dict[str, list[Problems]] = {}
    known: list[Known] = [{} for _ in resamples]
    for item in candidates:
        try:
            if item.function is not None:
                found[item.name] = _by_function(item, resamples, design)
            elif item.smoothing is None:
                found[item.name] = _direct(item, resamples)
            else:
                problems[item.name] = [
                    area_problems(item, each.replicates, whole=k == 0, known=known[k])
                    for k, each in enumerate(resamples)
                ]
        except FitError as error:
            found[item.name] = _all_failed(item, resamples, error.message, error.code)
        except FunctionFailed as error:
            found[item.name] = _all_failed(item, resamples, str(error), "function_failed")
    answers = _answers([i for i in candidates if i.name in problems], problems, resamples, say)
    for item in candidates:
        if item.name in answers:
            found[item.name] = _assembled(item, problems[item.name], answers[item.name], resamples)
    return [tuple(found[item.name][k] for item in candidates) for k in range(len(resamples))]


def _all_failed(
    candidate: Candidate, resamples: Sequence[Resample], message: str, code: str
) -> list[CandidateFit]:
    return [failed_fit(candidate, each.replicates, message, code=code) for each in resamples]


def _direct(candidate: Candidate, resamples: Sequence[Resample]) -> list[CandidateFit]:
    first = resamples[0].replicates
    request = direct_request(candidate, first.population)
    whole = direct_estimates(first.sample, request, level=first.level)
    fit = CandidateFit(
        candidate=candidate,
        estimate=whole.estimate,
        mse=whole.variance,
        lower=whole.lower,
        upper=whole.upper,
        shrinkage=np.full(len(whole.estimate), np.nan),
        derivative=np.ones(len(whole.estimate)),
        status=whole.status,
        rest=np.empty((0, len(whole.estimate))),
        fit_status="ok",
    )
    return [
        replace(fit, rest=each.replicates.direct(request, each.replicates.rest))
        for each in resamples
    ]


def _by_function(
    candidate: Candidate, resamples: Sequence[Resample], design: SurveyDesign | None
) -> list[CandidateFit]:
    """A function is called on the whole sample once; where a split fails, that split only."""
    whole = function_whole(candidate, resamples[0].replicates, design)
    out = []
    for each in resamples:
        try:
            rest = function_rest(candidate, each.replicates, design, each.folds)
            out.append(replace(whole, rest=rest))
        except FunctionFailed as error:
            blank = np.full((each.replicates.rest.n_replicates, len(whole.estimate)), np.nan)
            out.append(replace(whole, rest=blank, conditions=(f"without a fold: {error}",)))
    return out


def _answers(
    candidates: Sequence[Candidate],
    problems: dict[str, list[Problems]],
    resamples: Sequence[Resample],
    say: Announce,
) -> dict[str, list[Any]]:
    """What the engines answered to each candidate's problems, one after the other."""
    if not candidates:
        return {}
    first = resamples[0].replicates
    words: dict[str, Any] = {
        "levels": taxonomy_codes(first.population),
        "level": first.level,
        "seed": first.seed,
    }
    flat = {
        item.name: [
            one.area
            for part in problems[item.name]
            for one in part
            if not isinstance(one, FitError)
        ]
        for item in candidates
    }
    found: dict[str, list[Any]] = {}
    groups: dict[Any, list[Candidate]] = {}
    for item in candidates:
        if item.engine != NATIVE:
            groups.setdefault(batch_key(item), []).append(item)
    for group in groups.values():
        names = ", ".join(item.name for item in group)
        say(f"fitting {names} with R's {group[0].engine}, all folds in one call")
        together = [area for item in group for area in flat[item.name]]
        answers = fit_in_r(group[0], together, **words)
        for item in group:
            found[item.name] = [answers.pop(0) for _ in flat[item.name]]
    for item in candidates:
        if item.engine == NATIVE:
            say(f"fitting {item.name} natively ({item.smoothing}, {item.method})")
            words["labels"] = first.population.domains
            whole, *others = flat[item.name]
            near = fit_native(item, whole, quantiles=True, **words)
            rest = [fit_native(item, one, quantiles=False, near=near, **words) for one in others]
            found[item.name] = [near, *rest]
    return {name: _in_place(problems[name], answers) for name, answers in found.items()}


def _in_place(problems: Sequence[Problems], answers: Sequence[Any]) -> list[Any]:
    """The answers in the order of all problems, errors where there was no problem to answer."""
    left = iter(answers)
    return [one if isinstance(one, FitError) else next(left) for part in problems for one in part]


def _assembled(
    candidate: Candidate,
    problems: list[Problems],
    answers: list[Any],
    resamples: Sequence[Resample],
) -> list[CandidateFit]:
    """Records of every split, from the answers in the order of the problems."""
    first = problems[0][0]
    assert not isinstance(first, FitError)  # it would have been raised
    whole = whole_fit(candidate, first, answers[0], resamples[0].replicates)
    out, start = [], 1
    for k, each in enumerate(resamples):
        own = problems[k][1:] if k == 0 else problems[k]
        if whole.fit_status == "failed":
            out.append(failed_fit(candidate, each.replicates, whole.message, code=whole.code))
        else:
            out.append(with_rest(whole, own, answers[start : start + len(own)]))
        start += len(own)
    return out
