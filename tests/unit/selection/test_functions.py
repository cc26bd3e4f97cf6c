"""Candidates that are a user's function, and failures beside the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.errors import InputError
from tests.unit.selection.samples import DIRECT, setting, units


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
    "numbers as text of pandas": (lambda s, p: pd.Series(["1"] * 10, dtype="string"), "text"),
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
