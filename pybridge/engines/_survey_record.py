"""The record of estimates by R's survey, and the same calls as a plain R script."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pybridge import _r_text as r
from pybridge._checks import listed
from pybridge._record import freeze, plain
from pybridge.engines._engine_units import SaeUnitRecord


_NO_NUMBER = {
    "single_unit": "one unit, hence no standard error",
    "out_of_sample": "no unit with a known value, hence no estimate",
}


@dataclass(frozen=True, eq=False, repr=False)
class SurveyEstimates(SaeUnitRecord):
    """Estimates by one function of survey; k numbers.

    Attributes
    ----------
    names : numpy.ndarray
        Shape (k,), object: R's names of the estimates, with the user's names of columns.
    by : mapping of str to numpy.ndarray
        Of svyby: for each margin the label of every estimate's group, (k,); else empty.
    statistic : numpy.ndarray
        Shape (k,), object: which variable it is an estimate of.
    estimate, standard_error, lower, upper : numpy.ndarray
        Shape (k,). Guarded, a group of one unit has no standard error and one of none no estimate;
        R calls them 0.
    covariance : numpy.ndarray
        Shape (k, k), R's vcov; of svyby without covmat the variances alone, zeros beside them.
    design_effect : numpy.ndarray
        Shape (k,); NaN where it was not asked for.
    n_units : numpy.ndarray
        Shape (k,), units in the group; guarded with na_rm, those with a known value of all the
        variables, which the estimate is made of.
    degrees_of_freedom : float
        R's degf of the design (of svyglm: of its residuals), which the intervals are made with.
    domain_status : numpy.ndarray
        Shape (k,), object: ``ok``, ``single_unit`` or (guarded) ``out_of_sample``.
    variation : mapping of str to numpy.ndarray
        Of svyby: R's own columns of ``vartype`` (se, ci_l, ci_u, cv, cv%, var), each (k,).
    influence : numpy.ndarray or None
        Shape (n, k), R's influence functions where they were asked for.
    """

    names: np.ndarray
    by: Mapping[str, np.ndarray]
    statistic: np.ndarray
    estimate: np.ndarray
    standard_error: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    covariance: np.ndarray
    design_effect: np.ndarray
    n_units: np.ndarray
    degrees_of_freedom: float
    domain_status: np.ndarray
    variation: Mapping[str, np.ndarray]
    influence: np.ndarray | None

    @property
    def cv(self) -> np.ndarray:
        """Standard error over the absolute estimate, shape (k,)."""
        size = np.abs(self.estimate)
        some = (size > 0) & np.isfinite(size)
        found = np.divide(self.standard_error, size, out=np.full(len(size), np.nan), where=some)
        return np.asarray(freeze(found))

    def to_frame(self) -> pd.DataFrame:
        """Columns: the margins of svyby, statistic, n_units, estimate, variance, standard_error,
        cv, lower, upper, level, degrees_of_freedom, design_effect, status.

        A margin that has the name of another column here is ``by_<name>``."""
        k = len(self.estimate)
        own: dict[str, Any] = dict(
            statistic=self.statistic,
            n_units=self.n_units,
            estimate=self.estimate,
            variance=self.standard_error**2,
            standard_error=self.standard_error,
            cv=self.cv,
            lower=self.lower,
            upper=self.upper,
            level=np.full(k, self.request.level),
            degrees_of_freedom=np.full(k, self.degrees_of_freedom),
            design_effect=self.design_effect,
            status=self.domain_status,
        )
        margins: dict[str, Any] = {}
        for name, column in self.by.items():
            free = name
            while free in own or (free != name and free in self.by):
                free = f"by_{free}"
            # Codes as a column of numbers, so that it can be merged with the user's.
            margins[free] = pd.Series(column, dtype=object).infer_objects().array
        return pd.DataFrame({**margins, **{name: np.array(column) for name, column in own.items()}})

    def summary(self) -> str:
        """The estimates as text."""
        lines = [
            self.request.summary(),
            f"{len(self.estimate)} estimates; status {self.status}; "
            f"{self.degrees_of_freedom:g} degrees of freedom",
        ]
        for word, what in _NO_NUMBER.items():
            which = self.names[self.domain_status == word]
            if len(which):
                lines.append(f"{what}: {listed(which)}")
        return "\n".join([*lines, *self.conditions])

    def to_dict(self) -> dict[str, Any]:
        """Everything but the inputs as plain Python values, ready for ``json``."""
        return {
            "request": plain(self.request),
            "status": self.status,
            "estimates": plain(self.to_frame().to_dict("list")),
            "covariance": plain(self.covariance),
            "variation": plain(self.variation),
            "conditions": list(self.conditions),
            "provenance": plain(self.provenance),
        }

    def _script(self, data: pd.DataFrame | None) -> str:
        without = bool(self.value["without_covmat"][0])
        return survey_script(self.request.summary(), self._complete(data), without_covmat=without)

    def _send(self, data: pd.DataFrame) -> dict[str, Any]:
        from pybridge.engines._survey_units import units_for_r

        return units_for_r(data, self.columns, guarded=not self.request.raw)


def survey_script(title: str, inputs: Mapping[str, Any], *, without_covmat: bool) -> str:
    """The calls as an R user writes them, units included; it leaves R's answer in ``result``.

    ``without_covmat``: svyby() has no covariance here, and would stop.
    """
    lines = [f"# {r.ascii_line(title)}", *r.EXACT_NUMBERS, f"data <- {r.frame(inputs['data'])}"]
    lines.append(
        f"options(survey.lonely.psu = {r.text(inputs['lonely'])},\n"
        "  survey.ultimate.cluster = FALSE,\n"
        f"  survey.adjust.domain.lonely = {r.value(inputs['lonely_domain'])})"
    )
    design = inputs["design"]
    words = [f"{name} = {code}" for name, code in design["formulas"].items()]
    if design["pps"] is not None:
        words.append(f"pps = {_pps(design)}")
    if design["joint"] is not None:
        lines.append(f"joint <- {r.matrix(design['joint'])}")
    words += ["data = data", *_options(design["options"])]
    lines.append(f"design <- survey::svydesign({', '.join(words)})")
    for step in inputs["steps"].values():
        lines.append(f"population <- {_population(step)}")
        more = "".join(f", {word}" for word in _options(step["options"]))
        lines.append(
            f"design <- survey::{step['call']}(design, {step['formula']}, population{more})"
        )
    asked = inputs["call"]
    words = [f"{name} = {code}" for name, code in asked["formulas"].items()] + ["design = design"]
    for name, code in (asked.get("expressions") or {}).items():
        words.append(f"{name} = {code.lstrip('~ ')}")
    if asked.get("FUN"):
        words.append(f"FUN = survey::{asked['FUN']}")
    if asked.get("family"):
        given = {name: asked[name] for name in ("link", "variance") if asked.get(name)}
        inside = ", ".join(f"{name} = {r.text(word)}" for name, word in given.items())
        words.append(f"family = stats::{asked['family']}({inside})")
    options = dict(asked["options"])
    if without_covmat:
        options["covmat"] = False
    words += _options(options)
    lines.append(f"result <- survey::{asked['function']}({', '.join(words)})")
    lines.append("print(result, digits = 10)\n")
    return "\n".join(lines)


def _options(options: Mapping[str, Any]) -> list[str]:
    if options.get("calfun") == "sinh":  # the one function that R knows by its object only
        options = {name: value for name, value in options.items() if name != "calfun"}
        return ["calfun = survey::cal.sinh", *_options(options)]
    return [f"{r.name(name)} = {r.value(value)}" for name, value in options.items()]


def _pps(design: Mapping[str, Any]) -> str:
    psum = "" if design["psum"] is None else r.number(design["psum"])
    words = {"HR": f"survey::HR({psum})", "ppsmat": "survey::ppsmat(joint)"}
    if design["pps"] == "poisson":
        probs = design["formulas"]["probs"]
        return f"survey::poisson_sampling(model.frame({probs}, data)[[1]])"
    return words.get(design["pps"], r.text(design["pps"]))


def _population(step: Mapping[str, Any]) -> str:
    table = step["population"]
    if step["call"] == "postStratify":
        return r.frame(table)
    names = r.vector(map(r.text, table["name"]))
    values = np.asarray(table["value"])
    named = [f"setNames({r.vector(map(r.number, row))}, {names})" for row in np.atleast_2d(values)]
    inside = ",\n  ".join(named)
    return named[0] if values.ndim == 1 else f"list({inside})"
