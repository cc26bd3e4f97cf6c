"""survey's svyglm on a design, and the design's weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pybridge._checks import number_vector
from pybridge._options import choose, whole_number, yes_or_no
from pybridge.engines import _engine_request as requests
from pybridge.engines._r_formula import condition_of
from pybridge.engines._survey_answer import estimated, sent_units, without_names
from pybridge.engines._survey_design import SvyDesign, design_request, need_design, positive
from pybridge.engines._survey_record import SurveyEstimates
from pybridge.engines._survey_units import refuse_overflow
from pybridge.errors import InputError

FAMILIES = (
    *("gaussian", "binomial", "poisson", "quasibinomial", "quasipoisson", "Gamma"),
    *("inverse.gaussian", "quasi"),
)
LINKS = (
    *("identity", "log", "logit", "probit", "cloglog", "cauchit", "inverse", "sqrt"),
    "1/mu^2",
)
VARIANCES = ("constant", "mu(1-mu)", "mu", "mu^2", "mu^3")
CONTRASTS = ("contr.treatment", "contr.sum", "contr.helmert", "contr.poly", "contr.SAS")
GAPS = ("na.omit", "na.exclude", "na.fail")


def svyglm(
    formula: str,
    design: SvyDesign,
    *,
    subset: str | None = None,
    family: str = "gaussian",
    link: str | None = None,
    variance: str | None = None,
    start: Sequence[float] | None = None,
    rescale: bool = True,
    weights: str | None = None,
    contrasts: Mapping[str, str] | None = None,
    deff: bool = False,
    influence: bool = False,
    epsilon: float | None = None,
    maxit: int | None = None,
    na_action: str | None = None,
    level: float = 0.95,
    time_limit: float | None = None,
) -> SurveyEstimates:
    """Regression coefficients of a finite population by survey::svyglm.

    Parameters
    ----------
    formula : str
        ``"y ~ x + as.factor(g)"``.
    design : SvyDesign
        Calibrated or not.
    subset : str, optional
        A condition in R's words, ``"x > 10 & g == 'a'"``: the domain of the regression, the rest
        of the sample kept for the variances.
    family : str
        gaussian, binomial, poisson, quasibinomial, quasipoisson, Gamma, inverse.gaussian or quasi.
    link : str, optional
        R's default of the family otherwise.
    variance : str, optional
        The variance function of ``quasi``: constant, mu, mu^2, mu^3 or mu(1-mu).
    start : sequence of float, (p,), optional
        Where the search starts.
    rescale : bool
        Whether R divides the weights by their mean; their size matters to the search only.
    weights : str, optional
        A variable, or an expression in R's words, by which the sampling weights are multiplied.
    contrasts : mapping of str to str, optional
        Of factors by their terms: contr.treatment, contr.sum, contr.helmert, contr.poly or
        contr.SAS.
    deff : bool
        Whether design effects of the coefficients are computed.
    influence : bool
        Whether the record gets R's influence functions (survey 4.1-1 stops at it).
    epsilon, maxit : float, int, optional
        Of glm's search; R's are 1e-8 and 25.
    na_action : {"na.omit", "na.exclude", "na.fail"}, optional
        What R does with units that lack a value; guarded, they are refused where nothing is said.
    level, time_limit
        As in `svymean`; the degrees of freedom are those of R's summary.

    Returns
    -------
    SurveyEstimates
        ``engine_status`` is glm's flag. Guarded, ``status`` is also ``not_converged`` where the
        terms separate a binary outcome or counts, which glm often calls converged, and
        ``weak_identification`` without residual degrees of freedom; the conditions say so.

    Raises
    ------
    InputError
        Before survey is called.
    EngineError
        Where R stops.
    EngineTimeout, EngineUnavailable
    """
    need_design(design)
    choose("family", family, FAMILIES)
    if (family == "quasi") < (variance is not None):
        raise InputError(
            "variance is of family='quasi'",
            code="not_available",
            field="variance",
            expected="family='quasi', or no variance",
            got=f"family={family!r}",
        )
    options: dict[str, Any] = {}
    if start is not None:
        options["start"] = number_vector("start", start)
    if epsilon is not None:
        options["epsilon"] = positive("epsilon", epsilon)
    if maxit is not None:
        options["maxit"] = whole_number("maxit", maxit, least=1)
    if contrasts is not None:
        options["contrasts"] = _contrasts(contrasts)
    if na_action is not None:
        options["na.action"] = choose("na_action", na_action, GAPS)
    for name, value, usual in (
        ("rescale", rescale, True),
        ("deff", deff, False),
        ("influence", influence, False),
    ):
        if yes_or_no(name, value) != usual:
            options[name] = not usual
    call = {
        "function": "svyglm",
        "formulas": {"formula": formula},
        "expressions": {
            name: _expression(name, text)
            for name, text in (("subset", subset), ("weights", weights))
            if text is not None
        },
        "family": family,
        "link": None if link is None else choose("link", link, LINKS),
        "variance": None if variance is None else choose("variance", variance, VARIANCES),
        "options": options,
    }
    return estimated(design, call, level=level, time_limit=time_limit)


def _expression(field: str, text: Any) -> str:
    found = condition_of(text, field=field)
    if found is not None:
        return found
    raise InputError(
        f"{field} must be an expression in R's words",
        code="bad_formula",
        field=field,
        expected="text such as 'x > 10'",
        got=type(text).__name__,
        hint=f"Values of the units can be a column of the sample: {field}='column'.",
    )


def _contrasts(given: Any) -> dict[str, str]:
    if isinstance(given, Mapping) and given and all(isinstance(term, str) for term in given):
        return {term: choose("contrasts", word, CONTRASTS) for term, word in given.items()}
    raise InputError(
        "contrasts must be given by the factors' terms",
        code="not_a_mapping",
        field="contrasts",
        expected="{'g': 'contr.sum'}",
        got=type(given).__name__,
    )


def weights(object: SvyDesign, *, time_limit: float | None = None) -> np.ndarray:
    """The weights (n,) of the sample's units after all calibrations, by R's weights().

    Parameters
    ----------
    object : SvyDesign
    time_limit : float, optional
        Seconds for R.
    """
    design = need_design(object)
    sent = design.for_r()
    asked = design_request(design, "weights", level=0.95, time_limit=time_limit)
    inputs = {**without_names(sent), "data": sent_units(design, sent["names"])}
    reply = requests.ask("survey_weights", inputs, asked)
    refuse_overflow(reply, design)
    return np.array(reply.value["weights"])
