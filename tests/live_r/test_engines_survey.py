"""survey under its own names: bits of plain R over many designs, its traps, scripts and objects."""

from __future__ import annotations

import json
import os
import pickle
import subprocess

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge import datasets
from pybridge.engines import survey
from pybridge.errors import EngineError, EngineWarning, InputError
from pybridge.r import require_packages

pytestmark = pytest.mark.r("survey")

ODD = ["가 나", 'a "b"', "c\\d", "NA", "007", "if", "🌱", "line\nbreak", "x'y", "é", "z", "plain"]

# The calls as an R user writes them: name -> R code of the estimate.
DESIGNS = """
data(api, package = "survey")
library(survey)
srs <- svydesign(id = ~1, fpc = ~fpc, data = apisrs)
strat <- svydesign(id = ~1, strata = ~stype, weights = ~pw, fpc = ~fpc, data = apistrat)
clus1 <- svydesign(id = ~dnum, weights = ~pw, fpc = ~fpc, data = apiclus1)
clus2 <- svydesign(id = ~dnum + snum, fpc = ~fpc1 + fpc2, data = apiclus2)
replaced <- svydesign(id = ~dnum, weights = ~pw, data = apiclus1)
cal <- calibrate(strat, ~api99 + stype,
  c(`(Intercept)` = 6194, api99 = 3914069, stypeH = 755, stypeM = 1018))
rak <- calibrate(clus1, ~api99, c(`(Intercept)` = 6194, api99 = 3914069), calfun = "raking")
post <- postStratify(clus1, ~stype, data.frame(stype = c("E", "H", "M"), Freq = c(4421, 755, 1018)))
both <- calibrate(post, ~stype + api99,
  c(`(Intercept)` = 6194, stypeH = 755, stypeM = 1018, api99 = 3914069))
p <- pmin(1, 200 * apipop$api99 / sum(apipop$api99))
apipop$p <- p; apipop$row <- seq_along(p)
drawn <- apipop[(apipop$row * 7919) %% 6194 < 6194 * p, ]
poisson <- svydesign(id = ~1, probs = ~p, pps = poisson_sampling(drawn$p), data = drawn)
pps <- svydesign(id = ~1, fpc = ~p, pps = "brewer", data = drawn)
"""
ESTIMATES = {
    "mean": "svymean(~api00 + stype, strat)",
    "effect": "svymean(~api00, clus1, deff = TRUE)",
    "total": "svytotal(~enroll, srs, na.rm = TRUE)",
    "stages": "svytotal(~api00 + api99, clus2)",
    "ratio": "svyratio(~api00 + api99, ~enroll, strat, covmat = TRUE)",
    "domains": "svyby(~api00 + api99, ~stype + awards, strat, svymean, covmat = TRUE)",
    "shares": "svyby(~awards, ~stype, clus1, svymean, covmat = TRUE)",
    "totals": "svyby(~api00, ~stype, clus2, svytotal, covmat = TRUE)",
    "gaps": "svyby(~enroll, ~stype, clus2, svymean, na.rm = TRUE)",
    "ratios": "svyby(~api00, ~stype, denominator = ~api99, replaced, svyratio, covmat = TRUE)",
    "calibrated": "svymean(~api00 + enroll, cal, na.rm = TRUE)",
    "raked": "svytotal(~api00, rak)",
    "post": "svytotal(~api00, post)",
    "twice": "svymean(~api00, both)",
    "greg_by": "svyby(~api00, ~awards, cal, svymean)",
    "poisson": "svytotal(~api00, poisson)",
    "pps": "svytotal(~api00, pps)",
    "linear": "svyglm(api00 ~ ell + meals + as.factor(stype), cal)",
    "logit": "svyglm(I(api00 > 700) ~ ell + meals, strat, family = quasibinomial())",
}


# R stops where svyby() is to give one.
WITHOUT_COVARIANCE = ("greg_by", "gaps")


@pytest.fixture(scope="module")
def tables():
    found = {n: datasets.from_r("survey", n, file="api") for n in ("apisrs", "apistrat")}
    found.update({n: datasets.from_r("survey", n, file="api") for n in ("apiclus1", "apiclus2")})
    pop = datasets.from_r("survey", "apipop", file="api")
    pop["p"] = np.minimum(1.0, 200 * pop["api99"] / pop["api99"].sum())
    row = np.arange(1, len(pop) + 1)
    found["drawn"] = pop[(row * 7919) % 6194 < 6194 * pop["p"]].reset_index(drop=True)
    return found


