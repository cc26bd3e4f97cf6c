"""Traps of the distribution, of return levels, and of ismev's optimiser and point process."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pybridge.engines import evd, evir, ismev
from pybridge.errors import EngineError, EngineWarning, InputError
from validation.cases.gpd import scores
from tests.live_r.tail_samples import quietly, sample


pytestmark = pytest.mark.r("evd", "ismev", "evir")


@pytest.fixture(scope="module")
def rain():
    return scores("rain")


# --- the distribution ----------------------------------------------------------------------------


def test_the_density_at_the_location_and_quantiles_of_zero_and_one():
    assert evd.dgpd([0.0], scale=2.0, mode="raw").table["value"][0] == 0.0
    found = evd.dgpd([0.0, 1.0], scale=2.0)
    assert found.table["value"][0] == 0.5 and found.table["evd"][0] == 0.0
    with pytest.raises(EngineError, match="probabilities in"):
        evd.qgpd([0.0, 0.5], mode="raw")
    ends = evd.qgpd([0.0, 0.5, 1.0], loc=1.0, shape=-0.5).table
    np.testing.assert_allclose(ends["value"], [1.0, 1 + 2 * (1 - np.sqrt(0.5)), 3.0])
    assert np.isnan(ends["evd"][[0, 2]]).all()


@pytest.mark.parametrize("shape", [1e-10, 1e-15, 1e-17])
def test_digits_lost_at_tiny_shapes(shape):
    x = np.array([0.5, 1.0, 3.0])
    for function, exact in ((evd.dgpd, np.exp(-x)), (evd.pgpd, -np.expm1(-x))):
        raw = function(x, shape=shape, mode="raw").table["value"]
        assert np.abs(raw / exact - 1).max() > 1e-9
        np.testing.assert_allclose(function(x, shape=shape).table["value"], exact, rtol=2e-10)
    p = np.array([0.1, 0.9, 0.999])
    exact = -np.log1p(-p)
    assert np.abs(evd.qgpd(p, shape=shape, mode="raw").table["value"] / exact - 1).max() > 1e-9
    np.testing.assert_allclose(evd.qgpd(p, shape=shape).table["value"], exact, rtol=1e-9)


# --- return levels, extremal index ---------------------------------------------------------------


def test_the_parameter_of_a_return_level_stops_early(rain):
    raw = evd.fpot(rain, 30.0, mper=100, npp=365, mode="raw")
    assert raw.param["shape"] == pytest.approx(0.18060, abs=1e-5)
    fit = evd.fpot(rain, 30.0, mper=100, npp=365)
    assert fit.param["shape"] == pytest.approx(0.184499, abs=1e-6)
    assert fit.param["rlevel"] == pytest.approx(106.328025, abs=1e-4)
    assert fit.exact["log_likelihood"] - raw.log_likelihood > 5e-4


def test_the_upper_end_point():
    x = sample(-0.2, 500)
    with pytest.raises(EngineError, match="singular"):
        evd.fpot(x, 0.5, mper=np.inf, mode="raw")
    fit = quietly(evd.fpot, x, 0.5, mper=np.inf)
    plain = evd.fpot(x, 0.5)
    assert fit.status == "converged"
    end = 0.5 - plain.param["scale"] / plain.param["shape"]
    assert fit.param["rlevel"] == pytest.approx(end, rel=1e-4)


def test_profiles_beside_a_held_parameter(rain):
    fit = evd.fpot(rain, 30.0, model="pp", npp=365, loc=40.0)
    found = evd.profile(fit).to_frame().set_index("parameter")
    assert list(found.index) == ["scale", "shape"]
    width = found["exact_upper"] - found["exact_lower"]
    assert (np.abs(found["lower"] - found["exact_lower"]) < 0.01 * width).all()
    free = evd.profile(evd.fpot(rain, 30.0, model="pp", npp=365), "scale").to_frame()
    assert width["scale"] < (free["exact_upper"] - free["exact_lower"])[0]


def test_nothing_above_the_threshold():
    x = sample(0.1, 50)
    assert np.isnan(evd.exi(x, 1e6, r=0, mode="raw").table["extremal_index"][0])
    for function in (evd.exi, evd.clusters, evd.fpot):
        with pytest.raises(InputError) as caught:
            function(x, 1e6)
        assert caught.value.code == "no_exceedances"


# --- ismev ---------------------------------------------------------------------------------------


def test_the_simplex_stops_early(rain):
    raw = ismev.gpd_fit(rain, 30.0, mode="raw")
    assert raw.estimate[1] == pytest.approx(0.184302712, abs=1e-8)
    fit = ismev.gpd_fit(rain, 30.0)
    assert fit.estimate[1] == pytest.approx(0.1844990, abs=3e-7)
    assert raw.log_likelihood < fit.log_likelihood


def test_the_point_process_from_ismev_s_own_start(rain):
    raw = ismev.pp_fit(rain, 30.0, mode="raw")
    assert raw.engine_status == "conv 0"
    np.testing.assert_allclose(raw.estimate, [50.508573, 23.449573, 0.464269], atol=1e-5)
    assert raw.log_likelihood == pytest.approx(-490.350167, abs=1e-5)
    fit = ismev.pp_fit(rain, 30.0)
    np.testing.assert_allclose(fit.estimate, [39.55065, 9.20236, 0.184499], atol=2e-5)
    assert fit.log_likelihood == pytest.approx(-461.98184, abs=1e-5)
    theirs = evd.fpot(rain, 30.0, model="pp", npp=365)
    np.testing.assert_allclose(fit.estimate, list(theirs.param.values()), rtol=1e-5)


def test_missing_scores_are_not_removed_by_ismev():
    x = np.r_[sample(0.1, 60), np.nan]
    with pytest.raises(EngineError):
        ismev.gpd_fit(x, 0.2, mode="raw")
    assert evd.fpot(x, 0.2, mode="raw").status == "converged"  # and evd drops them in silence
    for function in (ismev.gpd_fit, evd.fpot, evir.gpd):
        with pytest.raises(InputError) as caught:
            function(x, 0.2)
        assert caught.value.code == "missing_values"


def test_a_start_at_shape_zero():
    x = sample(0.1, 100)
    with pytest.raises(EngineError):
        ismev.gpd_fit(x, 0.0, shinit=0.0, mode="raw")
    fit = quietly(ismev.gpd_fit, x, 0.0, shinit=0.0)
    assert fit.status == "failed" and fit.engine_status == "error"
    assert np.isfinite(fit.exact["shape"])


def test_covariates_that_are_far_from_zero():
    draw = np.random.default_rng(5)
    year = np.repeat(np.arange(1950, 2000), 8).astype(float)
    scale = np.exp(0.02 * (year - 1975))
    x = scale * np.expm1(0.1 * draw.exponential(size=year.size)) / 0.1
    table = pd.DataFrame({"year": year})
    words = {"ydat": table, "sigl": "year", "siglink": "exp"}
    fit = ismev.gpd_fit(x, 0.0, **words)
    assert fit.status == "converged" and fit.exact["shortfall"] < 1e-9
    centred = ismev.gpd_fit(x, 0.0, ydat=table - 1975, sigl="year", siglink="exp")
    np.testing.assert_allclose(fit.estimate[1:], centred.estimate[1:], atol=1e-6)
    np.testing.assert_allclose(fit.standard_errors[1:], centred.standard_errors[1:], rtol=1e-3)
    try:
        raw = quietly(ismev.gpd_fit, x, 0.0, mode="raw", **words)
    except EngineError:
        return  # singular, on other machines
    assert not np.isclose(raw.standard_errors[1], fit.standard_errors[1], rtol=0.05)


def test_a_point_process_with_covariates_far_from_zero(rain, plain_r, tmp_path):
    year = pd.DataFrame({"year": 1914 + np.arange(rain.size) / 365.25})
    words = {"ydat": year, "mul": "year"}
    raw = quietly(ismev.pp_fit, rain, 30.0, mode="raw", **words)
    fit = ismev.pp_fit(rain, 30.0, **words)
    assert fit.log_likelihood > raw.log_likelihood + 0.5 and fit.status == "converged"
    assert raw.engine_status == "conv 0" and not np.isfinite(raw.standard_errors).all()
    plain = ismev.pp_fit(rain, 30.0)
    assert 0 < fit.log_likelihood - plain.log_likelihood < 4  # one more parameter
    assert np.isfinite(fit.standard_errors).all()
    assert any("no exact optimum" in text for text in fit.conditions)
    fit.r_script(tmp_path / "fit.R")
    found = plain_r(f'source("{tmp_path / "fit.R"}"); show("mle", result$mle)')
    assert found["mle"] == fit.estimate.tolist()


def test_a_profile_up_to_a_given_end(rain):
    fit = evd.fpot(100 * rain, 3000.0)
    found = evd.profile(fit, "scale", xmin=500.0, xmax=900.0, mesh=20.0)
    curve = found.curve("scale")["scale"]
    assert (curve.min(), curve.max()) == (500.0, 900.0) and found.upper["scale"] == 900.0
    assert found.status == "converged"
    assert found.exact_upper["scale"] == pytest.approx(952.54, abs=0.01)


def test_a_range_of_thresholds_that_means_nothing_in_small_units():
    x = 0.01 * sample(0.1, 100)
    raw = quietly(ismev.mrl_plot, x, nint=5, mode="raw").to_frame()
    assert raw["threshold"].iloc[-1] < x.min()  # the largest value less 0.1
    table = ismev.mrl_plot(x, nint=5).to_frame()
    assert table["threshold"].iloc[-1] == np.sort(x)[-5]
    assert (table["estimate"] > 0).all()


def test_the_iteration_limit():
    x = sample(0.2, 100)
    with pytest.warns(EngineWarning, match="may not have succeeded"):
        raw = evd.fpot(x, 0.0, control={"maxit": 1}, mode="raw")
    assert raw.engine_status == "iteration limit reached" and raw.status == "not_converged"
    silent = ismev.gpd_fit(x, 0.0, maxit=3, mode="raw")
    assert silent.engine_status == "conv 1" and silent.status == "not_converged"
    with pytest.warns(EngineWarning):
        fit = evd.fpot(x, 0.0, control={"maxit": 1})
    assert fit.exact["shortfall"] < 1e-6 and fit.as_given  # asked again from the optimum


def test_nothing_above_the_threshold_beside_covariates():
    x = sample(0.1, 50)
    covariates = np.column_stack([np.arange(50.0), np.arange(50.0) ** 2])
    for limit, code in ((1e6, "no_exceedances"), (np.sort(x)[-4], "too_few_exceedances")):
        for words in ({"sigl": [1]}, {"sigl": [1, 2], "shl": [1], "siglink": "exp"}):
            with pytest.raises(InputError) as caught:
                ismev.gpd_fit(x, limit, ydat=covariates, **words)
            assert (caught.value.code, caught.value.field) == (code, "threshold")


def test_a_single_cluster_is_refused():
    x = sample(0.1, 60)
    limit = float(np.quantile(x, 0.3))
    with pytest.raises(EngineError):
        evd.fpot(x, limit, cmax=True, r=30, mode="raw")
    with pytest.raises(InputError) as caught:
        evd.fpot(x, limit, cmax=True, r=30)
    assert (caught.value.code, caught.value.field) == ("too_few_exceedances", "r")
    assert evd.fpot(x, limit, cmax=True, r=1).n_exceedances >= 5
