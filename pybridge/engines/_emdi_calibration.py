"""The auxiliary variables of units that emdi::direct's bootstrap calibrates to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pybridge._checks import listed, real_array
from pybridge.errors import InputError

DROPPED = (
    "units without an outcome or a weight were left out before the call: emdi itself drops them "
    "from the sample and not from X_calib, whose rows it then takes for other units"
)


def calibration(words: Mapping[str, Any], given: Any, n: int, *, guarded: bool) -> Any:
    """X_calib (n, q) for a sample of n units; None where no variance is calibrated.

    Parameters
    ----------
    words : mapping
        emdi's arguments by its own names.
    given : array or None
    n : int
    guarded : bool

    Raises
    ------
    InputError
        No weights, another shape than the sample's, totals of another number of columns, guarded
        also values that are not finite.
    """
    if not calibrates(words):
        return None
    if words["weights"] is None:
        raise InputError(
            "boot_type 'calibrate' needs weights",
            code="missing_argument",
            field="weights",
            expected="a column of sampling weights",
            got=None,
        )
    matrix = np.empty((0, 0)) if given is None else real_array("X_calib", given)
    if matrix.ndim != 2 or len(matrix) != n:
        raise InputError(
            "boot_type 'calibrate' needs auxiliary variables of every unit",
            code="bad_shape",
            field="X_calib",
            expected=f"an array of shape ({n}, q)",
            got=f"shape {matrix.shape}",
        )
    bad = ~np.isfinite(matrix).all(axis=1)
    if guarded and bad.any():
        raise InputError(
            "auxiliary variables are missing or infinite",
            code="not_finite",
            field="X_calib",
            expected="finite numbers",
            got=f"rows {listed(np.flatnonzero(bad))} (counted from 0)",
        )
    totals = words["totals"]
    if totals is not None and len(totals) != matrix.shape[1]:
        raise InputError(
            "totals must have a number for each column of X_calib",
            code="bad_shape",
            field="totals",
            expected=f"{matrix.shape[1]} numbers",
            got=f"{len(totals)} numbers",
        )
    return matrix


def calibrates(words: Mapping[str, Any]) -> bool:
    """Whether emdi looks at X_calib at all."""
    return bool(words["boot_type"] == "calibrate" and words["var"])
