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
    with pytest.warns(EngineWarning) as said:  # a later metafor says more
        fitted(wrong, mode="raw")
    assert any("variances constrained to" in str(one.message) for one in said)
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


def options(table):
    """name -> words of the call, and R's own."""
    flags = (table["x2"] > 0).to_numpy()
    return {
        "condition": (
            {"subset": "x2 > 0 & region != 'r01'"},
            "random = both, subset = x2 > 0 & region != 'r01'",
        ),
        "flags": ({"subset": flags}, "random = both, subset = data$x2 > 0"),
        "labels": ({"slab": "domain"}, "random = both, slab = domain"),
        "fixed": ({"method": "EE", "random": ()}, "method = 'EE'"),
        "freedom": ({"test": "t", "dfs": 7.5}, "random = both, test = 't', dfs = 7.5"),
        "pattern": ({"btt": "^x"}, "random = both, btt = '^x'"),
        "covariance": ({"cvvc": "varcor"}, "random = both, cvvc = 'varcor'"),
        "distance": (
            {
                "random": "~ x2 + x9 | region",
                "struct": "SPEXP",
                "dist": "manhattan",
                "control": {"optimizer": "optim", "tau2.init": 0.1, "rho.init": 1.0},
            },
            "random = ~ x2 + x9 | region, struct = 'SPEXP', dist = 'manhattan', "
            "control = list(optimizer = 'optim', tau2.init = 0.1, rho.init = 1)",
        ),
    }


@pytest.mark.filterwarnings("ignore::pybridge.errors.EngineWarning")
def test_every_option_is_rs_to_the_bit_and_in_the_script(table, plain_r, tmp_path):
    table = table.assign(x9=np.arange(len(table)) % 5 * 1.0)
    table.to_csv(tmp_path / "table.csv", index=False)
    code = f'data <- read.csv("{tmp_path / "table.csv"}")\n'
    code += """
    shown <- function(name, fit) {
      show(name, fit$beta); show(name, fit$se); show(name, fit$vb); show(name, fit$ci.lb)
      for (k in c("sigma2", "tau2", "rho")) {
        if (k == "sigma2" && fit$withS || k != "sigma2" && fit$withG) show(name, fit[[k]])
      }
      show(name, fit$fit.stats$ML); show(name, fit$QE)
      show(paste0(name, ".slab"), as.character(fit$slab))
      show(paste0(name, ".more"), c(fit$QM, fit$QMp, if (is.matrix(fit$vvc)) fit$vvc))
    }
    both <- list(~ 1 | region, ~ 1 | domain)
    """
    asked = options(table)
    for name, (_, words) in asked.items():
        call = f"metafor::rma.mv(estimate, variance, mods = ~ x2, data = data, {words})"
        code += f'shown("{name}", suppressWarnings({call}))\n'
    fits = {name: fitted(table, mode="raw", **words) for name, (words, _) in asked.items()}
    for name, (words, _) in asked.items():
        guarded = fitted(table, **words)
        np.testing.assert_array_equal(guarded.coefficients, fits[name].coefficients)
        kept = guarded.to_rds(tmp_path / f"{name}.rds")
        code += f"suppressWarnings(local({{invisible(capture.output({{{guarded.r_script()}}}))\n"
        code += f'show("{name}.again", c(fit$beta, readRDS("{kept}")$beta))}}))\n'
    plain = plain_r(code)
    for name, fit in fits.items():
        compare(fit, plain[name], name)
        value = fit.value
        more = [*value["QM"], *value["QMp"], *np.ravel(value.get("vvc", []))]
        np.testing.assert_array_equal(more, plain[f"{name}.more"])
        np.testing.assert_array_equal(2 * list(value["beta"]), plain[f"{name}.again"])
    names = list(fits["labels"].value["slab"])
    assert names == plain["labels.slab"] == list(fits["labels"].domains)


def test_rows_outside_the_subset_have_no_numbers_and_are_not_checked(table):
    wrong = table.assign(variance=table["variance"].where(table.index != 4, -1.0))
    inside = table.index != 4
    fit = fitted(wrong, subset=inside)
    alone = fitted(table[inside].reset_index(drop=True))
    np.testing.assert_array_equal(fit.estimate[inside], alone.estimate)
    assert np.isnan(fit.estimate[4]) and not fit.to_frame()["used"][4]
    assert fit.exact["variances"] == alone.exact["variances"]
    text = fitted(wrong.assign(keep=inside), subset="keep")
    np.testing.assert_array_equal(text.estimate, fit.estimate)


def test_odd_options_are_refused(table):
    for words, code in (
        ({"subset": "x2 > 1e9"}, "empty"),
        ({"subset": "x2"}, "bad_formula"),
        ({"subset": "~ x2 > 0"}, "bad_formula"),
        ({"subset": [True, False]}, "bad_shape"),
        ({"subset": np.arange(len(table))}, "bad_shape"),
        ({"subset": "system('a')"}, "unknown_function"),
        ({"slab": "nobody"}, "missing_column"),
        ({"dfs": -1.0}, "bad_count"),
        ({"dfs": "half"}, "unknown_option"),
        ({"dist": "taxi"}, "unknown_option"),
        ({"cvvc": "cov"}, "unknown_option"),
        ({"btt": []}, "bad_shape"),
        ({"method": "CE"}, "not_available"),
    ):
        with pytest.raises(InputError) as caught:
            fitted(table, **words)
        assert caught.value.code == code, words


