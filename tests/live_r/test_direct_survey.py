"""engine="survey": R's own estimates, covariances and groups in the record of the native ones."""

from __future__ import annotations

import pickle
from functools import lru_cache

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.cli import main
from pybridge.direct import _survey
from pybridge.r import require_packages
from validation.cases.survey import CASES, load

pytestmark = pytest.mark.r("survey")

RTOL = 1e-10
# Of covariances, relative to the two standard errors; of variances that are 0 but for rounding.
NOISE = 1e-25
SLOPES = {"greg": "pooled", "greg2": "pooled", "greg_within": "within", "greg_fixed": 0.5}
SLOPES["greg_domain"] = "domain"


@lru_cache(maxsize=None)
def described(name):
    case = load(name)
    roles = ("strata", "ids", "fpc", "pps")
    options = {role: case.columns[role] or None for role in roles}
    design = pb.survey_design(
        case.units, weights="w", lonely_psu=case.columns["lonely_psu"], **options
    )
    population = pb.population(
        case.totals,
        domain="domain",
        size="N",
        auxiliary_means=["f", "g"],
        taxonomy=["group", "domain"],
    )
    return case, design, population


def estimated(name, estimator, engine):
    case, design, population = described(name)
    words = {"outcome": "y", "domain": case.columns["domain"], "engine": engine}
    if estimator in ("ht", "hajek"):
        function = pb.horvitz_thompson if estimator == "ht" else pb.hajek
        return function(design, population, **words)
    if estimator == "ppi":
        return pb.prediction_powered(design, population, prediction="f", **words)
    auxiliary = ["f", "g"] if estimator == "greg2" else ["f"]
    words["slope"] = SLOPES[estimator]
    return pb.generalized_regression(design, population, auxiliary=auxiliary, **words)


def close(mine, known, scale):
    """Within 1e-10 of the scale, and NaN in the same places."""
    mine, known = np.asarray(mine, dtype=float), np.asarray(known, dtype=float)
    np.testing.assert_array_equal(np.isnan(mine), np.isnan(known))
    gap = np.abs(np.nan_to_num(mine - known))
    assert np.all(gap <= np.nan_to_num(RTOL * np.asarray(scale)) + NOISE)


def centres_lonely_strata():
    """survey 4.1 leaves what "adjust" lets in as it is; a later one centres it, at the mean of all.

    pybridge and the answers kept are of 4.1.
    """
    version = require_packages("survey")["survey"].replace("-", ".").split(".")
    return tuple(map(int, version[:2])) > (4, 1)


@pytest.mark.parametrize("name", CASES.index)
def test_r_and_native_agree_on_every_design(name):
    case = described(name)[0]
    if case.columns["lonely_psu"] == "adjust" and centres_lonely_strata():
        native, by_r = (estimated(name, "greg", engine) for engine in ("native", "survey"))
        close(by_r.estimate, native.estimate, np.abs(native.estimate))
        assert np.nanmax(np.abs(by_r.standard_error / native.standard_error - 1.0)) > 1e-4
        return
    for estimator in case.estimators:
        native, by_r = (estimated(name, estimator, engine) for engine in ("native", "survey"))
        assert (native.engine, by_r.engine) == ("native", "survey")
        mine, known = by_r.to_frame(), native.to_frame()
        same = ["domain", "n_labelled", "size", "level", "degrees_of_freedom", "status"]
        pd.testing.assert_frame_equal(mine[same], known[same])
        for column in ("estimate", "standard_error", "lower", "upper"):
            close(mine[column], known[column], np.abs(known["estimate"]))
        close(mine["variance"], known["variance"], known["variance"])
        V, W = np.array(by_r.covariance()), np.array(native.covariance())
        seen = ~np.isnan(native.variance)
        error = np.sqrt(np.diag(W))
        close(V[np.ix_(seen, seen)], W[np.ix_(seen, seen)], np.outer(error[seen], error[seen]))
        ht = estimated(name, "ht", "native").standard_error
        close(mine["covariance_ht"], known["covariance_ht"], known["standard_error"] * ht)
        close(by_r.coefficients, native.coefficients, 1 + np.abs(native.coefficients))
        for level in (None, "group"):
            mine, known = (fit.aggregate(level).to_frame() for fit in (by_r, native))
            same = ["group", "n_labelled", "size", "degrees_of_freedom", "status"]
            pd.testing.assert_frame_equal(mine[same], known[same])
            for column in ("estimate", "standard_error", "lower", "upper"):
                close(mine[column], known[column], np.abs(known["estimate"]))


@pytest.mark.parametrize("estimator", ["ht", "hajek", "ppi", "greg"])
def test_the_numbers_are_those_that_plain_r_kept(estimator):
    # The golden answers come from another R script, which writes each call out.
    case = described("clusters")[0]
    found = estimated("clusters", estimator, "survey").to_frame()
    known = case.answer(estimator, "estimate", case.domains)
    np.testing.assert_allclose(found["estimate"], known, rtol=1e-13)
    known = case.answer(estimator, "se", case.domains)
    if estimator == "hajek":  # R calls the variance of a ratio of one unit 0
        known = np.where(found["n_labelled"] == 1, np.nan, known)
    np.testing.assert_allclose(found["standard_error"], known, rtol=1e-13)


