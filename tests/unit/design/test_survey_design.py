"""Survey designs and folds: what they are made of, and what they refuse or say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.design.folds import make_folds
from pybridge.errors import InputError


def sample() -> pd.DataFrame:
    """Two strata of 12 and 8 units, in four and two clusters."""
    return pd.DataFrame(
        {
            "w": np.r_[np.full(12, 5.0), np.full(8, 2.0)],
            "h": ["a"] * 12 + ["b"] * 8,
            "psu": np.repeat([1, 2, 3, 4, 5, 6], [3, 3, 3, 3, 4, 4]),
            "N": np.r_[np.full(12, 60.0), np.full(8, 16.0)],
            "y": np.arange(20.0),
            "d": ["x", "y"] * 10,
        }
    )


def code_of(call: Any, *arguments: Any, **words: Any) -> str:
    with pytest.raises(InputError) as caught:
        call(*arguments, **words)
    return caught.value.code


def lonely_sample() -> pd.DataFrame:
    table = sample()
    return table.assign(h=table["h"].where(table.index != 3, "alone"))


# --- what a design is --------------------------------------------------------------------------


def test_units_in_strata() -> None:
    found = pb.survey_design(sample(), weights="w", strata="h", fpc="N")
    assert found.strata.tolist() == ["a", "b"] and found.n_psu.tolist() == [12, 8]
    assert found.sampling_fraction.tolist() == [0.2, 0.5]
    assert found.psu is None and found.n_units == 20
    assert found.summary() == (
        "probability sample of 20 units in 2 strata, with finite population correction"
    )


def test_clusters_in_strata() -> None:
    found = pb.survey_design(sample(), weights="w", strata="h", ids="psu")
    assert found.n_psu.tolist() == [4, 2]
    assert "in 6 primary units" in repr(found) and "without finite" in repr(found)


def test_weights_follow_from_the_correction() -> None:
    found = pb.survey_design(sample(), strata="h", fpc="N")
    np.testing.assert_array_equal(found.weights, sample()["w"])
    share = sample().assign(N=1 / sample()["w"])
    found = pb.survey_design(share, strata="h", fpc="N")
    np.testing.assert_array_equal(found.weights, sample()["w"])


def test_labels_of_clusters_that_start_anew_in_every_stratum() -> None:
    table = sample().assign(psu=[1, 2] * 10)
    words = dict(weights="w", strata="h", ids="psu")
    assert code_of(pb.survey_design, table, **words) == "clusters_cross_strata"
    assert pb.survey_design(table, nest=True, **words).n_psu.tolist() == [2, 2]


@pytest.mark.parametrize("rule", ["adjust", "average", "certainty", "remove"])
def test_rules_for_lonely_units_are_named(rule: str) -> None:
    words = dict(weights="w", strata="h")
    assert code_of(pb.survey_design, lonely_sample(), **words) == "lonely_psu"
    found = pb.survey_design(lonely_sample(), lonely_psu=rule, **words)
    assert found.lonely.tolist() == ["alone"]
    assert found.summary().endswith(f"strata with one primary unit (alone): {rule}")
    population = pb.population(sample(), domain="d")
    size = population.size * 4
    population = pb.population(
        pd.DataFrame({"d": population.domains, "N": size}), domain="d", size="N"
    )
    estimates = pb.horvitz_thompson(found, population, outcome="y")
    assert rule in estimates.summary()


def test_a_stratum_sampled_whole_is_not_lonely() -> None:
    table = lonely_sample().assign(N=lambda t: t["h"].map({"a": 60.0, "b": 16.0, "alone": 1.0}))
    found = pb.survey_design(table, weights="w", strata="h", fpc="N")
    assert found.lonely.tolist() == [] and found.n_psu.tolist() == [11, 1, 8]


def test_a_design_leaves_the_table_alone() -> None:
    table = sample()
    before = table.copy(deep=True)
    design = pb.survey_design(table, weights="w", strata="h", ids="psu", fpc=None)
    population = pb.population(pd.DataFrame({"d": ["x", "y"], "N": [50, 50]}), domain="d", size="N")
    pb.hajek(design, population, outcome="y")
    pb.select(design, population, [pb.candidate("HT")], outcome="y", folds=2)
    pd.testing.assert_frame_equal(table, before)


BAD = {
    "no table": (dict(weights="w"), lambda t: t.to_dict(), "not_a_table"),
    "no rows": (dict(weights="w"), lambda t: t.iloc[:0], "empty_table"),
    "no weights": (dict(), None, "missing_argument"),
    "weights of text": (dict(weights="h"), None, "not_numeric"),
    "a list for a name": (dict(weights=["w"]), None, "bad_name"),
    "unknown rule": (dict(weights="w", lonely_psu="drop"), None, "unknown_option"),
    "unknown pps": (dict(weights="w", pps="brewer"), None, "unknown_option"),
    "poisson with strata": (
        dict(weights="w", pps="poisson", strata="h"),
        None,
        "conflicting_arguments",
    ),
    "poisson without weights": (dict(pps="poisson"), None, "missing_argument"),
    "poisson weights below 1": (
        dict(weights="w", pps="poisson"),
        lambda t: t.assign(w=0.5),
        "bad_weight",
    ),
    "correction of 0": (dict(fpc="N", strata="h"), lambda t: t.assign(N=0.0), "bad_fpc"),
    "correction below the sample": (
        dict(fpc="N", strata="h"),
        lambda t: t.assign(N=9.0),
        "bad_fpc",
    ),
    "correction by cluster count": (
        dict(fpc="N", strata="h", ids="psu"),
        lambda t: t.assign(N=3.0),
        "bad_fpc",
    ),
    "missing stratum": (
        dict(weights="w", strata="h"),
        lambda t: t.assign(h=t["h"].where(t.index > 0)),
        "missing_values",
    ),
    "list labels": (dict(weights="w", strata="h"), lambda t: t.assign(h=[[1]] * 20), "bad_label"),
    "weights out of range": (dict(weights="w"), lambda t: t.assign(w=1e300), "out_of_range"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_designs(kind: str) -> None:
    words, change, code = BAD[kind]
    table = sample() if change is None else change(sample())
    assert code_of(pb.survey_design, table, **words) == code


# --- folds -------------------------------------------------------------------------------------


def test_folds_are_balanced_inside_strata_only() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"h": rng.integers(3, size=200), "w": 1.0, "d": rng.integers(5, size=200)})
    design = pb.survey_design(table, weights="w", strata="h")
    folds = make_folds(design, 5, seed=4)
    for h in range(3):
        counts = np.bincount(folds.unit_fold[design.stratum == h], minlength=5)
        assert counts.max() - counts.min() <= 1
    spread = [np.ptp(np.bincount(folds.unit_fold[table["d"] == d], minlength=5)) for d in range(5)]
    assert max(spread) > 1
    assert make_folds(design, 5, seed=4) == folds and make_folds(design, 5, seed=5) != folds
    assert folds.pooled == () and "5 folds of 200 units" in folds.summary()


def test_clusters_stay_together() -> None:
    design = pb.survey_design(sample(), weights="w", strata="h", ids="psu")
    folds = make_folds(design, 3).unit_fold
    assert all(len(set(folds[sample()["psu"] == k])) == 1 for k in range(1, 7))


def test_small_strata_keep_their_weights_and_share_hold_outs() -> None:
    # Eight strata of three: in the rest each stands for itself, in single folds all are pooled.
    table = pd.DataFrame({"h": np.repeat(np.arange(8), 3), "w": 2.0})
    design = pb.survey_design(table, weights="w", strata="h")
    folds = make_folds(design, 5)
    for h in range(8):
        assert len(set(folds.unit_fold[table["h"] == h])) == 3
    assert folds.rest_stratum.tolist() == list(range(8))
    assert set(folds.fold_stratum) == {0} and len(folds.pooled) == 8
    assert "pooled: 0, 1" in folds.summary()


def test_a_stratum_inside_one_fold_joins_another_for_the_rest() -> None:
    design = pb.survey_design(sample(), weights="w", strata="h")
    given = np.r_[np.arange(12) % 3, np.full(8, 1)]
    folds = make_folds(design, given)
    assert folds.rest_stratum.tolist() == [0, 0]


def test_as_many_folds_as_units() -> None:
    design = pb.survey_design(sample(), weights="w")
    assert sorted(make_folds(design, 20).unit_fold) == list(range(20))
    assert code_of(make_folds, design, 21) == "too_many_folds"


def test_more_folds_than_small_integers_hold() -> None:
    design = pb.survey_design(pd.DataFrame({"w": np.ones(40_000)}), weights="w")
    assert sorted(make_folds(design, np.arange(40_000)).unit_fold) == list(range(40_000))
    assert sorted(make_folds(design, 40_000).unit_fold) == list(range(40_000))


@pytest.mark.parametrize(
    ("folds", "code"),
    [
        (1, "bad_count"),
        (0, "bad_count"),
        (2.5, "bad_folds"),
        (True, "bad_folds"),
        (None, "bad_folds"),
        ("five", "bad_folds"),
        ([1, 2], "bad_folds"),
        (np.zeros(20), "bad_folds"),
        (np.ma.masked_array(np.arange(20) % 3, mask=np.arange(20) < 2), "bad_folds"),
        (np.r_[np.nan, np.arange(19.0) % 3], "missing_values"),
        ([None, *["a", "b"] * 9, "a"], "missing_values"),
    ],
)
def test_folds_that_cannot_be(folds: Any, code: str) -> None:
    design = pb.survey_design(sample(), weights="w")
    with pytest.raises(InputError) as caught:
        make_folds(design, folds)
    error = caught.value
    assert (error.code, error.field) == (code, "folds") and error.expected and error.got is not None


def test_one_primary_unit_has_no_folds() -> None:
    design = pb.survey_design(sample().head(1), weights="w", lonely_psu="remove")
    with pytest.raises(InputError) as caught:
        make_folds(design, 2)
    assert caught.value.expected == "a sample of at least two primary units"


def test_folds_that_cut_a_cluster() -> None:
    design = pb.survey_design(sample(), weights="w", strata="h", ids="psu")
    assert code_of(make_folds, design, np.arange(20) % 4) == "folds_split_cluster"
