"""The prior of the taxonomy model: inverse-gamma variances, flat coefficients."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from pybridge._record import Record
from pybridge.errors import InputError

DEFAULT_SHAPE = 1.0
DEFAULT_FACTOR = 0.1


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class TaxonomyPrior(Record):
    """Inverse-gamma priors on the levels' variances; a flat prior on the coefficients.

    Attributes
    ----------
    shape, scale : tuple of float
        Of the inverse-gamma density ~ s^(-shape - 1) exp(-scale / s), one a level from coarse to
        fine, or a single one for all levels. The scale is in squared units of the outcome.
    origin : str
        Where the numbers come from, for the summary.

    Notes
    -----
    Beside a flat prior, inverse-gamma(1, b) pulls a variance down. That is meant at the coarser
    levels; at the leaf level it narrows the intervals where the domains are few and differ as
    much as their sampling variances: over 34 domains in 5 groups with a leaf variance of the size
    of d the 95 % intervals covered 0.90 to 0.91 (150 samples, error 0.006), with a leaf shape of
    0.1 (``prior={"shape": [1, 0.1], "factor": 0.1}``) 0.93, at an RMSE 2 % lower to 1.5 % higher.
    """

    shape: Any
    scale: Any
    origin: str = "given"

    def __post_init__(self) -> None:
        for field in ("shape", "scale"):
            value = getattr(self, field)
            try:
                numbers = tuple(map(float, np.atleast_1d(np.asarray(value, dtype=float))))
            except (TypeError, ValueError):
                numbers = ()
            if not numbers or not all(np.isfinite(item) and item > 0.0 for item in numbers):
                raise InputError(
                    f"the prior's {field} must be positive numbers",
                    code="bad_prior",
                    field="prior",
                    expected="finite numbers above 0, one a level or one for all",
                    got=value,
                )
            object.__setattr__(self, field, numbers)
        super().__post_init__()

    @classmethod
    def default(cls, variance: np.ndarray, *, residual: np.ndarray, depth: int) -> TaxonomyPrior:
        """inverse-gamma(1, 0.1 median d_i) at every level, so the prior scales with the data.

        The median is over the sampling variances above 0; where there is none (all domains
        complete), over the squared residuals of a least-squares fit.
        """
        positive = variance[variance > 0.0]
        typical = float(np.median(positive)) if positive.size else float(np.mean(residual**2))
        words = "sampling variance" if positive.size else "squared residual"
        return cls(
            shape=(DEFAULT_SHAPE,) * depth,
            scale=(DEFAULT_FACTOR * typical,) * depth,
            origin=f"{DEFAULT_FACTOR:g} x the median {words}",
        )

    def arrays(self, depth: int) -> tuple[np.ndarray, np.ndarray]:
        """Shape and scale (R,), (R,) for a taxonomy of this depth."""
        out = []
        for value in (self.shape, self.scale):
            if len(value) not in (1, depth):
                raise InputError(
                    "the prior does not fit the number of levels",
                    code="bad_prior",
                    field="prior",
                    expected=f"one number, or {depth}",
                    got=value,
                )
            out.append(np.broadcast_to(np.asarray(value), (depth,)).astype(np.float64))
        return out[0], out[1]

    def scaled(self, factor: float) -> TaxonomyPrior:
        """The same prior with its scale multiplied, for a sensitivity table."""
        scale = tuple(factor * item for item in self.scale)
        return TaxonomyPrior(shape=self.shape, scale=scale, origin=f"{self.origin}, x {factor:g}")

    def summary(self) -> str:
        """One line: the levels' priors, once where they are all the same."""
        shape, scale = self.arrays(max(len(self.shape), len(self.scale)))
        words = [f"inverse-gamma({a:g}, {b:.6g})" for a, b in zip(shape, scale)]
        each = words[0] if len(set(words)) == 1 else "; ".join(words)
        return f"{each} ({self.origin}), coefficients flat"


def prior_from_factor(factor: float, variance: np.ndarray, *, shape: Any) -> TaxonomyPrior:
    """The same inverse-gamma at every level, its scale a multiple of the median variance above 0.

    Parameters
    ----------
    factor : float
    variance : (m,)
        Sampling variances of the labelled domains.
    shape : float, or one a level
    """
    positive = variance[variance > 0.0]
    if not factor > 0.0 or not positive.size:
        raise InputError(
            "the prior's factor must be positive, and some sampling variance above 0",
            code="bad_prior",
            field="prior",
            expected="factor > 0",
            got=factor,
        )
    return TaxonomyPrior(
        shape=shape,
        scale=(factor * float(np.median(positive)),),
        origin=f"{factor:g} x the median sampling variance",
    )
