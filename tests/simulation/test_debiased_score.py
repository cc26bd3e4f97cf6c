"""DB-CV of pb.select reports the true error of each candidate; naive cross-validation does not.

34 domains, 10 % samples with at least ten labels a domain. Claims carry Monte Carlo errors.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from tests.simulation import populations

REPETITIONS = 40
NAMES = ("HT", "GREG", "FH", "PP-S")


def candidates() -> list[Any]:
    greg = dict(direct="greg", unit_auxiliary="f")
    model = dict(smoothing="fay_herriot", area_formula="~ f")
    return [
        pb.candidate("HT"),
        pb.candidate("GREG", **greg),
        pb.candidate("FH", **model, method="REML"),
        pb.candidate("PP-S", **greg, **model, method="bayes"),
    ]


class Truth(NamedTuple):
    """A population with its domain means, and its table of totals."""

    pop: dict[str, np.ndarray]
    theta: np.ndarray
    population: Any
    names: np.ndarray


def make(n_domains: int, total: int, **options: Any) -> Truth:
    pop = populations.population(n_domains, total, seed=12, **options)
    theta, F, N = populations.truth(pop)
    names = np.array([f"d{i:02d}" for i in range(n_domains)], dtype=object)
    totals = pd.DataFrame({"d": names, "N": N, "f": F})
    known = pb.population(totals, domain="d", size="N", auxiliary_means=["f"])
    return Truth(pop, theta, known, names)


def draw(truth: Truth, fraction: Any, rng: np.random.Generator) -> Any:
    rows, w, known = populations.stratified_sample(truth.pop, fraction, rng)
    units = pd.DataFrame({"y": truth.pop["y"][rows], "f": truth.pop["f"][rows], "w": w})
    units = units.assign(
        d=truth.names[truth.pop["domain"][rows]], h=truth.pop["stratum"][rows], known=known
    )
    return pb.survey_design(units, weights="w", strata="h", fpc="known")


class Simulated(NamedTuple):
    """Per repetition and candidate, means over domains: scores; squared errors."""

    db_cv: np.ndarray
    corrected: np.ndarray
    naive: np.ndarray
    error: np.ndarray
    chosen: list[str]


def simulate(truth: Truth, fraction: Any, reference: str = "greg") -> Simulated:
    rng = np.random.default_rng(7)
    kept: dict[str, list[Any]] = {key: [] for key in Simulated._fields}
    for repetition in range(REPETITIONS):
        design = draw(truth, fraction, rng)
        found = pb.evaluate(
            design.frame,
            population=truth.population,
            outcome="y",
            domain="d",
            auxiliary=["f"],
            weights="w",
            strata="h",
            fpc="known",
            candidates=candidates(),
            reference=reference,
            seed=repetition,
        )
        scores = found.selection.scores
        estimates = np.array([found.fit(name).estimate for name in NAMES])
        kept["db_cv"].append(scores["db_cv"])
        kept["corrected"].append(scores["db_cv"] * 0.8)
        kept["naive"].append(scores["naive"])
        kept["error"].append(((estimates - truth.theta) ** 2).mean(axis=1))
        kept["chosen"].append(found.selection.selected)
    chosen = kept.pop("chosen")
    return Simulated(chosen=chosen, **{key: np.array(rows) for key, rows in kept.items()})


@pytest.fixture(scope="module")
def simulated() -> Simulated:
    # About 12,000 units, none of the domains so small that a tenth of it is below ten labels.
    truth = make(34, 12_000, spread=0.35, mean=2.0)
    assert np.bincount(truth.pop["domain"]).min() * 0.1 > 10
    return simulate(truth, 0.1)


def ratio(score: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean score over mean squared error, and the Monte Carlo error of that ratio."""
    top, bottom = score.mean(axis=0), error.mean(axis=0)
    value = top / bottom
    each = (score - value * error) / bottom
    return value, each.std(axis=0, ddof=1) / np.sqrt(len(score))


def test_the_reported_error_is_the_true_one(simulated: Simulated) -> None:
    value, error = ratio(simulated.db_cv, simulated.error)
    assert error.max() < 0.1
    assert np.all(value - 2 * error > 0.9), dict(zip(NAMES, value))
    assert np.all(value < 1.4), dict(zip(NAMES, value))


