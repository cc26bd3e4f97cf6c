"""The record of a fit of the nested-error model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import listed
from pybridge._record import plain
from pybridge.engines._engine_request import numbers
from pybridge.engines._engine_units import SaeUnitRecord, unit_columns


@dataclass(frozen=True, eq=False, repr=False)
class SaeUnitFit(SaeUnitRecord):
    """Domain means by the nested-error model; d selected domains.

    Attributes
    ----------
    domains : numpy.ndarray
        Shape (d,), object.
    n_labelled, size : numpy.ndarray
        Shape (d,), units in the sample and in the population (NaN: not known).
    estimate, mse : numpy.ndarray
        Shape (d,), EBLUPs and bootstrap MSEs; NaN where there is none.
    exact : mapping
        Guarded: ``refvar``, ``errorvar`` and ``log_likelihood`` at the optimum, ``shortfall`` of
        R's answer.
    """

    domains: np.ndarray
    n_labelled: np.ndarray
    size: np.ndarray
    estimate: np.ndarray
    mse: np.ndarray
    exact: Mapping[str, Any]

    def _send(self, data: pd.DataFrame) -> dict[str, Any]:
        # Integers in guarded mode too: its formula may make a factor of them.
        return unit_columns(data, self.columns, self.as_text, integers=True)

    @property
    def model_variance(self) -> float:
        """σ_v², the variance of the domain effects."""
        return self._number("refvar")

    @property
    def error_variance(self) -> float:
        """σ_e², the variance of units within a domain."""
        return self._number("errorvar")

    @property
    def log_likelihood(self) -> float:
        """lme4's: restricted under REML."""
        return self._number("loglike")

    def _number(self, name: str) -> float:
        return float(self.value[name][0]) if name in self.value else float("nan")

    @property
    def coefficients(self) -> pd.DataFrame:
        """Table: term, estimate, standard_error."""
        return pd.DataFrame(
            {
                "term": list(self.value.get("terms") or []),
                "estimate": numbers(self.value.get("fixed", ())),
                "standard_error": numbers(self.value.get("std_error", ())),
            }
        )

    @property
    def random_effects(self) -> pd.DataFrame:
        """Table: domain (as R has it, text), effect; the domains of the sample."""
        return pd.DataFrame(
            {
                "domain": list(self.value.get("random_domain") or []),
                "effect": numbers(self.value.get("random", ())),
            }
        )

    @property
    def domain_status(self) -> np.ndarray:
        """Shape (d,), object: ``ok``, ``out_of_sample`` or ``census``."""
        words = np.full(len(self.domains), "ok", dtype=object)
        words[self.n_labelled == self.size] = "census"
        words[self.n_labelled == 0] = "out_of_sample"
        return words

    def to_frame(self) -> pd.DataFrame:
        """Columns: domain, n_labelled, size, estimate, mse, standard_error, cv, lower, upper,
        level, status."""
        error = np.sqrt(self.mse)
        reach = NormalDist().inv_cdf(0.5 + self.request.level / 2) * error
        length = np.abs(self.estimate)
        table = {
            "domain": self.domains,
            "n_labelled": self.n_labelled,
            "size": self.size,
            "estimate": self.estimate,
            "mse": self.mse,
            "standard_error": error,
            "cv": np.divide(error, length, out=np.full(len(error), np.nan), where=length > 0),
            "lower": self.estimate - reach,
            "upper": self.estimate + reach,
            "level": np.full(len(error), self.request.level),
            "status": self.domain_status,
        }
        return pd.DataFrame({name: np.array(column) for name, column in table.items()})

    def summary(self) -> str:
        """The fit as text."""
        lines = [
            self.request.summary(),
            f"{len(self.domains)} domains; status {self.status} (engine: {self.engine_status})",
            f"variance between domains {self.model_variance:.6g}, "
            f"within {self.error_variance:.6g}, "
            f"log-likelihood {self.log_likelihood:.6g}",
            self.coefficients.to_string(index=False, float_format=lambda x: f"{x:.5g}"),
        ]
        outside = self.domains[self.n_labelled == 0]
        if len(outside):
            lines.append(f"synthetic, without units in the sample: {listed(outside)}")
        return "\n".join([*lines, *self.conditions])

    def to_dict(self) -> dict[str, Any]:
        """Everything but the inputs as plain Python values."""
        return {
            "request": plain(self.request),
            "status": self.status,
            "engine_status": self.engine_status,
            "model_variance": plain(self.model_variance),
            "error_variance": plain(self.error_variance),
            "log_likelihood": plain(self.log_likelihood),
            "coefficients": plain(self.coefficients.to_dict("list")),
            "domains": plain(self.to_frame().to_dict("list")),
            "exact": plain(self.exact),
            "conditions": list(self.conditions),
            "provenance": plain(self.provenance),
        }
