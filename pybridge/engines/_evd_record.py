"""The record of evd::fpot, and what its parameters are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pybridge._record import plain
from pybridge.engines._tail_optimum import Model
from pybridge.engines._tail_record import TailFit
from pybridge.engines._tail_request import TailRequest
from pybridge.errors import InputError


@dataclass(frozen=True, eq=False, repr=False)
class EvdFit(TailFit):
    """A fit of exceedances by evd::fpot.

    Attributes
    ----------
    param : mapping of str to float
        loc, scale, shape or rlevel, the fixed ones among them.
    standard_errors : mapping of str to float
        Of the estimated ones; NaN where there is none.
    covariance : numpy.ndarray
        (p, p), in the order of ``names``; NaN where there is none.
    names : tuple of str
        The p estimated parameters.
    """

    param: Mapping[str, float]
    standard_errors: Mapping[str, float]
    covariance: np.ndarray
    names: tuple[str, ...]

    @property
    def estimate(self) -> dict[str, float]:
        """The estimated parameters by name, as evd has them."""
        return {name: self.param[name] for name in self.names}

    @property
    def deviance(self) -> float:
        """-2 log-likelihood, as evd has it, in the user's units."""
        return -2.0 * self.log_likelihood

    @property
    def extremal_index(self) -> float:
        """Clusters per exceedance, with ``cmax``; NaN without."""
        found = self.value.get("extind")
        return math.nan if found is None else float(found[0])

    @property
    def scale_at_threshold(self) -> float:
        """The generalised Pareto scale of the excesses, whatever the parameters."""
        return float(self.value["scale"][0]) if "scale" in self.value else math.nan

    def _parameters(self) -> tuple[list[str], np.ndarray, np.ndarray]:
        names = list(self.param)
        error = [self.standard_errors.get(name, math.nan) for name in names]
        return names, np.array([self.param[name] for name in names]), np.array(error)

    def to_frame(self) -> pd.DataFrame:
        """One row a parameter: estimate, standard_error, lower, upper, level, exact, status, fixed.

        The intervals are evd's confint: normal, from the standard errors.
        """
        table = super().to_frame()
        return table.assign(fixed=[name not in self.names for name in self.param])

    def to_dict(self) -> dict[str, Any]:
        """Everything but the inputs as plain Python values, ready for ``json``."""
        return {**super().to_dict(), "deviance": plain(self.deviance)}


def parameters_of(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """The model's parameters."""
    if arguments.get("model") == "pp":
        return ("loc", "scale", "shape")
    return ("rlevel" if "mper" in arguments else "scale", "shape")


def free_parameters(arguments: Mapping[str, Any]) -> list[str]:
    """Those that move."""
    return [name for name in parameters_of(arguments) if name not in arguments]


def model_of(asked: TailRequest, *, exceedances: np.ndarray, n: int) -> Model:
    """What R maximised, from the exceedances or clusters' maxima that it saw, in R's units.

    Parameters
    ----------
    exceedances : (k,); n : number of scores
    """
    arguments = asked.arguments
    threshold = arguments["threshold"] / asked.unit
    npp = float(arguments.get("npp", n))
    kind = "pp" if arguments.get("model") == "pp" else "gpd"
    if "mper" in arguments:
        kind = "rlevel"
    return Model(
        kind=kind,
        excesses=exceedances - threshold,
        threshold=threshold,
        periods=n / npp,
        rate=float(arguments.get("mper", math.inf)) * npp * exceedances.size / n,
    )


def back(name: str, value: Any, unit: float) -> Any:
    """A parameter, or its error, in the user's units."""
    return value if name == "shape" else value * unit


def in_user_units(value: Mapping[str, Any], unit: float) -> dict[str, Any]:
    """R's answer in the user's units."""
    found = dict(value)
    for name in ("exceedances", "scale"):
        if name in found:
            found[name] = np.asarray(found[name]) * unit
    for name, order in (("estimate", "names"), ("std.err", "names"), ("param", "param_names")):
        if found.get(name) is not None:
            by = np.array([back(word, 1.0, unit) for word in found[order]])
            found[name] = np.asarray(found[name]) * by
            if name == "std.err" and found.get("var.cov") is not None:
                found["var.cov"] = np.asarray(found["var.cov"]) * np.outer(by, by)
    if "deviance" in found and unit != 1.0:
        found["deviance"] = 2.0 * np.asarray(found["nllh"])
    return found


def need_fit(field: str, fitted: Any) -> EvdFit:
    """A fit of fpot with standard errors, or InputError."""
    if not isinstance(fitted, EvdFit):
        raise InputError(
            f"{field} must be a fit of pybridge.engines.evd.fpot",
            code="not_a_fit",
            field=field,
            expected="EvdFit",
            got=type(fitted).__name__,
        )
    if not fitted.names:
        raise InputError(
            "there is no fit to go on from",
            code="no_fit",
            field=field,
            expected="a fit with numbers",
            got=f"status {fitted.status}",
        )
    return fitted
