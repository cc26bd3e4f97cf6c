"""Area-level models of finite domains: the mean of N_i units is not the model's own mean.

The Fay–Herriot model gives domain i the mean φ_i = x_i'β + v_i. The N_i units that the domain
really has scatter about it, so their mean is θ_i = φ_i + ε_i with Var(ε_i) = c_i = s²/N_i. With
many units c_i is nothing beside σ²; a county with five schools differs from the model by more than
σ² allows, and intervals that leave c_i out cover far less than they say.

With z_i ~ N(θ_i, d_i): z_i ~ N(φ_i, d_i + c_i), which is the ordinary model, on any engine, with
sampling variance d_i + c_i; and given φ_i and z_i

    θ_i ~ N( (d_i φ_i + c_i z_i)/(d_i + c_i),  c_i d_i/(c_i + d_i) ),

so estimate and error follow from the ordinary fit: exactly for the posterior mean and variance,
and for the MSE of the EBLUP. Without labels θ_i = φ_i + ε_i: the prediction stays, its variance
grows by c_i. Interval ends keep the shape that the ordinary fit's interval has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pybridge._record import Record


@dataclass(frozen=True, eq=False, repr=False)
class FiniteFit(Record):
    """An area-level fit turned into one of the finite domains; as the fit it was made from."""

    estimate: np.ndarray
    mse: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    shrinkage: np.ndarray
    derivative: np.ndarray
    model_variance: float
    status: str
    conditions: tuple[str, ...]


def finite_domains(
    fit: Any, *, estimate: np.ndarray, variance: np.ndarray, spread: np.ndarray
) -> FiniteFit:
    """Turn the fit with sampling variances d + c into one for the means of the finite domains.

    Parameters
    ----------
    fit
        The ordinary fit: estimate, mse, lower, upper, shrinkage, derivative (m,) each.
    estimate, variance, spread : numpy.ndarray
        Shape (m,): direct estimates z (NaN without labels), their variances d, and c.
    """
    seen = ~np.isnan(estimate)
    own, model = finite_weights(estimate=estimate, variance=variance, spread=spread)
    d = np.where(seen, variance, 1.0)
    z = np.where(seen, estimate, 0.0)
    mean = np.where(seen, own * z + model * fit.estimate, fit.estimate)
    mse = np.where(seen, own * d + model**2 * fit.mse, fit.mse + spread)
    with np.errstate(invalid="ignore", divide="ignore"):
        stretch = np.sqrt(np.where(fit.mse > 0, mse / np.where(fit.mse > 0, fit.mse, 1.0), np.nan))
    return FiniteFit(
        estimate=mean,
        mse=mse,
        lower=_edge(mean, fit.lower - fit.estimate, stretch, mse),
        upper=_edge(mean, fit.upper - fit.estimate, stretch, mse),
        shrinkage=np.where(seen, own + model * fit.shrinkage, fit.shrinkage),
        derivative=np.where(seen, own + model * fit.derivative, fit.derivative),
        model_variance=float(fit.model_variance),
        status=str(fit.status),
        conditions=tuple(getattr(fit, "conditions", ())),
    )


def finite_weights(
    *, estimate: np.ndarray, variance: np.ndarray, spread: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What z and φ count for in the mean of a finite domain, (m,) each; 0 and 1 without labels."""
    seen = ~np.isnan(estimate)
    d = np.where(seen, variance, 1.0)
    c = np.where(seen, spread, 0.0)
    total = np.where(d + c > 0, d + c, 1.0)
    # A census (d = 0): θ is z itself, whatever the model says.
    known = seen & (d == 0)
    return np.where(known, 1.0, c / total), np.where(known, 0.0, d / total)


def _edge(
    mean: np.ndarray, distance: np.ndarray, stretch: np.ndarray, mse: np.ndarray
) -> np.ndarray:
    """An interval's end as far from the new estimate, in its standard errors, as it was before."""
    return np.where(mse == 0, mean, mean + stretch * distance)
