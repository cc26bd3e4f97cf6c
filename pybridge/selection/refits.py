"""Every candidate on the whole sample and without each fold, from the cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pybridge.design.folds import Folds
from pybridge.design.survey_design import SurveyDesign
from pybridge.direct.estimates import direct_estimates
from pybridge.errors import FitError
from pybridge.selection.candidates import Candidate
from pybridge.selection.fits import CandidateFit, Replicates, direct_request, failed_fit
from pybridge.selection.functions import FunctionFailed, call_function
from pybridge.selection.smoothed import SmoothingProblem, area_problems, fit_native, fit_sae


def fit_candidates(
    candidates: Sequence[Candidate],
    replicates: Replicates,
    *,
    design: SurveyDesign | None = None,
    folds: Folds | None = None,
    announce: Callable[[str], None] | None = None,
) -> tuple[CandidateFit, ...]:
    """Fit every candidate on the whole sample and without each fold.

    Candidates of one R engine are refitted in one batched call, not one a fit. A candidate that
    fails stays in the result with its reason; the others go on.

    Parameters
    ----------
    candidates : sequence of Candidate
    replicates : Replicates
    design, folds : optional
        The units, which only functions of the user's need.
    announce : callable, optional
        Told what is being done, one line a step.
    """
    say = announce or (lambda text: None)
    found: dict[str, CandidateFit] = {}
    problems: dict[str, list[SmoothingProblem]] = {}
    for item in candidates:
        try:
            if item.function is not None:
                found[item.name] = call_function(item, replicates, design, folds)
            elif item.smoothing is None:
                found[item.name] = _fit_direct(item, replicates)
            else:
                problems[item.name] = area_problems(item, replicates)
        except (FitError, FunctionFailed) as error:
            found[item.name] = failed_fit(item, replicates, str(error))
    batch = [item for item in candidates if item.name in problems and item.engine == "sae"]
    if batch:
        say(f"fitting {', '.join(i.name for i in batch)} with R's sae, all folds in one call")
        found.update(fit_sae(batch, problems, replicates))
    for item in candidates:
        if item.name not in found:
            say(f"fitting {item.name} natively ({item.smoothing}, {item.method})")
            found[item.name] = fit_native(item, problems[item.name], replicates)
    return tuple(found[item.name] for item in candidates)


def _fit_direct(candidate: Candidate, replicates: Replicates) -> CandidateFit:
    request = direct_request(candidate, replicates.population)
    whole = direct_estimates(replicates.sample, request, level=replicates.level)
    return CandidateFit(
        candidate=candidate,
        estimate=whole.estimate,
        mse=whole.variance,
        lower=whole.lower,
        upper=whole.upper,
        shrinkage=np.full(len(whole.estimate), np.nan),
        derivative=np.ones(len(whole.estimate)),
        status=whole.status,
        rest=replicates.direct(request, replicates.rest),
        fit_status="ok",
    )