def test_the_script_is_the_answer_to_the_bit(plain_r, tmp_path):
    code, fits = "", {}
    for name in ("stratified_fraction", "clusters", "poisson", "lonely_average_fpc"):
        case, design, _ = described(name)
        for estimator in ("hajek", "ppi", "greg2", "greg_within"):
            fit = estimated(name, estimator, "survey")
            path = tmp_path / f"{name}_{estimator}.R"
            text = fit.r_script(path, design=design, domain=case.columns["domain"])
            assert path.read_text(encoding="utf-8") == text and text.isascii()
            key = f"{name}.{estimator}"
            code += f'local({{\n{text}\nshow("{key}", result$estimate)\n'
            code += f'show("{key}.covariance", answer$covariance)\n}})\n'
            fits[key] = fit
    plain = plain_r("suppressPackageStartupMessages(library(survey))\n" + code)
    for key, fit in fits.items():
        np.testing.assert_array_equal(plain[key], fit.formal)
        np.testing.assert_array_equal(plain[f"{key}.covariance"], fit.covariance().ravel(order="F"))


def test_domains_without_units_and_a_level_of_many_groups():
    case, design, population = described("stratified_size")
    more = pd.concat([case.totals, case.totals.assign(domain=lambda t: "no " + t["domain"])])
    wide = pb.population(
        more, domain="domain", size="N", auxiliary_means=["f", "g"], taxonomy=["group", "domain"]
    )
    words = {"outcome": "y", "domain": case.columns["domain"]}
    for function in (pb.horvitz_thompson, pb.hajek, pb.generalized_regression):
        by_r = function(design, wide, engine="survey", **words)
        native = function(design, wide, **words)
        assert (by_r.status == "out_of_sample").sum() == len(case.totals)
        close(by_r.estimate, native.estimate, 1 + np.abs(np.nan_to_num(native.estimate)))
        close(by_r.variance, native.variance, native.variance)
        for level in (None, "group", "domain"):
            mine, known = (fit.aggregate(level) for fit in (by_r, native))
            close(mine.estimate, known.estimate, 1 + np.abs(np.nan_to_num(known.estimate)))
            close(mine.variance, known.variance, known.variance)


def test_without_an_intercept_and_of_several_levels():
    case, design, population = described("census")
    words = {"outcome": "y", "domain": case.columns["domain"], "intercept": False}
    for slope in ("pooled", "domain", [1.0, 0.0]):
        by_r = pb.generalized_regression(design, population, slope=slope, engine="survey", **words)
        native = pb.generalized_regression(design, population, slope=slope, **words)
        close(by_r.estimate, native.estimate, np.abs(native.estimate))
        close(by_r.variance, native.variance, native.variance)


def test_the_record_names_its_engine_and_is_like_any_other():
    found = estimated("srs", "greg", "survey")
    assert found.answer.provenance.packages["survey"] and found.answer.provenance.r
    assert "svytotal of the residuals by survey" in found.summary()
    assert pickle.loads(pickle.dumps(found)) == found
    assert found != estimated("srs", "greg", "native")
    # R's warnings are conditions, and nothing of the units is kept.
    assert found.answer.conditions == ()
    assert pb.fay_herriot("estimate ~ f", found.to_area(), engine="native").status


def test_what_survey_cannot_do_is_refused_before_r_is_asked(monkeypatch):
    case, design, population = described("srs")
    words = {"outcome": "y", "domain": case.columns["domain"], "engine": "survey"}
    monkeypatch.setattr("pybridge.r.call", None)
    with pytest.raises(pb.InputError) as caught:
        pb.hajek(design, population, variance="smoothed", **words)
    assert caught.value.code == "not_available" and "native" in caught.value.hint
    monkeypatch.setattr(_survey, "_MOST_BYTES", 1e3)
    with pytest.raises(pb.InputError) as caught:
        pb.hajek(design, population, **words)
    assert caught.value.code == "too_large" and "native" in caught.value.hint
    with pytest.raises(pb.InputError) as caught:
        pb.horvitz_thompson(design, population, outcome="y", engine="sas")
    assert caught.value.expected == "native | survey"


def test_the_command_has_the_engine(tmp_path, capsys):
    case = described("stratified_size")[0]
    case.units.to_csv(tmp_path / "units.csv", index=False)
    totals = case.totals.rename(columns={"domain": case.columns["domain"]})
    totals.to_csv(tmp_path / "totals.csv", index=False)
    words = ["direct", str(tmp_path / "units.csv"), "--outcome", "y", "--domain", "quarter"]
    words += ["--auxiliary", "f", "--weights", "w", "--strata", "type", "--fpc", "fpc"]
    words += ["--population", str(tmp_path / "totals.csv")]
    tables = {}
    for engine in ("native", "survey"):
        out = tmp_path / f"{engine}.csv"
        assert main([*words, "--engine", engine, "--out", str(out)]) == 0
        tables[engine] = pd.read_csv(out)
    assert "by survey" in capsys.readouterr().out
    pd.testing.assert_frame_equal(tables["native"], tables["survey"], rtol=1e-9)
    assert main([*words, "--engine", "survey", "--variance", "pooled"]) == 2
