"""Candidates on R's engines: the numbers of each package, all folds in one call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.cli import main

GREG: dict[str, Any] = dict(direct="greg", unit_auxiliary="f", area_formula="~ f")
FH: dict[str, Any] = dict(smoothing="fay_herriot", **GREG)
TREE: dict[str, Any] = dict(smoothing="taxonomy", **GREG)


def units() -> pd.DataFrame:
    """All units of sixteen counties in four regions; none of c07 is labelled."""
    rng = np.random.default_rng(8)
    county = np.arange(960) % 16
    f = rng.normal(size=960) + county / 8
    y = 1 + f + 0.4 * rng.normal(size=16)[county] + 0.4 * rng.normal(size=4)[county % 4]
    y = y + rng.normal(size=960)
    table = pd.DataFrame({"f": f, "y": y, "county": [f"c{i:02d}" for i in county]})
    table["region"] = [f"r{i % 4}" for i in county]
    return table.assign(y=table["y"].where((rng.random(960) < 0.3) & (county != 7)))


def evaluate(candidates: Any, **words: Any) -> Any:
    usual = dict(outcome="y", domain="county", auxiliary="f", taxonomy="region")
    return pb.evaluate(units(), candidates=candidates, **{**usual, **words})


def apart(mine: Any, theirs: Any) -> Mapping[str, float]:
    """Largest differences, in standard errors, and of the derivative."""
    spread = np.sqrt(np.median(theirs.mse))
    gaps = {
        "estimate": np.abs(mine.estimate - theirs.estimate).max() / spread,
        "rest": np.abs(mine.rest - theirs.rest).max() / spread,
        "mse": np.abs(mine.mse / theirs.mse - 1).max(),
        "derivative": np.nanmax(np.abs(mine.derivative - theirs.derivative)),
    }
    return {key: float(value) for key, value in gaps.items()}


@pytest.mark.r("emdi", "hbsae", "metafor")
def test_each_engine_against_the_native_one() -> None:
    pairs = [
        (pb.candidate("emdi", engine="emdi", **FH), pb.candidate("REML", **FH)),
        (
            pb.candidate("emdi ml", engine="emdi", method="ML", **FH),
            pb.candidate("ML", method="ML", **FH),
        ),
        (pb.candidate("hbsae", engine="hbsae", **FH), pb.candidate("bayes", method="bayes", **FH)),
        (
            pb.candidate("metafor", engine="metafor", **TREE),
            pb.candidate("tree", method="REML", **TREE),
        ),
        (
            pb.candidate("finite emdi", engine="emdi", finite_population=True, **FH),
            pb.candidate("finite", finite_population=True, **FH),
        ),
    ]
    said: list[str] = []
    found = evaluate([one for pair in pairs for one in pair], announce=said.append)
    assert not found.selection.failed
    assert "fitting emdi, finite emdi with R's emdi, all folds in one call" in said
    # hbsae integrates with a tolerance of its own; the others stop at or near one optimum.
    for mine, theirs in pairs:
        gaps = apart(found.fit(mine.name), found.fit(theirs.name))
        assert max(gaps.values()) < (1e-3 if mine.name == "hbsae" else 1e-4), (mine.name, gaps)
        scores = found.selection.scores["db_cv"]
        i = found.selection.candidates.index(mine.name)
        assert scores[i] == pytest.approx(scores[i + 1], rel=1e-3)
        linear = found.selection.scores["sure"]
        assert linear[i] == pytest.approx(linear[i + 1], rel=1e-2)
    assert set(found.provenance.packages) == {"emdi", "hbsae", "metafor"}
    frame = found.to_frame().query("domain == 'c07'")
    assert set(frame["status"]) == {"out_of_sample"} and frame["estimate"].notna().all()
    page = found.summary()
    assert "R emdi, reml, finite N" in page and "R metafor, REML" in page


@pytest.mark.r("rjags")
def test_jags_against_the_quadrature() -> None:
    prior = pb.TaxonomyPrior(shape=1.0, scale=0.005)
    draws = dict(n_adapt=300, n_burn=300, n_draws=2500)
    candidates = [
        pb.candidate("jags", engine="rjags", prior=prior, **draws, **TREE),
        pb.candidate("exact", prior=prior, **TREE),
    ]
    found = evaluate(candidates, seed=3)
    gaps = apart(*found.fits)
    # 10,000 draws of chains that mix slowly, the largest of 96 differences.
    assert gaps["estimate"] < 0.15 and gaps["rest"] < 0.3 and gaps["mse"] < 0.3
    np.testing.assert_allclose(*found.selection.scores["db_cv"], rtol=0.1)
    again = evaluate(candidates[:1], seed=3)
    np.testing.assert_array_equal(again.fits[0].rest, found.fits[0].rest)


@pytest.mark.r("emdi")
def test_the_standard_candidates_by_emdi(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    emdi, native = evaluate("standard", engine="emdi"), evaluate("standard", engine="native")
    for name in ("FH", "FH-GREG"):
        gaps = apart(emdi.fit(name), native.fit(name))
        assert emdi.fit(name).candidate.engine == "emdi" and max(gaps.values()) < 1e-3
    assert emdi.selection.selected == native.selection.selected
    path = tmp_path / "units.csv"
    units().to_csv(path, index=False)
    words = ["--outcome", "y", "--domain", "county", "--auxiliary", "f", "--engine", "emdi"]
    assert main(["evaluate", str(path), *words]) == 0
    assert "R emdi, reml" in capsys.readouterr().out


@pytest.mark.r("hbsae")
def test_what_hbsae_cannot_take_is_said() -> None:
    table = units()
    whole = table["county"].isin(["c01", "c02"])
    table = table.assign(y=table["y"].where(~whole, table["f"] + 1), known=whole)
    found = pb.evaluate(
        table,
        outcome="y",
        domain="county",
        auxiliary="f",
        strata="known",
        candidates=[
            pb.candidate("GREG", direct="greg", unit_auxiliary="f"),
            pb.candidate("hbsae", engine="hbsae", **FH),
        ],
    )
    assert found.selection.failed == {"hbsae": "hbsae cannot take sampling variances of 0"}
    assert found.fit("hbsae").code == "census_not_supported" and found.selection.selected == "GREG"
