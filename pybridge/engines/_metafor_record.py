"""The record of a fit by metafor::rma.mv, and the same call as a plain R script."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pybridge import _r_text as r
from pybridge._options import choose
from pybridge._record import freeze, plain
from pybridge.engines._package_record import PackageFit
from pybridge.engines._engine_request import numbers, refuse_redrawn


_VARIANCES = ("sigma2", "tau2", "rho", "gamma2", "phi")


@dataclass(frozen=True, eq=False, repr=False)
class MetaforFit(PackageFit):
    """A multilevel model by metafor::rma.mv; m rows in the table's order.

    Attributes
    ----------
    domains : numpy.ndarray
        Shape (m,), object, labels of the rows.
    direct, direct_variance : numpy.ndarray
        Shape (m,).
    synthetic, estimate : numpy.ndarray
        Shape (m,), X b, and with the predicted effects of all grouping factors; NaN in rows that
        R left out, and the latter where effects are not intercepts.
    exact : mapping
        Guarded, nested random intercepts: ``variances`` by level and the maximum attained,
        natively; ``at_engine``, the same likelihood at R's variances; ``shortfall``.
    """

    domains: np.ndarray
    direct: np.ndarray
    direct_variance: np.ndarray
    synthetic: np.ndarray
    estimate: np.ndarray
    exact: Mapping[str, Any]

    @property
    def variances(self) -> dict[str, float]:
        """R's sigma2, by the grouping factor; empty without any."""
        names = list(self.value.get("s.names") or [])
        return dict(zip(names, map(float, self.value.get("sigma2", ()))))

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """R's sigma2, tau2, rho, gamma2 and phi, those that the model has."""
        return {name: np.array(self.value[name]) for name in _VARIANCES if name in self.value}

    @property
    def coefficients(self) -> pd.DataFrame:
        """Table: term, estimate, standard_error, statistic, p_value, lower, upper, as R has."""
        names = ("beta", "se", "zval", "pval", "ci.lb", "ci.ub")
        words = ("estimate", "standard_error", "statistic", "p_value", "lower", "upper")
        table: dict[str, Any] = {"term": list(self.value.get("terms") or [])}
        table.update((w, numbers(self.value.get(n, ()))) for w, n in zip(words, names))
        return pd.DataFrame(table)

    @property
    def coefficient_covariance(self) -> np.ndarray:
        """Shape (p, p), R's vb."""
        return np.asarray(freeze(np.asarray(self.value.get("vb", np.empty((0, 0))))))

    @property
    def criteria(self) -> pd.DataFrame:
        """R's fit statistics: statistic (ll, dev, AIC, BIC, AICc), ML, REML."""
        return pd.DataFrame(
            {
                "statistic": list(self.value.get("statistics") or []),
                "ML": numbers(self.value.get("ML", ())),
                "REML": numbers(self.value.get("REML", ())),
            }
        )

    @property
    def log_likelihood(self) -> float:
        """The one that the method maximises, as R has it."""
        restricted = self.request.arguments["method"] == "REML"
        found = self.value.get("REML" if restricted else "ML", ())
        return float(found[0]) if len(found) else math.nan

    def effects(self, level: str) -> pd.DataFrame:
        """Predicted effects of one grouping factor: group, effect, standard_error.

        Groups are labels of the table; those of nested factors, ``a/b``, are text as in R, with
        numbers written out.

        Parameters
        ----------
        level : str
            One of ``variances``.
        """
        names = list(self.variances)
        place = names.index(choose("level", level, names)) + 1
        return pd.DataFrame({k: list(v) for k, v in self.value["effects"][f"level{place}"].items()})

    def to_frame(self) -> pd.DataFrame:
        """Columns: domain, direct, direct_variance, synthetic, estimate, used."""
        table = {
            "domain": self.domains,
            "direct": self.direct,
            "direct_variance": self.direct_variance,
            "synthetic": self.synthetic,
            "estimate": self.estimate,
            "used": ~np.isnan(self.synthetic),
        }
        return pd.DataFrame({name: np.array(column) for name, column in table.items()})

    def summary(self) -> str:
        """The fit as text."""
        found = ", ".join(f"{name} {value:.6g}" for name, value in self.variances.items())
        lines = [
            self.request.summary(),
            f"{len(self.domains)} rows; status {self.status} (engine: {self.engine_status})",
        ]
        if found:
            lines.append(f"variances (sigma2): {found}")
        for name, value in self.parameters.items():
            if name != "sigma2":
                lines.append(f"{name}: {', '.join(f'{number:.6g}' for number in value)}")
        lines.append(
            f"log-likelihood {self.log_likelihood:.6g} ({self.request.arguments['method']})"
        )
        terms = list(self.coefficients["term"])
        if terms:
            with_or_without = "with" if "intrcpt" in terms else "without"
            lines.append(f"fixed part: {len(terms)} coefficients, {with_or_without} an intercept")
        lines.append(self.coefficients.to_string(index=False, float_format=lambda x: f"{x:.5g}"))
        return "\n".join([*lines, *self.conditions])

    def to_dict(self) -> dict[str, Any]:
        """Everything but the inputs as plain Python values, ready for ``json``."""
        return {
            "request": plain(self.request),
            "status": self.status,
            "engine_status": self.engine_status,
            "variances": plain(self.variances),
            "parameters": plain(self.parameters),
            "log_likelihood": plain(self.log_likelihood),
            "coefficients": plain(self.coefficients.to_dict("list")),
            "criteria": plain(self.criteria.to_dict("list")),
            "domains": plain(self.to_frame().to_dict("list")),
            "exact": plain(self.exact),
            "conditions": list(self.conditions),
            "provenance": plain(self.provenance),
        }

    def _row_labels(self) -> dict[str, Any] | None:
        if self.request.raw:
            return None
        return {"domain": [str(label) for label in self.domains]}

    def _need_seed(self) -> None:
        control = self.inputs["options"].get("control") or {}
        if "SANN" in (control.get("optimizer"), control.get("optmethod")):
            refuse_redrawn(
                "optim's simulated annealing searched",
                hint="metafor takes no seed; any other optimizer goes the same way each time.",
            )

    def _script(self, data: pd.DataFrame | None) -> str:
        return metafor_script(self.request.summary(), self.inputs)


