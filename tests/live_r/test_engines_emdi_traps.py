"""Where emdi's own number is not to be trusted: the raw one, and what guarding makes of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from pybridge import datasets
from pybridge.engines import emdi
from pybridge.errors import EngineError, EngineWarning, InputError
from pybridge.smoothing.fay_herriot import fay_herriot
from tests.live_r.emdi_tables import MEAN, both, small


pytestmark = pytest.mark.r("emdi", "sae")


SHARE = ("MTMED ~ cash + age_ben + rent + house_allow", "Var_MTMED")


@pytest.fixture(scope="module")
def austria():
    """Districts in the order of emdi's data, which is that of its proximity matrix."""
    whole = datasets.eusilc("population_aggregates")
    return whole.merge(datasets.eusilc("sample_aggregates"), on="Domain")


# --------------------------------------------------------------------------- back-transformations


@pytest.mark.parametrize("method", ["reml", "ml"])
def test_logit_correction_stops_at_a_variance_of_zero(austria, method):
    words = {"method": method, "transformation": "logit", "backtransformation": "bc"}
    with pytest.raises(EngineError, match="non-finite function value"):
        emdi.fh(*SHARE, austria, "Domain", mode="raw", **words)
    fit = emdi.fh(*SHARE, austria, "Domain", MSE=True, mse_type="boot", B=3, **words)
    assert any("stops with an error" in line for line in fit.conditions)
    spread = np.sqrt(fit.model_variance * (1 - fit.shrinkage))
    exact = [
        quad(lambda t: expit(mean + sd * t) * norm.pdf(t), -9, 9, epsabs=1e-13)[0]
        for mean, sd in zip(fit.linear, spread)
    ]
    np.testing.assert_allclose(fit.estimate, exact, rtol=1e-10)
    assert (fit.mse >= 0).all() and "bias_corrected" not in fit.replaced


def test_logit_correction_of_emdi_is_close_where_it_works(austria):
    inside = austria[austria["Var_MTMED"] > 0]
    words = {"transformation": "logit", "backtransformation": "bc"}
    raw, guarded = both(*SHARE, inside, "Domain", **words)
    np.testing.assert_allclose(raw.estimate, guarded.estimate, rtol=1e-4)
    np.testing.assert_array_equal(guarded.replaced["bias_corrected"], raw.estimate)


def test_arcsin_correction_of_emdi_misses_a_narrow_density(austria):
    table = austria.assign(large=1e5)
    words = {"transformation": "arcsin", "backtransformation": "bc", "eff_smpsize": "large"}
    raw, guarded = both(*SHARE, table, "Domain", **words)
    near = (table["MTMED"] > 0.25) & (table["MTMED"] < 0.35)
    assert near.sum() > 10 and (raw.estimate[near] < 1e-3).any()
    variance = guarded.model_variance * (1 - guarded.shrinkage)
    closed = (1 - np.exp(-2 * variance) * np.cos(2 * guarded.linear)) / 2
    np.testing.assert_allclose(guarded.estimate, closed, rtol=1e-13, atol=1e-15)
    assert np.abs(guarded.estimate[near] - table.loc[near, "MTMED"]).max() < 0.05
    np.testing.assert_array_equal(guarded.replaced["bias_corrected"], raw.estimate)
    assert any("closed form" in line for line in guarded.conditions)


def test_arcsin_bootstrap_takes_the_closed_form_too(austria):
    words = {"transformation": "arcsin", "backtransformation": "bc", "eff_smpsize": "n"}
    raw, guarded = both(
        *SHARE, austria, "Domain", method="ml", MSE=True, mse_type="boot", B=4, **words
    )
    # A replicate that misses the density is off by the whole share.
    assert raw.mse.max() > 0.1 and guarded.mse.max() < 0.05


