"""The record of a Fay-Herriot fit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import listed
from pybridge._record import Record, freeze, plain
from pybridge.provenance import Provenance
from pybridge.smoothing._area_fit import AreaFit, domain_statuses
from pybridge.smoothing._exports import FitExports
from pybridge.smoothing._finite_request import with_spread
from pybridge.smoothing._spec import FayHerriotSpec
from pybridge.smoothing._views import FitViews
from pybridge.tables.area import AreaTable

_UNUSABLE = ("not_converged", "failed")


@dataclass(frozen=True, eq=False, repr=False)
class FayHerriotFit(Record, FitExports, FitViews):
    """A Fay-Herriot fit: what was asked, the checked table, and the numbers.

    Attributes
    ----------
    spec : FayHerriotSpec
        The request: engine, method, mode, level, seed, options.
    area : AreaTable
        The engine's input: direct estimates, variances, design matrix, of m domains.
    fit : AreaFit
        The numbers as arrays, shapes in its own docstring.
    provenance : Provenance
        Engine, versions, method, options, seed.
    spread : numpy.ndarray or None
        Shape (m,), s²/N of finite domains, where these were asked for.
    """

    spec: FayHerriotSpec
    area: AreaTable
    fit: AreaFit
    provenance: Provenance
    spread: np.ndarray | None = None

    @property
    def engine_area(self) -> AreaTable:
        """The table as the engine took it: with variances d + s²/N for finite domains."""
        return with_spread(self.area, self.spread)

    @property
    def model_variance(self) -> float:
        """σ², the variance of the domain effects."""
        return self.fit.model_variance

    @property
    def spatial_correlation(self) -> float | None:
        """ρ, where domain effects are correlated; None where they are not."""
        return self.fit.correlation

    @property
    def log_likelihood(self) -> float:
        """The ordinary log-likelihood at the model variance, under REML too."""
        return self.fit.log_likelihood

    @property
    def restricted_log_likelihood(self) -> float:
        """The restricted log-likelihood there, with +½ log|X'X|."""
        return self.fit.restricted_log_likelihood

    @property
    def status(self) -> str:
        """The verdict on the fit, in the words used everywhere."""
        return self.fit.status

    @property
    def engine_status(self) -> str:
        """The engine's own verdict."""
        return self.fit.engine_status

    @property
    def conditions(self) -> tuple[str, ...]:
        """What the engine said, and what was done about it."""
        return self.fit.conditions

    @property
    def exact(self) -> Mapping[str, Any]:
        """For an R engine in guarded mode: the exact optimum's variance and likelihoods."""
        return self.fit.exact

    @property
    def domain_status(self) -> np.ndarray:
        """Shape (m,), object: ``ok``, ``out_of_sample``, ``census`` or ``negative_mse``."""
        if self.fit.engine_fit is not None:
            return np.asarray(self.fit.engine_fit.domain_status)
        words = domain_statuses(
            estimate=self.area.estimate, variance=self.area.variance, mse=self.fit.mse
        )
        return np.asarray(freeze(words))

    @property
    def n_sampled(self) -> int:
        """Domains with a direct estimate."""
        return int(self.area.sampled.sum())

    @property
    def aic(self) -> float:
        """Akaike's criterion, from the ordinary log-likelihood; σ² (and ρ) counted with β.

        Under REML do not compare models with different covariates by it.
        """
        return -2.0 * self.log_likelihood + 2.0 * self._n_parameters

    @property
    def bic(self) -> float:
        """Schwarz's criterion, with the number of domains that have a direct estimate."""
        return -2.0 * self.log_likelihood + math.log(self.n_sampled) * self._n_parameters

    @property
    def kic(self) -> float:
        """Kullback's criterion (Cavanaugh 1999), as sae gives it."""
        return -2.0 * self.log_likelihood + 3.0 * self._n_parameters

    @property
    def _n_parameters(self) -> int:
        variances = len(self.fit.components) or (1 if self.fit.correlation is None else 2)
        return len(self.area.covariate_names) + variances

    @property
    def coefficients(self) -> pd.DataFrame:
        """Table: term, estimate, standard_error, statistic, p_value (normal, two-sided)."""
        error = np.sqrt(self.fit.coefficient_covariance.diagonal())
        statistic = self.fit.coefficients / error
        p_value = [math.erfc(abs(t) / math.sqrt(2.0)) for t in statistic]
        return pd.DataFrame(
            {
                "term": list(self.area.covariate_names),
                "estimate": self.fit.coefficients,
                "standard_error": error,
                "statistic": statistic,
                "p_value": p_value,
            }
        )

    def to_frame(self) -> pd.DataFrame:
        """One row a domain, in the order of the area table.

        Columns: domain, time (in a model over time), n_labelled (where the table has it), direct,
        direct_variance, cv (of the smoothed estimate), level, estimate, mse, standard_error,
        lower, upper, shrinkage, synthetic, status.
        """
        fit = self.fit
        error = fit.standard_error
        size = np.abs(fit.estimate)
        cv = np.divide(error, size, out=np.full(len(size), np.nan), where=size > 0)
        table: dict[str, Any] = {"domain": self.area.domains}
        if self.area.times is not None:
            table["time"] = self.area.times
        if self.area.n_labelled is not None:
            table["n_labelled"] = self.area.n_labelled
        table.update(
            direct=self.area.estimate,
            direct_variance=self.area.variance,
            cv=cv,
            level=np.full(len(size), fit.level),
            estimate=fit.estimate,
            mse=fit.mse,
            standard_error=error,
            lower=fit.lower,
            upper=fit.upper,
            shrinkage=fit.shrinkage,
            synthetic=fit.synthetic,
            status=self.domain_status,
        )
        return pd.DataFrame({name: np.array(column) for name, column in table.items()})

    def summary(self) -> str:
        """The fit as text."""
        m = len(self.area.domains)
        lines = [
            f"Fay-Herriot model {self.area.formula}, {self.spec.summary()}",
            f"{m} domains, {m - self.n_sampled} of them without a direct estimate",
            f"status {self.status} (engine: {self.engine_status}), model variance "
            f"{self.model_variance:.6g}, "
            + (
                f"correlation {self.fit.correlation:.6g}, "
                if self.fit.correlation is not None
                else ""
            )
            + f"log-likelihood {self.log_likelihood:.6g}",
            *(f"{name} {value:.6g}" for name, value in self.fit.components.items()),
            self.coefficients.to_string(index=False, float_format=lambda x: f"{x:.5g}"),
        ]
        special = self.domain_status
        for word in ("census", "negative_mse"):
            which = self.area.domains[special == word]
            if len(which):
                lines.append(f"{word}: {listed(which)}")
        lines += list(self.conditions)
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values, ready for ``json``."""
        return {
            "spec": self.spec.to_dict(),
            "formula": self.area.formula,
            "model_variance": plain(self.model_variance),
            "spatial_correlation": plain(self.spatial_correlation),
            "log_likelihood": plain(self.log_likelihood),
            "restricted_log_likelihood": plain(self.restricted_log_likelihood),
            "status": self.status,
            "engine_status": self.engine_status,
            "conditions": list(self.conditions),
            "exact": plain(self.exact),
            "coefficients": plain(self.coefficients.to_dict("list")),
            "domains": plain(self.to_frame().to_dict("list")),
            "provenance": plain(self.provenance),
        }
