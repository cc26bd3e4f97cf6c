"""What each piece of information brings: from HT to PP-TS, one step at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import listed, name_list
from pybridge._options import check_level
from pybridge.design.survey_design import SurveyDesign
from pybridge.direct.estimates import direct_estimates
from pybridge.direct.inputs import domain_sample, need_design
from pybridge.direct.linear import DirectRequest
from pybridge.errors import InputError
from pybridge.selection.candidates import Candidate, auxiliary_formula, candidate
from pybridge.selection.contributions_record import Contributions, Step
from pybridge.selection.fits import CandidateFit, Replicates, replicates_of
from pybridge.selection.refits import fit_candidates
from pybridge.tables.population import Population

__all__ = ["Contributions", "contributions"]


def contributions(
    design: SurveyDesign,
    population: Population,
    *,
    outcome: str = "y",
    domain: str | None = None,
    auxiliary: str | Sequence[str] | None = None,
    area_formula: str | None = None,
    finite_population: bool = True,
    level: float = 0.95,
    truth: Any = None,
) -> Contributions:
    """What unit-level and domain-level auxiliary information and the taxonomy each bring.

    Five estimators on one sample, each with one piece more than the one before: HT; its smoothing
    (Fay–Herriot, intercept only); domain-level covariates in the regression; unit-level auxiliary
    variables in the direct estimates (GREG instead of HT: PP-S); effects of the taxonomy's levels
    (PP-TS). All smoothing is Bayesian and native. What a piece brings depends on those that are
    there already: the order is part of the answer.

    Parameters
    ----------
    design, population, outcome, domain
        As in `horvitz_thompson`.
    auxiliary : str or list of str, optional
        Unit-level auxiliary variables; all that the population knows by default.
    area_formula : str, optional
        Right-hand side of the area-level regression; by default the domain means of the auxiliary
        variables.
    finite_population : bool
        Let a domain's mean differ from the model's by s²/N_i, as `standard_candidates` do.
    level : float
        Of the intervals.
    truth : Series, mapping or array of shape (m,), optional
        The true domain means, where they are known: labelled by domain, or in the order of
        ``population.domains``.

    Returns
    -------
    Contributions
        ``to_frame()`` is the table of steps; ``per_domain`` has every estimate.

    Raises
    ------
    InputError
        No auxiliary variable, a truth that does not fit, and all that the estimators raise.

    Notes
    -----
    HT's error is its smoothed sampling variance, the one that goes into the models, with a normal
    interval, so that all steps report on the same footing. Errors are the estimators' own: the
    model's word for it, except with ``truth``.
    """
    need_design(design, population)
    check_level(level)
    names = name_list("auxiliary", auxiliary) or population.auxiliary
    if not names:
        raise InputError(
            "there is no auxiliary variable whose contribution could be shown",
            code="missing_argument",
            field="auxiliary",
            expected="at least one, known to the population",
            got="none",
        )
    known = None if truth is None else _truth(truth, population)
    sample = domain_sample(design, population, outcome=outcome, domain=domain, auxiliary=names)
    replicates = replicates_of(sample, level=level, without=())
    formula = area_formula or auxiliary_formula(names)
    steps = _steps(names, formula, sample.population, finite_population)
    models = fit_candidates([item for _, item in steps], replicates)
    found = [_ht(replicates), *map(_step, (words for words, _ in steps), models)]
    return Contributions(
        steps=tuple(found),
        domains=sample.population.domains,
        n_labelled=sample.whole.n[0].astype(np.int64),
        outcome=outcome,
        auxiliary=names,
        area_formula=formula,
        taxonomy=sample.population.taxonomy,
        level=level,
        truth=known,
    )


def _steps(
    names: tuple[str, ...], formula: str, population: Population, finite: bool
) -> list[tuple[str, Candidate]]:
    """What each model brings that the one before has not, and the model."""
    area: dict[str, Any] = dict(smoothing="fay_herriot", method="bayes", finite_population=finite)
    greg: dict[str, Any] = dict(direct="greg", unit_auxiliary=names, area_formula=formula)
    out = [
        ("smoothing", candidate("FH, intercept only", area_formula="~ 1", **area)),
        ("domain-level auxiliary", candidate("FH", area_formula=formula, **area)),
        ("unit-level auxiliary", candidate("PP-S", **greg, **area)),
    ]
    if population.taxonomy:
        tree = dict(area, smoothing="taxonomy")
        out.append(("taxonomy", candidate("PP-TS", **greg, **tree)))
    return out


def _ht(replicates: Replicates) -> Step:
    """HT with the sampling variances that the models take."""
    whole = direct_estimates(
        replicates.sample, DirectRequest("ht"), variance="smoothed", level=replicates.level
    )
    return Step.normal("HT", whole.estimate, whole.variance, level=replicates.level)


def _step(brings: str, fit: CandidateFit) -> Step:
    return Step(
        name=fit.candidate.name,
        brings=brings,
        estimate=fit.estimate,
        mse=fit.mse,
        lower=fit.lower,
        upper=fit.upper,
        shrinkage=fit.shrinkage,
        model_variance=fit.model_variance,
        status=fit.fit_status,
        message=fit.message,
    )


def _truth(truth: Any, population: Population) -> np.ndarray:
    """The true means (m,) in the order of the population's domains."""
    domains = population.domains
    if isinstance(truth, Mapping):
        truth = pd.Series(truth)
    if isinstance(truth, pd.Series):
        missing = [label for label in domains if label not in truth.index]
        if missing or truth.index.has_duplicates:
            raise _bad_truth("one number for every domain", f"none for {listed(missing)}")
        truth = truth.loc[list(domains)]
    try:
        values = np.asarray(truth, dtype=np.float64)
    except (TypeError, ValueError):
        raise _bad_truth("numbers", type(truth).__name__) from None
    if values.shape != (len(domains),) or not np.isfinite(values).all():
        raise _bad_truth(f"{len(domains)} finite numbers", f"shape {values.shape}")
    return values


def _bad_truth(expected: str, got: str) -> InputError:
    return InputError(
        "the truth does not fit the domains",
        code="bad_truth",
        field="truth",
        expected=expected,
        got=got,
        hint="A Series labelled by domain, or an array in the order of population.domains.",
    )
