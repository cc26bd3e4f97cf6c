"""hbsae::fSAE.Area under its own name: bits of plain R, the trap of rows by position, labels."""

from __future__ import annotations

import json
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge import datasets
from pybridge.engines import hbsae
from pybridge.engines._hbsae_area import METHODS
from pybridge.errors import EngineError, EngineWarning, InputError

pytestmark = pytest.mark.r("hbsae", "sae")

ODD = ["가 나", 'a "b"', "c\\d", "NA", "007", "if", "🌱", "line\nbreak", "x'y", "é", "", "plain"]
FORMULA = "~ as.factor(MajorArea)"


@pytest.fixture(scope="module")
def milk():
    table = datasets.milk()
    table["v"] = table["SD"] ** 2
    return table


@pytest.fixture(scope="module")
def gaps(milk):
    table = milk.copy()
    table.loc[[3, 11], "yi"] = np.nan
    return table.sample(frac=1.0, random_state=2)


def asked(table, X=FORMULA, **words):
    return hbsae.fSAE_Area(table, "yi", "v", X, domain="SmallArea", **words)


def matrix(milk):
    table = pd.get_dummies(milk["MajorArea"], prefix="major").astype(float)
    return table.set_axis(milk["SmallArea"])


def test_raw_is_r_to_the_bit_with_every_method(milk, plain_r):
    code = """
    data(milk, package = "sae"); area <- milk$SmallArea
    X <- model.matrix(~ as.factor(MajorArea), milk); rownames(X) <- area
    y <- setNames(milk$yi, area); v <- setNames(milk$SD^2, area)
    shown <- function(name, ...) {
      fit <- hbsae::fSAE.Area(y, v, X, silent = TRUE, ...)
      show(name, hbsae::EST(fit)); show(name, hbsae::MSE(fit)); show(name, fit$beta)
    }
    for (m in c("HB", "hybrid", "REML", "synthetic", "survreg")) shown(m, method = m)
    shown("BLUP", method = "BLUP", lambda0 = 0.02)
    shown("tight", rel.int.tol = 1e-7)
    shown("prior", prior = function(x) 1 / sqrt(x))
    shown("informative", beta0 = rep(1, 4), Omega0 = diag(4) * 10)
    shown("less", CV = FALSE, full.cov = FALSE)
    """
    plain = plain_r(code)
    calls = {method: {"method": method} for method in METHODS}
    calls["BLUP"]["lambda0"] = 0.02
    calls["tight"] = {"rel_int_tol": 1e-7}
    calls["prior"] = {"prior": "function(x) 1 / sqrt(x)"}
    calls["informative"] = {"beta0": np.ones(4), "Omega0": 10.0 * np.eye(4)}
    calls["less"] = {"CV": False, "full_cov": False}
    assert set(calls) == set(plain)
    for name, words in calls.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EngineWarning)
            fit = asked(milk, mode="raw", **words)
        ours = [*fit.estimate, *fit.mse, *fit.coefficients["estimate"]]
        np.testing.assert_array_equal(ours, plain[name], err_msg=name)


def test_a_guarded_fit_is_its_script_to_the_bit(gaps, plain_r, tmp_path):
    fit = asked(gaps)
    kept = fit.to_rds(tmp_path / "fit.rds")
    code = f'{fit.r_script()}\nshow("name", result$domain); show("estimate", result$estimate)\n'
    code += f'show("mse", result$mse); x <- readRDS("{kept}"); show("kept", hbsae::EST(x))\n'
    code += "invisible(capture.output(print(summary(x))))\n"
    plain = plain_r(code)
    ours = fit.to_frame().set_index(fit.domains.astype(str)).loc[plain["name"]]
    np.testing.assert_array_equal(ours["estimate"], plain["estimate"])
    np.testing.assert_array_equal(ours["mse"], plain["mse"])
    np.testing.assert_array_equal(ours["estimate"], plain["kept"])


def test_rows_of_x_are_taken_by_position_raw_and_by_label_guarded(milk):
    X = matrix(milk)
    right = asked(milk, X)
    raw = asked(milk, X.iloc[::-1], mode="raw")
    # As many rows as direct estimates: R never looks at their names.
    frame = raw.to_frame().set_index("domain")["estimate"]
    assert frame[1] != pytest.approx(right.estimate[0], abs=0.1)
    shuffled = asked(milk, X.iloc[::-1])
    pd.testing.assert_frame_equal(shuffled.to_frame(), right.to_frame())
    # The same formula and matrix are the same model, with another base.
    same = asked(milk)
    np.testing.assert_allclose(same.estimate, right.estimate, rtol=1e-6)


