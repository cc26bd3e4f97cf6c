"""On the command line an error of a missing column names the option that asked for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pybridge.cli import main

GOOD = {
    "outcome": "y",
    "auxiliary": "f",
    "domain": "town",
    "taxonomy": "region",
    "weights": "w",
    "strata": "region",
    "ids": "school",
    "fpc": "fpc",
}


@pytest.fixture
def units(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    towns = np.repeat(list("abcdefgh"), 10)
    table = pd.DataFrame({"town": towns, "region": np.repeat(["e", "w"], 40), "w": 2.0})
    table["y"], table["f"] = rng.normal(size=80), rng.normal(size=80)
    table["school"], table["fpc"] = np.arange(80), 160
    table.loc[::2, "y"] = np.nan
    path = tmp_path / "units.csv"
    table.to_csv(path, index=False)
    return path


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main([*words, "--json"]) == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    return dict(json.loads(said.out))


@pytest.mark.parametrize("field", list(GOOD))
@pytest.mark.parametrize("command", ["evaluate", "select", "direct", "crosscheck"])
def test_each_option(
    units: Path, capsys: pytest.CaptureFixture[str], command: str, field: str
) -> None:
    missing = f"{GOOD[field]}_1"
    words = [f"--{name}={missing if name == field else value}" for name, value in GOOD.items()]
    asked = [command, str(units), *words]
    if command == "direct":  # prints its table, and has no --json
        assert main(asked) == 2
        error = capsys.readouterr().err
        assert f"no column {missing!r}; field: {field};" in error and error.count("\n") == 1
        return
    found = refusal(capsys, *asked)
    assert (found["code"], found["field"]) == ("missing_column", field)
    assert missing in found["message"]


def test_columns_of_a_set(units: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--outcome", "y", "--domain", "town", "--auxiliary-set", "mine=f,nothing"]
    assert refusal(capsys, "evaluate", str(units), *words)["field"] == "auxiliary"


@pytest.mark.parametrize("field", ["domain", "auxiliary"])
def test_in_the_file_of_the_population(
    units: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], field: str
) -> None:
    totals = pd.DataFrame({"town": list("abcdefgh"), "size": 20, "f": 0.1})
    path = tmp_path / "totals.csv"
    totals.drop(columns=GOOD[field]).to_csv(path, index=False)
    words = ["--outcome", "y", "--domain", "town", "--auxiliary", "f", "--population", str(path)]
    assert refusal(capsys, "evaluate", str(units), *words)["field"] == field


def test_one_column_for_two_uses(units: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--outcome", "y", "--domain", "town", "--auxiliary", "town"]
    found = refusal(capsys, "evaluate", str(units), *words)
    assert (found["code"], found["field"]) == ("conflicting_arguments", "domain")
