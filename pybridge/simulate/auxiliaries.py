"""Auxiliary variables with stated correlations: of units, and of domain means.

The two are nearly free of each other, and they enter an estimator at two places: the first through
the variance of a regression estimate, the second through the area-level model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pybridge._options import choose, real_number
from pybridge.errors import InputError
from pybridge.simulate.outcomes import beta_values, binary_values, in_latent_order
from pybridge.tails._streams import stream

KINDS = ("binary", "share", "continuous")
_MARGIN = 0.02


@dataclass(frozen=True)
class Auxiliary:
    """An auxiliary variable by what it shall have.

    Attributes
    ----------
    name : str
    unit_correlation : float
        With the outcome, over all units; exact to 0.002 in populations of thousands.
    domain_correlation : float
        Between the domain means of both, every domain counting alike; exact but for rounding to
        whole units and means cut off near 0 and 1.
    kind : {"binary", "share", "continuous"}
        0 or 1 (another system's answer is right); in [0, 1] (a share of earlier systems); normal.
    mean : float
    between : float
        Part of its variance that lies between domains, in (0, 1).
    sd : float
        Standard deviation over units of a share or of a continuous variable.
    """

    name: str
    unit_correlation: float
    domain_correlation: float
    kind: str = "continuous"
    mean: float = 0.5
    between: float = 0.1
    sd: float = 0.3

    def __post_init__(self) -> None:
        choose("kind", self.kind, KINDS)
        for word in ("unit_correlation", "domain_correlation"):
            if not -1.0 <= real_number(word, getattr(self, word)) <= 1.0:
                raise InputError(
                    "a correlation lies in [-1, 1]",
                    code="bad_correlation",
                    field=word,
                    expected=f"-1 <= {word} <= 1",
                    got=getattr(self, word),
                )
        real_number("mean", self.mean)
        inside = 0.0 < real_number("between", self.between) < 1.0 and real_number("sd", self.sd) > 0
        bounded = self.kind == "continuous" or 0.0 < self.mean < 1.0
        if not (inside and bounded and self.within_sd() > 0):
            raise InputError(
                f"the auxiliary variable {self.name!r} cannot have this mean and spread",
                code="bad_scale",
                field=self.name,
                expected="0 < between < 1, sd > 0; in [0, 1] a mean and a spread that fit there",
                got=f"mean {self.mean:g}, between {self.between:g}, sd {self.sd:g}",
            )

    def total_variance(self) -> float:
        """Over all units, about as asked for."""
        return self.mean * (1.0 - self.mean) if self.kind == "binary" else self.sd**2

    def within_sd(self) -> float:
        """Inside domains; 0 where a share cannot spread so far inside [0, 1]."""
        variance = (1.0 - self.between) * self.total_variance()
        if self.kind == "share" and variance >= self.mean * (1.0 - self.mean):
            return 0.0
        return float(np.sqrt(variance))


def auxiliary_values(item: Auxiliary, *, y: np.ndarray, sizes: np.ndarray, seed: int) -> np.ndarray:
    """Values (N,) beside outcomes (N,) that lie domain by domain, ``sizes`` (m,) units each.

    Raises
    ------
    InputError
        ``unreachable_correlation``: no variable has these two correlations with this outcome.
    """
    code = np.repeat(np.arange(len(sizes)), sizes)
    theta = np.bincount(code, weights=y) / sizes
    means = _domain_means(item, theta, sizes, seed)
    about = _unit_variance(y - theta[code])
    noise = stream(seed, "auxiliary", item.name).standard_normal(len(y))
    noise = noise - (np.bincount(code, weights=noise) / sizes)[code]
    noise = _unit_variance(noise - (noise @ about) / len(y) * about)
    if item.kind == "continuous":
        return _exact(item, y, means[code], about, noise)
    if item.kind == "binary":
        values = binary_values(means, sizes)
    else:
        strength = item.mean * (1.0 - item.mean) / item.within_sd() ** 2 - 1.0
        values = beta_values(means, sizes, strength)
    return _calibrated(item, y, values, code, about, noise)


def _domain_means(item: Auxiliary, theta: np.ndarray, sizes: np.ndarray, seed: int) -> np.ndarray:
    """Means (m,) whose correlation with theta is as asked, the domains counting alike."""
    own = stream(seed, "auxiliary means", item.name).standard_normal(len(theta))
    z, r = _unit_variance(theta - theta.mean()), item.domain_correlation
    own = own - own.mean()
    own = _unit_variance(own - (own @ z) / len(z) * z)
    found = r * z + np.sqrt(max(1.0 - r * r, 0.0)) * own
    weight = sizes / sizes.sum()
    found = found - weight @ found
    spread = np.sqrt(weight @ found**2)
    found = found / spread if spread > 0 else found
    found = item.mean + np.sqrt(item.between * item.total_variance()) * found
    return found if item.kind == "continuous" else np.clip(found, _MARGIN, 1.0 - _MARGIN)


def _unit_variance(values: np.ndarray) -> np.ndarray:
    size = np.sqrt(np.mean(values**2))
    return values / size if size > 0 else values


def _exact(
    item: Auxiliary, y: np.ndarray, means: np.ndarray, about: np.ndarray, noise: np.ndarray
) -> np.ndarray:
    """Means and a part inside domains, which is solved for the correlation of units."""
    within = item.within_sd()
    wanted = item.unit_correlation * y.std() * item.sd
    between = np.mean((y - y.mean()) * (means - means.mean()))
    inside = np.mean(about * (y - y.mean()))
    r = (wanted - between) / (within * inside) if inside > 0 else np.inf
    if not -1.0 <= r <= 1.0:
        raise _unreachable(item, f"{r:.3g} inside domains")
    return np.asarray(means + within * (r * about + np.sqrt(1.0 - r * r) * noise))


def _calibrated(
    item: Auxiliary,
    y: np.ndarray,
    values: np.ndarray,
    code: np.ndarray,
    about: np.ndarray,
    noise: np.ndarray,
) -> np.ndarray:
    """Values given out in the order of a latent score, whose tie to the outcome is bisected."""

    def given(r: float) -> np.ndarray:
        return in_latent_order(values, code, r * about + np.sqrt(1.0 - r * r) * noise)

    def correlation(r: float) -> float:
        return float(np.corrcoef(y, given(r))[0, 1])

    low, high = -1.0, 1.0
    ends = correlation(low), correlation(high)
    if not ends[0] <= item.unit_correlation <= ends[1]:
        raise _unreachable(item, f"{ends[0]:.3g} to {ends[1]:.3g}")
    for _ in range(40):
        middle = 0.5 * (low + high)
        if correlation(middle) < item.unit_correlation:
            low = middle
        else:
            high = middle
    return given(0.5 * (low + high))


def _unreachable(item: Auxiliary, got: str) -> InputError:
    return InputError(
        f"no variable {item.name!r} has these correlations with the outcome",
        code="unreachable_correlation",
        field="unit_correlation",
        expected="a correlation of units that domain means and their spread leave room for",
        got=got,
        hint="Another `between`, or a smaller difference of the two correlations.",
    )
