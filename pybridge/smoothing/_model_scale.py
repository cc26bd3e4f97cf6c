"""What a native fit is on the scale of its model, where that is not the scale of its table."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any, NoReturn

import numpy as np

from pybridge._record import Record
from pybridge.errors import InputError


@dataclass(frozen=True, eq=False, repr=False)
class ModelScale(Record):
    """The model's own numbers of m domains, beside the estimates that were made of them.

    Attributes
    ----------
    what : str
        What sets the fit apart: the transformation, or the robust method.
    direct, variance : numpy.ndarray
        Shape (m,), direct estimates and sampling variances as the model took them.
    linear : numpy.ndarray
        Shape (m,), the prediction.
    mse : numpy.ndarray
        Shape (m,), its mean squared error.
    synthetic : numpy.ndarray
        Shape (m,), x'β.
    effect : numpy.ndarray
        Shape (m,), the predicted domain effects; NaN where there is no direct estimate.
    total : numpy.ndarray
        Shape (m,), σ² + d.
    domain_status : numpy.ndarray
        Shape (m,), object, statuses of the domains.
    """

    what: str
    direct: np.ndarray
    variance: np.ndarray
    linear: np.ndarray
    mse: np.ndarray
    synthetic: np.ndarray
    effect: np.ndarray
    total: np.ndarray
    domain_status: np.ndarray

    def model_scale(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Residuals z − x'β, domain effects and variances of z (m,), on the model's scale."""
        return self.direct - self.synthetic, np.array(self.effect), np.array(self.total)

    def summary(self) -> str:
        """One line."""
        return f"ModelScale({self.what}): {len(self.direct)} domains"

    def r_script(self) -> NoReturn:
        """Not available: no function of R has the same numbers."""
        raise self._nothing_in_r("script")

    def to_rds(self, path: str | PathLike[str]) -> NoReturn:
        """Not available: no function of R has the same numbers."""
        raise self._nothing_in_r("object")

    def _nothing_in_r(self, thing: str) -> InputError:
        return InputError(
            f"no function of R has the same numbers ({self.what}), so there is no {thing} of it",
            code="not_available",
            field="engine",
            expected="engine='emdi', whose own numbers these are not",
            got="native",
        )


def statuses(*, direct: np.ndarray, known: np.ndarray, mse: np.ndarray) -> Any:
    """Statuses (m,), object: ``known`` marks domains that were observed in full."""
    words = np.full(len(direct), "ok", dtype=object)
    words[mse < 0] = "negative_mse"
    words[known] = "census"
    words[np.isnan(direct)] = "out_of_sample"
    return words
