"""The contract of the area table: formula, variances, domains, covariates, each refusal by name."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pybridge.errors import InputError
from pybridge.tables.area import area_table


def table(m=12, **columns):
    rng = np.random.default_rng(5)
    made = pd.DataFrame(
        {
            "county": [f"c{i}" for i in range(m)],
            "estimate": rng.normal(size=m),
            "variance": rng.uniform(0.5, 1.5, m),
            "f": rng.normal(size=m),
            "g": (["x", "y", "z"] * m)[:m],
        }
    )
    return made.assign(**columns)


def refused(code, formula="estimate ~ f", frame=None, **words):
    words = {"domain": "county", **words}
    with pytest.raises(InputError) as caught:
        area_table(formula, table() if frame is None else frame, **words)
    error = caught.value
    assert error.code == code, str(error)
    assert error.field and error.expected is not None and error.got is not None
    return error


def test_an_ordinary_table():
    frame = table()
    found = area_table("estimate ~ f", frame, domain="county")
    assert found.covariate_names == ("Intercept", "f")
    assert (found.outcome, found.variance_name, found.domain_name) == (
        "estimate",
        "variance",
        "county",
    )
    np.testing.assert_array_equal(found.covariates, np.column_stack([np.ones(12), frame["f"]]))
    np.testing.assert_array_equal(found.estimate, frame["estimate"])
    assert list(found.domains) == list(frame["county"])
    assert found.sampled.all() and found.n_labelled is None
    assert list(found.to_frame().columns) == ["county", "estimate", "variance", "Intercept", "f"]


def test_domains_by_default():
    frame = table()
    assert list(area_table("estimate ~ f", frame).domains) == list(range(12))
    named = frame.rename(columns={"county": "domain"})
    assert list(area_table("estimate ~ f", named).domains) == list(frame["county"])


def test_labels_of_any_kind_come_back_unchanged():
    labels = ["가 나", 'a "b"', "c'd", "", "é", "1", "NA", " ", "x\ty", "ü", "β", "z"]
    found = area_table("estimate ~ f", table(county=labels), domain="county")
    assert list(found.domains) == labels


def test_empty_estimates_are_domains_without_labels():
    frame = table()
    frame.loc[[2, 5], "estimate"] = np.nan
    frame.loc[2, "variance"] = np.nan
    found = area_table("estimate ~ f", frame, domain="county")
    assert list(np.flatnonzero(~found.sampled)) == [2, 5]
    assert found.covariates.shape == (12, 2)


def test_nullable_and_integer_columns_are_numbers():
    frame = table(f=pd.array(range(12), dtype="Int64"))
    frame["estimate"] = frame["estimate"].astype("Float64")
    frame.loc[3, "estimate"] = pd.NA
    frame["n_labelled"] = 4
    found = area_table("estimate ~ f", frame, domain="county")
    assert np.isnan(found.estimate[3])
    np.testing.assert_array_equal(found.covariates[:, 1], range(12))
    np.testing.assert_array_equal(found.n_labelled, 4.0)


@pytest.mark.parametrize(
    ("formula", "names"),
    [
        ("estimate ~ 1", ("Intercept",)),
        ("estimate ~ 0 + f", ("f",)),
        ("estimate ~ C(g)", ("Intercept", "C(g)[T.y]", "C(g)[T.z]")),
        ("estimate ~ log(1 + f ** 2)", ("Intercept", "log(1 + f ** 2)")),
        ("estimate ~ np.abs(f)", ("Intercept", "np.abs(f)")),
        ("estimate ~ center(f)", ("Intercept", "center(f)")),
        ('estimate ~ Q("my f")', ("Intercept", 'Q("my f")')),
        ('Q("my estimate") ~ f', ("Intercept", "f")),
    ],
)
def test_formulas(formula, names):
    frame = table()
    frame["my f"], frame["my estimate"] = frame["f"], frame["estimate"]
    assert area_table(formula, frame, domain="county").covariate_names == names


@pytest.mark.parametrize(
    "formula",
    ["estimate", "~ f", "estimate ~ (", "estimate ~ .", "f + estimate ~ g", 3, "estimate"],
)
def test_formulas_that_cannot_be_read(formula):
    refused("bad_formula", formula)


def test_more_terms_than_can_be_read():
    error = refused("bad_formula", "estimate ~ " + " + ".join(f"I(f ** {k})" for k in range(3000)))
    assert "too many terms" in str(error)


def test_r_words_get_a_hint():
    assert "C(g)" in refused("bad_formula", "estimate ~ factor(g)").hint


def test_the_estimate_on_both_sides():
    refused("bad_formula", "estimate ~ estimate")


@pytest.mark.parametrize(
    "left", ["log(estimate)", "np.log(estimate)", "I(estimate / 2)", "I(estimate)"]
)
def test_a_transformed_left_side_is_refused(left):
    assert "variance" in refused("transformed_outcome", f"{left} ~ f").hint


def test_an_offset_is_refused():
    refused("offset_not_supported", "estimate ~ f + offset(f)")


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("estimat ~ f", {}),
        ("estimate ~ ff", {}),
        ("estimate ~ C(gg)", {}),
        ("estimate ~ f", {"variance": "varianc"}),
        ("estimate ~ f", {"domain": "count"}),
    ],
)
def test_missing_columns_come_with_the_nearest_names(formula, words):
    assert "Nearest" in refused("missing_column", formula, **words).hint


def test_columns_that_are_not_numbers():
    refused("not_numeric", frame=table(estimate=["a"] * 12))
    refused("not_numeric", frame=table(variance=["1"] * 12))
    refused("infinite_values", frame=table(estimate=[np.inf] + [0.0] * 11))


def test_variances():
    def variance(value):
        frame = table()
        frame.loc[4, "variance"] = value
        return frame

    assert "c4" in refused("negative_variance", frame=variance(-1.0)).got
    assert "c4" in refused("missing_variance", frame=variance(np.nan)).got
    refused("infinite_values", frame=variance(np.inf))
    refused("all_variances_zero", frame=table(variance=0.0))
    assert (area_table("estimate ~ f", variance(0.0)).variance == 0).sum() == 1


def test_domains():
    assert (
        "c1"
        in refused("duplicate_domain", frame=table(county=["c1", "c1"] + list("abcdefghij"))).got
    )
    refused("missing_values", frame=table(county=[None] + list("abcdefghijk")))


def test_covariates():
    frame = table()
    frame.loc[3, "f"] = np.nan
    assert "c3" in refused("missing_covariate", frame=frame).got
    # A domain without an estimate needs its covariates too.
    frame.loc[3, "estimate"] = np.nan
    refused("missing_covariate", frame=frame)
    refused("missing_covariate", "estimate ~ g", frame=table(g=[None] + ["x", "y"] * 5 + ["x"]))
    refused("not_finite", "estimate ~ log(f)")
    assert refused("constant_covariate", frame=table(f=2.0)).got == "f"
    twice = table()
    twice["h"] = 3 - 2 * twice["f"]
    error = refused("collinear_covariates", "estimate ~ f + h", frame=twice)
    assert "h (from Intercept, f)" in error.got


def test_a_covariate_constant_where_there_are_estimates():
    frame = table(f=[1.0] * 11 + [2.0])
    frame.loc[11, "estimate"] = np.nan
    refused("constant_covariate", frame=frame)


def test_categories():
    refused("one_level_factor", "estimate ~ g", frame=table(g="x"))
    unused = pd.Categorical(["x", "y"] * 6, categories=["x", "y", "w"])
    assert "w" in refused("empty_category", "estimate ~ g", frame=table(g=unused)).got
    frame = table(g=["w"] + ["x", "y"] * 5 + ["x"])
    frame.loc[0, "estimate"] = np.nan
    assert "w" in refused("empty_category", "estimate ~ C(g)", frame=frame).got


def test_counts():
    refused("too_few_domains", "estimate ~ f", frame=table(m=2))
    refused("too_few_domains", "estimate ~ f", frame=table(m=1))
    refused("too_few_domains", "estimate ~ C(county)")
    assert area_table("estimate ~ f", table(m=3)).covariates.shape == (3, 2)
    refused("no_covariates", "estimate ~ 0")
    nothing = table(estimate=np.nan)
    refused("too_few_domains", "estimate ~ 1", frame=nothing)


def test_tables_that_are_none():
    refused("not_a_table", frame=[1, 2])
    refused("empty_table", frame=table().iloc[:0])
    frame = table()
    frame.columns = ["county", "estimate", "variance", "f", "f"]
    refused("duplicate_column", frame=frame)


@pytest.mark.parametrize("label", ["a\0b", "a\ud800"])
def test_domains_that_no_file_and_no_engine_can_hold(label):
    frame = table().assign(county=lambda t: pd.Series([label, *t["county"].iloc[1:]], dtype=object))
    assert ascii(label) in refused("bad_label", frame=frame, domain="county").got


@pytest.mark.parametrize("value", [1e-300, 1e300])
def test_a_range_is_one_that_there_is(value):
    assert refused("out_of_range", frame=table(variance=value)).expected == "0, or 1e-120 to 1e+120"
