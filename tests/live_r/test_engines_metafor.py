"""metafor::rma.mv under its own name: bits of plain R, what R leaves out, the exact optimum."""

from __future__ import annotations

import json
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.engines import metafor
from pybridge.errors import EngineError, EngineWarning, InputError
from validation.cases.taxonomy import load_taxonomy

pytestmark = pytest.mark.r("metafor")

LEVELS = ["~ 1 | region", "~ 1 | domain"]
ODD = ["가 나", 'a "b"', "c\\d", "NA", "007", "if", "🌱", "line\nbreak", "x'y", "é", "", "plain"]


@pytest.fixture(scope="module")
def table():
    return load_taxonomy("groups34").table


def fitted(table, random=tuple(LEVELS), **words):
    return metafor.rma_mv(table, "estimate", "variance", "~ x2", random, **words)


def test_raw_is_r_to_the_bit(table, plain_r, tmp_path):
    table.to_csv(tmp_path / "table.csv", index=False)
    V = np.diag(table["variance"]) + 0.05
    np.savetxt(tmp_path / "V.csv", V, delimiter=",", fmt="%.17g")
    code = f"""
    data <- read.csv("{tmp_path / 'table.csv'}")
    V <- unname(as.matrix(read.csv("{tmp_path / 'V.csv'}", header = FALSE)))
    """
    code += """
    shown <- function(name, own, ...) {
      fit <- suppressWarnings(metafor::rma.mv(data$estimate, own, ..., mods = ~ x2, data = data))
      show(name, fit$beta); show(name, fit$se); show(name, fit$vb); show(name, fit$ci.lb)
      for (k in c("sigma2", "tau2", "rho")) {
        if (k == "sigma2" && fit$withS || k != "sigma2" && fit$withG) show(name, fit[[k]])
      }
      show(name, fit$fit.stats$ML); show(name, fit$QE)
    }
    both <- list(~ 1 | region, ~ 1 | domain)
    shown("reml", data$variance, random = both)
    shown("nested", data$variance, random = ~ 1 | region / domain, method = "ML", level = 90)
    shown("t", data$variance, random = both, test = "t", dfs = "contain")
    shown("matrix", V, random = both)
    shown("weights", data$variance, W = 1 / data$variance, random = both)
    shown("fixed", data$variance, random = both, sigma2 = c(NA, 0.2))
    shown("sparse", data$variance, random = both, sparse = TRUE)
    shown("slopes", data$variance, random = ~ x2 | region, struct = "GEN",
      control = list(optimizer = "optim", reltol = 1e-10))
    R <- 0.5^abs(outer(1:5, 1:5, "-")); dimnames(R) <- rep(list(sort(unique(data$region))), 2)
    shown("related", data$variance, random = both, R = list(region = R), Rscale = "cor")
    """
    plain = plain_r(code)
    groups = sorted(table["region"].unique())
    R = pd.DataFrame(0.5 ** np.abs(np.subtract.outer(np.arange(5), np.arange(5))), groups, groups)
    calls = {
        "reml": {},
        "nested": {"random": "~ 1 | region / domain", "method": "ML", "level": 90},
        "t": {"test": "t", "dfs": "contain"},
        "weights": {"W": 1.0 / table["variance"].to_numpy()},
        "fixed": {"sigma2": [np.nan, 0.2]},
        "sparse": {"sparse": True},
        "slopes": {
            "random": "~ x2 | region",
            "struct": "GEN",
            "control": {"optimizer": "optim", "reltol": 1e-10},
        },
        "related": {"R": {"region": R}},
    }
    for name, words in calls.items():
        compare(fitted(table, mode="raw", **words), plain[name], name)
    by_matrix = metafor.rma_mv(table, "estimate", V, "~ x2", LEVELS, mode="raw")
    compare(by_matrix, plain["matrix"], "matrix")


def compare(fit, theirs, name):
    coefficients = fit.coefficients
    ours = [
        *coefficients["estimate"],
        *coefficients["standard_error"],
        *fit.coefficient_covariance.ravel(order="F"),
        *coefficients["lower"],
    ]
    for word in ("sigma2", "tau2", "rho"):
        ours += list(fit.parameters.get(word, ()))
    ours += [*fit.criteria["ML"], fit.value["QE"][0]]
    np.testing.assert_array_equal(ours, theirs, err_msg=name)


def test_a_guarded_fit_is_its_script_and_its_object(table, plain_r, tmp_path):
    fit = fitted(table)
    kept = fit.to_rds(tmp_path / "a fit.rds")
    code = f'{fit.r_script()}\nshow("sigma2", fit$sigma2); show("beta", fit$beta)\n'
    code += (
        f'x <- readRDS("{kept}"); show("kept", x$sigma2); show("rows", attr(x, "rows")$domain)\n'
    )
    code += "invisible(capture.output(print(summary(x)), print(predict(x))))\n"
    code += 'show("group", rownames(metafor::ranef(x)$region))\n'
    code += 'show("effect", metafor::ranef(x)$region$intrcpt)\n'
    plain = plain_r(code)
    for name in ("sigma2", "kept"):
        np.testing.assert_array_equal(list(fit.variances.values()), plain[name])
    np.testing.assert_array_equal(fit.coefficients["estimate"], plain["beta"])
    assert plain["rows"] == list(table["domain"])
    effects = fit.effects("region")
    assert list(effects["group"]) == plain["group"]
    np.testing.assert_array_equal(effects["effect"], plain["effect"])


