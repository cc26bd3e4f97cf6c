"""The record of ismev's fits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pybridge.engines._ismev_input import Block
from pybridge.engines._tail_record import TailRecord, bands
from pybridge.errors import InputError

if TYPE_CHECKING:
    from pybridge.crosscheck.fits import FitCrosscheck


@dataclass(frozen=True, eq=False, repr=False)
class IsmevFit(TailRecord):
    """A fit by ismev::gpd.fit or ismev::pp.fit.

    Attributes
    ----------
    blocks : tuple of Block
        The linear predictors: (location,) scale, shape.
    estimate : numpy.ndarray
        (p,) coefficients in the user's units; NaN where there is no fit.
    covariance : numpy.ndarray
        (p, p); NaN where it does not exist or stands for nothing.
    log_likelihood : float
    n_exceedances : int
    exact : mapping
        Guarded: the coefficients at the exact optimum, ``log_likelihood`` there,
        ``log_likelihood_at_engine`` and ``shortfall``, by how much R's answer is below.
    as_given : mapping
        Where a guarded fit asked R once more, from the exact optimum: R's first answer.
    """

    blocks: tuple[Block, ...]
    estimate: np.ndarray
    covariance: np.ndarray
    log_likelihood: float
    n_exceedances: int
    exact: Mapping[str, Any]
    as_given: Mapping[str, Any]

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

    def to_frame(self) -> pd.DataFrame:
        """One row a coefficient: estimate, standard_error, lower, upper, level, exact, status."""
        error = self.standard_errors
        lower, upper = bands(self.estimate, error, self.request.level)
        return pd.DataFrame(
            {
                "term": list(self.terms),
                "estimate": np.array(self.estimate),
                "standard_error": error,
                "lower": lower,
                "upper": upper,
                "level": self.request.level,
                "exact": [self.exact.get(term, math.nan) for term in self.terms],
                "status": self.status,
            }
        )

    def crosscheck(self) -> FitCrosscheck:
        """The same model by every engine that has it, guarded and raw: do they agree, and where
        do they part from the exact optimum.

        Raises
        ------
        InputError
            Where there is no exact optimum to hold them against.
        """
        from pybridge.crosscheck.exceedances import crosscheck_exceedances

        return crosscheck_exceedances(self)

    def summary(self) -> str:
        """The fit as text."""
        lines = [
            self.request.summary(),
            f"{self.n_exceedances} exceedances of {len(self.inputs['xdat'])} scores; "
            f"status {self.status} (ismev: {self.engine_status})",
            self.to_frame().drop(columns=["level", "status"]).to_string(index=False),
            f"log-likelihood {self.log_likelihood:.6f}",
        ]
        return "\n".join([*lines, *self.conditions])


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