def test_numbers_that_name_groups_come_back_as_numbers(table, plain_r):
    codes = {label: (k + 1) * 100000 for k, label in enumerate(sorted(set(table["region"])))}
    coded = table.assign(
        region=table["region"].map(codes), domain=(np.arange(len(table)) + 1) * 100000
    )
    usual = fitted(table)
    for mode in ("raw", "guarded"):
        fit = fitted(coded, mode=mode)
        effects = fit.effects("region")
        assert effects["group"].dtype == coded["region"].dtype
        merged = coded.merge(effects, left_on="region", right_on="group", validate="m:1")
        assert len(merged) == len(coded)
        theirs = usual.effects("region").assign(code=lambda e: e["group"].map(codes))
        theirs = theirs.set_index("code").loc[list(effects["group"])]
        np.testing.assert_allclose(effects["effect"], theirs["effect"], rtol=1e-5)
        assert list(fit.effects("domain")["group"]) == list(coded["domain"])
        nested = fitted(coded, "~ 1 | region / domain", mode=mode)
        assert nested.effects("region")["group"].tolist() == sorted(codes.values())
        groups = list(nested.effects("region/domain")["group"])
        assert sorted(groups) == sorted(
            f"{r}/{d}" for r, d in zip(coded["region"], coded["domain"])
        )
    # R's own order and effects.
    own = plain_r(f'{fit.r_script()}\nx <- metafor::ranef(fit)$region; show("e", x$intrcpt)\n')
    np.testing.assert_array_equal(fit.effects("region")["effect"], own["e"])


def test_a_category_of_numbers_names_groups_by_its_numbers(table):
    codes = {label: k + 7 for k, label in enumerate(sorted(set(table["region"])))}
    coded = table.assign(region=table["region"].map(codes).astype("category"))
    assert fitted(coded).effects("region")["group"].tolist() == sorted(codes.values())


@pytest.mark.parametrize("mods, terms", [("~ x2", 2), ("~ 0 + x2", 1), ("~ 1", 1), (None, 1)])
def test_the_intercept_is_the_formulas_as_in_r(table, plain_r, tmp_path, mods, terms):
    table.to_csv(tmp_path / "table.csv", index=False)
    code = f"""
    data <- read.csv("{tmp_path / 'table.csv'}")
    fit <- suppressWarnings(metafor::rma.mv(estimate, variance{f', mods = {mods}' if mods else ''},
      random = list(~ 1 | region, ~ 1 | domain), data = data, intercept = FALSE))
    show("sigma2", fit$sigma2); show("beta", fit$beta)
    """
    plain = plain_r(code)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EngineWarning)
        fit = metafor.rma_mv(table, "estimate", "variance", mods, LEVELS, intercept=False)
    assert fit.status == "converged" and len(fit.coefficients) == terms
    assert list(fit.value["sigma2"]) == plain["sigma2"]
    assert list(fit.value["beta"]) == plain["beta"]
    assert fit.exact["shortfall"] < 1e-4
    kept = mods != "~ 0 + x2"
    assert f"{terms} coefficients, {'with' if kept else 'without'} an intercept" in fit.summary()
    assert any("has an intercept" in line for line in fit.conditions) == kept


@pytest.mark.parametrize("shape", ["numbers", "matrix", "no effects"])
def test_the_script_of_a_weighted_fit_runs(table, plain_r, shape):
    weights = 1.0 / table["variance"].to_numpy()
    random = () if shape == "no effects" else LEVELS
    fit = fitted(table, random, W=np.diag(weights) if shape == "matrix" else weights)
    plain = plain_r(f'{fit.r_script()}\nshow("beta", fit$beta); show("se", fit$se)\n')
    assert list(fit.value["beta"]) == plain["beta"]
    assert list(fit.value["se"]) == plain["se"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"sigma2": [1.0, 2.0, 3.0]}, "Length of 'sigma2'"),
        ({"btt": [9]}, "btt"),
        ({"control": {"sigma2.init": -1.0}}, "sigma2.init"),
    ],
)
def test_a_call_that_only_r_can_refuse_is_an_error_guarded_too(table, words, said):
    for mode in ("raw", "guarded"):
        with pytest.raises(EngineError, match=said):
            fitted(table, mode=mode, **words)


def test_a_covariance_of_rank_one_is_fitted_and_known_correlations_are_found_by_column(table):
    ones = np.full((len(table), len(table)), 0.1)
    with pytest.warns(EngineWarning, match="not positive definite"):
        fit = metafor.rma_mv(table, "estimate", ones, "~ x2", LEVELS)
    assert fit.status != "failed"
    odd = table.rename(columns={"region": "지역 이름"})
    groups = sorted(table["region"].unique())
    R = pd.DataFrame(0.5 ** np.abs(np.subtract.outer(np.arange(5), np.arange(5))), groups, groups)
    fits = [
        fitted(table, R={"region": R}),
        fitted(odd, ["~ 1 | `지역 이름`", "~ 1 | domain"], R={"지역 이름": R}),
    ]
    np.testing.assert_array_equal(fits[0].estimate, fits[1].estimate)


def test_a_search_at_random_does_not_go_back_to_r(table, tmp_path):
    fit = fitted(table, control={"optimizer": "optim", "optmethod": "SANN", "maxit": 200})
    for call in (fit.r_script, lambda: fit.to_rds(tmp_path / "fit.rds"), fit.crosscheck):
        with pytest.raises(InputError) as caught:
            call()
        assert (caught.value.code, caught.value.field) == ("no_seed", "seed")
