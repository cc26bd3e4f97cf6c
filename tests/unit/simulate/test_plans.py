"""Sampling plans draw with the probabilities that their weights state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pybridge.errors import InputError
from pybridge.simulate.auxiliaries import Auxiliary
from pybridge.simulate.outcomes import Outcome
from pybridge.simulate.plans import SamplingPlan, sampling_plan
from pybridge.simulate.populations import FinitePopulation, simulate_population

DRAWS = 120


def make() -> FinitePopulation:
    made = simulate_population(
        [40, 60, 100, 200],
        outcome=Outcome("continuous", mean=5.0, domain_sd=1.0),
        auxiliaries=[Auxiliary("f", 0.5, 0.5)],
        cluster_size=8,
        seed=3,
    )
    rng = np.random.default_rng(1)
    made = made.with_column("odds", np.exp(0.7 * rng.standard_normal(made.n_units)))
    return made.with_column("stratum", rng.integers(3, size=made.n_units))


POPULATION = make()
PLANS = {
    "simple": sampling_plan("simple", fraction=0.2),
    "number": sampling_plan("simple", n=57),
    "stratified": sampling_plan("stratified", strata="stratum", fraction=0.2),
    "domains": sampling_plan("stratified", strata="domain", fraction=0.03),
    "clustered": sampling_plan("clustered", ids="cluster", fraction=0.2),
    "clusters by number": sampling_plan("clustered", ids="cluster", n=9),
    "unequal": sampling_plan("unequal", size="odds", fraction=0.2),
    "poisson": sampling_plan("poisson", size="odds", n=90),
    "odds known": sampling_plan("self_selected", size="odds", fraction=0.3),
    "many": sampling_plan("poisson", size="odds", fraction=0.8),
}


@pytest.mark.parametrize("name", PLANS)
def test_weights_are_inverse_inclusion_probabilities(name: str) -> None:
    plan, rng = PLANS[name], np.random.default_rng(11)
    counts, weights = np.zeros(POPULATION.n_units), np.full(POPULATION.n_units, np.nan)
    for _ in range(DRAWS):
        design = plan.draw(POPULATION, rng)
        rows = design.frame.index.to_numpy()
        assert len(set(rows)) == len(rows)
        np.testing.assert_array_equal(design.frame["y"], POPULATION.units["y"][rows])
        counts[rows] += 1
        weights[rows] = design.weights
    seen = np.isfinite(weights)
    chance = 1.0 / weights[seen]
    z = (counts[seen] / DRAWS - chance) / np.sqrt(chance * (1 - chance) / DRAWS + 1e-12)
    # Units of one cluster come together, so that their sum spreads by more.
    wide = 3.0 if plan.kind == "clustered" else 1.0
    assert abs(z.mean()) < 4.0 / np.sqrt(seen.sum()) * wide + 0.02
    assert z[chance < 0.999].std() == pytest.approx(1.0, abs=0.25)


def test_fixed_sizes_are_met_and_corrections_are_right() -> None:
    rng = np.random.default_rng(5)
    sizes = {PLANS["unequal"].draw(POPULATION, rng).n_units for _ in range(20)}
    assert sizes == {80}
    design = PLANS["domains"].draw(POPULATION, rng)
    # 3 % would be one or two units in the smaller domains: at least two are drawn.
    assert sorted(design.n_psu) == [2, 2, 3, 6]
    by_size = design.n_psu / np.array([40, 60, 100, 200])
    np.testing.assert_allclose(design.sampling_fraction, by_size, rtol=1e-12)
    assert PLANS["poisson"].draw(POPULATION, rng).poisson
    assert PLANS["number"].draw(POPULATION, rng).n_units == 57


def test_weights_that_ignore_the_odds_are_all_the_same() -> None:
    plan = sampling_plan("self_selected", size="odds", fraction=0.2, weights="none")
    design = plan.draw(POPULATION, np.random.default_rng(2))
    assert not design.poisson
    np.testing.assert_allclose(design.weights, POPULATION.n_units / design.n_units, rtol=1e-12)
    taken = POPULATION.units["odds"][design.frame.index]
    assert taken.mean() > 1.15 * POPULATION.units["odds"].mean()


@pytest.mark.parametrize(
    "words, code",
    [
        ({"kind": "quota", "n": 3}, "unknown_option"),
        ({"kind": "simple"}, "missing_argument"),
        ({"kind": "simple", "n": 3, "fraction": 0.1}, "missing_argument"),
        ({"kind": "simple", "fraction": 1.5}, "bad_share"),
        ({"kind": "simple", "n": 0}, "bad_count"),
        ({"kind": "stratified", "fraction": 0.1}, "wrong_arguments"),
        ({"kind": "stratified", "n": 10, "strata": "stratum"}, "conflicting_arguments"),
        ({"kind": "simple", "n": 10, "size": "odds"}, "wrong_arguments"),
        ({"kind": "poisson", "n": 10}, "wrong_arguments"),
        ({"kind": "poisson", "n": 10, "size": "odds", "weights": "none"}, "conflicting_arguments"),
    ],
)
def test_a_plan_that_says_too_little_or_too_much(words: dict[str, Any], code: str) -> None:
    with pytest.raises(InputError) as raised:
        sampling_plan(**words)
    assert raised.value.code == code


@pytest.mark.parametrize(
    "plan, code",
    [
        (sampling_plan("poisson", size="f", n=20), "bad_size"),
        (sampling_plan("stratified", strata="region", fraction=0.1), "missing_column"),
        (
            sampling_plan("clustered", ids="cluster", strata="stratum", fraction=0.1),
            "clusters_cross_strata",
        ),
    ],
)
def test_a_plan_that_does_not_fit_the_population(plan: SamplingPlan, code: str) -> None:
    with pytest.raises(InputError) as raised:
        plan.draw(POPULATION, np.random.default_rng(1))
    assert raised.value.code == code
