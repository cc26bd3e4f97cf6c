"""The record of a fit by hbsae::fSAE.Area, and the same call as a plain R script."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd

from pybridge import _r_text as r
from pybridge._record import plain
from pybridge.engines._package_record import PackageFit
from pybridge.engines._engine_request import numbers


@dataclass(frozen=True, eq=False, repr=False)
class HbsaeFit(PackageFit):
    """An area-level model by hbsae::fSAE.Area; m areas.

    Attributes
    ----------
    domains : numpy.ndarray
        Shape (m,), object: guarded, those of the table, then those that X has beside them; raw, in
        the order of R's answer.
    direct, direct_variance : numpy.ndarray
        Shape (m,); NaN in areas without a direct estimate.
    estimate, mse : numpy.ndarray
        Shape (m,), R's EST and MSE (posterior means and variances under method HB).
    exact : mapping
        Guarded, method HB with its flat prior: ``model_variance`` (posterior median),
        ``model_variance_mean``, ``estimate`` and ``mse`` by quadrature, and ``apart``, the largest
        difference of R's estimates in posterior deviations. Method REML: the optimum and both
        restricted likelihoods.
    """

    domains: np.ndarray
    direct: np.ndarray
    direct_variance: np.ndarray
    estimate: np.ndarray
    mse: np.ndarray
    exact: Mapping[str, Any]

    def number(self, name: str) -> float:
        """One of R's numbers by R's name, ``"lambdaREML"`` or ``"p.eff"``; NaN without it."""
        found = self.value.get(name, ())
        return float(found[0]) if len(found) == 1 else math.nan

    @property
    def model_variance(self) -> float:
        """R's sv2: the variance of the area effects (its posterior mean under method HB)."""
        return self.number("sv2")

    @property
    def coefficients(self) -> pd.DataFrame:
        """Table: term, estimate, standard_error."""
        spread = np.asarray(self.value.get("Vbeta", np.empty((0, 0))))
        return pd.DataFrame(
            {
                "term": list(self.value.get("terms") or []),
                "estimate": numbers(self.value.get("beta", ())),
                "standard_error": np.sqrt(np.diagonal(spread)),
            }
        )

    @property
    def effects(self) -> pd.DataFrame:
        """Table of the areas with a direct estimate: domain, effect, standard_error, gamma."""
        seen = ~np.isnan(self.direct)
        table = {"domain": self.domains[seen]}
        for name, own in (("effect", "raneff"), ("variance", "Vraneff"), ("gamma", "gamma")):
            found = numbers(self.value.get(own, ()))
            table[name] = found if len(found) == seen.sum() else np.full(int(seen.sum()), np.nan)
        return pd.DataFrame(table)

    @property
    def domain_status(self) -> np.ndarray:
        """Shape (m,), object: ``ok`` or ``out_of_sample``."""
        words = np.full(len(self.domains), "ok", dtype=object)
        words[np.isnan(self.direct)] = "out_of_sample"
        return words

    def to_frame(self) -> pd.DataFrame:
        """Columns: domain, direct, direct_variance, cv, level, estimate, mse, standard_error,
        lower, upper (normal intervals: R has no quantiles), status."""
        error = np.sqrt(self.mse, out=np.full(len(self.mse), np.nan), where=self.mse >= 0)
        reach = NormalDist().inv_cdf(0.5 + self.request.level / 2) * error
        size = np.abs(self.estimate)
        table = {
            "domain": self.domains,
            "direct": self.direct,
            "direct_variance": self.direct_variance,
            "cv": np.divide(error, size, out=np.full(len(size), np.nan), where=size > 0),
            "level": np.full(len(size), self.request.level),
            "estimate": self.estimate,
            "mse": self.mse,
            "standard_error": error,
            "lower": self.estimate - reach,
            "upper": self.estimate + reach,
            "status": self.domain_status,
        }
        return pd.DataFrame({name: np.array(column) for name, column in table.items()})

    def summary(self) -> str:
        """The fit as text."""
        lines = [
            self.request.summary(),
            f"{len(self.domains)} areas; status {self.status} (engine: {self.engine_status})",
            f"variance of the area effects {self.model_variance:.6g}",
            self.coefficients.to_string(index=False, float_format=lambda x: f"{x:.5g}"),
        ]
        return "\n".join([*lines, *self.conditions])

    def to_dict(self) -> dict[str, Any]:
        """Everything but the inputs as plain Python values, ready for ``json``."""
        return {
            "request": plain(self.request),
            "status": self.status,
            "engine_status": self.engine_status,
            "model_variance": plain(self.model_variance),
            "coefficients": plain(self.coefficients.to_dict("list")),
            "domains": plain(self.to_frame().to_dict("list")),
            "exact": plain(self.exact),
            "conditions": list(self.conditions),
            "provenance": plain(self.provenance),
        }

    def _script(self, data: pd.DataFrame | None) -> str:
        return hbsae_script(self.request.summary(), self.inputs)


def hbsae_script(title: str, inputs: Mapping[str, Any]) -> str:
    """The call of fSAE.Area as an R user writes it, data included; it leaves R's answer in fit."""
    known = list(inputs["domains"])[: len(inputs["estimate"])]
    lines = [f"# {r.ascii_line(title)}", *r.EXACT_NUMBERS]
    for name, column in (("est.init", "estimate"), ("var.init", "variance")):
        values = r.vector(map(r.number, inputs[column]))
        lines.append(f"{name} <- setNames({values},\n  {r.vector(map(r.text, known))})")
    words = ["est.init", "var.init"]
    for name, rows, terms in (
        ("X", inputs.get("names") or inputs["domains"], inputs.get("terms")),
        ("x", known, inputs.get("x_terms")),
    ):
        if inputs.get(name) is not None:
            lines.append(f"{name} <- {r.matrix(inputs[name], rows=rows, columns=terms)}")
            words.append(f"{name} = {name}")
    if inputs.get("prior"):
        words.append(f"prior = {inputs['prior']}")
    for name, value in inputs["options"].items():
        text = r.matrix(value) if np.ndim(value) == 2 else r.value(value)
        words.append(f"{r.name(name)} = {text}")
    lines.append("fit <- hbsae::fSAE.Area(\n  " + ",\n  ".join([*words, "silent = TRUE"]) + "\n)")
    lines.append(
        "result <- data.frame(\n  domain = names(hbsae::EST(fit)), estimate = hbsae::EST(fit), "
        "mse = hbsae::MSE(fit)\n)\nprint(result, digits = 10)\nprint(fit)\n"
    )
    return "\n".join(lines)
