"""One fit by every engine: the taxonomy model, hbsae's posterior, direct estimates, the command."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.cli import main
from pybridge.crosscheck import one_level
from pybridge.direct import _survey
from validation.cases.survey import load as load_design
from validation.cases.taxonomy import load_area, load_taxonomy

pytestmark = pytest.mark.r("survey", "metafor", "rjags", "hbsae")


def described(name="stratified_size"):
    case = load_design(name)
    roles = {role: case.columns[role] or None for role in ("strata", "ids", "fpc", "pps")}
    design = pb.survey_design(
        case.units, weights="w", lonely_psu=case.columns["lonely_psu"], **roles
    )
    population = pb.population(case.totals, domain="domain", size="N", auxiliary_means=["f", "g"])
    return design, population, {"outcome": "y", "domain": case.columns["domain"]}


@pytest.mark.parametrize("engine", ["native", "survey"])
def test_direct_estimates_agree(engine):
    design, population, words = described()
    for function, more in (
        (pb.horvitz_thompson, {}),
        (pb.hajek, {}),
        (pb.prediction_powered, {"prediction": "f"}),
        (pb.generalized_regression, {"auxiliary": ["f", "g"], "slope": "within"}),
    ):
        estimates = function(design, population, engine=engine, **words, **more)
        found = estimates.crosscheck(design, domain=words["domain"])
        assert found.agrees and found.table.n_made == 4
        assert found.sentence.startswith("native and survey agree: at most")


def test_a_wrong_direct_estimate_parts(monkeypatch):
    design, population, words = described()
    right = _survey.CALLS
    estimates = pb.hajek(design, population, **words)
    original = _survey._with_numbers

    def wrong(found, value, answer):
        return original(found, {**value, "estimate": value["estimate"] * (1 + 1e-9)}, answer)

    monkeypatch.setattr(_survey, "_with_numbers", wrong)
    found = estimates.crosscheck(design, domain=words["domain"])
    assert not found.agrees and "survey parts from native in estimate" in found.sentence
    assert right is _survey.CALLS


def test_a_survey_that_refuses_is_named(monkeypatch):
    design, population, words = described()
    monkeypatch.setattr(_survey, "_MOST_BYTES", 10.0)
    found = pb.hajek(design, population, **words).crosscheck(design, domain=words["domain"])
    assert not found.agrees and "survey could not be asked" in found.sentence


@pytest.mark.parametrize("method", ["REML", "ML"])
def test_the_taxonomy_by_likelihood(method):
    case = load_taxonomy("gaps60")
    words = {"levels": case.levels, "method": method}
    for engine in ("native", "metafor"):
        fit = pb.taxonomy_model(case.formula, case.table, engine=engine, **words)
        found = fit.crosscheck()
        assert found.agrees and {a.producer for a in found.answers} == {"native", "metafor"}
        assert "native and metafor agree" in found.sentence and "native" in found.nearest


def test_a_search_that_stops_early_is_further_from_the_optimum():
    case = load_taxonomy("cross63")
    fit = pb.taxonomy_model(
        case.formula,
        case.table,
        levels=case.levels,
        engine="metafor",
        method="ML",
        optimizer="optim",
        optmethod="BFGS",
        reltol=1e-15,
    )
    found = fit.crosscheck()
    assert not found.agrees and found.nearest == ("native",)
    assert "metafor parts from native" in found.sentence
    assert "Nearest to the optimum is native; below in" in found.sentence


def test_the_posteriors_agree():
    case = load_taxonomy("groups34")
    fit = pb.taxonomy_model(case.formula, case.table, levels=case.levels, engine="rjags", seed=1)
    found = fit.crosscheck()
    assert found.agrees and "native and rjags agree" in found.sentence
    area = load_area("milk_areas")
    fit = pb.fay_herriot(area.formula, area.table, engine="hbsae", method="bayes")
    found = fit.crosscheck()
    assert found.agrees and {"native", "hbsae guarded", "hbsae raw"} == {
        a.producer for a in found.answers
    }


def test_the_command_takes_a_taxonomy(tmp_path, capsys):
    case = load_taxonomy("groups34")
    case.table.to_csv(tmp_path / "area.csv", index=False)
    words = ["crosscheck", str(tmp_path / "area.csv"), "--formula", case.formula]
    words += ["--levels", "region,domain", "--out", str(tmp_path / "rows.csv")]
    assert main([*words, "--method", "REML"]) == 0
    assert "native and metafor agree" in capsys.readouterr().out
    assert len(pd.read_csv(tmp_path / "rows.csv")) == 4
    assert main([*words, "--method", "bayes", "--json", "--seed", "3"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["agrees"] and len(found["answers"]) == 2
    assert main([*words, "--method", "FH"]) == 2
    assert np.isfinite(pd.read_csv(tmp_path / "rows.csv")["difference"]).all()


def test_fits_under_the_packages_own_names():
    table = load_taxonomy("groups34").table
    nested = {"mods": "~ x2", "random": "~ 1 | region / domain"}
    fit = pb.engines.metafor.rma_mv(table, "estimate", "variance", **nested)
    found = fit.crosscheck()
    assert found.agrees and "native and metafor agree" in found.sentence
    assert found.lacking("metafor") < 1e-6
    by_jags = pb.engines.rjags.taxonomy(
        table, "estimate ~ x2", "variance", ["region", "domain"], seed=1
    )
    found = by_jags.crosscheck()
    assert found.agrees and "native and rjags agree" in found.sentence
    theta = by_jags.of("theta")["mean"].to_numpy()
    answer = [a for a in found.answers if a.producer == "rjags"][0]
    medians = by_jags.of("sigma2")["median"].to_numpy()
    np.testing.assert_allclose(list(answer.numbers.values()), medians, rtol=1e-10)
    assert len(theta) == 34
    areas = load_area("gaps60").table
    fit = pb.engines.hbsae.fSAE_Area(areas, "estimate", "variance", "~ x2", domain="domain")
    found = fit.crosscheck()
    assert found.agrees and "native, hbsae guarded and hbsae raw agree" in found.sentence


def test_a_model_of_one_engine_only_has_nothing_to_compare_with():
    table = load_taxonomy("groups34").table
    fits = [
        pb.engines.metafor.rma_mv(table, "estimate", "variance", "~ x2", "~ 1 | region"),
        pb.engines.hbsae.fSAE_Area(table, "estimate", "variance", domain="domain", method="REML"),
        pb.engines.rjags.coda_samples(
            "model { mu ~ dnorm(0, 1) y ~ dnorm(mu, 1) }", {"y": 1.0}, ["mu"], 300, seed=1
        ),
    ]
    for fit in fits:
        with pytest.raises(pb.InputError) as caught:
            fit.crosscheck()
        assert caught.value.code == "not_available"


def test_metafor_is_asked_about_the_area_level_model(monkeypatch):
    area = load_area("gaps60")
    for method in ("REML", "ML"):
        fit = pb.fay_herriot(area.formula, area.table, engine="native", method=method)
        found = fit.crosscheck()
        producers = [a.producer for a in found.answers]
        assert "metafor" in producers and found.lacking("metafor") < 1e-6
        rows = [row for row in found.table.rows if row.producer == "metafor"]
        assert len(rows) == 4 and {row.verdict for row in rows} == {"agree"}
    monkeypatch.setattr(one_level, "MOST_DOMAINS", 10)
    assert "53 by 53" in fit.crosscheck().unavailable["metafor"]
