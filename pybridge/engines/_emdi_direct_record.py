"""The record of direct estimates by emdi::direct, and the inputs that R gets for them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pybridge._files import need_parent, write_text
from pybridge._record import Record
from pybridge.engines._emdi_calibration import calibration
from pybridge.engines._engine_units import need_same_units, need_units
from pybridge.engines._r_formula import r_names
from pybridge.engines._sae_input import r_integers
from pybridge.provenance import Provenance
from pybridge.r import call

GROUPS = ("Quantiles", "Poverty", "Inequality", "Custom")
SECONDS = 3600.0
_ROLES = ("y", "smp_domains", "weights", "design")


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class EmdiDirect(Record):
    """Direct estimates of k indicators in m domains; it holds no units.

    Attributes
    ----------
    domains : numpy.ndarray
        Shape (m,), object; guarded in the order in which they come in the sample, raw in R's.
    names : tuple of str
        Indicators, emdi's own names: Mean, Head_Count, Poverty_Gap, Gini, Quintile_Share,
        Quantile_10, Quantile_25, Median, Quantile_75, Quantile_90, and custom ones.
    n_labelled : numpy.ndarray
        Shape (m,), units.
    estimate : numpy.ndarray
        Shape (m, k): weighted by Hájek's estimator, not Horvitz and Thompson's.
    variance : numpy.ndarray or None
        Shape (m, k), from the bootstrap; None without ``var=True``.
    replicates : numpy.ndarray or None
        Shape (m, k), bootstrap replicates in which the domain had units.
    threshold : float
        The poverty line that was given; NaN where emdi took one from the sample, which
        ``conditions`` has in its own words, or an R function.
    arguments : mapping
        emdi's own arguments by its own names.
    units : str
        A digest of the units, so that another sample is not taken for this one.
    conditions : tuple of str
    provenance : Provenance
    """

    domains: np.ndarray
    names: tuple[str, ...]
    n_labelled: np.ndarray
    estimate: np.ndarray
    variance: np.ndarray | None
    replicates: np.ndarray | None
    arguments: Mapping[str, Any]
    units: str
    conditions: tuple[str, ...]
    provenance: Provenance

    @property
    def threshold(self) -> float:
        """The poverty line that was given; NaN where R made it."""
        line = self.arguments["threshold"]
        return float("nan") if line is None or isinstance(line, str) else float(line)

    @property
    def domain_status(self) -> np.ndarray:
        """Shape (m,), object: ``ok`` or ``single_unit``."""
        return np.where(self.n_labelled == 1, "single_unit", "ok").astype(object)

    def to_frame(self) -> pd.DataFrame:
        """A row a domain and indicator: domain, n_labelled, indicator, estimate, variance,
        standard_error, cv, status."""
        m, k = self.estimate.shape
        variance = np.full((m, k), np.nan) if self.variance is None else self.variance
        error = np.sqrt(variance, out=np.full((m, k), np.nan), where=variance >= 0)
        size = np.abs(self.estimate)
        cv = np.divide(error, size, out=np.full((m, k), np.nan), where=size > 0)
        return pd.DataFrame(
            {
                "domain": np.repeat(self.domains, k),
                "n_labelled": np.repeat(self.n_labelled, k),
                "indicator": list(self.names) * m,
                "estimate": self.estimate.ravel().copy(),
                "variance": variance.ravel().copy(),
                "standard_error": error.ravel(),
                "cv": cv.ravel(),
                "status": np.repeat(self.domain_status, k),
            }
        )

    def summary(self) -> str:
        """How many domains and units, and what was noticed."""
        lines = [
            f"emdi::direct: {len(self.domains)} domains, {int(self.n_labelled.sum())} units, "
            f"{len(self.names)} indicators"
        ]
        return "\n".join([*lines, *self.conditions])

    def r_script(
        self, path: str | PathLike[str] | None = None, data: Any = None, X_calib: Any = None
    ) -> str:
        """A complete R script, units included, that gives emdi's numbers under plain Rscript.

        What the guarded mode takes back, the variance of a domain with one unit and a Gini
        coefficient outside [0, 1], is there as emdi has it.

        Parameters
        ----------
        path : path, optional
            Where to write it too.
        data : pandas.DataFrame
            The sample again, which the record does not hold.
        X_calib : array, optional
            Its auxiliary variables again, where variances were calibrated.

        Raises
        ------
        InputError
            Without the sample, or with another one (``other_units``).
        """
        from pybridge.engines._emdi_direct_script import direct_script

        text = direct_script(self._complete(data, X_calib))
        if path is not None:
            write_text(path, text)
        return text

    def to_rds(self, path: str | PathLike[str], data: Any = None, X_calib: Any = None) -> Path:
        """Save emdi's own object, estimated again from the units, for ``readRDS()``.

        Parameters
        ----------
        path : path
        data, X_calib
            As in `r_script`.

        Raises
        ------
        InputError
            As in `r_script`.
        """
        place = need_parent(path)  # R may work in another folder
        asked = {**self._complete(data, X_calib), "path": str(place)}
        call("emdi_direct_save", asked, packages=("emdi",), what="emdi::direct", time_limit=SECONDS)
        return place

    def _complete(self, data: Any, x_calib: Any) -> dict[str, Any]:
        """What crossed to R, from the units."""
        columns = list(used_columns(self.arguments))
        table = need_units(data, columns)
        guarded = self.provenance.options["mode"] == "guarded"
        asked = direct_inputs(table, dict(self.arguments), x_calib, guarded=guarded)
        need_same_units(crossed(asked), self.units, columns=columns)
        return asked


def used_columns(arguments: Mapping[str, Any]) -> dict[str, None]:
    """The columns of units that emdi uses."""
    return dict.fromkeys(arguments[role] for role in _ROLES if arguments[role] is not None)


def direct_inputs(
    table: pd.DataFrame, arguments: dict[str, Any], X_calib: Any, *, guarded: bool
) -> dict[str, Any]:
    """Columns and arguments as they cross, columns under names that any locale reads."""
    matrix = calibration(arguments, X_calib, len(table), guarded=guarded)
    if matrix is not None and guarded and arguments["na.rm"]:
        seen = table[[arguments["y"], arguments["weights"]]].notna().all(axis=1).to_numpy()
        table, matrix = table[seen], matrix[seen]
    names = r_names(used_columns(arguments), table=table)
    columns: dict[str, Any] = {}
    for column, name in names.items():
        if column in (arguments["smp_domains"], arguments["design"]):
            columns[name] = [str(label) for label in table[column]]
        else:
            whole = None if guarded else r_integers(table[column])
            columns[name] = (
                table[column].to_numpy(dtype=np.float64, na_value=np.nan)
                if whole is None
                else whole
            )
    words = {
        name: names[value] if name in _ROLES else value
        for name, value in arguments.items()
        if name != "X_calib" and (value is not None or name == "seed")
    }
    return {"smp_data": columns, "arguments": words, "X_calib": matrix}


def crossed(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What `direct_inputs` made of the units, for their digest."""
    columns = {name: np.asarray(values) for name, values in asked["smp_data"].items()}
    return columns if asked["X_calib"] is None else {**columns, "X_calib": asked["X_calib"]}
