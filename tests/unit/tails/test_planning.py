"""Planning: 1,570 exceedances, the inverse, the whole rule by formula, and bad requests."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtri

from pybridge.errors import InputError
from pybridge.tails.planning import (
    detectable_difference,
    planning_table,
    required_exceedances,
    required_for_rule,
    required_scores,
    rule_power,
    simulated_power,
)
from validation.reimplementations import generalized_pareto as slow


def test_the_published_number() -> None:
    assert required_exceedances() == 1570
    assert isinstance(required_exceedances(), int)
    assert required_exceedances(0.10, shape=0.0, power=0.80, alpha=0.05) == 1570
    assert required_scores(1570) == 31_400
    assert required_scores(1570, quantile=0.99) == 157_000


@pytest.mark.parametrize("shapes", [(0.0, 0.0), (0.0, 0.25), (-0.3, 0.5)])
@pytest.mark.parametrize("power", [0.5, 0.8, 0.95])
def test_the_formula_and_its_inverse(shapes: tuple[float, float], power: float) -> None:
    words = {"shape": shapes[0], "other_shape": shapes[1], "power": power, "alpha": 0.01}
    n = required_exceedances(0.08, **words)
    assert n == slow.required_exceedances(*shapes, 0.08, power, 0.01)
    assert detectable_difference(n, **words) <= 0.08 < detectable_difference(n - 1, **words)


def test_one_planning_shape_stands_for_both() -> None:
    assert required_exceedances(shape=0.3) == required_exceedances(shape=0.3, other_shape=0.3)


@pytest.mark.parametrize(("n", "gap"), [(1570, 0.1), (1570, 0.25), (200, 0.4), (400, 0.0)])
def test_the_power_of_the_rule_is_a_normal_integral(n: int, gap: float) -> None:
    s_a, s_b = 1.0 / np.sqrt(n), (1.0 + gap) / np.sqrt(n)
    limit, spread = max(0.1, ndtri(0.975) * (s_a + s_b)), np.hypot(s_a, s_b)

    def density(d: float) -> float:
        return np.exp(-0.5 * ((d - gap) / spread) ** 2) / spread / np.sqrt(2 * np.pi)

    outside = quad(density, limit, gap + 12 * spread)[0]
    outside += quad(density, gap - 12 * spread, -limit)[0]
    assert rule_power(n, gap) == pytest.approx(outside, abs=1e-7)


def test_the_required_number_does_not_promise_the_rule() -> None:
    assert rule_power(1570, 0.10) < 0.5  # about half the time or less
    assert rule_power(10**9, 0.10) == pytest.approx(0.5, abs=1e-6)
    assert rule_power(1570, 0.25) > 0.99
    n = required_for_rule(0.15)
    assert rule_power(n, 0.15) >= 0.8 > rule_power(n - 1, 0.15)
    assert n > required_exceedances(0.15)
    with pytest.raises(InputError) as caught:
        required_for_rule(0.10)
    assert caught.value.code == "unreachable_power"


def test_the_table() -> None:
    table = planning_table(shapes=[0.0, 0.2], differences=[0.1, 0.2])
    assert table["n_exceedances"].iloc[0] == 1570 and table["n_scores"].iloc[0] == 31_400
    assert np.isnan(table["n_exceedances_rule"].iloc[0])
    assert (table["n_exceedances_rule"].iloc[[1, 3]] > 0).all() and len(table) == 4


def test_the_simulated_power_is_near_the_promised_one() -> None:
    test = simulated_power(1570, 0.10, replicates=600)
    # Planned at shape 0 for both; the other is 0.1, so that the promise is short by about 0.03.
    assert test.power == pytest.approx(0.77, abs=0.03 + 3 * test.standard_error)
    rule = simulated_power(1570, 0.10, what="rule", replicates=600)
    assert rule.power == pytest.approx(rule_power(1570, 0.10), abs=0.02 + 3 * rule.standard_error)
    size = simulated_power(1570, 0.0, replicates=600)
    assert size.power == pytest.approx(0.05, abs=3.5 * size.standard_error)


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: required_exceedances(0.0), "bad_difference"),
        (lambda: required_exceedances("a"), "not_a_number"),
        (lambda: required_exceedances(shape=-0.5), "nonregular_shape"),
        (lambda: required_exceedances(other_shape=-0.7), "nonregular_shape"),
        (lambda: required_exceedances(power=80), "bad_power"),
        (lambda: required_exceedances(power=0.02), "bad_power"),
        (lambda: required_exceedances(alpha=0.0), "bad_alpha"),
        (lambda: detectable_difference(0), "bad_count"),
        (lambda: required_scores(10, quantile=95), "bad_quantile"),
        (lambda: rule_power(100, 0.1, shape=-0.6), "nonregular_shape"),
        (lambda: simulated_power(100, 0.1, what="gate"), "unknown_option"),
    ],
)
def test_bad_requests_are_refused(call, code: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.code == code
