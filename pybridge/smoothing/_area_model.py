"""The native engine of the Fay-Herriot model: exact optimum, EBLUP, MSE, in O(m p²)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pybridge._checks import collinear_columns, listed
from pybridge._options import check_level, choose
from pybridge.errors import InputError
from pybridge.smoothing._adjusted import ADJUSTED_METHODS, check_adjusted_counts
from pybridge.smoothing._area_fit import AreaFit, fit_status
from pybridge.smoothing._area_mse import eblup_mse, variance_and_bias
from pybridge.smoothing._area_profile import Problem, State, log_likelihoods, solve_gls
from pybridge.smoothing._model_variance import Optimum, find_model_variance, prasad_rao_variance
from pybridge.tables.area import check_counts, check_variances

NATIVE_METHODS = ("REML", "ML", "FH", "PR")
ROBUST_METHODS = ("reblup", "reblupbc")

# Squares and products of rescaled numbers must stay finite.
_LARGEST = 1e140


@dataclass(frozen=True)
class Scaled:
    """A problem in its own units, with the way back.

    Attributes
    ----------
    problem : Problem
        The sampled domains, divided by ``unit`` (estimates) and ``unit``² (variances).
    unit : float
        A power of 2, so that rescaling rounds nothing.
    to_basis : numpy.ndarray
        Shape (p, p): X = B · inverse(to_basis), B the basis of the problem.
    start : numpy.ndarray
        Shape (p,), the coefficients b₀ of the residual, in the basis.
    sampled : numpy.ndarray
        Shape (m,), bool: domains with a direct estimate.
    """

    problem: Problem
    unit: float
    to_basis: np.ndarray
    start: np.ndarray
    sampled: np.ndarray


def fit_area_model(
    *,
    estimate: np.ndarray,
    variance: np.ndarray,
    covariates: np.ndarray,
    method: str = "REML",
    level: float = 0.95,
) -> AreaFit:
    """Fit z_i ~ N(θ_i, d_i), θ_i = x_i'β + v_i, v_i ~ N(0, σ²), and predict every θ_i.

    Parameters
    ----------
    estimate : numpy.ndarray
        Shape (m,), direct estimates z; NaN where a domain has none.
    variance : numpy.ndarray
        Shape (m,), their sampling variances d ≥ 0, taken as known; 0 for a domain that was
        observed in full; ignored where the estimate is NaN.
    covariates : numpy.ndarray
        Shape (m, p), the whole design matrix, with its column of ones where one is wanted.
    method : {"REML", "ML", "FH", "PR", "AMRL", "AMPL", "AMRL_YL", "AMPL_YL", "reblup", "reblupbc"}
        Estimator of σ²: restricted or ordinary maximum likelihood, the moment equation of Fay
        and Herriot (1979), the moments of Prasad and Rao (1990), or a likelihood adjusted so that
        σ² is not 0, by Li and Lahiri (2010) or Yoshimori and Lahiri (2014); ``"reblup"`` and
        ``"reblupbc"`` as in `fit_robust_area_model`, with its defaults.
    level : float
        Confidence level of the normal intervals.

    Returns
    -------
    AreaFit
        The likelihood's global optimum over σ² ≥ 0; σ² = 0 has the status ``boundary``.

    Raises
    ------
    InputError
        No more sampled domains than coefficients, collinear covariates, variances that are
        negative, missing beside an estimate, infinite or all 0, numbers that are not finite or
        whose squares are not.
    """
    choose("method", method, NATIVE_METHODS + ADJUSTED_METHODS + ROBUST_METHODS)
    check_level(level)
    if method in ROBUST_METHODS:
        from pybridge.smoothing._robust_fit import fit_robust_area_model

        return fit_robust_area_model(
            estimate=estimate,
            variance=variance,
            covariates=covariates,
            method=method,
            level=level,
        )
    scaled = prepare(estimate=estimate, variance=variance, covariates=covariates)
    m, p = scaled.problem.basis.shape
    check_adjusted_counts(n_sampled=m, n_coefficients=p, method=method)
    optimum = optimum_of(scaled.problem, method)
    return predict(
        scaled,
        estimate=np.asarray(estimate, dtype=np.float64),
        covariates=np.asarray(covariates, dtype=np.float64),
        optimum=optimum,
        method=method,
        level=level,
    )


def optimum_of(problem: Problem, method: str) -> Optimum:
    """The model variance by any of the methods."""
    if method == "PR":
        moment = prasad_rao_variance(
            estimate=problem.residual, variance=problem.variance, basis=problem.basis
        )
        return Optimum(moment, 1, 1)
    return find_model_variance(problem, method)


def area_model_at(
    model_variance: float,
    *,
    estimate: np.ndarray,
    variance: np.ndarray,
    covariates: np.ndarray,
    method: str,
    level: float = 0.95,
) -> AreaFit:
    """As `fit_area_model`, at a model variance that another engine found."""
    scaled = prepare(estimate=estimate, variance=variance, covariates=covariates)
    return predict(
        scaled,
        estimate=np.asarray(estimate, dtype=np.float64),
        covariates=np.asarray(covariates, dtype=np.float64),
        optimum=Optimum(model_variance / scaled.unit**2, 0, 1),
        method=method,
        level=level,
    )


def prepare(*, estimate: np.ndarray, variance: np.ndarray, covariates: np.ndarray) -> Scaled:
    """Check the arrays, keep the sampled domains, rescale, and choose the basis."""
    z, d, x = (np.asarray(a, dtype=np.float64) for a in (estimate, variance, covariates))
    if z.ndim != 1 or d.shape != z.shape or x.ndim != 2 or len(x) != len(z):
        raise InputError(
            "estimate, variance and covariates do not fit together",
            code="bad_shape",
            field="covariates",
            expected="shapes (m,), (m,) and (m, p)",
            got=f"{z.shape}, {d.shape} and {x.shape}",
        )
    _check_finite("covariates", x)
    sampled = ~np.isnan(z)
    if not sampled.all():
        z, d, x = z[sampled], d[sampled], x[sampled]
    check_counts(n_sampled=len(z), n_coefficients=x.shape[1])
    _check_finite("estimate", z)
    check_variances(d)
    collinear_columns(x, field="covariates")
    unit = 2.0 ** round(0.5 * math.log2(float(np.median(d[d > 0]))))
    if float(np.abs(z).max()) / unit > _LARGEST or float(d.max()) / unit**2 > _LARGEST**2:
        raise InputError(
            "estimates and variances are too many orders of magnitude apart",
            code="too_large",
            field="variance",
            expected=f"estimates below {_LARGEST:g} standard errors",
            got=f"median variance {float(np.median(d[d > 0])):.3g}",
        )
    problem, to_basis, start = _in_basis(z / unit, d / unit**2, x)
    return Scaled(problem, unit, to_basis, start, sampled)


def _in_basis(
    z: np.ndarray, d: np.ndarray, x: np.ndarray
) -> tuple[Problem, np.ndarray, np.ndarray]:
    root = 1.0 / np.sqrt(d + 1.0)
    scale = np.abs(x).max(axis=0)
    rows, upper = np.linalg.qr(x / scale * root[:, None])
    start = rows.T @ (root * z)
    basis = rows / root[:, None]
    residual = z - basis @ start
    again = rows.T @ (root * residual)
    residual = residual - basis @ again
    half_log_gram = 0.5 * float(np.linalg.slogdet(basis.T @ basis)[1])
    to_basis = np.linalg.inv(upper) / scale[:, None]
    rounding = 64 * float(np.finfo(np.float64).eps * np.abs(z).max())
    return Problem(d, residual, basis, half_log_gram, rounding), to_basis, start + again


def predict(
    scaled: Scaled,
    *,
    estimate: np.ndarray,
    covariates: np.ndarray,
    optimum: Optimum,
    method: str,
    level: float,
) -> AreaFit:
    """Coefficients, EBLUP and MSE at a given model variance, for all m domains."""
    problem, unit, sampled = scaled.problem, scaled.unit, scaled.sampled
    a = optimum.model_variance
    state = solve_gls(problem, a)
    ordinary, restricted = log_likelihoods(problem, state, a)
    m, p = problem.basis.shape
    var_a, bias = variance_and_bias(
        weight=state.weight, half=state.half, model_variance=a, method=method
    )
    to_x = scaled.to_basis @ state.transform
    d = np.full(len(estimate), np.inf)
    d[sampled] = problem.variance
    spread = _spread(state, to_x, covariates, sampled)
    mse = eblup_mse(
        variance=d, spread=spread, model_variance=a, variance_of_variance=var_a, bias=bias
    )
    shrinkage = np.where(d == 0, 1.0, a / np.where(d == 0, 1.0, a + d))
    coefficients = unit * (scaled.to_basis @ (scaled.start + state.shift))
    synthetic = covariates @ coefficients
    synthetic[sampled] = estimate[sampled] - unit * state.residual
    eblup = synthetic.copy()
    eblup[sampled] = estimate[sampled] - unit * (1.0 - shrinkage[sampled]) * state.residual
    derivative = np.full(len(estimate), np.nan)
    gamma = shrinkage[sampled]
    derivative[sampled] = gamma + (1.0 - gamma) * state.weight * spread[sampled]
    return AreaFit(
        engine="native",
        method=method,
        level=level,
        model_variance=a * unit**2,
        coefficients=coefficients,
        coefficient_covariance=unit**2 * (to_x @ to_x.T),
        estimate=eblup,
        mse=mse * unit**2,
        shrinkage=shrinkage,
        synthetic=synthetic,
        derivative=derivative,
        log_likelihood=ordinary - m * math.log(unit),
        restricted_log_likelihood=restricted - (m - p) * math.log(unit),
        iterations=optimum.iterations,
        status=fit_status(model_variance=a, n_sampled=m, n_coefficients=p),
        engine_status="converged",
    )


def _spread(
    state: State, to_x: np.ndarray, covariates: np.ndarray, sampled: np.ndarray
) -> np.ndarray:
    """x'(X'WX)⁻¹x (m,), for sampled domains from the fit itself."""
    spread = np.empty(len(sampled))
    spread[sampled] = np.einsum("ij,ij->i", state.half, state.half)
    if not sampled.all():
        outside = covariates[~sampled] @ to_x
        spread[~sampled] = np.einsum("ij,ij->i", outside, outside)
    return spread


def _check_finite(field: str, values: np.ndarray) -> None:
    if not np.isfinite(values).all():
        rows = np.unique(np.argwhere(~np.isfinite(values))[:, 0])
        raise InputError(
            f"{field} must be finite in every domain",
            code="not_finite",
            field=field,
            expected="finite numbers",
            got=f"rows {listed(rows)} (counted from 0)",
        )
