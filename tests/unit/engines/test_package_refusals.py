"""What hbsae, metafor, rjags and survey refuse before R is asked for anything."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.engines import _engine_request as requests
from pybridge.engines import hbsae, metafor, rjags, survey
from pybridge.engines.capabilities import capabilities
from pybridge.errors import InputError

MODEL = "model { y ~ dnorm(mu, 1) mu ~ dnorm(0, 1) }"


@pytest.fixture(autouse=True)
def no_r(monkeypatch):
    """Any call of R is a failure here."""

    def call(*args, **words):
        raise AssertionError("R was called")

    monkeypatch.setattr(requests, "call_many", call)


def area(m=12):
    draw = np.random.default_rng(1)
    table = pd.DataFrame({"name": [f"d{i}" for i in range(m)], "y": draw.normal(size=m), "v": 0.5})
    return table.assign(x=draw.normal(size=m), g=list("abc") * (m // 3))


def units():
    draw = np.random.default_rng(2)
    return pd.DataFrame(
        {"y": draw.normal(size=20), "w": 2.0, "s": list("pq") * 10, "c": np.arange(20) // 2}
    )


def refused(call, *arguments, code, field=None, **words):
    with pytest.raises(InputError) as caught:
        call(*arguments, **words)
    error = caught.value
    assert error.code == code and error.field and error.expected
    if field is not None:
        assert error.field == field


HBSAE = [
    ("unknown_option", {"method": "hb"}),
    ("unknown_option", {"mode": "rough"}),
    ("bad_tolerance", {"rel_int_tol": 0.0}),
    ("bad_function", {"prior": "1/sqrt(x)"}),
    ("bad_variance", {"lambda0": 0.0}),
    ("missing_argument", {"method": "BLUP"}),
    ("not_available", {"method": "survreg", "lambda0": 0.1}),
    ("not_a_bool", {"CV": 1}),
    ("bad_level", {"level": 95}),
    ("bad_prior", {"beta0": [0.0, 0.0]}),
    ("bad_prior", {"Omega0": np.nan}),
    ("not_positive_semidefinite", {"Omega0": [[-1.0]]}),
    ("bad_weight", {"CVweights": [1.0]}),
    ("missing_column", {"est_init": "z"}),
    ("missing_column", {"domain": "nobody"}),
]


@pytest.mark.parametrize(("code", "words"), HBSAE)
def test_hbsae(code, words):
    words = {"est_init": "y", "var_init": "v", **words}
    refused(hbsae.fSAE_Area, area(), code=code, **words)


@pytest.mark.parametrize(
    ("code", "change", "words"),
    [
        ("bad_variance", {"v": 0.0}, {}),
        ("bad_variance", {"v": np.nan}, {}),
        ("duplicate_domain", {"name": "twice"}, {"domain": "name"}),
        ("not_numeric", {"y": "text"}, {}),
        ("too_few_domains", {"y": [1.0, 2.0, 3.0] + [np.nan] * 9}, {}),
    ],
)
def test_tables_for_hbsae(code, change, words):
    refused(hbsae.fSAE_Area, area().assign(**change), "y", "v", code=code, **words)


def test_covariates_for_hbsae():
    table = area()
    X = pd.DataFrame({"one": 1.0, "x": table["x"].to_numpy()}, index=table["name"])
    words = {"domain": "name"}
    refused(hbsae.fSAE_Area, table, "y", "v", X.iloc[1:], code="unknown_domain", **words)
    refused(hbsae.fSAE_Area, table, "y", "v", X.assign(z=2.0), code="constant_covariate", **words)
    twice = X.rename(index={"d1": "d0"})
    refused(hbsae.fSAE_Area, table, "y", "v", twice, code="duplicate_domain", **words)
    holes = X.assign(x=X["x"].where(X["x"] > X["x"].min()))
    refused(hbsae.fSAE_Area, table, "y", "v", holes, code="missing_covariate", **words)
    refused(hbsae.fSAE_Area, table, "y", "v", "y ~ x", code="bad_formula", field="X", **words)


def related(groups):
    return pd.DataFrame(np.eye(len(groups)), list(groups), list(groups))


METAFOR = [
    ("unknown_option", {"method": "DL"}),
    ("not_available", {"method": "FE"}),
    ("unknown_option", {"struct": "AR1"}),
    ("unknown_option", {"struct": []}),
    ("unknown_option", {"test": "F"}),
    ("unknown_option", {"control": {"optimizer": ["a"]}}),
    ("bad_level", {"level": 0.0}),
    ("not_a_bool", {"sparse": "yes"}),
    ("missing_column", {"V": "d"}),
    ("bad_shape", {"V": np.eye(3)}),
    ("bad_shape", {"W": np.ones(3)}),
    ("bad_formula", {"random": "1 | g"}),
    ("unknown_function", {"mods": "~ system(x)"}),
    ("missing_column", {"mods": "~ z"}),
    ("bad_labels", {"R": {"g": pd.DataFrame(np.eye(2), ["a", "b"], ["b", "a"])}}),
    ("not_symmetric", {"V": np.eye(12) + np.eye(12, k=1) / 2}),
    ("not_positive_semidefinite", {"V": -np.eye(12)}),
    ("missing_values", {"V": np.full((12, 12), np.nan)}),
    ("bad_weight", {"W": -np.ones(12)}),
    ("not_symmetric", {"W": np.triu(np.ones((12, 12)))}),
    ("unknown_group", {"R": {"g": related("ab")}}),
    ("unknown_factor", {"R": {"h": related("abc")}}),
    ("not_positive_semidefinite", {"R": {"g": -related("abc")}}),
    ("bad_formula", {"random": "~ g"}),
    ("bad_formula", {"random": "~ 1 | g:name"}),
    ("bad_formula", {"random": "~ x | g/name"}),
    ("too_many_terms", {"random": ["~ x | g", "~ y | g", "~ v | g"]}),
    ("unknown_option", {"control": {"optimizer": "foo"}}),
    ("unknown_option", {"control": {"optimizer": "optim", "optmethod": "foo"}}),
    ("bad_formula", {"mods": "~ 0"}),
]


@pytest.mark.parametrize(("code", "words"), METAFOR)
def test_metafor(code, words):
    words = {"V": "v", "random": "~ 1 | g", **words}
    V = words.pop("V")
    refused(metafor.rma_mv, area(), "y", V, code=code, **words)


def test_tables_for_metafor():
    words = {"random": "~ 1 | g", "domain": "name"}
    table = area()
    holes = table.assign(y=table["y"].where(table.index > 0))
    refused(metafor.rma_mv, holes, "y", "v", code="missing_values", **words)
    refused(metafor.rma_mv, table.assign(v=-1.0), "y", "v", code="negative_variance", **words)
    refused(metafor.rma_mv, table.assign(g="one"), "y", "v", code="single_group", **words)
    many = pd.concat([area()] * 400, ignore_index=True).assign(name=np.arange(4800))
    refused(metafor.rma_mv, many, "y", "v", code="too_large", **words)


RJAGS = [
    ("bad_model", {"model": "y ~ x"}),
    ("bad_count", {"n_iter": 0}),
    ("bad_count", {"thin": 0}),
    ("bad_count", {"n_chains": 0}),
    ("bad_count", {"seed": -1}),
    ("bad_shape", {"data": {"y": np.zeros((2, 2, 2))}}),
    ("bad_shape", {"data": {"y": []}}),
    ("unknown_option", {"mode": "rough"}),
    ("bad_level", {"level": 95}),
    ("bad_name", {"variable_names": [1]}),
]


@pytest.mark.parametrize(("code", "words"), RJAGS)
def test_rjags(code, words):
    words = {
        "model": MODEL,
        "data": {"y": 1.0},
        "variable_names": ["mu"],
        "n_iter": 100,
        **words,
    }
    refused(rjags.coda_samples, code=code, **words)


def test_the_taxonomy_for_rjags():
    table = area()
    words = {"levels": ["g", "name"]}
    call = rjags.taxonomy
    refused(call, table, "log(y) ~ x", "v", code="transformed_outcome", **words)
    refused(call, table, "y ~ offset(x)", "v", code="offset_not_supported", **words)
    refused(call, table, "y ~ x", "variance", code="missing_column", **words)


SURVEY = [
    ("missing_argument", {"weights": None}),
    ("missing_argument", {"pps": "ppsmat"}),
    ("missing_argument", {"joint": np.eye(20)}),
    ("missing_argument", {"pps": "poisson"}),
    ("bad_shape", {"pps": "ppsmat", "joint": np.eye(3)}),
    ("not_available", {"psum": 0.1}),
    ("not_available", {"pps": "brewer", "psum": 0.1}),
    ("not_available", {"pps": "HR", "psum": 0.1, "strata": "s"}),
    ("bad_tolerance", {"pps": "HR", "psum": 0}),
    ("not_a_number", {"pps": "HR", "psum": "a"}),
    ("unknown_option", {"pps": "madow"}),
    ("unknown_option", {"lonely_psu": "drop"}),
    ("missing_column", {"strata": "~z"}),
    ("missing_column", {"weights": "z"}),
    ("bad_name", {"strata": 3}),
    ("not_a_bool", {"nest": 1}),
]


@pytest.mark.parametrize(("code", "words"), SURVEY)
def test_survey_designs(code, words):
    words = {"weights": "w", **words}
    refused(survey.svydesign, 1, units(), code=code, **words)


def test_tables_for_survey():
    table = units()
    refused(survey.svydesign, 1, table.assign(w=0.0), weights="w", code="bad_weight")
    holes = table.assign(s=table["s"].where(table.index > 0))
    refused(survey.svydesign, 1, holes, weights="w", strata="s", code="missing_values")
    lonely = table.assign(s=["only"] + ["rest"] * 19)
    refused(survey.svydesign, 1, lonely, weights="w", strata="s", code="lonely_psu")
    clusters = table.assign(s=["only", "only"] + ["rest"] * 18)
    words = {"weights": "w", "strata": "s", "code": "lonely_psu"}
    refused(survey.svydesign, "~c", clusters, **words)
    survey.svydesign("~c", clusters, weights="w", strata="s", lonely_psu="adjust")


def test_estimates_by_survey():
    design = survey.svydesign(1, units().assign(z=np.nan), weights="w")
    refused(survey.svymean, "y", design, code="bad_formula")
    refused(survey.svymean, "~nothing", design, code="missing_column")
    refused(survey.svymean, "~z", design, code="missing_values")
    refused(survey.svymean, "~y", "design", code="wrong_type")
    refused(survey.svyby, "~y", "~s", design, "svyquantile", code="unknown_option")
    refused(survey.svyby, "~y", "~s", design, "svyratio", code="missing_argument")
    refused(survey.svyglm, "y ~ s", design, family="tweedie", code="unknown_option")
    counts = pd.DataFrame({"s": ["p"], "Freq": [10.0]})
    refused(survey.postStratify, design, "s", counts, code="unknown_post_stratum")
    refused(survey.calibrate, design, "~y", {"y": "many"}, code="not_a_number")


def test_a_design_describes_itself_and_holds_the_sample():
    design = survey.svydesign("~c", units(), weights="w", strata="~s", nest=True)
    text = "svydesign(ids = ~c, strata = ~s, weights = ~ `w`)"
    assert design.summary() == text and "20 units" in repr(design)
    assert design.columns == ("c", "s", "w")


def test_the_packages_are_reached_by_name_and_known_to_the_table():
    for name in ("hbsae", "metafor", "rjags", "survey"):
        module = getattr(pb.engines, name)
        assert all(hasattr(module, item) for item in module.__all__)
        assert any(f"engines.{name}" in item.entry for item in capabilities(engine=name))
