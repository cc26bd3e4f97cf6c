"""Bootstrap of a tail fit: what is drawn, what comes back, and that it follows the seed."""

from __future__ import annotations

import numpy as np
import pytest

from pybridge.errors import InputError
from pybridge.tails._distribution import draw
from pybridge.tails._streams import stream
from pybridge.tails.bootstrap import CountSpace, percentile_interval
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


def test_counts_have_the_totals_asked_for_and_are_uniform() -> None:
    rng = np.random.default_rng(4)
    for totals in ([0, 5, 4000], [3, 3, 3], [10, 12], [0, 0, 0]):
        counts = CountSpace(3, 10).draw(np.array(totals), rng)
        assert counts.shape == (len(totals), 10)
        assert counts.sum(axis=1).tolist() == totals
    counts = CountSpace(2, 10).draw(np.array([4000, 4000]), rng)
    assert np.abs(counts - 400).max() < 4.5 * np.sqrt(400 * 0.9)


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
