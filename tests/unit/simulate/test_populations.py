"""Simulated populations have the sizes, the truth and the correlations that were asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.errors import InputError
from pybridge.simulate.auxiliaries import Auxiliary
from pybridge.simulate.experiments import deployed_service, verifiable_benchmark
from pybridge.simulate.outcomes import Outcome
from pybridge.simulate.populations import finite_population, simulate_population


def test_the_verifiable_benchmark_is_as_the_paper_says() -> None:
    made = verifiable_benchmark()
    assert made.known.n_domains == 34
    assert len(set(made.known.groups["benchmark"])) == 5
    found = made.correlations().set_index("auxiliary")
    wanted = {"specialist": 0.31, "small": 0.33, "difficulty": 0.61}
    for name, value in wanted.items():
        assert found.loc[name, "unit_correlation"] == pytest.approx(value, abs=0.002)
    assert set(made.units["y"]) == set(made.units["small"]) == {0.0, 1.0}
    # The slope that GREG finds: about a third with the weak ones, near one with difficulty.
    assert found.loc[["specialist", "small"], "slope"].between(0.25, 0.42).all()
    assert found.loc["difficulty", "slope"] == pytest.approx(1.0, abs=0.15)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_deployed_service_is_as_the_paper_says(seed: int) -> None:
    made = deployed_service(seed=seed)
    assert made.n_units == 68_371 and made.known.n_domains == 63
    assert len(set(made.known.groups["system"])) == 21
    found = made.correlations().set_index("auxiliary")
    assert found.loc["judge", "unit_correlation"] == pytest.approx(0.40, abs=1e-9)
    assert found.loc["judge", "domain_correlation"] == pytest.approx(0.93, abs=1e-9)
    assert made.units["y"].between(0, 100).all()
    assert made.known.size.min() >= 100


def test_the_truth_is_the_mean_of_every_domain() -> None:
    made = verifiable_benchmark(seed=3)
    means = made.units.groupby("domain")["y"].mean()
    np.testing.assert_allclose(made.truth, means[list(made.known.domains)], rtol=1e-12)
    again = verifiable_benchmark(seed=3)
    pd.testing.assert_frame_equal(made.units, again.units)
    assert not made.units.equals(verifiable_benchmark(seed=4).units)


@pytest.mark.parametrize("kind", ["binary", "share", "continuous"])
@pytest.mark.parametrize("unit, domain", [(0.0, 0.5), (0.5, -0.2), (-0.4, -0.8), (0.7, 0.9)])
def test_both_correlations_are_met(kind: str, unit: float, domain: float) -> None:
    made = simulate_population(
        [300] * 25,
        outcome=Outcome("binary", mean=0.5, domain_sd=0.12),
        auxiliaries=[Auxiliary("f", unit, domain, kind, mean=0.5, between=0.08)],
        seed=5,
    )
    found = made.correlations().iloc[0]
    assert found["unit_correlation"] == pytest.approx(unit, abs=0.003)
    assert found["domain_correlation"] == pytest.approx(domain, abs=0.01)


def test_a_further_auxiliary_leaves_the_others_as_they_are() -> None:
    words: dict[str, Any] = {"outcome": Outcome("continuous", domain_sd=0.3), "seed": 2}
    f, g = Auxiliary("f", 0.5, 0.5), Auxiliary("g", 0.2, 0.3)
    one = simulate_population([50] * 6, auxiliaries=[f], **words).units
    both = simulate_population([50] * 6, auxiliaries=[g, f], **words).units
    pd.testing.assert_frame_equal(one[["y", "f"]], both[["y", "f"]])


def test_levels_and_clusters_share_what_they_should() -> None:
    outcome = Outcome(
        "continuous", mean=2.0, domain_sd=0.0, level_sd={"group": 0.7}, cluster_share=0.3
    )
    made = simulate_population(
        [4000] * 6, groups={"group": list("aabbcc")}, outcome=outcome, cluster_size=20, seed=7
    )
    by_group = made.units.groupby("group")["y"].mean()
    assert by_group.std(ddof=0) == pytest.approx(0.7, rel=1e-3)
    assert made.taxonomy == ("group",)
    within = made.units["y"] - made.units.groupby("domain")["y"].transform("mean")
    cluster = within.groupby(made.units["cluster"])
    n, square = cluster.size(), cluster.sum() ** 2
    # E[(Σ e)²] of a cluster of n units is n σ² (1 + (n − 1) ρ).
    share = (square.sum() / within.var() - n.sum()) / (n * (n - 1)).sum()
    assert share == pytest.approx(0.3, abs=0.03)


def test_a_complete_table_is_a_population_too() -> None:
    table = pd.DataFrame(
        {"d": list("bbaa"), "g": list("yyxx"), "y": [1.0, 3, 5, 9], "f": [1, 2, 3, 4]}
    )
    made = finite_population(table, outcome="y", domain="d", auxiliary="f", taxonomy="g")
    assert made.known.domains.tolist() == ["a", "b"] and made.truth.tolist() == [7.0, 2.0]
    assert made.with_column("odds", 2.0).units["odds"].tolist() == [2.0] * 4
    assert "odds" not in made.units
    for name in ("y", "d", "f", "g"):
        with pytest.raises(InputError, match="finite_population"):
            made.with_column(name, 1.0)
    assert "correlation" in made.summary() and repr(made).startswith("FinitePopulation")


def test_the_names_are_public() -> None:
    assert pb.simulate.deployed_service is deployed_service
    for name in dir(pb.simulate):
        assert getattr(pb.simulate, name) is not None
    with pytest.raises(AttributeError, match="verifiable_benchmark"):
        pb.simulate.benchmark


@pytest.mark.parametrize(
    "make, code",
    [
        (lambda: Outcome("poisson"), "unknown_option"),
        (lambda: Outcome("binary", mean=1.2), "bad_mean"),
        (lambda: Outcome(domain_sd=-1.0), "bad_scale"),
        (lambda: Outcome("score", mean=0.9, unit_sd=0.5), "bad_scale"),
        (lambda: Outcome(cluster_share=1.0), "bad_share"),
        (lambda: Auxiliary("f", 1.4, 0.0), "bad_correlation"),
        (lambda: Auxiliary("f", 0.4, 0.0, between=0.0), "bad_scale"),
        (lambda: Auxiliary("f", 0.4, 0.0, "share", mean=0.5, sd=0.7), "bad_scale"),
        (lambda: simulate_population([]), "duplicate_domain"),
        (lambda: simulate_population([3, 4], labels=["a", "a"]), "duplicate_domain"),
        (lambda: simulate_population([3, 4], labels=["a"]), "wrong_length"),
        (lambda: simulate_population([3, 4], groups={"g": ["a"]}), "wrong_length"),
        (lambda: simulate_population([3, 0]), "bad_count"),
        (lambda: deployed_service(n_units=10), "bad_count"),
        (
            lambda: simulate_population([9] * 4, auxiliaries=[Auxiliary("f", 0.99, -0.9)]),
            "unreachable_correlation",
        ),
        (
            lambda: simulate_population(
                [90] * 4, auxiliaries=[Auxiliary("f", 0.99, 0.0, "binary")]
            ),
            "unreachable_correlation",
        ),
    ],
)
def test_what_cannot_be_is_refused(make: Any, code: str) -> None:
    with pytest.raises(InputError) as raised:
        make()
    assert raised.value.code == code and raised.value.field


@pytest.mark.parametrize(
    ("sizes", "words", "field"),
    [
        (None, {}, "sizes"),
        ([5, 6], {"outcome": 3}, "outcome"),
        ([5, 6], {"auxiliaries": [3]}, "auxiliaries"),
        ([5, 6], {"auxiliaries": "f"}, "auxiliaries"),
    ],
)
def test_what_is_of_another_kind(sizes: Any, words: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError) as caught:
        simulate_population(sizes, **words)
    assert (caught.value.code, caught.value.field) == ("wrong_type", field)
