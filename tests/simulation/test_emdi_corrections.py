"""Two corrections of emdi's mean squared errors, against errors that are simulated."""

from __future__ import annotations

import numpy as np

from pybridge.engines._emdi_exact import mean_squared_errors
from pybridge.smoothing._area_model import fit_area_model

M, OUTSIDE = 16, 4
REPLICATES = 3000


def simulate(base, seed):
    """True values (R, m) on the model's scale and fits by ML, the last domains unobserved."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(M), rng.normal(size=M)])
    d = rng.uniform(0.5, 1.5, M) * base
    mean = x @ [0.3, 0.0]
    truth = mean + np.sqrt(base) * rng.normal(size=(REPLICATES, M))
    direct = truth + np.sqrt(d) * rng.normal(size=(REPLICATES, M))
    direct[:, M - OUTSIDE :] = np.nan
    fits = [fit_area_model(estimate=z, variance=d, covariates=x, method="ML") for z in direct]
    return x, d, truth, fits


def mean_and_error(values):
    return values.mean(), values.std(ddof=1) / np.sqrt(len(values))


def test_the_bias_of_ml_is_subtracted_outside():
    x, d, truth, fits = simulate(1.0, 1)
    sampled = np.arange(M) < M - OUTSIDE
    squares = np.array([(fit.estimate - t) ** 2 for fit, t in zip(fits, truth)])[:, ~sampled]
    reported, emdis = np.empty((2, REPLICATES, OUTSIDE))
    for k, fit in enumerate(fits):
        arrays = {"variance": d, "covariates": x, "sampled": sampled}
        a = fit.model_variance
        right = mean_squared_errors(model_variance=a, method="ml", **arrays)
        without = mean_squared_errors(model_variance=a, method="reml", **arrays)
        reported[k] = right[~sampled]
        emdis[k] = (2 * without - right)[~sampled]  # emdi adds the bias, which is negative
    true, error = mean_and_error(squares.mean(axis=1))
    ours, ours_error = mean_and_error(reported.mean(axis=1))
    theirs, _ = mean_and_error(emdis.mean(axis=1))
    spread = 4 * np.hypot(error, ours_error)
    assert abs(ours - true) < spread + 0.05 * true
    assert theirs < true - spread - 0.1 * true


def test_a_back_transformed_mse_takes_the_square_of_the_derivative():
    _, _, truth, fits = simulate(0.0004, 2)
    sampled = np.arange(M) < M - OUTSIDE
    estimates = np.array([fit.estimate for fit in fits])
    scale = ((estimates - truth) ** 2)[:, sampled].mean(axis=1)
    back = ((np.sin(estimates) ** 2 - np.sin(truth) ** 2) ** 2)[:, sampled].mean(axis=1)
    slope = np.sin(2 * truth[:, sampled]).mean()
    ratio = back.mean() / scale.mean()
    error = 4 * back.std(ddof=1) / np.sqrt(REPLICATES) / scale.mean()
    assert abs(ratio - slope**2) < error + 0.02 * slope**2
    assert abs(ratio - slope) > 10 * error
