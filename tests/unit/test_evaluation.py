"""The main job on odd tables: every way of giving the same units gives the same numbers."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.errors import InputError
from tests.unit.evaluation_units import STANDARD, direct, evaluate, units


@pytest.fixture(scope="module")
def standard() -> Any:
    return evaluate(units())


def same(mine: Any, theirs: Any, rtol: float = 1e-9) -> None:
    """Estimates, errors and scores of all candidates."""
    assert mine.selection.selected == theirs.selection.selected
    for one, other in zip(mine.fits, theirs.fits):
        np.testing.assert_allclose(one.estimate, other.estimate, rtol=rtol)
        np.testing.assert_allclose(one.mse, other.mse, rtol=1e3 * rtol)
        assert one.status.tolist() == other.status.tolist()
    scores, others = mine.selection.scores, theirs.selection.scores
    np.testing.assert_allclose(scores["db_cv"], others["db_cv"], rtol=1e3 * rtol)


# --- the result --------------------------------------------------------------------------------


def test_everything_is_there(standard: Any) -> None:
    assert standard.selection.candidates == STANDARD
    frame = standard.to_frame()
    assert len(frame) == 90 and frame["candidate"].unique().tolist() == list(STANDARD)
    assert frame.groupby("candidate")["selected"].all().sum() == 1
    assert frame["region"].tolist()[:4] == ["r0", "r1", "r2", "r0"]
    assert list(standard.aggregates) == ["all", "region"]
    assert standard.assumptions[0].startswith("no weights given: taken as N/n of units (")
    assert standard.fit("GREG").candidate.direct == "greg"
    with pytest.raises(InputError, match="there is no candidate 'OLS'"):
        standard.fit("OLS")


def test_a_county_without_labels_stays(standard: Any) -> None:
    frame = standard.to_frame().query("domain == 'c9'").set_index("candidate")
    assert set(frame["status"]) == {"out_of_sample"} and set(frame["n_labelled"]) == {0}
    assert frame.loc[["HT", "Hájek"], "estimate"].isna().all()
    assert frame.loc[list(STANDARD[2:]), "estimate"].notna().all()
    smoothed = frame.loc[["FH", "FH-GREG", "PP-S", "TFH", "PP-TS"]]
    assert (smoothed["upper"] > smoothed["lower"]).all()
    assert (smoothed["shrinkage"].fillna(0.0) == 0.0).all()
    assert standard.selection.not_scored == {"no labels": ("c9",)}


def test_the_page(standard: Any) -> None:
    page = standard.summary()
    lines = page.splitlines()
    n = int(units()["y"].notna().sum())
    assert lines[0].startswith(f"y by county: 10 domains, {n} labels of 400 units")
    assert lines[1].startswith("Assumed: no weights given")
    for words in (
        f"Chosen: {standard.selection.selected}",
        "Its reported RMSE",
        "Means by ",
        "region r2",
        "Widest intervals of",
        "Not scored: 1 of 10 domains",
        "no labels: c9",
    ):
        assert words in page
    assert max(map(len, lines)) < 200 and repr(standard) == page


def test_a_record(standard: Any) -> None:
    assert pickle.loads(pickle.dumps(standard)) == standard
    assert standard == evaluate(units()) and standard != evaluate(units(), seed=2)
    assert standard.to_dict()["aggregate_by"] == standard.aggregate_by
    assert standard.provenance.seed == 1 and standard.provenance.options["outcome"] == "y"


def test_the_means_are_those_of_the_reference(standard: Any) -> None:
    name = standard.aggregate_by
    assert name == standard.selection.reference
    fit, size = standard.fit(name), standard.population.size
    whole = standard.aggregates["all"]
    np.testing.assert_allclose(whole.estimate[0], size @ fit.estimate / size.sum(), rtol=1e-12)


# --- ways of giving the same -------------------------------------------------------------------


@pytest.mark.parametrize("rows", [7, 100, 400])
@pytest.mark.parametrize("strata", [None, "stratum"])
def test_chunks_from_a_generator(rows: int, strata: str | None) -> None:
    table = units()
    chunks = (table.iloc[i : i + rows] for i in range(0, 500, rows))
    same(direct(chunks, strata=strata), direct(table, strata=strata))


def test_a_sample_with_totals_or_with_units() -> None:
    table = units()
    sample = table[table["y"].notna()].assign(w=400 / table["y"].notna().sum(), N=400.0)
    totals = table.groupby("county", as_index=False).agg(
        size=("f", "size"), f=("f", "mean"), region=("region", "first")
    )
    words = dict(weights="w", fpc="N")
    known = pb.population(table, domain="county", auxiliary=["f"], taxonomy=["region"])
    for population in (totals, totals.rename(columns={"size": "N"}), table, known):
        same(direct(sample, population=population, **words), direct(table))
    same(direct(sample.iloc[::-1], population=totals, folds=5, **words), direct(table.iloc[::-1]))


def test_weights_and_strata_of_unlabelled_units_are_not_needed() -> None:
    table = units()
    seen = table["y"].notna()
    weighted = table.assign(w=np.where(seen, 400 / seen.sum(), np.nan), h=np.where(seen, "a", None))
    same(
        direct(weighted, weights="w", strata="h"),
        direct(table.assign(w=400 / seen.sum()), weights="w"),
    )


INDEXES = {
    "equal": lambda t: t.set_axis(np.zeros(len(t), dtype=int), axis=0),
    "text": lambda t: t.set_axis([f"u{i}" for i in range(len(t))], axis=0),
    "several levels": lambda t: t.set_index(["county", "region"], drop=False),
    "the domain": lambda t: t.set_index("county", drop=False),
    "backwards": lambda t: t.set_axis(np.arange(len(t))[::-1], axis=0),
}


@pytest.mark.parametrize("index", INDEXES)
def test_the_index_says_nothing(index: str) -> None:
    same(direct(INDEXES[index](units()), strata="stratum"), direct(units(), strata="stratum"))


TYPES = {
    "nullable": lambda t: t.convert_dtypes(),
    "nullable floats": lambda t: t.astype({"y": "Float64", "f": "Float64"}),
    "categories": lambda t: t.astype(
        {"county": "category", "region": "category", "stratum": "category"}
    ),
    "sparse": lambda t: t.astype({"f": pd.SparseDtype("float")}),
}


@pytest.mark.parametrize("types", TYPES)
def test_types_of_columns_say_nothing(types: str) -> None:
    same(direct(TYPES[types](units()), strata="stratum"), direct(units(), strata="stratum"))


def test_true_and_false_are_1_and_0() -> None:
    table = units()
    seen = table["y"].notna()
    binary = table.assign(y=(table["y"] > 1.5).astype(float).where(seen), f=table["f"] > 1.0)
    mixed = binary.assign(y=(table["y"] > 1.5).astype(object).where(seen, None))
    same(evaluate(mixed), evaluate(binary))
    words = binary.assign(
        y=(table["y"] > 1.5).astype("boolean").mask(~seen), f=binary["f"].astype("boolean")
    )
    same(evaluate(words), evaluate(binary))


def test_unused_categories_are_no_domains_and_no_strata() -> None:
    table = units()
    county = pd.Categorical(table["county"], categories=["x", *(f"c{i}" for i in range(10)), "z"])
    stratum = pd.Categorical(table["stratum"], categories=[7, 0, 9, 1, 2, 8])
    named = table.assign(county=county, stratum=stratum)
    same(direct(named, strata="stratum"), direct(table, strata="stratum"))
    # Categories keep their order, and domains follow it.
    backwards = table.assign(county=county.reorder_categories(county.categories[::-1]))
    assert direct(backwards).population.domains.tolist() == [f"c{i}" for i in range(9, -1, -1)]


@pytest.mark.parametrize(
    "name",
    ["size", "estimate", "candidate", "domain", "selected", "weight", "all", "level", "$x_1$"],
)
@pytest.mark.parametrize("role", ["county", "region", "f", "y", "stratum"])
def test_columns_may_have_any_name(name: str, role: str) -> None:
    words: dict[str, Any] = dict(outcome="y", domain="county", auxiliary=["f"], strata="stratum")
    words["taxonomy"] = ["region"]
    renamed = {
        key: [name if v == role else v for v in value] if isinstance(value, list) else value
        for key, value in words.items()
    }
    renamed = {key: name if value == role else value for key, value in renamed.items()}
    table = units()
    mine = pb.evaluate(table.rename(columns={role: name}), candidates="direct", **renamed)
    theirs = pb.evaluate(table, candidates="direct", **words)
    same(mine, theirs)
    frame = mine.to_frame()
    assert frame["candidate"].unique().tolist() == list(mine.selection.candidates)
    np.testing.assert_array_equal(frame["size"], theirs.to_frame()["size"])
    if role == "region":
        column = name if name not in theirs.to_frame() else f"taxonomy_{name}"
        assert frame[column].tolist() == theirs.to_frame()["region"].tolist()
    assert len(mine.aggregates) == 2 and mine.aggregates["all"].group.tolist() == ["all"]
    assert mine.summary()


def test_an_own_column_of_the_name_that_is_used_inside() -> None:
    table = units().assign(weight_assumed_=1.0, fpc_assumed_=2.0)
    same(direct(table), direct(units()))


def test_what_is_announced() -> None:
    said: list[str] = []
    evaluate(units(), announce=said.append)
    assert said[0].startswith("no weights given")
    assert said[1].startswith(f"{int(units()['y'].notna().sum())} labelled of 400 units")
    assert said[-1].startswith("scored 9 candidates")