def test_arcsin_without_estimate_is_truncated(austria):
    table = austria.copy()
    table.loc[austria["Domain"] == "Mödling", ["MTMED", "Var_MTMED"]] = np.nan
    words = {"transformation": "arcsin", "backtransformation": "bc", "eff_smpsize": "n"}
    raw, guarded = both(*SHARE, table, "Domain", method="ml", **words)
    there = np.flatnonzero(guarded.out_of_sample)
    assert guarded.linear[there] > np.pi / 2
    assert raw.estimate[there] < 0.999 and guarded.estimate[there] == 1.0
    assert guarded.replaced["estimate"][there] == raw.estimate[there]


def test_jackknife_takes_the_square_of_the_derivative():
    x = np.linspace(0, 3, 14)
    rng = np.random.default_rng(2)
    share = np.sin(np.clip(0.3 + 0.5 * x + 0.05 * rng.normal(size=14), 0, np.pi / 2)) ** 2
    table = pd.DataFrame({"d": [f"a{i}" for i in range(14)], "x": x, "n": 40.0})
    table["p"] = np.clip(np.round(share * 40) / 40, 0, 1)
    table["v"] = np.maximum(table["p"] * (1 - table["p"]), 0.001) / 40
    words = {"transformation": "arcsin", "backtransformation": "naive", "eff_smpsize": "n"}
    raw, guarded = both("p ~ x", "v", table, "d", MSE=True, mse_type="jackknife", **words)
    # Beyond pi/2 the derivative is negative, and so is emdi's mean squared error.
    slope = np.sin(2 * guarded.linear)
    assert list(raw.mse < 0) == list(slope < 0) and (slope < 0).any()
    assert set(raw.domain_status[raw.mse < 0]) == {"negative_mse"}
    np.testing.assert_allclose(guarded.mse, raw.mse * slope, rtol=1e-12)
    np.testing.assert_array_equal(guarded.replaced["mse"], raw.mse)
    assert any("square of the derivative" in line for line in guarded.conditions)


def test_a_jackknife_may_be_negative_and_is_not_clipped():
    x = np.linspace(0, 3, 14)
    rng = np.random.default_rng(5)
    share = np.sin(np.clip(0.3 + 0.5 * x + 0.05 * rng.normal(size=14), 0, np.pi / 2)) ** 2
    table = pd.DataFrame({"d": [f"a{i}" for i in range(14)], "x": x, "n": 40.0})
    table["p"] = np.clip(np.round(share * 40) / 40, 0, 1)
    table["v"] = np.maximum(table["p"] * (1 - table["p"]), 0.001) / 40
    words = {"transformation": "arcsin", "backtransformation": "naive", "eff_smpsize": "n"}
    fit = emdi.fh("p ~ x", "v", table, "d", MSE=True, mse_type="jackknife", **words)
    assert (fit.mse < 0).sum() >= 2 and "negative_mse" in set(fit.domain_status)
    assert np.isnan(fit.standard_error[fit.mse < 0]).all()
    assert any("negative mean squared errors" in line for line in fit.conditions)


def test_transformed_estimates_have_intervals_of_our_own(austria):
    raw, guarded = both(
        *MEAN, austria, "Domain", transformation="log", backtransformation="bc_crude"
    )
    for fit in (raw, guarded):
        assert any("gives no intervals" in line for line in fit.conditions)
        inside = (fit.intervals[:, 0] < fit.estimate) & (fit.estimate < fit.intervals[:, 1])
        assert inside.all()
        # Not symmetric: normal on the scale of the logarithm.
        half = np.log(fit.intervals)
        np.testing.assert_allclose(half.mean(axis=1), fit.linear, rtol=1e-12)


# ------------------------------------------------------------------------------- the variance


def test_the_tolerance_is_absolute():
    milk = datasets.milk().assign(d=[f"s{i}" for i in range(43)])
    milk["y"], milk["v"] = 0.01 * milk["yi"], (0.01 * milk["SD"]) ** 2
    raw, guarded = both("y ~ as.factor(MajorArea)", "v", milk, "d")
    assert raw.model_variance == pytest.approx(0.0279e-4, rel=5e-3)
    assert guarded.model_variance == pytest.approx(0.0185503347628e-4, rel=1e-5)
    assert guarded.exact["model_variance"] == pytest.approx(0.0185503347628e-4, rel=1e-9)
    assert guarded.request.unit < 1 and guarded.status == "converged"
    native = fay_herriot(
        "y ~ C(MajorArea)", milk, variance="v", domain="d", engine="native", method="REML"
    )
    np.testing.assert_allclose(guarded.estimate, native.fit.estimate, rtol=1e-6)
    assert guarded.criteria["loglike"] == pytest.approx(native.log_likelihood, abs=1e-6)