def test_the_optimum_stands_beside_nested_intercepts(table):
    case = load_taxonomy("groups34")
    known = case.answer("stats", "REML", "variance")
    for random in (LEVELS, "~ 1 | region / domain"):
        fit = fitted(table, random)
        assert fit.status == "converged" and fit.exact["shortfall"] < 1e-6
        np.testing.assert_allclose(list(fit.exact["variances"].values()), known, rtol=1e-5)
    model = pb.taxonomy_model(
        "estimate ~ x2", table, levels=["region", "domain"], engine="metafor", method="REML"
    )
    np.testing.assert_array_equal(fitted(table).estimate, model.numbers.estimate)
    # A search that stops early is named, with both likelihoods.
    case = load_taxonomy("cross63")
    short = metafor.rma_mv(
        case.table,
        "estimate",
        "variance",
        "~ x2 + x3",
        LEVELS,
        method="ML",
        control={"optimizer": "optim", "optmethod": "BFGS", "reltol": 1e-15},
    )
    assert short.status == "not_converged" and short.exact["shortfall"] > 1e-4
    assert any("below the optimum" in line for line in short.conditions)


def test_what_has_no_exact_optimum_says_so(table):
    for words in ({"sigma2": [np.nan, 0.2]}, {"random": "~ 1 | region"}):
        fit = fitted(table, **words)
        assert not fit.exact and any("no exact optimum" in line for line in fit.conditions)


def test_rows_with_gaps_are_left_out_raw_and_refused_guarded(table):
    holes = table.assign(estimate=table["estimate"].where(table.index != 4))
    with pytest.warns(EngineWarning, match="omitted"):
        fit = fitted(holes, mode="raw")
    assert np.isnan(fit.synthetic[4]) and not fit.to_frame()["used"][4]
    with pytest.raises(InputError) as caught:
        fitted(holes)
    assert caught.value.code == "missing_values" and "taxonomy_model" in caught.value.hint


def test_negative_variances_are_zero_raw_and_refused_guarded(table):
    wrong = table.assign(variance=table["variance"].where(table.index != 2, -0.1))
    with pytest.warns(EngineWarning, match="constrained to zero"):
        fitted(wrong, mode="raw")
    with pytest.raises(InputError) as caught:
        fitted(wrong)
    assert caught.value.code == "negative_variance"


def test_redundant_moderators_are_dropped_raw_and_refused_guarded(table):
    twice = table.assign(x9=2.0 * table["x2"])
    words = {"mods": "~ x2 + x9", "random": LEVELS}
    with pytest.warns(EngineWarning, match="Redundant"):
        fit = metafor.rma_mv(twice, "estimate", "variance", mode="raw", **words)
    assert list(fit.coefficients["term"]) == ["intrcpt", "x2"]
    with pytest.raises(InputError) as caught:
        metafor.rma_mv(twice, "estimate", "variance", **words)
    assert caught.value.code == "collinear_covariates"


def test_a_single_group_has_variance_0_raw_and_is_refused_guarded(table):
    with pytest.warns(EngineWarning, match="Single-level"):
        fit = fitted(table.assign(region="one"), mode="raw")
    assert fit.variances["region"] == 0
    with pytest.raises(InputError) as caught:
        fitted(table.assign(region="one"))
    assert caught.value.code == "single_group"


def test_a_search_that_does_not_end_is_an_error_raw_and_a_status_guarded(table):
    words = {"control": {"iter.max": 2}}
    with pytest.raises(EngineError, match="did not achieve convergence"):
        fitted(table, mode="raw", **words)
    fit = fitted(table, **words)
    assert (fit.status, fit.engine_status) == ("failed", "error") and np.isnan(fit.estimate).all()


def test_labels_come_back_and_columns_may_have_any_name():
    draw = np.random.default_rng(1)
    table = pd.DataFrame({"시 군": ODD, "a b": draw.normal(size=12), "지역": list("ppppqqqqrrrr")})
    table["if"], table["d"] = table["a b"] + draw.normal(size=12), 0.4
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EngineWarning)
        fit = metafor.rma_mv(
            table,
            "if",
            "d",
            "~ `a b`",
            ["~ 1 | 지역", "~ 1 | `시 군`"],
            domain="시 군",
        )
    assert list(fit.domains) == ODD and set(fit.effects(list(fit.variances)[1])["group"]) == set(
        ODD
    )
    assert "a b" in list(fit.coefficients["term"])[1]
    assert fit.r_script().isascii()


def test_the_record_is_like_any_other(table):
    fit = fitted(table)
    assert pickle.loads(pickle.dumps(fit)) == fit == fitted(table)
    assert "rma.mv" in fit.summary() and fit.provenance.packages["metafor"]
    assert json.loads(json.dumps(fit.to_dict(), allow_nan=False))["status"] == "converged"
    assert fit.log_likelihood == pytest.approx(fit.exact["at_engine"], abs=1e-8)