def test_r_names_no_rows_and_the_exact_posterior_stands_beside(milk, gaps):
    fit = asked(milk)
    assert fit.status == "converged" and fit.exact["apart"] < 1e-4
    # The values of the package's specification, by exact quadrature.
    assert fit.exact["model_variance_mean"] == pytest.approx(0.0226582287, abs=1e-9)
    assert fit.exact["estimate"][0] == pytest.approx(1.0263841669, abs=1e-9)
    assert fit.exact["mse"][0] == pytest.approx(0.0135203904, abs=1e-9)
    assert fit.model_variance == pytest.approx(0.0226586, abs=5e-7)
    native = pb.fay_herriot(
        "yi ~ C(MajorArea)", milk, variance="v", domain="SmallArea", engine="hbsae", method="bayes"
    )
    np.testing.assert_allclose(native.fit.estimate, fit.estimate, rtol=1e-9)
    some = asked(gaps)
    assert list(some.domains) == list(gaps["SmallArea"])
    outside = some.domain_status == "out_of_sample"
    assert outside.sum() == 2 and np.isnan(some.direct[outside]).all()
    assert np.isfinite(some.estimate[outside]).all() and len(some.effects) == 41
    reml = asked(milk, method="REML")
    assert abs(reml.exact["shortfall"]) < 1e-6 and reml.status == "converged"


def test_what_r_leaves_is_not_its_integral_s(milk):
    # fSAE.Area fixes the sampling variances' scale by a prior of 10^4 observations an area only:
    # its posterior mean is not 1, and a tighter integral does not mend what that leaves.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EngineWarning)
        fits = [asked(milk, rel_int_tol=tolerance) for tolerance in (0.1, 1e-8)]
    for fit in fits:
        assert 1e-6 < 1 - fit.number("sigma2.hat") < 1e-4
        assert 1e-6 < fit.exact["apart"] < 1e-4
    assert fits[0].exact["apart"] == pytest.approx(fits[1].exact["apart"], rel=1e-6)


def test_failures_are_statuses_guarded_and_errors_raw(milk):
    words = {"prior": "function(x) exp(x^2)"}  # of which the posterior has no integral
    with pytest.raises(EngineError, match="non-finite|diverg"):
        asked(milk, mode="raw", **words)
    fit = asked(milk, **words)
    assert (fit.status, fit.engine_status) == ("failed", "error") and np.isnan(fit.mse).all()
    assert any("non-finite" in line or "diverg" in line for line in fit.conditions)


@pytest.mark.parametrize("code", ["function(x) 1/x +", "function(x) 1/x; 3", "function(x) )"])
def test_a_prior_that_is_no_function_is_refused(milk, code):
    with pytest.raises(InputError) as caught:
        asked(milk, prior=code)
    assert (caught.value.code, caught.value.field) == ("bad_function", "prior")


@pytest.mark.parametrize("code", ["function(x) stop('no density')", "function(x) 'a'"])
def test_a_prior_that_is_no_density_is_an_error(milk, code):
    for mode in ("raw", "guarded"):
        with pytest.raises(EngineError, match="no density|non-numeric"):
            asked(milk, prior=code, mode=mode)


def test_labels_come_back_and_a_table_of_covariates_may_have_more_areas(milk):
    draw = np.random.default_rng(1)
    table = pd.DataFrame({"name": ODD, "x": draw.normal(size=12)})
    table["y"], table["v"] = table["x"] + draw.normal(size=12), 0.5
    fit = hbsae.fSAE_Area(table, "y", "v", "~ x", domain="name")
    assert list(fit.domains) == ODD and fit.r_script().isascii()
    X = pd.DataFrame({"one": 1.0, "x": [*table["x"], 0.3]}, index=[*ODD, "another"])
    with pytest.raises(InputError) as caught:
        hbsae.fSAE_Area(table, "y", "v", X, domain="name")
    assert caught.value.code == "empty_label"
    table, X = table.replace({"name": {"": "e"}}), X.rename(index={"": "e"})
    more = hbsae.fSAE_Area(table, "y", "v", X.iloc[::-1], domain="name")
    assert list(more.domains) == [*(label or "e" for label in ODD), "another"]
    np.testing.assert_allclose(more.estimate[:12], fit.estimate, rtol=1e-6)
    assert more.domain_status[-1] == "out_of_sample"
    with pytest.raises(InputError) as caught:
        hbsae.fSAE_Area(table, "y", "v", X.iloc[1:], domain="name")
    assert caught.value.code == "unknown_domain"


def test_the_record_is_like_any_other(milk):
    fit = asked(milk)
    assert pickle.loads(pickle.dumps(fit)) == fit and asked(milk) == fit
    assert "fSAE.Area" in fit.summary() and fit.provenance.packages["hbsae"]
    assert json.loads(json.dumps(fit.to_dict(), allow_nan=False))["status"] == "converged"


