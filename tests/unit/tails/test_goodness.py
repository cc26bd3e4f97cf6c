"""Goodness of fit: the statistics' definitions, two ways to their p-values, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from pybridge.errors import InputError
from pybridge.tails._distribution import draw, to_exponential
from pybridge.tails._goodness import bootstrap_statistics, statistics
from pybridge.tails.generalized_pareto import generalized_pareto
from pybridge.tails.goodness import goodness_of_fit, table_p_value
from validation.reimplementations import generalized_pareto as slow


def fit(x, **words):
    return generalized_pareto(x, threshold=0.0, engine="native", **words)


def sample(shape: float, n: int, seed: int = 1) -> np.ndarray:
    return draw(rng=np.random.default_rng(seed), size=(n,), shape=shape, scale=1.0)


@pytest.mark.parametrize("shape", [-0.3, 0.0, 0.6])
def test_the_statistics_are_the_integrals_that_define_them(shape: float) -> None:
    x = sample(0.1, 37)
    found = statistics(exponentials=to_exponential(excesses=np.sort(x), shape=shape, scale=x.max()))
    assert found.anderson_darling == pytest.approx(slow.anderson_darling(x, shape, x.max()))
    assert found.cramer_von_mises == pytest.approx(slow.cramer_von_mises(x, shape, x.max()))


def test_rows_give_what_each_gives_alone() -> None:
    e = np.sort(np.random.default_rng(3).exponential(size=(4, 50)), axis=1)
    together = statistics(exponentials=e)
    for k in range(4):
        alone = statistics(exponentials=e[k])
        assert together.anderson_darling[k] == pytest.approx(alone.anderson_darling)
        assert together.cramer_von_mises[k] == pytest.approx(alone.cramer_von_mises)


@pytest.mark.parametrize("name", ["anderson_darling", "cramer_von_mises"])
@pytest.mark.parametrize(("shape", "n"), [(-0.25, 45), (0.0, 1570), (0.35, 200), (0.9, 5000)])
def test_table_and_bootstrap_agree(name: str, shape: float, n: int) -> None:
    replicates = 6000 if n < 1000 else 2000
    rng = np.random.default_rng(5)
    law, _ = bootstrap_statistics(shape=shape, n=n, replicates=replicates, rng=rng)
    values = getattr(law, name)
    for tail in (0.5, 0.1, 0.05, 0.01):
        point = float(np.quantile(values, 1 - tail))
        error = np.sqrt(tail * (1 - tail) / replicates)
        assert table_p_value(name, point, shape=shape, n=n) == pytest.approx(
            tail, abs=3.5 * error + 0.002
        )


def test_the_table_falls_all_the_way() -> None:
    values = np.linspace(0.01, 6.0, 300)
    p = [table_p_value("anderson_darling", v, shape=0.1, n=100) for v in values]
    assert (np.diff(p) < 0).all() and 0 < p[-1] < 1e-6 and p[0] > 0.98


def test_a_good_and_a_bad_sample() -> None:
    good = fit(sample(0.2, 400)).goodness_of_fit(replicates=199)
    assert good.anderson_darling_p > 0.05 and good.replicates == 199
    mixed = np.concatenate([sample(0.0, 300), 6.0 + 0.05 * sample(0.0, 100, seed=2)])
    bad = fit(mixed)
    boot, table = bad.goodness_of_fit(replicates=199), bad.goodness_of_fit(method="table")
    assert boot.anderson_darling_p == boot.cramer_von_mises_p == 1 / 200
    assert table.anderson_darling_p < 1e-3 and table.replicates == 0
    assert "Anderson–Darling" in boot.summary() and len(boot.to_frame()) == 2
    assert bad.goodness_of_fit(replicates=199, seed=1) == boot
    assert boot.anderson_darling_p_error == pytest.approx(np.sqrt(0.005 * 0.995 / 199))


def test_without_a_fit_there_is_no_p_value() -> None:
    for x in (np.linspace(0.5, 1.0, 100), np.full(20, 1.0), [1.0, 2.0]):
        found = fit(x).goodness_of_fit()
        assert np.isnan(found.anderson_darling) and np.isnan(found.anderson_darling_p)


def test_bad_input_is_refused() -> None:
    x = sample(0.2, 25)
    for call, code in (
        (lambda: goodness_of_fit(fit(x), method="table"), "outside_table"),
        (lambda: goodness_of_fit(fit(x), method="textbook"), "unknown_option"),
        (lambda: goodness_of_fit(fit(x), replicates=3), "bad_count"),
        (lambda: goodness_of_fit(fit(x, method="PWM")), "not_maximum_likelihood"),
    ):
        with pytest.raises(InputError) as caught:
            call()
        assert caught.value.code == code
