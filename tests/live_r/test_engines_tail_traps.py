"""What evd and ismev really do at their edges, in raw mode, and what guarding makes of it."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest

from pybridge.engines import evd, evir, ismev
from pybridge.errors import EngineError, EngineWarning, InputError
from validation.cases.gpd import scores
from tests.live_r.tail_samples import quietly, sample


pytestmark = pytest.mark.r("evd", "ismev", "evir")


@pytest.fixture(scope="module")
def rain():
    return scores("rain")


# --- the optimiser depends on the units ----------------------------------------------------------


@pytest.mark.parametrize("unit", [1e-5, 1e4])
def test_evd_in_other_units_stops_anywhere_and_says_successful(unit):
    x = sample(0.2, 300)
    here = evd.fpot(x, 0.0)
    raw = evd.fpot(unit * x, 0.0, mode="raw")
    fit = evd.fpot(unit * x, 0.0)
    assert raw.engine_status == "successful" and raw.status == "converged"
    assert fit.exact["log_likelihood"] - raw.log_likelihood > 0.01
    assert abs(raw.param["shape"] - fit.param["shape"]) > 0.02
    assert fit.status == "converged" and fit.exact["shortfall"] < 1e-9
    assert fit.param["shape"] == pytest.approx(here.param["shape"], abs=1e-7)
    assert fit.param["scale"] == pytest.approx(unit * here.param["scale"], rel=1e-6)
    assert fit.standard_errors["scale"] == pytest.approx(
        unit * here.standard_errors["scale"], rel=1e-4
    )
    moved = x.size * np.log(unit)
    assert fit.log_likelihood == pytest.approx(here.log_likelihood - moved, abs=1e-8)


def test_a_power_of_two_changes_no_bit():
    x = np.round(sample(0.2, 300, scale=20.0), 1)  # with ties at the thresholds
    fits = [evd.fpot(c * x, c * 10.0) for c in (1.0, 1024.0)]
    assert fits[0].n_exceedances == fits[1].n_exceedances
    assert fits[0].param["shape"] == fits[1].param["shape"]
    assert 1024.0 * fits[0].param["scale"] == fits[1].param["scale"]


def test_ismev_s_standard_errors_in_other_units():
    x = sample(0.2, 300)
    here = ismev.gpd_fit(x, 0.0)
    for unit in (1e-4, 1e6):
        raw = quietly(ismev.gpd_fit, unit * x, 0.0, mode="raw")
        fit = ismev.gpd_fit(unit * x, 0.0)
        wrong = raw.standard_errors / [unit, 1.0] / here.standard_errors
        assert np.nanmax(np.abs(wrong - 1)) > 0.05 or not np.isfinite(wrong).all()
        np.testing.assert_allclose(
            fit.standard_errors / [unit, 1.0], here.standard_errors, rtol=1e-4
        )
        assert fit.status == "converged"


def test_the_penalty_of_a_million_hides_a_larger_likelihood():
    x = sample(0.1, 85_000, scale=1e5)
    with pytest.raises(EngineError, match="singular"):
        ismev.gpd_fit(x, 0.0, mode="raw")
    fit = ismev.gpd_fit(x, 0.0)
    assert fit.log_likelihood < -1e6 and fit.status == "converged"
    assert fit.exact["shortfall"] < 1e-5
    other = evd.fpot(x, 0.0, std_err=False, mode="raw")  # survives, and stops short
    assert other.engine_status == "successful"
    assert fit.log_likelihood - 100 > other.log_likelihood or other.log_likelihood >= -1e6


def test_the_profile_of_a_shape_in_other_units(rain):
    wet = rain[rain > 0]
    here = ismev.gpd_profxi(ismev.gpd_fit(wet, 30.0))
    raw = quietly(ismev.gpd_fit, 1e6 * wet, 30e6, mode="raw")
    raw = quietly(ismev.gpd_profxi, raw, -0.1, 0.6)
    fit = ismev.gpd_profxi(ismev.gpd_fit(1e6 * wet, 30e6))
    assert abs(raw.lower - here.exact_lower) > 0.03
    assert fit.lower == pytest.approx(here.lower, abs=1e-4)
    assert fit.exact_lower == pytest.approx(here.exact_lower, abs=1e-8)


def test_threshold_stability_in_other_units():
    x = sample(0.2, 400)
    raw = evd.tcplot(1e4 * x, (1e3, 1e4), nt=3, mode="raw").to_frame()
    table = evd.tcplot(1e4 * x, (1e3, 1e4), nt=3).to_frame()
    here = evd.tcplot(x, (0.1, 1.0), nt=3).to_frame()
    shape = table["parameter"] == "shape"
    assert np.abs(raw["estimate"] - table["estimate"])[shape].max() > 0.01
    np.testing.assert_allclose(table["estimate"][shape], here["estimate"][shape], atol=1e-6)
    assert table["shortfall"].max() < 1e-8
    np.testing.assert_allclose(table["exact"][shape], table["estimate"][shape], atol=1e-6)


# --- standard errors from the penalty, and likelihoods without a maximum -------------------------


def test_five_values_and_a_standard_error_of_two_millionths():
    x = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    raw = quietly(evd.fpot, x, 0.0, mode="raw")
    assert raw.engine_status == "successful"
    assert raw.param["shape"] <= -0.99 and raw.standard_errors["shape"] < 1e-4
    fit = quietly(evd.fpot, x, 0.0)
    assert fit.status == "infeasible"
    assert np.isnan(list(fit.standard_errors.values())).all()
    assert any("unbounded" in text for text in fit.conditions)
    raw = quietly(ismev.gpd_fit, x, 0.0, mode="raw")
    assert raw.engine_status == "conv 0" and raw.status == "infeasible"
    assert quietly(ismev.gpd_fit, x, 0.0).status == "infeasible"


def test_fewer_than_five_exceedances_are_refused():
    x = np.array([0.5, 1.0, 3.0, 4.0])
    raw = quietly(evd.fpot, x, 0.8, mode="raw")
    assert raw.engine_status == "successful"
    for function in (evd.fpot, ismev.gpd_fit, evir.gpd):
        with pytest.raises(InputError) as caught:
            function(x, 0.8)
        assert caught.value.code == "too_few_exceedances"


@pytest.mark.parametrize(("shape", "status"), [(-1.5, "infeasible"), (-0.7, "nonregular")])
def test_shapes_where_the_asymptotics_fail(shape, status):
    x = sample(shape, 200, seed=3)
    raws = [
        quietly(ismev.gpd_fit, x, 0.0, mode="raw").status,
        quietly(ismev.gpd_fit, x, 0.0).status,
        quietly(evd.fpot, x, 0.0).status,
    ]
    assert raws == [status] * 3
    fit = quietly(evd.fpot, x, 0.0)
    assert fit.to_frame()["standard_error"].isna().all()
    raw = quietly(ismev.gpd_fit, x, 0.0, mode="raw")
    assert raw.engine_status == "conv 0"  # and not a word


def test_very_heavy_tails_where_evd_stops_with_an_error():
    x = sample(4.0, 150, seed=1)
    with pytest.raises(EngineError, match="singular"):
        evd.fpot(x, 0.0, mode="raw")
    fit = evd.fpot(x, 0.0)
    assert fit.status == "converged" and fit.param["shape"] > 3
    assert np.isfinite(fit.standard_errors["shape"]) and fit.as_given
    assert any("asked once more" in text for text in fit.conditions)


@pytest.mark.parametrize("values", [np.full(50, 3.0), np.r_[np.full(15, 3.0), 4, 5, 6, 7]])
def test_ties_are_degenerate(values):
    raw = quietly(evd.fpot, values, 2.5, mode="raw")
    assert raw.engine_status == "successful"
    assert quietly(evd.fpot, values, 2.5).status == "degenerate"
    assert quietly(ismev.gpd_fit, values, 2.5).status in ("degenerate", "failed")


# --- profiles ------------------------------------------------------------------------------------


def test_evd_s_profile_of_a_point_process_stops_and_here_does_not(rain):
    raw = evd.fpot(rain, 30.0, model="pp", npp=365, mode="raw")
    with pytest.raises(EngineError, match="unused argument"):
        evd.profile(raw)
    found = evd.profile(evd.fpot(rain, 30.0, model="pp", npp=365)).to_frame()
    assert list(found["parameter"]) == ["loc", "scale", "shape"]
    width = found["exact_upper"] - found["exact_lower"]
    assert (np.abs(found["lower"] - found["exact_lower"]) < 0.01 * width).all()
    assert (np.abs(found["upper"] - found["exact_upper"]) < 0.01 * width).all()


def test_a_profile_needs_standard_errors(rain):
    fit = evd.fpot(rain, 30.0, std_err=False)
    with pytest.raises(InputError) as caught:
        evd.profile(fit)
    assert caught.value.code == "no_standard_errors"


def test_interpolated_ends_beside_exact_ones(rain):
    raw = evd.profile(evd.fpot(rain, 30.0, mode="raw"))
    assert raw.lower["shape"] == pytest.approx(0.0141, abs=5e-5)
    found = evd.profile(evd.fpot(rain, 30.0))
    assert found.exact_lower["shape"] == pytest.approx(0.0135616, abs=1e-6)
    assert found.exact_upper["shape"] == pytest.approx(0.4154399, abs=1e-6)
    assert abs(found.lower["shape"] - found.exact_lower["shape"]) > 5e-4


def test_small_samples_leave_evd_without_a_lower_end():
    x = sample(-0.1, 20, seed=0)
    with pytest.warns(EngineWarning):
        raw = evd.profile(evd.fpot(x, 0.0, mode="raw"))
    assert np.isnan(raw.lower["shape"]) and raw.status == "not_converged"
    found = quietly(evd.profile, evd.fpot(x, 0.0))
    assert found.exact_lower["shape"] == pytest.approx(-0.46783, abs=1e-4)
    assert any("does not reach" in text for text in found.conditions)


def test_an_end_that_evd_reads_off_elsewhere():
    x = sample(-0.3, 12, seed=0)
    raw = quietly(evd.profile, evd.fpot(x, 0.0, mode="raw"))
    assert raw.lower["scale"] > raw.estimate["scale"]  # a lower end above the estimate
    found = quietly(evd.profile, evd.fpot(x, 0.0))
    assert 0 < found.exact_lower["scale"] < found.estimate["scale"] < found.exact_upper["scale"]
    assert found.status == "not_converged"
    assert any("interpolated ends are not" in text for text in found.conditions)


@pytest.mark.filterwarnings("ignore::pybridge.errors.EngineWarning")
@pytest.mark.parametrize(
    "call, data, ends",
    [
        (evd.tcplot, lambda: np.random.default_rng(2).beta(2, 3, 400), (0.3, 0.8)),
        (evd.tcplot, lambda: np.random.default_rng(0).uniform(size=300), (0.1, 0.9)),
        (ismev.gpd_fitrange, lambda: np.random.default_rng(0).uniform(size=300), (0.1, 0.9)),
    ],
)
def test_one_threshold_without_a_fit_does_not_take_the_others_with_it(call, data, ends, tmp_path):
    x = data()
    words = {} if call is evd.tcplot else {"nint": 25}
    where = (ends,) if call is evd.tcplot else ends
    found = call(x, *where, **words)
    table = found.to_frame()
    assert len(table) == 50 and found.status == "not_converged"
    assert any("each threshold was fitted for itself" in text for text in found.conditions)
    fit = evd.fpot if call is evd.tcplot else ismev.gpd_fit
    shapes = table[table["parameter"] == "shape"].set_index("threshold")
    # Away from shape -1, where there is a maximum, it is the fit of that threshold alone.
    alike = shapes[shapes["exact"].notna() & (shapes["estimate"] > -0.9)]
    assert len(alike) > 3 or ends == (0.1, 0.9)
    for threshold, row in alike.iterrows():
        alone = fit(x, threshold).to_frame().set_index("parameter").loc["shape"]
        assert row["estimate"] == pytest.approx(alone["estimate"], abs=1e-4)
    script = tmp_path / "each.R"
    found.r_script(script)
    done = subprocess.run(["Rscript", str(script)], capture_output=True, text=True, check=True)
    assert "NaN" in done.stdout or table["estimate"].notna().all()
    found.to_rds(tmp_path / "each.rds")


def test_intervals_without_standard_errors():
    for mode, error in (("raw", EngineError), ("guarded", InputError)):
        fit = evd.fpot(sample(0.1, 50), 0.0, std_err=False, mode=mode)
        with pytest.raises(error) as caught:
            evd.confint(fit)
    assert (caught.value.code, caught.value.field) == ("no_standard_errors", "object")
