"""The robust Fay-Herriot model: predictions, linearised and bootstrap MSE, natively."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pybridge._options import check_level, choose
from pybridge.direct.statuses import t_quantile
from pybridge.smoothing._area_bootstrap import Setting
from pybridge.smoothing._area_fit import (
    AreaFit,
    domain_statuses,
    fit_status,
    standard_errors,
)
from pybridge.smoothing._area_model import ROBUST_METHODS, Scaled, prepare
from pybridge.smoothing._model_scale import ModelScale
from pybridge.smoothing._robust import RobustState, domain_effects, solve_robust
from pybridge.smoothing._robust_mse import analytic, degrees_of_freedom, linearised

# Replicates need no more digits than their own spread leaves.
_REPLICATE_STEP = 0.7
_REPLICATE_TIGHT = 1e-6
_BLOCK = 1 << 17


@dataclass(frozen=True)
class Tuning:
    """Huber's constant ``k``, and how far ``reblupbc`` may be from z, in standard errors."""

    k: float = 1.345
    mult_constant: float = 1.0


def fit_robust_area_model(
    *,
    estimate: np.ndarray,
    variance: np.ndarray,
    covariates: np.ndarray,
    method: str = "reblup",
    tuning: Tuning = Tuning(),
    level: float = 0.95,
    kind: str = "analytical",
    n_replicates: int = 0,
    seed: int = 0,
) -> AreaFit:
    """Fit the area-level model so that outlying domains and estimates count less.

    Parameters
    ----------
    estimate, variance, covariates, level
        As in `fit_area_model`.
    method : {"reblup", "reblupbc"}
        ``"reblupbc"`` keeps the prediction within ``mult_constant`` standard errors of the direct
        estimate.
    tuning : Tuning
    kind : {"analytical", "pseudo"}
        Of the MSE in closed form: over the model, or with the robust weights taken as fixed.
    n_replicates : int
        Of the parametric bootstrap for the MSE instead; 0 for the closed form.
    seed : int

    Returns
    -------
    AreaFit
        ``shrinkage`` is u/r, the weight that the domain's own residual got;
        ``coefficient_covariance`` is that of the weighted estimator, A V A'. Intervals are
        Student's, with the degrees of freedom of the robust variance (`degrees_of_freedom`).

    Raises
    ------
    InputError
        What `fit_area_model` refuses.
    """
    choose("method", method, ROBUST_METHODS)
    check_level(level)
    z, d, x = (np.asarray(a, dtype=np.float64) for a in (estimate, variance, covariates))
    scaled = prepare(estimate=z, variance=d, covariates=x)
    problem = scaled.problem
    state = solve_robust(problem, problem.residual[None], k=tuning.k)
    found = _in_units(scaled, state, x, tuning, kind)
    inside = scaled.sampled
    predicted = found.estimate.copy()
    if method == "reblupbc":
        reach = tuning.mult_constant * np.sqrt(d[inside])
        predicted[inside] = np.clip(predicted[inside], z[inside] - reach, z[inside] + reach)
    predicted[inside] = np.where(d[inside] == 0, z[inside], predicted[inside])
    mse = found.mse.copy()
    far = np.zeros(len(z), dtype=bool)
    far[inside] = (predicted[inside] != found.estimate[inside]) & (d[inside] > 0)
    mse[far] = d[far] * (1.0 + tuning.mult_constant**2)
    if n_replicates:
        setting = Setting.of(
            scaled, covariates=x, model_variance=found.model_variance, method=method
        )
        mse = robust_bootstrap_mse(setting, tuning=tuning, n_replicates=n_replicates, seed=seed)
    return _record(found, z, d, predicted, mse, method, level, scaled, tuning)


@dataclass(frozen=True)
class _Found:
    """The fit in the user's units."""

    model_variance: float
    coefficients: np.ndarray
    covariance: np.ndarray
    synthetic: np.ndarray
    estimate: np.ndarray
    effect: np.ndarray
    weight: np.ndarray
    derivative: np.ndarray
    mse: np.ndarray


