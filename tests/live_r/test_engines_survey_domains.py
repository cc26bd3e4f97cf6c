"""Domains of svyby: their labels, the units they count, and the covariance R does not have."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pybridge import datasets
from pybridge.engines import survey
from pybridge.errors import EngineError, InputError

pytestmark = pytest.mark.r("survey")

CODES = {"E": 100000, "H": 200000, "M": 1100000000}
DESIGN = """
suppressPackageStartupMessages(library(survey))
data(api)
apistrat$code <- c(E = 100000, H = 200000, M = 1100000000)[as.character(apistrat$stype)]
apistrat$gap <- ifelse(apistrat$stype == "H", NA, apistrat$api99)
apistrat$gap[which(apistrat$stype == "M")[-1]] <- NA
strat <- svydesign(id = ~1, strata = ~stype, weights = ~pw, fpc = ~fpc, data = apistrat)
"""


@pytest.fixture(scope="module")
def table():
    found = datasets.from_r("survey", "apistrat", file="api")
    types = found["stype"].astype(str)
    gap = found["api99"].astype(float).where(types != "H")
    gap[np.flatnonzero(types == "M")[1:]] = np.nan  # one known value
    return found.assign(code=types.map(CODES), gap=gap)


def design(table, mode="guarded", **words):
    words = {"strata": "~stype", "weights": "~pw", "fpc": "~fpc", **words}
    return survey.svydesign(1, table, mode=mode, **words)


CODED = {
    "int": lambda v: v,
    "float": lambda v: v / 1e12,
    "objects": lambda v: v.astype(object),
    "category": lambda v: v.astype("category"),
    "text": lambda v: v.astype(str),
    "zeros": lambda v: v.astype(str).str.zfill(12),
}


# Numbers as Python objects cross as numbers in guarded mode only.
@pytest.mark.parametrize(
    ("kind", "mode"),
    [(k, m) for k in CODED for m in ("raw", "guarded") if (k, m) != ("objects", "raw")],
)
def test_codes_of_domains_come_back_and_merge(table, kind, mode):
    coded = table.assign(code=CODED[kind](table["code"]))
    for empty in (True, False):
        fit = survey.svyby("~api00", "~code + awards", design(coded, mode), drop_empty_groups=empty)
        keys = ["code", "awards"]
        means = (
            coded.assign(y=coded["api00"] * coded["pw"])
            .groupby(keys, observed=True)[["y", "pw"]]
            .sum()
            .reset_index()
        )
        both = means.assign(code=means["code"].astype(coded["code"].dtype))
        both["awards"] = both["awards"].astype(str)
        frame = fit.to_frame()
        if kind == "category":  # labels are those of the categories
            both["code"] = both["code"].astype(int)
        both = both.merge(frame, on=keys, validate="1:1")
        assert len(both) == 6 == len(frame)
        np.testing.assert_allclose(both["estimate"], both["y"] / both["pw"], rtol=1e-12)
        counts = coded.groupby(keys, observed=True).size().to_numpy()
        np.testing.assert_array_equal(sorted(both["n_units"]), sorted(counts))


def test_codes_are_the_numbers_that_r_has(table, plain_r):
    found = plain_r(DESIGN + 'show("code", svyby(~api00, ~code, strat, svymean)$code)\n')
    fit = survey.svyby("~api00", "~code", design(table))
    assert fit.to_frame()["code"].tolist() == found["code"]
    assert fit.to_frame()["code"].dtype == table["code"].dtype
    assert list(fit.n_units) == [100, 50, 50]


def test_codes_of_strata_come_back(table):
    for mode in ("raw", "guarded"):
        fit = survey.svyratio(
            "~api00", "~api99", design(table, mode, strata="~code"), separate=True
        )
        assert fit.to_frame()["code"].tolist() == sorted(CODES.values())
        assert list(fit.n_units) == [100, 50, 50]


EXPRESSIONS = {
    "cut(ell, 3)": str,
    "cut(ell, c(-1, 5, 20, 100))": str,
    "ell > 20": bool,
    "I(ell > 20)": bool,
    "factor(ell > 20)": str,
    "interaction(stype, awards)": str,
    "stype == 'E'": bool,
    "I(round(api00 / 100) * 100000)": float,
}


@pytest.mark.parametrize("mode", ["raw", "guarded"])
def test_domains_that_r_makes_of_columns_are_rs(table, mode, plain_r):
    code, fits = DESIGN, {}
    for k, by in enumerate(EXPRESSIONS):
        fits[by] = survey.svyby("~api00", f"~{by}", design(table, mode))
        code += f"""
        x <- svyby(~api00, ~{by}, strat, svymean)
        show("coef{k}", coef(x)); show("error{k}", SE(x))
        g <- x[[1]]; show("label{k}", if (is.numeric(g)) as.vector(g) else as.character(g))
        m <- model.frame(~{by}, apistrat)[[1]]
        show("count{k}", as.vector(table(m)[as.character(x[[1]])]))
        local({{
        invisible(capture.output({{{fits[by].r_script(data=table)}
        }}))
        show("script{k}", coef(result))
        }})
        """
    found = plain_r(code)
    for k, (by, kind) in enumerate(EXPRESSIONS.items()):
        fit = fits[by]
        np.testing.assert_array_equal(fit.estimate, found[f"coef{k}"], err_msg=by)
        np.testing.assert_array_equal(fit.estimate, found[f"script{k}"], err_msg=by)
        np.testing.assert_array_equal(fit.standard_error, found[f"error{k}"], err_msg=by)
        np.testing.assert_array_equal(fit.n_units, found[f"count{k}"], err_msg=by)
        (labels,) = fit.by.values()
        assert all(isinstance(label, kind) for label in labels), by
        shown = [str(label).upper() if kind is bool else label for label in labels]
        assert shown == found[f"label{k}"], by


@pytest.mark.parametrize("mode", ["raw", "guarded"])
def test_units_in_no_group_are_counted(table, mode):
    fit = survey.svyby("~api00", "~cut(ell, c(0, 10, 20))", design(table, mode))
    inside = pd.cut(table["ell"], [0, 10, 20])
    np.testing.assert_array_equal(fit.n_units, inside.value_counts(sort=False))
    left = f"{inside.isna().sum()} units are in no group"
    assert any(left in line for line in fit.conditions)
    fit = survey.svyby("~api00", "~stype", design(table, mode))
    assert not any("in no group" in line for line in fit.conditions)


def test_an_expression_shows_the_users_name_of_a_column(table):
    fit = survey.svyby(
        "~api00", "~cut(`영어 학습`, 3)", design(table.assign(**{"영어 학습": table["ell"]}))
    )
    assert list(fit.by) == ["cut(영어 학습, 3)"] and list(fit.n_units) == [145, 39, 16]


@pytest.mark.parametrize("function", ["svymean", "svytotal", "svyratio"])
def test_units_without_a_known_value_do_not_count_guarded(table, function):
    words = {"denominator": "~gap"} if function == "svyratio" else {}
    outcome = "~api00" if function == "svyratio" else "~gap"
    fit = survey.svyby(outcome, "~stype", design(table), function, na_rm=True, **words)
    assert list(fit.n_units) == [100, 0, 1]
    assert list(fit.domain_status) == ["ok", "out_of_sample", "single_unit"]
    assert np.isnan([fit.estimate[1], fit.standard_error[1], fit.lower[1], fit.cv[1]]).all()
    assert np.isnan(fit.covariance[1]).all() and np.isfinite(fit.estimate[[0, 2]]).all()
    # The total of a domain with one unit is an estimate like any other.
    assert np.isfinite(fit.standard_error[2]) == (function == "svytotal")
    assert np.isfinite(fit.standard_error[0]) and "no unit with a known value" in fit.summary()


def test_units_without_a_known_value_raw_are_rs(table, plain_r):
    found = plain_r(
        DESIGN
        + 'x <- svyby(~gap, ~stype, strat, svytotal, na.rm = TRUE); show("x", c(coef(x), SE(x)))'
    )
    fit = survey.svyby("~gap", "~stype", design(table, "raw"), "svytotal", na_rm=True)
    np.testing.assert_array_equal([*fit.estimate, *fit.standard_error], found["x"])
    assert fit.estimate[1] == 0 and list(fit.n_units) == [100, 50, 50]


def test_a_whole_with_one_known_value_has_no_standard_error_guarded(table):
    one = table.assign(gap=table["gap"].where(table["stype"] == "M"))
    for call, error in ((survey.svymean, False), (survey.svytotal, True)):
        fit = call("~gap", design(one), na_rm=True)
        assert list(fit.n_units) == [1] and list(fit.domain_status) == ["single_unit"]
        assert np.isfinite(fit.standard_error).all() == error


@pytest.mark.parametrize("function", ["svymean", "svytotal"])
def test_covariances_of_scores_leave_out_whom_r_leaves_out(table, function):
    by = "~awards"
    fit = survey.svyby("~gap + api00", by, design(table), function, na_rm=True)
    if fit.provenance.packages["survey"] < "4.2":  # later ones have the covariances themselves
        assert fit.value["by_scores"][0]
    np.testing.assert_allclose(np.sqrt(np.diag(fit.covariance)), fit.standard_error, rtol=1e-10)


def test_ratios_whose_covariance_stops_r_have_their_variances(table, plain_r):
    totals = {"(Intercept)": 6194.0, "api99": 3914069.0}
    strat = design(table)
    calls = {
        "several": (strat, "~api00 + api99", "strat", "~api00 + api99, denominator = ~ell", {}),
        "calibrated": (
            survey.calibrate(strat, "~api99", totals),
            "~api00",
            "calibrate(strat, ~api99, c(`(Intercept)` = 6194, api99 = 3914069))",
            "~api00, denominator = ~ell",
            {},
        ),
        "gaps": (
            strat,
            "~api00",
            "strat",
            "~api00, denominator = ~gap, na.rm = TRUE",
            {"na_rm": True, "denominator": "~gap"},
        ),
    }
    code, fits = DESIGN, {}
    for name, (one, formula, plain, rest, words) in calls.items():
        fits[name] = survey.svyby(
            formula, "~awards", one, "svyratio", **{"denominator": "~ell", **words}
        )
        code += f"x <- svyby({rest}, by = ~awards, design = {plain}, FUN = svyratio)\n"
        code += f'show("{name}", c(coef(x), unlist(SE(x))))\n'
        script = fits[name].r_script(data=table)
        code += f"local({{ invisible(capture.output({{{script}\n}}))\n"
        code += f'show("{name}.script", c(coef(result), unlist(SE(result)))) }})\n'
    found = plain_r(code)
    for name, fit in fits.items():
        both = [*fit.estimate, *fit.standard_error]
        np.testing.assert_array_equal(both, found[f"{name}.script"], err_msg=name)
        np.testing.assert_allclose(both, found[name], rtol=1e-10, err_msg=name)
        np.testing.assert_allclose(np.diag(fit.covariance), fit.standard_error**2, rtol=1e-14)
        old = fit.provenance.packages["survey"] < "4.2"  # later ones stop less often
        assert not old or any("variances stand alone" in line for line in fit.conditions)
    if old:
        with pytest.raises(EngineError, match="R's own words"):  # who asks for it is told
            survey.svyby(
                "~api00 + api99", "~awards", strat, "svyratio", denominator="~ell", covmat=True
            )
    raw = survey.svyby(
        "~api00 + api99", "~awards", design(table, "raw"), "svyratio", denominator="~ell"
    )
    np.testing.assert_allclose(raw.standard_error, fits["several"].standard_error, rtol=1e-12)


RESULTS = (
    *("statistic", "n_units", "estimate", "variance", "standard_error", "cv", "lower", "upper"),
    *("level", "degrees_of_freedom", "design_effect", "status"),
)


@pytest.mark.parametrize("name", RESULTS)
def test_a_domain_named_like_a_result_is_kept_beside_it(table, name):
    renamed = table.assign(**{name: table["stype"].astype(str)})
    usual = survey.svyby("~api00", "~stype", design(table)).to_frame()
    found = survey.svyby("~api00", f"~{name}", design(renamed)).to_frame()
    assert list(found[f"by_{name}"]) == ["E", "H", "M"]
    pd.testing.assert_frame_equal(found.iloc[:, 1:], usual.iloc[:, 1:])
    assert list(found.columns[1:]) == list(RESULTS)
    also = renamed.assign(**{f"by_{name}": table["awards"].astype(str)})
    found = survey.svyby("~api00", f"~{name} + by_{name}", design(also)).to_frame()
    assert list(found.columns[:2]) == [f"by_by_{name}", f"by_{name}"]
    assert set(found[f"by_{name}"]) == {"No", "Yes"}


LEVELS = """
suppressPackageStartupMessages(library(survey))
d <- data.frame(code = c(7L, 8L, 7L, 8L, 8L, 9L, 9L, 8L, 9L, 8L), b = rep(c("p", "q"), each = 5),
                w = rep(c(1, 2), 5))
