"""The prior of the taxonomy model: inverse-gamma variances, flat coefficients."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from pybridge._record import Record
from pybridge.errors import InputError

DEFAULT_SHAPE, DEFAULT_LEAF_SHAPE = 1.0, 0.1
DEFAULT_FACTOR = 0.1


def default_shapes(depth: int) -> tuple[float, ...]:
    """Inverse-gamma shapes of a taxonomy of R levels, coarse to fine: 1, and 0.1 at the domain."""
    return (DEFAULT_SHAPE,) * (depth - 1) + (DEFAULT_LEAF_SHAPE,)


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
    The default is inverse-gamma(1, b) for the levels above the domain and inverse-gamma(0.1, b) at
    the domain, b = 0.1 median d. Shape 1 pulls a variance down, which is meant for a coarser level,
    so that one without variation costs little. At the domain it would narrow the intervals where
    the domains are few and differ as much as their sampling variances. Measured over 34 domains in
    5 groups and 63 in 21 (220 samples each, median d = 1, leaf variances 0.25, 1 and 4, with and
    without variation between the groups; Monte Carlo errors of coverage 0.002 to 0.005):

    =====================================================  ==============  ============
    shape at the domain                                    1               0.1
    =====================================================  ==============  ============
    coverage of 95 % intervals                             0.915 to 0.950  0.943 to 0.965
    RMSE against no level, groups that do not vary         -1.8 to +2.4 %  -0.6 to +0.7 %
    RMSE against no level, groups that do                  -15 to -3 %     -14 to -4 %
    median variance of such a level over the domain's,     0.04 to 0.77    0.04 to 0.44
    mean over samples
    =====================================================  ==============  ============
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
        """inverse-gamma(1, 0.1 median d_i), at the domain (0.1, ...): it scales with the data.

        The median is over the sampling variances above 0; where there is none (all domains
        complete), over the squared residuals of a least-squares fit.
        """
        positive = variance[variance > 0.0]
        typical = float(np.median(positive)) if positive.size else float(np.mean(residual**2))
        words = "sampling variance" if positive.size else "squared residual"
        return cls(
            shape=default_shapes(depth),
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

    def summary(self, names: Sequence[str] = ()) -> str:
        """One line: the levels' priors, by the levels' names where these are given."""
        depth = len(names) or max(len(self.shape), len(self.scale))
        shape, scale = self.arrays(depth)
        words = [f"inverse-gamma({a:g}, {b:.6g})" for a, b in zip(shape, scale)]
        if len(set(words)) == 1:
            words = words[:1]
        elif names:
            words = [f"{name} {word}" for name, word in zip(names, words)]
        return f"{', '.join(words)} ({self.origin}), coefficients flat"


def prior_from_factor(factor: float, variance: np.ndarray, *, shape: Any) -> TaxonomyPrior:
    """Inverse-gammas whose scale is a multiple of the median variance above 0.

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
