"""survey's svymean, svytotal, svyratio, svyby and svyglm on a design."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pybridge._options import choose
from pybridge.engines import _sae_request as requests
from pybridge.engines._survey_answer import estimated, sent_units, without_names
from pybridge.engines._survey_design import SvyDesign, design_request
from pybridge.engines._survey_record import SurveyEstimates
from pybridge.errors import InputError

STATISTICS = ("svymean", "svytotal", "svyratio")
FAMILIES = ("gaussian", "binomial", "poisson", "quasibinomial", "quasipoisson", "Gamma")
LINKS = ("identity", "log", "logit", "probit", "cloglog", "cauchit", "inverse", "sqrt")


def svymean(
    x: str,
    design: SvyDesign,
    *,
    na_rm: bool = False,
    deff: bool = False,
    level: float = 0.95,
    time_limit: float | None = None,
) -> SurveyEstimates:
    """Means of the whole population by survey::svymean.

    Parameters
    ----------
    x : str
        Variables, ``"~ y + as.factor(g)"``; a factor gives the proportions of its levels.
    design : SvyDesign
    na_rm : bool
        Whether units with missing values are left out (as if they were outside the population).
        Guarded, they are refused without it; R's answer is NA then.
    deff : bool
        Whether design effects are computed.
    level : float
        Confidence level of the t intervals with the design's degrees of freedom.
    time_limit : float, optional
        Seconds for R.

    Returns
    -------
    SurveyEstimates

    Raises
    ------
    InputError
        Before survey is called.
    EngineError
        Where R stops.
    EngineTimeout, EngineUnavailable
    """
    return _whole("svymean", {"x": x}, design, na_rm, deff, level, time_limit)


def svytotal(
    x: str,
    design: SvyDesign,
    *,
    na_rm: bool = False,
    deff: bool = False,
    level: float = 0.95,
    time_limit: float | None = None,
) -> SurveyEstimates:
    """Totals of the whole population by survey::svytotal; arguments as in `svymean`."""
    return _whole("svytotal", {"x": x}, design, na_rm, deff, level, time_limit)


def svyratio(
    numerator: str,
    denominator: str,
    design: SvyDesign,
    *,
    na_rm: bool = False,
    deff: bool = False,
    level: float = 0.95,
    time_limit: float | None = None,
) -> SurveyEstimates:
    """Ratios of totals by survey::svyratio, with their covariance.

    ``numerator`` and ``denominator`` are formulas without a left-hand side; the rest as in
    `svymean`.
    """
    formulas = {"numerator": numerator, "denominator": denominator}
    return _whole("svyratio", formulas, design, na_rm, deff, level, time_limit)


def _whole(
    function: str,
    formulas: Mapping[str, str],
    design: SvyDesign,
    na_rm: bool,
    deff: bool,
    level: float,
    time_limit: float | None,
) -> SurveyEstimates:
    options: dict[str, Any] = {"na.rm": requests.flag("na_rm", na_rm)}
    if requests.flag("deff", deff):
        options["deff"] = True
    if function == "svyratio":
        options["covmat"] = True
    call = {"function": function, "formulas": formulas, "options": options}
    return estimated(design, call, level=level, time_limit=time_limit)


def svyby(
    formula: str,
    by: str,
    design: SvyDesign,
    FUN: str = "svymean",
    *,
    denominator: str | None = None,
    na_rm: bool = False,
    deff: bool = False,
    drop_empty_groups: bool = True,
    covmat: bool = True,
    level: float = 0.95,
    time_limit: float | None = None,
) -> SurveyEstimates:
    """Estimates of domains by survey::svyby, domains being indicators on the whole sample.

    Parameters
    ----------
    formula : str
        Variables, ``"~ y"``.
    by : str
        The domains, ``"~ county"`` or ``"~ county + type"``.
    design : SvyDesign
    FUN : {"svymean", "svytotal", "svyratio"}
    denominator : str, optional
        For svyratio.
    covmat : bool
        Whether all domains' estimates have their covariance. R itself stops at this on a calibrated
        design and beside missing values; guarded it is then made of the linearised scores, for
        means and totals.
    na_rm, deff, drop_empty_groups, level, time_limit
        As in R and in `svymean`.

    Returns
    -------
    SurveyEstimates
        Guarded, domains in the order of their labels' characters whatever the locale, and no
        standard error for a domain of one unit. Raw, in R's order, with R's 0.
    """
    choose("FUN", FUN, STATISTICS)
    if (FUN == "svyratio") != (denominator is not None):
        raise InputError(
            "FUN='svyratio' and denominator go together",
            code="missing_argument",
            field="denominator",
            expected="a formula, with FUN='svyratio'",
            got=denominator,
        )
    formulas = {"formula": formula, "by": by}
    if denominator is not None:
        formulas["denominator"] = denominator
    options: dict[str, Any] = {
        "na.rm": requests.flag("na_rm", na_rm),
        "covmat": requests.flag("covmat", covmat),
        "drop.empty.groups": requests.flag("drop_empty_groups", drop_empty_groups),
    }
    if requests.flag("deff", deff):
        options["deff"] = True
    call = {"function": "svyby", "formulas": formulas, "FUN": FUN, "options": options}
    return estimated(design, call, level=level, time_limit=time_limit)


def svyglm(
    formula: str,
    design: SvyDesign,
    *,
    family: str = "gaussian",
    link: str | None = None,
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
    family : str
        gaussian, binomial, poisson, quasibinomial, quasipoisson or Gamma.
    link : str, optional
        R's default of the family otherwise.
    level, time_limit
        As in `svymean`; the degrees of freedom are those of R's summary.
    """
    choose("family", family, FAMILIES)
    call = {
        "function": "svyglm",
        "formulas": {"formula": formula},
        "family": family,
        "link": None if link is None else choose("link", link, LINKS),
        "options": {},
    }
    return estimated(design, call, level=level, time_limit=time_limit)


def weights(design: SvyDesign, *, time_limit: float | None = None) -> np.ndarray:
    """The weights (n,) of the sample's units after all calibrations, by R's weights()."""
    sent = design.for_r()
    asked = design_request(design, "weights", level=0.95, time_limit=time_limit)
    inputs = {**without_names(sent), "data": sent_units(design, sent["names"])}
    return np.array(requests.ask("survey_weights", inputs, asked).value["weights"])
