"""How many folds: what is asked for is held to the labels, the default stays and says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.errors import InputError

DIRECT = [
    pb.candidate("HT", direct="ht"),
    pb.candidate("Hajek", direct="hajek"),
    pb.candidate("GREG", direct="greg", unit_auxiliary=["f"]),
]


def units() -> pd.DataFrame:
    """Ten domains of 60 units, the first 20 or so of each labelled."""
    rng = np.random.default_rng(3)
    place = np.repeat(np.arange(10), 60)
    f = rng.normal(size=600) + place / 5
    return pd.DataFrame({"d": place, "f": f, "y": 1 + f + rng.normal(size=600)})


def labelled(most: int) -> pd.DataFrame:
    """The sample with so many labels in the largest domain, one fewer in every other."""
    table = units()
    rank = table.groupby("d").cumcount()
    return table[rank < np.where(table["d"] == 4, most, max(most - 1, 1))].assign(w=20.0)


def setting(most: int, **words: Any) -> tuple[Any, Any]:
    design = pb.survey_design(labelled(most), weights="w", **words)
    return design, pb.population(units(), domain="d", auxiliary=["f"])


def refused(function: Any, *args: Any, **words: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        function(*args, **words)
    assert (caught.value.code, caught.value.field) == ("too_many_folds", "folds")
    return caught.value


@pytest.mark.parametrize("n_folds", [2, 5, 20])
def test_few_and_many_folds(n_folds: int) -> None:
    found = pb.select(*setting(20), DIRECT, outcome="y", folds=n_folds)
    assert found.n_folds == n_folds and found.n_domains_scored["db_cv"] == 10


@pytest.mark.parametrize("most", [1, 2, 3, 4, 7, 12])
@pytest.mark.parametrize("repetitions", [1, 3])
def test_more_folds_than_labels_in_any_domain(most: int, repetitions: int) -> None:
    words: dict[str, Any] = {"outcome": "y", "repetitions": repetitions}
    design, known = setting(most)
    if most > 1:
        right = pb.select(design, known, DIRECT, folds=most, **words)
        assert right.n_folds == most and not any("No naive CV" in note for note in right.notes)
    for folds in (most + 1, most + 2, np.int64(design.n_units)):
        error = refused(pb.select, design, known, DIRECT, folds=folds, **words)
        expected = f"at most {most}" if most > 1 else "a domain with at least two labels"
        assert (error.expected, error.got) == (expected, folds) and error.hint
        assert f"than labels in any domain ({most})" in error.message


def test_more_folds_given_than_labels_in_any_domain() -> None:
    design, known = setting(4)
    given = np.arange(design.n_units) % 5
    assert refused(pb.select, design, known, DIRECT, outcome="y", folds=given).got == 5
    assert pb.select(design, known, DIRECT, outcome="y", folds=given % 4).n_folds == 4


def test_folds_are_counted_in_primary_units() -> None:
    # Forty labels a domain in three clusters: a label of the domain is in three folds at most.
    rng = np.random.default_rng(5)
    sample = pd.DataFrame({"d": np.repeat(["a", "b", "c"], 40), "f": rng.normal(size=120)})
    sample["y"], sample["w"] = sample["f"] + rng.normal(size=120), 2.0
    sample["psu"] = sample["d"] + (np.arange(120) % 3).astype(str)
    known = pb.population(pd.concat([sample, sample]), domain="d", auxiliary=["f"])
    clustered = pb.survey_design(sample, weights="w", ids="psu")
    assert pb.select(clustered, known, DIRECT, outcome="y", folds=3).n_folds == 3
    for folds in (4, 9, 10, 1000):
        error = refused(pb.select, clustered, known, DIRECT, outcome="y", folds=folds)
        assert error.expected == "at most 3" and "primary units with labels" in error.message
    alone = pb.survey_design(sample, weights="w")
    assert pb.select(alone, known, DIRECT, outcome="y", folds=4).n_folds == 4
    # Where no number was named, five stay; that naive CV cannot be is said.
    found = pb.select(clustered, known, DIRECT, outcome="y")
    assert found.n_folds == 5 and found.n_domains_scored["naive"] == 0
    assert "(primary units with labels in one domain: at most 3)" in found.notes[0]
    # But no more folds than there are primary units to deal out.
    few = pb.survey_design(
        sample[sample["psu"].isin(["a0", "a1", "b0", "b1"])], weights="w", ids="psu"
    )
    assert pb.select(few, known, DIRECT, outcome="y").n_folds == 4


@pytest.mark.parametrize("folds", [2.5, "5", True, np.nan, np.array(3)])
def test_what_is_no_number_of_folds(folds: Any) -> None:
    with pytest.raises(InputError) as caught:
        pb.select(*setting(4), DIRECT, outcome="y", folds=folds)
    error = caught.value
    assert (error.code, error.field) == ("bad_folds", "folds")
    assert error.expected == "a whole number, at least 2, or an array of 31 folds"


def test_three_labels_a_domain_and_the_usual_folds() -> None:
    # DB-CV needs no hold-out of a domain's own.
    design, known = setting(3)
    found = pb.select(design, known, DIRECT, outcome="y")
    assert found.n_folds == 5
    assert found.n_domains_scored["db_cv"] > 5 and found.n_domains_scored["naive"] == 0
    assert any("(labels in one domain: at most 3)" in note for note in found.notes)
    for score in ("naive", "adjusted"):
        with pytest.raises(InputError) as caught:
            pb.select(design, known, DIRECT, outcome="y", score=score)
        assert caught.value.code == "no_common_domain"
        assert "a fold that holds none of its labels" in str(caught.value.got)


def evaluate(most: int, **words: Any) -> Any:
    table = units()
    there = labelled(most).index
    table["y"] = table["y"].where(table.index.isin(there))
    usual: dict[str, Any] = dict(outcome="y", domain="d", auxiliary="f", engine="native")
    return pb.evaluate(table, **{**usual, **words})


@pytest.mark.parametrize("most", [1, 2, 4])
def test_evaluate_refuses_what_was_asked_for(most: int) -> None:
    for folds in (most + 1, 5):
        error = refused(evaluate, most, folds=folds)
        assert error.got == folds and str(most if most > 1 else "two") in error.expected
    found = evaluate(most)  # and estimates where no number was named
    assert found.provenance.options["folds"] == 5
    for fit in found.fits:
        alone = most == 1 and fit.candidate.smoothing  # no domain tells how units scatter
        assert np.isfinite(fit.estimate).all() or alone, fit.candidate.name
        assert (fit.code == "too_few_labels") == bool(alone)


def test_a_fold_that_leaves_too_little_to_smooth() -> None:
    # One domain only has two labels: without one of them there is no variance to learn from.
    found = evaluate(2)
    for name in ("FH", "FH-GREG", "PP-S"):
        fit = found.fit(name)
        assert np.isfinite(fit.estimate).all() and np.isnan(fit.rest).all(axis=1).sum() == 2
        assert [text for text in fit.conditions if text.startswith("without fold ")][0].endswith(
            "no domain has two labelled units, so there is no variance to learn from"
        )
        assert found.selection.failed[name] == fit.conditions[-2]
    direct = evaluate(2, candidates="direct")
    assert direct.selection.selected == found.selection.selected
    np.testing.assert_array_equal(
        direct.selection.scores["db_cv"], found.selection.scores["db_cv"][:4]
    )


def test_evaluate_without_a_domain_to_score() -> None:
    found = evaluate(1)
    assert (
        found.selection.default == "PP-S" or found.selection.default in found.selection.candidates
    )
    assert found.selection.not_scored == {"one label": tuple("0123456789")}
    page = found.summary()
    assert "Nothing could be chosen by cross-validation" in page and "10 with one label" in page
    assert "No naive CV and no Dong–Li: no domain has a label in each of 5 folds" in page


def test_evaluate_with_few_labels_says_which_scores_there_are() -> None:
    found = evaluate(3)
    assert not found.selection.default and found.selection.n_domains_scored["db_cv"] >= 5
    assert "5 folds (labels in one domain: at most 3)" in found.summary()