def test_corrected_for_the_smaller_training_sets(simulated: Simulated) -> None:
    value, error = ratio(simulated.corrected, simulated.error)
    assert np.all(value + 2 * error > 0.85) and np.all(value - 2 * error < 1.15)


def test_naive_cross_validation_is_several_times_too_large(simulated: Simulated) -> None:
    value, error = ratio(simulated.naive, simulated.error)
    assert np.all(value - 2 * error > 4), dict(zip(NAMES, value))


def test_the_choice_is_near_the_best(simulated: Simulated) -> None:
    mean = simulated.error.mean(axis=0)
    picked = [mean[NAMES.index(name)] for name in simulated.chosen]
    assert np.mean(picked) / mean.min() < 1.10
    # The scores' mean order is that of the true errors.
    assert np.argsort(simulated.db_cv.mean(axis=0)).tolist() == np.argsort(mean).tolist()


# --- the reference itself, folds, sampling fractions -------------------------------------------


def variance_of_ht(truth: Truth, fraction: Any) -> np.ndarray:
    """Design variance of HT under stratified sampling, from the population: strata × domains."""
    pop, N = truth.pop, truth.population.size
    inside = np.equal.outer(pop["domain"], np.arange(len(N)))
    U = np.where(inside, pop["y"][:, None], 0.0) / N
    fraction = np.broadcast_to(fraction, (pop["stratum"].max() + 1,))
    parts = np.zeros((len(fraction), len(N)))
    for h, share in enumerate(fraction):
        u = U[pop["stratum"] == h]
        n = int(round(share * len(u)))
        parts[h] = len(u) ** 2 * (1 - n / len(u)) * u.var(axis=0, ddof=1) / n
    return parts


def scores_of_ht(truth: Truth, fraction: Any, *, repetitions: int, folds: Any = None) -> np.ndarray:
    """DB-CV of HT referred to HT, over domains, in every repetition; over HT's true variance."""
    rng = np.random.default_rng(21)
    true = variance_of_ht(truth, fraction).sum(axis=0).mean()
    found = []
    for repetition in range(repetitions):
        design = draw(truth, fraction, rng)
        split = 5 if folds is None else folds(design, rng)
        chosen = pb.select(
            design,
            truth.population,
            [pb.candidate("HT")],
            outcome="y",
            domain="d",
            reference="ht",
            folds=split,
            seed=repetition,
        )
        found.append(chosen.scores["db_cv"][0] / true)
    return np.array(found)


def mean_error(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def test_for_the_reference_itself_it_is_the_variance_and_not_zero() -> None:
    truth = make(12, 4000, spread=0.3, mean=3.0)
    mean, error = mean_error(scores_of_ht(truth, 0.1, repetitions=160))
    expected = 1 + 1 / (4 * 0.9)  # four fifths of a tenth of the population
    assert error < 0.05
    assert abs(mean - expected) < 3 * error


def test_folds_balanced_in_domains_make_it_negative() -> None:
    def balanced(design: Any, rng: np.random.Generator) -> np.ndarray:
        order = rng.permutation(design.n_units)
        place = design.frame.iloc[order].groupby("d").cumcount().to_numpy()
        fold = np.empty(design.n_units, dtype=int)
        fold[order] = place % 5
        return fold

    truth = make(12, 4000, spread=0.3, mean=3.0)
    mean, error = mean_error(scores_of_ht(truth, 0.1, repetitions=40, folds=balanced))
    assert mean + 3 * error < 0


def test_strata_with_different_sampling_fractions() -> None:
    fraction = np.array([0.05, 0.2, 0.6])
    truth = make(12, 6000, spread=0.3, mean=3.0, n_strata=3)
    mean, error = mean_error(scores_of_ht(truth, fraction, repetitions=250))
    # Four fifths of a stratum: its variance is larger by the factor 1 + 1/(4 (1 − n_h/N_h)).
    parts = variance_of_ht(truth, fraction)
    expected = (parts.T @ (1 + 1 / (4 * (1 - fraction)))).mean() / parts.sum(axis=0).mean()
    assert error < 0.035
    assert abs(mean - expected) < 3 * error
    # Left out, φ would add twice what it takes from the covariance.
    without = 2 * (parts.T @ (1 / (1 - fraction))).mean() / parts.sum(axis=0).mean() - 2
    assert without > 4 * error
