"""Short version of the study of designs: the reported error is the true one in every one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.selection import reference
from pybridge.selection.options import SelectionOptions
from pybridge.selection.select import run_selection
from pybridge.simulate import SelectCandidates, repeated_sampling

STUDIES = Path(__file__).resolve().parents[2] / "validation" / "studies"
REPETITIONS = 60
NAMES = ("HT", "GREG")


@pytest.fixture(scope="module")
def settings() -> Any:
    sys.path.insert(0, str(STUDIES))
    try:
        import design_check

        return design_check.settings(1)
    finally:
        sys.path.remove(str(STUDIES))


class Corrected:
    """Size-corrected DB-CV and squared errors of HT and GREG on its domains."""

    def __init__(self, procedure: SelectCandidates) -> None:
        self.procedure = procedure

    def __call__(self, draw: Any) -> dict[str, Any]:
        run = run_selection(
            draw.design,
            draw.known,
            self.procedure.candidates[:2],
            SelectionOptions(size_corrected=True, seed=draw.seed),
            outcome=draw.outcome,
            domain=draw.domain,
            folds=self.procedure.split(draw),
            level=0.95,
        )
        used = np.isfinite(run.selection.domain_scores["db_cv"]).all(axis=0)
        square = np.stack([(fit.estimate - draw.population.truth) ** 2 for fit in run.fits])
        return {
            "score": run.selection.scores["db_cv"],
            "error": square[:, used].mean(axis=1),
        }


def ratios(made: Any) -> tuple[np.ndarray, np.ndarray]:
    """Mean score over true MSE of every candidate, and its Monte Carlo error."""
    population, plan, procedure = made
    runs = repeated_sampling(
        population,
        plan,
        Corrected(procedure),
        repetitions=REPETITIONS,
        seed=1,
        progress=False,
    )
    bottom = runs["error"].mean(axis=0)
    value = runs["score"].mean(axis=0) / bottom
    each = (runs["score"] - value * runs["error"]) / bottom
    return value, each.std(axis=0, ddof=1) / np.sqrt(REPETITIONS)


@pytest.mark.parametrize(
    "name",
    [
        "simple random",
        "strata across domains",
        "clusters",
        "unequal probabilities",
        "unequal folds",
        "2 to 500 labels a domain",
        "binary, mean 0.04",
        "binary, mean 0.96",
        "useless f",
        "nearly perfect f",
    ],
)
def test_the_reported_error_is_the_true_one(settings: Any, name: str) -> None:
    value, error = ratios(settings[name])
    assert error.max() < 0.12, (value, error)
    assert np.all(value + 2 * error > 0.9) and np.all(value - 2 * error < 1.1), (value, error)


def test_the_study_runs_and_writes_its_tables(tmp_path: Path) -> None:
    script = str(STUDIES / "selection_designs.py")
    words = [sys.executable, "-W", "error", script, "--quick", "--out", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "selection_designs.md").read_text(encoding="utf-8")
    assert done.stdout == page and page.startswith("# Every score") and "nan" not in page
    table = pd.read_csv(tmp_path / "selection_designs_ratios.csv")
    assert table["setting"].nunique() == 14 and len(table) == 56
    assert {"linearised", "sure", "jackknife HT"} <= set(table.columns)
    assert len(pd.read_csv(tmp_path / "selection_designs_sets.csv")) == 7 * 14


def scores_of_pairs(size_corrected: bool) -> tuple[float, float]:
    """DB-CV of HT over its true variance, 400 strata of two labels each; Monte Carlo error."""
    rng = np.random.default_rng(4)
    names = np.repeat([f"d{i:03d}" for i in range(400)], 2)
    totals = pd.DataFrame({"d": np.unique(names), "N": 1e6})
    known = pb.population(totals, domain="d", size="N")
    found = []
    for seed in range(12):
        units = pd.DataFrame({"y": rng.normal(size=800), "d": names, "w": 5e5})
        design = pb.survey_design(units, weights="w", strata="d")
        words = dict(outcome="y", reference="ht", seed=seed, size_corrected=size_corrected)
        score = pb.select(design, known, [pb.candidate("HT")], **words).scores["db_cv"][0]
        found.append(score / 0.5)  # Var(HT) = 1/2
    return float(np.mean(found)), float(np.std(found, ddof=1) / np.sqrt(12))


def test_two_labels_in_five_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two folds of five hold a label of the stratum: HT without one of them has twice the variance,
    # without the others the same, on average 1.4 times.
    for corrected, expected in ((False, 1.4), (True, 1.0)):
        mean, error = scores_of_pairs(corrected)
        assert error < 0.05 and abs(mean - expected) < 3 * error
    # Deleting all five as if each held a label would say 2.6.
    monkeypatch.setattr(
        reference,
        "jackknife_form",
        lambda replicates: replicates.sample.whole.form_with_replacement[0],
    )
    mean, error = scores_of_pairs(False)
    assert abs(mean - 2.6) < 3 * error
