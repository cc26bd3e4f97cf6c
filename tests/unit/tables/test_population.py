"""Descriptions of the population, from units, from totals and from parts; labels; formulas."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.errors import InputError
from pybridge.tables.labels import encode, match


def units() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    d = rng.integers(6, size=120)
    return pd.DataFrame(
        {
            "d": [f"c{i}" for i in d],
            "r": [f"r{i % 2}" for i in d],
            "s": [f"s{i % 2}{i % 4}" for i in d],
            "f": rng.normal(size=120),
            "k": rng.choice(["a", "b", "c"], size=120),
        }
    )


def code_of(call: Any, *arguments: Any, **words: Any) -> str:
    with pytest.raises(InputError) as caught:
        call(*arguments, **words)
    return caught.value.code


# --- from units, totals, parts -----------------------------------------------------------------


def test_from_units() -> None:
    table = units()
    found = pb.population(table, domain="d", auxiliary=["f"], taxonomy=["r", "d"])
    grouped = table.groupby("d")["f"]
    assert found.domains.tolist() == sorted(table["d"].unique())
    np.testing.assert_array_equal(found.size, grouped.size())
    np.testing.assert_allclose(found.auxiliary_means[:, 0], grouped.mean(), rtol=1e-13)
    assert found.taxonomy == ("r",) and found.n_units == 120 and found.n_domains == 6
    assert found.groups["r"].tolist() == [f"r{i % 2}" for i in range(6)]
    assert found.to_frame().columns.tolist() == ["r", "d", "size", "f"]
    assert "6 domains" in found.summary() and "r > d" in found.summary()


def test_from_totals_in_the_order_of_the_table() -> None:
    totals = pd.DataFrame({"d": ["z", "a"], "N": [5, 7], "f": [0.5, -1.0]})
    found = pb.population(totals, domain="d", size="N", auxiliary_means="f")
    assert found.domains.tolist() == ["z", "a"] and found.size.tolist() == [5.0, 7.0]
    codes, labels = found.group_codes("d")
    assert codes.tolist() == [0, 1] and labels.tolist() == ["z", "a"]


def test_a_record() -> None:
    found = pb.population(units(), domain="d", formula="~ f + C(k)", taxonomy=["r"])
    assert pickle.loads(pickle.dumps(found)) == found
    assert found != pb.population(units(), domain="d", auxiliary=["f"], taxonomy=["r"])
    with pytest.raises(ValueError, match="read-only"):
        found.size[0] = 1.0


@pytest.mark.parametrize("name", ["size", "d", "r"])
def test_an_auxiliary_with_a_name_in_use(name: str) -> None:
    # In chunks the table of one part must not be read through its own column names.
    table = units().rename(columns={"f": "x"})
    table["x"] = table["d"].str[1:].astype(float)
    words = dict(domain="d", auxiliary=["x"], taxonomy=["r"])
    plain = pb.population(table, **words)
    if name == "size":
        table, words = table.rename(columns={"x": "size"}), {**words, "auxiliary": ["size"]}
    elif name == "d":
        table, words = table.assign(d=table["x"]), {**words, "auxiliary": ["d"]}
    else:
        table = table.rename(columns={"r": "size"})
        words = {**words, "taxonomy": ["size"]}
    parts = [pb.population(part, **words) for part in (table.iloc[:50], table.iloc[50:])]
    found = pb.combine_populations(parts)
    np.testing.assert_array_equal(found.size, plain.size)
    np.testing.assert_allclose(found.auxiliary_means, plain.auxiliary_means, rtol=1e-14)
    (level,) = found.taxonomy
    assert found.groups[level].tolist() == plain.groups["r"].tolist()


def test_parts_that_do_not_fit() -> None:
    table = units()
    one = pb.population(table, domain="d", auxiliary=["f"])
    other = pb.population(table, domain="d")
    assert code_of(pb.combine_populations, [one, other]) == "parts_differ"
    assert code_of(pb.combine_populations, []) == "empty_table"
    words = dict(domain="d", taxonomy=["r"])
    first = pb.population(table, **words)
    second = pb.population(table.assign(r="elsewhere"), **words)
    assert code_of(pb.combine_populations, [first, second]) == "taxonomy_not_nested"


def test_labels_of_two_types_in_parts() -> None:
    numbers = pb.population(pd.DataFrame({"d": [1, 2]}), domain="d")
    text = pb.population(pd.DataFrame({"d": ["2", "3"]}), domain="d")
    assert code_of(pb.combine_populations, [numbers, text]) == "mixed_labels"
    floats = pb.population(pd.DataFrame({"d": [2.0, 3.0]}), domain="d")
    assert pb.combine_populations([numbers, floats]).size.tolist() == [1.0, 2.0, 1.0]


def test_bad_descriptions() -> None:
    table = units()
    totals = pd.DataFrame({"d": ["a", "b"], "N": [5, 7], "f": [0.5, 1.0]})
    words = dict(domain="d", size="N")
    assert code_of(pb.population, table.to_dict(), domain="d") == "not_a_table"
    assert code_of(pb.population, table.iloc[:0], domain="d") == "empty_table"
    assert code_of(pb.population, table, domain="county") == "missing_column"
    assert code_of(pb.population, table, domain=["d"]) == "bad_name"
    assert code_of(pb.population, table, domain="d", auxiliary=3) == "bad_name"
    assert code_of(pb.population, table, domain="d", auxiliary=["k"]) == "not_numeric"
    assert code_of(pb.population, table, domain="d", taxonomy=["d", "r"]) == "taxonomy_order"
    assert code_of(pb.population, table, domain="r", taxonomy=["d"]) == "taxonomy_not_nested"
    assert code_of(pb.population, table, domain="d", taxonomy=["s", "r"]) == "taxonomy_not_nested"
    assert code_of(pb.population, table, domain="d", auxiliary_means=["f"]) == "missing_argument"
    assert code_of(pb.population, totals, auxiliary=["f"], **words) == "conflicting_arguments"
    assert code_of(pb.population, pd.concat([totals] * 2), **words) == "duplicate_domain"
    assert code_of(pb.population, totals.assign(N=[5, 0]), **words) == "bad_size"
    assert code_of(pb.population, totals.assign(N=["5", "x"]), **words) == "not_numeric"
    twice = pd.concat([table, table[["f"]]], axis=1)
    assert code_of(pb.population, twice, domain="d") == "duplicate_column"
    found = pb.population(table, domain="d")
    assert code_of(found.group_codes, "r") == "unknown_level"


# --- labels ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        [3, 1, 3, 2],
        [10**17, -(10**17), 10**17],
        pd.array([2**63, 2**63 + 5, 2**63], dtype="uint64"),
        [2.5, -1.0, 2.5],
        ["b", "a", "b"],
        [("b", 1), ("a", 2), ("b", 1)],
        [True, False, True],
        [frozenset("a"), frozenset("b")],
        pd.Categorical(["x", "z"], categories=["z", "y", "x"]),
        pd.to_datetime(["2020-01-02", "2020-01-01"]).tz_localize("Asia/Seoul"),
        [1, "a", 2.5, None.__class__],
    ],
)
def test_codes_and_labels_are_the_column(values: Any) -> None:
    column = pd.Series(values)
    found = encode(column)
    back = found.labels[found.codes]
    assert list(back) == list(column)
    assert len(found.labels) == column.nunique()
    assert match(column, found.labels).tolist() == found.codes.tolist()
    assert (match(column, found.labels[1:]) == found.codes - 1).all()


def test_a_categorical_keeps_its_order_without_the_unused() -> None:
    column = pd.Series(pd.Categorical(["x", "z"], categories=["z", "y", "x"]))
    assert encode(column).labels.tolist() == ["z", "x"]


@pytest.mark.parametrize("labels", [[0, 1], [0.0, 1.0], np.array([0, 1], dtype="uint64")])
@pytest.mark.parametrize("values", [[1, 0], [1.0, 0.0], pd.array([1, 0], dtype="Int64")])
def test_numbers_match_whatever_their_type(labels: Any, values: Any) -> None:
    found = match(pd.Series(values), np.asarray(labels, dtype=object))
    assert found.tolist() == [1, 0]


def test_labels_that_cannot_be() -> None:
    assert code_of(encode, pd.Series([["a"], ["b"]])) == "bad_label"
    assert code_of(match, pd.Series([["a"]]), np.array(["a"], dtype=object)) == "bad_label"
    assert code_of(encode, pd.Series([7, "7", "8"])) == "mixed_labels"


@pytest.mark.parametrize("labels", [["a\0b", "a\0c", "a"], ["a\ud800", "b", "b"]])
def test_text_that_no_file_can_hold_is_refused_and_not_merged(labels: list[str]) -> None:
    assert code_of(encode, pd.Series(labels, dtype=object)) == "bad_label"
    assert code_of(encode, pd.Series(labels, dtype="string[python]")) == "bad_label"
    by_code = pd.Categorical.from_codes([0, 0, 1], pd.Index(labels[:2], dtype=object))
    assert code_of(encode, pd.Series(by_code)) == "bad_label"
    assert code_of(encode, pd.Series([*labels, 7], dtype=object)) == "bad_label"


# --- formulas ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "formula",
    [
        "~ f + C(k)",
        "~ f:k",
        "~ np.exp(f)",
        "~ Q('f') + k",
        "~ I(f > 0)",
        "~ C(Q('k')) * f",
        "~ C(k, Sum)",
    ],
)
def test_a_formula_makes_the_same_columns_for_population_and_sample(formula: str) -> None:
    table = units().assign(y=1.0)
    found = pb.population(table, domain="d", formula=formula)
    for sample in (table.iloc[:60], table[table["k"] != "b"].iloc[:40]):
        design = pb.survey_design(sample.assign(w=2.0), weights="w")
        # PPI of each column: its own mean plus weighted differences, so the columns must be there.
        for name in found.auxiliary:
            words = dict(outcome="y", prediction=name)
            assert np.isfinite(pb.prediction_powered(design, found, **words).estimate).all()


def test_formulas_that_cannot_be() -> None:
    table = units()

    def described(formula: str, **words: Any) -> Any:
        return pb.population(table, domain="d", formula=formula, **words)

    assert code_of(described, "y ~ f") == "bad_formula"
    assert code_of(described, "~ f +") == "bad_formula"
    assert code_of(described, "~ .") == "bad_formula"
    assert code_of(described, 5) == "bad_formula"
    assert code_of(described, "~ np.exp(k)") == "bad_formula"
    assert code_of(described, "~ nothing") == "missing_column"
    assert code_of(described, "~ table") == "missing_column"
    assert code_of(described, "~ log(f)") == "not_finite"
    assert code_of(described, "~ f", auxiliary=["f"]) == "conflicting_arguments"
    found = described("~ C(k)")
    sample = table.assign(y=1.0, w=1.0, k=table["k"].replace("a", "z"))
    design = pb.survey_design(sample.iloc[:50], weights="w")
    words = dict(outcome="y")
    assert code_of(pb.generalized_regression, design, found, **words) == "unknown_category"
    assert code_of(pb.generalized_regression, design, found, formula="~ f", **words) == (
        "unknown_auxiliary"
    )


@pytest.mark.parametrize(
    "term",
    [
        "scale(f)",
        "I(f - np.mean(f))",
        "I(f / f.max())",
        "f.rank()",
        "bs(f, df=4)",
        "I(f.shift(1, fill_value=0.0))",
    ],
)
def test_a_term_that_looks_at_other_rows_is_refused(term: str) -> None:
    assert (
        code_of(pb.population, units(), domain="d", formula=f"~ k + {term}") == "stateful_formula"
    )


def test_missing_values_in_a_formula() -> None:
    table = units()
    table.loc[3, "k"] = None
    words = dict(domain="d", auxiliary=None)
    assert code_of(pb.population, table, formula="~ f + C(k)", **words) == "missing_values"
    assert pb.population(table, formula="~ f", **words).auxiliary == ("f",)
    table.loc[7, "f"] = np.nan
    assert code_of(pb.population, table, formula="~ np.abs(f)", **words) == "missing_values"


def test_a_formula_on_nullable_columns() -> None:
    plain, nullable = units(), units().convert_dtypes()
    words = dict(domain="d", formula="~ f + C(k) + I(f > 0)")
    mine, theirs = pb.population(nullable, **words), pb.population(plain, **words)
    assert mine.auxiliary == theirs.auxiliary
    np.testing.assert_array_equal(mine.auxiliary_means, theirs.auxiliary_means)


def test_more_terms_than_can_be_read() -> None:
    formula = "~ " + " + ".join(f"I(f ** {k})" for k in range(3000))
    assert code_of(pb.population, units(), domain="d", formula=formula) == "bad_formula"
