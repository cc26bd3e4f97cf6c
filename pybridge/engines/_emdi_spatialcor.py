"""Tests of spatial correlation by emdi::spatialcor.tests."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import number_vector, real_array
from pybridge._options import MODES, choose
from pybridge._record import Record
from pybridge.engines._emdi_answer import said
from pybridge.engines._emdi_matrices import labelled_matrix
from pybridge.errors import InputError
from pybridge.provenance import Provenance, provenance
from pybridge.r import call_many, r_stopped


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class EmdiSpatialTests(Record):
    """Moran's I and Geary's C of direct estimates.

    Attributes
    ----------
    statistics : tuple of str
        emdi's names of both.
    values, p_values : numpy.ndarray
        Shape (2,), one-sided p-values of positive correlation.
    conditions : tuple of str
    provenance : Provenance
    """

    statistics: tuple[str, ...]
    values: np.ndarray
    p_values: np.ndarray
    conditions: tuple[str, ...]
    provenance: Provenance

    def to_frame(self) -> pd.DataFrame:
        """Two rows: statistic, value, p_value."""
        return pd.DataFrame(
            {
                "statistic": list(self.statistics),
                "value": np.array(self.values),
                "p_value": np.array(self.p_values),
            }
        )

    def summary(self) -> str:
        """One line a statistic."""
        lines = [
            f"{name} {value:.6g}, p = {p:.4g}"
            for name, value, p in zip(self.statistics, self.values, self.p_values)
        ]
        return "\n".join([*lines, *self.conditions])


def spatialcor_tests(direct: Any, corMatrix: Any, *, mode: str = "guarded") -> EmdiSpatialTests:
    """Moran's I and Geary's C of direct estimates, by emdi::spatialcor.tests.

    Parameters
    ----------
    direct : Series or mapping
        Direct estimates by domain; in raw mode anything one-dimensional.
    corMatrix : pandas.DataFrame
        Proximity, the same domains as index and columns, in any order; raw: by position.
    mode : {"guarded", "raw"}
    """
    guarded = choose("mode", mode, MODES) == "guarded"
    if guarded:
        values, matrix = _by_label(direct, corMatrix)
    else:
        values = number_vector("direct", direct)
        matrix = real_array("corMatrix", corMatrix)
        if matrix.shape != (len(values), len(values)):
            raise InputError(
                "corMatrix must have a row and a column for each direct estimate",
                code="not_square",
                field="corMatrix",
                expected=f"shape {(len(values), len(values))}",
                got=f"shape {matrix.shape}",
            )
    if guarded and np.ptp(values) == 0:
        raise InputError(
            "all direct estimates are the same: nothing varies that could be correlated",
            code="constant_outcome",
            field="direct",
            expected="direct estimates that vary",
            got=f"{float(values[0]):g} in {len(values)} domains",
        )
    (reply,) = call_many(
        "emdi_spatialcor_tests", [{"direct": values, "proximity": matrix}], packages=("emdi",)
    )
    if reply.error is not None:
        raise r_stopped("emdi::spatialcor.tests", reply)
    reply.warn("emdi")
    return EmdiSpatialTests(
        statistics=tuple(reply.value["statistic"]),
        values=np.array(reply.value["value"]),
        p_values=np.array(reply.value["p_value"]),
        conditions=said(reply),
        provenance=provenance(
            "emdi", "spatialcor.tests", options={"mode": mode}, versions=reply.versions
        ),
    )


def _by_label(direct: Any, matrix: Any) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(direct, Mapping):
        direct = pd.Series(dict(direct))
    if not isinstance(direct, pd.Series) or not isinstance(matrix, pd.DataFrame):
        raise InputError(
            "direct estimates and proximity matrix have no labels to match them by",
            code="unlabelled_proximity",
            field="corMatrix",
            expected="a Series by domain, and a DataFrame with the domains as index and columns",
            got=f"{type(direct).__name__} and {type(matrix).__name__}",
            hint="mode='raw' takes both by position, as R does.",
        )
    labels = np.array(list(direct.index), dtype=object)
    if len({str(label) for label in labels}) < len(labels) or len(labels) != len(matrix):
        raise InputError(
            "direct must hold each domain of the proximity matrix once",
            code="unknown_domain",
            field="direct",
            expected=f"{len(matrix)} domains",
            got=f"{len(labels)} values",
        )
    return number_vector("direct", direct.to_numpy()), labelled_matrix(matrix, labels)
