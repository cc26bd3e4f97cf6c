"""Bootstrap of a tail fit: what is drawn, what comes back, and that it follows the seed."""

from __future__ import annotations

import numpy as np
import pytest

from pybridge.errors import InputError
from pybridge.tails._distribution import draw
from pybridge.tails._maximum import profile_maximum
from pybridge.tails._streams import stream
from pybridge.tails.bootstrap import CountSpace, percentile_interval, resampling_refits
from pybridge.tails.generalized_pareto import generalized_pareto


def fitted(n: int = 2000, quantile: float = 0.8, shape: float = 0.1):
    x = draw(rng=np.random.default_rng(1), size=(n,), shape=shape, scale=1.0)
    return generalized_pareto(x, quantile=quantile, engine="native")


@pytest.mark.parametrize("kind", ["resampling", "parametric"])
def test_the_spread_is_that_of_the_information(kind: str) -> None:
    fit = fitted()
    boot = fit.bootstrap(kind=kind, replicates=1500, seed=3)
    # The standard deviation of 1,500 replicates has a relative error of about 2 %.
    assert boot.standard_error() == pytest.approx(fit.shape_standard_error, rel=0.12)
    assert boot.shape.mean() == pytest.approx(fit.shape, abs=0.02)
    interval = boot.interval()
    assert interval.lower < fit.shape < interval.upper and interval.kind == kind
    inner = boot.interval(level=0.5)
    assert interval.lower < inner.lower < inner.upper < interval.upper
    assert boot.n_boundary == 0 and boot.n_replicates == 1500
    assert boot.to_frame()["parameter"].tolist() == ["shape", "scale"]
    assert kind in boot.summary()


def test_the_seed_decides_and_nothing_else() -> None:
    fit = fitted()
    one, same = fit.bootstrap(replicates=50, seed=7), fit.bootstrap(replicates=50, seed=7)
    other = fit.bootstrap(replicates=50, seed=8)
    assert one == same and (one.shape != other.shape).all()


def test_streams_of_other_purposes_differ() -> None:
    first = stream(1, "a").random(3)
    assert (first != stream(1, "b").random(3)).all()
    assert (first != stream(2, "a").random(3)).all()
    assert (stream(1, "a", "b").random(3) != stream(1, "ab").random(3)).all()
    with pytest.raises(InputError):
        stream(-1, "a")


def test_counts_say_how_often_each_place_was_drawn() -> None:
    drawn = np.array([3, 3, 0, 9, 1, 1, 1], dtype=np.int32)
    space = CountSpace(3, 10)
    space.count(drawn, np.array([0, 7]))  # what the next call must not see
    counts = space.count(drawn, np.array([1, 4, 4, 7]))
    slow = [np.bincount(drawn[a:b], minlength=10) for a, b in ((1, 4), (4, 4), (4, 7))]
    assert counts.tolist() == [row.tolist() for row in slow]
    many = np.arange(4000) % 10
    assert CountSpace(2, 10).count(many, np.array([0, 1000, 4000])).tolist() == [
        [100.0] * 10,
        [300.0] * 10,
    ]


def test_resamples_follow_the_law_of_the_bootstrap() -> None:
    # Of 40 scores 10 lie above: a resample holds Binomial(40, 1/4) of them, at times none.
    x = np.sort(draw(rng=np.random.default_rng(3), size=(3,), shape=0.0, scale=1.0))
    words = {"excesses": x, "shape": 0.1, "scale": 1.0, "n_scores": 12}
    found = resampling_refits(**words, replicates=20_000, rng=np.random.default_rng(4))
    empty = np.isnan(found.shape).mean()
    expected = (1 - 3 / 12) ** 12
    assert empty == pytest.approx(expected, abs=4 * np.sqrt(expected / 20_000))


@pytest.mark.parametrize(("shape", "n"), [(0.1, 1570), (-0.45, 300), (0.0, 40)])
def test_refits_are_those_of_the_resampled_excesses(shape: float, n: int) -> None:
    x = np.sort(draw(rng=np.random.default_rng(7), size=(n,), shape=shape, scale=2.0))[::-1]
    fit = generalized_pareto(x, threshold=0.0, engine="native")
    words = {"excesses": x, "shape": fit.exact_shape, "scale": fit.exact_scale}
    found = resampling_refits(
        **words, n_scores=20 * n, replicates=200, rng=np.random.default_rng(8)
    )
    # The same draws again, by hand, each resample fitted as a sample of its own.
    rng = np.random.default_rng(8)
    totals = rng.binomial(20 * n, 1 / 20, size=200)
    places = np.split(rng.integers(0, n, size=totals.sum(), dtype=np.int32), np.cumsum(totals)[:-1])
    alone = [profile_maximum(excesses=x[some]) for some in places]
    np.testing.assert_allclose(found.shape, [one.shape for one in alone], atol=1e-8)
    np.testing.assert_allclose(found.scale, [one.scale for one in alone], rtol=1e-8)


def test_a_sample_with_replicates_at_the_boundary_says_so() -> None:
    x = draw(rng=np.random.default_rng(2), size=(20,), shape=-0.4, scale=1.0)
    fit = generalized_pareto(x, threshold=0.0, engine="native")
    boot = fit.bootstrap(replicates=300)
    assert boot.n_boundary > 0 and boot.interval().lower == -1.0


def test_missing_replicates_are_left_out_of_the_interval() -> None:
    values = np.array([np.nan, 0.0, 1.0, 2.0])
    assert percentile_interval(values, 0.5) == (0.5, 1.5)
    assert np.isnan(percentile_interval(np.array([np.nan]), 0.5)).all()


def test_without_a_fit_there_is_nothing_to_resample() -> None:
    fit = generalized_pareto(np.linspace(0.5, 1.0, 50), threshold=0.0, engine="native")
    with pytest.raises(InputError) as caught:
        fit.bootstrap()
    assert caught.value.code == "no_fit"
