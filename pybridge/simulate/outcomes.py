"""Outcomes of simulated populations: binary, scores on a bounded scale, or continuous.

Domain means are drawn level by level; inside a domain the outcome takes the quantiles of its
distribution, so that the mean is as drawn, and units get them in the order of a latent normal score
that clusters may share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy.special import betaincinv, ndtri

from pybridge._options import choose, real_number
from pybridge.errors import InputError
from pybridge.tails._streams import stream

OUTCOMES = ("binary", "score", "continuous")
# Domain means of a bounded outcome stay this far from the ends, as parts of the scale.
_MARGIN = 0.03


@dataclass(frozen=True)
class Outcome:
    """What the outcome looks like.

    Attributes
    ----------
    kind : {"binary", "score", "continuous"}
        0 or 1; a beta-distributed score from 0 to ``scale``; normal.
    mean : float
        Over domains.
    domain_sd : float
        Standard deviation of the domains' own effects on their means.
    level_sd : mapping of str to float
        The same for the groups of every level above, by name; 0 where not named.
    unit_sd : float
        Standard deviation inside domains: of a continuous outcome, and of a score in a domain with
        the overall mean.
    scale : float
        Upper end of a score.
    cluster_share : float
        Part of the latent score's variance that units of one cluster share, in [0, 1).
    """

    kind: str = "binary"
    mean: float = 0.5
    domain_sd: float = 0.1
    level_sd: Mapping[str, float] = field(default_factory=dict)
    unit_sd: float = 1.0
    scale: float = 1.0
    cluster_share: float = 0.0

    def __post_init__(self) -> None:
        choose("kind", self.kind, OUTCOMES)
        real_number("mean", self.mean)
        spreads = {"domain_sd": self.domain_sd, "unit_sd": self.unit_sd, **dict(self.level_sd)}
        low = {name: real_number(name, value) for name, value in spreads.items()}
        if min(low.values()) < 0 or not self.top > 0:
            raise InputError(
                "standard deviations and the scale must not be negative",
                code="bad_scale",
                field=min(low, key=lambda name: low[name]),
                expected="at least 0",
                got=min(low.values()),
            )
        if not 0.0 <= real_number("cluster_share", self.cluster_share) < 1.0:
            raise InputError(
                "the clusters' part of the variance lies in [0, 1)",
                code="bad_share",
                field="cluster_share",
                expected="0 <= cluster_share < 1",
                got=self.cluster_share,
            )
        if self.kind != "continuous" and not 0.0 < self.mean < self.top:
            raise InputError(
                "the mean of a bounded outcome lies inside its range",
                code="bad_mean",
                field="mean",
                expected=f"0 < mean < {self.top:g}",
                got=self.mean,
            )
        self._check_spread()

    def _check_spread(self) -> None:
        """A score between 0 and the scale can have no larger a spread than two values give."""
        share = self.mean / self.top
        if self.kind == "score" and not 0 < self.unit_sd < self.top * (share * (1 - share)) ** 0.5:
            raise InputError(
                "a score has no such spread inside its range",
                code="bad_scale",
                field="unit_sd",
                expected=f"0 < unit_sd < {self.top * (share * (1 - share)) ** 0.5:g}",
                got=self.unit_sd,
            )

    @property
    def top(self) -> float:
        """Upper end of a bounded outcome."""
        return 1.0 if self.kind == "binary" else float(self.scale)


def domain_means(
    outcome: Outcome, levels: Mapping[str, np.ndarray], n_domains: int, seed: int
) -> np.ndarray:
    """Means (m,): overall, plus effects of the groups and of the domain, each scaled as stated.

    Effects of one kind have exactly the standard deviation that was asked for, where there are two
    of them or more.
    """
    mean = np.full(n_domains, float(outcome.mean))
    for level, groups in levels.items():
        labels, position = np.unique(groups.astype(str), return_inverse=True)
        effect = _standardised(stream(seed, "level", level).standard_normal(len(labels)))
        mean += outcome.level_sd.get(level, 0.0) * effect[position.reshape(-1)]
    own = _standardised(stream(seed, "domains").standard_normal(n_domains))
    mean += outcome.domain_sd * own
    if outcome.kind == "continuous":
        return mean
    return np.clip(mean, _MARGIN * outcome.top, (1.0 - _MARGIN) * outcome.top)


def _standardised(values: np.ndarray) -> np.ndarray:
    about = values - values.mean()
    spread = about.std()
    return about / spread if spread > 0 else about


def outcome_values(
    outcome: Outcome,
    *,
    mean: np.ndarray,
    sizes: np.ndarray,
    cluster: np.ndarray | None,
    seed: int,
) -> np.ndarray:
    """Outcomes (N,) of units that lie domain by domain, ``sizes`` (m,) units each."""
    code = np.repeat(np.arange(len(sizes)), sizes)
    latent = stream(seed, "units").standard_normal(len(code))
    if cluster is not None and outcome.cluster_share > 0:
        shared = stream(seed, "cluster effects").standard_normal(int(cluster.max()) + 1)[cluster]
        share = outcome.cluster_share
        latent = np.sqrt(1.0 - share) * latent + np.sqrt(share) * shared
    if outcome.kind == "continuous":
        values = mean[code] + outcome.unit_sd * ndtri(mid_ranks(sizes))
    elif outcome.kind == "binary":
        values = binary_values(mean, sizes)
    else:
        share = outcome.mean / outcome.top
        spread = (outcome.unit_sd / outcome.top) ** 2
        strength = share * (1.0 - share) / spread - 1.0
        values = outcome.top * beta_values(mean / outcome.top, sizes, strength)
    return in_latent_order(values, code, latent)


def mid_ranks(sizes: np.ndarray) -> np.ndarray:
    """(j − 1/2)/N_i for the units of every domain, shape (N,)."""
    start = np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.asarray((np.arange(int(sizes.sum())) - start + 0.5) / np.repeat(sizes, sizes))


def binary_values(mean: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """0s, then 1s in every domain, shape (N,): as many as the mean asks for, rounded."""
    ones = np.round(mean * sizes) / sizes
    return (mid_ranks(sizes) > np.repeat(1.0 - ones, sizes)).astype(np.float64)


def beta_values(mean: np.ndarray, sizes: np.ndarray, strength: float) -> np.ndarray:
    """Rising quantiles of beta distributions with these means, shape (N,); in [0, 1]."""
    of = np.repeat(mean, sizes)
    return np.asarray(betaincinv(of * strength, (1.0 - of) * strength, mid_ranks(sizes)))


def in_latent_order(values: np.ndarray, code: np.ndarray, latent: np.ndarray) -> np.ndarray:
    """Values that rise inside each domain, given to its units in the order of ``latent`` (N,)."""
    out = np.empty(len(values))
    out[np.lexsort((latent, code))] = values
    return out
