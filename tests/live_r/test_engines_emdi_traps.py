"""Where emdi's own number is not to be trusted: the raw one, and what guarding makes of it."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from pybridge import datasets
from pybridge.engines import emdi
from pybridge.errors import EngineError, EngineWarning, InputError
from pybridge.r import call_many
from pybridge.smoothing.fay_herriot import fay_herriot

pytestmark = pytest.mark.r("emdi", "sae")

MEAN = ("Mean ~ cash + self_empl", "Var_Mean")
SHARE = ("MTMED ~ cash + age_ben + rent + house_allow", "Var_MTMED")


@pytest.fixture(scope="module")
def austria():
    """Districts in the order of emdi's data, which is that of its proximity matrix."""
    whole = datasets.eusilc("population_aggregates")
    return whole.merge(datasets.eusilc("sample_aggregates"), on="Domain")


@pytest.fixture(scope="module")
def neighbours(austria):
    labels = austria["Domain"]
    return pd.DataFrame(datasets.eusilc_proximity(), index=labels, columns=labels)


def both(*words, **more):
    """The same request raw and guarded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EngineWarning)
        return tuple(emdi.fh(*words, mode=mode, **more) for mode in ("raw", "guarded"))


def small(seed=0, m=20, noise=1.0, domains="a"):
    rng = np.random.default_rng(seed)
    x, v = rng.normal(size=m), rng.uniform(0.5, 1.5, m)
    y = 1 + x + np.sqrt(v) * rng.normal(size=m) * noise
    return pd.DataFrame({"d": [f"{domains}{i:02d}" for i in range(m)], "x": x, "v": v, "y": y})


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


# --------------------------------------------------------------------------- keys and the order


def errors_of(table):
    errors = np.zeros((2, 2, len(table)))
    errors[1, 1] = table["Var_Cash"]
    return errors


def test_errors_of_covariates_are_matched_to_their_domains(austria):
    table = austria.copy()
    table.loc[[0, 1], ["Mean", "Var_Mean"]] = np.nan
    last = pd.concat([table.iloc[2:], table.iloc[:2]])
    words = {"method": "me", "vardir": "Var_Mean", "domains": "Domain", "fixed": "Mean ~ Cash"}
    raw = emdi.fh(combined_data=table, Ci=errors_of(table), mode="raw", **words)
    right = emdi.fh(combined_data=last, Ci=errors_of(last), mode="raw", **words)
    assert abs(raw.model_variance / right.model_variance - 1) > 1e-4
    first = emdi.fh(combined_data=table, Ci=errors_of(table), **words)
    again = emdi.fh(combined_data=last, Ci=errors_of(last), **words)
    assert first.model_variance == pytest.approx(again.model_variance, rel=1e-12)
    np.testing.assert_allclose(first.estimate[2:], again.estimate[:-2], rtol=1e-12)
    assert list(first.domains) == list(table["Domain"])
    by_label = {
        label: matrix for label, matrix in zip(table["Domain"], np.moveaxis(errors_of(table), 2, 0))
    }
    keyed = emdi.fh(combined_data=table, Ci=dict(reversed(by_label.items())), **words)
    np.testing.assert_array_equal(keyed.estimate, first.estimate)


def test_the_measurement_error_model_depends_on_the_units_of_covariates(austria):
    words = {"method": "me", "vardir": "Var_Mean", "domains": "Domain", "fixed": "Mean ~ Cash"}
    thousands = austria.assign(
        Cash=austria["Cash"] / 4096, Var_Cash=austria["Var_Cash"] / 4096**2
    )
    found = {}
    for mode in ("raw", "guarded"):
        for name, table in (("units", austria), ("thousands", thousands)):
            found[mode, name] = emdi.fh(
                combined_data=table, Ci=errors_of(table), mode=mode, **words
            )
    raw, other = found["raw", "units"], found["raw", "thousands"]
    assert raw.model_variance == pytest.approx(42938143.2121, rel=1e-10)
    assert abs(raw.coefficients[0]) < 0.01 and other.coefficients[0] > 2000
    assert abs(raw.model_variance / other.model_variance - 1) > 0.01
    for name in ("units", "thousands"):
        fit = found["guarded", name]
        assert fit.model_variance == pytest.approx(42234540.1029528, rel=1e-8)
        assert fit.exact["model_variance"] == pytest.approx(42234540.1029528, rel=1e-12)
        np.testing.assert_allclose(
            fit.coefficients,
            found["guarded", "units"].coefficients * [1, 4096 ** (name != "units")],
            rtol=1e-6,
        )


def test_rows_sorted_by_name_no_longer_fit_the_matrix(austria, neighbours, plain_r):
    code = """
