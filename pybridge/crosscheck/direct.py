"""Direct estimates by every engine: native, and R's survey."""

from __future__ import annotations

import warnings

import numpy as np

from pybridge.crosscheck.agreement import AgreementTable
from pybridge.crosscheck.asking import why
from pybridge.crosscheck.comparer import Answers, Pairing, compare_producers
from pybridge.crosscheck.fits import EngineAnswer, FitCrosscheck
from pybridge.crosscheck.tolerances import TWO_ROUTES, Tolerance
from pybridge.design.survey_design import SurveyDesign
from pybridge.direct._survey import by_survey
from pybridge.direct.estimates import METHOD_NAMES, DirectEstimates, direct_estimates
from pybridge.errors import EngineError, EngineUnavailable, EngineWarning, InputError

_CASE = "these estimates"
_QUANTITIES = ("estimate", "standard errors", "covariance", "covariance with HT")
DIRECT: dict[str, Tolerance] = dict.fromkeys(_QUANTITIES, TWO_ROUTES)


def crosscheck_direct(
    found: DirectEstimates, design: SurveyDesign, *, domain: str | None = None
) -> FitCrosscheck:
    """The same direct estimates natively and by R's survey, with their whole covariance.

    Parameters
    ----------
    found : DirectEstimates
    design : SurveyDesign
        The sample, which estimates do not keep.
    domain : str, optional
        Its column of domains, where it is not named as in the population.

    Returns
    -------
    FitCrosscheck
        Both are closed formulas: neither is nearer to an optimum. A missing engine is in
        ``unavailable``.
    """
    native = direct_estimates(found.sample, found.request, level=found.level)
    answers = {"native": native}
    unavailable = {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EngineWarning)
            answers["survey"] = by_survey(native, design, found.request, domain=domain)
    except (InputError, EngineUnavailable, EngineError) as error:
        unavailable["survey"] = why(error)
    return FitCrosscheck(
        subject=f"{METHOD_NAMES[found.method]} estimates of {len(found.estimate)} domains",
        answers=tuple(
            EngineAnswer(
                producer=name,
                status="converged",
                numbers={
                    "mean_estimate": float(np.nanmean(one.estimate)),
                    "mean_standard_error": _mean(one.standard_error),
                },
            )
            for name, one in answers.items()
        ),
        table=_table(answers),
        unavailable=unavailable,
    )


def _mean(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


def _table(answers: dict[str, DirectEstimates]) -> AgreementTable:
    native = answers["native"]
    seen = ~np.isnan(native.variance)
    error = np.sqrt(native.variance[seen])
    floor = 1e-12 * float(np.nanmax(np.abs(native.estimate), initial=1e-300))
    error = np.maximum(error, floor)
    values = {}
    for name, one in answers.items():
        values[name] = {
            "estimate": one.estimate,
            "standard errors": one.standard_error[seen],
            "covariance": np.asarray(one.covariance())[np.ix_(seen, seen)].ravel(),
            "covariance with HT": one.covariance_ht[seen],
        }
    ht = np.maximum(np.sqrt(np.abs(native.covariance_ht[seen])), floor)
    units = {
        (_CASE, "estimate"): np.maximum(np.nan_to_num(np.abs(native.estimate)), floor),
        (_CASE, "standard errors"): error,
        (_CASE, "covariance"): np.outer(error, error).ravel(),
        (_CASE, "covariance with HT"): np.maximum(error * ht, floor**2),
    }
    keys = {_CASE: [str(label) for label in native.sample.population.domains]}
    producers = [
        Answers(name, {(_CASE, what): value for what, value in one.items()})
        for name, one in values.items()
    ]
    pairs = [Pairing("survey", "native", DIRECT)] if "survey" in answers else []
    return compare_producers(producers, pairs, units=units, keys=keys)