D <- svydesign(~ 1, weights = ~ w, data = d)
plain <- svyby(~ factor(code), ~ b, D, svymean)
d$code <- factor(d$code)
whole <- svyby(~ code, ~ b, svydesign(~ 1, weights = ~ w, data = d), svymean)
show("plain", as.matrix(plain[c("factor(code)7", "factor(code)8")]))
show("whole", as.matrix(whole[c("code7", "code8", "code9")]))
"""


def test_levels_that_differ_between_groups_are_refused_and_r_mixes_them_up(plain_r):
    found = plain_r(LEVELS)
    # R: half of group q have code 7, which none of it has.
    assert found["whole"][1] == 0 and found["plain"][1] == found["whole"][3] > 0
    table = pd.DataFrame(
        {"code": [7, 8, 7, 8, 8, 9, 9, 8, 9, 8], "b": list("pppppqqqqq"), "w": [1.0, 2.0] * 5}
    )

    def of(formula, table, mode, **words):
        made = survey.svydesign(1, table, weights="~w", mode=mode)
        return survey.svyby(formula, "~b", made, **words)

    assert list(of("~factor(code)", table, "raw").estimate) == found["plain"]
    for formula in ("~factor(code)", "~w + factor(code)", "~cut(code, 2)"):
        for words in ({}, {"FUN": "svytotal", "covmat": False}):
            with pytest.raises(InputError) as caught:
                of(formula, table, "guarded", **words)
            assert caught.value.code == "levels_differ" and "category" in caught.value.hint
    categories = table.astype({"code": "category"})
    for mode in ("raw", "guarded"):
        assert list(of("~code", categories, mode).estimate) == found["whole"]
    # Where the groups have not even as many levels, R has no table.
    table.loc[8:, "code"] = 7
    for mode in ("raw", "guarded"):
        with pytest.raises(InputError) as caught:
            of("~factor(code)", table, mode)
        assert caught.value.code == "levels_differ"


@pytest.mark.parametrize("kind", ["calibrated", "poisson"])
def test_levels_are_whole_where_groups_keep_all_units(plain_r, kind):
    code = (
        LEVELS
        + """
    d$code <- c(7L, 8L, 7L, 8L, 8L, 9L, 9L, 8L, 9L, 8L)
    d$p <- 1 / (1 + d$w)
    calibrated <- postStratify(svydesign(~ 1, weights = ~ w, data = d), ~ b,
                               data.frame(b = c("p", "q"), Freq = c(10, 20)))
    poisson <- svydesign(~ 1, probs = ~ p, pps = poisson_sampling(d$p), data = d)
    """
    )
    code += f'show("mean", coef(svyby(~ factor(code), ~ b, {kind}, svymean)))\n'
    table = pd.DataFrame(
        {"code": [7, 8, 7, 8, 8, 9, 9, 8, 9, 8], "b": list("pppppqqqqq"), "w": [1.0, 2.0] * 5}
    )
    table["p"] = 1 / (1 + table["w"])
    if kind == "poisson":
        made = survey.svydesign(1, table, probs="~p", pps="poisson")
    else:
        counts = pd.DataFrame({"b": ["p", "q"], "Freq": [10, 20]})
        made = survey.postStratify(survey.svydesign(1, table, weights="~w"), "~b", counts)
    assert list(survey.svyby("~factor(code)", "~b", made).estimate) == plain_r(code)["mean"]


def test_design_effects_of_ratios_proportional_to_size_are_refused_and_r_takes_other_columns(
    plain_r,
):
    found = plain_r(
        """
    suppressPackageStartupMessages(library(survey))
    d <- data.frame(y = c(3, 4, 6, 5, 8, 7, 9, 6), x = c(1, 2, 2, 3, 3, 4, 5, 2),
                    b = rep(c("p", "q"), 4), p = c(2, 3, 4, 5, 2, 3, 4, 5) / 10)
    D <- svydesign(~ 1, probs = ~ p, pps = poisson_sampling(d$p), data = d)
    by <- function(...) svyby(~ y, ~ b, D, svyratio, denominator = ~ x, ...)
    show("errors", SE(by())); show("wrong", SE(by(deff = TRUE)))
    """
    )
    table = pd.DataFrame(
        {"y": [3.0, 4, 6, 5, 8, 7, 9, 6], "x": [1.0, 2, 2, 3, 3, 4, 5, 2], "b": list("pq") * 4}
    ).assign(p=np.array([2.0, 3, 4, 5, 2, 3, 4, 5]) / 10)
    assert not np.allclose(found["errors"], found["wrong"])
    for mode in ("raw", "guarded"):
        design = survey.svydesign(1, table, probs="~p", pps="poisson", mode=mode)
        words = {"FUN": "svyratio", "denominator": "~x"}
        assert list(survey.svyby("~y", "~b", design, **words).standard_error) == found["errors"]
        for deff in (True, "replace"):
            with pytest.raises(InputError) as caught:
                survey.svyby("~y", "~b", design, deff=deff, **words)
            assert (caught.value.code, caught.value.field) == ("not_available", "deff")
