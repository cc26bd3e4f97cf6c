"""taxonomy_model: its request, its record, its table, and what it refuses."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

from pybridge.errors import InputError
from pybridge.smoothing.taxonomy import TaxonomyPrior, taxonomy_model
from validation.cases.taxonomy import load_taxonomy

LEVELS = ["region", "county", "domain"]
COLUMNS = (
    "region county domain direct direct_variance cv level estimate mse standard_error lower upper "
    "shrinkage synthetic status"
).split()


@pytest.fixture(scope="module")
def table():
    return load_taxonomy("gaps60").table


@pytest.fixture(scope="module")
def fit(table):
    return taxonomy_model("estimate ~ x2", table, levels=LEVELS)


def test_the_table_has_the_public_columns(fit, table):
    frame = fit.to_frame()
    assert list(frame.columns) == COLUMNS
    assert list(frame["domain"]) == list(table["domain"])
    assert list(frame["county"]) == list(table["county"])
    absent = table["estimate"].isna()
    assert (frame["status"] == np.where(absent, "out_of_sample", "ok")).all()
    assert (frame["lower"] < frame["estimate"]).all() and (frame["estimate"] < frame["upper"]).all()


@pytest.mark.parametrize("name", ["estimate", "level", "status", "domain", "effect"])
def test_a_level_named_like_a_column_of_the_answer_keeps_its_own(fit, table, name):
    if name == "domain":
        renamed = table.rename(columns={"domain": "leaf", "region": name})
        levels, formula = [name, "county", "leaf"], "estimate ~ x2"
    else:
        renamed = table.rename(columns={"estimate": "direct", "region": name})
        levels, formula = [name, "county", "domain"], "direct ~ x2"
    found = taxonomy_model(formula, renamed, levels=levels)
    frame, mine = found.to_frame(), fit.to_frame()
    own = name if name == "effect" else f"taxonomy_{name}"
    assert list(frame[own]) == list(table["region"])
    pd.testing.assert_frame_equal(frame.drop(columns=own), mine.drop(columns="region"))
    effects = found.effects(name)
    group = "taxonomy_effect" if name == "effect" else name
    assert list(effects.columns) == [group, "effect", "standard_error"]
    np.testing.assert_array_equal(effects["effect"], fit.effects("region")["effect"])


def test_the_name_of_a_level_that_steps_aside_is_free_itself(table):
    renamed = table.rename(columns={"region": "taxonomy_level", "county": "level"})
    frame = taxonomy_model(
        "estimate ~ x2", renamed, levels=["taxonomy_level", "level", "domain"]
    ).to_frame()
    assert list(frame.columns[:2]) == ["taxonomy_level", "taxonomy_taxonomy_level"]
    assert list(frame.iloc[:, 0]) == list(table["region"])
    assert list(frame.iloc[:, 1]) == list(table["county"])


def test_row_order_and_label_types_do_not_matter(fit, table):
    shuffled = table.sample(frac=1.0, random_state=1).reset_index(drop=True)
    shuffled["county"] = shuffled["county"].astype("category")
    shuffled["region"] = shuffled["region"].str[1:].astype(int)
    other = taxonomy_model("estimate ~ x2", shuffled, levels=LEVELS).to_frame().set_index("domain")
    mine = fit.to_frame().set_index("domain").loc[other.index]
    np.testing.assert_allclose(mine["estimate"], other["estimate"], rtol=1e-9)


def test_the_record(fit):
    assert list(fit.model_variance) == LEVELS
    assert list(fit.coefficients.columns) == ["term", "estimate", "standard_error"]
    assert np.isnan(fit.log_likelihood)
    assert pickle.loads(pickle.dumps(fit)) == fit
    assert fit.to_dict()["levels"] == LEVELS
    assert fit.provenance.engine == "native"


def test_the_summary_prints_the_prior(fit, table):
    text = fit.summary()
    assert (
        "prior of the variances: region inverse-gamma(1, 0.023468), county inverse-gamma(1, "
        "0.023468), domain inverse-gamma(0.1, 0.023468) (0.1 x the median sampling variance), "
        "coefficients flat" in text
    )
    assert "14 of county" in text
    one = taxonomy_model("estimate ~ x2", table, levels=["domain"], prior={"shape": 1, "scale": 2})
    assert "prior of the variances: inverse-gamma(1, 2) (given), coefficients" in one.summary()


def test_priors_without_shapes_have_the_default_ones(fit, table):
    same = taxonomy_model("estimate ~ x2", table, levels=LEVELS, prior={"factor": 0.1})
    assert same.prior.shape == fit.prior.shape == (1.0, 1.0, 0.1)
    assert same.model_variance == pytest.approx(fit.model_variance, rel=1e-9)
    scaled = taxonomy_model("estimate ~ x2", table, levels=LEVELS, prior={"scale": 0.3})
    assert scaled.prior.shape == (1.0, 1.0, 0.1)
    alone = taxonomy_model("estimate ~ x2", table, levels=["domain"])
    assert alone.prior.shape == (0.1,)


def test_effects_add_up(fit):
    frame = fit.to_frame()
    total = fit.coefficients["estimate"].iloc[0]
    slope = fit.coefficients["estimate"].iloc[1]
    x = load_taxonomy("gaps60").table["x2"].to_numpy()
    fitted = total + slope * x
    for level in LEVELS:
        effects = fit.effects(level).set_index(level)["effect"]
        fitted = fitted + effects.loc[frame[level]].to_numpy()
    np.testing.assert_allclose(fitted, frame["estimate"], rtol=1e-8)


def test_sensitivity(fit, table):
    found = fit.sensitivity()
    assert list(found["factor"]) == [0.1, 1.0, 10.0]
    assert found["largest_change"].iloc[1] == 0.0
    assert (found["largest_change"].iloc[[0, 2]] > 1e-3).all()
    assert found["scale_region"].iloc[2] == pytest.approx(10.0 * fit.prior.scale[0])
    direct = taxonomy_model("estimate ~ x2", table, levels=LEVELS, prior={"factor": 1.0})
    assert found["variance_county"].iloc[2] == pytest.approx(
        direct.model_variance["county"], rel=1e-6
    )


@pytest.mark.parametrize("method", ["REML", "ML"])
def test_likelihood_methods(table, method):
    fit = taxonomy_model("estimate ~ x2", table, levels=LEVELS, method=method)
    assert fit.prior is None and np.isfinite(fit.log_likelihood)
    assert "log-likelihood" in fit.summary()
    with pytest.raises(InputError):
        fit.sensitivity()


def test_one_level_alone(table):
    fit = taxonomy_model("estimate ~ x2", table, levels=["domain"])
    assert list(fit.model_variance) == ["domain"]
    assert "region" not in fit.to_frame()


def test_a_level_may_be_named_anything(table):
    named = table.rename(columns={"region": "Bundes land"})
    fit = taxonomy_model("estimate ~ x2", named, levels=["Bundes land", "county", "domain"])
    assert "Bundes land" in fit.to_frame().columns


@pytest.mark.parametrize(
    ("prior", "scale"),
    [
        ({"scale": 0.5}, (0.5,)),
        ({"shape": 2, "scale": [0.1, 0.2, 0.3]}, (0.1, 0.2, 0.3)),
        (TaxonomyPrior(shape=1.0, scale=0.7), (0.7,)),
    ],
)
def test_priors(table, prior, scale):
    fit = taxonomy_model("estimate ~ x2", table, levels=LEVELS, prior=prior)
    assert fit.prior.scale == scale


def same_county(table):
    return table.assign(same=table["county"])


REFUSED = {
    "taxonomy_not_nested": (
        lambda t: t.assign(region=np.where(t.index == 1, "r05", t["region"])),
        {},
    ),
    "redundant_level": (same_county, {"levels": ["same", "county", "domain"]}),
    "level_equals_domain": (
        lambda t: t.assign(leaf=t["domain"]),
        {"levels": ["region", "leaf", "domain"]},
    ),
    "single_group": (lambda t: t.assign(all="x"), {"levels": ["all", "county", "domain"]}),
    "no_levels": (lambda t: t, {"levels": []}),
    "missing_column": (lambda t: t, {"levels": ["regoin", "domain"]}),
    "missing_values": (
        lambda t: t.assign(county=t["county"].where(t.index > 0)),
        {},
    ),
    "duplicate_domain": (lambda t: pd.concat([t, t]), {}),
    "too_few_domains": (lambda t: t.iloc[[0, 1, 20, 40]], {"levels": ["region", "domain"]}),
    "collinear_covariates": (
        lambda t: t.assign(x3=2 * t["x2"] + 1),
        {"formula": "estimate ~ x2 + x3"},
    ),
    "missing_covariate": (
        lambda t: t.assign(x2=t["x2"].where(t["estimate"].notna())),
        {},
    ),
    "negative_variance": (lambda t: t.assign(variance=-t["variance"]), {}),
    "all_variances_zero": (lambda t: t.assign(variance=0.0), {}),
    "unknown_option": (lambda t: t, {"engine": "rjags", "method": "REML"}),
    "bad_prior": (lambda t: t, {"method": "REML", "prior": {"scale": 1.0}}),
    "bad_level": (lambda t: t, {"level": 95}),
}


@pytest.mark.parametrize("code", sorted(REFUSED))
def test_what_is_refused(table, code):
    change, words = REFUSED[code]
    words = {"formula": "estimate ~ x2", "levels": LEVELS, **words}
    with pytest.raises(InputError) as caught:
        taxonomy_model(words.pop("formula"), change(table), **words)
    assert caught.value.code == code
    assert caught.value.field and caught.value.expected


def test_the_message_names_the_child_and_its_parents(table):
    with pytest.raises(InputError, match=r"county 'c01' lies in several groups of 'region'.*r05"):
        taxonomy_model("estimate ~ x2", REFUSED["taxonomy_not_nested"][0](table), levels=LEVELS)


@pytest.mark.parametrize(
    "words",
    [
        {"prior": "weak"},
        {"prior": {"scale": -1}},
        {"prior": {"factor": 0}},
        {"prior": {"scale": [1, 2]}},
        {"integration": "mcmc"},
        {"n_draws": 3},
        {"draws": 3},
        {"seed": -1},
        {"engine": "stan"},
    ],
)
def test_bad_requests(table, words):
    with pytest.raises(InputError):
        taxonomy_model("estimate ~ x2", table, levels=LEVELS, **words)
