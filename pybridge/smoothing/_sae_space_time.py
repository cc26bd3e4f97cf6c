"""Adapter of R's sae: domains over time, by sae::pbmseSTFH and eblupSTFH.

The call, its guards and the highest likelihood found are those of ``pb.engines.sae.pbmseSTFH``;
here its answer takes the form of every other fit, and what sae does not return (weights, the
covariance of the coefficients) is computed at its parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import listed
from pybridge._options import whole_number
from pybridge._record import Record
from pybridge.engines._sae_likelihood import AreaData, dense_likelihoods, proximity
from pybridge.engines._sae_optimum import space_time_covariance
from pybridge.engines._sae_record import SaeFit
from pybridge.engines._sae_space_time import eblupSTFH, pbmseSTFH
from pybridge.errors import InputError
from pybridge.smoothing._area_fit import AreaFit
from pybridge.smoothing._sae_spatial import area_fit_of
from pybridge.smoothing._spec import FayHerriotSpec, refuse_options
from pybridge.tables.area import AreaTable

_OWN = {
    "model": "ST",
    "B": 100,
    "MAXITER": 100,
    "PRECISION": 1e-4,
    "sigma21_start": None,
    "rho1_start": 0.5,
    "sigma22_start": None,
    "rho2_start": 0.5,
    "time_limit": None,
}


def complete_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """sae's own options with its own defaults; B = 0 leaves the bootstrap MSE out."""
    refuse_options(given, tuple(_OWN), engine="sae")
    options = {**_OWN, **given}
    options["B"] = whole_number("B", options["B"], least=0)
    return options


def needs_seed(options: Mapping[str, Any]) -> bool:
    """Whether anything is drawn."""
    return bool(options["B"])


def fit(table: AreaTable, spec: FayHerriotSpec) -> AreaFit:
    """Fit one checked table, a row for each domain and instant.

    Raises
    ------
    InputError
        Rows without a direct estimate, domains without a row at some instant, one instant only.
    """
    outside = ~table.sampled
    if outside.any():
        raise InputError(
            "sae has no prediction over time for rows without a direct estimate",
            code="out_of_sample",
            field="area",
            expected="a direct estimate for every domain and instant",
            got=f"missing in {listed(table.domains[outside])}",
        )
    labels = pd.unique(table.domains)
    frame, formula = _as_frame(table)
    options = dict(spec.options)
    replicates = options.pop("B")
    words: dict[str, Any] = {
        "domain": "domain",
        "time": "time",
        "level": spec.level,
        "mode": spec.mode,
        **options,
    }
    matrix = pd.DataFrame(spec.proximity, index=labels, columns=labels)
    if replicates:
        found = pbmseSTFH(frame, formula, "variance", matrix, B=replicates, seed=spec.seed, **words)
    else:
        found = eblupSTFH(frame, formula, "variance", matrix, **words)
    return _area_fit(found, table, spec)


def _as_frame(table: AreaTable) -> tuple[pd.DataFrame, str]:
    """The design matrix as columns, and a formula that gives it back."""
    p = table.covariates.shape[1]
    columns: dict[str, Any] = {
        "domain": table.domains,
        "time": pd.Series(table.times).infer_objects(),
        "estimate": table.estimate,
        "variance": table.variance,
    }
    columns.update({f"x{j + 1}": table.covariates[:, j] for j in range(p)})
    names = " + ".join(f"x{j + 1}" for j in range(p))
    return pd.DataFrame(columns), f"estimate ~ {names} - 1"


@dataclass(frozen=True, eq=False, repr=False)
class SpaceTimeFit(Record):
    """sae's own record of a fit over time, and the variances of its rows.

    Attributes
    ----------
    found : SaeFit
    residual, effect, total : numpy.ndarray
        Shape (m,): z − x'β, the predicted effects, and the variance of z in the model.
    """

    found: SaeFit
    residual: np.ndarray
    effect: np.ndarray
    total: np.ndarray

    @property
    def domain_status(self) -> np.ndarray:
        """Shape (m,), object, as sae's record has it."""
        return self.found.domain_status

    def model_scale(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Residuals z − x'β, effects and variances of z (m,)."""
        return np.array(self.residual), np.array(self.effect), np.array(self.total)

    def r_script(self) -> str:
        """The script of sae's own call."""
        return self.found.r_script()

    def to_rds(self, path: str | PathLike[str]) -> Path:
        """Save the object that sae returns."""
        return Path(self.found.to_rds(path))

    def summary(self) -> str:
        """sae's own."""
        return self.found.summary()


def _area_fit(found: SaeFit, table: AreaTable, spec: FayHerriotSpec) -> AreaFit:
    at = _at(found, table, spec)
    plain = area_fit_of(found, table, spec, at)
    scale = SpaceTimeFit(
        found,
        table.estimate - plain.synthetic,
        found.estimate - plain.synthetic,
        at.get("total", np.full(len(table.estimate), np.nan)),
    )
    return replace(plain, components=found.parameters, engine_fit=scale)


def _at(found: SaeFit, table: AreaTable, spec: FayHerriotSpec) -> dict[str, Any]:
    """Weights, covariances and the restricted likelihood at sae's parameters.

    EBLUP = H z + (I − H) X b with H = G V⁻¹, rows in sae's order of domain, then instant.
    """
    theta = np.array(list(found.parameters.values()))
    if not len(theta) or not (np.abs(theta[1::2]) < 1.0).all():
        return {}
    order = np.asarray(found.order)
    data = AreaData(table.estimate[order], table.variance[order], table.covariates[order])
    labels = pd.unique(table.domains)
    sorted_labels = pd.unique(table.domains[order])
    place = [list(labels).index(label) for label in sorted_labels]
    w = proximity(np.asarray(spec.proximity)[np.ix_(place, place)])
    v = space_time_covariance(data, w, len(order) // len(labels))(theta)[0]
    at = dense_likelihoods(data, v)
    weights = np.linalg.solve(v, v - np.diag(data.d)).T
    rest = (data.x - weights @ data.x) @ at.covariance
    own = np.array(weights.diagonal())
    slope = own + np.einsum("ij,ij->i", rest, np.linalg.solve(v, data.x))
    back = np.argsort(order)
    return {
        "covariance": at.covariance,
        "restricted": at.restricted,
        "shrinkage": own[back],
        "derivative": slope[back],
        "total": np.array(v.diagonal())[back],
    }
