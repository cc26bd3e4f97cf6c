"""The larger domain as an aggregate, origins and scales, and labels of every type."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from tests.identities.direct_cases import KINDS, METHODS, RTOL, RTOL_VARIANCE, case, same


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# --- the whole and its groups ------------------------------------------------------------------


@pytest.mark.parametrize("method", ["ht", "hajek", "ppi", "greg"])
@pytest.mark.parametrize("level", [None, "r"])
def test_an_aggregate_is_the_estimate_of_the_larger_domain(
    kind: str, method: str, level: str | None
) -> None:
    found = case(kind)
    group = found.totals["r"] if level else pd.Series("all", index=found.totals.index)
    group_of = dict(zip(found.totals["d"], group))
    N = found.totals["N"]
    large = pd.DataFrame({"N": N, "f": N * found.totals["f"], "g": N * found.totals["g"]})
    large = large.groupby(group.to_numpy()).sum()
    large = large.assign(f=large["f"] / large["N"], g=large["g"] / large["N"], r="x")
    totals = large.rename_axis("d").reset_index()
    units = found.units.assign(d=found.units["d"].map(group_of))
    # The intercept term of a group is that of its domains only where β is one for all: it is.
    theirs = found.estimates(method, units, totals)
    mine = found.estimates(method).aggregate(level)
    np.testing.assert_array_equal(mine.group, totals["d"])
    np.testing.assert_allclose(mine.estimate, theirs.estimate, rtol=RTOL)
    np.testing.assert_allclose(mine.variance, theirs.variance, rtol=RTOL_VARIANCE)
    np.testing.assert_array_equal(mine.degrees_of_freedom, theirs.degrees_of_freedom)
    np.testing.assert_allclose(mine.lower, theirs.lower, rtol=1e-9)
    gap = np.abs(mine.covariance - theirs.covariance()) / theirs.variance.max()
    assert gap.max() < RTOL_VARIANCE


@pytest.mark.parametrize("method", ["ht", "ppi", "greg", "greg within", "greg domain"])
def test_an_aggregate_is_the_weighted_mean_with_the_full_covariance(kind: str, method: str) -> None:
    found = case(kind).estimates(method)
    share = found.size / found.size.sum()
    mine = found.aggregate()
    V = found.covariance()
    np.testing.assert_allclose(mine.estimate[0], share @ found.estimate, rtol=RTOL)
    np.testing.assert_allclose(mine.variance[0], share @ V @ share, rtol=RTOL_VARIANCE)
    np.testing.assert_allclose(np.diag(V), found.variance, rtol=RTOL_VARIANCE)
    assert np.linalg.eigvalsh(V).min() > -1e-12 * np.linalg.eigvalsh(V).max()


@pytest.mark.parametrize("method", ["ht", "hajek", "greg"])
def test_variances_of_more_groups_than_a_covariance_has_room_for(
    kind: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = case(kind).estimates(method)
    few = {level: found.aggregate(level) for level in (None, "r", "d")}
    monkeypatch.setattr("pybridge.direct.aggregates.MOST_GROUPS", 0)
    monkeypatch.setattr("pybridge.design.groups._MOST_CELLS", 0)  # sparse from here on
    for level, expected in few.items():
        many = found.aggregate(level)
        assert many.covariance.shape == (0, 0)
        np.testing.assert_allclose(many.variance, expected.variance, rtol=1e-11)
        np.testing.assert_array_equal(many.estimate, expected.estimate)
    scale = np.abs(few["d"].covariance).max()
    if method != "hajek":
        np.testing.assert_allclose(found.covariance(), few["d"].covariance, atol=1e-12 * scale)


# --- origins and scales ------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1e12])
def test_units_of_measurement(kind: str, method: str, scale: float) -> None:
    found = case(kind)
    columns = ["y", "f", "g"] if method == "ppi" else ["y"]
    units = found.units.assign(**{name: scale * found.units[name] for name in columns})
    totals = found.totals.assign(**{n: scale * found.totals[n] for n in columns if n != "y"})
    mine, theirs = found.estimates(method, units, totals), found.estimates(method)
    np.testing.assert_allclose(mine.estimate, scale * theirs.estimate, rtol=RTOL)
    np.testing.assert_allclose(mine.variance, scale**2 * theirs.variance, rtol=RTOL_VARIANCE)
    np.testing.assert_array_equal(mine.status, theirs.status)


@pytest.mark.parametrize("method", ["greg", "greg within", "greg domain"])
@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_units_of_measurement_of_the_auxiliary(kind: str, method: str, scale: float) -> None:
    found = case(kind)
    units = found.units.assign(f=scale * found.units["f"])
    totals = found.totals.assign(f=scale * found.totals["f"])
    same(found.estimates(method, units, totals), found.estimates(method), 1e-11, 1e-9)


@pytest.mark.parametrize("method", ["hajek", "greg", "greg within", "greg domain"])
@pytest.mark.parametrize("origin", [1.0, -1e6])
def test_the_origin_of_the_outcome(kind: str, method: str, origin: float) -> None:
    # Adding a constant moves these estimates by it and leaves their variances, digits included.
    found = case(kind)
    moved = found.estimates(method, found.units.assign(y=found.units["y"] + origin))
    there = found.estimates(method)
    np.testing.assert_allclose(moved.estimate - origin, there.estimate, atol=1e-14 * abs(origin))
    digits = 1e-15 * abs(origin) / there.standard_error.min()
    np.testing.assert_allclose(moved.variance, there.variance, rtol=1e-10 + 10 * digits)


def test_the_origin_of_both_for_a_prediction(kind: str) -> None:
    found, origin = case(kind), 1e6
    units = found.units.assign(y=found.units["y"] + origin, f=found.units["f"] + origin)
    moved = found.estimates("ppi", units, found.totals.assign(f=found.totals["f"] + origin))
    there = found.estimates("ppi")
    np.testing.assert_allclose(moved.estimate - origin, there.estimate, atol=1e-8)
    np.testing.assert_allclose(moved.variance, there.variance, rtol=1e-8)


@pytest.mark.parametrize("variance", ["direct", "smoothed", "pooled"])
def test_variances_keep_their_digits_far_from_the_origin(variance: str) -> None:
    # Where domains are strata the level of y does not enter HT's variance.
    found = case("domains are strata")
    words = dict(outcome="y", domain="d", variance=variance)
    there = pb.horvitz_thompson(found.design(), found.population(), **words)
    units = found.units.assign(y=found.units["y"] + 1e6)
    moved = pb.horvitz_thompson(found.design(units), found.population(), **words)
    np.testing.assert_allclose(moved.variance, there.variance, rtol=1e-8)
    greg = pb.generalized_regression(found.design(), found.population(), **words)
    moved = pb.generalized_regression(found.design(units), found.population(), **words)
    np.testing.assert_allclose(moved.variance, greg.variance, rtol=1e-8)


def test_a_perfect_predictor_leaves_no_variance(kind: str) -> None:
    found = case(kind)
    units = found.units.assign(y=1.0 + 2.0 * found.units["f"])
    greg = found.estimates("greg", units)
    np.testing.assert_array_equal(greg.variance, 0.0)
    np.testing.assert_allclose(greg.estimate, 1.0 + 2.0 * found.totals["f"], rtol=1e-12)


def _number(d: pd.Series) -> pd.Series:
    return d.str[1:].astype(int)


KEYS = {
    "integers": _number,
    "integers far apart": lambda d: _number(d) * 10**15,
    "large unsigned integers": lambda d: _number(d).astype("uint64") + np.uint64(2**63),
    "nullable integers": lambda d: _number(d).astype("Int64"),
    "floats": lambda d: _number(d) / 4,
    "strings": lambda d: d.astype("string"),
    "categories": lambda d: d.astype("category"),
    "categories in another order": lambda d: pd.Series(
        pd.Categorical(d, categories=["unused", *sorted(d.unique())[::-1]])
    ),
    "dates": lambda d: pd.Timestamp("2020-03-01") + pd.to_timedelta(_number(d), "D"),
    "dates of a place": lambda d: pd.Timestamp("2020-03-01", tz="Asia/Seoul")
    + pd.to_timedelta(_number(d), "D"),
    "periods": lambda d: pd.Series(
        pd.PeriodIndex("2020-0" + (1 + _number(d)).astype(str), freq="M")
    ),
    "tuples": lambda d: pd.Series([(x, 1) for x in d]),
    "text and numbers": lambda d: pd.Series([x if x < "d4" else int(x[1:]) for x in d]),
}


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("from_units", [False, True])
def test_the_type_of_the_domain_says_nothing(key: str, from_units: bool) -> None:
    found = case("strata across")
    everyone = pd.DataFrame({"d": np.repeat(found.totals["d"], 3)}).reset_index(drop=True)
    rename = KEYS[key](pd.concat([everyone["d"], found.units["d"]], ignore_index=True))
    units = found.units.reset_index(drop=True).assign(
        d=rename.iloc[len(everyone) :].reset_index(drop=True)
    )
    labels = rename.iloc[: len(everyone)].reset_index(drop=True)
    totals = found.totals.assign(d=labels.iloc[::3].reset_index(drop=True))
    if from_units:
        by_label = everyone.assign(label=labels, x=np.arange(27.0))
        population = pb.population(by_label, domain="label", auxiliary=["x"])
        assert {str(x) for x in population.domains} == {str(x) for x in labels}
        assert population.size.tolist() == [3.0] * 9
        return
    mine = found.estimates("greg", units, totals)
    same(mine, found.estimates("greg"))
    assert [str(x) for x in mine.to_frame()["domain"]] == [str(x) for x in totals["d"]]