def designs(tables, mode):
    words = {"mode": mode}
    strat = survey.svydesign(
        1, tables["apistrat"], strata="~stype", weights="~pw", fpc="~fpc", **words
    )
    clus1 = survey.svydesign("~dnum", tables["apiclus1"], weights="~pw", fpc="~fpc", **words)
    counts = pd.DataFrame({"stype": ["E", "H", "M"], "Freq": [4421, 755, 1018]})
    totals = {"(Intercept)": 6194, "api99": 3914069}
    types = {"stypeH": 755, "stypeM": 1018}
    post = survey.postStratify(clus1, "~stype", counts)
    return {
        "srs": survey.svydesign("~1", tables["apisrs"], fpc="~fpc", **words),
        "strat": strat,
        "clus1": clus1,
        "clus2": survey.svydesign("~dnum + snum", tables["apiclus2"], fpc="~fpc1 + fpc2", **words),
        "replaced": survey.svydesign("~dnum", tables["apiclus1"], weights="~pw", **words),
        "cal": survey.calibrate(strat, "~api99 + stype", {**totals, **types}),
        "rak": survey.calibrate(clus1, "~api99", totals, calfun="raking"),
        "post": post,
        "both": survey.calibrate(
            post, "~stype + api99", {"(Intercept)": 6194, **types, "api99": 3914069}
        ),
        "poisson": survey.svydesign(1, tables["drawn"], probs="~p", pps="poisson", **words),
        "pps": survey.svydesign(1, tables["drawn"], fpc="~p", pps="brewer", **words),
    }


@pytest.fixture(scope="module")
def known(tables):
    return {mode: designs(tables, mode) for mode in ("raw", "guarded")}


def estimated(known, name):
    """The same call through the bridge."""
    d = known
    calls = {
        "mean": lambda: survey.svymean("~api00 + stype", d["strat"]),
        "effect": lambda: survey.svymean("~api00", d["clus1"], deff=True),
        "total": lambda: survey.svytotal("~enroll", d["srs"], na_rm=True),
        "stages": lambda: survey.svytotal("~api00 + api99", d["clus2"]),
        "ratio": lambda: survey.svyratio("~api00 + api99", "~enroll", d["strat"], covmat=True),
        "domains": lambda: survey.svyby(
            "~api00 + api99", "~stype + awards", d["strat"], covmat=True
        ),
        "shares": lambda: survey.svyby("~awards", "~stype", d["clus1"], covmat=True),
        "totals": lambda: survey.svyby("~api00", "~stype", d["clus2"], "svytotal", covmat=True),
        "gaps": lambda: survey.svyby("~enroll", "~stype", d["clus2"], na_rm=True),
        "ratios": lambda: survey.svyby(
            "~api00", "~stype", d["replaced"], "svyratio", denominator="~api99", covmat=True
        ),
        "calibrated": lambda: survey.svymean("~api00 + enroll", d["cal"], na_rm=True),
        "raked": lambda: survey.svytotal("~api00", d["rak"]),
        "post": lambda: survey.svytotal("~api00", d["post"]),
        "twice": lambda: survey.svymean("~api00", d["both"]),
        "greg_by": lambda: survey.svyby("~api00", "~awards", d["cal"]),
        "poisson": lambda: survey.svytotal("~api00", d["poisson"]),
        "pps": lambda: survey.svytotal("~api00", d["pps"]),
        "linear": lambda: survey.svyglm("api00 ~ ell + meals + as.factor(stype)", d["cal"]),
        "logit": lambda: survey.svyglm(
            "I(api00 > 700) ~ ell + meals", d["strat"], family="quasibinomial"
        ),
    }
    return calls[name]()


@pytest.fixture(scope="module")
def plain(plain_r):
    code = f"suppressPackageStartupMessages({{{DESIGNS}}})\n"
    for name, call in ESTIMATES.items():
        code += f'x <- {call}; show("{name}.estimate", coef(x))\n'
        code += f'show("{name}.error", if (is.data.frame(SE(x))) unlist(SE(x)) else SE(x))\n'
        if name not in WITHOUT_COVARIANCE:
            code += f'show("{name}.covariance", vcov(x))\n'
        code += f'show("{name}.names", names(coef(x)))\n'
    code += 'show("weights", weights(cal)); show("degf", degf(clus1)); show("deff", deff('
    code += "svymean(~api00, clus1, deff = TRUE)))\n"
    code += 'show("interval", confint(svymean(~api00, clus1), level = 0.9, df = degf(clus1)))\n'
    return plain_r(code)


@pytest.mark.parametrize("name", ESTIMATES)
def test_raw_is_r_to_the_bit(known, plain, name):
    fit = estimated(known["raw"], name)
    np.testing.assert_array_equal(fit.estimate, plain[f"{name}.estimate"])
    np.testing.assert_array_equal(fit.standard_error, plain[f"{name}.error"])
    assert list(fit.names) == plain[f"{name}.names"]
    if name not in WITHOUT_COVARIANCE:
        np.testing.assert_array_equal(fit.covariance.ravel(order="F"), plain[f"{name}.covariance"])