def test_the_warning_about_the_interval_is_false_there_and_missing_elsewhere(austria):
    milk = datasets.milk().assign(d=[f"s{i}" for i in range(43)])
    milk["y"], milk["v"] = 0.01 * milk["yi"], (0.01 * milk["SD"]) ** 2
    with pytest.warns(EngineWarning, match="interval limit") as caught:
        emdi.fh("y ~ as.factor(MajorArea)", "v", milk, "d", mode="raw")
    assert [warning.filename for warning in caught] == [__file__]
    assert emdi.fh("y ~ as.factor(MajorArea)", "v", milk, "d").status == "converged"  # no warning
    words = {"transformation": "arcsin", "backtransformation": "naive", "eff_smpsize": "n"}
    raw, guarded = both(*SHARE, austria, "Domain", method="ml", **words)
    assert raw.status == "converged" and 0 < raw.model_variance < 1e-4
    assert not any("interval limit" in line for line in raw.conditions)
    assert guarded.status == "boundary" and guarded.exact["model_variance"] == 0.0
    raw, guarded = both(*SHARE, austria, "Domain", method="reml", **words)
    assert guarded.exact["model_variance"] == pytest.approx(1.9071e-4, rel=1e-4)
    assert any("stopped at" in line for line in guarded.conditions)


def test_a_variance_of_zero_is_its_own_test():
    table = small(seed=3, noise=0.1)
    raw, guarded = both("y ~ x", "v", table, "d", method="ml")
    assert raw.model_variance > 0 and guarded.model_variance > 0
    assert guarded.status == "boundary" and guarded.exact["model_variance"] == 0.0


@pytest.mark.parametrize("method", ["amrl_yl", "ampl_yl"])
def test_products_of_densities_underflow(austria, method):
    exact = {"amrl_yl": 1464714.14, "ampl_yl": 1371207.08}[method]
    raw, guarded = both(*MEAN, austria, "Domain", method=method)
    assert raw.model_variance == pytest.approx(np.var(austria["Mean"], ddof=1), rel=1e-4)
    assert guarded.model_variance == pytest.approx(exact, rel=1e-5)
    assert guarded.status == "converged" and guarded.exact["shortfall"] < 1e-6


def test_products_of_densities_of_many_domains_are_rescaled_further():
    table = small(seed=1, m=190)
    table[["y", "v"]] = table[["y", "v"]] * [30.0, 900.0]
    raw, guarded = both("y ~ x", "v", table, "d", method="amrl_yl")
    assert guarded.model_variance == pytest.approx(guarded.exact["model_variance"], rel=5e-3)
    assert guarded.status == "converged"
    assert abs(raw.model_variance / guarded.exact["model_variance"] - 1) > 0.5


def test_an_adjusted_mse_may_be_negative():
    for mode in both("y ~ x", "v", small(seed=1), "d", method="amrl", MSE=True):
        assert (mode.mse < 0).any()
        assert "negative_mse" in set(mode.domain_status)
        assert any("negative mean squared errors" in line for line in mode.conditions)
        assert mode.to_frame()["standard_error"].isna().any()


def test_the_maximum_may_lie_beyond_the_default_interval():
    table = small(m=12)
    table["y"] = 5.0 + 0.01 * table["x"]
    raw, guarded = both("y ~ 1", "v", table, "d", method="amrl")
    upper = float(np.var(table["y"], ddof=1))
    assert raw.model_variance <= upper < guarded.exact["model_variance"]
    assert guarded.request.arguments["interval"][1] > guarded.exact["model_variance"]
    assert any("beyond emdi's interval" in line for line in guarded.conditions)
    assert guarded.status == "converged"
    assert guarded.model_variance == pytest.approx(guarded.exact["model_variance"], rel=1e-4)


