"""survey's svymean, svytotal, svyratio and svyby on a design."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pybridge._options import choose, yes_or_no
from pybridge.engines._survey_answer import estimated
from pybridge.engines._survey_design import SvyDesign, need_design
from pybridge.engines._survey_record import SurveyEstimates
from pybridge.errors import InputError

STATISTICS = ("svymean", "svytotal", "svyratio")
VARTYPES = ("se", "ci", "cv", "cvpct", "var")


def svymean(
    x: str,
    design: SvyDesign,
    *,
    na_rm: bool = False,
    deff: bool | str = False,
    influence: bool = False,
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
    deff : bool or "replace"
        Whether design effects are computed; ``"replace"``: against a sample with replacement.
    influence : bool
        Whether the record gets R's influence functions of the units, ``influence`` (n, k).
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
    options = _whole(design, na_rm, deff, influence)
    call = {"function": "svymean", "formulas": {"x": x}, "options": options}
    return estimated(design, call, level=level, time_limit=time_limit)


def svytotal(
    x: str,
    design: SvyDesign,
    *,
    na_rm: bool = False,
    deff: bool | str = False,
    influence: bool = False,
    level: float = 0.95,
    time_limit: float | None = None,
) -> SurveyEstimates:
    """Totals of the whole population by survey::svytotal; arguments as in `svymean`."""
    options = _whole(design, na_rm, deff, influence)
    call = {"function": "svytotal", "formulas": {"x": x}, "options": options}
    return estimated(design, call, level=level, time_limit=time_limit)


def svyratio(
    numerator: str,
    denominator: str,
    design: SvyDesign,
    *,
    separate: bool = False,
    na_rm: bool = False,
    covmat: bool | None = None,
    deff: bool | str = False,
    influence: bool = False,
    level: float = 0.95,
    time_limit: float | None = None,
) -> SurveyEstimates:
    """Ratios of totals by survey::svyratio, with their covariance.

    Parameters
    ----------
    numerator, denominator : str
        Formulas without a left-hand side.
    design, na_rm, deff, level, time_limit
        As in `svymean`.
    separate : bool
        Whether each stratum has ratios of its own (the separate ratio estimator): one row a stratum
        and ratio, the stratum in ``by``. R hands none of the other options on to the strata.
    covmat : bool, optional
        Whether several ratios have their covariance; NaN beside the variances without it. By
        default they have, and in raw mode, as in R, not.
    influence : bool
        Whether the record gets R's influence functions; R has them for the last ratio only.
    """
    need_design(design)
    formulas = {"numerator": numerator, "denominator": denominator}
    options = _whole(design, na_rm, deff, influence)
    options["covmat"] = _covmat(covmat, design)
    if yes_or_no("separate", separate):
        _refuse_separate(design, options)
        options = {"separate": True}
    call = {"function": "svyratio", "formulas": formulas, "options": options}
    return estimated(design, call, level=level, time_limit=time_limit)


def _refuse_separate(design: SvyDesign, options: Mapping[str, Any]) -> None:
    words = [name for name in ("na.rm", "deff", "influence") if options.get(name)]
    if "strata" in design.formulas and not words:
        return
    got = f"{words[0].replace('.', '_')}=True" if words else "a design without strata"
    raise InputError(
        "separate=True is one ratio a stratum, without R's other options",
        code="not_available",
        field="separate",
        expected="a design with strata, and no na_rm, deff, influence",
        got=got,
        hint="R hands them on to no stratum, and says nothing.",
    )


def _whole(design: SvyDesign, na_rm: Any, deff: Any, influence: Any) -> dict[str, Any]:
    """R's options of means, totals and ratios; those that are asked for."""
    need_design(design)
    options: dict[str, Any] = {"na.rm": yes_or_no("na_rm", na_rm), **_effect(deff)}
    if yes_or_no("influence", influence):
        if design.pps is not None:
            raise InputError(
                "R has no influence functions for sampling proportional to size",
                code="not_available",
                field="influence",
                expected="a design without pps",
                got=f"pps={design.pps!r}",
            )
        options["influence"] = True
    return options


def _covmat(given: Any, design: SvyDesign) -> bool:
    return design.mode == "guarded" if given is None else yes_or_no("covmat", given)


def _effect(deff: Any) -> dict[str, Any]:
    """R's deff: a flag, or "replace"."""
    if isinstance(deff, str):
        return {"deff": choose("deff", deff, ("replace",))}
    return {"deff": True} if yes_or_no("deff", deff) else {}


