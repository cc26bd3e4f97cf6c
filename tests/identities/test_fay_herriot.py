"""What a Fay-Herriot fit must satisfy whatever the data: invariances, limits, the score at 0."""

from __future__ import annotations

import numpy as np
import pytest

from pybridge.smoothing._area_model import NATIVE_METHODS, area_model_at, fit_area_model

METHODS = pytest.mark.parametrize("method", NATIVE_METHODS)


def problem(m=25, seed=4, spread=0.8):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(m, 2))
    variance = np.exp(rng.normal(size=m))
    estimate = 2 + x @ [1.0, -0.5] + np.sqrt(spread + variance) * rng.normal(size=m)
    return {
        "estimate": estimate,
        "variance": variance,
        "covariates": np.column_stack([np.ones(m), x]),
    }


@METHODS
def test_scale_and_shift(method):
    given = problem()
    fit = fit_area_model(**given, method=method)
    a, shift = -3.7, given["covariates"] @ [10.0, 2.0, -1.0]
    moved = fit_area_model(
        estimate=a * given["estimate"] + shift,
        variance=a * a * given["variance"],
        covariates=given["covariates"],
        method=method,
    )
    assert moved.model_variance == pytest.approx(a * a * fit.model_variance, rel=1e-11)
    np.testing.assert_allclose(moved.estimate, a * fit.estimate + shift, rtol=1e-10)
    np.testing.assert_allclose(moved.mse, a * a * fit.mse, rtol=1e-10)
    np.testing.assert_allclose(moved.shrinkage, fit.shrinkage, rtol=1e-10)


@METHODS
def test_a_power_of_two_changes_no_bit(method):
    given = problem()
    fit = fit_area_model(**given, method=method)
    moved = fit_area_model(
        estimate=8 * given["estimate"],
        variance=64 * given["variance"],
        covariates=given["covariates"],
        method=method,
    )
    assert moved.model_variance == 64 * fit.model_variance
    np.testing.assert_array_equal(moved.mse, 64 * fit.mse)


@METHODS
def test_coding_of_the_covariates_does_not_matter(method):
    given = problem()
    fit = fit_area_model(**given, method=method)
    turn = np.array([[1.0, 2.0, 0.0], [0.0, 3.0, 1.0], [0.5, 0.0, -2.0]])
    turned = fit_area_model(**{**given, "covariates": given["covariates"] @ turn}, method=method)
    np.testing.assert_allclose(turned.estimate, fit.estimate, rtol=1e-11)
    np.testing.assert_allclose(turn @ turned.coefficients, fit.coefficients, rtol=1e-10)
    assert turned.restricted_log_likelihood == pytest.approx(
        fit.restricted_log_likelihood, rel=1e-12
    )


@METHODS
def test_order_of_the_domains_does_not_matter(method):
    given = problem()
    fit = fit_area_model(**given, method=method)
    order = np.random.default_rng(2).permutation(25)
    moved = fit_area_model(**{k: v[order] for k, v in given.items()}, method=method)
    np.testing.assert_allclose(moved.estimate, fit.estimate[order], rtol=1e-12)
    np.testing.assert_allclose(moved.mse, fit.mse[order], rtol=1e-12)


@pytest.mark.parametrize("method", ["ML", "REML", "FH"])
def test_the_score_is_zero_at_the_optimum(method):
    given = problem()
    fit = fit_area_model(**given, method=method)
    A, V = fit.model_variance, fit.model_variance + given["variance"]
    if method == "FH":
        r = given["estimate"] - fit.synthetic
        assert (r**2 / V).sum() == pytest.approx(25 - 3, rel=1e-12)
        return
    which = "log_likelihood" if method == "ML" else "restricted_log_likelihood"
    step = 1e-4 * A
    low, top, high = (
        getattr(area_model_at(a, **given, method=method), which) for a in (A - step, A, A + step)
    )
    assert top > low and top > high
    # A maximum is flat to first order: its neighbours differ by the third order only.
    assert abs(high - low) < 1e-3 * (2 * top - low - high)


