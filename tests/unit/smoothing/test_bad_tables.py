"""Tables that no area-level model can take: each refuses them, before R, naming what is wrong."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.errors import InputError


def table(m=16):
    rng = np.random.default_rng(3)
    d = rng.uniform(0.3, 2.0, m)
    x = rng.normal(size=m)
    z = 3 + x + rng.normal(size=m) * np.sqrt(0.5 + d)
    names = [f"d{i:02d}" for i in range(m)]
    groups = [f"g{i % 4}" for i in range(m)]
    columns = {"domain": names, "group": groups, "estimate": z, "variance": d, "x": x}
    return pd.DataFrame(columns)


def area(method="REML", engine="native"):
    def fit(frame, formula="estimate ~ x", **words):
        return pb.fay_herriot(formula, frame, engine=engine, method=method, **words)

    return fit


def tree(method="bayes", engine="native"):
    def fit(frame, formula="estimate ~ x", **words):
        levels = words.pop("levels", ["group", "domain"])
        return pb.taxonomy_model(
            formula, frame, levels=levels, engine=engine, method=method, **words
        )

    return fit


LIKELIHOOD = {
    "FH by REML": area(),
    "FH by ML": area("ML"),
    "FH by moments": area("FH"),
    "FH by sae": area("REML", "sae"),
    "FH by emdi": area("REML", "emdi"),
}
PRIORS = {
    "Bayes": area("bayes"),
    "Bayes by hbsae": area("bayes", "hbsae"),
    "taxonomy": tree(),
    "taxonomy by REML": tree("REML"),
    "taxonomy by rjags": tree("bayes", "rjags"),
    "taxonomy by metafor": tree("REML", "metafor"),
}
MODELS = {**LIKELIHOOD, **PRIORS}
TREES = {name: fit for name, fit in PRIORS.items() if name.startswith("taxonomy")}


def refused(fit, code, frame, **words):
    with pytest.raises(InputError) as caught:
        fit(frame, **words)
    error = caught.value
    assert error.code == code, str(error)
    assert error.field and error.expected is not None and error.got is not None
    return str(error)


def replaced(column, value, rows=(2,)):
    frame = table()
    frame.loc[list(rows), column] = value
    return frame


def unlabelled_without_covariate():
    frame = replaced("estimate", np.nan)
    frame.loc[2, "x"] = np.nan
    return frame


EVERYWHERE = {
    "collinear": ("collinear_covariates", lambda: table().assign(y=lambda t: 2 * t["x"] + 1), "y"),
    "no covariate": ("missing_covariate", unlabelled_without_covariate, "d02"),
    "all variances 0": ("all_variances_zero", lambda: table().assign(variance=0.0), "16 zeros"),
    "infinite variance": ("infinite_values", lambda: replaced("variance", np.inf), "2"),
    "huge variance": ("out_of_range", lambda: replaced("variance", 1e300), "d02"),
    "huge beside others": ("out_of_range", lambda: replaced("variance", 1e45), "d02"),
    "vanishing variance": ("out_of_range", lambda: replaced("variance", 1e-300), "d02"),
    "all huge": ("out_of_range", lambda: table().assign(variance=1e300), "d00"),
    "negative variance": ("negative_variance", lambda: replaced("variance", -1.0), "d02"),
    "huge estimate": ("out_of_range", lambda: replaced("estimate", -1e200), "d02"),
    "infinite estimate": ("infinite_values", lambda: replaced("estimate", np.inf), "2"),
    "domain twice": ("duplicate_domain", lambda: pd.concat([table(), table()]), "d00"),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("fault", EVERYWHERE)
def test_every_model_refuses(model, fault):
    code, frame, names = EVERYWHERE[fault]
    words = {"formula": "estimate ~ x + y"} if fault == "collinear" else {}
    assert names in refused(MODELS[model], code, frame(), **words)


@pytest.mark.parametrize("model", PRIORS)
def test_too_few_domains_for_the_prior(model):
    """m <= p + 2 labelled domains: the posterior under the flat prior does not exist."""
    four = table(4).assign(group=["g0", "g0", "g1", "g1"])
    for frame in (four, replaced("estimate", np.nan, rows=range(4, 16))):
        assert "at least 5" in refused(PRIORS[model], "too_few_domains", frame)


@pytest.mark.parametrize("model", LIKELIHOOD)
def test_too_few_domains_for_anything(model):
    assert "more than 2" in refused(LIKELIHOOD[model], "too_few_domains", table(2))


def test_just_enough_is_weakly_identified():
    for fit in (MODELS["FH by REML"], MODELS["Bayes"], MODELS["taxonomy by REML"]):
        assert fit(table(7)).status == "weak_identification"
    five = table(5).assign(group=["g0", "g0", "g1", "g1", "g1"])
    assert MODELS["taxonomy"](five).status == "weak_identification"


@pytest.mark.parametrize("model", TREES)
def test_taxonomies_that_are_none(model):
    two_parents = pd.concat([table(), table().iloc[[5]].assign(group="g0")], ignore_index=True)
    text = refused(TREES[model], "taxonomy_not_nested", two_parents)
    assert "'d05'" in text and "g0" in text and "g1" in text
    same = table().assign(leaf=lambda t: t["domain"])
    refused(TREES[model], "level_equals_domain", same, levels=["leaf", "domain"])
    again = table().assign(again=lambda t: t["group"])
    text = refused(TREES[model], "redundant_level", again, levels=["again", "group", "domain"])
    assert "one group" in text
    refused(TREES[model], "single_group", table().assign(group="g"))


@pytest.mark.parametrize("model", MODELS)
def test_covariates_of_other_domains(model):
    """Both lists: the domains without covariates, and the covariates of no domain."""
    known = table()[["domain", "x"]].iloc[1:]
    known = pd.concat([known, pd.DataFrame({"domain": ["d77"], "x": [0.0]})])
    text = refused(MODELS[model], "domains_differ", table().drop(columns="x"), covariates=known)
    assert "only with estimates: d00" in text and "only with covariates: d77" in text


@pytest.mark.parametrize("model", ["FH by REML", "Bayes", "taxonomy", "taxonomy by REML"])
def test_covariates_from_a_table_of_their_own(model):
    whole = MODELS[model](table())
    split = MODELS[model](
        table().drop(columns="x"),
        covariates=table()[["domain", "x"]].sample(frac=1.0, random_state=1),
    )
    np.testing.assert_array_equal(whole.to_frame()["estimate"], split.to_frame()["estimate"])


def test_tables_of_covariates_that_do_not_do():
    fit, frame = MODELS["FH by REML"], table().drop(columns="x")
    known = table()[["domain", "x"]]
    refused(fit, "duplicate_domain", frame, covariates=pd.concat([known, known.iloc[[0]]]))
    refused(fit, "duplicate_column", table(), covariates=known)
    refused(fit, "missing_column", frame, covariates=known.rename(columns={"domain": "county"}))
    refused(fit, "not_a_table", frame, covariates=[1.0, 2.0])
    numbers = known.assign(domain=range(16))
    text = refused(
        fit, "domains_differ", frame.assign(domain=[str(i) for i in range(16)]), covariates=numbers
    )
    assert "text" in text and "numbers" in text


def test_direct_estimates_with_covariates():
    units = pd.DataFrame({"d": np.repeat(list("abcdef"), 20), "f": np.arange(120.0)})
    units["y"] = units["f"] + np.tile([0.0, 1.0], 60)
    design = pb.survey_design(units.iloc[::4].assign(w=4.0), weights="w")
    population = pb.population(units, domain="d", auxiliary="f")
    direct = pb.generalized_regression(design, population, outcome="y", domain="d", auxiliary="f")
    more = pd.DataFrame({"domain": list("fedcba"), "age": [6, 5, 4, 3, 2, 1]})
    area_frame = direct.to_area(more)
    assert list(area_frame["age"]) == [1, 2, 3, 4, 5, 6]
    assert list(direct.to_area().columns) == [c for c in area_frame.columns if c != "age"]
    with pytest.raises(InputError) as caught:
        direct.to_area(more.iloc[1:])
    assert caught.value.code == "domains_differ" and "f" in caught.value.got
