"""`pybridge smooth`: the taxonomy, covariates from a file, diagnostics, predictions, figures."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.cli import main


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(5)
    d = rng.uniform(0.3, 2.0, 20)
    x = rng.normal(size=20)
    table = pd.DataFrame(
        {
            "domain": [f"{i:03d}" for i in range(20)],
            "region": [f"r{i % 4}" for i in range(20)],
            "estimate": 3 + x + rng.normal(size=20) * np.sqrt(0.5 + d),
            "variance": d,
            "x": x,
        }
    )
    table.loc[4, ["estimate", "variance"]] = np.nan
    table.to_csv(tmp_path / "area.csv", index=False)
    table[["domain", "x"]].to_csv(tmp_path / "x.csv", index=False)
    table.drop(columns="x").to_csv(tmp_path / "bare.csv", index=False)
    return tmp_path, table


def smooth(files, *words, table="area.csv"):
    command = ["smooth", str(files[0] / table), "--formula", "estimate ~ x", *words]
    return main([*command])


def test_the_taxonomy_model(files, capsys):
    assert smooth(files, "--levels", "region,domain") == 0
    said = capsys.readouterr()
    found = pd.read_csv(io.StringIO(said.out), dtype={"domain": str})
    fit = pb.taxonomy_model("estimate ~ x", files[1], levels=["region", "domain"])
    np.testing.assert_allclose(found["estimate"], fit.to_frame()["estimate"], rtol=1e-12)
    assert list(found["domain"]) == list(files[1]["domain"])
    assert "prior of the variances: region inverse-gamma(1, " in said.err


def test_covariates_from_a_file(files, capsys):
    assert smooth(files, "--engine", "native") == 0
    whole = capsys.readouterr().out
    more = ("--covariates", str(files[0] / "x.csv"))
    assert smooth(files, "--engine", "native", *more, table="bare.csv") == 0
    assert capsys.readouterr().out == whole
    (files[0] / "x.csv").write_text("domain,x\n000,1\n777,2\n")
    assert smooth(files, "--engine", "native", *more, table="bare.csv") == 2
    said = capsys.readouterr().err
    assert "only with estimates: 001" in said and "only with covariates: 777" in said


def test_checks_and_a_figure(files, capsys):
    picture = files[0] / "fit.png"
    words = ("--diagnostics", "--leave-domain-out", "--figure", str(picture), "--engine", "native")
    assert smooth(files, *words, "--out", str(files[0] / "out.csv")) == 0
    said = capsys.readouterr().out
    assert "Brown's goodness-of-fit test" in said and "predicted as if it had no labels" in said
    assert picture.stat().st_size > 8000 and f"figure: {picture}" in said
    found = pd.read_csv(files[0] / "out.csv", dtype={"domain": str})
    fit = pb.fay_herriot("estimate ~ x", files[1], engine="native")
    rows = fit.leave_domain_out().to_frame()
    kept = found.dropna(subset=["left_out_prediction"])
    np.testing.assert_allclose(kept["left_out_prediction"], rows["prediction"], rtol=1e-12)
    assert kept["left_out_covered"].astype(bool).tolist() == rows["covered"].tolist()
    assert np.isnan(found.loc[4, "standardised_residual"])


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("--figure", "no/such/folder/a.png"), "--figure"),
        (("--figure", "a.nothing"), "--figure"),
        (("--figure", "a.png", "--figure-kind", "map"), "kind"),
        (("--levels", "region,domain", "--replicates", "5"), "--replicates"),
        (("--levels", "region,domain", "--transformation", "log"), "--transformation"),
        (("--levels", "regoin,domain"), "levels"),
    ],
)
def test_bad_words(files, capsys, words, field):
    engine = () if "--levels" in words else ("--engine", "native")
    assert smooth(files, *words, *engine) == 2
    said = capsys.readouterr().err
    assert f"field: {field}" in said and len(said.strip().splitlines()) == 1
