"""The exact maximum: global, at any scale, through shape 0, at the boundary, batched or alone."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from pybridge.tails._batch import refit_rows
from pybridge.tails._distribution import draw, draw_sorted, from_exponential, to_exponential
from pybridge.tails._information import (
    expected_covariance,
    log_likelihood,
    observed_information,
)
from pybridge.tails._maximum import profile_maximum
from pybridge.tails._shared import prepare, refit_counts
from validation.reimplementations import generalized_pareto as slow

SHAPES = (-0.6, -0.2, 0.0, 0.3, 1.0, 3.0)


def sample(shape: float, n: int, seed: int = 1, scale: float = 1.0) -> np.ndarray:
    return draw(rng=np.random.default_rng(seed), size=(n,), shape=shape, scale=scale)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [6, 40, 700])
def test_no_point_of_a_dense_grid_is_better(shape: float, n: int) -> None:
    x = sample(shape, n)
    best = profile_maximum(excesses=x)
    for other in np.linspace(-0.999, 5, 120):
        for v in np.linspace(-12, 30, 200):
            scale = other * x.max() / np.expm1(v) if v * other > 0 else 0.0
            if scale > 0:
                value = log_likelihood(excesses=x, shape=other, scale=scale)
                assert value <= best.log_likelihood + 1e-9
    value = log_likelihood(excesses=x, shape=best.shape, scale=best.scale)
    if not best.at_boundary:
        assert value == pytest.approx(best.log_likelihood, rel=1e-12, abs=1e-9)


def test_the_better_of_two_peaks_is_taken() -> None:
    # Two scales far apart: the profile has a peak for each.
    for times in (1, 15):  # short samples are scanned whole, longer ones thinned
        small = [sample(-0.3, 40, 3 + k) * 1e-7 for k in range(times)]
        large = [sample(-0.3, 12, 40 + k) for k in range(times)]
        x = np.concatenate([*small, *large])
        best = profile_maximum(excesses=x)
        shape, scale, value = slow.fit(x)
        assert best.log_likelihood >= value - 1e-7
        assert best.shape == pytest.approx(shape, abs=1e-4)


@pytest.mark.parametrize("factor", [1e-280, 1e-12, 1e7, 1e280])
def test_the_fit_follows_the_units(factor: float) -> None:
    x = sample(0.2, 300)
    one, other = profile_maximum(excesses=x), profile_maximum(excesses=x * factor)
    assert other.shape == pytest.approx(one.shape, rel=1e-9)
    assert other.scale / factor == pytest.approx(one.scale, rel=1e-9)
    assert other.log_likelihood == pytest.approx(one.log_likelihood - 300 * np.log(factor))


def exact_root(x: np.ndarray, start: float) -> tuple[float, float]:
    """Shape and scale by mpmath, from a start that is near."""
    with mpmath.workdps(40):
        y = [mpmath.mpf(float(v)) for v in x]

        def slope(t: mpmath.mpf) -> mpmath.mpf:
            a = mpmath.fsum(mpmath.log1p(t * v) for v in y) / len(y)
            b = mpmath.fsum(v / (1 + t * v) for v in y) / len(y)
            return 1 / t - b / a - b

        t = mpmath.findroot(slope, mpmath.mpf(start))
        a = mpmath.fsum(mpmath.log1p(t * v) for v in y) / len(y)
        return float(a), float(a / t)


@pytest.mark.parametrize("target", [1e-2, 1e-4, 1e-6, -1e-7, 1e-9])
def test_shapes_near_zero_keep_their_digits(target: float) -> None:
    # Quantiles of an exponential whose largest is moved until the shape is near the target.
    x = -np.log1p(-(np.arange(200) + 0.5) / 200)
    low, high = 1.0, 1.4
    for _ in range(60):
        factor = 0.5 * (low + high)
        x[-1] = 5.99 * factor
        shape = profile_maximum(excesses=x).shape
        low, high = (factor, high) if shape < target else (low, factor)
    best = profile_maximum(excesses=x)
    shape, scale = exact_root(x, best.t if best.t != 0 else 1e-12)
    assert best.shape == pytest.approx(shape, abs=1e-9)
    assert best.scale == pytest.approx(scale, rel=1e-9)
    assert abs(best.shape) < 2 * abs(target) + 1e-9


def test_an_infeasible_sample_sits_on_the_boundary() -> None:
    x = np.linspace(0.5, 1.0, 100)  # a rising density: shape below -1
    best = profile_maximum(excesses=x)
    assert best.at_boundary and best.shape == -1.0 and best.scale == 1.0
    assert best.log_likelihood == 0.0


@pytest.mark.parametrize("shape", [-0.4, 1e-7, 1e-4, 0.3])
def test_the_information_is_that_of_central_differences(shape: float) -> None:
    x = sample(shape, 300)
    ours = observed_information(excesses=x, shape=shape, scale=1.1)
    np.testing.assert_allclose(ours, slow.information(x, shape, 1.1), rtol=2e-5)


def test_the_information_is_near_smith_s_expectation() -> None:
    x = sample(0.2, 200_000)
    inverse = np.linalg.inv(observed_information(excesses=x, shape=0.2, scale=1.0))
    expected = expected_covariance(shape=0.2, scale=1.0, n=200_000)
    np.testing.assert_allclose(inverse, expected, rtol=0.03)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [6, 60, 700])
def test_rows_are_fitted_as_each_alone(shape: float, n: int) -> None:
    rows = draw(rng=np.random.default_rng(2), size=(40, n), shape=shape, scale=3.0)
    alone = [profile_maximum(excesses=x) for x in rows]
    together = refit_rows(excesses=rows)
    np.testing.assert_allclose(together.shape, [a.shape for a in alone], atol=1e-10)
    np.testing.assert_allclose(together.scale, [a.scale for a in alone], rtol=1e-10)
    assert together.at_boundary.tolist() == [a.at_boundary for a in alone]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [6, 60, 700])
def test_a_start_makes_it_faster_and_nothing_else(shape: float, n: int) -> None:
    rows = draw(rng=np.random.default_rng(2), size=(60, n), shape=shape, scale=3.0)
    whole = refit_rows(excesses=rows)
    for start in (shape / 3.0, 0.05, -0.05, 3.0):
        climbed = refit_rows(excesses=rows, start=start)
        np.testing.assert_allclose(climbed.shape, whole.shape, atol=3e-8)
        np.testing.assert_allclose(climbed.scale, whole.scale, rtol=3e-8)
        assert climbed.at_boundary.tolist() == whole.at_boundary.tolist()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [8, 60, 700])
def test_resamples_are_fitted_as_each_alone(shape: float, n: int) -> None:
    x = np.sort(sample(shape, n, seed=5))[::-1].copy()
    whole = profile_maximum(excesses=x)
    if whole.at_boundary:
        whole = whole._replace(shape=-0.9)
    rng = np.random.default_rng(6)
    counts = rng.multinomial(n, np.full(n, 1 / n), size=40)
    counts[0], counts[1] = 1, 0  # the sample itself, and a resample without any excess
    found = refit_counts(
        sample=prepare(excesses=x, shape=whole.shape, scale=whole.scale), counts=counts
    )
    alone = [profile_maximum(excesses=np.repeat(x, c)) for c in np.delete(counts, 1, axis=0)]
    assert np.isnan(found.shape[1])
    np.testing.assert_allclose(np.delete(found.shape, 1), [a.shape for a in alone], atol=2e-8)
    np.testing.assert_allclose(np.delete(found.scale, 1), [a.scale for a in alone], rtol=2e-8)
    assert np.delete(found.at_boundary, 1).tolist() == [a.at_boundary for a in alone]


def test_long_samples_are_read_in_blocks_with_the_same_answer() -> None:
    x = sample(0.1, 30_000)  # several blocks
    found, (shape, scale) = profile_maximum(excesses=x), (0.1, 1.0)
    best = min(
        (slow.negative_log_likelihood(x, s, c) for s in (0.08, 0.1, 0.12) for c in (0.98, 1.0)),
    )
    assert -found.log_likelihood <= best
    assert (found.shape, found.scale) == pytest.approx((shape, scale), abs=0.03)
    thrice = profile_maximum(excesses=np.tile(x, 3))
    assert thrice.shape == pytest.approx(found.shape, rel=1e-10)


@pytest.mark.parametrize("shape", [-0.5, -1e-12, 0.0, 1e-17, 1e-9, 0.7])
def test_the_distribution_and_its_inverse(shape: float) -> None:
    e = np.array([0.0, 1e-12, 0.3, 2.0, 9.0])
    x = from_exponential(exponentials=e, shape=shape, scale=2.0)
    back = to_exponential(excesses=x, shape=shape, scale=2.0)
    np.testing.assert_allclose(back, e, rtol=1e-12)
    if abs(shape) < 1e-8:
        np.testing.assert_allclose(x, 2.0 * e, rtol=1e-7)


def test_beyond_the_end_point_the_survival_is_zero() -> None:
    e = to_exponential(excesses=np.array([1.9, 2.0, 3.0]), shape=-0.5, scale=1.0)
    assert np.isfinite(e[0]) and np.isposinf(e[1:]).all()


def test_ordered_draws_are_ordered_and_of_the_right_law() -> None:
    rows = draw_sorted(rng=np.random.default_rng(3), n_rows=4000, n=5, shape=0.2, scale=1.0)
    assert (np.diff(rows, axis=1) >= 0).all()
    u = slow.distribution(rows, 0.2, 1.0).mean(axis=0)
    # Means of uniform order statistics, with four Monte Carlo standard errors.
    np.testing.assert_allclose(u, np.arange(1, 6) / 6, atol=4 * 0.19 / np.sqrt(4000))
