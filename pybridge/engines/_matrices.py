"""Matrices of covariances, correlations and precisions that R is given, checked."""

from __future__ import annotations

import numpy as np

from pybridge._checks import listed
from pybridge.errors import InputError

# Of the largest eigenvalue: what rounding may leave below 0 in a matrix of full precision.
_ROUNDING = 1e-8
# isSymmetric()'s own tolerance, of the mean relative difference.
_ASYMMETRY = 100 * np.finfo(np.float64).eps


def need_covariance(matrix: np.ndarray, field: str, labels: np.ndarray) -> None:
    """InputError unless a square matrix is finite, symmetric and positive semidefinite."""
    need_symmetric(matrix, field, labels)
    values = np.linalg.eigvalsh(matrix)
    if values[0] < -_ROUNDING * abs(values).max():
        raise InputError(
            f"{field} is not positive semidefinite: it is no covariance or precision",
            code="not_positive_semidefinite",
            field=field,
            expected="eigenvalues of at least 0",
            got=f"{values[0]:.3g} among them",
        )


def need_symmetric(matrix: np.ndarray, field: str, labels: np.ndarray) -> None:
    """InputError unless a square matrix is finite and symmetric; labels (m,) are its rows'."""
    gaps = ~np.isfinite(matrix).all(axis=1)
    if gaps.any():
        raise InputError(
            f"{field} has missing or infinite numbers",
            code="missing_values",
            field=field,
            expected="finite numbers",
            got=f"in the rows of {listed(labels[gaps])}",
        )
    apart = np.abs(matrix - matrix.T)
    away = apart > 0
    size = float(np.abs(matrix[away]).sum())
    if size and float(apart[away].sum()) > _ASYMMETRY * size:
        raise InputError(
            f"{field} must be symmetric",
            code="not_symmetric",
            field=field,
            expected="the same above the diagonal as below",
            got=f"differences up to {apart.max():.3g}",
            hint="(A + A.T) / 2 is, where only rounding parts them.",
        )
