"""How well an area-level model fits: residuals a domain, and the usual tests and criteria.

References
----------
Brown, Chambers, Heady and Heasman (2001), Evaluation of small area estimation methods: the
goodness-of-fit test. Lahiri and Suntornchost (2015), Sankhya B 77, 312: R² that allows for the
sampling variances. Kreutzmann et al. (2019), Journal of Statistical Software 91(7): R's emdi,
whose definitions these are.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import gammaincc

from pybridge._record import Record
from pybridge.smoothing._model_scale import ModelScale
from pybridge.smoothing.taxonomy_fit import TaxonomyFit

if TYPE_CHECKING:
    from pybridge.smoothing.fay_herriot_fit import FayHerriotFit

# Beyond this many values the approximation of the Shapiro-Wilk test is not made for.
_MOST_FOR_SHAPIRO = 5000


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Normality(Record):
    """Moments of some values and the Shapiro-Wilk test; NaN where there are too few."""

    skewness: float
    kurtosis: float
    shapiro_w: float
    shapiro_p: float

    def summary(self) -> str:
        """One line."""
        return (
            f"skewness {self.skewness:.3g}, kurtosis {self.kurtosis:.3g}, Shapiro-Wilk W = "
            f"{self.shapiro_w:.4g}, p = {self.shapiro_p:.3g}"
        )


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class FitDiagnostics(Record):
    """Diagnostics of a Fay-Herriot or taxonomy fit of m domains.

    Arrays have shape (m,), in the order of the area table; NaN where there is no direct estimate.

    Attributes
    ----------
    domains : numpy.ndarray
        Labels, object.
    residual : numpy.ndarray
        z − x'β; in the taxonomy model also without the coarser levels' effects. Of a transformed
        fit on the transformed scale.
    standardised_residual : numpy.ndarray
        residual/√(σ² + d): near a standard normal where the model holds. Where domain effects are
        correlated, σ² + d is the variance of z in their model.
    realised_residual : numpy.ndarray
        (z − estimate)/√d, emdi's ``std_real_residuals``.
    random_effect : numpy.ndarray
        The predicted domain effect.
    leverage : numpy.ndarray
        x'Cov(β)x/(σ² + d).
    direct, direct_variance, estimate, shrinkage : numpy.ndarray
        As in the fit's table.
    brown_statistic, brown_p_value : float
        Σ (z − estimate)²/(d + mse), chi-square with ``brown_degrees_of_freedom``: a small p says
        that the model's estimates differ from the direct ones by more than both errors allow.
    brown_degrees_of_freedom : int
    correlation : float
        Between the synthetic part and the direct estimates.
    log_likelihood, aic, bic, kic : float
        Ordinary log-likelihood and criteria from it; NaN for a posterior (compare posteriors by
        ``leave_domain_out().log_density``).
    adjusted_r2, marginal_r2 : float
        R² of the least-squares regression of the direct estimates; and of the domain means
        themselves, allowing for the sampling variances (emdi's ``AdjR2`` and ``FH_R2``).
    residual_normality, effect_normality : Normality
        Of the realised residuals and of the random effects, as in emdi's summary.
    """

    domains: np.ndarray
    residual: np.ndarray
    standardised_residual: np.ndarray
    realised_residual: np.ndarray
    random_effect: np.ndarray
    leverage: np.ndarray
    direct: np.ndarray
    direct_variance: np.ndarray
    estimate: np.ndarray
    shrinkage: np.ndarray
    brown_statistic: float
    brown_degrees_of_freedom: int
    brown_p_value: float
    correlation: float
    log_likelihood: float
    aic: float
    bic: float
    kic: float
    adjusted_r2: float
    marginal_r2: float
    residual_normality: Normality
    effect_normality: Normality

    def to_frame(self) -> pd.DataFrame:
        """One row a domain: residual, its standardised forms, random effect, leverage."""
        names = (
            *("residual", "standardised_residual", "realised_residual", "random_effect"),
            *("leverage", "direct", "direct_variance", "estimate", "shrinkage"),
        )
        table = {"domain": np.array(self.domains)}
        return pd.DataFrame({**table, **{name: np.array(getattr(self, name)) for name in names}})

    def summary(self) -> str:
        """The numbers as text."""
        size = self.standardised_residual[np.isfinite(self.standardised_residual)]
        mean_square = math.sqrt(float(np.mean(size**2))) if size.size else math.nan
        lines = [
            f"standardised residuals: root mean square {mean_square:.3g}, largest "
            f"{np.abs(size).max() if size.size else math.nan:.3g}",
            f"realised residuals: {self.residual_normality.summary()}",
            f"random effects: {self.effect_normality.summary()}",
            f"Brown's goodness-of-fit test: W = {self.brown_statistic:.6g}, df = "
            f"{self.brown_degrees_of_freedom}, p = {self.brown_p_value:.4g}",
            f"correlation of synthetic part and direct estimates {self.correlation:.4g}",
            f"adjusted R² of the direct estimates {self.adjusted_r2:.4g}, of the domain means "
            f"{self.marginal_r2:.4g}",
        ]
        if math.isfinite(self.aic):
            lines.append(
                f"log-likelihood {self.log_likelihood:.6g}, AIC {self.aic:.6g}, BIC "
                f"{self.bic:.6g}, KIC {self.kic:.6g}"
            )
        return "\n".join(lines)


def fit_diagnostics(fit: FayHerriotFit | TaxonomyFit) -> FitDiagnostics:
    """Compute the diagnostics of a fit."""
    area = fit.area
    seen = area.sampled
    numbers: Any = fit.numbers if isinstance(fit, TaxonomyFit) else fit.fit
    residual, effect, total, noise = (
        _taxonomy_parts(fit) if isinstance(fit, TaxonomyFit) else (_area_parts(fit))
    )
    scale = _root(total)
    realised = (residual - effect) / _root(noise)
    leverage = np.einsum(
        "ij,jk,ik->i", area.covariates, numbers.coefficient_covariance, area.covariates
    )
    w, degrees, p_value = brown_test(
        direct=area.estimate[seen],
        variance=area.variance[seen],
        estimate=numbers.estimate[seen],
        mse=numbers.mse[seen],
    )
    adjusted, marginal = _explained(fit)
    likelihood, aic, bic, kic = _criteria(fit)
    return FitDiagnostics(
        domains=area.domains,
        residual=residual,
        standardised_residual=residual / scale,
        realised_residual=realised,
        random_effect=effect,
        leverage=np.where(seen, leverage / scale**2, np.nan),
        direct=area.estimate,
        direct_variance=area.variance,
        estimate=numbers.estimate,
        shrinkage=numbers.shrinkage,
        brown_statistic=w,
        brown_degrees_of_freedom=degrees,
        brown_p_value=p_value,
        correlation=_correlation(numbers.synthetic[seen], area.estimate[seen]),
        log_likelihood=likelihood,
        aic=aic,
        bic=bic,
        kic=kic,
        adjusted_r2=adjusted,
        marginal_r2=marginal,
        residual_normality=normality(realised),
        effect_normality=normality(effect[seen]),
    )


def brown_test(
    *, direct: np.ndarray, variance: np.ndarray, estimate: np.ndarray, mse: np.ndarray
) -> tuple[float, int, float]:
    """Brown's statistic, its degrees of freedom (n) and p value, from arrays (n,).

    A domain with variance and MSE 0 (a census) adds 0 to the statistic.
    """
    total = variance + mse
    parts = np.divide((direct - estimate) ** 2, total, out=np.zeros_like(total), where=total != 0)
    w = float(parts.sum())
    return w, direct.size, float(gammaincc(0.5 * direct.size, 0.5 * w)) if w >= 0 else math.nan


def explained_shares(
    *, direct: np.ndarray, variance: np.ndarray, covariates: np.ndarray
) -> tuple[float, float]:
    """Adjusted R² of direct estimates (n,) on covariates (n, p), and that of the domain means.

    The second replaces the mean squares by estimates of what they would be without sampling
    errors, 2 M/(1 + exp(2 D/M)), D the sampling variances' share in M (Lahiri and Suntornchost).
    """
    n, p = covariates.shape
    if n <= p or n < 2:
        return math.nan, math.nan
    size = np.abs(covariates).max(axis=0)
    q = np.linalg.qr(covariates / np.where(size > 0, size, 1.0))[0]
    centred = direct - direct.mean()
    left = centred - q @ (q.T @ centred)
    within = float(left @ left) / (n - p)
    total = float(centred @ centred) / (n - 1)
    leverage = np.einsum("ij,ij->i", q, q)
    noise_within = float(variance @ (1.0 - leverage)) / (n - p)
    if not (within > 0.0 and total > 0.0):
        return math.nan, math.nan
    without = _without_noise(within, noise_within) / _without_noise(total, float(variance.mean()))
    return 1.0 - within / total, 1.0 - without


def _without_noise(mean_square: float, noise: float) -> float:
    """2 M/(1 + exp(2 D/M)), which is near M − D and never negative."""
    return 2.0 * mean_square / (1.0 + math.exp(min(2.0 * noise / mean_square, 700.0)))


def normality(values: np.ndarray) -> Normality:
    """Skewness, kurtosis (3 for a normal) and the Shapiro-Wilk test of the finite values."""
    x = values[np.isfinite(values)]
    away = x - x.mean() if x.size else x
    second = float(np.mean(away**2)) if x.size else 0.0
    if x.size < 3 or not second > 1e-24 * float(np.abs(x).max()) ** 2:
        return Normality(math.nan, math.nan, math.nan, math.nan)
    w = p = math.nan
    if x.size < _MOST_FOR_SHAPIRO:
        from scipy.stats import shapiro

        w, p = map(float, shapiro(away / math.sqrt(second)))
    return Normality(
        skewness=float(np.mean(away**3)) / second**1.5,
        kurtosis=float(np.mean(away**4)) / second**2,
        shapiro_w=w,
        shapiro_p=p,
    )


def _area_parts(fit: FayHerriotFit) -> tuple[np.ndarray, ...]:
    """Residual, effect, variance of z and of its sampling error (m,), on the model's scale."""
    numbers, area = fit.fit, fit.area
    residual = area.estimate - numbers.synthetic
    effect = numbers.shrinkage * residual
    total, noise = numbers.model_variance + area.variance, area.variance
    if numbers.engine_fit is not None:
        residual, effect, total = numbers.engine_fit.model_scale()
        if numbers.correlation is None:
            noise = total - numbers.model_variance
    elif numbers.correlation is not None:
        effect = numbers.estimate - numbers.synthetic
        total = area.variance + numbers.model_variance * _spread(fit, numbers.correlation)
    return residual, effect, total, noise


def _spread(fit: FayHerriotFit, rho: float) -> np.ndarray:
    """Var(v)/σ² (m,) of correlated domain effects, the diagonal of [(I − ρW)'(I − ρW)]⁻¹.

    NaN where that is singular, at a ρ of 1.
    """
    root = np.eye(len(fit.area.domains)) - rho * np.asarray(fit.spec.proximity)
    if not np.linalg.cond(root) < 1e12:
        return np.full(len(root), np.nan)
    return np.asarray(np.linalg.inv(root.T @ root).diagonal())


def _taxonomy_parts(fit: TaxonomyFit) -> tuple[np.ndarray, ...]:
    """The same of a taxonomy fit, about the coarser levels' effects."""
    found = fit.numbers.effects[-1]
    own = np.zeros(len(fit.area.domains))
    own[np.asarray(found.codes, dtype=np.intp)] = found.mean
    effect = np.where(fit.area.sampled, own[fit.levels.codes[-1]], np.nan)
    residual = fit.area.estimate - fit.numbers.synthetic
    return residual, effect, fit.numbers.model_variance + fit.area.variance, fit.area.variance


def _criteria(fit: FayHerriotFit | TaxonomyFit) -> tuple[float, float, float, float]:
    """Log-likelihood, AIC, BIC and KIC; the variances count as parameters."""
    if not isinstance(fit, TaxonomyFit):
        return fit.log_likelihood, fit.aic, fit.bic, fit.kic
    count = len(fit.area.covariate_names) + len(fit.levels.names)
    deviance = -2.0 * fit.log_likelihood
    sizes = (2.0, math.log(fit.n_sampled), 3.0)
    aic, bic, kic = (deviance + size * count for size in sizes)
    return fit.log_likelihood, aic, bic, kic


def _explained(fit: FayHerriotFit | TaxonomyFit) -> tuple[float, float]:
    area, seen = fit.area, fit.area.sampled
    direct, variance = area.estimate, area.variance
    if fit.spec.options.get("transformation", "no") not in ("no", None):
        # On the transformed scale, which an R engine does not give back.
        scale = fit.fit.engine_fit  # type: ignore[union-attr]
        if not isinstance(scale, ModelScale):
            known = fit.fit.criteria  # type: ignore[union-attr]
            return float(known.get("AdjR2", math.nan)), float(known.get("FH_R2", math.nan))
        direct, variance = scale.direct, scale.variance
    return explained_shares(
        direct=direct[seen], variance=variance[seen], covariates=area.covariates[seen]
    )


def _root(values: np.ndarray) -> np.ndarray:
    """Square roots (m,), NaN where there is none above 0."""
    with np.errstate(invalid="ignore"):
        return np.sqrt(values, out=np.full(values.shape, np.nan), where=values > 0)


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Pearson's; NaN where one of them is constant."""
    a, b = a - a.mean(), b - b.mean()
    size = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / size if size > 0 and np.isfinite(size) else math.nan
