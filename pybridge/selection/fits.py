"""A candidate's estimates, and the replicates of the sample that they are made on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

import numpy as np

from pybridge._record import Record
from pybridge.design.variance import DomainMoments, domain_moments
from pybridge.direct.inputs import DomainSample, auxiliary_positions
from pybridge.direct.linear import DirectRequest, LinearEstimates, linear_estimates
from pybridge.selection.candidates import Candidate
from pybridge.tables.population import Population


@dataclass(frozen=True, eq=False, repr=False)
class CandidateFit(Record):
    """One candidate on the whole sample and in every fold.

    Attributes
    ----------
    candidate : Candidate
    estimate, mse, lower, upper : numpy.ndarray
        Shape (m,), on the whole sample; mse is the variance of a direct estimate.
    shrinkage : numpy.ndarray
        Shape (m,), NaN for direct estimates.
    derivative : numpy.ndarray
        Shape (m,), ∂M_i/∂z_i; NaN where it is not known.
    status : numpy.ndarray
        Shape (m,), object.
    rest : numpy.ndarray
        Shape (K, m), without each fold; NaN where the candidate does not exist.
    fit_status : str
        Of the whole sample's fit; "ok" for direct estimates.
    model_variance : float
        Of the whole sample's fit (the domain level's, for a taxonomy); NaN for direct estimates.
    spread : numpy.ndarray or None
        Shape (m,), s²/N_i, how far the mean of the domain's units scatters by itself; None for
        direct estimates.
    message, code : str
        Why there is no fit, where there is none: in words, and one for programs.
    versions : mapping of str to str
        Of R and its package, where they fitted.
    conditions : tuple of str
        What the engine said.
    """

    candidate: Candidate
    estimate: np.ndarray
    mse: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    shrinkage: np.ndarray
    derivative: np.ndarray
    status: np.ndarray
    rest: np.ndarray
    fit_status: str
    model_variance: float = float("nan")
    spread: np.ndarray | None = None
    message: str = ""
    code: str = ""
    conditions: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def too_narrow(self) -> np.ndarray:
        """Domains whose units scatter by more than the plain model's variance, shape (m,), bool.

        There the intervals of a model without the finite population cover less than they say.
        """
        if self.spread is None or self.candidate.finite_population:
            return np.zeros(len(self.estimate), dtype=bool)
        return np.nan_to_num(self.spread, nan=0.0) > self.model_variance


@dataclass(frozen=True, eq=False)
class Replicates:
    """The whole sample, the sample without each fold, and each fold, at domain level.

    Attributes
    ----------
    sample : DomainSample
    rest, fold : DomainMoments
        A replicate a fold of ``without``.
    without : tuple of int
        The folds that are left out, one after the other.
    level : float
    seed : int
        For engines that draw.
    """

    sample: DomainSample
    rest: DomainMoments
    fold: DomainMoments
    without: tuple[int, ...]
    level: float
    seed: int = 1

    @property
    def population(self) -> Population:
        """The population that all replicates estimate."""
        return self.sample.population

    def linear(self, request: DirectRequest, moments: DomainMoments) -> LinearEstimates:
        """One direct estimator in all replicates of one kind."""
        return linear_estimates(
            request,
            moments,
            size=self.population.size,
            auxiliary_means=self.population.auxiliary_means,
            names=self.population.auxiliary,
        )

    def direct(self, request: DirectRequest, moments: DomainMoments) -> np.ndarray:
        """Direct estimates (R, m), NaN in domains without units."""
        return np.where(moments.n > 0, self.linear(request, moments).estimate, np.nan)


def replicates_of(
    sample: DomainSample,
    *,
    level: float = 0.95,
    seed: int = 1,
    without: tuple[int, ...] | None = None,
) -> Replicates:
    """Moments of all replicates, from the cells of a sample that was split into folds.

    Parameters
    ----------
    sample : DomainSample
    level : float
    seed : int
    without : tuple of int, optional
        Only these folds are left out; every one by default.
    """
    rest, fold = domain_moments(sample.cells, "rest"), domain_moments(sample.cells, "fold")
    if without is None:
        return Replicates(sample, rest, fold, tuple(range(rest.n_replicates)), level, seed)
    chosen = list(without)
    return Replicates(sample, _only(rest, chosen), _only(fold, chosen), without, level, seed)


def _only(moments: DomainMoments, rows: list[int]) -> DomainMoments:
    """Some of the replicates."""
    shared = ("shift", "fourth", "tails")
    names = [item.name for item in fields(moments) if item.name not in shared]
    return replace(moments, **{name: getattr(moments, name)[rows] for name in names})


def direct_request(candidate: Candidate, population: Population) -> DirectRequest:
    """The direct estimator of a candidate."""
    positions = auxiliary_positions(population, candidate.unit_auxiliary, field="unit_auxiliary")
    return DirectRequest(candidate.direct, positions, candidate.slope)


def failed_fit(
    candidate: Candidate, replicates: Replicates, message: str, *, code: str = "fit_failed"
) -> CandidateFit:
    """The place of a candidate that gave no estimates, with the reason."""
    m, k = replicates.population.n_domains, replicates.rest.n_replicates
    nothing = np.full(m, np.nan)
    return CandidateFit(
        candidate=candidate,
        estimate=nothing,
        mse=nothing,
        lower=nothing,
        upper=nothing,
        shrinkage=nothing,
        derivative=nothing,
        status=np.full(m, "not_scored", dtype=object),
        rest=np.full((k, m), np.nan),
        fit_status="failed",
        message=message,
        code=code,
    )
