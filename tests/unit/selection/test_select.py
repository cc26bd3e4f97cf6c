"""Candidates, failures beside them, odd samples: what select says, and what it refuses."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge._options import MOST_REPETITIONS
from pybridge.errors import InputError
from tests.unit.selection.samples import DIRECT, code_of, setting, units


# --- options -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (dict(score="best"), "unknown_option"),
        (dict(reference="median"), "unknown_option"),
        (dict(covariance="bootstrap"), "unknown_option"),
        (dict(repetitions=0), "bad_count"),
        (dict(repetitions=MOST_REPETITIONS + 1), "bad_count"),
        (dict(repetitions=10**30), "bad_count"),
        (dict(seed=-1), "bad_count"),
        (dict(seed=1.5), "bad_count"),
        (dict(split=1.0), "bad_split"),
        (dict(split="half"), "not_a_number"),
        (dict(level=95), "bad_level"),
        (dict(folds=1000), "too_many_folds"),
        (dict(folds=1), "bad_count"),
        (dict(folds=0), "bad_count"),
        (dict(folds=2.5), "bad_folds"),
        (dict(folds="five"), "bad_folds"),
        (dict(folds=[1, 2]), "bad_folds"),
        (dict(outcome="z"), "missing_column"),
    ],
)
def test_options_that_cannot_be(words: dict[str, Any], code: str) -> None:
    assert code_of(pb.select, *setting(), DIRECT, **{"outcome": "y", **words}) == code


def test_repetitions_without_end_are_refused_with_the_bound() -> None:
    table = pd.DataFrame({"y": [1.0], "d": ["a"], "f": [1.0]})
    words: dict[str, Any] = dict(outcome="y", repetitions=10**9)
    with pytest.raises(InputError) as of_select:
        pb.select(*setting(), DIRECT, **words)
    with pytest.raises(InputError) as of_evaluate:
        pb.evaluate(table, domain="d", auxiliary=["f"], engine="native", **words)
    error = of_select.value
    assert (error.code, error.field, error.got) == ("bad_count", "repetitions", 10**9)
    assert error.expected == f"a whole number, at least 1, at most {MOST_REPETITIONS}"
    assert of_evaluate.value.to_dict() == error.to_dict()


@pytest.mark.parametrize("score", ["db-cv", "naive", "adjusted", "sure", "split", "all"])
def test_every_score_can_choose(score: str) -> None:
    found = pb.select(*setting(), DIRECT, outcome="y", score=score)
    key = {"db-cv": "db_cv", "all": "db_cv"}.get(score, score)
    assert found.score == key and found.selected == DIRECT[int(np.argmin(found.scores[key]))].name
    assert ("split" in found.scores) == (score in ("split", "all"))
    frame = found.to_frame()
    assert frame["rank"].tolist() == [1, 2, 3] and frame["candidate"][0] == found.selected
    np.testing.assert_array_equal(frame["score"], np.sort(found.scores[key]))
    assert found.summary().startswith(f"selected: {found.selected} by ")


@pytest.mark.parametrize("reference", ["ht", "hajek", "ppi", "greg"])
def test_the_reference_asked_for(reference: str) -> None:
    found = pb.select(*setting(), DIRECT, outcome="y", reference=reference)
    assert found.reference.lower().replace("á", "a") == reference
    assert list(found.reference_variances) == [found.reference]


def test_no_reference_without_an_auxiliary() -> None:
    table = units()
    known = pb.population(table, domain="d")
    design = pb.survey_design(table[table["labelled"]], weights="w")
    words = dict(outcome="y", reference="greg")
    assert code_of(pb.select, design, known, DIRECT[:2], **words) == "no_reference"


def test_folds_that_split_a_cluster() -> None:
    design, known = setting()
    units = design.frame.assign(cluster=np.arange(design.n_units) // 3)
    clustered = pb.survey_design(units, weights="w", ids="cluster")
    folds = np.arange(design.n_units) % 5
    assert code_of(pb.select, clustered, known, DIRECT, outcome="y", folds=folds) == (
        "folds_split_cluster"
    )
    whole = (np.arange(design.n_units) // 3) % 5
    assert pb.select(clustered, known, DIRECT, outcome="y", folds=whole).n_folds == 5


def test_a_split_that_was_given_cannot_be_repeated() -> None:
    design, known = setting()
    words = dict(outcome="y", folds=np.arange(design.n_units) % 5, repetitions=2)
    assert code_of(pb.select, design, known, DIRECT, **words) == "conflicting_arguments"


def test_a_domain_of_few_labels_is_scored_by_the_repetitions_that_can() -> None:
    # Two labels lie in one fold in a fifth of the splits: the other splits score the domain.
    design, known = setting()
    few = design.frame.groupby("d").head(2)
    rest = design.frame[~design.frame["d"].isin(["d0", "d1", "d2", "d3"])]
    sample = pd.concat([few[few["d"].isin(["d0", "d1", "d2", "d3"])], rest])
    small = pb.survey_design(sample, weights="w")
    parts = [pb.select(small, known, DIRECT, outcome="y", seed=3 + i) for i in range(6)]
    together = pb.select(small, known, DIRECT, outcome="y", seed=3, repetitions=6)
    tables = np.stack([part.domain_scores["db_cv"] for part in parts])
    scored = np.isfinite(tables).all(axis=1)
    assert not scored.all() and scored.any(axis=0).all()
    expected = np.nanmean(tables, axis=0)
    np.testing.assert_allclose(together.domain_scores["db_cv"], expected, rtol=1e-10)
    assert together.n_domains_scored["db_cv"] == 10


def test_a_function_in_every_split_is_the_estimator_that_it_is() -> None:
    def hajek(sample: pd.DataFrame, population: Any) -> pd.Series:
        sums = sample.assign(wy=sample["weight"] * sample["y"]).groupby("d")[["wy", "weight"]].sum()
        return sums["wy"] / sums["weight"]

    mine = pb.candidate("mine", function=hajek)
    words = dict(outcome="y", score="all", repetitions=2, reference="greg")
    found = pb.select(*setting(), [DIRECT[1], mine], **words)
    assert not found.failed and {"split", "split_80"} <= set(found.scores)
    for key in ("db_cv", "naive", "adjusted", "split", "split_80"):
        np.testing.assert_allclose(*found.domain_scores[key], rtol=1e-9)
    assert found.pairwise["better"].tolist() == ["undecided"]


def test_one_candidate_alone() -> None:
    found = pb.select(*setting(), DIRECT[:1], outcome="y")
    assert found.selected == "HT" and found.indistinguishable() == ("HT",)
    assert len(found.pairwise) == 0 and "Dong" not in found.summary()


def test_both_splits_beside_the_folds() -> None:
    found = pb.select(*setting(), DIRECT, outcome="y", score="all")
    half = pb.select(*setting(), DIRECT, outcome="y", score="split")
    fifth = pb.select(*setting(), DIRECT, outcome="y", score="split", split=0.8)
    np.testing.assert_array_equal(found.scores["split"], half.scores["split"])
    np.testing.assert_array_equal(found.scores["split_80"], fifth.scores["split"])
    assert found.score == "db_cv" and "split_50" not in found.scores
    other = pb.select(*setting(), DIRECT, outcome="y", score="all", split=0.8)
    np.testing.assert_array_equal(other.scores["split_50"], half.scores["split"])


def test_repeated_splits_are_different_splits() -> None:
    words = dict(outcome="y", score="split")
    one = pb.select(*setting(), DIRECT, seed=5, **words)
    next_one = pb.select(*setting(), DIRECT, seed=6, **words)
    two = pb.select(*setting(), DIRECT, seed=5, repetitions=2, **words)
    mean = (one.domain_scores["split"] + next_one.domain_scores["split"]) / 2
    assert not np.allclose(one.domain_scores["split"], next_one.domain_scores["split"])
    np.testing.assert_allclose(two.domain_scores["split"], mean, rtol=1e-12)


def test_a_split_with_an_empty_part() -> None:
    table = units().query("labelled").groupby("d").head(2).assign(h=lambda t: t["d"])
    _, known = setting()
    design = pb.survey_design(table, weights="w", strata="h")
    words = dict(outcome="y", score="split", split=0.9)
    assert code_of(pb.select, design, known, DIRECT[:1], **words) == "bad_split"


# --- odd samples -------------------------------------------------------------------------------


def test_why_domains_are_not_scored() -> None:
    table = units()
    sample = table[table["labelled"]]
    keep = ~sample["d"].isin(["d0", "d1"])
    extra = sample[sample["d"] == "d1"].head(1)
    design = pb.survey_design(pd.concat([sample[keep], extra]), weights="w")
    folds = np.arange(int(keep.sum()) + 1) % 5
    folds[(design.frame["d"] == "d2").to_numpy()] = 3
    found = pb.select(design, setting()[1], DIRECT, outcome="y", folds=folds)
    assert found.not_scored == {
        "no labels": ("d0",),
        "one label": ("d1",),
        "all its labels in one fold": ("d2",),
    }
    assert found.n_domains_scored["db_cv"] == 7
    assert np.isnan(found.domain_scores["db_cv"][:, :3]).all()
    assert "not scored, one label: 1 domains (d1)" in found.summary()


def test_a_rare_category_that_a_fold_lacks() -> None:
    # The slopes of a fold without it are not those of the whole; the fold still has its fits.
    table = units()
    labelled = np.flatnonzero(table["labelled"])
    table["k"] = 0.0
    table.loc[[labelled[0], labelled[5], 1, 2, 3], "k"] = 1.0
    known = pb.population(table, domain="d", auxiliary=["f", "k"])
    design = pb.survey_design(table[table["labelled"]], weights="w")
    folds = np.arange(len(labelled)) % 5
    assert set(folds[[0, 5]]) == {0}
    greg = pb.candidate("GREG", direct="greg", unit_auxiliary=["f", "k"])
    found = pb.select(design, known, [greg], outcome="y", folds=folds, reference="greg")
    assert found.n_domains_scored["db_cv"] == 10
    # Without fold 0 the category is absent, and GREG is that of f alone.
    alone = pb.candidate("f alone", direct="greg", unit_auxiliary="f")
    run = pb.evaluate(
        design.frame,
        population=known,
        outcome="y",
        domain="d",
        auxiliary=["f", "k"],
        weights="w",
        candidates=[greg, alone],
        folds=folds,
    )
    np.testing.assert_allclose(run.fit("GREG").rest[0], run.fit("f alone").rest[0], rtol=1e-10)
    assert not np.allclose(run.fit("GREG").rest[1], run.fit("f alone").rest[1], rtol=1e-4)


def test_a_negative_score_is_said_and_not_hidden() -> None:
    # Hajek against HT as reference where HT is noise: the score is noise, too.
    table = units()
    table["y"] += 50.0
    known = pb.population(table, domain="d", auxiliary=["f"])
    design = pb.survey_design(table[table["labelled"]], weights="w")
    for seed in range(30):
        found = pb.select(design, known, DIRECT, outcome="y", reference="ht", seed=seed)
        if found.scores["db_cv"].min() < 0:
            break
    i = int(np.argmin(found.scores["db_cv"]))
    assert found.scores["db_cv"][i] < 0 and found.status[i] == "negative_score"
    assert np.isnan(found.reported_rmse[i]) and found.selected == DIRECT[i].name
    assert "score is negative" in found.summary()


def test_a_record() -> None:
    found = pb.select(*setting(), DIRECT, outcome="y")
    assert pickle.loads(pickle.dumps(found)) == found
    assert found != pb.select(*setting(), DIRECT, outcome="y", seed=2)
    per_domain = found.per_domain
    assert len(per_domain) == 30
    mean = per_domain.groupby("candidate")["db_cv"].mean()
    np.testing.assert_allclose(mean[list(found.candidates)], found.scores["db_cv"], rtol=1e-14)
    assert found.selected in found.indistinguishable()
