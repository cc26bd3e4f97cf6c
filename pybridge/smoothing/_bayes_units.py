"""Working units for the quadrature: numbers near 1, covariates orthonormal, residuals small."""

from __future__ import annotations

import dataclasses

import numpy as np

from pybridge._checks import collinear_columns
from pybridge.smoothing._bayes_input import left_over, need_variation
from pybridge.smoothing._bayes_quadrature import AreaData, find_mode


@dataclasses.dataclass(frozen=True)
class WorkingUnits:
    """Units in which the numbers are near 1: z = scale * z_w + x b0, beta = b0 + scale T beta_w.

    ``turn`` (p, p) takes working covariates: x_w = x turn. ``low``, ``high``: where the mode of
    the log variance must lie.
    """

    data: AreaData
    scale: float
    offset: np.ndarray
    turn: np.ndarray
    low: float
    high: float

    @classmethod
    def of(cls, *, z: np.ndarray, d: np.ndarray, x: np.ndarray) -> WorkingUnits:
        """Residualise and orthonormalise, first unweighted, then with the weights at the mode."""
        collinear_columns(x)
        need_variation(z=z, d=d, x=x)
        offset, turn, residual = weighted_fit(z, x, np.ones(z.size))
        scale = unit_of(residual, d)
        # In two steps, because the square of a large scale may overflow.
        noise = d / scale / scale
        data = AreaData.of(z=residual / scale, d=noise, x=x @ turn)
        low, high = _search_range(data)
        mode = np.exp(find_mode(data, low=low, high=high)[0])
        offset, turn, residual = weighted_fit(z, x, 1.0 / np.sqrt(noise + mode))
        data = AreaData.of(z=residual / scale, d=noise, x=x @ turn)
        return cls(data=data, scale=scale, offset=offset, turn=turn, low=low, high=high)


def weighted_fit(
    z: np.ndarray, x: np.ndarray, root_weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Least-squares coefficients, the matrix that orthonormalises x, and the residuals."""
    size = np.abs(x).max(axis=0)
    q, r = np.linalg.qr(root_weight[:, None] * (x / size))
    turn = np.linalg.solve(r, np.eye(r.shape[0])) / size[:, None]
    offset = turn @ (q.T @ (root_weight * z))
    return offset, turn, z - x @ offset


def unit_of(residual: np.ndarray, d: np.ndarray) -> float:
    """A scale of the problem: typical residual or sampling standard deviation."""
    typical = max(float(np.median(np.abs(residual))), float(np.sqrt(np.median(d))))
    largest = max(float(np.abs(residual).max()), float(np.sqrt(d.max())))
    return typical if typical > 1e-8 * largest else largest


def _search_range(data: AreaData) -> tuple[float, float]:
    """Where the mode of log s can lie, from the spread of the variances and residuals."""
    m, p = data.x.shape
    residual = data.z
    positive = data.d[data.d > 0.0]
    spread = float(np.dot(residual, residual))
    floors = [float(positive.min()) / m] if positive.size else []
    census = data.d == 0.0
    if census.sum() > p:
        # The census domains alone bound the model variance away from 0.
        left = left_over(data.z[census], data.x[census])
        floors.append(max(float(np.dot(left, left)), 1e-30) / m)
    floor = min(floors) if floors else spread / m
    low = np.log(max(floor, 1e-250))
    high = np.log(max(float(data.d.max()), spread, 1e-200))
    return float(low) - 6.0, float(high) + 3.0
