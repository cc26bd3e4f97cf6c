"""Means of groups of domains and of the whole, with the full design-based covariance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pybridge._record import Record
from pybridge.design.groups import MOST_GROUPS, group_covariance, group_variances
from pybridge.direct.inputs import DomainSample


@dataclass(frozen=True, eq=False, repr=False)
class AggregateEstimates(Record):
    """Estimates of the means of G groups.

    Attributes
    ----------
    taxonomy_level : str
        The level of the groups, or "all".
    group, n_labelled, size, estimate, variance, lower, upper, degrees_of_freedom, status
        Shape (G,).
    covariance : numpy.ndarray
        Shape (G, G); (0, 0) for more than 5,000 groups, which have variances only.
    level : float
        Confidence level of the t intervals.
    """

    taxonomy_level: str
    group: np.ndarray
    n_labelled: np.ndarray
    size: np.ndarray
    estimate: np.ndarray
    variance: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    degrees_of_freedom: np.ndarray
    status: np.ndarray
    covariance: np.ndarray
    level: float

    @property
    def standard_error(self) -> np.ndarray:
        """Square root of the variance, shape (G,)."""
        return np.sqrt(self.variance)

    def to_frame(self) -> pd.DataFrame:
        """One row a group."""
        return pd.DataFrame(
            {
                "taxonomy_level": self.taxonomy_level,
                "group": self.group,
                "n_labelled": self.n_labelled,
                "size": self.size,
                "estimate": self.estimate,
                "standard_error": self.standard_error,
                "lower": self.lower,
                "upper": self.upper,
                "level": self.level,
                "degrees_of_freedom": self.degrees_of_freedom,
                "status": self.status,
            }
        )

    def summary(self) -> str:
        """The table as text."""
        columns = ["group", "n_labelled", "size", "estimate", "standard_error", "lower", "upper"]
        return self.to_frame()[columns].to_string(index=False)


def aggregate(
    sample: DomainSample,
    *,
    method: str,
    formal: np.ndarray,
    score: np.ndarray,
    taxonomy_level: str | None,
    confidence: float,
) -> AggregateEstimates:
    """Aggregate direct estimates over groups of domains.

    HT, PPI and GREG of a group are the N_i-weighted means of the domains' (a domain without labels
    enters with its formal value, which keeps the group's estimate design-unbiased). Hájek of a
    group is the ratio over the whole group, as R's ``svyby(svymean)`` gives it.
    """
    population, moments = sample.population, sample.whole
    if taxonomy_level is None:
        codes, labels = np.zeros(population.n_domains, dtype=np.intp), np.array(["all"], object)
    else:
        codes, labels = population.group_codes(taxonomy_level)
    g = len(labels)
    size = np.bincount(codes, weights=population.size, minlength=g)
    n = np.bincount(codes, weights=moments.n[0], minlength=g)
    if method == "hajek":
        estimate, scores = _group_ratio(sample, codes, g)
    else:
        part = population.size / size[codes]
        estimate = np.bincount(codes, weights=part * formal, minlength=g)
        scores = score * part[:, None]
    words: dict[str, Any] = {"scores": scores, "groups": codes, "n_groups": g}
    if g > MOST_GROUPS:
        covariance = np.empty((0, 0))
        variance = group_variances(sample.cells, **words)
    else:
        covariance = group_covariance(sample.cells, **words)
        variance = np.diag(covariance)
    variance = np.where(n > 0, np.maximum(variance, 0.0), np.nan)
    unknown = (n == 0) & np.isin(method, ("ht", "hajek"))
    estimate = np.where(unknown, np.nan, estimate)
    degrees = np.where(n > 0, _degrees(sample, codes, g), np.nan)
    from pybridge.direct.estimates import t_quantile

    half = t_quantile(confidence, degrees) * np.sqrt(variance)
    return AggregateEstimates(
        taxonomy_level=taxonomy_level or "all",
        group=labels,
        n_labelled=n.astype(np.int64),
        size=size,
        estimate=estimate,
        variance=variance,
        lower=estimate - half,
        upper=estimate + half,
        degrees_of_freedom=degrees,
        status=np.where(n > 0, "ok", "out_of_sample").astype(object),
        covariance=covariance,
        level=confidence,
    )


def _group_ratio(sample: DomainSample, codes: np.ndarray, g: int) -> tuple[np.ndarray, np.ndarray]:
    total = sample.whole.total[0]
    weight = np.bincount(codes, weights=total[:, 0], minlength=g)
    safe = np.where(weight > 0, weight, 1.0)
    about = np.bincount(codes, weights=total[:, 1], minlength=g) / safe
    scores = np.zeros_like(total)
    scores[:, 0] = (-about / safe)[codes]
    scores[:, 1] = (1.0 / safe)[codes]
    return about + sample.whole.shift[1], scores


def _degrees(sample: DomainSample, codes: np.ndarray, g: int) -> np.ndarray:
    """Primary units minus strata among the units of every group, at least 1."""
    cells = sample.cells
    pair_group = codes[cells.pair_domain]
    n_strata = len(cells.plan.stratum_psu)
    strata = np.unique(pair_group * n_strata + cells.pair_stratum) // n_strata
    if cells.clusters is None:
        psu = np.bincount(pair_group, weights=cells.n.sum(axis=1), minlength=g)
    else:
        found = np.unique(codes[cells.clusters.domain] + g * cells.clusters.psu.astype(np.int64))
        psu = np.bincount(found % g, minlength=g)
    return np.maximum(psu - np.bincount(strata, minlength=g), 1.0)