def test_guarded_is_its_script_to_the_bit(known, plain, plain_r, tmp_path):
    fits = {name: estimated(known["guarded"], name) for name in ESTIMATES}
    code = "suppressPackageStartupMessages(library(survey))\n"
    for name, fit in fits.items():
        # Where R's locale does not put labels into another order, the numbers are R's own.
        np.testing.assert_allclose(fit.estimate, plain[f"{name}.estimate"], rtol=1e-12)
        np.testing.assert_allclose(fit.standard_error, plain[f"{name}.error"], rtol=1e-10)
        data = known_frame(known["guarded"], name)
        kept = fit.to_rds(tmp_path / f"{name}.rds", data)
        code += f"local({{\ninvisible(capture.output({{{fit.r_script(data=data)}\n}}))\n"
        code += f'show("{name}.estimate", coef(result)); show("{name}.error", '
        code += "if (is.data.frame(SE(result))) unlist(SE(result)) else SE(result))\n"
        code += f'x <- readRDS("{kept}"); show("{name}.kept", coef(x))\n'
        code += "invisible(capture.output(print(x)))\n})\n"
    found = plain_r(code)
    for name, fit in fits.items():
        for key in ("estimate", "kept"):
            np.testing.assert_array_equal(found[f"{name}.{key}"], fit.estimate)
        np.testing.assert_array_equal(found[f"{name}.error"], fit.standard_error)


def known_frame(known, name):
    call = ESTIMATES[name]
    words = [w for w in known if f" {w}," in call or f" {w})" in call]
    return known[words[-1]].frame


def test_weights_degrees_of_freedom_effects_and_intervals(known, plain):
    known = known["guarded"]
    np.testing.assert_allclose(survey.weights(known["cal"]), plain["weights"], rtol=1e-12)
    fit = survey.svymean("~api00", known["clus1"], deff=True, level=0.9)
    assert fit.degrees_of_freedom == plain["degf"][0]
    np.testing.assert_array_equal(fit.design_effect, plain["deff"])
    np.testing.assert_array_equal([fit.lower[0], fit.upper[0]], plain["interval"])


def test_the_same_numbers_as_the_direct_estimates(tables, known):
    table = tables["apistrat"]
    fit = survey.svyby("~api00", "~cname", known["guarded"]["strat"])
    pop = datasets.from_r("survey", "apipop", file="api")
    population = pb.population(pop, domain="cname", auxiliary=["api99"])
    design = pb.survey_design(table, weights="pw", strata="stype", fpc="fpc")
    native = pb.hajek(design, population, outcome="api00", domain="cname").to_frame()
    ours = fit.to_frame().set_index("cname")
    seen = native[native["n_labelled"] > 0].set_index("domain")
    assert set(ours.index) == set(seen.index)
    ours = ours.loc[seen.index]
    np.testing.assert_allclose(ours["estimate"], seen["estimate"], rtol=1e-12)
    # One unit has no standard error, in both.
    np.testing.assert_array_equal(ours["status"] == "single_unit", seen["n_labelled"] == 1)
    np.testing.assert_allclose(ours["standard_error"], seen["standard_error"], rtol=1e-10)


def test_one_unit_has_error_0_raw_and_none_guarded(known):
    for mode, expected in (("raw", 0.0), ("guarded", np.nan)):
        fit = survey.svyby("~api00", "~cname", known[mode]["strat"])
        single = fit.domain_status == "single_unit"
        assert single.any() and single.sum() < len(single)
        np.testing.assert_array_equal(fit.standard_error[single], expected)
        assert np.isfinite(fit.standard_error[~single]).all()


def test_the_covariance_of_domains_on_a_calibrated_design(known):
    raw, guarded = (known[mode]["cal"] for mode in ("raw", "guarded"))
    version = require_packages("survey")["survey"].replace("-", ".").split(".")
    if tuple(map(int, version[:2])) <= (4, 1):  # later ones can
        with pytest.raises(EngineError, match="replacement length"):
            survey.svyby("~api00", "~awards", raw, covmat=True)
    for function in ("svymean", "svytotal"):
        fit = survey.svyby("~api00 + api99", "~awards", guarded, function)
        np.testing.assert_allclose(np.sqrt(np.diag(fit.covariance)), fit.standard_error, rtol=1e-10)
    # The totals of all domains add up to the whole, and so do their covariances.
    whole = survey.svytotal("~api00 + api99", guarded)
    np.testing.assert_allclose(fit.estimate.reshape(2, -1).sum(axis=1), whole.estimate, rtol=1e-12)
    parts = fit.covariance.reshape(2, 2, 2, 2).sum(axis=(1, 3))
    np.testing.assert_allclose(parts, whole.covariance, atol=1e-12 * parts.max())


