"""The Bayesian area-level model at its edges: census, no labels, few domains, wild variances."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from pybridge.errors import InputError
from pybridge.smoothing._bayes import AreaPosterior, fit_area_model_bayes
from pybridge.smoothing._bayes_mixture import mixture_intervals


def problem(m=20, seed=1):
    rng = np.random.default_rng(seed)
    d = rng.uniform(0.5, 2.0, m)
    x = np.column_stack([np.ones(m), rng.normal(size=m)])
    z = x @ [1.0, 1.0] + rng.normal(size=m) * np.sqrt(0.5 + d)
    return {"estimate": z, "variance": d, "covariates": x}


def test_a_census_is_left_alone():
    arrays = problem()
    arrays["variance"][[2, 5]] = 0.0
    fit = fit_area_model_bayes(**arrays)
    for values in (fit.estimate, fit.lower, fit.upper):
        np.testing.assert_array_equal(values[[2, 5]], arrays["estimate"][[2, 5]])
    np.testing.assert_array_equal(fit.mse[[2, 5]], 0.0)
    np.testing.assert_array_equal(fit.derivative[[2, 5]], 1.0)
    assert (fit.mse[[0, 1]] > 0.0).all()


def test_a_census_is_the_limit_of_a_small_variance():
    arrays = problem()
    small = {**arrays, "variance": np.where(np.arange(20) < 6, 1e-13, arrays["variance"])}
    none = {**arrays, "variance": np.where(np.arange(20) < 6, 0.0, arrays["variance"])}
    near, limit = fit_area_model_bayes(**small), fit_area_model_bayes(**none)
    np.testing.assert_allclose(near.estimate, limit.estimate, rtol=1e-8)
    assert near.model_variance == pytest.approx(limit.model_variance, rel=1e-8)
    np.testing.assert_allclose(near.derivative[:6], 1.0, rtol=1e-8)


def test_a_domain_without_labels_gets_a_wide_prediction():
    arrays = problem()
    arrays["estimate"][4] = arrays["variance"][4] = np.nan
    fit = fit_area_model_bayes(**arrays)
    assert fit.estimate[4] == pytest.approx(arrays["covariates"][4] @ fit.coefficients, rel=1e-12)
    assert fit.shrinkage[4] == fit.derivative[4] == 0.0
    assert fit.mse[4] > fit.model_variance_mean
    assert fit.upper[4] - fit.lower[4] > np.nanmax(np.delete(fit.upper - fit.lower, 4))


def test_moments_that_do_not_exist_are_nan():
    arrays = problem(m=7)
    arrays["estimate"][6] = np.nan
    fit = fit_area_model_bayes(**arrays)  # six labelled domains, two coefficients
    assert np.isnan(fit.model_variance_mean) and np.isnan(fit.coefficient_covariance).all()
    assert np.isnan(fit.mse[6]) and np.isfinite(fit.mse[:6]).all()
    assert np.isfinite([fit.lower[6], fit.upper[6]]).all()
    assert fit.status == "weak_identification"
    more = fit_area_model_bayes(**problem(m=7))
    assert np.isfinite(more.model_variance_mean)
    assert fit_area_model_bayes(**problem(m=8)).status == "converged"


def test_without_quantiles_the_rest_is_the_same():
    full, fast = fit_area_model_bayes(**problem()), fit_area_model_bayes(
        **problem(), quantiles=False
    )
    assert np.isnan(fast.lower).all() and np.isnan(fast.upper).all()
    np.testing.assert_array_equal(full.estimate, fast.estimate)
    np.testing.assert_array_equal(full.mse, fast.mse)


def test_level_widens_the_interval():
    narrow, wide = (fit_area_model_bayes(**problem(), level=level) for level in (0.5, 0.99))
    assert (narrow.lower > wide.lower).all() and (narrow.upper < wide.upper).all()


def test_variances_over_many_orders_of_magnitude():
    arrays = problem(m=40)
    arrays["variance"] = 10.0 ** np.linspace(-12, 6, 40)
    fit = fit_area_model_bayes(**arrays)
    assert np.isfinite(fit.mse).all() and (fit.lower < fit.upper).all()
    assert fit.derivative[0] == pytest.approx(1.0, abs=1e-9)
    np.testing.assert_allclose(fit.mse / arrays["variance"], fit.derivative, rtol=1e-10)


def test_a_needle_of_a_posterior():
    rng = np.random.default_rng(4)
    m = 20_000
    x = np.column_stack([np.ones(m), rng.normal(size=m)])
    z = x.sum(axis=1) + rng.normal(size=m) * np.sqrt(3.0)
    fit = fit_area_model_bayes(estimate=z, variance=np.full(m, 2.0), covariates=x)
    # With equal variances 2 + s is scaled inverse chi-square: its mean is rest / (m - p - 4).
    rest = z - x @ np.linalg.lstsq(x, z, rcond=None)[0]
    assert fit.model_variance_mean == pytest.approx(rest @ rest / (m - 2 - 4) - 2.0, rel=1e-9)


def test_many_domains_without_spread_end_near_zero():
    rng = np.random.default_rng(5)
    m = 3000
    x = np.ones((m, 1))
    z = rng.normal(size=m) * 0.9
    fit = fit_area_model_bayes(estimate=z, variance=np.ones(m), covariates=x, quantiles=False)
    assert 0.0 < fit.model_variance < 0.05
    assert fit.shrinkage.max() < 0.05


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"covariates": np.ones((20, 2))}, "constant_covariate"),
        ({"variance": np.full(20, -1.0)}, "bad_variance"),
        ({"variance": np.full(20, np.inf)}, "bad_variance"),
        ({"estimate": np.full(20, np.inf)}, "not_finite"),
        ({"covariates": np.full((20, 2), np.nan)}, "not_finite"),
        ({"covariates": np.ones((19, 2))}, "bad_shape"),
    ],
)
def test_bad_input(change, code):
    with pytest.raises(InputError) as caught:
        fit_area_model_bayes(**{**problem(), **change})
    assert caught.value.code == code
    assert caught.value.field in change


def test_too_few_domains_for_the_flat_prior():
    arrays = {name: value[:4] for name, value in problem().items()}
    with pytest.raises(InputError) as caught:
        fit_area_model_bayes(**arrays)
    assert caught.value.code == "too_few_domains"
    five = {name: value[:5] for name, value in problem().items()}
    assert np.isfinite(fit_area_model_bayes(**five).estimate).all()


def test_census_domains_on_the_regression_exactly():
    arrays = problem()
    arrays["variance"][:5] = 0.0
    arrays["estimate"][:5] = arrays["covariates"][:5] @ [1.0, 2.0]
    with pytest.raises(InputError) as caught:
        fit_area_model_bayes(**arrays)
    assert caught.value.code == "degenerate"


def test_estimates_on_the_regression_exactly_with_noise_are_fine():
    arrays = problem()
    arrays["estimate"] = arrays["covariates"] @ [1.0, 2.0]
    fit = fit_area_model_bayes(**arrays)
    np.testing.assert_allclose(fit.estimate, arrays["estimate"], atol=1e-12)
    assert fit.model_variance > 0.0


def test_the_record_pickles_and_is_frozen():
    fit = fit_area_model_bayes(**problem())
    assert pickle.loads(pickle.dumps(fit)) == fit
    assert isinstance(fit, AreaPosterior)
    with pytest.raises(ValueError):
        fit.estimate[0] = 1.0


def test_mixture_of_one_is_a_normal():
    lower, upper = mixture_intervals(
        lambda part: (np.array([[1.0, -2.0]])[:, part], np.array([[2.0, 0.5]])[:, part]),
        weight=np.ones(1),
        mean=np.array([1.0, -2.0]),
        variance=np.array([4.0, 0.25]),
        level=0.95,
    )
    np.testing.assert_allclose(upper, [1.0 + 2 * 1.959963984540054, -2 + 0.5 * 1.959963984540054])
    np.testing.assert_allclose(lower, [1.0 - 2 * 1.959963984540054, -2 - 0.5 * 1.959963984540054])


def test_mixture_with_far_apart_parts_is_bracketed():
    centre = np.array([[0.0], [1000.0]])
    lower, upper = mixture_intervals(
        lambda part: (centre[:, part], np.ones((2, 1))[:, part]),
        weight=np.array([0.5, 0.5]),
        mean=np.array([500.0]),
        variance=np.array([250001.0]),
        level=0.9,
    )
    # 5 % of the whole is 10 % of the lower part.
    np.testing.assert_allclose(lower, -1.2815515655446004, rtol=1e-9)
    np.testing.assert_allclose(upper, 1000 + 1.2815515655446004, rtol=1e-9)


def test_fewer_census_domains_than_coefficients():
    """They fit exactly whatever the variance is, and X'WX degenerates as it goes to 0."""
    arrays = problem(m=12)
    arrays["variance"][3] = 0.0
    arrays["covariates"] = np.column_stack([arrays["covariates"], np.arange(12.0) ** 2])
    limit = fit_area_model_bayes(**arrays)
    near = arrays["variance"].copy()
    near[3] = 1e-12
    fit = fit_area_model_bayes(**{**arrays, "variance": near})
    assert limit.model_variance == pytest.approx(fit.model_variance, rel=1e-7)
    np.testing.assert_allclose(limit.estimate, fit.estimate, rtol=1e-7, atol=1e-7)
