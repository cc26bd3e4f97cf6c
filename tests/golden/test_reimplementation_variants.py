"""Native variants of the Fay-Herriot model against the independent reimplementation."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from pybridge.smoothing._area_model import fit_area_model
from pybridge.smoothing._area_mse import variance_and_bias
from pybridge.smoothing._robust_fit import Tuning, fit_robust_area_model
from pybridge.smoothing._transformed import Transformed, fit_transformed
from pybridge.smoothing.fay_herriot import fay_herriot
from validation.reimplementations import fay_herriot_variants as slow
from validation.reimplementations.fay_herriot import variance_and_bias as slow_variance_and_bias

ROUTES = 1e-9  # two exact routes; measured 1e-13


def problem(seed=5, m=18):
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(m), rng.normal(size=m)])
    d = rng.uniform(0.2, 2.0, m)
    z = x @ [5.0, 1.0] + np.sqrt(0.8 + d) * rng.normal(size=m)
    return SimpleNamespace(estimate=z, variance=d, covariates=x)


@pytest.mark.parametrize("method", ["AMRL", "AMPL", "AMRL_YL", "AMPL_YL"])
@pytest.mark.parametrize("seed", [5, 6, 7])
def test_adjusted_likelihoods(seed, method):
    p = problem(seed)
    fit = fit_area_model(**vars(p), method=method)
    found = slow.adjusted_variance(p.estimate, p.variance, p.covariates, method)
    assert fit.model_variance == pytest.approx(found, rel=ROUTES)
    mse = slow.adjusted_mse(found, p.estimate, p.variance, p.covariates, method)
    np.testing.assert_allclose(fit.mse, mse, rtol=ROUTES)


@pytest.mark.parametrize("k", [0.7, 1.345, 50.0])
def test_robust(k):
    p = problem()
    p.estimate[3] += 9.0
    fit = fit_robust_area_model(**vars(p), tuning=Tuning(k), kind="pseudo")
    beta, variance, effects = slow.robust_fit(p.estimate, p.variance, p.covariates, k)
    assert fit.model_variance == pytest.approx(variance, rel=ROUTES)
    np.testing.assert_allclose(fit.coefficients, beta, rtol=ROUTES)
    np.testing.assert_allclose(fit.estimate, p.covariates @ beta + effects, rtol=ROUTES)
    mse = slow.robust_mse(p.estimate, p.variance, p.covariates, beta, variance, effects, k)
    np.testing.assert_allclose(fit.mse, mse, rtol=ROUTES)


@pytest.mark.parametrize("method", ["reblup", "reblupbc"])
@pytest.mark.parametrize("k", [0.7, 1.345, 2.5, 50.0])
def test_robust_intervals_are_students(k, method):
    p = problem()
    p.estimate[3] += 9.0
    p.estimate[5] = np.nan
    fit = fit_robust_area_model(**vars(p), method=method, tuning=Tuning(k), level=0.9)
    degrees = slow.robust_degrees_of_freedom(17, 2, k)
    half = stats.t.ppf(0.95, degrees) * np.sqrt(fit.mse)
    np.testing.assert_allclose(fit.upper - fit.estimate, half, rtol=1e-7)
    np.testing.assert_allclose(fit.estimate - fit.lower, half, rtol=1e-7)
    # Without cutting m - p, as for one normal variance.
    assert degrees < 15.0 if k < 3 else degrees == pytest.approx(15.0, rel=1e-7)


@pytest.mark.parametrize("method", ["REML", "ML", "AMRL_YL"])
@pytest.mark.parametrize("way", ["bc", "bc_sm", "naive"])
def test_logarithms(way, method):
    p = problem()
    z = np.exp(p.estimate / 4)
    p.variance = 0.05 * z**2 * p.variance
    p.estimate = z.copy()
    p.estimate[[2, 9]] = np.nan
    fit = fit_transformed(**vars(p), asked=Transformed("log", way), method=method)
    a, scale = fit.model_variance, fit.engine_fit
    h = np.einsum("ij,jk,ik->i", p.covariates, fit.coefficient_covariance, p.covariates)
    inside = ~np.isnan(p.estimate)
    spare, bias = variance_and_bias(
        weight=1 / (a + scale.variance[inside]),
        half=np.sqrt(h[inside])[:, None],
        model_variance=a,
        method=method,
    )
    for i, noise in enumerate(np.where(inside, scale.variance, np.inf)):
        estimate = np.exp(scale.linear[i] + slow.kappa_of(a, noise, h[i], way))
        assert fit.estimate[i] == pytest.approx(estimate, rel=ROUTES)
        # The twin takes second derivatives by differences.
        mse = slow.log_mse(scale.linear[i], a, noise, h[i], spare, bias, way)
        assert fit.mse[i] == pytest.approx(mse, rel=1e-6)


def test_arcsines():
    rng = np.random.default_rng(3)
    n = rng.integers(15, 60, 20).astype(float)
    x = np.column_stack([np.ones(20), rng.uniform(-1, 1, 20)])
    share = rng.binomial(n.astype(int), np.sin(0.5 + 0.4 * x[:, 1]) ** 2) / n
    share[4] = np.nan
    fit = fit_transformed(
        estimate=share,
        variance=np.full(20, 0.01),
        covariates=x,
        asked=Transformed("arcsin", "bc", n),
    )
    scale, a = fit.engine_fit, fit.model_variance
    h = np.einsum("ij,jk,ik->i", x, fit.coefficient_covariance, x)
    d = np.where(np.isnan(share), np.inf, 1 / (4 * n))
    for i in range(20):
        estimate, mse = slow.arcsin_answer(scale.linear[i], a, d[i], h[i], scale.mse[i])
        assert fit.estimate[i] == pytest.approx(estimate, rel=1e-10)
        assert fit.mse[i] == pytest.approx(mse, rel=1e-8)


def table(p, **columns):
    return pd.DataFrame(
        {"z": p.estimate, "v": p.variance, "f": p.covariates[:, 1], **columns}
    ).assign(domain=[f"d{i}" for i in range(len(p.estimate))])


@pytest.mark.parametrize("method", ["difference", "ratio", "mse"])
@pytest.mark.parametrize("kind", ["known", "direct"])
def test_benchmarking(kind, method):
    p = problem()
    w = np.random.default_rng(1).uniform(1, 5, 18)
    fit = fay_herriot("z ~ f", table(p), variance="v", engine="native")
    total = "direct" if kind == "direct" else 1.03 * float(w @ fit.fit.estimate)
    found = fit.benchmark(total=total, weights=w, method=method, mse_type="analytical")
    target = float(w @ p.estimate) if kind == "direct" else total
    penalty = {"difference": w, "ratio": w / fit.fit.estimate, "mse": w / fit.fit.mse}[method]
    expected = slow.benchmarked(fit.fit.estimate, penalty, w, target)
    np.testing.assert_allclose(found.benchmarked, expected, rtol=ROUTES)
    args = (fit.model_variance, p.variance, p.covariates)
    spare, bias = slow_variance_and_bias(fit.model_variance, p.estimate, *args[1:], "REML")
    errors = slow.eblup_error_covariance(*args, spare, bias)
    if kind == "known":
        mse = slow.known_total_mse(errors, penalty, w)
    else:
        plain = slow.eblup_error_covariance(*args, 0.0, 0.0)
        mse = slow.direct_total_mse(*args, penalty, w, (errors - plain).diagonal())
        # What estimating σ² adds is taken along unchanged; the rest is exact.
    np.testing.assert_allclose(found.benchmarked_mse, mse, rtol=ROUTES)


def test_finite_domains_are_the_best_predictor_of_their_own_means():
    p = problem()
    size = np.random.default_rng(2).integers(6, 30, 18).astype(float)
    p.estimate[[1, 7]] = np.nan
    fit = fay_herriot(
        "z ~ f",
        table(p, size=size),
        variance="v",
        engine="native",
        finite_population=True,
        element_variance=4.0,
    )
    outside = np.isnan(p.estimate)
    estimate, mse = slow.finite_domains(
        p.estimate, p.variance, 4.0 / size, p.covariates, fit.model_variance, outside
    )
    np.testing.assert_allclose(fit.fit.estimate, estimate, rtol=ROUTES)
    # At a known σ²; the fit adds what estimating it costs.
    total = fit.model_variance + p.variance + 4.0 / size
    weight = 1 / total[~outside]
    third = np.zeros(18)
    model = p.variance / (p.variance + 4.0 / size)
    share = (p.variance + 4.0 / size) / total
    third[~outside] = 2 * (model * share)[~outside] ** 2 * weight * 2 / np.sum(weight**2)
    np.testing.assert_allclose(fit.fit.mse, mse + third, rtol=ROUTES)
