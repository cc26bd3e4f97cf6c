"""The record of a fit by emdi::fh."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pybridge._files import write_text
from pybridge._checks import listed
from pybridge._record import Record, freeze
from pybridge.engines._emdi_request import FhRequest
from pybridge.provenance import Provenance

if TYPE_CHECKING:
    from pybridge.crosscheck.fits import FitCrosscheck


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class EmdiFit(Record):
    """A fit by emdi::fh, of m domains and p coefficients, rows in the order of the user's table.

    Attributes
    ----------
    request : FhRequest
        What was asked, with the table.
    domains : numpy.ndarray
        Shape (m,), object.
    direct, direct_variance : numpy.ndarray
        Shape (m,), the estimates and sampling variances that were given; NaN where none.
    estimate : numpy.ndarray
        Shape (m,), emdi's ``ind$FH``: the EBLUP, transformed back where there is a transformation.
    mse : numpy.ndarray
        Shape (m,), emdi's ``MSE$FH``; NaN where none was asked for or emdi has none.
    shrinkage : numpy.ndarray
        Shape (m,), γ; 0 without a direct estimate; NaN where the model has none (spatial, robust).
    synthetic : numpy.ndarray
        Shape (m,), x'β, transformed back without correction where there is a transformation.
    linear : numpy.ndarray
        Shape (m,), the prediction on the scale of the model, before it is transformed back.
    intervals : numpy.ndarray
        Shape (m, 2). emdi has none: normal ones from the MSE; with a transformation normal ones
        on its scale, transformed back.
    coefficients : numpy.ndarray
        Shape (p,).
    standard_errors, statistics, p_values : numpy.ndarray
        Shape (p,), as emdi gives them (normal).
    coefficient_covariance : numpy.ndarray
        Shape (p, p).
    random_effects, residuals, standardised_residuals : numpy.ndarray
        Shape (m,), NaN without a direct estimate; on the scale of the model.
    model_variance : float
        emdi's own number.
    spatial_correlation : float
        NaN where there is none.
    criteria : mapping of str to float
        emdi's ``model_select``.
    mse_method : str
        emdi's word for how the MSE was found.
    replicates : tuple of int or None
        Bootstrap replicates that emdi counts as successful, and how many there were.
    replaced : mapping
        Guarded: emdi's own ``estimate`` and ``mse`` where they differ from the record's, and
        ``bias_corrected``, its own integral, where that was replaced.
    exact : mapping
        Guarded: the optimum found exactly (``model_variance``, ``log_likelihood``,
        ``restricted_log_likelihood``, ``spatial_correlation``), and ``shortfall``, how far emdi
        stopped below it in what it maximises.
    status : str
        ``converged``, ``boundary``, ``not_converged``, ``weak_identification`` or ``failed``.
    engine_status : str
        emdi's own flag: it has one for the spatial model only.
    conditions : tuple of str
        What R said, and what was noticed or changed.
    provenance : Provenance
    """

    request: FhRequest
    domains: np.ndarray
    direct: np.ndarray
    direct_variance: np.ndarray
    estimate: np.ndarray
    mse: np.ndarray
    shrinkage: np.ndarray
    synthetic: np.ndarray
    linear: np.ndarray
    intervals: np.ndarray
    coefficients: np.ndarray
    standard_errors: np.ndarray
    statistics: np.ndarray
    p_values: np.ndarray
    coefficient_covariance: np.ndarray
    random_effects: np.ndarray
    residuals: np.ndarray
    standardised_residuals: np.ndarray
    model_variance: float
    spatial_correlation: float
    criteria: Mapping[str, float]
    mse_method: str
    replicates: tuple[int, int] | None
    replaced: Mapping[str, Any]
    exact: Mapping[str, Any]
    status: str
    engine_status: str
    conditions: tuple[str, ...]
    provenance: Provenance

    @property
    def standard_error(self) -> np.ndarray:
        """Shape (m,), the root of the MSE; NaN where that is negative or missing."""
        root = np.sqrt(self.mse, out=np.full(self.mse.shape, np.nan), where=self.mse >= 0)
        return np.asarray(freeze(root))

    @property
    def out_of_sample(self) -> np.ndarray:
        """Shape (m,), bool: domains without a direct estimate."""
        return np.asarray(freeze(np.isnan(self.direct)))

    @property
    def domain_status(self) -> np.ndarray:
        """Shape (m,), object: ``ok``, ``out_of_sample``, ``census`` or ``negative_mse``."""
        words = np.full(len(self.domains), "ok", dtype=object)
        words[self.mse < 0] = "negative_mse"
        if self.request.transformation != "arcsin":  # which has variances of its own
            words[self.direct_variance == 0] = "census"
        words[self.out_of_sample] = "out_of_sample"
        return np.asarray(freeze(words))

    def to_frame(self) -> pd.DataFrame:
        """One row a domain, in the order of the table that was given.

        Columns: domain, direct, direct_variance, cv, level, estimate, mse, standard_error, lower,
        upper, shrinkage, synthetic, status.
        """
        error = self.standard_error
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
            "lower": self.intervals[:, 0],
            "upper": self.intervals[:, 1],
            "shrinkage": self.shrinkage,
            "synthetic": self.synthetic,
            "status": self.domain_status,
        }
        return pd.DataFrame({name: np.array(column) for name, column in table.items()})

    def coefficient_table(self) -> pd.DataFrame:
        """Table: term, estimate, standard_error, statistic, p_value."""
        return pd.DataFrame(
            {
                "term": list(self.request.covariate_names),
                "estimate": np.array(self.coefficients),
                "standard_error": np.array(self.standard_errors),
                "statistic": np.array(self.statistics),
                "p_value": np.array(self.p_values),
            }
        )

    def diagnostics(self) -> pd.DataFrame:
        """Table: domain, residual, standardised_residual, random_effect, on the model's scale.

        emdi's residuals are those of the direct estimates around the EBLUP, divided by the
        sampling standard error for the standardised ones.
        """
        return pd.DataFrame(
            {
                "domain": np.array(self.domains),
                "residual": np.array(self.residuals),
                "standardised_residual": np.array(self.standardised_residuals),
                "random_effect": np.array(self.random_effects),
            }
        )

    def model_scale(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Residuals z − x'β, domain effects and variances of z (m,), on the model's scale."""
        from pybridge.engines._emdi_scale import model_scale

        return model_scale(self)

    def summary(self) -> str:
        """The fit as text."""
        m, outside = len(self.domains), int(self.out_of_sample.sum())
        variance = f"model variance {self.model_variance:.6g}"
        if np.isfinite(self.spatial_correlation):
            variance += f", spatial correlation {self.spatial_correlation:.4g}"
        lines = [
            self.request.summary(),
            f"{m} domains, {outside} of them without a direct estimate",
            f"status {self.status} (emdi: {self.engine_status}), {variance}",
            f"mean squared errors: {self.mse_method}"
            + (
                f", {self.replicates[0]} of {self.replicates[1]} replicates"
                if self.replicates
                else ""
            ),
            self.coefficient_table().to_string(index=False, float_format=lambda x: f"{x:.5g}"),
            ", ".join(f"{name} {value:.6g}" for name, value in self.criteria.items()),
        ]
        for word in ("census", "negative_mse"):
            which = self.domains[self.domain_status == word]
            if len(which):
                lines.append(f"{word}: {listed(which)}")
        return "\n".join([*filter(None, lines), *self.conditions])

    def crosscheck(self) -> FitCrosscheck:
        """The same model by every engine that has its method, each beside the exact optimum.

        Returns
        -------
        FitCrosscheck
            As of ``fay_herriot(...).crosscheck()``.

        Raises
        ------
        InputError
            For transformed estimates, and for correlated effects with domains out of the sample.
        """
        from pybridge.crosscheck.area_engines import crosscheck_emdi

        return crosscheck_emdi(self)

    def r_script(self, path: str | PathLike[str] | None = None) -> str:
        """A complete R script, data included, that gives the same numbers under plain Rscript.

        Parameters
        ----------
        path : path, optional
            Where to write it too.
        """
        from pybridge.engines._emdi_script import fh_script

        text = fh_script(self.request)
        if path is not None:
            write_text(path, text)
        return text

    def to_rds(self, path: str | PathLike[str], data: Any = None) -> Path:
        """Save emdi's own object: ``readRDS()`` gives one of class "fh".

        emdi's summary, plot, compare, estimators and benchmark work on it. It is fitted again for
        this, which gives the same numbers. Where a guarded fit changed something, the object holds
        what the record holds, and emdi's own numbers in its element ``pybridge``.

        Parameters
        ----------
        path : path
        data : None
            The record holds the table that R needs; there is nothing to add.
        """
        from pybridge.engines._emdi_fit import save

        return save(self.request, path)


def normal_intervals(estimate: np.ndarray, mse: np.ndarray, level: float) -> np.ndarray:
    """Ends (m, 2) of normal intervals; NaN where the MSE is negative or missing."""
    root = np.sqrt(mse, out=np.full(mse.shape, np.nan), where=mse >= 0)
    width = NormalDist().inv_cdf(0.5 + level / 2) * root
    return np.column_stack([estimate - width, estimate + width])
