"""The proximity matrix of spatial models, its rows and columns put in the order of the domains.

sae goes by position and ignores names: a table in another order than the matrix gives other
numbers and no warning.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import listed, real_array
from pybridge.engines._sae_input import refuse_twice
from pybridge.errors import InputError

# A matrix from a file may be rounded.
_ROUNDING = 1e-3


def proximity_matrix(
    proxmat: Any, labels: np.ndarray, *, mode: str, field: str = "proxmat"
) -> np.ndarray:
    """W as an array (m, m), float64, in the order of ``labels``.

    Parameters
    ----------
    proxmat : pandas.DataFrame or array
        Guarded: a DataFrame whose index and columns hold the domains' labels, in any order (1 and
        "1" are one label: a file's header is text). Raw: anything two-dimensional, by position.
    labels : numpy.ndarray
        Shape (m,), object.
    mode : str
    field : str
        The argument, for messages.

    Raises
    ------
    InputError
        ``unlabelled_proximity``, ``unknown_domain``, ``duplicate_domain``, ``not_square``,
        ``not_numeric``, ``missing_values``, ``no_neighbours``.
    """
    if mode == "raw":
        return _numbers(proxmat, field)
    if not isinstance(proxmat, pd.DataFrame):
        raise InputError(
            "the proximity matrix has no labels, so its rows cannot be matched to the domains",
            code="unlabelled_proximity",
            field=field,
            expected="pandas.DataFrame with the domains as index and as columns",
            got=type(proxmat).__name__,
            hint="pd.DataFrame(W, index=labels, columns=labels) with the labels in W's own order; "
            "mode='raw' takes rows by position, as R does.",
        )
    rows = _positions(proxmat.index, labels, "index", field)
    columns = _positions(proxmat.columns, labels, "columns", field)
    found = _numbers(proxmat, field)[np.ix_(rows, columns)]
    if not np.isfinite(found).all():
        bad = labels[~np.isfinite(found).all(axis=1)]
        raise InputError(
            "the proximity matrix has values that are missing or infinite",
            code="missing_values",
            field=field,
            expected="finite numbers",
            got=f"in the rows of {listed(bad)}",
        )
    if not found.any():
        raise InputError(
            "the proximity matrix is 0 everywhere: no correlation can be estimated",
            code="no_neighbours",
            field=field,
            expected="a matrix with neighbours in it",
            got="zeros",
            hint="Use the model without correlation: eblupFH, mseFH.",
        )
    return np.ascontiguousarray(found)


def remarks(matrix: np.ndarray, labels: np.ndarray) -> tuple[str, ...]:
    """What sae takes without a word and a reader should know."""
    said = []
    sums = matrix.sum(axis=1)
    alone = ~matrix.any(axis=1)
    if alone.any():
        said.append(f"domains without neighbours: {listed(labels[alone])}")
    if (np.abs(sums[~alone] - 1.0) > _ROUNDING).any():
        said.append(
            "the rows of the proximity matrix do not add up to 1: the spatial parameter is not "
            "a correlation, and its limits of -1 and 1 are not those of this matrix"
        )
    if matrix.diagonal().any():
        said.append("domains are neighbours of themselves: the proximity matrix has a diagonal")
    return tuple(said)


def _numbers(proxmat: Any, field: str) -> np.ndarray:
    found = real_array(field, proxmat, expected="a square matrix of numbers")
    if found.ndim != 2:
        raise InputError(
            "the proximity matrix must have two dimensions",
            code="not_square",
            field=field,
            expected="a square matrix of numbers",
            got=f"shape {found.shape}",
        )
    return found


def _positions(have: pd.Index, labels: np.ndarray, what: str, field: str) -> np.ndarray:
    """Where each of the labels stands in an index of the matrix."""
    there = np.array([str(label) for label in have], dtype=object)
    refuse_twice(there, field=field)
    wanted = [str(label) for label in labels]
    place = {label: k for k, label in enumerate(there)}
    missing = [label for label in wanted if label not in place]
    extra = [label for label in there if label not in set(wanted)]
    if missing or extra:
        parts = []
        if missing:
            parts.append(f"not in its {what}: {listed(missing)}")
        if extra:
            parts.append(f"not in the table: {listed(extra)}")
        raise InputError(
            "the labels of the proximity matrix are not the domains of the table",
            code="unknown_domain",
            field=field,
            expected=f"{len(wanted)} labels, those of the domains, as index and as columns",
            got="; ".join(parts),
            hint="Cut the matrix to the domains of the table (and scale its rows anew) where it "
            "has more.",
        )
    return np.array([place[label] for label in wanted], dtype=np.intp)
