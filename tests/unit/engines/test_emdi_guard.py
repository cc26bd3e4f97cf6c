"""Guards of emdi without R: optima, units, statuses, scripts, records."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from pybridge.engines import _emdi_units as units
from pybridge.engines._emdi_exact import (
    LIKELIHOODS,
    evaluate,
    mean_squared_errors,
    optimum,
    sampled,
)
from pybridge.engines._emdi_measurement import measurement_error_fit
from pybridge.smoothing._area_model import area_model_at, fit_area_model
from tests.unit.engines.emdi_problems import problem, request


# ------------------------------------------------------------------------------------- optima


@pytest.mark.parametrize("method", LIKELIHOODS)
@pytest.mark.parametrize("noise", [1.0, 2.0])
def test_the_slope_is_that_of_the_objective_and_0_at_the_optimum(method, noise):
    given = sampled(**problem(noise=noise))
    for a in (0.05, 0.7, 4.0):
        _, slope = evaluate(given, a, method)
        step = 1e-5 * a
        ends = [evaluate(given, a + k * step, method)[0].objective for k in (1, -1)]
        assert slope == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-5, abs=1e-6)
    best = optimum(given, method)
    if best.model_variance > 0:
        assert abs(evaluate(given, best.model_variance, method)[1]) < 1e-9
    grid = np.geomspace(1e-6, 1e3, 400)
    highest = max(evaluate(given, a, method)[0].objective for a in grid)
    assert best.objective >= highest - 1e-12


@pytest.mark.parametrize("method", ["reml", "ml"])
@pytest.mark.parametrize("seed", range(8))
def test_reml_and_ml_are_those_of_the_native_engine(method, seed):
    given = problem(seed=seed, noise=0.6 + 0.2 * seed)
    native = fit_area_model(**given, method=method.upper())
    found = optimum(sampled(**given), method)
    assert found.model_variance == pytest.approx(native.model_variance, rel=1e-9, abs=1e-12)
    assert found.log_likelihood == pytest.approx(native.log_likelihood, rel=1e-12)
    assert found.restricted_log_likelihood == pytest.approx(
        native.restricted_log_likelihood, rel=1e-12
    )


@pytest.mark.parametrize("method", ["amrl", "ampl", "amrl_yl", "ampl_yl"])
def test_adjusted_likelihoods_are_never_at_0_and_equivariant(method):
    small, large = (
        optimum(sampled(**problem(noise=0.5, unit=unit)), method) for unit in (1.0, 1e4)
    )
    assert small.model_variance > 0
    assert large.model_variance == pytest.approx(1e8 * small.model_variance, rel=1e-9)


def test_a_domain_observed_in_full():
    given = problem(noise=2.0)
    given["variance"][0] = 0.0
    native = fit_area_model(**given, method="REML")
    assert optimum(sampled(**given), "reml").model_variance == pytest.approx(
        native.model_variance, rel=1e-9
    )


@pytest.mark.parametrize("method", ["REML", "ML"])
def test_the_analytic_mse_is_that_of_the_native_engine(method):
    given = problem(noise=2.0)
    given["estimate"][[2, 5]] = np.nan
    native = area_model_at(0.8, **given, method=method)
    found = mean_squared_errors(
        model_variance=0.8,
        variance=given["variance"],
        covariates=given["covariates"],
        sampled=~np.isnan(given["estimate"]),
        method=method.lower(),
    )
    np.testing.assert_allclose(found, native.mse, rtol=1e-12)


def test_without_errors_the_measurement_model_is_weighted_least_squares():
    given = problem(noise=2.0)
    found = measurement_error_fit(**given, errors=np.zeros((2, 2, 30)))
    assert found.converged and found.model_variance > 0
    weight = 1 / (found.model_variance + given["variance"])
    x = given["covariates"]
    beta = np.linalg.solve(x.T @ (x * weight[:, None]), x.T @ (weight * given["estimate"]))
    np.testing.assert_allclose(found.coefficients, beta, rtol=1e-9)
    square = ((given["estimate"] - x @ beta) ** 2 - given["variance"]).sum() / 28
    assert found.model_variance == pytest.approx(square, rel=1e-9)


# -------------------------------------------------------------------------------------- units


@pytest.mark.parametrize("method", ["reml", "amrl", "reblup", "me"])
@pytest.mark.parametrize("unit", [1e-5, 1.0, 3e4])
def test_units_are_powers_of_2_that_bring_variances_to_where_tolerances_are_harmless(method, unit):
    options = {"Ci": np.zeros((2, 2, 30))} if method == "me" else {}
    found = units.rescaled(request(method, unit=unit, options=options))
    exponent = np.log2(found.unit)
    assert exponent == round(exponent)
    median = np.median(found.variance) / found.unit**2
    low, high = (2e-5, 5e-4) if method == "me" else (40, 250)
    assert low < median < high
    if method == "me":
        size = np.sqrt((found.covariates**2).mean(axis=0)) / found.covariates_unit
        assert (np.abs(np.log2(size)) < 0.51).all()


def test_nothing_is_rescaled_raw_or_where_the_scale_is_fixed():
    assert units.rescaled(request(mode="raw")).unit == 1.0
    asked = request()
    words = {"transformation": "log", "backtransformation": "bc_crude"}
    arguments = {**asked.arguments, **words}
    asked = dataclasses.replace(asked, estimate=np.exp(asked.estimate), arguments=arguments)
    assert units.rescaled(asked).unit == 1.0 and units.rescaled(request()).unit != 1.0


@pytest.mark.parametrize("method", ["amrl_yl", "ampl_yl"])
@pytest.mark.parametrize("m", [30, 200, 900])
def test_products_of_densities_stay_numbers(method, m):
    asked = units.rescaled(request(method, m=m, noise=3.0))
    given = sampled(
        estimate=asked.estimate / asked.unit,
        variance=asked.variance / asked.unit**2,
        covariates=asked.covariates,
    )
    best = optimum(given, method)
    upper = np.var(asked.estimate / asked.unit, ddof=1)
    heights = [
        evaluate(given, a, method)[0].objective
        for a in (best.model_variance, 0.382 * upper, 0.618 * upper)
    ]
    # The basis of the restricted likelihood is another one than R's: a few units of difference.
    assert min(heights) > -720 and max(heights) < 700
    if m == 30:
        assert asked.unit == units.rescaled(request("reml", m=m, noise=3.0)).unit


def test_expected_seconds_grow_with_refits():
    plain = units.expected_seconds(request())
    assert units.expected_seconds(request(options={"B": (50, 20)})) > 10 * plain
    assert units.time_limit(request(mode="raw")) is None
    assert units.time_limit(request()) >= 600
    assert units.time_limit(request(options={"time_limit": 7.0})) == 7.0
