"""The record of direct estimates, and how linear estimates become one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pybridge._options import DIRECT_VARIANCES, check_level, choose
from pybridge._record import Record
from pybridge.direct.aggregates import AggregateEstimates, aggregate
from pybridge.direct.exports import DirectExports
from pybridge.direct.inputs import DomainSample
from pybridge.direct.linear import DirectRequest, linear_estimates, within_domain
from pybridge.direct.statuses import domain_statuses, t_quantile
from pybridge.direct.variances import ModelledVariances, modelled_variances
from pybridge.design.groups import group_covariance
from pybridge.tables.area_join import with_covariates

if TYPE_CHECKING:
    from pybridge.direct._survey import SurveyAnswer

METHOD_NAMES = {
    "ht": "Horvitz–Thompson",
    "hajek": "Hájek",
    "ppi": "prediction-powered (difference)",
    "greg": "generalised regression",
}


@dataclass(frozen=True, eq=False, repr=False)
class DirectEstimates(DirectExports, Record):
    """Direct estimates of the domain means.

    All arrays have shape (m,), in the order of ``population.domains``.

    Attributes
    ----------
    method : str
        "ht", "hajek", "ppi" or "greg".
    sample : DomainSample
        Cells and population (no units).
    n_labelled, size, estimate, variance, covariance_ht, degrees_of_freedom, status
        As in ``to_frame()``.
    lower, upper : numpy.ndarray
        t interval at ``level``.
    score : numpy.ndarray
        Shape (m, p), coefficients of the linearised variance.
    formal : numpy.ndarray
        As ``estimate``, with the formal value in domains without units.
    coefficients : numpy.ndarray
        Shape (m, 1 + number of auxiliaries), the working model; the same in every domain unless
        domains have slopes of their own.
    coefficient_names : tuple of str
    own_slope : numpy.ndarray
        bool, whether the domain fitted its own slope.
    variance_method : str
        "direct", "smoothed", "pooled" or "gvf".
    variance_weight : numpy.ndarray
        B_i (1 − λ) of the smoothed variances, what the domain's own element variance counts (less
        where tails are heavy, see `pybridge.direct.variances`); NaN otherwise.
    level : float
    request : DirectRequest
        Which estimator, with which auxiliary variables and slope.
    answer : SurveyAnswer or None
        What R's survey gave, with ``engine="survey"``: the covariance, the groups, provenance.
    """

    method: str
    sample: DomainSample
    n_labelled: np.ndarray
    size: np.ndarray
    estimate: np.ndarray
    variance: np.ndarray
    covariance_ht: np.ndarray
    degrees_of_freedom: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    status: np.ndarray
    score: np.ndarray
    formal: np.ndarray
    coefficients: np.ndarray
    coefficient_names: tuple[str, ...]
    own_slope: np.ndarray
    variance_method: str
    variance_weight: np.ndarray
    level: float
    request: DirectRequest
    answer: SurveyAnswer | None = None

    @property
    def engine(self) -> str:
        """Who computed: "native" or "survey"."""
        return "native" if self.answer is None else "survey"

    @property
    def standard_error(self) -> np.ndarray:
        """Square root of the variance, shape (m,)."""
        return np.sqrt(self.variance)

    @property
    def cv(self) -> np.ndarray:
        """Standard error over the absolute estimate, shape (m,)."""
        return self.standard_error / np.abs(np.where(self.estimate == 0, np.nan, self.estimate))

    @property
    def outside_range(self) -> np.ndarray:
        """Proportions estimated below 0 or above 1: flagged, never clipped. Shape (m,), bool."""
        low, high = self.sample.cells.outcome_range
        if low < 0 or high > 1:
            return np.zeros(len(self.estimate), dtype=bool)
        rounding = 1e-12
        return (self.estimate < -rounding) | (self.estimate > 1 + rounding)

    def to_frame(self) -> pd.DataFrame:
        """One row a domain."""
        return pd.DataFrame(
            {
                "domain": self.sample.population.domains,
                "n_labelled": self.n_labelled,
                "size": self.size,
                "estimate": self.estimate,
                "variance": self.variance,
                "standard_error": self.standard_error,
                "cv": self.cv,
                "lower": self.lower,
                "upper": self.upper,
                "level": self.level,
                "covariance_ht": self.covariance_ht,
                "degrees_of_freedom": self.degrees_of_freedom,
                "status": self.status,
            }
        )

    def to_area(self, covariates: pd.DataFrame | None = None) -> pd.DataFrame:
        """The table that an area-level model starts from, one row a domain.

        Estimates and variances, NaN in domains without labels (their synthetic value is no
        observation), beside the population's groups, sizes and auxiliary means.

        Parameters
        ----------
        covariates : pandas.DataFrame, optional
            Further columns, one row a domain, the labels in a column ``domain``.

        Raises
        ------
        InputError
            ``domains_differ``, with the domains that only one of both has.
        """
        population = self.sample.population
        seen = self.n_labelled > 0
        table = {"domain": population.domains}
        table.update({level: population.groups[level] for level in population.taxonomy})
        table.update(n_labelled=self.n_labelled, size=self.size)
        table["estimate"] = np.where(seen, self.estimate, np.nan)
        table["variance"] = np.where(seen, self.variance, np.nan)
        means = dict(zip(population.auxiliary, population.auxiliary_means.T))
        area = pd.DataFrame({**table, **means})
        return area if covariates is None else with_covariates(area, covariates, domain="domain")

    def covariance(self) -> np.ndarray:
        """Design-based covariance of all domain estimates, shape (m, m), from the whole design.

        Domains without units have covariance 0 here. Raises InputError above 5,000 domains.
        """
        if self.answer is not None:
            return np.array(self.answer.covariance)
        m = len(self.estimate)
        return group_covariance(
            self.sample.cells, scores=self.score, groups=np.arange(m), n_groups=m
        )

    def aggregate(self, level: str | None = None) -> AggregateEstimates:
        """Means of the groups of one taxonomy level, or of the whole population.

        Parameters
        ----------
        level : str, optional
            A level of the population's taxonomy; the whole by default.

        Returns
        -------
        AggregateEstimates
            With the full design-based covariance.
        """
        found = aggregate(
            self.sample,
            method=self.method,
            formal=self.formal,
            score=self.score,
            taxonomy_level=level,
            confidence=self.level,
        )
        return found if self.answer is None else self.answer.of_groups(found)

    def summary(self) -> str:
        """A short text: estimator, working model, statuses, range of standard errors."""
        lines = [f"{METHOD_NAMES[self.method]} estimates of {len(self.estimate)} domains"]
        lines.append(self.sample.design)
        if self.answer is not None:
            lines += [self.answer.summary(), *self.answer.conditions]
        if self.coefficient_names:
            shown = ", ".join(
                f"{name} {value:.6g}"
                for name, value in zip(self.coefficient_names, self.coefficients[0])
            )
            own = int(self.own_slope.sum())
            lines.append(
                f"working model: {own} domains with their own, the rest pooled"
                if own
                else f"working model: {shown}"
            )
        values = self.standard_error[np.isfinite(self.standard_error)]
        if values.size:
            lines.append(
                f"standard errors {values.min():.4g} to {values.max():.4g} "
                f"(variance: {self.variance_method})"
            )
        for word, count in zip(*np.unique(self.status.astype(str), return_counts=True)):
            if word != "ok":
                lines.append(f"{word}: {count} domains")
        if self.outside_range.any():
            lines.append(f"outside [0, 1], not clipped: {int(self.outside_range.sum())} domains")
        return "\n".join(lines)


def direct_estimates(
    sample: DomainSample, request: DirectRequest, *, variance: str = "direct", level: float = 0.95
) -> DirectEstimates:
    """Compute one direct estimator on the whole sample, with variances and intervals."""
    choose("variance", variance, DIRECT_VARIANCES)
    check_level(level)
    population, moments = sample.population, sample.whole
    size = population.size

    found = linear_estimates(
        request,
        moments,
        size=size,
        auxiliary_means=population.auxiliary_means,
        names=population.auxiliary,
    )
    estimate, score, n = found.estimate[0], found.score[0], moments.n[0]
    modelled = _variances(sample, request, estimate, score, variance)
    empty = n == 0
    undefined = empty | ((request.method == "hajek") & (n == 1) & (variance == "direct"))
    d = np.where(undefined, np.nan, np.maximum(modelled.variance, 0.0))
    shown = np.where(empty, np.nan, estimate) if request.method in ("ht", "hajek") else estimate
    degrees = np.where(empty, np.nan, np.maximum(moments.n_psu[0] - moments.n_strata[0], 1.0))
    half = t_quantile(level, degrees) * np.sqrt(d)
    names: tuple[str, ...] = ()
    if request.method == "greg":
        names = ("intercept", *(population.auxiliary[j] for j in request.auxiliary))
    return DirectEstimates(
        method=request.method,
        sample=sample,
        n_labelled=n.astype(np.int64),
        size=size,
        estimate=shown,
        variance=d,
        covariance_ht=np.where(undefined, np.nan, modelled.covariance_ht),
        degrees_of_freedom=degrees,
        lower=shown - half,
        upper=shown + half,
        status=domain_statuses(sample),
        score=score,
        formal=np.nan_to_num(estimate),
        coefficients=found.coefficients[0] if names else found.coefficients[0][:, :0],
        coefficient_names=names,
        own_slope=found.own_slope[0],
        variance_method=variance,
        variance_weight=modelled.weight,
        level=level,
        request=request,
    )


def _variances(
    sample: DomainSample,
    request: DirectRequest,
    estimate: np.ndarray,
    score: np.ndarray,
    variance: str,
) -> ModelledVariances:
    """Variances and covariances with HT, direct or by a model for them."""
    moments, size = sample.whole, sample.population.size
    form = moments.form[0]
    score_ht = linear_estimates(
        DirectRequest("ht"),
        moments,
        size=size,
        auxiliary_means=sample.population.auxiliary_means,
    ).score[0]
    if variance == "direct":
        nothing = np.full(len(size), np.nan)
        return ModelledVariances(
            variance=within_domain(form, score, score),
            covariance_ht=within_domain(form, score_ht, score),
            variance_ht=within_domain(form, score_ht, score_ht),
            weight=nothing,
            element=nothing,
            design_effect=float("nan"),
        )
    scale = moments.total[0, :, 0] if request.method == "hajek" else size
    return modelled_variances(
        variance,
        moments,
        0,
        score=score,
        score_ht=score_ht,
        scale=np.where(scale > 0, scale, np.nan),
        mean=estimate,
        size=size,
    )