def test_missing_values_are_na_raw_and_refused_guarded(known):
    raw = survey.svytotal("~enroll", known["raw"]["clus2"])
    assert np.isnan(raw.estimate).all()
    with pytest.raises(InputError) as caught:
        survey.svytotal("~enroll", known["guarded"]["clus2"])
    assert caught.value.code == "missing_values" and "na_rm" in caught.value.expected


def test_negative_weights_and_lonely_strata(tables):
    table = tables["apistrat"].assign(w=lambda t: t["pw"].where(t.index > 0, -1.0))
    fit = survey.svymean("~api00", survey.svydesign(1, table, weights="w", mode="raw"))
    assert np.isfinite(fit.estimate).all()
    with pytest.raises(InputError) as caught:
        survey.svydesign(1, table, weights="w")
    assert caught.value.code == "bad_weight"
    types = tables["apistrat"]["stype"]
    rows = [i for t, n in (("E", 3), ("H", 2), ("M", 1)) for i in np.flatnonzero(types == t)[:n]]
    lonely = tables["apistrat"].iloc[rows]
    words = {"strata": "stype", "weights": "pw"}
    raw = survey.svydesign(1, lonely, mode="raw", **words)
    with pytest.raises(EngineError, match="only one PSU"):
        survey.svymean("~api00", raw)
    with pytest.raises(InputError) as caught:
        survey.svydesign(1, lonely, **words)
    assert caught.value.code == "lonely_psu"
    fit = survey.svymean("~api00", survey.svydesign(1, lonely, lonely_psu="adjust", **words))
    assert fit.standard_error[0] > 0


def test_totals_by_position_raw_and_by_name_guarded(known):
    right = {"(Intercept)": 6194, "api99": 3914069}
    raw = known["raw"]["strat"]
    turned = survey.calibrate(raw, "~api99", dict(reversed(right.items())))
    with pytest.warns(EngineWarning, match="reordered"):
        survey.svymean("~api00", turned)
    guarded = known["guarded"]["strat"]
    fits = [
        survey.svymean("~api00", survey.calibrate(guarded, "~api99", totals))
        for totals in (right, dict(reversed(right.items())))
    ]
    assert fits[0].estimate == fits[1].estimate
    with pytest.raises(InputError) as caught:
        survey.calibrate(guarded, "~api99", {"Intercept": 6194, "api99": 3914069})
    assert caught.value.code == "unknown_total" and "(Intercept)" in caught.value.expected
    with pytest.raises(InputError) as caught:
        survey.postStratify(guarded, "stype", pd.DataFrame({"stype": ["E", "H"], "Freq": [1, 2]}))
    assert caught.value.code == "unknown_post_stratum"


def test_labels_come_back_and_reach_r_in_any_locale(tmp_path):
    draw = np.random.default_rng(1)
    table = pd.DataFrame({"시 군": np.repeat(ODD, 3), "y": draw.normal(size=36), "w": 2.0})
    design = survey.svydesign(1, table, weights="w")
    fit = survey.svyby("~y", "~`시 군`", design)
    assert set(fit.by["시 군"]) == set(ODD) and list(fit.by["시 군"]) == sorted(ODD)
    script = fit.r_script(tmp_path / "s.R", data=table)
    assert script.isascii()
    code = f'source("{tmp_path / "s.R"}"); cat("\\nSUM", sprintf("%a", sum(coef(result))), "\\n")'
    done = subprocess.run(
        ["Rscript", "-e", code],
        env={**os.environ, "LC_ALL": "C"},
        capture_output=True,
        timeout=120,
        check=True,
    )
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    (line,) = [x for x in lines if x.startswith("SUM")]
    assert float.fromhex(line.split()[1]) == pytest.approx(fit.estimate.sum(), rel=1e-12)
    frame = fit.to_frame()
    means = table.groupby("시 군")["y"].mean().loc[list(frame["시 군"])]
    np.testing.assert_allclose(frame["estimate"], means, rtol=1e-12)


def test_records_hold_no_units_and_take_the_same_ones_again(tables, known):
    fit = survey.svymean("~api00", known["guarded"]["strat"])
    assert "data" not in fit.inputs and pickle.loads(pickle.dumps(fit)) == fit
    assert json.loads(json.dumps(fit.to_dict(), allow_nan=False))["status"] == "converged"
    assert "svymean" in fit.summary() and fit.provenance.packages["survey"]
    with pytest.raises(InputError) as caught:
        fit.r_script()
    assert caught.value.code == "missing_argument"
    with pytest.raises(InputError) as caught:
        fit.r_script(data=tables["apistrat"].iloc[::-1])
    assert caught.value.code == "other_units"