suppressMessages(library(emdi))
data(eusilcA_smpAgg); data(eusilcA_popAgg); data(eusilcA_prox)
invisible(Sys.setlocale("LC_COLLATE", "C"))
data <- combine_data(eusilcA_popAgg, "Domain", eusilcA_smpAgg, "Domain")
fit <- fh(Mean ~ cash + self_empl, "Var_Mean", data, "Domain", correlation = "spatial",
  corMatrix = eusilcA_prox)
show("rho", fit$model$variance$correlation)
"""
    words = {"method": "reml", "correlation": "spatial"}
    mixed = austria.sort_values("Domain").reset_index(drop=True)  # by code point, as in C
    assert (mixed["Domain"] != austria["Domain"]).sum() == 24
    wrong = emdi.fh(*MEAN, mixed, "Domain", corMatrix=neighbours.to_numpy(), mode="raw", **words)
    assert plain_r(code)["rho"][0] == pytest.approx(wrong.spatial_correlation, rel=1e-9)
    assert wrong.spatial_correlation == pytest.approx(-0.2506751, rel=1e-6)
    right = emdi.fh(*MEAN, austria, "Domain", corMatrix=neighbours.to_numpy(), mode="raw", **words)
    assert right.spatial_correlation == pytest.approx(-0.322272733286, rel=1e-9)
    shuffled = neighbours.sample(frac=1, random_state=1).sample(frac=1, axis=1, random_state=2)
    keyed = emdi.fh(*MEAN, mixed, "Domain", corMatrix=shuffled, **words)
    assert keyed.spatial_correlation == pytest.approx(-0.3222727, rel=1e-4)
    assert not hasattr(emdi, "combine_data")


def test_spatial_tests_match_labels(austria, neighbours):
    mixed = austria.sort_values("Domain")
    shuffled = neighbours.sample(frac=1, random_state=1).sample(frac=1, axis=1, random_state=2)
    by_label = emdi.spatialcor_tests(mixed.set_index("Domain")["Mean"], shuffled)
    assert by_label.values[1] == pytest.approx(0.6238681, rel=1e-6)
    wrong = emdi.spatialcor_tests(mixed["Mean"], neighbours.to_numpy(), mode="raw")
    assert wrong.values[1] > 0.8
    with pytest.raises(InputError, match="labels"):
        emdi.spatialcor_tests(mixed["Mean"].to_numpy(), neighbours)


def test_a_matrix_without_labels_is_refused(austria, neighbours):
    words = {"method": "reml", "correlation": "spatial"}
    with pytest.raises(InputError) as caught:
        emdi.fh(*MEAN, austria, "Domain", corMatrix=neighbours.to_numpy(), **words)
    assert caught.value.code == "unlabelled_proximity" and "raw" in caught.value.hint


def test_domains_without_estimate_are_cut_from_the_matrix(austria, neighbours):
    table = austria.copy()
    table.loc[[3, 50], ["Mean", "Var_Mean"]] = np.nan
    fit = emdi.fh(*MEAN, table, "Domain", correlation="spatial", corMatrix=neighbours, MSE=True)
    kept = [k for k in range(94) if k not in (3, 50)]
    cut = neighbours.iloc[kept, kept]
    cut = cut.div(cut.sum(axis=1), axis=0)
    alone = emdi.fh(*MEAN, table.iloc[kept], "Domain", correlation="spatial", corMatrix=cut)
    assert fit.spatial_correlation == pytest.approx(alone.spatial_correlation, rel=1e-9)
    assert np.isfinite(fit.mse).all() and (fit.mse[[3, 50]] > fit.model_variance).all()
    said = " ".join(fit.conditions)
    assert "cut from W" in said and "scaled to add up to 1" in said


def test_the_order_of_rows_matters_little(austria):
    mixed = austria.sort_values("Domain")
    for mode in ("raw", "guarded"):
        fits = [emdi.fh(*MEAN, t, "Domain", method="ml", mode=mode) for t in (austria, mixed)]
        assert fits[0].model_variance == pytest.approx(fits[1].model_variance, rel=1e-5)


# ------------------------------------------------------------------------------------- bootstraps


def test_replicates_that_fail_are_counted(austria, neighbours):
    words = {"correlation": "spatial", "MSE": True, "mse_type": "spatialparboot", "B": 3}
    part = austria.iloc[:20]
    matrix = neighbours.iloc[:20, :20]
    good = emdi.fh(*MEAN, part, "Domain", corMatrix=matrix, **words)
    assert good.replicates[1] == 3
    short = emdi.fh(*MEAN, part, "Domain", corMatrix=matrix, maxit=2, **words)
    assert short.engine_status == short.status == "not_converged"
    assert short.replicates[0] < 3
    assert any("dropped" in line for line in short.conditions)


def test_the_random_stream_of_r_is_put_back(austria):
    def draws():
        return call_many("selftest_random", [{"seed": None}])[0].value["draws"]

    call_many("selftest_random", [{"seed": 5}])
    before = draws()
    emdi.fh(*MEAN, austria.iloc[:20], "Domain", B=(2, 3), mode="raw")
    np.testing.assert_array_equal(draws(), before)


def test_seeds_give_the_same_and_other_numbers():
    words = {"transformation": "log", "backtransformation": "bc_crude"}
    table = small(seed=2)
    table["y"] = np.exp(table["y"] / 4)
    table["v"] = (table["y"] * 0.2) ** 2
    table["n"] = 50.0
    fits = [
        emdi.fh("y ~ x", "v", table, "d", B=(2, 5), seed=seed).criteria["AICb1"]
        for seed in (123, 123, 7)
    ]
    assert fits[0] == fits[1] != fits[2]
    assert emdi.fh("y ~ x", "v", table, "d", **words).provenance.seed == 123


def test_the_tuning_constant_is_heard(austria):
    part = austria.iloc[:30]
    found = [emdi.fh(*MEAN, part, "Domain", method="reblup", k=k).model_variance for k in (1, 3)]
    assert abs(found[0] / found[1] - 1) > 0.01


def test_robust_fits_depend_on_the_units(austria):
    large = austria.assign(Mean=austria["Mean"] * 1024, Var_Mean=austria["Var_Mean"] * 1024.0**2)
    words = {"vardir": "Var_Mean", "domains": "Domain", "fixed": MEAN[0], "method": "reblup"}
    raw = emdi.fh(combined_data=large, mode="raw", **words).model_variance / 1024**2
    guarded = emdi.fh(combined_data=large, **words).model_variance / 1024**2
    same = emdi.fh(combined_data=austria, **words).model_variance
    assert raw < 1 and guarded == pytest.approx(same, rel=1e-12)
    assert guarded == pytest.approx(1321242, rel=1e-3)  # with tol = 1e-12


@pytest.mark.parametrize("method", ["reblup", "me"])
def test_the_limit_of_iterations_is_passed_over_in_silence(austria, method):
    words = {"fixed": "Mean ~ Cash", "vardir": "Var_Mean", "domains": "Domain", "maxit": 1}
    more = {"Ci": errors_of(austria)} if method == "me" else {}
    raw, guarded = both(combined_data=austria, method=method, **words, **more)
    assert raw.status == "converged" and raw.engine_status == "no flag"
    assert guarded.status == "not_converged"
    assert abs(raw.model_variance / guarded.exact["model_variance"] - 1) > 0.05
    assert any("emdi stopped at" in line or "emdi ended at" in line for line in guarded.conditions)


# ------------------------------------------------------------------------------- after the fit


def test_raking_needs_shares_that_add_up_to_one(austria):
    fit = emdi.fh(*MEAN, austria, "Domain", method="ml")
    share = austria.set_index("Domain")["ratio_n"]
    raw = emdi.benchmark(fit, 20140.09, 2 * share, mode="raw")
    assert abs(float(share @ raw.benchmarked) - 20140.09) > 10000
    guarded = emdi.benchmark(fit, 20140.09, (2 * share).sample(frac=1, random_state=3))
    assert guarded.achieved == pytest.approx(20140.09, rel=1e-12)
    assert any("added up to 2" in line for line in guarded.conditions)
    with pytest.raises(InputError, match="far from"):
        emdi.benchmark(fit, 20140.09 * 94, share * 94)


def test_compare_mixes_scales_and_divides_by_zero(austria):
    words = {"transformation": "log", "backtransformation": "bc_crude"}
    fit = emdi.fh(*MEAN, austria, "Domain", MSE=True, **words)
    found = emdi.compare(fit)
    mean = fit.linear - fit.random_effects
    assert found.correlation == pytest.approx(np.corrcoef(mean, np.log(austria["Mean"]))[0, 1])
    assert abs(found.correlation - found.engine_correlation) > 1e-3
    assert found.conditions
    assert found.degrees_of_freedom == 94
    table = small()
    table.loc[0, "v"] = 0.0
    known = emdi.fh("y ~ x", "v", table, "d", MSE=True)
    found = emdi.compare(known)
    assert np.isnan(found.engine_correlation) and 0 < found.correlation < 1


def test_step_has_the_criteria_of_the_fit_and_method_ml(austria):
    fit = emdi.fh(*MEAN, austria, "Domain", method="ml")
    with pytest.raises(InputError) as caught:
        emdi.step(fit, criteria="AICc")
    assert caught.value.code == "missing_criterion" and "B=(50, 50)" in caught.value.hint
    with pytest.raises(InputError) as caught:
        emdi.step(emdi.fh(*MEAN, austria, "Domain"))
    assert caught.value.got == "reml"
    same = emdi.step(fit)
    assert same.fixed == "Mean ~ cash + self_empl" and same.start == same.end
    wide = emdi.step(
        fit,
        scope={"lower": "~ 1", "upper": "~ cash + self_empl + rent"},
        direction="both",
        criteria="BIC",
        combined_data=austria,
        trace=True,
    )
    assert "rent" in wide.fixed and wide.end < wide.start and wide.path
    assert wide.fit.criteria["BIC"] == wide.end


def units(missing=()):
    table = datasets.eusilc("sample").iloc[:150].copy()
    table.loc[table.index[list(missing)], "eqIncome"] = np.nan
    return table


def test_direct_refuses_missing_outcomes():
    words = {"y": "eqIncome", "smp_domains": "district", "weights": "weight", "threshold": 1e4}
    with pytest.warns(EngineWarning, match="only quantiles"):
        raw = emdi.direct(smp_data=units([3]), mode="raw", **words)
    assert np.isnan(raw.estimate[:, 0]).any()
    with pytest.raises(InputError) as caught:
        emdi.direct(smp_data=units([3]), **words)
    assert caught.value.code == "missing_values" and "na_rm" in caught.value.expected
    found = emdi.direct(smp_data=units([3]), na_rm=True, **words)
    assert np.isfinite(found.estimate[:, 0]).all() and found.n_labelled.sum() == 149


def test_direct_with_one_unit_and_with_negative_incomes():
    table = units()
    table["eqIncome"] = table["eqIncome"].to_numpy(copy=True)
    first = table["district"].iloc[0]
    table = pd.concat([table, table.iloc[[0]].assign(district="alone")])
    table.loc[table["district"] == first, "eqIncome"] -= 25000.0
    words = {"y": "eqIncome", "smp_domains": "district", "threshold": 1e4, "var": True, "B": 3}
    with pytest.warns(EngineWarning, match="at least one bootstrap failed") as caught:
        raw = emdi.direct(smp_data=table, mode="raw", **words)
        guarded = emdi.direct(smp_data=table, **words)
    assert {warning.filename for warning in caught} == {__file__}
    assert guarded.replicates.min() < 3
    k, gini = list(raw.domains).index("alone"), raw.names.index("Gini")
    assert raw.variance[k, 0] < 1e-6
    alone = list(guarded.domains).index("alone")
    assert np.isnan(guarded.variance[alone]).all() and guarded.domain_status[alone] == "single_unit"
    wrong = raw.estimate[list(raw.domains).index(first), gini]
    assert not 0 <= wrong <= 1
    assert np.isnan(guarded.estimate[list(guarded.domains).index(first), gini])
    assert list(guarded.domains) == list(dict.fromkeys(table["district"]))


def test_direct_does_not_use_its_design():
    words = {"y": "eqIncome", "smp_domains": "district", "weights": "weight", "threshold": 1e4}
    plain = emdi.direct(smp_data=units(), var=True, B=3, **words)
    with_design = emdi.direct(smp_data=units(), var=True, B=3, design="state", **words)
    np.testing.assert_array_equal(plain.variance, with_design.variance)
    assert any("does not use it" in line for line in with_design.conditions)
