"""The native Fay-Herriot engine on arrays: statuses, edges, refusals, speed of growth."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from pybridge.errors import InputError
from pybridge.smoothing._area_fit import domain_statuses, standard_errors
from pybridge.smoothing._area_model import NATIVE_METHODS, area_model_at, fit_area_model


def problem(m=30, seed=1, spread=1.0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=m)
    variance = rng.uniform(0.5, 2.0, m)
    estimate = 1 + x + np.sqrt(spread + variance) * rng.normal(size=m)
    return {
        "estimate": estimate,
        "variance": variance,
        "covariates": np.column_stack([np.ones(m), x]),
    }


def refused(code, **changes):
    words = {**problem(), **changes}
    with pytest.raises(InputError) as caught:
        fit_area_model(**words)
    error = caught.value
    assert error.code == code
    assert error.field and error.expected is not None and error.got is not None
    return error


@pytest.mark.parametrize("method", NATIVE_METHODS)
def test_shapes_and_status_of_an_ordinary_fit(method):
    given = problem()
    fit = fit_area_model(**given, method=method, level=0.9)
    assert (fit.engine, fit.method, fit.level, fit.status) == ("native", method, 0.9, "converged")
    assert fit.coefficients.shape == (2,) and fit.coefficient_covariance.shape == (2, 2)
    for name in ("estimate", "mse", "shrinkage", "synthetic", "derivative", "lower", "upper"):
        assert getattr(fit, name).shape == (30,)
    np.testing.assert_allclose(fit.synthetic, given["covariates"] @ fit.coefficients, rtol=1e-12)
    width = (fit.upper - fit.lower) / fit.standard_error
    np.testing.assert_allclose(width, 2 * 1.6448536269514722, rtol=1e-12)
    assert not fit.estimate.flags.writeable
    assert pickle.loads(pickle.dumps(fit)) == fit


@pytest.mark.parametrize("method", NATIVE_METHODS)
def test_no_spread_beyond_the_sampling_error_is_the_boundary(method):
    given = problem()
    given["estimate"] = given["covariates"] @ [1.0, 2.0]
    fit = fit_area_model(**given, method=method)
    assert fit.model_variance == 0.0
    assert fit.status == "boundary"
    np.testing.assert_allclose(fit.estimate, given["estimate"], rtol=1e-12)
    assert (fit.shrinkage == 0).all()


@pytest.mark.parametrize(("m", "status"), [(7, "weak_identification"), (8, "converged")])
def test_few_domains_are_weak_identification(m, status):
    assert fit_area_model(**problem(m=m, spread=50.0)).status == status


@pytest.mark.parametrize("method", NATIVE_METHODS)
def test_a_domain_without_estimate_is_predicted_with_its_own_mse(method):
    given = problem()
    estimate, variance = given["estimate"].copy(), given["variance"].copy()
    estimate[[4, 9]] = np.nan
    variance[4] = np.nan
    fit = fit_area_model(
        estimate=estimate, variance=variance, covariates=given["covariates"], method=method
    )
    rest = ~np.isnan(estimate)
    alone = fit_area_model(**{k: v[rest] for k, v in given.items()}, method=method)
    assert fit.model_variance == alone.model_variance
    np.testing.assert_array_equal(fit.estimate[rest], alone.estimate)
    out = given["covariates"][[4, 9]]
    np.testing.assert_allclose(fit.estimate[[4, 9]], out @ fit.coefficients, rtol=1e-12)
    np.testing.assert_array_equal(fit.shrinkage[[4, 9]], 0.0)
    assert np.isnan(fit.derivative[[4, 9]]).all()
    if method in ("REML", "PR"):
        own = np.einsum("ij,jk,ik->i", out, fit.coefficient_covariance, out)
        np.testing.assert_allclose(fit.mse[[4, 9]], fit.model_variance + own, rtol=1e-12)


@pytest.mark.parametrize("method", NATIVE_METHODS)
def test_the_mse_without_estimate_is_the_limit_of_a_huge_sampling_variance(method):
    given = problem()
    absent, huge = given["estimate"].copy(), given["variance"].copy()
    absent[3] = np.nan
    out = fit_area_model(**{**given, "estimate": absent}, method=method)
    huge[3] = 1e12
    near = area_model_at(out.model_variance, **{**given, "variance": huge}, method=method)
    assert out.estimate[3] == pytest.approx(near.estimate[3], rel=1e-9)
    if method != "PR":  # PR's variance of the variance sums (σ² + d)², this domain's too
        # The bias of ML and FH divides by the number of domains, one more here.
        rel = {"REML": 1e-9, "ML": 1e-9, "FH": 0.1}[method]
        assert out.mse[3] == pytest.approx(near.mse[3], rel=rel)


@pytest.mark.parametrize("method", NATIVE_METHODS)
def test_a_census_keeps_its_estimate(method):
    given = problem()
    given["variance"][[2, 5]] = 0.0
    fit = fit_area_model(**given, method=method)
    np.testing.assert_array_equal(fit.estimate[[2, 5]], given["estimate"][[2, 5]])
    np.testing.assert_array_equal(fit.mse[[2, 5]], 0.0)
    np.testing.assert_array_equal(fit.shrinkage[[2, 5]], 1.0)
    np.testing.assert_array_equal(fit.derivative[[2, 5]], 1.0)
    assert np.isfinite(fit.mse).all()


@pytest.mark.parametrize("n_known", [1, 2, 3])
def test_a_census_at_the_boundary_is_the_limit_of_a_tiny_variance(n_known):
    given = problem(spread=0.0, seed=6)
    given["estimate"] = given["covariates"] @ [1.0, 2.0] + 0.1 * given["estimate"]
    given["estimate"][:n_known] = given["covariates"][:n_known] @ [1.15, 2.1]
    known = given["variance"].copy()
    known[:n_known] = 0.0
    fit = fit_area_model(**{**given, "variance": known})
    assert fit.model_variance == 0.0
    tiny = known.copy()
    tiny[:n_known] = 1e-13
    near = area_model_at(0.0, **{**given, "variance": tiny}, method="REML")
    np.testing.assert_allclose(fit.estimate, near.estimate, rtol=1e-6)
    np.testing.assert_allclose(fit.coefficients, near.coefficients, rtol=1e-6)
    np.testing.assert_allclose(fit.coefficient_covariance, near.coefficient_covariance, atol=1e-6)


def test_ml_beside_few_known_domains_takes_the_inner_maximum():
    # One d = 0 lets ML grow without bound as the model variance goes to 0.
    given = problem(m=40, spread=3.0)
    given["variance"][0] = 0.0
    fit = fit_area_model(**given, method="ML")
    assert fit.status == "converged" and fit.model_variance > 0.5


def test_a_negative_mse_is_kept_and_named():
    rng = np.random.default_rng(0)
    for seed in range(200):
        rng = np.random.default_rng(seed)
        variance = np.exp(1.5 * rng.normal(size=10))
        estimate = np.sqrt(variance) * rng.normal(size=10)
        fit = fit_area_model(
            estimate=estimate, variance=variance, covariates=np.ones((10, 1)), method="FH"
        )
        if (fit.mse < 0).any():
            break
    assert (fit.mse < 0).any()
    np.testing.assert_array_equal(np.isnan(fit.standard_error), fit.mse < 0)
    words = domain_statuses(estimate=estimate, variance=variance, mse=fit.mse)
    np.testing.assert_array_equal(words == "negative_mse", fit.mse < 0)


def test_statuses_of_domains():
    words = domain_statuses(
        estimate=np.array([1.0, np.nan, 2.0, 3.0]),
        variance=np.array([1.0, np.nan, 0.0, 1.0]),
        mse=np.array([0.5, -1.0, 0.0, -0.1]),
    )
    assert list(words) == ["ok", "out_of_sample", "census", "negative_mse"]


def test_roots_of_negative_and_missing_mse_are_nan():
    np.testing.assert_array_equal(
        standard_errors(np.array([4.0, -1.0, np.nan])), [2.0, np.nan, np.nan]
    )


@pytest.mark.parametrize("size", [1e-55, 1e-9, 1e9, 1e55])
def test_units_far_from_one_lose_no_digits(size):
    given = problem()
    here = fit_area_model(**given)
    there = fit_area_model(
        estimate=size * given["estimate"],
        variance=size**2 * given["variance"],
        covariates=given["covariates"],
    )
    assert there.model_variance == pytest.approx(size**2 * here.model_variance, rel=1e-12)
    np.testing.assert_allclose(there.mse, size**2 * here.mse, rtol=1e-12)


@pytest.mark.parametrize("size", [1e-120, 1e100])
def test_units_beyond_all_measurement_are_refused(size):
    given = problem()
    words = {"estimate": size * given["estimate"], "variance": size**2 * given["variance"]}
    assert "domains" in refused("out_of_range", **words).got


def test_refusals():
    given = problem()
    m = 30
    bad = given["variance"].copy()
    bad[[3, 7]] = -0.1
    assert "3, 7" in refused("negative_variance", variance=bad).got
    bad = given["variance"].copy()
    bad[3] = np.nan
    refused("missing_variance", variance=bad)
    bad[3] = np.inf
    refused("infinite_variance", variance=bad)
    refused("all_variances_zero", variance=np.zeros(m))
    bad = given["estimate"].copy()
    bad[0] = np.inf
    refused("not_finite", estimate=bad)
    bad = given["covariates"].copy()
    bad[5, 1] = np.nan
    assert "5" in refused("not_finite", covariates=bad).got
    refused("bad_shape", covariates=given["covariates"][:-1])
    refused("bad_shape", variance=given["variance"][:-1])
    refused("too_few_domains", covariates=np.random.default_rng(1).normal(size=(m, m)))
    refused("no_covariates", covariates=np.empty((m, 0)))
    refused("unknown_option", method="EM")
    refused("bad_level", level=95)
    refused("too_large", estimate=1e200 * given["estimate"])


def test_collinear_and_constant_covariates_are_named():
    given = problem()
    ones, x = given["covariates"].T
    error = refused("collinear_covariates", covariates=np.column_stack([ones, x, 3 - 2 * x]))
    assert "column 2" in error.got and "column 1" in error.got
    error = refused("constant_covariate", covariates=np.column_stack([ones, x, 5 * ones]))
    assert "column 2" in error.got
    refused("constant_covariate", covariates=np.column_stack([ones, 0 * x]))
    # Far from 0 with little variation is not collinear.
    shifted = np.column_stack([ones, 1e6 + x])
    fit = fit_area_model(**{**given, "covariates": shifted})
    here = fit_area_model(**given)
    assert fit.model_variance == pytest.approx(here.model_variance, rel=1e-8)


def test_arrays_of_the_caller_are_left_alone():
    given = problem()
    before = {name: value.copy() for name, value in given.items()}
    for value in given.values():
        value.flags.writeable = False
    fit_area_model(**given)
    for name, value in given.items():
        np.testing.assert_array_equal(value, before[name])


def test_many_domains_need_memory_of_their_number_only():
    import tracemalloc

    m = 20_000
    given = problem(m=m)
    tracemalloc.start()
    fit_area_model(**given)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # One m × m matrix would be 3.2 GB; the work needs some forty vectors and one chunk.
    assert peak < 80 * 8 * m + 2e7