def svyby(
    formula: str,
    by: str,
    design: SvyDesign,
    FUN: str = "svymean",
    *,
    denominator: str | None = None,
    na_rm: bool = False,
    deff: bool | str = False,
    keep_var: bool = True,
    keep_names: bool = True,
    vartype: str | Sequence[str] = "se",
    drop_empty_groups: bool = True,
    covmat: bool | None = None,
    influence: bool = False,
    na_rm_by: bool = False,
    na_rm_all: bool = False,
    level: float = 0.95,
    time_limit: float | None = None,
) -> SurveyEstimates:
    """Estimates of domains by survey::svyby, domains being indicators on the whole sample.

    Parameters
    ----------
    formula : str
        Variables, ``"~ y"``; of categories a categorical column. A factor that the formula makes,
        ``"~ factor(g)"``, R makes in every group anew: guarded it is refused where the groups'
        levels differ, in raw mode where R has no table of them.
    by : str
        The domains, ``"~ county"`` or ``"~ county + type"``; also what R makes of columns,
        ``"~ cut(x, c(0, 10, 50))"``, ``"~ I(x > 10)"``, whose labels are then R's.
    design : SvyDesign
    FUN : {"svymean", "svytotal", "svyratio"}
    denominator : str, optional
        For svyratio.
    keep_var : bool
        Whether R computes variances; without them there are no standard errors and no covariance.
    keep_names : bool
        Whether R names the rows by their groups; numbers otherwise.
    vartype : str or sequence of str
        ``se``, ``ci``, ``cv``, ``cvpct``, ``var``: R's own columns in its table, which are in
        ``variation`` of the record. (R has no SE() of a table with ``ci`` alone.)
    covmat : bool, optional
        Whether all domains' estimates have their covariance; by default they have, and in raw mode,
        as in R, not. R itself stops at this on a calibrated design, beside missing values and at
        several ratios; guarded it is then made of the linearised scores, for means and totals, and
        ratios have their variances alone, with a condition that says so, unless it was asked for.
    influence : bool
        Whether the record gets R's influence functions, a column an estimate.
    na_rm_by, na_rm_all : bool
        Whether units without a group, and groups without a known value of the variables, are left
        out.
    na_rm, deff, drop_empty_groups, level, time_limit
        As in R and in `svymean`.

    Returns
    -------
    SurveyEstimates
        Guarded, domains in the order of their labels' characters whatever the locale, and no
        standard error for a domain of one unit, no estimate for one without any (``out_of_sample``)
        where units without a known value do not count. Raw, in R's order, with R's 0.
    """
    need_design(design)
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
    variances = yes_or_no("keep_var", keep_var)
    options: dict[str, Any] = {
        **_whole(design, na_rm, deff, influence),
        "covmat": _covmat(covmat, design) and variances,
        "drop.empty.groups": yes_or_no("drop_empty_groups", drop_empty_groups),
    }
    if deff and FUN == "svyratio" and design.pps not in (None, "brewer"):
        raise InputError(
            "R has no design effects of ratios for sampling proportional to size",
            code="not_available",
            field="deff",
            expected="deff=False, or a design without pps",
            got=f"pps={design.pps!r}",
            hint="R's svyby goes on without, and SE() then takes other columns for the errors.",
        )
    if influence and not (variances and drop_empty_groups):
        raise InputError(
            "influence functions are of groups with units and variances",
            code="not_available",
            field="influence",
            expected="keep_var=True and drop_empty_groups=True",
            got=f"keep_var={keep_var}, drop_empty_groups={drop_empty_groups}",
        )
    for name, value, usual in (
        ("keep.var", variances, True),
        ("keep.names", keep_names, True),
        ("na.rm.by", na_rm_by, False),
        ("na.rm.all", na_rm_all, False),
    ):
        if yes_or_no(name.replace(".", "_"), value) != usual:
            options[name] = not usual
    kinds = _vartype(vartype)
    if kinds != ["se"]:
        options["vartype"] = kinds
    call = {
        "function": "svyby",
        "formulas": formulas,
        "FUN": FUN,
        "covmat_default": covmat is None,
        "options": options,
    }
    return estimated(design, call, level=level, time_limit=time_limit)


def _vartype(given: Any) -> list[str]:
    words = [given] if isinstance(given, str) or not np.iterable(given) else list(given)
    if not words:
        choose("vartype", None, VARTYPES)
    chosen = [choose("vartype", word, VARTYPES) for word in words]
    return [word for word in VARTYPES if word in chosen]
