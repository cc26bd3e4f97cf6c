"""What a fit of the Fay-Herriot model gives back to the code that called it: arrays only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np

from pybridge._record import Record

# A fit on so few domains more than coefficients says little about the model variance.
FEW_SPARE_DOMAINS = 5


@dataclass(frozen=True)
class AreaProblem:
    """Arrays of one problem, as every engine takes them.

    Attributes
    ----------
    estimate : numpy.ndarray
        Shape (m,), direct estimates; NaN where a domain has none.
    variance : numpy.ndarray
        Shape (m,), their sampling variances.
    covariates : numpy.ndarray
        Shape (m, p), the whole design matrix.
    """

    estimate: np.ndarray
    variance: np.ndarray
    covariates: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class AreaFit(Record):
    """One fit of the area-level model, for m domains and p coefficients.

    Attributes
    ----------
    engine, method : str
        Who computed it, and which estimator of the model variance.
    level : float
        Confidence level of the intervals.
    model_variance : float
        σ², the variance of the domain effects; NaN where the fit failed.
    coefficients : numpy.ndarray
        Shape (p,).
    coefficient_covariance : numpy.ndarray
        Shape (p, p), (X'V⁻¹X)⁻¹ at the model variance.
    estimate : numpy.ndarray
        Shape (m,), the EBLUP; the synthetic prediction where there is no direct estimate.
    mse : numpy.ndarray
        Shape (m,), the analytic estimate of the mean squared error that belongs to the method.
        It may be negative (``method="FH"``) and is not clipped.
    shrinkage : numpy.ndarray
        Shape (m,), γ, the weight of the direct estimate; 0 where there is none.
    synthetic : numpy.ndarray
        Shape (m,), x'β.
    derivative : numpy.ndarray
        Shape (m,), ∂ estimate / ∂ direct estimate of the same domain at fixed model variance,
        γ + (1 − γ) h with h the leverage; NaN where there is no direct estimate.
    log_likelihood, restricted_log_likelihood : float
        Both at the model variance found, whatever the method. The restricted one holds
        +½ log|X'X|, so that it does not depend on how the covariates are coded.
    iterations : int
        Iterations of the search.
    status : str
        ``converged``, ``boundary``, ``not_converged``, ``weak_identification`` or ``failed``.
    engine_status : str
        The engine's own verdict.
    intervals : numpy.ndarray or None
        Shape (m, 2), the ends of intervals that are not normal ones.
    criteria : mapping of str to float
        The engine's own information criteria, under its own names.
    exact : mapping
        For an engine other than the native one: ``model_variance``, ``log_likelihood`` and
        ``restricted_log_likelihood`` at the exact optimum, ``shortfall`` of the engine in the
        one that was maximised.
    conditions : tuple of str
        What the engine said, and what was done about it.
    versions : mapping of str to str
        Of the engine and what it runs on.
    correlation : float or None
        ρ of domain effects correlated with their neighbours, v = ρWv + u, where they are; then
        σ² is the variance of u, and shrinkage the domain's own weight, the diagonal of G V⁻¹.
    components : mapping of str to float
        All variance parameters by name, where there are more than σ² and ρ.
    engine_fit : Record or None
        The engine's own record of the fit, where it has one, with its ``r_script``, ``to_rds`` and
        ``model_scale``.
    """

    engine: str
    method: str
    level: float
    model_variance: float
    coefficients: np.ndarray
    coefficient_covariance: np.ndarray
    estimate: np.ndarray
    mse: np.ndarray
    shrinkage: np.ndarray
    synthetic: np.ndarray
    derivative: np.ndarray
    log_likelihood: float
    restricted_log_likelihood: float
    iterations: int
    status: str
    engine_status: str = ""
    intervals: np.ndarray | None = None
    criteria: Mapping[str, float] = field(default_factory=dict)
    exact: Mapping[str, Any] = field(default_factory=dict)
    conditions: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    correlation: float | None = None
    components: Mapping[str, float] = field(default_factory=dict)
    engine_fit: Any = None

    @property
    def standard_error(self) -> np.ndarray:
        """Shape (m,), the root of the MSE; NaN where that is negative."""
        return standard_errors(self.mse)

    @property
    def lower(self) -> np.ndarray:
        """Shape (m,), lower ends of the intervals, normal ones unless the method has its own."""
        if self.intervals is not None:
            return self.intervals[:, 0]
        return self.estimate - _quantile(self.level) * self.standard_error

    @property
    def upper(self) -> np.ndarray:
        """Shape (m,), upper ends of the intervals."""
        if self.intervals is not None:
            return self.intervals[:, 1]
        return self.estimate + _quantile(self.level) * self.standard_error

    def summary(self) -> str:
        """One line."""
        return (
            f"AreaFit({self.engine}, {self.method}): {len(self.estimate)} domains, "
            f"model variance {self.model_variance:.6g}, {self.status}"
        )


# What native posteriors and metafor's fits call by the names of AreaFit.
_OF_NUMBERS = (
    *("model_variance", "coefficients", "coefficient_covariance", "estimate", "mse"),
    *("shrinkage", "synthetic", "derivative", "status"),
)


def area_fit_of(numbers: Any, *, engine: str, method: str, level: float, **more: Any) -> AreaFit:
    """The record of numbers that have the same names; no likelihoods, no iterations unless given.

    Parameters
    ----------
    numbers : object
        With the attributes from ``model_variance`` to ``status``.
    engine, method, level
        As in `AreaFit`.
    **more
        Its other fields.
    """
    words: dict[str, Any] = {name: getattr(numbers, name) for name in _OF_NUMBERS}
    words.update(log_likelihood=np.nan, restricted_log_likelihood=np.nan, iterations=0)
    words.update(more)
    return AreaFit(engine=engine, method=method, level=level, **words)


def _quantile(level: float) -> float:
    return NormalDist().inv_cdf(0.5 + level / 2)


def standard_errors(mse: np.ndarray) -> np.ndarray:
    """Roots of MSEs (m,); NaN, and no warning, where an MSE is negative or missing."""
    usable = mse >= 0
    return np.sqrt(mse, out=np.full(mse.shape, np.nan), where=usable)


def fit_status(*, model_variance: float, n_sampled: int, n_coefficients: int) -> str:
    """The status of a fit that found its optimum.

    Few domains outrank a variance of 0, which can be read off the variance itself.
    """
    if n_sampled <= n_coefficients + FEW_SPARE_DOMAINS:
        return "weak_identification"
    return "boundary" if model_variance == 0 else "converged"


def domain_statuses(*, estimate: np.ndarray, variance: np.ndarray, mse: np.ndarray) -> np.ndarray:
    """The status of every domain (m,), object: words of the public table.

    Parameters
    ----------
    estimate, variance : numpy.ndarray
        Shape (m,), the direct estimates (NaN: none) and their variances.
    mse : numpy.ndarray
        Shape (m,), MSEs of the smoothed estimates.
    """
    words = np.full(len(estimate), "ok", dtype=object)
    words[mse < 0] = "negative_mse"
    words[variance == 0] = "census"
    words[np.isnan(estimate)] = "out_of_sample"
    return words
