"""Procedures give what the public functions give on the same sample."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pybridge as pb
from pybridge.simulate import (
    EstimateCandidates,
    SelectCandidates,
    accuracy,
    estimate_candidates,
    repeated_sampling,
    sampling_plan,
    score_quality,
    simulate_population,
)
from pybridge.simulate.auxiliaries import Auxiliary
from pybridge.simulate.outcomes import Outcome

POPULATION = simulate_population(
    [120, 90, 150, 200, 80, 130, 100, 160, 140, 110],
    groups={"g": list("aabbccddee")},
    outcome=Outcome("continuous", mean=3.0, domain_sd=0.6),
    auxiliaries=[Auxiliary("f", 0.6, 0.8)],
    seed=6,
)
PLAN = sampling_plan("stratified", strata="domain", fraction=0.15)
FORMULA = dict(area_formula="~ f", method="bayes")


def mean_of(sample: Any, population: Any) -> np.ndarray:
    """A function of a user's: the weighted mean of every domain."""
    total = (sample["y"] * sample["weight"]).groupby(sample["domain"]).sum()
    count = sample["weight"].groupby(sample["domain"]).sum()
    return np.asarray((total / count).reindex(population.domains))


CANDIDATES = (
    pb.candidate("HT"),
    pb.candidate("GREG", direct="greg", unit_auxiliary="f"),
    pb.candidate("PP-S", direct="greg", unit_auxiliary="f", smoothing="fay_herriot", **FORMULA),
    pb.candidate("PP-TS", direct="greg", unit_auxiliary="f", smoothing="taxonomy", **FORMULA),
    pb.candidate("mine", function=mean_of),
)


def test_estimates_without_folds_are_those_of_evaluate() -> None:
    design = PLAN.draw(POPULATION, np.random.default_rng(3))
    fits = estimate_candidates(design, POPULATION.known, CANDIDATES)
    whole = pb.evaluate(
        design.frame,
        population=POPULATION.known,
        outcome="y",
        domain="domain",
        auxiliary="f",
        weights="weight",
        strata="domain",
        fpc="stratum_size",
        candidates=CANDIDATES,
    )
    for fit in fits:
        other = whole.fit(fit.candidate.name)
        for name in ("estimate", "lower", "upper", "mse"):
            # Moments summed over folds round otherwise than those of one.
            np.testing.assert_allclose(getattr(fit, name), getattr(other, name), rtol=1e-8)
    greg = pb.generalized_regression(design, POPULATION.known, auxiliary="f")
    np.testing.assert_array_equal(fits[1].estimate, greg.estimate)
    assert np.isfinite(fits[4].estimate).all()


def test_a_candidate_without_a_fit_is_counted() -> None:
    def fails(sample: Any, population: Any) -> np.ndarray:
        raise ValueError("no")

    procedure = EstimateCandidates((CANDIDATES[0], pb.candidate("broken", function=fails)))
    runs = repeated_sampling(POPULATION, PLAN, procedure, repetitions=2)
    assert runs["converged"].tolist() == [[True, False]] * 2
    assert accuracy(runs, procedure.names).values["missing"].tolist() == [0.0, 1.0]
    labelled = np.maximum(2, np.round(0.15 * POPULATION.known.size))
    np.testing.assert_array_equal(runs["n_labelled"], [labelled] * 2)


def test_scores_are_those_of_select() -> None:
    procedure = SelectCandidates(CANDIDATES, reference="greg", folds=4)
    runs = repeated_sampling(POPULATION, PLAN, procedure, repetitions=2, seed=5)
    child = np.random.SeedSequence(5, spawn_key=(1,)).spawn(3)
    design = PLAN.draw(POPULATION, np.random.default_rng(child[0]))
    found = pb.select(
        design,
        POPULATION.known,
        CANDIDATES,
        score="all",
        reference="greg",
        folds=4,
        seed=int(child[2].generate_state(1)[0]),
    )
    for key, value in found.scores.items():
        np.testing.assert_array_equal(runs[f"score_{key}"][1], value)
    assert {"score_split", "score_split_80", "score_naive"} <= set(runs.values)
    assert runs["reference"][1] == found.reference == "GREG"
    assert runs["scored"].shape == (2, 10)
    quality = score_quality(runs, procedure.names, {"db_cv": runs["score_db_cv"]})
    assert quality.n_repetitions == 2


def test_splits_are_left_out_where_they_are_not_wanted() -> None:
    procedure = SelectCandidates(CANDIDATES[:2], splits=False)
    runs = repeated_sampling(POPULATION, PLAN, procedure, repetitions=1)
    assert "score_split" not in runs.values and "score_db_cv" in runs.values


def test_a_bad_level_is_refused() -> None:
    design = PLAN.draw(POPULATION, np.random.default_rng(3))
    with pytest.raises(pb.InputError, match="level"):
        estimate_candidates(design, POPULATION.known, CANDIDATES, level=95)
