"""Arrays of leave-one-domain-out predictions, whichever model they come from."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
from scipy.special import ndtr

from pybridge._record import Record
from pybridge.smoothing._area_fit import standard_errors
from pybridge.smoothing._leave_out_mixture import Predictions

_FIELDS = ("prediction", "mse", "lower", "upper", "spread", "probability", "log_density")


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LeftOut(Record):
    """Predictions of the n labelled domains, each without its own label; arrays (n,).

    Attributes
    ----------
    prediction, mse, lower, upper : (n,)
        Of the domain mean; NaN where the others do not determine it.
    spread : (n,)
        Variance of the direct estimate about the prediction, mse + d.
    probability, log_density : (n,)
        Predictive distribution function and density at the direct estimate.
    n_refitted : int
        Domains that were fitted again instead of reweighted.
    """

    prediction: np.ndarray
    mse: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    spread: np.ndarray
    probability: np.ndarray
    log_density: np.ndarray
    n_refitted: int = 0

    def replaced(self, place: int, own: Predictions) -> LeftOut:
        """With one domain's numbers from elsewhere."""
        changed = {}
        for name in _FIELDS:
            values = getattr(self, name).copy()
            values[place] = getattr(own, name)[0]
            changed[name] = values
        return dataclasses.replace(self, **changed)

    def of_finite_domains(self, spread: np.ndarray) -> LeftOut:
        """Of the means of finite domains, which scatter by s²/N (n,) about the model's."""
        mse = self.mse + spread
        with np.errstate(invalid="ignore", divide="ignore"):
            stretch = np.sqrt(np.where(self.mse > 0, mse / self.mse, np.nan))
        ends = [
            self.prediction + stretch * (end - self.prediction) for end in (self.lower, self.upper)
        ]
        return dataclasses.replace(self, mse=mse, lower=ends[0], upper=ends[1])

    def finished(self, exists: np.ndarray, *, n_refitted: int) -> LeftOut:
        """With NaN for the variances (n,) that are infinite."""
        mse, spread = (np.where(exists, v, np.nan) for v in (self.mse, self.spread))
        return dataclasses.replace(self, mse=mse, spread=spread, n_refitted=n_refitted)


def without_leverage(covariates: np.ndarray) -> np.ndarray:
    """Domains (n,) without which the coefficients are still determined."""
    size = np.abs(covariates).max(axis=0)
    q = np.linalg.qr(covariates / np.where(size > 0.0, size, 1.0))[0]
    return np.asarray(np.einsum("ij,ij->i", q, q) < 1.0 - 1e-9)


def from_fit(fit: Any, place: int, words: dict[str, Any]) -> Predictions:
    """The prediction of one domain by a fit that did not see its label; arrays (1,)."""
    row = slice(place, place + 1)
    return normal_predictions(
        estimate=words["estimate"][row],
        variance=words["variance"][row],
        prediction=fit.estimate[row],
        mse=fit.mse[row],
        level=words["level"],
    )


def joined(parts: Sequence[Predictions]) -> LeftOut:
    """One record of predictions that come one by one."""
    columns = {name: np.concatenate([getattr(p, name) for p in parts]) for name in _FIELDS}
    return LeftOut(**columns, n_refitted=len(parts))


def normal_predictions(
    *,
    estimate: np.ndarray,
    variance: np.ndarray,
    prediction: np.ndarray,
    mse: np.ndarray,
    level: float,
) -> Predictions:
    """Predictions (n,) with normal intervals, from their mean squared errors."""
    spread = mse + variance
    standard = (estimate - prediction) / np.sqrt(spread)
    half = NormalDist().inv_cdf(0.5 + level / 2.0) * standard_errors(mse)
    return Predictions(
        prediction=prediction,
        mse=mse,
        lower=prediction - half,
        upper=prediction + half,
        spread=spread,
        probability=ndtr(standard),
        log_density=-0.5 * (standard**2 + np.log(2.0 * np.pi * spread)),
        edge=np.zeros_like(spread),
    )


def in_units(found: Predictions, scale: float, regression: np.ndarray) -> Predictions:
    """Back to the user's units: z = regression + scale z_w."""
    return dataclasses.replace(
        found,
        prediction=regression + scale * found.prediction,
        lower=regression + scale * found.lower,
        upper=regression + scale * found.upper,
        mse=found.mse * scale * scale,
        spread=found.spread * scale * scale,
        log_density=found.log_density - np.log(scale),
    )


def filled(usable: np.ndarray, found: Predictions | LeftOut, *, n_refitted: int = 0) -> LeftOut:
    """NaN where the other domains do not determine the coefficients."""
    columns = {}
    for name in _FIELDS:
        values = np.full(usable.size, np.nan)
        values[usable] = getattr(found, name)
        columns[name] = values
    return LeftOut(**columns, n_refitted=n_refitted)
