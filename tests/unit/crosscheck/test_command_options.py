"""``pybridge crosscheck`` passes over no option in silence."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from pybridge.cli import main


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(5)
    units = pd.DataFrame({"town": np.repeat(list("abcdefgh"), 10)})
    units["y"], units["f"] = rng.normal(size=80), rng.normal(size=80)
    units.loc[::2, "y"] = np.nan
    area = pd.DataFrame({"town": list("abcdefgh"), "estimate": rng.normal(size=8), "f": 1.0})
    for name, table in (("units", units), ("area", area)):
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    of_units = ["crosscheck", str(tmp_path / "units.csv"), "--outcome", "y", "--auxiliary", "f"]
    return {
        "units": of_units,
        "domains": ["crosscheck", str(tmp_path / "area.csv"), "--formula", "estimate ~ f"],
    }


def refusal(capsys, *words):
    assert main([*words, "--json"]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("pybridge: error: ") and said.err.count("\n") == 1
    return json.loads(said.out), said.err


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("units", ["--variance", "smoothed"]),
        ("units", ["--variance", "variance"]),
        ("units", ["--seed", "0"]),
        ("units", ["--seed", "1"]),
        ("units", ["--levels", "region,town"]),
        ("units", ["--slope", "within", "--method", "ht"]),
        ("units", ["--slope", "pooled", "--method", "hajek"]),
        ("units", ["--slope", "0,1", "--method", "ppi"]),
        ("domains", ["--slope", "pooled"]),
        ("domains", ["--slope", "0"]),
        ("domains", ["--lonely-psu", "fail"]),
        ("domains", ["--poisson"]),
        ("domains", ["--auxiliary", "f"]),
        ("domains", ["--weights", "w"]),
    ],
)
def test_an_option_without_meaning_is_refused(files, capsys, kind, words):
    found, line = refusal(capsys, *files[kind], "--domain", "town", *words)
    assert (found["code"], found["field"]) == ("not_available", words[0])
    assert words[0] in found["message"] and words[0] in line


@pytest.mark.parametrize("kind", ["units", "domains"])
def test_a_domain_that_was_not_named(files, capsys, kind):
    found, line = refusal(capsys, *files[kind])
    assert (found["code"], found["field"]) == ("missing_column", "domain")
    assert "--domain COLUMN" in line
    found, line = refusal(capsys, *files[kind], "--domain", "city")
    assert found["field"] == "domain" and "'city'" in line and "COLUMN" not in line


def test_a_variance_that_was_not_named(files, capsys):
    found, line = refusal(capsys, *files["domains"], "--domain", "town")
    assert found["field"] == "variance" and "--variance COLUMN" in line


def test_direct_refuses_a_slope_beside_what_has_none(files, capsys):
    words = ["direct", *files["units"][1:], "--domain", "town", "--method", "ht"]
    assert main([*words, "--slope", "within"]) == 2
    assert "--slope has no meaning for --method ht" in capsys.readouterr().err
    assert main(words) == 0
