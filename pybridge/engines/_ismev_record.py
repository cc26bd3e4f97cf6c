"""The record of ismev's fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pybridge.engines._ismev_input import Block
from pybridge.engines._tail_record import TailFit
from pybridge.errors import InputError


@dataclass(frozen=True, eq=False, repr=False)
class IsmevFit(TailFit):
    """A fit by ismev::gpd.fit or ismev::pp.fit.

    Attributes
    ----------
    blocks : tuple of Block
        The linear predictors: (location,) scale, shape.
    estimate : numpy.ndarray
        (p,) coefficients in the user's units; NaN where there is no fit.
    covariance : numpy.ndarray
        (p, p); NaN where it does not exist or stands for nothing.
    """

    blocks: tuple[Block, ...]
    estimate: np.ndarray
    covariance: np.ndarray

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of the coefficients: ``scale``, ``scale:x``, ``shape`` and so on."""
        return tuple(term for item in self.blocks for term in item.terms)

    @property
    def standard_errors(self) -> np.ndarray:
        """(p,), roots of the covariance's diagonal."""
        with np.errstate(invalid="ignore"):
            return np.sqrt(np.diag(self.covariance))

    @property
    def with_covariates(self) -> bool:
        """Whether a parameter or the threshold varies, or a link is not the identity."""
        varies = any(item.columns or item.link != "identity" for item in self.blocks)
        return varies or np.ndim(self.inputs["threshold"]) > 0

    @property
    def exceedance_rate(self) -> float:
        """Exceedances over scores."""
        return self.n_exceedances / len(self.inputs["xdat"])

    def _parameters(self) -> tuple[list[str], np.ndarray, np.ndarray]:
        return list(self.terms), self.estimate, self.standard_errors


def need_gpd_fit(z: Any, *, stationary: bool = True) -> IsmevFit:
    """A fit of gpd_fit with numbers, or InputError.

    Parameters
    ----------
    stationary : bool
        Whether it must be without covariates, links and thresholds that vary.
    """
    if not isinstance(z, IsmevFit) or z.request.function != "gpd.fit":
        raise InputError(
            "z must be a fit of pybridge.engines.ismev.gpd_fit",
            code="not_a_fit",
            field="z",
            expected="IsmevFit of gpd_fit",
            got=type(z).__name__,
        )
    if not np.all(np.isfinite(z.estimate)):
        raise InputError(
            "there is no fit to go on from",
            code="no_fit",
            field="z",
            expected="a fit with numbers",
            got=f"status {z.status}",
        )
    if stationary and z.with_covariates:
        raise InputError(
            "profiles are for fits without covariates, links and varying thresholds",
            code="illegal_combination",
            field="z",
            expected="a fit with one scale, one shape and one threshold",
            got=z.request.summary(),
        )
    return z
