"""Pairs of candidates: when Dong and Li decide, and which candidates may be the best."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.selection.pairs import dong_li_comparison, may_be_best
from tests.unit.selection.samples import DIRECT, setting


def scores(means: list[float], n: int = 40, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    shared = rng.gamma(2.0, size=n)
    return np.array([mean + shared + 0.5 * rng.standard_normal(n) for mean in means])


def test_a_candidate_that_is_far_worse_is_out() -> None:
    inside = may_be_best(scores([0.0, 0.02, 5.0]), level=0.95)
    assert inside.tolist() == [True, True, False]


def test_what_is_alone_or_the_same_stays() -> None:
    one = scores([1.0])
    assert may_be_best(one, level=0.95).tolist() == [True]
    assert may_be_best(np.concatenate([one, one, one]), level=0.95).all()
    assert may_be_best(scores([0.0, 3.0], n=1), level=0.95).all()
    constant = one + 7.0 * np.arange(2)[:, None]  # worse by the same everywhere: no spread at all
    assert may_be_best(constant, level=0.95)[0]


def test_without_a_score() -> None:
    values = scores([0.0, 0.1, 9.0])
    values[1] = np.nan
    values[:, 5] = np.nan
    assert may_be_best(values, level=0.95).tolist() == [True, False, False]
    assert not may_be_best(np.full((3, 4), np.nan), level=0.95).any()


def test_a_higher_level_keeps_more_and_the_order_says_nothing() -> None:
    values = scores([0.0, 0.2, 0.35, 0.5, 0.8])
    sizes = [may_be_best(values, level=level).sum() for level in (0.5, 0.8, 0.95, 0.999)]
    assert sizes == sorted(sizes) and sizes[0] < sizes[-1]
    order = [3, 0, 4, 2, 1]
    clear = scores([0.0, 0.01, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(
        may_be_best(clear[order], level=0.95), may_be_best(clear, level=0.95)[order]
    )
    np.testing.assert_array_equal(
        may_be_best(1e-12 * clear, level=0.95), may_be_best(clear, level=0.95)
    )


@pytest.mark.parametrize("count", [2, 6])
def test_the_set_holds_the_best_as_often_as_it_says(count: int) -> None:
    # All equally good, which is hardest: each is the best and must be in with the set's level.
    rng = np.random.default_rng(5)
    held = []
    for _ in range(150):
        values = rng.standard_normal(30) + 0.7 * rng.standard_normal((count, 30))
        held.append(may_be_best(values, level=0.9)[0])
    share, error = np.mean(held), np.sqrt(0.9 * 0.1 / 150)
    assert abs(share - 0.9) < 3 * error
    # One bound for every pair by itself would hold the best too rarely among six.
    if count == 6:
        assert may_be_best(scores([0.0, *[0.28] * 5]), level=0.9).sum() > 1


def test_dong_li_is_antisymmetric_and_never_decides_between_equals() -> None:
    rng = np.random.default_rng(2)
    rest = rng.normal(size=(4, 5, 12))
    rest[3] = rest[2]
    adjusted = rng.gamma(2.0, size=(4, 12))
    adjusted[3] = adjusted[2]
    adjusted[:, 4] = np.nan
    gap, bound = dong_li_comparison(
        rest=rest, adjusted=adjusted, variance_ht=rng.gamma(2.0, size=12), z=1.96
    )
    np.testing.assert_allclose(gap, -gap.T)
    np.testing.assert_allclose(bound, bound.T)
    assert gap[2, 3] == 0.0 and bound[2, 3] == 0.0 and np.isfinite(bound).all()


def test_dong_li_bounds_shrink_with_the_references_variance_and_the_level() -> None:
    rng = np.random.default_rng(3)
    rest, adjusted = rng.normal(size=(2, 5, 30)), rng.gamma(2.0, size=(2, 30))
    d = rng.gamma(2.0, size=30)

    def bound(scale: float, z: float) -> float:
        words = dict(rest=rest, adjusted=adjusted, variance_ht=scale * d)
        return float(dong_li_comparison(**words, z=z)[1][0, 1])

    assert bound(1.0, 1.96) > bound(0.25, 1.96) > bound(0.25, 1.0) > bound(0.0, 1.0) > 0
    # The part of HT's error goes with its standard deviation.
    part = bound(1.0, 1.96) - bound(0.0, 1.96)
    assert bound(0.25, 1.96) - bound(0.0, 1.96) == pytest.approx(0.5 * part, rel=1e-12)


def test_the_table_of_pairs() -> None:
    found = pb.select(*setting(), DIRECT, outcome="y")
    table = found.pairwise
    assert table[["candidate", "other"]].values.tolist() == [
        ["HT", "Hájek"],
        ["HT", "GREG"],
        ["Hájek", "GREG"],
    ]
    adjusted = found.scores["adjusted"]
    np.testing.assert_allclose(table["difference"][1], adjusted[0] - adjusted[2], rtol=1e-12)
    undecided = table["difference"].abs() <= table["bound"]
    assert (table["better"][undecided] == "undecided").all()
    assert "pairs undecided" in found.summary()
    wide = pb.select(*setting(), DIRECT, outcome="y", level=0.999).pairwise
    assert (wide["bound"] > table["bound"]).all()


def test_a_pair_that_is_decided() -> None:
    # A candidate of no sense at all: even the conservative bounds see that.
    absurd = pb.candidate("absurd", function=lambda sample, population: np.full(10, 1e3))
    found = pb.select(*setting(), [*DIRECT, absurd], outcome="y")
    table = found.pairwise.set_index(["candidate", "other"])["better"]
    assert table[("HT", "absurd")] == "HT" and table[("GREG", "absurd")] == "GREG"
    assert "HT over absurd" in found.verdicts()


def test_failed_candidates_have_no_verdict() -> None:
    def raising(sample: pd.DataFrame, population: pb.Population) -> np.ndarray:
        raise ValueError("no")

    found = pb.select(*setting(), [*DIRECT, pb.candidate("no", function=raising)], outcome="y")
    table = found.pairwise
    missing = table[table["other"] == "no"]["better"]
    assert len(missing) == 3 and missing.isna().all()
    assert "of 3 pairs" in found.verdicts() and "no" not in found.indistinguishable()


def test_the_columns_of_the_set() -> None:
    found = pb.select(*setting(), DIRECT, outcome="y")
    frame = found.to_frame().set_index("candidate")
    names = found.indistinguishable()
    assert [name for name in found.candidates if frame.loc[name, "may_be_best"]] == list(names)
    assert set(found.indistinguishable(0.5)) <= set(names) <= set(found.indistinguishable(0.9999))
    with pytest.raises(pb.InputError):
        found.indistinguishable(95)


def test_every_reference_beside_the_chosen_one() -> None:
    found = pb.select(*setting(), DIRECT, outcome="y")
    table = found.references
    assert table["reference"].unique().tolist() == ["HT", "Hájek", "PPI", "GREG"]
    for name in ("ht", "hajek", "ppi", "greg"):
        alone = pb.select(*setting(), DIRECT, outcome="y", reference=name)
        own = table[table["reference"] == alone.reference].set_index("candidate")
        for key in ("db_cv", "sure"):
            np.testing.assert_allclose(own.loc[list(alone.candidates), key], alone.scores[key])
            errors = own.loc[list(alone.candidates), f"{key}_standard_error"]
            np.testing.assert_allclose(errors, alone.standard_errors[key])
