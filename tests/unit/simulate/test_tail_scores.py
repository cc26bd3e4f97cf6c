"""Simulated tail scores have the distribution, the pairing and the equal means they promise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from pybridge.errors import InputError
from pybridge.simulate.tail_scores import (
    TailModel,
    equal_tail_means,
    perturbed_model,
    simulate_tail_scores,
)
from pybridge.tails.generalized_pareto import generalized_pareto


def mean(model: TailModel, start: float = 0.0) -> float:
    """E[X | p > start] by integration over the exponential scale."""
    low = -np.log1p(-start)
    value = quad(lambda e: model.quantile(np.array(e)) * np.exp(-e), low, 60, limit=200)[0]
    return value / (1 - start)


@pytest.mark.parametrize("shape", [-0.3, 0.0, 0.25, 0.4])
def test_means_and_tail_means_can_be_made_equal(shape: float) -> None:
    light = TailModel()
    other = TailModel(shape=shape, tail_scale=equal_tail_means(shape, other_shape=0.0))
    assert mean(other) == pytest.approx(mean(light), rel=1e-6)
    assert mean(other, 0.9) == pytest.approx(mean(light, 0.9), rel=1e-6)
    assert mean(light, 0.9) == pytest.approx(np.log(10) + 1, rel=1e-6)


def test_the_tail_is_generalised_pareto_from_its_start() -> None:
    model = TailModel(shape=0.2, tail_scale=0.7, tail_from=0.8)
    e = -np.log1p(-np.array([0.8, 0.9, 0.99]))
    excess = model.quantile(e) - model.quantile(e[0])
    survival = (1 + 0.2 * excess / 0.7) ** (-1 / 0.2)
    np.testing.assert_allclose(survival, np.array([0.2, 0.1, 0.01]) / 0.2)


def test_a_dent_leaves_the_tail_above_it() -> None:
    plain = TailModel(shape=0.1, tail_from=0.97)
    dented = TailModel(shape=0.1, tail_from=0.97, dents=((0.96, 0.97, 2.0),))
    e = -np.log1p(-np.array([0.5, 0.96, 0.97, 0.99, 0.999]))
    moved = dented.quantile(e) - plain.quantile(e)
    np.testing.assert_allclose(moved[:2], 0.0, atol=1e-12)
    np.testing.assert_allclose(moved[2:], np.log(0.04 / 0.03))


def test_scores_are_paired_by_item_and_grow_by_adding_items() -> None:
    models = {"a": TailModel(), "b": TailModel()}
    table = simulate_tail_scores(models, n_items=4000, correlation=0.9, seed=3)
    wide = table.pivot(index="item", columns="model", values="score")
    assert np.corrcoef(wide["a"], wide["b"])[0, 1] > 0.6
    loose = simulate_tail_scores(models, n_items=4000, correlation=0.0, seed=3)
    wide = loose.pivot(index="item", columns="model", values="score")
    assert abs(np.corrcoef(wide["a"], wide["b"])[0, 1]) < 0.06
    fewer = simulate_tail_scores(models, n_items=10, correlation=0.9, seed=3)
    first = table[table["item"] < 10].reset_index(drop=True)
    assert first.equals(fewer)
    assert "scorer" in simulate_tail_scores(models, n_items=5, scorer="x")


def test_the_margins_are_right() -> None:
    x = simulate_tail_scores({"a": TailModel(shape=0.3)}, n_items=60_000)["score"].to_numpy()
    assert x[x < 2].mean() == pytest.approx((1 - 3 * np.exp(-2)) / (1 - np.exp(-2)), abs=0.02)
    fit = generalized_pareto(x, quantile=0.9, engine="native")
    assert fit.shape == pytest.approx(0.3, abs=4 * fit.shape_standard_error)


def test_noise_levels_leave_the_distribution_alone() -> None:
    table = perturbed_model([0.1, 1.0], n_items=20_000)
    wide = table.pivot(index="item", columns="model", values="score")
    assert list(wide) == ["noise 0.1", "noise 1"]
    for name in wide:
        assert wide[name].mean() == pytest.approx(1.0, abs=0.03)


def test_a_sigmoid_model_stays_in_its_bounds() -> None:
    model = TailModel(location=-2.0, spread=2.0, sigmoid=True)
    x = simulate_tail_scores({"a": model}, n_items=2000)["score"]
    assert x.between(0, 1).all() and (x > 0.95).mean() > 0.05


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: TailModel(tail_scale=0.0), "bad_scale"),
        (lambda: TailModel(tail_from=1.0), "bad_quantile"),
        (lambda: simulate_tail_scores({"a": TailModel()}, n_items=0), "bad_count"),
        (
            lambda: simulate_tail_scores({"a": TailModel()}, n_items=5, correlation=1.0),
            "bad_correlation",
        ),
        (lambda: perturbed_model([0.0], n_items=5), "bad_level"),
    ],
)
def test_bad_requests_are_refused(call, code: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.code == code
