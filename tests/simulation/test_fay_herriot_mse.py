"""The MSE that a Fay-Herriot fit reports is the one it has, and its intervals cover, by simulation.

Seeded; every claim with the Monte Carlo error of the simulation itself.
"""

from __future__ import annotations

import numpy as np
import pytest

from pybridge.smoothing._area_model import NATIVE_METHODS, fit_area_model

REPETITIONS = 1000
SPREAD = 1.0


def simulate(method, m=40, outside=4):
    """Squared errors, reported MSEs, their first term alone, coverage: each (repetitions, m)."""
    rng = np.random.default_rng(2718)
    covariates = np.column_stack([np.ones(m), rng.normal(size=m)])
    variance = np.tile([0.4, 0.7, 1.0, 1.6], m // 4)
    squared, reported, naive, covered = (np.empty((REPETITIONS, m)) for _ in range(4))
    for r in range(REPETITIONS):
        theta = covariates @ [1.0, 2.0] + np.sqrt(SPREAD) * rng.normal(size=m)
        estimate = theta + np.sqrt(variance) * rng.normal(size=m)
        estimate[:outside] = np.nan
        fit = fit_area_model(
            estimate=estimate, variance=variance, covariates=covariates, method=method
        )
        squared[r] = (fit.estimate - theta) ** 2
        reported[r] = fit.mse
        naive[r] = fit.shrinkage * variance
        covered[r] = (fit.lower <= theta) & (theta <= fit.upper)
    return squared, reported, naive, covered


@pytest.mark.parametrize("method", NATIVE_METHODS)
def test_the_reported_mse_is_unbiased(method):
    squared, reported, naive, covered = simulate(method)
    for which in (slice(0, 4), slice(4, None)):  # without a direct estimate, and with one
        true = squared[:, which].mean(axis=1)
        said = reported[:, which].mean(axis=1)
        ratio = said.mean() / true.mean()
        # Paired over repetitions: one draw gives both.
        error = np.std(said - ratio * true, ddof=1) / np.sqrt(REPETITIONS) / true.mean()
        assert abs(ratio - 1) < 3 * error + 0.01, (method, which, ratio, error)
        assert error < 0.03
    # The corrections matter: without them the reported MSE would be too small by more than that.
    assert naive[:, 4:].mean() / squared[:, 4:].mean() < 1 - 3 * error - 0.01
    share = covered[:, 4:].mean(axis=1)
    error = np.std(share, ddof=1) / np.sqrt(REPETITIONS)
    assert 0.93 - 3 * error < share.mean() < 0.97 + 3 * error


def test_the_model_variance_is_nearly_unbiased_by_reml_and_too_small_by_ml():
    rng = np.random.default_rng(314)
    m = 30
    covariates = np.column_stack([np.ones(m), rng.normal(size=(m, 3))])
    variance = np.tile([0.3, 0.5, 0.8], m // 3)
    found = {"REML": [], "ML": []}
    for _ in range(REPETITIONS):
        noise = np.sqrt(2.0 + variance) * rng.normal(size=m)
        for method, values in found.items():
            fit = fit_area_model(
                estimate=covariates.sum(axis=1) + noise,
                variance=variance,
                covariates=covariates,
                method=method,
            )
            values.append(fit.model_variance)
    error = np.std(found["REML"], ddof=1) / np.sqrt(REPETITIONS)
    assert abs(np.mean(found["REML"]) - 2.0) < 3 * error + 0.03
    # ML loses the four degrees of freedom: (m - p)/m of σ² + d, near enough.
    assert np.mean(found["ML"]) < 2.0 - 3 * error
