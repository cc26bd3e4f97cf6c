"""The main job on odd tables: every way of giving the same units gives the same numbers."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.errors import InputError

STANDARD = ("HT", "Hájek", "PPI", "GREG", "FH", "FH-GREG", "PP-S", "TFH", "PP-TS")


def units(n: int = 400, n_domains: int = 10, seed: int = 5) -> pd.DataFrame:
    """All units of ten counties in three regions; three in ten are labelled, none in c9."""
    rng = np.random.default_rng(seed)
    county = rng.permutation(np.arange(n) % n_domains)
    f = rng.normal(size=n) + county / 5
    y = 1 + f + 0.3 * rng.normal(size=n_domains)[county] + 0.7 * rng.normal(size=n)
    table = pd.DataFrame({"county": [f"c{i}" for i in county], "f": f, "y": y})
    table = table.assign(region=[f"r{i % 3}" for i in county], stratum=rng.integers(3, size=n))
    return table.assign(y=table["y"].where((rng.random(n) < 0.3) & (county != 9)))


def evaluate(table: Any, **words: Any) -> Any:
    usual = dict(outcome="y", domain="county", auxiliary=["f"], engine="native")
    return pb.evaluate(table, **{**usual, "taxonomy": ["region", "county"], **words})


def direct(table: Any, **words: Any) -> Any:
    return evaluate(table, candidates="direct", **words)


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


# --- odd taxonomies and odd outcomes -----------------------------------------------------------


@pytest.mark.parametrize("taxonomy", [None, [], ["county"], "county"])
def test_no_taxonomy(taxonomy: Any) -> None:
    found = evaluate(units(), taxonomy=taxonomy)
    assert found.selection.candidates == STANDARD[:7] and list(found.aggregates) == ["all"]


@pytest.mark.parametrize("kind", ["one group", "each domain its own", "two levels"])
def test_taxonomies_that_say_little(kind: str) -> None:
    table = units().assign(one="x", own=lambda t: t["county"] + "!")
    levels = {"one group": ["one"], "each domain its own": ["own"], "two levels": ["one", "region"]}
    candidates = "direct" if kind == "two levels" else "standard"  # three levels take a while
    found = evaluate(table, taxonomy=levels[kind], candidates=candidates)
    assert not found.selection.failed
    assert found.selection.candidates == (STANDARD[:4] if kind == "two levels" else STANDARD)
    assert list(found.aggregates) == ["all", *levels[kind]]


def test_another_taxonomy_than_the_populations() -> None:
    table = units()
    sample = table[table["y"].notna()].assign(w=3.0)
    known = pb.population(table, domain="county", auxiliary=["f"], taxonomy=["region"])
    direct(sample, population=known, weights="w", taxonomy=None)
    with pytest.raises(InputError) as caught:
        direct(sample, population=known, weights="w", taxonomy=["state"])
    assert caught.value.code == "conflicting_arguments"


OUTCOMES = {
    "all equal": lambda t: 3.0 + 0 * t["f"],
    "all equal, a tenth": lambda t: 0.1 + 0 * t["f"],
    "all 0": lambda t: 0.0 * t["f"],
    "the auxiliary": lambda t: t["f"],
    "a line in the auxiliary": lambda t: 1.0 + 2.0 * t["f"],
}


@pytest.mark.parametrize("kind", OUTCOMES)
def test_outcomes_that_leave_a_model_nothing(kind: str) -> None:
    table = units()
    y = OUTCOMES[kind](table)
    found = evaluate(table.assign(y=y.where(table["y"].notna())))
    assert {"FH-GREG", "PP-S", "PP-TS"} <= set(found.selection.failed)
    assert all("0" in reason for reason in found.selection.failed.values())
    chosen = found.selected
    np.testing.assert_allclose(
        chosen.estimate[:9], y.groupby(table["county"]).mean()[:9], atol=1e-12
    )
    np.testing.assert_array_equal(chosen.mse[:9], 0.0)
    assert "has no score" in found.summary()


@pytest.mark.parametrize("noise", [1e-6, 1e-9, 1e-12, 1e-15])
def test_a_line_in_the_auxiliary_but_for_noise(noise: float) -> None:
    # Sampling variances down to 1e-31: estimates, or the reason why there are none.
    table = units()
    rng = np.random.default_rng(6)
    y = 1.0 + 2.0 * table["f"] + noise * rng.normal(size=len(table))
    found = evaluate(table.assign(y=y.where(table["y"].notna())))
    for fit in found.fits:
        assert np.isfinite(fit.estimate[:9]).all() or found.selection.failed[fit.candidate.name]
    truth = y.groupby(table["county"]).mean()
    np.testing.assert_allclose(found.selected.estimate, truth, atol=10 * noise + 1e-14)
    assert found.summary()


def few_domains(m: int) -> pd.DataFrame:
    table = units()
    county = table["county"].str[1].astype(int)
    return table[county < m]


def test_too_few_domains_for_the_bayesian_candidates() -> None:
    # An intercept and one slope: 3 domains allow REML, 5 are needed for a flat prior.
    for m, failed in ((3, True), (4, True), (5, False)):
        found = evaluate(few_domains(m), taxonomy=None)
        assert found.selection.candidates == STANDARD[:7] and found.population.n_domains == m
        assert ("PP-S" in found.selection.failed) == failed
        assert np.isfinite(found.fit("FH-GREG").estimate).all()
        assert found.fit("FH-GREG").fit_status == "weak_identification"
        if failed:
            fit = found.fit("PP-S")
            assert (fit.fit_status, fit.code) == ("failed", "too_few_domains")
            assert f"{m} labelled domains are too few for 2 coefficients" in fit.message
            status = found.selection.to_frame().set_index("candidate").loc["PP-S", "status"]
            assert status == "failed" and "PP-S has no score" in found.summary()


def test_rare_events() -> None:
    table = units(n=2000)
    rare = (table["y"] > table["y"].quantile(0.97)).astype(float).where(table["y"].notna())
    found = evaluate(table.assign(y=rare))
    assert not found.selection.failed
    assert "constant_outcome" in set(found.fit("PP-S").status)
    assert (found.fit("PP-S").mse > 0).all()


@pytest.mark.parametrize("scale", [1e-40, 1e-12, 1e12, 1e40])
def test_units_of_measurement(standard: Any, scale: float) -> None:
    table = units().assign(y=lambda t: scale * t["y"], f=lambda t: scale * t["f"])
    found = evaluate(table)
    assert found.selection.selected == standard.selection.selected
    for one, other in zip(found.fits, standard.fits):
        np.testing.assert_allclose(one.estimate / scale, other.estimate, rtol=1e-6)
        np.testing.assert_allclose(one.mse / scale**2, other.mse, rtol=1e-5)


def test_far_from_the_origin(standard: Any) -> None:
    # HT moves where the sample's weights do not add up to N; what is regressed keeps its digits.
    table = units().assign(y=lambda t: t["y"] + 1e6, f=lambda t: t["f"] + 1e6)
    found = evaluate(table, reference="greg")
    there = evaluate(units(), reference="greg")
    for name in ("Hájek", "PPI", "GREG"):
        one, other = found.fit(name), there.fit(name)
        np.testing.assert_allclose(one.estimate - 1e6, other.estimate, atol=1e-7)
        np.testing.assert_allclose(one.mse, other.mse, rtol=1e-6)


def test_two_domains_and_one() -> None:
    table = units().assign(county=lambda t: np.where(t["region"] == "r0", "a", "b"))
    found = direct(table, taxonomy=None)
    assert found.population.n_domains == 2
    assert direct(table.assign(county="a"), taxonomy=None).selection.n_domains_scored["db_cv"] == 1
    with pytest.raises(InputError) as caught:
        evaluate(table, taxonomy=None)
    assert caught.value.code == "too_few_domains"
    assert "candidates='direct'" in (caught.value.hint or "")


def test_one_label_a_domain() -> None:
    table = units()
    first = ~table["county"].duplicated()
    found = direct(table.assign(y=table["f"].where(first)))
    chosen = found.selection
    assert chosen.selected == chosen.default == "GREG" and set(chosen.status) == {"not_scored"}
    assert np.isfinite(found.fit("GREG").estimate).all() and not chosen.failed
    assert chosen.not_scored == {"one label": tuple(f"c{i}" for i in range(10))}
    page = found.summary()
    assert "Nothing could be chosen by cross-validation" in page and "10 with one label" in page
    assert "GREG by default" in page and "Chosen" not in page
    assert chosen.indistinguishable() == ("GREG",) and chosen.summary()


def test_everything_known() -> None:
    table = units()
    everything = table.assign(y=table["f"] + 1, w=1.0, N=float(len(table)))
    totals = table.groupby("county", as_index=False).agg(size=("f", "size"), f=("f", "mean"))
    words: dict[str, Any] = dict(population=totals, weights="w", fpc="N", taxonomy=None)
    found = evaluate(everything, **words)
    assert found.selection.default == "GREG" and "all units labelled" in found.summary()
    np.testing.assert_allclose(found.selected.estimate, totals["f"] + 1, rtol=1e-10)


def test_the_scores_are_of_domains_that_have_an_error() -> None:
    table = units()
    whole = table["county"].isin(["c1", "c2"])
    table = table.assign(y=table["y"].where(~whole, table["f"] + 1), known=whole)
    chosen = direct(table, strata="known").selection
    assert chosen.not_scored == {"no labels": ("c9",), "all units labelled": ("c1", "c2")}
    for key, values in chosen.domain_scores.items():
        assert np.isnan(values[:, [1, 2, 9]]).all(), key
    assert chosen.n_domains_scored["db_cv"] == 7


def test_domains_known_whole() -> None:
    table = units()
    whole = table["county"].isin(["c1", "c2"])
    table = table.assign(y=table["y"].where(~whole, table["f"] + 1), known=whole)
    found = evaluate(table, strata="known")
    for name in STANDARD:
        fit = found.fit(name)
        assert fit.status[[1, 2]].tolist() == ["census"] * 2
        np.testing.assert_allclose(fit.mse[[1, 2]], 0.0, atol=1e-25)
        truth = (table["f"] + 1).groupby(table["county"]).mean()
        np.testing.assert_allclose(fit.estimate[[1, 2]], truth[["c1", "c2"]], rtol=1e-10)


def test_clusters_that_are_the_domains() -> None:
    # Each domain lies in one fold wholly: nothing can be scored, and the result says so.
    table = units()
    some = table["county"].isin(["c1", "c3", "c4", "c6", "c7"])
    table = table.assign(y=table["f"].where(some))
    found = direct(table, ids="county")
    assert found.selection.default == "GREG"
    assert found.selection.not_scored["all its labels in one fold"] == tuple(
        f"c{i}" for i in (1, 3, 4, 6, 7)
    )
    with pytest.raises(InputError) as caught:
        pb.select(
            pb.survey_design(table[some].assign(w=2.0), weights="w", ids="county"),
            pb.population(table, domain="county", auxiliary=["f"]),
            [pb.candidate("HT")],
            outcome="y",
        )
    assert caught.value.code == "no_common_domain"


def test_what_is_announced() -> None:
    said: list[str] = []
    evaluate(units(), announce=said.append)
    assert said[0].startswith("no weights given")
    assert said[1].startswith(f"{int(units()['y'].notna().sum())} labelled of 400 units")
    assert said[-1].startswith("scored 9 candidates")
