"""The tails' share of the noise of variances: exact where every sample is there, and its limits."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.design.cells import Cells
from pybridge.design.folds import make_folds
from pybridge.design.variance import domain_moments
from pybridge.design.within_tails import TailMoments
from pybridge.direct.inputs import domain_sample
from validation.reimplementations import direct, smoothed_variances

Y = np.array([1.0])


def cells_of(units: pd.DataFrame, auxiliary: tuple[str, ...] = (), folds: int = 1) -> Cells:
    """Cells of units with columns d, y, w and the auxiliaries."""
    names, count = np.unique(units["d"], return_counts=True)
    table = pd.DataFrame({"d": names, "N": 10.0 * count, **{name: 0.0 for name in auxiliary}})
    population = pb.population(table, domain="d", size="N", auxiliary_means=list(auxiliary))
    design = pb.survey_design(units, weights="w")
    split = make_folds(design, folds) if folds > 1 else None
    return domain_sample(design, population, outcome="y", folds=split).cells


def tails_of(units: pd.DataFrame, auxiliary: tuple[str, ...] = ()) -> TailMoments:
    return domain_moments(cells_of(units, auxiliary)).tails


def every_sample(atoms: list[float], n: int, first: int = 0) -> pd.DataFrame:
    """All samples of n draws from equally likely atoms, each one a domain."""
    draws = np.array(list(product(atoms, repeat=n)), dtype=float)
    code = first + np.repeat(np.arange(len(draws)), n)
    return pd.DataFrame({"d": code, "y": draws.ravel(), "w": 10.0})


@pytest.mark.parametrize("sizes", [(4,), (5,), (3, 5), (2, 3, 4)])
def test_exact_over_all_samples(sizes: tuple[int, ...]) -> None:
    # Averages over all samples are expectations, so the one κ that fits is the atoms' own.
    atoms = [0.0, 0.0, 0.0, 0.0, 1.0, 7.0]
    kurtosis = np.mean((atoms - np.mean(atoms)) ** 4) / np.var(atoms) ** 2
    parts, first = [], 0
    for n in sizes:
        parts.append(every_sample(atoms, n, first))
        first = int(parts[-1]["d"].max()) + 1
    found = tails_of(pd.concat(parts, ignore_index=True)).share(Y)
    assert kurtosis > 4 and found == pytest.approx((kurtosis - 3) / (kurtosis - 1), rel=1e-10)


def test_light_tails_have_no_share() -> None:
    assert tails_of(every_sample([0.0, 1.0], 4)).share(Y) == 0.0
    assert tails_of(every_sample([0.0, 1.0, 2.0], 4)).share(Y) == 0.0


@pytest.mark.parametrize("n", [2, 3])
def test_two_or_three_units_a_domain_say_nothing_of_tails(n: int) -> None:
    # There m4 is a multiple of s⁴, whatever the draws.
    rng = np.random.default_rng(1)
    units = pd.DataFrame({"d": np.repeat(np.arange(50), n), "w": 3.0})
    assert tails_of(units.assign(y=np.exp(2 * rng.normal(size=50 * n)))).share(Y) == 0.0


@pytest.mark.parametrize("sizes", [(2,), (3,), (2, 3)])
@pytest.mark.parametrize("spread", [0.0, 1e-5, 0.3])
def test_nor_do_they_where_weights_differ(sizes: tuple[int, ...], spread: float) -> None:
    rng = np.random.default_rng(1)
    code = np.repeat(np.arange(50 * len(sizes)), np.tile(sizes, 50))
    w = 3.0 * np.exp(spread * rng.normal(size=len(code)))
    for y in (rng.normal(size=len(code)), np.exp(2 * rng.normal(size=len(code)))):
        units = pd.DataFrame({"d": code, "y": y, "f": 0.0, "g": 0.0, "w": w})
        m = len(sizes) * 50
        assert smoothed_variances.tail_share(y, twin_sample(units), m) == 0.0
        assert tails_of(units).share(Y) == 0.0


def test_nothing_to_measure() -> None:
    single = pd.DataFrame({"d": np.arange(6), "y": np.arange(6.0), "w": 2.0})
    assert tails_of(single).share(Y) == 0.0
    assert tails_of(every_sample([2.0], 5)).share(Y) == 0.0


def test_one_far_unit_in_every_domain_is_the_most_there_is() -> None:
    y = np.tile(np.r_[1000.0, np.zeros(39)], 30)
    units = pd.DataFrame({"d": np.repeat(np.arange(30), 40), "y": y, "w": 5.0})
    assert tails_of(units).share(Y) == pytest.approx(1.0, rel=1e-10)
    # And no more than that where domains differ in size, the largest with the far unit.
    y[40:] = np.tile([-1.0, 1.0], 580)
    assert tails_of(units.assign(d=np.minimum(units["d"], 1), y=y)).share(Y) <= 1.0


def drawn(kind: str, seed: int = 2) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    code = rng.integers(40, size=4000)
    draws = {
        "normal": rng.normal(size=4000),
        "different variances": rng.normal(size=4000) * np.exp(0.7 * rng.normal(size=40))[code],
        "gamma": rng.gamma(1.0, size=4000),
    }
    w = np.exp(0.3 * rng.normal(size=4000)) + 1.0
    f = rng.normal(size=4000)
    y = draws[kind] + 2.0 * f + rng.normal(size=40)[code]
    return pd.DataFrame({"d": code, "y": y, "f": f, "g": 1e3 + rng.normal(size=4000), "w": w})


def test_variances_that_differ_are_no_tails() -> None:
    residual = np.array([1.0, -2.0])
    for kind, most in (("normal", 0.1), ("different variances", 0.15)):
        assert tails_of(drawn(kind), ("f",)).share(residual) < most
    # Exponential draws: κ = 9.
    assert tails_of(drawn("gamma"), ("f",)).share(residual) == pytest.approx(0.75, abs=0.1)
    sample = twin_sample(drawn("different variances"))
    pooled = smoothed_variances.pooled_kurtosis(sample.y - 2.0 * sample.F[:, 0], sample, 40)
    assert pooled > 4.5


def twin_sample(units: pd.DataFrame) -> direct.Sample:
    y, w, d = (units[name].to_numpy() for name in ("y", "w", "d"))
    return direct.Sample(y=y, w=w, domain=d, F=units[["f", "g"]].to_numpy())


@pytest.mark.parametrize("kind", ["normal", "different variances", "gamma"])
@pytest.mark.parametrize("slopes", [(0.0, 0.0), (2.0, 0.0), (1.5, -0.5)])
def test_of_any_residual_as_from_the_units(kind: str, slopes: tuple[float, float]) -> None:
    units = drawn(kind)
    found = tails_of(units, ("f", "g")).share(np.array([1.0, *(-b for b in slopes)]))
    sample = twin_sample(units)
    expected = smoothed_variances.tail_share(sample.y - sample.F @ slopes, sample, 40)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_what_it_does_not_depend_on() -> None:
    units = drawn("gamma")
    units = units.assign(y=units["y"] - 2.0 * units["f"])
    there = tails_of(units).share(Y)
    assert 0.5 < there < 0.9
    rng = np.random.default_rng(3)
    for changed in (
        units.assign(y=1e-5 * units["y"]),
        units.assign(y=1e5 * units["y"] - 3e7),
        units.assign(w=7.0 * units["w"]),
        units.sample(frac=1.0, random_state=4),
        units.assign(d=rng.permutation(40)[units["d"]]),
    ):
        assert tails_of(changed).share(Y) == pytest.approx(there, rel=1e-8)
    assert tails_of(units).share(-3.0 * Y) == pytest.approx(there, rel=1e-12)


def test_a_perfect_predictor_leaves_only_rounding() -> None:
    units = drawn("gamma")
    units = units.assign(y=1.0 + 2.0 * units["f"])
    assert tails_of(units, ("f",)).share(np.array([1.0, -2.0])) == 0.0


def test_parts_of_a_sample_take_the_whole_samples() -> None:
    cells = cells_of(drawn("gamma"), folds=4)
    whole = domain_moments(cells).tails
    for replicates in ("rest", "fold"):
        part = domain_moments(cells, replicates).tails
        for name in ("fourth", "square", "of_fourth", "of_square"):
            np.testing.assert_array_equal(getattr(part, name), getattr(whole, name))