def _in_units(
    scaled: Scaled, state: RobustState, x: np.ndarray, tuning: Tuning, kind: str
) -> _Found:
    problem, unit, inside = scaled.problem, scaled.unit, scaled.sampled
    a, r, d = state.model_variance, state.residual[0], problem.variance
    u = domain_effects(r, variance=d, model_variance=a, k=tuning.k)
    gamma = np.where(d == 0, 1.0, a[0] / np.where(d == 0, 1.0, a[0] + d))
    own = np.divide(u, r, out=gamma.copy(), where=r != 0)
    design = x @ scaled.to_basis
    design[inside] = problem.basis
    total = np.where(a[0] + d > 0, a[0] + d, np.inf)
    scores = np.abs(r) / np.sqrt(total)
    omega = np.minimum(1.0, tuning.k / np.maximum(scores, 1e-300)) / total
    pseudo, covariance, leverage = linearised(problem, design, inside, a[0], own, omega)
    mse = pseudo
    if kind == "analytical":
        mse = analytic(problem, design, inside, float(a[0]), tuning.k, covariance)
    coefficients = unit * (scaled.to_basis @ (scaled.start + state.shift[0]))
    synthetic = x @ coefficients
    effect = np.full(len(x), np.nan)
    effect[inside] = unit * u
    weight = np.zeros(len(x))
    weight[inside] = own
    # The slope of u in r: γ, or 0 or 1 where one of the two is cut.
    bent = np.where(np.isclose(u, gamma * r), gamma, np.where(a[0] <= d, 0.0, 1.0))
    derivative = np.full(len(x), np.nan)
    derivative[inside] = bent + (1.0 - bent) * leverage
    return _Found(
        model_variance=float(a[0]) * unit**2,
        coefficients=coefficients,
        covariance=unit**2 * (scaled.to_basis @ covariance @ scaled.to_basis.T),
        synthetic=synthetic,
        estimate=synthetic + np.where(inside, effect, 0.0),
        effect=effect,
        weight=weight,
        derivative=derivative,
        mse=unit**2 * mse,
    )


def robust_bootstrap_mse(
    setting: Setting, *, tuning: Tuning, n_replicates: int, seed: int
) -> np.ndarray:
    """Parametric bootstrap MSE (M,), in the user's units: normal effects and errors.

    Parameters
    ----------
    setting : Setting
        With ``method`` ``"reblup"`` or ``"reblupbc"``.
    """
    problem, inside = setting.scaled.problem, setting.scaled.sampled
    effects, errors = (np.random.default_rng([seed, stream]) for stream in (0, 1))
    rows = max(1, _BLOCK // len(inside))
    d = problem.variance
    squares = np.zeros(len(inside))
    for start in range(0, n_replicates, rows):
        k = min(rows, n_replicates - start)
        truth = np.sqrt(setting.model_variance) * effects.standard_normal((k, len(inside)))
        noise = errors.standard_normal((k, len(d)))
        z = truth[:, inside] + np.sqrt(d) * noise
        state = solve_robust(problem, z, k=tuning.k, step=_REPLICATE_STEP, tight=_REPLICATE_TIGHT)
        guess = state.shift @ setting.design.T
        own = domain_effects(
            state.residual, variance=d, model_variance=state.model_variance[:, None], k=tuning.k
        )
        guess[:, inside] += own
        if setting.method == "reblupbc":
            reach = tuning.mult_constant * np.sqrt(d)
            guess[:, inside] = np.clip(guess[:, inside], z - reach, z + reach)
        squares += ((guess - truth) ** 2).sum(axis=0)
    mse = squares / n_replicates * setting.scaled.unit**2
    mse[np.flatnonzero(inside)[d == 0]] = 0.0
    return np.asarray(mse)


def _record(
    found: _Found,
    z: np.ndarray,
    d: np.ndarray,
    estimate: np.ndarray,
    mse: np.ndarray,
    method: str,
    level: float,
    scaled: Scaled,
    tuning: Tuning,
) -> AreaFit:
    inside = scaled.sampled
    known = inside & (d == 0)
    mse = np.where(known, 0.0, mse)
    m, p = scaled.problem.basis.shape
    df = np.array([degrees_of_freedom(m, p, tuning.k)])
    half = t_quantile(level, df) * standard_errors(mse)
    scale = ModelScale(
        what=f"method {method}",
        direct=z,
        variance=np.where(inside, d, np.nan),
        linear=found.estimate,
        mse=mse,
        synthetic=found.synthetic,
        effect=found.effect,
        total=np.where(inside, found.model_variance + d, np.nan),
        domain_status=domain_statuses(estimate=z, variance=d, mse=mse),
    )
    return AreaFit(
        engine="native",
        method=method,
        level=level,
        model_variance=found.model_variance,
        coefficients=found.coefficients,
        coefficient_covariance=found.covariance,
        estimate=estimate,
        mse=mse,
        shrinkage=found.weight,
        synthetic=found.synthetic,
        derivative=found.derivative,
        log_likelihood=np.nan,
        restricted_log_likelihood=np.nan,
        iterations=0,
        status=fit_status(model_variance=found.model_variance, n_sampled=m, n_coefficients=p),
        engine_status="converged",
        intervals=np.column_stack([estimate - half, estimate + half]),
        engine_fit=scale,
    )
