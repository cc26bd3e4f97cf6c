"""The exact optima beside emdi against plain R's, by dense matrices and another search."""

from __future__ import annotations

import numpy as np
import pytest

from pybridge.engines._emdi_exact import LIKELIHOODS, evaluate, optimum, sampled
from pybridge.engines._emdi_measurement import measurement_error_fit
from pybridge.engines._emdi_spatial import SpatialProblem, spatial_at, spatial_optimum
from validation.cases.emdi import load

CASE = load()
INSIDE = CASE.frame[CASE.frame["level"].notna()]
Y, D = INSIDE["level"].to_numpy(), INSIDE["spread"].to_numpy()
X = np.column_stack([np.ones(len(Y)), INSIDE["x"], INSIDE["z"]])


def exact(name, quantity="variance"):
    (value,) = CASE.answer(name, quantity)
    return value


@pytest.mark.parametrize("method", LIKELIHOODS)
def test_six_likelihoods(method):
    problem = sampled(estimate=Y, variance=D, covariates=X)
    found = optimum(problem, method)
    # R's search compares values of the likelihood: half of their digits are left.
    assert found.model_variance == pytest.approx(exact(method), rel=3e-6)
    assert found.log_likelihood == pytest.approx(exact(method, "loglike"), abs=1e-6)
    there = evaluate(problem, exact(method), method)[0]
    assert there.log_likelihood == pytest.approx(exact(method, "loglike"), rel=1e-12)
    assert there.restricted_log_likelihood == pytest.approx(exact(method, "restricted"), rel=1e-12)
    assert found.objective >= there.objective - 1e-12


@pytest.mark.parametrize("method", ["reml", "ml"])
def test_the_spatial_model(method):
    problem = SpatialProblem(Y, D, X, CASE.proximity.to_numpy())
    found = spatial_optimum(problem, method)
    name = f"spatial {method}"
    assert found.correlation == pytest.approx(exact(name, "correlation"), abs=2e-6)
    assert found.point.model_variance == pytest.approx(exact(name), rel=2e-6)
    assert found.point.objective == pytest.approx(exact(name, "objective"), abs=1e-10)
    at = spatial_at(problem, exact(name, "correlation"), exact(name), method)
    assert at.point.objective == pytest.approx(exact(name, "objective"), rel=1e-12)


def test_the_measurement_error_model():
    errors = CASE.errors[:, :, CASE.frame["level"].notna().to_numpy()]
    found = measurement_error_fit(estimate=Y, variance=D, covariates=X[:, :2], errors=errors)
    assert found.converged
    assert found.model_variance == pytest.approx(exact("me"), rel=1e-10)
    np.testing.assert_allclose(found.coefficients, CASE.answer("me", "coefficient"), rtol=1e-10)
    # In other units of the covariate it is the same fit.
    by = np.array([1.0, 1e5])
    scaled = measurement_error_fit(
        estimate=Y,
        variance=D,
        covariates=X[:, :2] * by,
        errors=errors * np.outer(by, by)[:, :, None],
    )
    assert scaled.model_variance == pytest.approx(found.model_variance, rel=1e-9)
    np.testing.assert_allclose(scaled.coefficients * by, found.coefficients, rtol=1e-9)


@pytest.mark.parametrize("method", LIKELIHOODS)
def test_emdi_itself_is_near(method):
    kept = CASE.answer(f"{method}|no||no|", "variance")[0]
    assert kept == pytest.approx(exact(method), rel=1e-4)
