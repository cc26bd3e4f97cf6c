"""Candidates, failures beside them, odd samples: what select says, and what it refuses."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.errors import InputError
from pybridge.selection.candidates import _quoted


def units(seed: int = 3, n: int = 600, share: float = 0.3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    d = rng.integers(10, size=n)
    f = rng.normal(size=n) + d / 10
    y = 1 + f + 0.3 * rng.normal(size=10)[d] + rng.normal(size=n)
    return pd.DataFrame(
        {"d": [f"d{i}" for i in d], "r": [f"r{i % 3}" for i in d], "f": f, "w": 1 / share, "y": y}
    ).assign(labelled=rng.random(n) < share)


def setting(**words: Any) -> tuple[Any, Any]:
    table = units(**words)
    known = pb.population(table, domain="d", auxiliary=["f"], taxonomy=["r"])
    return pb.survey_design(table[table["labelled"]], weights="w"), known


DIRECT = [
    pb.candidate("HT"),
    pb.candidate("Hájek", direct="hajek"),
    pb.candidate("GREG", direct="greg", unit_auxiliary="f"),
]


def code_of(call: Any, *arguments: Any, **words: Any) -> str:
    with pytest.raises(InputError) as caught:
        call(*arguments, **words)
    return caught.value.code


# --- describing candidates ---------------------------------------------------------------------


def test_standard_candidates() -> None:
    found = pb.standard_candidates("f", engine="native")
    assert [item.name for item in found] == [
        *("HT", "Hájek", "PPI", "GREG", "FH", "FH-GREG", "PP-S", "TFH", "PP-TS"),
    ]
    assert [item.name for item in pb.standard_candidates(["f", "g"], taxonomy=False)] == [
        *("HT", "Hájek", "GREG", "FH", "FH-GREG", "PP-S"),
    ]
    assert found[5].summary() == "FH-GREG: greg with f, smoothed by fay_herriot (~ f), native REML"
    assert pickle.loads(pickle.dumps(found)) == found


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (dict(name=""), "bad_name"),
        (dict(name=3), "bad_name"),
        (dict(direct="ols"), "unknown_option"),
        (dict(direct="ht", unit_auxiliary="f"), "wrong_auxiliary"),
        (dict(direct="ppi", unit_auxiliary=["f", "g"]), "wrong_auxiliary"),
        (dict(direct="greg"), "wrong_auxiliary"),
        (dict(direct="greg", unit_auxiliary="f", slope="best"), "unknown_option"),
        (dict(direct="greg", unit_auxiliary="f", slope=[1.0, 2.0]), "wrong_length"),
        (dict(direct="greg", unit_auxiliary="f", slope=None), "not_a_number"),
        (dict(smoothing="loess"), "unknown_option"),
        (dict(smoothing="fay_herriot", engine="SAS"), "unknown_option"),
        (dict(smoothing="fay_herriot", engine="emdi", method="me"), "unknown_option"),
        (dict(smoothing="fay_herriot", engine="emdi", transformation="log"), "unknown_option"),
        (dict(smoothing="fay_herriot", engine="sae", TOL=1), "unknown_option"),
        (dict(smoothing="fay_herriot", engine="sae", PRECISION=0), "bad_precision"),
        (dict(smoothing="fay_herriot", prior=3), "bad_prior"),
        (dict(smoothing="taxonomy", engine="metafor", method="bayes"), "unknown_option"),
        (dict(smoothing="taxonomy", engine="rjags", n_draws=0), "bad_count"),
        (dict(n_draws=5), "unknown_option"),
        (dict(smoothing="fay_herriot", method="MCMC"), "unknown_option"),
        (dict(smoothing="fay_herriot", engine="sae", method="bayes"), "unknown_option"),
        (dict(smoothing="taxonomy", engine="sae"), "unknown_option"),
        (dict(variance="best"), "unknown_option"),
        (dict(function=3), "wrong_type"),
        (dict(smoothing="fay_herriot", area_formula="f"), "bad_formula"),
        (dict(smoothing="fay_herriot", area_formula="y ~ f"), "bad_formula"),
        (dict(smoothing="fay_herriot", area_formula=3), "bad_formula"),
        (dict(smoothing="fay_herriot", finite_population="no"), "not_a_bool"),
    ],
)
def test_candidates_that_cannot_be(words: dict[str, Any], code: str) -> None:
    assert code_of(pb.candidate, **{"name": "mine", **words}) == code


@pytest.mark.parametrize(
    ("candidates", "code"),
    [
        ([], "no_candidate"),
        (None, "wrong_type"),
        (5, "wrong_type"),
        (["HT"], "wrong_type"),
        ([DIRECT[0], DIRECT[0]], "duplicate_name"),
    ],
)
def test_lists_of_candidates_that_cannot_be(candidates: Any, code: str) -> None:
    assert code_of(pb.select, *setting(), candidates, outcome="y") == code


def test_no_auxiliary_for_the_standard_ones() -> None:
    assert code_of(pb.standard_candidates, []) == "missing_argument"


@pytest.mark.parametrize(
    "name",
    [
        "class",
        "None",
        "a b",
        "it's",
        'a"b',
        "x[0]",
        "f(x)",
        "1f",
        "점수",
        "é",
        "e\u0301",
        "Intercept",
        "C",
        "np",
        "log",
        "a~b",
        "a\nb",
        "\\",
        "{x}",
        "%s",
    ],
)
def test_any_name_of_an_auxiliary_enters_the_area_model(name: str) -> None:
    table = units().rename(columns={"f": name})
    known = pb.population(table, domain="d", auxiliary=[name], taxonomy=["r"])
    design = pb.survey_design(table[table["labelled"]], weights="w")
    candidates = [
        c for c in pb.standard_candidates(name, engine="native") if c.name[:2] in ("FH", "PP")
    ]
    mine = pb.select(design, known, candidates[:3], outcome="y")
    plain = [c for c in pb.standard_candidates("f", engine="native") if c.name[:2] in ("FH", "PP")]
    theirs = pb.select(*setting(), plain[:3], outcome="y")
    np.testing.assert_allclose(mine.scores["db_cv"], theirs.scores["db_cv"], rtol=1e-12)


def test_names_stay_as_they_are_where_python_can_read_them() -> None:
    assert [_quoted(name) for name in ("f", "f_2", "점수")] == ["f", "f_2", "점수"]


# --- options -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (dict(score="best"), "unknown_option"),
        (dict(reference="median"), "unknown_option"),
        (dict(covariance="bootstrap"), "unknown_option"),
        (dict(repetitions=0), "bad_count"),
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


# --- failures beside the others ----------------------------------------------------------------


def raising(sample: pd.DataFrame, population: Any) -> Any:
    raise ZeroDivisionError("no label")


def failing_in_a_fold(sample: pd.DataFrame, population: Any) -> Any:
    if len(sample) < units()["labelled"].sum():
        raise RuntimeError("too few rows")
    return np.ones(population.n_domains)


FUNCTIONS = {
    "raises": (raising, "ZeroDivisionError: no label"),
    "raises in a fold": (failing_in_a_fold, "RuntimeError: too few rows"),
    "one number": (lambda s, p: 3.0, "shape ()"),
    "text": (lambda s, p: ["a"] * 10, "returned text"),
    "numbers as text": (lambda s, p: ["1"] * 9 + [1.0], "returned text"),
    "numbers as labelled text": (lambda s, p: pd.Series("1", index=p.domains), "returned text"),
    "nothing": (lambda s, p: None, "shape ()"),
    "missing numbers": (lambda s, p: np.full(10, np.nan), "no finite number in 10 of 10 domains"),
    "infinite numbers": (lambda s, p: np.full(10, np.inf), "no finite number in 10 of 10 domains"),
    "one number missing": (lambda s, p: np.r_[np.nan, np.ones(9)], "1 of 10 domains with"),
    "too many numbers": (lambda s, p: np.ones(11), "shape (11,), expected (10,)"),
    "complex numbers": (lambda s, p: np.ones(10) + 1j, "complex numbers"),
    "vast numbers": (lambda s, p: np.full(10, 1e300), "cannot be squared"),
    "a masked number": (lambda s, p: np.ma.masked_array(np.ones(10), [1] + [0] * 9), "1 of 10"),
    "labels that are no domains": (
        lambda s, p: pd.Series(np.ones(10), index=[f"no {k}" for k in range(10)]),
        "labels are not domains: no 0",
    ),
    "labels of rows": (lambda s, p: s["y"].iloc[3:13], "labels are not domains"),
    "a domain twice": (
        lambda s, p: pd.Series(np.ones(11), index=[*p.domains, p.domains[0]]),
        "several numbers for one domain",
    ),
    "missing by label": (
        lambda s, p: pd.Series([None] + [1.0] * 9, index=p.domains, dtype="Float64"),
        "no finite number",
    ),
    "writes to the population": (lambda s, p: p.size.fill(1.0), "read-only"),
}


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_a_function_that_fails_stays_with_its_reason(kind: str) -> None:
    function, reason = FUNCTIONS[kind]
    found = pb.select(*setting(), [*DIRECT, pb.candidate("mine", function=function)], outcome="y")
    assert list(found.failed) == ["mine"] and reason in found.failed["mine"]
    alone = pb.select(*setting(), DIRECT, outcome="y")
    np.testing.assert_array_equal(found.scores["db_cv"][:3], alone.scores["db_cv"])
    frame = found.to_frame()
    assert frame["status"].tolist() == ["ok", "ok", "ok", "failed"]
    assert np.isnan(frame["rank"][3]) and "mine failed" in found.summary()


@pytest.mark.parametrize("words", [dict(score="sure"), dict(covariance="linearised")])
def test_a_function_has_no_derivative(words: dict[str, Any]) -> None:
    mine = pb.candidate("mine", function=lambda s, p: s.groupby("d")["y"].mean())
    found = pb.select(*setting(), [*DIRECT, mine], outcome="y", **words)
    assert "its derivative is not known" in found.failed["mine"]
    assert np.isfinite(found.scores[found.score][:3]).all()
    assert not pb.select(*setting(), [*DIRECT, mine], outcome="y").failed


@pytest.mark.parametrize("kind", ["raises", "raises in a fold"])
@pytest.mark.parametrize("repetitions", [1, 2])
def test_when_nothing_is_left(kind: str, repetitions: int) -> None:
    function, reason = FUNCTIONS[kind]
    mine = [pb.candidate("mine", function=function)]
    with pytest.raises(InputError) as caught:
        pb.select(*setting(), mine, outcome="y", repetitions=repetitions)
    assert caught.value.code == "no_common_domain"
    assert reason in str(caught.value.hint)


def test_a_function_that_fails_in_a_fold_keeps_its_estimates() -> None:
    table = units()
    table["y"] = table["y"].where(table["labelled"])
    words: dict[str, Any] = dict(outcome="y", domain="d", auxiliary="f", weights="w")
    mine = pb.candidate("mine", function=failing_in_a_fold)
    found = pb.evaluate(table, candidates=[*DIRECT, mine], **words)
    assert (found.fit("mine").estimate == 1.0).all() and np.isnan(found.fit("mine").rest).all()
    assert "too few rows" in found.selection.failed["mine"]
    alone = pb.evaluate(table, candidates=[mine], **words)
    assert alone.selection.default == "mine" and "too few rows" in alone.selection.failed["mine"]


def test_a_function_may_do_what_it_likes_to_its_sample() -> None:
    design, known = setting()
    before = design.frame.copy(deep=True)

    def careless(sample: pd.DataFrame, population: Any) -> Any:
        sample["z"] = 2 * sample["y"]
        sample.drop(columns="f", inplace=True)
        means = sample.groupby("d")["z"].mean() / 2
        sample["y"] = 0.0
        return means

    candidates = [pb.candidate("mine", function=careless), *DIRECT]
    found = pb.select(design, known, candidates, outcome="y")
    assert not found.failed
    pd.testing.assert_frame_equal(design.frame, before)


def test_a_series_is_put_into_the_order_of_the_domains() -> None:
    def by_label(sample: pd.DataFrame, population: Any) -> pd.Series:
        return sample.groupby("d")["y"].mean().sample(frac=1.0, random_state=2)

    def by_place(sample: pd.DataFrame, population: Any) -> pd.Series:
        return by_label(sample, population)[population.domains].reset_index(drop=True)

    mine = [pb.candidate("label", function=by_label), pb.candidate("place", function=by_place)]
    found = pb.select(*setting(), mine, outcome="y", reference="greg")
    np.testing.assert_array_equal(*found.domain_scores["db_cv"])


def test_a_model_that_fails_in_one_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    from pybridge.errors import FitError
    from pybridge.selection import engines

    original, calls = engines._native, []

    def sometimes(*arguments: Any, **words: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise FitError("did not converge", code="not_converged")
        return original(*arguments, **words)

    monkeypatch.setattr(engines, "_native", sometimes)
    candidates = [pb.candidate("FH", smoothing="fay_herriot"), *DIRECT]
    found = pb.select(*setting(), candidates, outcome="y")
    assert found.failed == {"FH": "without fold 2: did not converge"}
    assert found.n_domains_scored["db_cv"] == 10 and found.selected != "FH"


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
