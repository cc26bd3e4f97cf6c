"""The native Fay-Herriot model of transformed estimates: logarithms, arcsines of square roots."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from pybridge.engines._emdi_numbers import check_range, check_sizes
from pybridge.smoothing._area_bootstrap import Block, Setting, bootstrap_errors, leverages
from pybridge.smoothing._area_fit import AreaFit, standard_errors
from pybridge.smoothing._area_model import fit_area_model, prepare
from pybridge.smoothing._area_mse import variance_and_bias
from pybridge.smoothing._back_transformation import (
    arcsin_mse,
    from_model_scale,
    log_mse,
    predicted,
    to_model_scale,
)
from pybridge.smoothing._model_scale import ModelScale, statuses


@dataclass(frozen=True)
class Transformed:
    """What is asked for: a transformation, the way back, and how the MSE is found.

    Attributes
    ----------
    transformation : {"log", "arcsin"}
    backtransformation : {"bc", "bc_sm", "naive"}
    n_effective : numpy.ndarray or None
        Shape (m,), effective sample sizes, for arcsin.
    n_replicates : int
        Of the bootstrap; 0 for the closed form.
    seed : int
    """

    transformation: str
    backtransformation: str
    n_effective: np.ndarray | None = None
    n_replicates: int = 0
    seed: int = 0


def fit_transformed(
    *,
    estimate: np.ndarray,
    variance: np.ndarray,
    covariates: np.ndarray,
    asked: Transformed,
    method: str = "REML",
    level: float = 0.95,
) -> AreaFit:
    """Fit the transformed estimates and bring predictions, MSE and intervals back.

    Parameters
    ----------
    estimate, variance : numpy.ndarray
        Shape (m,), on the scale of the data; NaN where a domain has no estimate.
    covariates : numpy.ndarray
        Shape (m, p).
    asked : Transformed
    method, level
        As in `fit_area_model`.

    Returns
    -------
    AreaFit
        Estimate, mse, synthetic and intervals on the scale of the data; model variance,
        coefficients and likelihoods on the model's, which ``engine_fit`` has in full. The
        intervals are normal ones on the model's scale, transformed back.

    Raises
    ------
    InputError
        ``outside_range`` and ``bad_size``, and what `fit_area_model` refuses.
    """
    sampled = ~np.isnan(estimate)
    z, d = np.full(estimate.shape, np.nan), np.full(estimate.shape, np.nan)
    sizes = None if asked.n_effective is None else asked.n_effective[sampled]
    z[sampled], d[sampled] = to_model_scale(
        estimate=estimate[sampled],
        variance=variance[sampled],
        transformation=asked.transformation,
        n_effective=sizes,
    )
    inner = fit_area_model(
        estimate=z, variance=d, covariates=covariates, method=method, level=level
    )
    spread = np.einsum("ij,jk,ik->i", covariates, inner.coefficient_covariance, covariates)
    # Logarithms that vary by hundreds have means beyond the largest double: NaN then.
    with np.errstate(over="ignore", invalid="ignore"):
        found = _predicted(inner, spread, asked)
        if asked.n_replicates:
            setting = Setting.of(
                prepare(estimate=z, variance=d, covariates=covariates),
                covariates=covariates,
                model_variance=inner.model_variance,
                method=method,
            )
            mse = _bootstrap(setting, inner, asked)
        else:
            mse = _closed_form(inner, found, d, spread, asked)
        found, mse = (np.where(np.isfinite(part), part, np.nan) for part in (found, mse))
        known = d == 0
        found[known] = estimate[known]
        return _assembled(inner, found, mse, z, d, asked)


def _predicted(inner: AreaFit, spread: np.ndarray, asked: Transformed) -> np.ndarray:
    return predicted(
        inner.estimate,
        share=1.0 - inner.shrinkage,
        spread=spread,
        model_variance=inner.model_variance,
        transformation=asked.transformation,
        backtransformation=asked.backtransformation,
    )


def _closed_form(
    inner: AreaFit, found: np.ndarray, d: np.ndarray, spread: np.ndarray, asked: Transformed
) -> np.ndarray:
    if asked.transformation == "arcsin":
        return arcsin_mse(inner.estimate, found, mse=inner.mse)
    inside = ~np.isnan(d)
    total = inner.model_variance + d[inside]
    weight = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
    spare, bias = variance_and_bias(
        weight=weight,
        half=np.sqrt(spread[inside])[:, None],
        model_variance=inner.model_variance,
        method=inner.method,
    )
    return log_mse(
        inner.estimate,
        variance=np.where(inside, d, np.inf),
        spread=spread,
        model_variance=inner.model_variance,
        variance_of_variance=spare,
        bias=bias,
        backtransformation=asked.backtransformation,
    )


def _bootstrap(setting: Setting, inner: AreaFit, asked: Transformed) -> np.ndarray:
    unit = setting.scaled.unit

    def errors(block: Block) -> np.ndarray:
        guess = predicted(
            inner.synthetic + unit * block.estimate,
            share=block.share,
            spread=unit**2 * leverages(setting.design, block.solved.gram),
            model_variance=unit**2 * block.model_variance[:, None],
            transformation=asked.transformation,
            backtransformation=asked.backtransformation,
        )
        truth = from_model_scale(inner.synthetic + unit * block.truth, asked.transformation)
        return np.asarray(guess - truth)

    return bootstrap_errors(setting, errors, n_replicates=asked.n_replicates, seed=asked.seed)


def _assembled(
    inner: AreaFit,
    found: np.ndarray,
    mse: np.ndarray,
    z: np.ndarray,
    d: np.ndarray,
    asked: Transformed,
) -> AreaFit:
    reach = NormalDist().inv_cdf(0.5 + inner.level / 2) * standard_errors(inner.mse)
    ends = [
        from_model_scale(end, asked.transformation)
        for end in (inner.estimate - reach, inner.estimate + reach)
    ]
    known = d == 0
    mse = np.where(known, 0.0, mse)
    scale = ModelScale(
        what=f"transformation {asked.transformation}",
        direct=z,
        variance=d,
        linear=inner.estimate,
        mse=inner.mse,
        synthetic=inner.synthetic,
        effect=inner.estimate - inner.synthetic + np.where(np.isnan(z), np.nan, 0.0),
        total=inner.model_variance + d,
        domain_status=statuses(direct=z, known=known, mse=inner.mse),
    )
    return replace(
        inner,
        estimate=found,
        mse=mse,
        synthetic=from_model_scale(inner.synthetic, asked.transformation),
        derivative=np.full(len(z), np.nan),
        intervals=np.column_stack([np.where(known, found, end) for end in ends]),
        engine_fit=scale,
    )


def check_transformed(
    *,
    estimate: np.ndarray,
    domains: np.ndarray,
    transformation: str,
    n_effective: np.ndarray | None,
) -> None:
    """Estimates (m,) that can be transformed, and effective sizes beside them, or InputError."""
    sampled = ~np.isnan(estimate)
    check_range(estimate[sampled], domains[sampled], transformation)
    if transformation == "arcsin":
        check_sizes(n_effective, sampled, domains)
