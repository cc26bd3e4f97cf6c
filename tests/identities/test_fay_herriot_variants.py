"""What variants of the Fay-Herriot fit must satisfy whatever the data: invariances and limits."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pybridge.smoothing._adjusted import ADJUSTED_METHODS
from pybridge.smoothing._area_bootstrap import Setting, bootstrap_mse
from pybridge.smoothing._area_model import ROBUST_METHODS, fit_area_model, optimum_of, prepare
from pybridge.smoothing._replicate_variance import replicate_variances
from pybridge.smoothing._robust import domain_effects
from pybridge.smoothing._robust_fit import Tuning, fit_robust_area_model
from pybridge.smoothing._transformed import Transformed, fit_transformed
from pybridge.smoothing.fay_herriot import fay_herriot

METHODS = pytest.mark.parametrize("method", ADJUSTED_METHODS + ROBUST_METHODS)


def problem(m=25, seed=4, spread=0.8):
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(m), rng.normal(size=(m, 2))])
    variance = np.exp(rng.normal(size=m))
    estimate = x @ [2.0, 1.0, -0.5] + np.sqrt(spread + variance) * rng.normal(size=m)
    return {"estimate": estimate, "variance": variance, "covariates": x}


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
    assert moved.model_variance == pytest.approx(a * a * fit.model_variance, rel=1e-10)
    np.testing.assert_allclose(moved.estimate, a * fit.estimate + shift, rtol=1e-9)
    np.testing.assert_allclose(moved.mse, a * a * fit.mse, rtol=1e-9)
    np.testing.assert_allclose(moved.shrinkage, fit.shrinkage, rtol=1e-9)


@METHODS
def test_neither_coding_nor_order_matters(method):
    given = problem()
    fit = fit_area_model(**given, method=method)
    turn = np.array([[1.0, 2.0, 0.0], [0.0, 3.0, 1.0], [0.5, 0.0, -2.0]])
    order = np.random.default_rng(2).permutation(25)
    moved = fit_area_model(
        estimate=given["estimate"][order],
        variance=given["variance"][order],
        covariates=(given["covariates"] @ turn)[order],
        method=method,
    )
    np.testing.assert_allclose(moved.estimate, fit.estimate[order], rtol=1e-10)
    np.testing.assert_allclose(moved.mse, fit.mse[order], rtol=1e-10)
    np.testing.assert_allclose(turn @ moved.coefficients, fit.coefficients, rtol=1e-9)


@METHODS
def test_the_derivative_is_that_of_the_estimate_at_fixed_weights(method):
    given = problem()
    fit = fit_area_model(**given, method=method)
    assert ((fit.derivative > 0) & (fit.derivative <= 1)).all()
    np.testing.assert_allclose(fit.coefficients @ given["covariates"].T, fit.synthetic, rtol=1e-10)


def test_adjusted_likelihoods_go_to_their_bases_with_many_domains():
    base = {"AMRL": "REML", "AMPL": "ML", "AMRL_YL": "REML", "AMPL_YL": "ML"}
    given = problem()
    many = {
        "estimate": np.tile(given["estimate"], 80),
        "variance": np.tile(given["variance"], 80),
        "covariates": np.tile(given["covariates"], (80, 1)),
    }
    for method, plain in base.items():
        few_apart, many_apart = (
            fit_area_model(**p, method=method).model_variance
            - fit_area_model(**p, method=plain).model_variance
            for p in (given, many)
        )
        assert 0 < many_apart < 0.03 * few_apart


@pytest.mark.parametrize("method", ("REML", "ML", "FH", "PR", *ADJUSTED_METHODS))
@pytest.mark.parametrize("known", [0, 1, 4])
def test_replicates_are_fitted_as_single_problems_are(known, method):
    given = problem(m=14)
    given["variance"][:known] = 0.0
    rng = np.random.default_rng(3)
    z = np.sqrt(0.3 + given["variance"]) * rng.normal(size=(60, 14))
    single = []
    for row in z:
        scaled = prepare(**{**given, "estimate": row})
        single.append(optimum_of(scaled.problem, method).model_variance)
    many = replicate_variances(scaled.problem, z / scaled.unit, method)
    np.testing.assert_allclose(many, single, rtol=1e-7, atol=1e-7)


def test_a_plain_bootstrap_is_never_below_what_a_known_variance_leaves():
    given = problem()
    fit = fit_area_model(**given)
    setting = Setting.of(
        prepare(**given),
        covariates=given["covariates"],
        model_variance=fit.model_variance,
        method="REML",
    )
    mse = bootstrap_mse(setting, n_replicates=25, seed=1, corrected=False)
    share = 1 - fit.shrinkage
    spread = np.einsum(
        "ij,jk,ik->i", given["covariates"], fit.coefficient_covariance, given["covariates"]
    )
    assert (mse > fit.model_variance * share + share**2 * spread).all()


# --------------------------------------------------------------------------------------- robust


def test_without_cutting_the_robust_equations_are_those_of_ml():
    given = problem()
    ml = fit_area_model(**given, method="ML")
    fit = fit_robust_area_model(**given, tuning=Tuning(k=1e3))
    assert fit.model_variance == pytest.approx(ml.model_variance, rel=1e-10)
    np.testing.assert_allclose(fit.estimate, ml.estimate, rtol=1e-10)
    np.testing.assert_allclose(fit.mse, ml.mse, rtol=1e-10)
    pseudo = fit_robust_area_model(**given, tuning=Tuning(k=1e3), kind="pseudo")
    share = 1 - ml.shrinkage
    spread = np.einsum(
        "ij,jk,ik->i", given["covariates"], ml.coefficient_covariance, given["covariates"]
    )
    np.testing.assert_allclose(
        pseudo.mse, ml.model_variance * share + share**2 * spread, rtol=1e-10
    )


def test_an_outlier_is_followed_no_further_than_to_a_point():
    given = problem()
    far = []
    for size in (30.0, 3000.0):
        moved = given["estimate"].copy()
        moved[3] += size
        far.append(fit_robust_area_model(**{**given, "estimate": moved}))
    others = np.arange(25) != 3
    np.testing.assert_allclose(far[0].estimate[others], far[1].estimate[others], rtol=1e-6)
    usual = fit_area_model(**given)
    assert np.abs(far[1].coefficients - usual.coefficients).max() < 1.0


def test_effects_solve_their_equation_on_a_grid():
    rng = np.random.default_rng(1)
    r, d, a = rng.normal(size=400) * 5, rng.uniform(0.05, 4, 400), rng.uniform(0.05, 4, 400)
    u = domain_effects(r, variance=d, model_variance=a, k=1.345)
    psi = lambda t: np.clip(t, -1.345, 1.345)  # noqa: E731
    left = psi((r - u) / np.sqrt(d)) / np.sqrt(d)
    np.testing.assert_allclose(left, psi(u / np.sqrt(a)) / np.sqrt(a), atol=1e-12)
    np.testing.assert_array_equal(
        domain_effects(r, variance=d, model_variance=np.zeros(400), k=1.345), 0.0
    )


def test_kept_near_the_direct_estimate():
    given = problem()
    given["estimate"][3] += 30
    fit = fit_robust_area_model(**given, method="reblupbc", tuning=Tuning(1.345, 0.5))
    reach = 0.5 * np.sqrt(given["variance"])
    assert (np.abs(fit.estimate - given["estimate"]) <= reach * (1 + 1e-12)).all()
    assert fit.estimate[3] == pytest.approx(given["estimate"][3] - reach[3])


# ------------------------------------------------------------------------------ transformations


@pytest.mark.parametrize("way", ["bc", "bc_sm", "naive"])
def test_logarithms_follow_the_unit(way):
    given = problem()
    z = np.exp(given["estimate"] / 4)
    arrays = {"variance": 0.04 * z**2, "covariates": given["covariates"]}
    fit = fit_transformed(estimate=z, asked=Transformed("log", way), **arrays)
    arrays["variance"] = arrays["variance"] * 100**2
    moved = fit_transformed(estimate=100 * z, asked=Transformed("log", way), **arrays)
    np.testing.assert_allclose(moved.estimate, 100 * fit.estimate, rtol=1e-9)
    np.testing.assert_allclose(moved.mse, 1e4 * fit.mse, rtol=1e-8)
    np.testing.assert_allclose(moved.intervals, 100 * fit.intervals, rtol=1e-9)


def test_small_logarithms_are_the_delta_method():
    given = problem()
    z = np.exp(given["estimate"] / 4000)
    arrays = {"variance": given["variance"] / 4000**2 * z**2, "covariates": given["covariates"]}
    fit = fit_transformed(estimate=z, asked=Transformed("log", "bc"), method="REML", **arrays)
    linear = fit.engine_fit
    np.testing.assert_allclose(fit.estimate, np.exp(linear.linear), rtol=1e-6)
    np.testing.assert_allclose(fit.mse, np.exp(2 * linear.linear) * linear.mse, rtol=1e-2)


@pytest.mark.parametrize("way", ["bc", "naive"])
def test_shares_and_their_rests_are_treated_alike(way):
    rng = np.random.default_rng(6)
    n = rng.integers(10, 80, 22).astype(float)
    x = np.column_stack([np.ones(22), rng.uniform(-1, 1, 22)])
    share = rng.binomial(n.astype(int), np.sin(0.6 + 0.4 * x[:, 1]) ** 2) / n
    share[[1, 4]] = np.nan
    words = {"variance": np.full(22, 0.01), "covariates": x, "asked": Transformed("arcsin", way, n)}
    fit = fit_transformed(estimate=share, **words)
    rest = fit_transformed(estimate=1 - share, **words)
    np.testing.assert_allclose(rest.estimate, 1 - fit.estimate, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(rest.mse, fit.mse, rtol=1e-7)
    np.testing.assert_allclose(rest.intervals[:, ::-1], 1 - fit.intervals, atol=1e-11)


# ---------------------------------------------------------------------------------- benchmarking


def fitted(**words):
    given = problem()
    table = pd.DataFrame(given["covariates"][:, 1:], columns=["f", "g"])
    table["domain"] = [f"d{i}" for i in range(25)]
    table["z"], table["v"] = given["estimate"] + 20, given["variance"]
    return fay_herriot("z ~ f + g", table, variance="v", engine="native", **words)


@pytest.mark.parametrize("method", ["difference", "ratio", "mse"])
def test_a_total_that_is_met_already_moves_nothing(method):
    fit = fitted()
    w = np.linspace(1, 3, 25)
    total = float(w @ fit.fit.estimate)
    found = fit.benchmark(total=total, weights=w, method=method, mse_type="analytical")
    np.testing.assert_allclose(found.benchmarked, fit.fit.estimate, rtol=1e-13)


def test_one_domain_that_is_the_total_is_known():
    fit = fitted()
    w = np.zeros(25)
    w[7] = 1.0
    found = fit.benchmark(total=float(fit.fit.estimate[7]) + 0.3, weights=w)
    assert found.benchmarked[7] == pytest.approx(fit.fit.estimate[7] + 0.3)
    assert found.benchmarked_mse[7] == pytest.approx(0.0, abs=1e-12)
    vague = fit.benchmark(total=float(fit.fit.estimate[7]), weights=w, total_variance=0.09)
    assert vague.benchmarked_mse[7] == pytest.approx(0.09)
    direct = fit.benchmark(total="direct", weights=w)
    assert direct.benchmarked[7] == pytest.approx(fit.area.estimate[7])
    # Its own direct estimate: the variance is d again, but for what estimating σ² was said to add.
    third = fit.fit.mse - (
        fit.model_variance * (1 - fit.fit.shrinkage)
        + (1 - fit.fit.shrinkage) ** 2
        * np.einsum(
            "ij,jk,ik->i",
            fit.area.covariates,
            fit.fit.coefficient_covariance,
            fit.area.covariates,
        )
    )
    assert direct.benchmarked_mse[7] == pytest.approx(fit.area.variance[7] + third[7])
