"""The four direct estimators, as users call them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pybridge._checks import name_list
from pybridge._options import DIRECT_VARIANCES, choose, yes_or_no
from pybridge.design.survey_design import SurveyDesign
from pybridge.direct.estimates import DirectEstimates, direct_estimates
from pybridge.direct.inputs import (
    DomainSample,
    auxiliary_positions,
    domain_sample,
    need_design,
)
from pybridge.direct.linear import DirectRequest
from pybridge.direct.slopes import check_slope
from pybridge.errors import InputError
from pybridge.tables.population import Population

_PARAMETERS = """Parameters
    ----------
    design : SurveyDesign
        The labelled sample, from `survey_design`.
    population : Population
        Domain sizes and auxiliary means, from `population`.
    outcome : str
        Column of the outcome.
    domain : str, optional
        Column of the domain in the sample, where it is not named as in the population.
    variance : {"direct", "smoothed", "pooled", "gvf"}
        What the variances are; estimates do not change. "smoothed" leans on what all domains share,
        the more so the less a domain's own data say and the heavier the tails are.
    level : float
        Confidence level of the t intervals.
    engine : {"native", "survey"}
        Who computes: pybridge, or R's package survey (its estimates, full covariance and degrees of
        freedom; ``variance="direct"`` only). Never one in place of the other.
