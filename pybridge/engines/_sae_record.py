"""Records of sae's functions: what they share, and the fit of an area-level model."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pybridge._files import need_parent, write_text
from pybridge._checks import listed
from pybridge._record import Record, freeze, plain
from pybridge.engines._engine_request import EngineRequest, numbers
from pybridge.provenance import Provenance

if TYPE_CHECKING:
    from pybridge.crosscheck.fits import FitCrosscheck

# The words of a fit are the package's; sae's own verdicts are its flag, or that it stopped.
_PARAMETERS = {"refvar": "model_variance", "spatialcorr": "spatial_correlation"}


@dataclass(frozen=True, eq=False, repr=False)
class SaeRecord(Record):
    """What every record of a function of sae holds, and of packages asked in the same way.

    Attributes
    ----------
    request : EngineRequest
        Function, R's own arguments, mode, level, seed, time limit.
    shim : str
        The R function of pybridge that made the call.
    inputs : mapping
        What it was given, without the units of unit-level functions.
    value : mapping
        What R's function returned, under R's own names; empty where R stopped.
    status : str
        ``converged``, ``boundary``, ``not_converged``, ``weak_identification`` or ``failed``.
    engine_status : str
        The engine's own verdict: ``converged``, ``not_converged`` or ``error``.
    conditions : tuple of str
        What R said, and what was done about it.
    provenance : Provenance
    """

    request: EngineRequest
    shim: str
    inputs: Mapping[str, Any]
    value: Mapping[str, Any]
    status: str
    engine_status: str
    conditions: tuple[str, ...]
    provenance: Provenance

    def r_script(
        self, path: str | os.PathLike[str] | None = None, *, data: pd.DataFrame | None = None
    ) -> str:
        """A complete R script, data included, that gives the same numbers under plain Rscript.

        Parameters
        ----------
        path : path, optional
            Where to write it too.
        data : pandas.DataFrame, optional
            The units again, for unit-level functions: their record does not keep them.

        Raises
        ------
        InputError
            Without the units, or with others; ``no_seed`` where R drew without a seed.
        """
        self._need_seed()
        text = self._script(data)
        if path is not None:
            write_text(path, text)
        return text

    def to_rds(self, path: str | os.PathLike[str], data: pd.DataFrame | None = None) -> Path:
        """Save the object that R's function returns, for ``readRDS()``.

        R is asked again with the same inputs and seed. Where sae did not get to the solution at 0,
        which the record then holds, its numbers are put into the object. Where the order of the
        rows is not the table's, the object has an attribute ``rows`` that says which row is which;
        where columns had to get other names in R, an attribute ``columns`` that says what these
        stand for.

        Parameters
        ----------
        path : path
        data : pandas.DataFrame, optional
            As in `r_script`.

        Raises
        ------
        InputError
            ``no_seed`` where R drew without a seed.
        EngineError
            Where R stops, as it did for a record with the engine status ``error``.
        """
        from pybridge.engines._engine_request import ask

        self._need_seed()
        place = need_parent(path)
        inputs: dict[str, Any] = {**self._complete(data), "file": str(place)}
        inputs["labels"] = self._row_labels()
        if "at_zero" in self.value:
            inputs["at_zero"] = True
        ask(self.shim, inputs, self.request)
        return place

    def _script(self, data: pd.DataFrame | None) -> str:
        from pybridge.engines._sae_script import sae_script

        return sae_script(
            self.request,
            self._complete(data),
            self._row_labels(),
            at_zero="at_zero" in self.value,
        )

    def _complete(self, data: pd.DataFrame | None) -> dict[str, Any]:
        """The inputs of the call, the units among them."""
        return dict(self.inputs)

    def _row_labels(self) -> dict[str, Any] | None:
        return None

    def _need_seed(self) -> None:
        """InputError where R, asked again, would draw other numbers."""


@dataclass(frozen=True, eq=False, repr=False)
class SaeFit(SaeRecord):
    """The fit of an area-level model by one of sae's functions; m rows in the table's order.

    Attributes
    ----------
    domains : numpy.ndarray
        Shape (m,), object.
    times : numpy.ndarray or None
        Shape (m,), object, for a model over time.
    order : numpy.ndarray
        Shape (m,): the table's row of each of R's rows.
    direct, direct_variance : numpy.ndarray
        Shape (m,).
    estimate, mse : numpy.ndarray
        Shape (m,), the EBLUPs and what R gives as their mean squared errors; NaN where there is
        none. A bootstrap's MSE is R's ``mse``; ``mse_corrected`` is its ``msebc``.
    exact : mapping
        Guarded: parameters and log-likelihoods at the optimum that pybridge found itself,
        ``restricted_at_engine`` and ``log_likelihood_at_engine`` at R's, and ``shortfall``, by how
        much R's answer is below in the likelihood that it maximises.
    as_given : mapping
        Where the guarded mode asked R more tightly than was written: R's parameters at the
        precision that was written.
    """

    domains: np.ndarray
    times: np.ndarray | None
    order: np.ndarray
    direct: np.ndarray
    direct_variance: np.ndarray
    estimate: np.ndarray
    mse: np.ndarray
    mse_corrected: np.ndarray | None
    exact: Mapping[str, Any]
    as_given: Mapping[str, Any]

    @property
    def parameters(self) -> dict[str, float]:
        """Variances and correlations, by name; empty where there are none."""
        if "components" in self.value:
            return dict(zip(self.value["components"], map(float, self.value["component_estimate"])))
        names = [name for name in _PARAMETERS if name in self.value]
        return {_PARAMETERS[name]: float(self.value[name][0]) for name in names}

    @property
    def model_variance(self) -> float:
        """σ², the variance of the domain effects (σ₁² in a model over time)."""
        found = self.parameters
        return found.get("model_variance", found.get("sigma21", math.nan))

    @property
    def spatial_correlation(self) -> float:
        """ρ of the domain effects; NaN in a model without it."""
        found = self.parameters
        return found.get("spatial_correlation", found.get("rho1", math.nan))

    @property
    def criteria(self) -> dict[str, float]:
        """R's loglike, AIC, BIC and so on, all from the ordinary likelihood, under REML too.

        Under REML do not compare models with different covariates by them.
        """
        names = self.value.get("goodness_names") or []
        return dict(zip(names, map(float, self.value.get("goodness", ()))))

    @property
    def log_likelihood(self) -> float:
        """The ordinary log-likelihood, as R has it."""
        return self.criteria.get("loglike", math.nan)

    @property
    def iterations(self) -> int:
        """Of R's scoring; 0 where R stopped."""
        return int(self.value["iterations"][0]) if "iterations" in self.value else 0

    @property
    def coefficients(self) -> pd.DataFrame:
        """Table: term, estimate, standard_error, statistic, p_value, as R has them."""
        columns = {
            "estimate": "beta",
            "standard_error": "std_error",
            "statistic": "t_value",
            "p_value": "p_value",
        }
        table: dict[str, Any] = {"term": list(self.value.get("terms") or [])}
        for name, own in columns.items():
            table[name] = numbers(self.value.get(own, ()))
        return pd.DataFrame(table)

    @property
    def components(self) -> pd.DataFrame:
        """Table of the variance parameters: name, estimate, standard_error (where R has one)."""
        found = self.parameters
        error = self.value.get("component_std_error", np.full(len(found), np.nan))
        return pd.DataFrame(
            {
                "name": list(found),
                "estimate": list(found.values()),
                "standard_error": numbers(error),
            }
        )

    @property
    def standard_error(self) -> np.ndarray:
        """Shape (m,), roots of the MSEs; NaN where one is negative."""
        usable = self.mse >= 0
        return np.sqrt(self.mse, out=np.full(self.mse.shape, np.nan), where=usable)

    @property
    def domain_status(self) -> np.ndarray:
        """Shape (m,), object: ``ok``, ``census`` or ``negative_mse``."""
        words = np.full(len(self.mse), "ok", dtype=object)
        words[self.mse < 0] = "negative_mse"
        words[self.direct_variance == 0] = "census"
        return np.asarray(freeze(words))

    def to_frame(self) -> pd.DataFrame:
        """One row a domain (and instant), in the order of the table that was given.

        Columns: domain, time (in a model over time), direct, direct_variance, cv (of the
        estimate), level, estimate, mse, mse_corrected (of a bootstrap), standard_error, lower,
        upper, status.
        """
        error, size = self.standard_error, np.abs(self.estimate)
        reach = NormalDist().inv_cdf(0.5 + self.request.level / 2) * error
        table: dict[str, Any] = {"domain": self.domains}
        if self.times is not None:
            table["time"] = self.times
        table.update(
            direct=self.direct,
            direct_variance=self.direct_variance,
            cv=np.divide(error, size, out=np.full(len(size), np.nan), where=size > 0),
            level=np.full(len(size), self.request.level),
            estimate=self.estimate,
            mse=self.mse,
        )
        if self.mse_corrected is not None:
            table["mse_corrected"] = self.mse_corrected
        table.update(
            standard_error=error,
            lower=self.estimate - reach,
            upper=self.estimate + reach,
            status=self.domain_status,
        )
        return pd.DataFrame({name: np.array(column) for name, column in table.items()})

    def summary(self) -> str:
        """The fit as text."""
        found = ", ".join(f"{name} {value:.6g}" for name, value in self.parameters.items())
        lines = [
            self.request.summary(),
            f"{len(self.domains)} rows; status {self.status} (engine: {self.engine_status})",
        ]
        if found:
            lines.append(f"{found}, log-likelihood {self.log_likelihood:.6g} (ordinary)")
            lines.append(
                self.coefficients.to_string(index=False, float_format=lambda x: f"{x:.5g}")
            )
        for word in ("census", "negative_mse"):
            which = self.domains[self.domain_status == word]
            if len(which):
                lines.append(f"{word}: {listed(which)}")
        return "\n".join([*lines, *self.conditions])

    def to_dict(self) -> dict[str, Any]:
        """Everything but the inputs as plain Python values, ready for ``json``."""
        return {
            "request": plain(self.request),
            "status": self.status,
            "engine_status": self.engine_status,
            "parameters": plain(self.parameters),
            "criteria": plain(self.criteria),
            "coefficients": plain(self.coefficients.to_dict("list")),
            "domains": plain(self.to_frame().to_dict("list")),
            "exact": plain(self.exact),
            "as_given": plain(self.as_given),
            "conditions": list(self.conditions),
            "provenance": plain(self.provenance),
        }

    def crosscheck(self) -> FitCrosscheck:
        """The same model by every engine that has its method, each beside the exact optimum.

        Returns
        -------
        FitCrosscheck
            As of ``fay_herriot(...).crosscheck()``.

        Raises
        ------
        InputError
            For a model that no other engine has.
        """
        from pybridge.crosscheck.area_engines import crosscheck_sae

        return crosscheck_sae(self)

    def _row_labels(self) -> dict[str, Any] | None:
        if self.request.raw:
            return None
        labels = {"domain": [str(label) for label in self.domains[self.order]]}
        if self.times is not None:
            labels["time"] = [str(label) for label in self.times[self.order]]
        return labels
