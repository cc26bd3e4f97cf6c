"""`pybridge smooth`: the model's options, finite domains, benchmarking; no R."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.cli import main


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(9)
    frame = pd.DataFrame({"domain": [f"{i:03d}" for i in range(20)], "f": rng.normal(size=20)})
    frame["variance"] = rng.uniform(0.1, 0.4, 20)
    frame["estimate"] = 6 + frame["f"] + np.sqrt(0.5 + frame["variance"]) * rng.normal(size=20)
    frame.loc[3, ["estimate", "variance"]] = np.nan
    frame["n_labelled"], frame["size"] = 5, np.linspace(8, 27, 20).round()
    frame.loc[3, "n_labelled"] = 0
    frame["n"] = 40.0
    frame["share"], frame["share_variance"] = frame["estimate"] / 12, frame["variance"] / 144
    path = tmp_path / "area.csv"
    frame.to_csv(path, index=False)
    return frame, str(path)


def smoothed(capsys, path, *words, formula="estimate ~ f"):
    status = main(["smooth", path, "--formula", formula, "--engine", "native", *words])
    said = capsys.readouterr()
    return status, said


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["--method", "AMRL_YL"], {"method": "AMRL_YL"}),
        (
            ["--mse-type", "bootbc", "--replicates", "30", "--seed", "4"],
            {"mse_type": "bootbc", "B": 30, "seed": 4},
        ),
        (
            ["--transformation", "log", "--backtransformation", "bc_sm"],
            {"transformation": "log", "backtransformation": "bc_sm"},
        ),
        (["--method", "reblup", "--k", "1"], {"method": "reblup", "k": 1.0}),
        (
            ["--method", "reblupbc", "--mult-constant", "0.5"],
            {"method": "reblupbc", "mult_constant": 0.5},
        ),
        (["--finite-population"], {"finite_population": True}),
        (
            ["--finite-population", "size", "--element-variance", "2.5"],
            {"finite_population": "size", "element_variance": 2.5},
        ),
    ],
)
def test_options_are_those_of_the_function(capsys, table, words, options):
    frame, path = table
    status, said = smoothed(capsys, path, *words)
    assert status == 0, said.err
    found = pd.read_csv(io.StringIO(said.out), dtype={"domain": str})
    fit = pb.fay_herriot("estimate ~ f", frame, engine="native", **options)
    for name in ("estimate", "mse", "lower", "upper"):
        np.testing.assert_allclose(found[name], fit.to_frame()[name], rtol=1e-12)


def test_arcsines_take_a_column_of_sizes(capsys, table):
    _, path = table
    words = ["--variance", "share_variance", "--transformation", "arcsin"]
    status, said = smoothed(capsys, path, *words, "--eff-smpsize", "n", formula="share ~ f")
    assert status == 0 and "arcsin" in said.err
    status, said = smoothed(capsys, path, *words, formula="share ~ f")
    assert status == 2 and "field: eff_smpsize" in said.err and "Traceback" not in said.err


def test_benchmarking_adds_columns(capsys, table):
    frame, path = table
    fit = pb.fay_herriot("estimate ~ f", frame, engine="native")
    total = 1.01 * float(frame["size"] @ fit.fit.estimate)
    words = ["--benchmark", repr(total), "--benchmark-weights", "size"]
    status, said = smoothed(capsys, path, *words)
    assert status == 0 and "benchmarked by difference" in said.err
    found = pd.read_csv(io.StringIO(said.out))
    assert frame["size"] @ found["benchmarked"] == pytest.approx(total)
    assert (found["benchmarked_lower"] < found["benchmarked"]).all()
    assert (found["benchmarked_mse"] > 0).all()
    status, said = smoothed(capsys, path, *words, "--benchmark-method", "ratio", "--seed", "1")
    ratio = pd.read_csv(io.StringIO(said.out))
    assert np.ptp(ratio["benchmarked"] / ratio["estimate"]) < 1e-12


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["--benchmark", "1000"], "--benchmark-weights"),
        (["--benchmark", "5", "--benchmark-weights", "size"], "total"),
        (["--benchmark", "direct", "--benchmark-weights", "size"], "total"),
        (["--benchmark", "700", "--benchmark-weights", "nothing"], "--benchmark-weights"),
        (["--replicates", "10"], "B"),
        (["--k", "1"], "k"),
        (["--finite-population", "domain"], "finite_population"),
        (["--time", "f"], "correlation"),
        (["--proximity", "nowhere.csv"], None),
    ],
)
def test_bad_input_is_one_readable_line(capsys, table, words, field):
    _, path = table
    status, said = smoothed(capsys, path, *words)
    assert status == 2 and "Traceback" not in said.err
    assert field is None or f"field: {field}" in said.err, said.err
