"""A fit on the scale of its model: residuals around x'β and their variances."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pybridge.engines._emdi_request import FhRequest
from pybridge.engines._emdi_units import transformed

if TYPE_CHECKING:
    from pybridge.engines._emdi_record import EmdiFit


def model_scale(fit: EmdiFit) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Residuals z − x'β, domain effects, and variances of z in the model.

    Returns
    -------
    residual, effect, total : numpy.ndarray
        Shape (m,), rows as in the fit, NaN without a direct estimate.
    """
    request = fit.request
    inside = request.sampled
    place = np.argsort(request.order)
    z, d = transformed(request)
    total = np.full(len(inside), np.nan)
    total[inside] = d + _effects_variance(fit, request)
    direct = np.full(len(inside), np.nan)
    direct[inside] = z
    mean = fit.linear - fit.random_effects
    return direct[place] - mean, np.array(fit.random_effects), total[place]


def _effects_variance(fit: EmdiFit, request: FhRequest) -> np.ndarray:
    """Of the domain effects (n,), and of the errors in the covariates."""
    inside = request.sampled
    n, a = int(inside.sum()), fit.model_variance
    if request.errors is not None:
        beta = np.asarray(fit.coefficients)
        return a + np.einsum("i,ijm,j->m", beta, request.errors[:, :, inside], beta)
    if request.proximity is None:
        return np.full(n, a)
    root = np.eye(n) - fit.spatial_correlation * request.proximity
    if not np.linalg.cond(root) < 1e12:
        return np.full(n, np.nan)
    return np.asarray(a * np.linalg.inv(root.T @ root).diagonal())