def test_weights_of_the_cross_validation_and_the_data_in_the_object(gaps, plain_r, tmp_path):
    weights = np.linspace(1.0, 3.0, len(gaps))
    table = gaps.assign(weight=weights)
    fits = [asked(table, CVweights=given, keep_data=True) for given in ("weight", weights)]
    assert fits[0].value["CV"][0] == fits[1].value["CV"][0] != asked(table).value["CV"][0]
    kept = fits[0].to_rds(tmp_path / "fit.rds")
    code = f"{fits[0].r_script()}\nx <- readRDS('{kept}')\n"
    code += 'show("CV", c(fit$CV, x$CV)); show("data", !is.null(x$xs))\n'
    plain = plain_r(code)
    assert plain["CV"] == 2 * list(fits[0].value["CV"]) and plain["data"] == [1.0]
    for wrong in (weights[1:], -weights, 0 * weights):
        with pytest.raises(InputError) as caught:
            asked(table, CVweights=wrong)
        assert caught.value.code == "bad_weight"


STARTS = {
    "HB": {"lambda0": 0.5},
    "hybrid": {"lambda0": 0.5, "abs_tol": 1e-12, "stop_on_error": False},
    "REML": {"lambda0": 5.0},
    "BLUP": {"lambda0": 0.0},
}


def test_a_start_and_integrate_s_arguments_are_r_s(milk, plain_r):
    code = """
    data(milk, package = "sae"); area <- milk$SmallArea
    X <- model.matrix(~ as.factor(MajorArea), milk); rownames(X) <- area
    y <- setNames(milk$yi, area); v <- setNames(milk$SD^2, area)
    shown <- function(name, ...) {
      fit <- hbsae::fSAE.Area(y, v, X, silent = TRUE, ...)
      show(name, hbsae::EST(fit)); show(name, hbsae::MSE(fit))
    }
    shown("HB", method = "HB", lambda0 = 0.5)
    shown("hybrid", method = "hybrid", lambda0 = 0.5, abs.tol = 1e-12, stop.on.error = FALSE)
    shown("REML", method = "REML", lambda0 = 5)
    shown("BLUP", method = "BLUP", lambda0 = 0)
    shown("HB more", method = "HB", subdivisions = 500)
    """.replace(
        "HB more", "more"
    )
    fits = {name: asked(milk, method=name, **words) for name, words in STARTS.items()}
    fits["more"] = asked(milk, method="HB", subdivisions=500)
    for name in ("HB", "hybrid", "REML"):
        code += f"local({{invisible(capture.output({{{fits[name].r_script()}}}))\n"
        code += (
            f'show("script {name}", hbsae::EST(fit)); show("script {name}", hbsae::MSE(fit))}})\n'
        )
    plain = plain_r(code.replace("script ", "script_"))
    for name, fit in fits.items():
        own = [*fit.estimate, *fit.mse]
        np.testing.assert_array_equal(own, plain[name])
        np.testing.assert_array_equal(own, plain.get(f"script_{name}", own))
    # The start matters to the search alone: 5 ends at R's REML of 0.018 too, up to its tolerance.
    default = asked(milk, method="REML")
    np.testing.assert_allclose(fits["REML"].estimate, default.estimate, rtol=1e-3)
    assert not np.array_equal(fits["REML"].estimate, default.estimate)


@pytest.mark.parametrize(
    ("words", "code", "field"),
    [
        ({"method": "BLUP"}, "missing_argument", "lambda0"),
        ({"method": "survreg", "lambda0": 1.0}, "not_available", "lambda0"),
        ({"method": "REML", "lambda0": 0.0}, "bad_variance", "lambda0"),
        ({"method": "BLUP", "lambda0": -1.0}, "bad_variance", "lambda0"),
        ({"method": "HB", "abs_tol": 1e-9}, "not_available", "abs_tol"),
        ({"method": "REML", "subdivisions": 9}, "not_available", "subdivisions"),
        ({"subdivisions": 0}, "bad_count", "subdivisions"),
    ],
)
def test_a_start_or_tolerance_that_r_has_no_use_of_is_refused(milk, words, code, field):
    with pytest.raises(InputError) as caught:
        asked(milk, **words)
    assert (caught.value.code, caught.value.field) == (code, field)


def test_a_formula_without_a_column_is_the_intercept_or_refused():
    table = pd.DataFrame({"y": np.arange(9.0) % 4, "v": 0.3})
    assert list(hbsae.fSAE_Area(table, "y", "v", X="~ 1").value["terms"]) == ["(Intercept)"]
    for formula in ("~ 0", "~ -1", "~ I(2)"):
        for mode in ("raw", "guarded"):
            with pytest.raises(InputError) as caught:
                hbsae.fSAE_Area(table, "y", "v", X=formula, mode=mode)
            assert (caught.value.code, caught.value.field) == ("bad_formula", "X")