"""

ENGINES = ("native", "survey")


def horvitz_thompson(
    design: SurveyDesign,
    population: Population,
    *,
    outcome: str = "y",
    domain: str | None = None,
    variance: str = "direct",
    level: float = 0.95,
    engine: str = "native",
) -> DirectEstimates:
    """Horvitz–Thompson estimates (1/N_i) Σ w y of the domain means.

    %(parameters)s
    Returns
    -------
    DirectEstimates
        NaN with the status ``out_of_sample`` in domains without labels.

    Raises
    ------
    InputError
        Columns that are missing or hold what they must not; domains that do not fit.

    References
    ----------
    Horvitz and Thompson (1952). Equal to R's ``svytotal`` of y in the domain over N_i.
    """
    check_engine(engine, variance)
    sample = domain_sample(design, population, outcome=outcome, domain=domain, auxiliary=())
    words: dict[str, Any] = {
        "domain": domain,
        "variance": variance,
        "level": level,
        "engine": engine,
    }
    return estimates_by(design, sample, DirectRequest("ht"), **words)


def hajek(
    design: SurveyDesign,
    population: Population,
    *,
    outcome: str = "y",
    domain: str | None = None,
    variance: str = "direct",
    level: float = 0.95,
    engine: str = "native",
) -> DirectEstimates:
    """Hájek estimates Σ w y / Σ w of the domain means.

    %(parameters)s
    Returns
    -------
    DirectEstimates
        With one labelled unit the direct variance does not exist: NaN.

    Raises
    ------
    InputError
        As `horvitz_thompson`.

    References
    ----------
    Hájek (1971). Equal to R's ``svyby(~y, ~domain, design, svymean)``.
    """
    check_engine(engine, variance)
    sample = domain_sample(design, population, outcome=outcome, domain=domain, auxiliary=())
    words: dict[str, Any] = {
        "domain": domain,
        "variance": variance,
        "level": level,
        "engine": engine,
    }
    return estimates_by(design, sample, DirectRequest("hajek"), **words)


def prediction_powered(
    design: SurveyDesign,
    population: Population,
    *,
    outcome: str = "y",
    domain: str | None = None,
    prediction: str | None = None,
    variance: str = "direct",
    level: float = 0.95,
    engine: str = "native",
) -> DirectEstimates:
    """Prediction-powered (difference) estimates F̄_i + (1/N_i) Σ w (y − f).

    ``prediction`` names the auxiliary variable f, which must be on the scale of the outcome; it
    may be left out where the population has one auxiliary variable only.

    %(parameters)s
    Returns
    -------
    DirectEstimates
        F̄_i with the status ``out_of_sample`` and no variance in domains without labels.

    Raises
    ------
    InputError
        As `horvitz_thompson`, and a prediction that the population does not know.

    References
    ----------
    Angelopoulos et al. (2023); Särndal, Swensson and Wretman (1992), section 6.3. Variance equal to
    R's ``svytotal`` of y − f in the domain over N_i.
    """
    check_engine(engine, variance)
    need_design(design, population)
    name = _prediction_name(population, prediction)
    auxiliary_positions(population, (name,), field="prediction")
    sample = domain_sample(design, population, outcome=outcome, domain=domain, auxiliary=(name,))
    request = DirectRequest("ppi", auxiliary_positions(sample.population, (name,)))
    words: dict[str, Any] = {
        "domain": domain,
        "variance": variance,
        "level": level,
        "engine": engine,
    }
    return estimates_by(design, sample, request, **words)


def generalized_regression(
    design: SurveyDesign,
    population: Population,
    *,
    outcome: str = "y",
    domain: str | None = None,
    auxiliary: str | Sequence[str] | None = None,
    formula: str | None = None,
    slope: str | float | Sequence[float] = "pooled",
    intercept: bool = True,
    variance: str = "direct",
    level: float = 0.95,
    engine: str = "native",
) -> DirectEstimates:
    """Generalised regression estimates x̄_i'β + (1/N_i) Σ w (y − x'β), x = (1, f).

    ``auxiliary`` names the variables (all that the population knows by default); ``formula`` does
    so too where the population was described by that formula. ``slope`` is "pooled" (one weighted
    least-squares fit over all domains), "within" (domain intercepts in that fit), "domain" (a fit a
    domain where it has labels enough, else the pooled one), or fixed numbers. Without
    ``intercept``, slope 0 is HT and slope 1 is PPI.

    %(parameters)s
    Returns
    -------
    DirectEstimates
        The synthetic x̄_i'β with the status ``out_of_sample`` in domains without labels.

    Raises
    ------
    InputError
        As `horvitz_thompson`, and auxiliary variables that are constant or collinear.

    References
    ----------
    Särndal, Swensson and Wretman (1992), chapter 6. Variance equal to R's ``svytotal`` of the
    residuals, β held fixed, in the domain over N_i.
    """
    check_engine(engine, variance)
    need_design(design, population)
    request = greg_request(population, auxiliary, slope=slope, intercept=intercept, formula=formula)
    used = tuple(population.auxiliary[j] for j in request.auxiliary)
    sample = domain_sample(design, population, outcome=outcome, domain=domain, auxiliary=used)
    request = replace(request, auxiliary=auxiliary_positions(sample.population, used))
    words: dict[str, Any] = {
        "domain": domain,
        "variance": variance,
        "level": level,
        "engine": engine,
    }
    return estimates_by(design, sample, request, **words)


def check_engine(engine: str, variance: str) -> None:
    """Refuse an engine that there is not, and variances that it does not have."""
    if choose("engine", engine, ENGINES) == "survey":
        from pybridge.direct._survey import refuse_variance

        refuse_variance(choose("variance", variance, DIRECT_VARIANCES))


def estimates_by(
    design: SurveyDesign,
    sample: DomainSample,
    request: DirectRequest,
    *,
    domain: str | None,
    variance: str,
    level: float,
    engine: str,
) -> DirectEstimates:
    """One estimator of a sample after the pass, by the engine."""
    found = direct_estimates(sample, request, variance=variance, level=level)
    if engine == "native":
        return found
    from pybridge.direct._survey import by_survey

    return by_survey(found, design, request, domain=domain)


for _function in (horvitz_thompson, hajek, prediction_powered, generalized_regression):
    if _function.__doc__:  # absent under python -OO
        _function.__doc__ = _function.__doc__.replace("%(parameters)s", _PARAMETERS)


def request_of(
    method: str, population: Population, *, slope: str | float | Sequence[float] = "pooled"
) -> DirectRequest:
    """The request for a method named by a word, with all auxiliary variables known."""
    choose("method", method, ("ht", "hajek", "ppi", "greg"))
    if method == "greg":
        return greg_request(population, None, slope=slope)
    if method == "ppi":
        name = _prediction_name(population, None)
        return DirectRequest("ppi", auxiliary_positions(population, (name,), field="prediction"))
    return DirectRequest(method)


def greg_request(
    population: Population,
    auxiliary: str | Sequence[str] | None,
    *,
    slope: str | float | Sequence[float] = "pooled",
    intercept: bool = True,
    formula: str | None = None,
) -> DirectRequest:
    """Check GREG's options and say which columns of the cells it uses."""
    if formula is not None and formula != population.formula:
        names = _formula_names(population, formula)
    else:
        names = name_list("auxiliary", auxiliary) or population.auxiliary
    if not names:
        raise InputError(
            "generalised regression needs an auxiliary variable",
            code="missing_argument",
            field="auxiliary",
            expected="at least one auxiliary variable known on the population",
            got="none",
        )
    positions = auxiliary_positions(population, names)
    has = yes_or_no("intercept", intercept)
    return DirectRequest("greg", positions, check_slope(slope, len(positions)), has)


def _prediction_name(population: Population, prediction: str | None) -> str:
    if prediction is not None:
        return prediction
    if len(population.auxiliary) == 1:
        return population.auxiliary[0]
    raise InputError(
        "name the auxiliary variable that predicts the outcome",
        code="missing_argument",
        field="prediction",
        expected=f"one of: {', '.join(population.auxiliary) or 'none known'}",
        got=None,
    )


def _formula_names(population: Population, formula: str) -> tuple[str, ...]:
    """Columns of a formula whose terms are auxiliary variables as they stand, as in "~ f + g"."""
    terms = tuple(part.strip() for part in formula.strip().lstrip("~").split("+"))
    names = tuple(term for term in terms if term not in ("1", ""))
    unknown = [name for name in names if name not in population.auxiliary]
    if unknown:
        raise InputError(
            f"the population does not know the term {unknown[0]!r}",
            code="unknown_auxiliary",
            field="formula",
            expected=f"the formula of the population ({population.formula}) or a sum of "
            f"{', '.join(population.auxiliary)}",
            got=formula,
            hint="Describe the population with this formula: population(..., formula=...).",
        )
    return names
