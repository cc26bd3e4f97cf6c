"""The main job with R's sae: end to end, and its numbers against the native engine's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.cli import main

pytestmark = pytest.mark.r("sae")

# sae stops its scoring at a relative change of 1e-4 of the model variance; the estimates follow
# with the square root of that error at the optimum.
RTOL = 1e-4
SAE = ("FH", "FH-GREG")


def units(scale: float = 1.0, origin: float = 0.0, n: int = 600) -> pd.DataFrame:
    """All units of twelve counties; none of c11 is labelled."""
    rng = np.random.default_rng(8)
    county = rng.permutation(np.arange(n) % 12)
    f = rng.normal(size=n) + county / 6
    y = 1 + f + 0.4 * rng.normal(size=12)[county] + 0.8 * rng.normal(size=n)
    table = pd.DataFrame({"f": origin + scale * f, "y": scale * y, "h": rng.integers(2, size=n)})
    table = table.assign(county=[f"c{i:02d}" for i in county], region=[f"r{i % 3}" for i in county])
    return table.assign(y=table["y"].where((rng.random(n) < 0.3) & (county != 11)))


def evaluate(engine: str, table: pd.DataFrame, **words: Any) -> Any:
    usual: dict[str, Any] = dict(outcome="y", domain="county", auxiliary=["f"], engine=engine)
    return pb.evaluate(table, **{**usual, "taxonomy": ["region"], **words})


def agree(sae: Any, native: Any, name: str) -> None:
    mine, theirs = sae.fit(name), native.fit(name)
    assert mine.fit_status == theirs.fit_status and mine.candidate.engine == "sae"
    spread = np.sqrt(np.nanmedian(theirs.mse))
    assert np.abs(mine.estimate - theirs.estimate).max() < RTOL * spread
    assert np.abs(mine.rest - theirs.rest).max() < 10 * RTOL * spread
    np.testing.assert_allclose(mine.mse, theirs.mse, rtol=10 * RTOL)
    np.testing.assert_allclose(mine.shrinkage, theirs.shrinkage, atol=10 * RTOL)
    np.testing.assert_array_equal(mine.status, theirs.status)


def test_sae_and_the_native_engine() -> None:
    sae, native = (evaluate(engine, units()) for engine in ("sae", "native"))
    for name in SAE:
        agree(sae, native, name)
    assert sae.selection.selected == native.selection.selected
    np.testing.assert_allclose(
        sae.selection.scores["db_cv"], native.selection.scores["db_cv"], rtol=1e-2
    )
    # What R did not fit is the same to the last digit.
    for name in ("HT", "GREG", "PP-S", "PP-TS"):
        np.testing.assert_array_equal(sae.fit(name).rest, native.fit(name).rest)
    assert sae.provenance.r and set(sae.provenance.packages) == {"sae"}
    assert native.provenance.r is None and not native.provenance.packages
    assert "R sae, REML" in sae.summary()


def test_a_county_without_labels_has_saes_synthetic_estimate() -> None:
    sae = evaluate("sae", units())
    for name in SAE:
        fit = sae.fit(name)
        assert fit.status[11] == "out_of_sample" and np.isfinite(fit.estimate[11])
        assert fit.mse[11] > fit.model_variance and np.isfinite(fit.rest[:, 11]).all()


@pytest.mark.parametrize("method", ["REML", "ML", "FH"])
def test_every_method_of_sae(method: str) -> None:
    words = dict(smoothing="fay_herriot", area_formula="~ f", method=method)
    candidates = [
        pb.candidate("sae", engine="sae", **words),
        pb.candidate("native", engine="native", **words),
    ]
    found = evaluate("native", units(), candidates=candidates, taxonomy=None)
    mine, theirs = found.fits
    spread = np.sqrt(np.median(theirs.mse))
    assert np.abs(mine.estimate - theirs.estimate).max() < RTOL * spread
    np.testing.assert_allclose(*found.selection.scores["db_cv"], rtol=1e-3)


@pytest.mark.parametrize(("scale", "origin"), [(1e-9, 0.0), (1e9, 0.0), (1.0, 1e6), (1e4, 5e9)])
def test_covariates_that_sae_would_call_singular(scale: float, origin: float) -> None:
    there = evaluate("sae", units())
    found = evaluate("sae", units(scale, origin))
    assert not found.selection.failed
    for name in SAE:
        mine, theirs = found.fit(name).estimate / scale, there.fit(name).estimate
        assert np.abs(mine - theirs).max() < 1e-3 * np.ptp(theirs)


def test_outcomes_that_leave_sae_nothing() -> None:
    table = units()
    seen = table["y"].notna()
    constant = evaluate("sae", table.assign(y=np.where(seen, 3.0, np.nan)))
    assert constant.selection.failed["FH-GREG"].startswith("all sampling variances are 0")
    assert constant.fit("FH").fit_status != "failed"
    nothing = evaluate("sae", table.assign(y=np.where(seen, 0.0, np.nan)))
    assert {"FH", "FH-GREG", "PP-S", "TFH", "PP-TS"} == set(nothing.selection.failed)


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "units.csv.gz", tmp_path / "out"
    units().to_csv(path, index=False)
    words = ["--outcome", "y", "--domain", "county", "--auxiliary", "f", "--strata", "h"]
    options = ["--taxonomy", "region,county", "--engine", "sae", "--out", str(out)]
    assert main(["evaluate", str(path), *words, *options]) == 0
    printed, said = capsys.readouterr()
    assert "R sae, REML" in printed
    steps = said.splitlines()
    assert all(line.startswith("· ") for line in steps)
    assert "· fitting FH, FH-GREG with R's sae, all folds in one call" in steps
    estimates = pd.read_csv(out / "estimates.csv")
    expected = evaluate("sae", units(), strata="h").to_frame()
    np.testing.assert_allclose(estimates["estimate"], expected["estimate"], rtol=1e-12)
    record = json.loads((out / "provenance.json").read_text(encoding="utf-8"))
    assert record["provenance"]["packages"]["sae"] and record["provenance"]["r"]