def test_an_interval_that_is_too_narrow_is_not_convergence():
    with pytest.warns(EngineWarning, match="interval limit"):
        fit = emdi.fh("y ~ x", "v", small(noise=3.0), "d", interval=(0.0, 1.0))
    assert fit.status == "not_converged" and fit.model_variance == pytest.approx(1.0, abs=0.01)
    assert any("interval was (0.0, 1.0)" in line for line in fit.conditions)
    assert fit.exact["shortfall"] > 0.1


# --------------------------------------------------------------- domains without a direct estimate


def test_the_bias_of_ml_has_the_wrong_sign_outside(austria):
    table = austria.copy()
    table.loc[[3, 50], ["Mean", "Var_Mean"]] = np.nan
    raw, guarded = both(*MEAN, table, "Domain", method="ml", MSE=True)
    native = fay_herriot(
        MEAN[0], table, variance=MEAN[1], domain="Domain", engine="native", method="ML"
    )
    there = [3, 50]
    np.testing.assert_allclose(guarded.mse, native.fit.mse, rtol=1e-5)
    assert (raw.mse[there] < 0.96 * native.fit.mse[there]).all()
    np.testing.assert_allclose(guarded.replaced["mse"][there], raw.mse[there], rtol=1e-5)
    # The correction is of the bias only: both stand at the same distance from s² + h.
    middle = (raw.mse + guarded.mse)[there] / 2
    x = np.column_stack([np.ones(94), table["cash"], table["self_empl"]])[there]
    h = np.einsum("ij,jk,ik->i", x, guarded.coefficient_covariance, x)
    np.testing.assert_allclose(middle, guarded.model_variance + h, rtol=1e-5)


def test_what_emdi_leaves_empty_outside_is_filled(austria):
    table = austria.copy()
    table.loc[[3, 50], ["Mean", "Var_Mean"]] = np.nan
    native = fay_herriot(MEAN[0], table, variance=MEAN[1], domain="Domain", engine="native")
    for words in ({"method": "amrl"}, {"method": "reblup", "mse_type": "pseudo"}):
        raw, guarded = both(*MEAN, table, "Domain", MSE=True, **words)
        assert np.isnan(raw.mse[[3, 50]]).all()
        np.testing.assert_allclose(
            guarded.estimate[[3, 50]], native.fit.estimate[[3, 50]], rtol=0.02
        )
        np.testing.assert_allclose(guarded.mse[[3, 50]], native.fit.mse[[3, 50]], rtol=0.2)
        assert any("domains without a direct estimate" in line for line in guarded.conditions)
    raw, guarded = both(
        *MEAN, table, "Domain", method="ml", transformation="log", backtransformation="bc_sm"
    )
    assert np.isnan(raw.estimate[[3, 50]]).all()
    there = guarded.linear[[3, 50]] + guarded.model_variance / 2
    np.testing.assert_allclose(guarded.estimate[[3, 50]], np.exp(there), rtol=1e-12)


def test_a_domain_outside_has_the_levels_of_all():
    table = small().assign(group=["one", "two"] * 10)
    table.loc[3, ["y", "v"]] = np.nan
    with pytest.raises(EngineError, match="contrasts"):
        emdi.fh("y ~ x + group", "v", table, "d", mode="raw")
    fit = emdi.fh("y ~ x + group", "v", table, "d", MSE=True)
    native = fay_herriot("y ~ x + C(group)", table, variance="v", domain="d", engine="native")
    np.testing.assert_allclose(fit.estimate, native.fit.estimate, rtol=1e-6)


def test_a_term_that_needs_all_rows_is_refused():
    table = small()
    table.loc[[3, 7], ["y", "v"]] = np.nan
    raw = emdi.fh("y ~ scale(x)", "v", table, "d", mode="raw")
    right = emdi.fh("y ~ x", "v", table, "d")
    assert np.abs(raw.estimate - right.estimate)[[3, 7]].max() > 0.01
    with pytest.raises(InputError, match="depend on which rows"):
        emdi.fh("y ~ scale(x)", "v", table, "d")
