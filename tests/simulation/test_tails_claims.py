"""Short versions of the studies of tails: sizes, coverage, error rates of the whole protocol."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

STUDIES = Path(__file__).resolve().parents[2] / "validation" / "studies"


def study(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, STUDIES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def error(share: float, n: int) -> float:
    return float(np.sqrt(share * (1 - share) / n))


@pytest.mark.parametrize("shape", [-0.2, 0.0, 0.2, 0.5])
@pytest.mark.parametrize("n", [50, 200, 1570])
def test_the_size_of_the_tests_of_fit_is_five_percent(shape: float, n: int) -> None:
    replicates = 3000 if n < 1000 else 1000
    sizes = study("tails_goodness").table_sizes(shape=shape, n=n, replicates=replicates, seed=3)
    for size in sizes:
        # 0.003 for the interpolation of the table, and for its own simulation.
        assert size == pytest.approx(0.05, abs=3.5 * error(0.05, replicates) + 0.003)


def test_small_samples_are_not_held_against_the_law_of_their_estimated_shape() -> None:
    # That law, not given the estimate, rejects 0.042 with 50 exceedances.
    table_sizes = study("tails_goodness").table_sizes
    sizes = [table_sizes(shape=s, n=50, replicates=10_000, seed=8) for s in (-0.2, 0.0, 0.2, 0.5)]
    assert np.mean(sizes) == pytest.approx(0.05, abs=0.002 + 3 * error(0.05, 40_000))


@pytest.mark.parametrize("shape", [-0.2, 0.5])
def test_the_size_by_bootstrap_is_five_percent_too(shape: float) -> None:
    size = study("tails_goodness").bootstrap_size(
        shape=shape, n=100, replicates=400, inner=199, seed=4
    )
    assert size == pytest.approx(0.05, abs=3.5 * error(0.05, 400))


@pytest.mark.parametrize(("shape", "n"), [(-0.2, 100), (0.2, 100), (0.0, 400)])
def test_profile_intervals_cover(shape: float, n: int) -> None:
    found = study("tails_coverage").coverage(shape=shape, n=n, replicates=400, seed=5)
    assert found["profile"] == pytest.approx(0.95, abs=0.02 + 3 * error(0.95, 400))


def test_without_a_difference_the_protocol_passes_nothing_and_naive_practice_does() -> None:
    found = study("tails_error_rates").rates(difference=0.0, pairs=25, replicates=199, seed=6)
    # With a true rate of 1 % two or more of 25 have probability 0.03.
    assert found["protocol"] <= 1 / 25
    assert found["naive"] > found["protocol"]


def test_a_true_difference_passes_most_of_the_time() -> None:
    found = study("tails_error_rates").rates(difference=0.25, pairs=25, replicates=199, seed=7)
    # What G1 to G5 admit passes P1 and P2 in at least 80 % of cases; 25 pairs allow for 0.2.
    assert found["admitted"] > 0.5
    assert found["passed_of_admitted"] >= 0.8 - 2.5 * error(0.8, 25)
