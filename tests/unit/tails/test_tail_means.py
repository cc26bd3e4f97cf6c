"""The mean beyond a quantile, of a sample and of its resamples."""

from __future__ import annotations

import numpy as np
import pytest

from pybridge.tails.tail_means import (
    columns_needed,
    resampled_tail_means,
    tail_value_at_risk,
)
from validation.reimplementations.generalized_pareto import tail_mean


@pytest.mark.parametrize("n", [11, 100, 101, 977])
@pytest.mark.parametrize("decimals", [None, 1])
@pytest.mark.parametrize("quantile", [0.5, 0.9, 0.95])
def test_resamples_give_what_each_gives_alone(n: int, decimals: int, quantile: float) -> None:
    rng = np.random.default_rng(n)
    x = rng.exponential(size=n)
    x = np.sort(x if decimals is None else np.round(x, decimals))[::-1].copy()
    counts = rng.multinomial(n, np.full(n, 1 / n), size=30)
    counts[0] = 1
    counts[1] = 0
    counts[1, -1] = n  # a resample of nothing but the smallest score
    found = resampled_tail_means(ordered=x, counts=counts, quantile=quantile, total=n)
    alone = [tail_mean(np.repeat(x, c), quantile) for c in counts]
    np.testing.assert_allclose(found, alone, rtol=1e-12)
    assert tail_value_at_risk(x, quantile=quantile) == pytest.approx(found[0], rel=1e-12)


def test_the_upper_part_is_enough_and_a_part_that_is_not_says_so() -> None:
    rng = np.random.default_rng(1)
    x = np.sort(rng.exponential(size=5000))[::-1].copy()
    counts = rng.multinomial(5000, np.full(5000, 1 / 5000), size=40)
    width = columns_needed(ordered=x, quantile=0.9)
    assert 500 < width < 1000
    words = {"ordered": x, "quantile": 0.9, "total": 5000}
    whole = resampled_tail_means(counts=counts, **words)
    np.testing.assert_array_equal(resampled_tail_means(counts=counts[:, :width], **words), whole)
    assert np.isnan(resampled_tail_means(counts=counts[:, :100], **words)).all()


def test_the_mean_beyond_ninety_percent_of_an_exponential() -> None:
    x = -np.log1p(-(np.arange(200_000) + 0.5) / 200_000)
    assert tail_value_at_risk(x) == pytest.approx(np.log(10) + 1, abs=1e-3)
