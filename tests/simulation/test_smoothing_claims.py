"""What smoothing must hold, on few samples; `make validate` and the study take more."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from pybridge.crosscheck.agreement import PART
from tests.simulation.test_studies import STUDIES
from validation.studies._smoothing import builders, settings
from validation.studies._smoothing_claims import Claim, claims, measured, simulate
from validation.suites import smoothing

REPETITIONS = 25
SHORT = (
    "34 in 5, inside domains",
    "wrong link",
    "34 in 5, groups alike",
    "binary, clusters",
    "skewed, clusters",
    "skewed, unequal",
)


@pytest.mark.parametrize("name", SHORT)
def test_the_claims_hold(name):
    (one,) = settings([name])
    table, found, runs = simulate(one, repetitions=REPETITIONS)
    assert runs.n_repetitions == REPETITIONS and not runs.failed
    assert {"PP-S", "PP-TS", "GREG"} <= set(table["candidate"])
    # The simulation's own error is small enough for a claim to be able to fail.
    assert all(0 < item.error < 0.06 for item in found if item.claim.startswith("coverage"))
    assert [f"{item.claim}: {item.value:.3f}" for item in found if not item.holds] == []


def test_every_setting_has_its_claims():
    kinds = {"34 in 5, inside domains": 11, "21 x 3, groups alike": 6, "skewed, Poisson": 4}
    for name, count in kinds.items():
        (one,) = settings([name])
        assert len(simulate(one, repetitions=2)[1]) == count
    assert smoothing.case_names() == [f"smoothing, {name}" for name in builders()]


def test_a_claim_that_fails_is_a_comparison_that_failed():
    short = Claim("s", "coverage of PP-S", 0.90, 0.005, 0.93, 0.97, False)
    row = smoothing._row("s", short)
    assert row.verdict == PART and row.reference == 0.93
    assert row.difference == pytest.approx(6.0)
    assert Claim("s", "c", 1.01, 0.1, 0.0, 1.0, True).nearest == 1.0
    assert short.bound == "0.93 to 0.97"
    assert Claim("s", "c", 1.01, 0.1, 1.0, np.inf, True).bound == "at least 1"


def test_intervals_that_are_too_narrow_are_found():
    """The same claims of the same samples with intervals of four fifths of the width."""
    from dataclasses import replace

    (one,) = settings(["wrong link"])
    runs = simulate(one, repetitions=REPETITIONS)[2]
    values = dict(runs.values)
    middle = (values["lower"] + values["upper"]) / 2
    for end in ("lower", "upper"):
        values[end] = middle + 0.8 * (values[end] - middle)
    narrow = replace(runs, values=values)
    found = claims(one, narrow, measured(one, narrow))
    failed = {item.claim for item in found if not item.holds}
    assert {"coverage of PP-S", "coverage of PP-TS"} <= failed


@pytest.mark.r("survey")
def test_the_study_runs_and_writes_what_it_should(tmp_path):
    command = [sys.executable, "-W", "error", str(STUDIES / "smoothing_coverage.py"), "--quick"]
    done = subprocess.run(
        [*command, "--out", str(tmp_path)], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "smoothing_coverage.md").read_text(encoding="utf-8")
    assert done.stdout == page and "nan" not in page and "### schools" in page
    for name, least in (("accuracy", 100), ("claims", 60), ("real", 12)):
        assert len(pd.read_csv(tmp_path / f"smoothing_coverage_{name}.csv")) >= least
    assert (tmp_path / "smoothing_coverage_coverage.png").stat().st_size > 8000