def test_the_score_at_a_boundary_points_below_zero():
    given = problem(spread=0.0, seed=8)
    given["estimate"] = 0.3 * given["estimate"]
    for method, which in (("ML", "log_likelihood"), ("REML", "restricted_log_likelihood")):
        fit = fit_area_model(**given, method=method)
        assert fit.status == "boundary"
        above = area_model_at(1e-6, **given, method=method)
        assert getattr(above, which) < getattr(fit, which)


@pytest.mark.parametrize("method", ["ML", "REML"])
def test_no_variance_on_a_fine_grid_is_better(method):
    which = "log_likelihood" if method == "ML" else "restricted_log_likelihood"
    for seed in range(20):
        given = problem(m=9, seed=seed, spread=0.1)
        fit = fit_area_model(**given, method=method)
        grid = np.concatenate([[0.0], np.geomspace(1e-4, 30.0, 60)])
        best = max(getattr(area_model_at(a, **given, method=method), which) for a in grid)
        assert best <= getattr(fit, which) + 1e-10


@METHODS
def test_a_small_sampling_variance_gives_the_direct_estimate(method):
    given = problem()
    given["variance"][0] = 1e-9
    fit = area_model_at(0.7, **given, method=method)
    assert fit.estimate[0] == pytest.approx(given["estimate"][0], rel=1e-7)
    assert fit.mse[0] == pytest.approx(1e-9, rel=1e-6)
    assert fit.shrinkage[0] == pytest.approx(1.0, rel=1e-7)


@METHODS
def test_a_large_sampling_variance_gives_the_synthetic_estimate(method):
    given = problem()
    given["variance"][0] = 1e12
    fit = area_model_at(0.7, **given, method=method)
    assert fit.estimate[0] == pytest.approx(fit.synthetic[0], rel=1e-9)
    assert fit.shrinkage[0] == pytest.approx(0.0, abs=1e-11)


@METHODS
def test_the_derivative_is_that_of_the_estimate_at_fixed_variance(method):
    given = problem()
    fit = fit_area_model(**given, method=method)
    for i in (0, 7):
        moved = given["estimate"].copy()
        moved[i] += 1.0
        there = area_model_at(fit.model_variance, **{**given, "estimate": moved}, method=method)
        # The predictor is linear in the estimates at fixed variance: a step of 1 is exact.
        assert there.estimate[i] - fit.estimate[i] == pytest.approx(fit.derivative[i], rel=1e-10)


def test_copies_of_the_domains_leave_ml_alone_and_bring_the_others_to_it():
    given = problem()
    ml = fit_area_model(**given, method="ML").model_variance
    apart = []
    for times in (1, 10, 100):
        many = {
            "estimate": np.tile(given["estimate"], times),
            "variance": np.tile(given["variance"], times),
            "covariates": np.tile(given["covariates"], (times, 1)),
        }
        assert fit_area_model(**many, method="ML").model_variance == pytest.approx(ml, rel=1e-11)
        apart.append(abs(fit_area_model(**many, method="REML").model_variance - ml))
    # The penalty for p coefficients weighs 1/m.
    assert apart[1] < 0.2 * apart[0] and apart[2] < 0.2 * apart[1]


def test_equal_variances_have_closed_forms():
    given = problem(spread=2.0)
    d, m, p = 0.5, 25, 3
    given["variance"] = np.full(m, d)
    q = np.linalg.qr(given["covariates"])[0]
    r = given["estimate"] - q @ (q.T @ given["estimate"])
    rss = float(r @ r)
    for method, variance in (
        ("ML", rss / m - d),
        ("REML", rss / (m - p) - d),
        ("FH", rss / (m - p) - d),
        ("PR", rss / (m - p) - d),
    ):
        fit = fit_area_model(**given, method=method)
        assert fit.model_variance == pytest.approx(variance, rel=1e-12)
        assert fit.shrinkage[0] == pytest.approx(variance / (variance + d), rel=1e-12)