def metafor_script(title: str, inputs: Mapping[str, Any]) -> str:
    """The call of rma.mv as an R user writes it, data included; it leaves R's answer in fit."""
    lines = [f"# {r.ascii_line(title)}", *r.EXACT_NUMBERS, f"data <- {r.frame(inputs['data'])}"]
    words = [str(inputs["yi"]), str(inputs["V"] or "V")]
    if inputs["V"] is None:
        lines.append(f"V <- {r.matrix(inputs['matrix'])}")
    if inputs.get("W") is not None:
        lines.append(f"W <- {r.matrix(inputs['W'])}")
        words.append("W = W")
    if inputs.get("mods"):
        words.append(f"mods = {inputs['mods']}")
    if inputs.get("random"):
        words.append(f"random = list({', '.join(inputs['random'])})")
    if inputs.get("R"):
        lines.append("R <- list()")
        for name, item in inputs["R"].items():
            labels = list(item["labels"])
            lines.append(
                f"R[[{r.text(name)}]] <- {r.matrix(item['matrix'], rows=labels, columns=labels)}"
            )
        words.append("R = R")
    words.append("data = data")
    if inputs.get("slab"):
        words.append(f"slab = {inputs['slab']}")
    if inputs.get("subset"):
        words.append(f"subset = {inputs['subset'].lstrip('~ ')}")
    if inputs.get("rows") is not None:
        words.append(f"subset = {r.value(inputs['rows'])}")
    words += [f"{r.name(name)} = {r.value(value)}" for name, value in inputs["options"].items()]
    lines.append("fit <- metafor::rma.mv(\n  " + ",\n  ".join(words) + "\n)")
    lines.append("print(fit)")
    # With weights of one's own metafor has no predicted effects: ranef() stops.
    if inputs.get("W") is None:
        lines.append("print(metafor::ranef(fit))")
    return "\n".join([*lines, ""])
