"""``pybridge crosscheck`` on a table of units: direct estimates natively and by R's survey."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from pybridge.cli import main
from validation.cases.survey import load

pytestmark = pytest.mark.r("survey")


@pytest.fixture
def words(tmp_path):
    case = load("stratified_size")
    case.units.to_csv(tmp_path / "units.csv", index=False)
    totals = case.totals.rename(columns={"domain": case.columns["domain"]})
    totals.to_csv(tmp_path / "totals.csv", index=False)
    found = ["crosscheck", str(tmp_path / "units.csv"), "--outcome", "y", "--domain", "quarter"]
    found += ["--weights", "w", "--strata", "type", "--fpc", "fpc"]
    return [*found, "--population", str(tmp_path / "totals.csv")]


@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("greg", ["--auxiliary", "f,g", "--slope", "within"]),
        ("ppi", ["--auxiliary", "f"]),
        ("ht", []),
        ("hajek", []),
    ],
)
def test_direct_estimates_of_a_file_are_compared(words, tmp_path, capsys, method, more):
    out = tmp_path / "rows.csv"
    asked = [*words, *more, "--method", method, "--json", "--out", str(out)]
    assert main(asked) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["agrees"] is True and not found["unavailable"]
    assert {row["producer"] for row in found["answers"]} == {"native", "survey"}
    rows = pd.read_csv(out)
    assert set(rows["quantity"]) >= {"estimate", "standard errors", "covariance"}
    assert main([*words, *more, "--method", method]) == 0
    assert "agree" in capsys.readouterr().out


def test_greg_is_what_is_taken_where_nothing_is_said(words, capsys):
    assert main([*words, "--auxiliary", "f"]) == 0
    assert "generalised regression estimates" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "word"),
    [
        (["--formula", "y ~ f"], "not allowed with"),
        (["--levels", "a,b"], "--levels"),
        (["--method", "REML"], "REML"),
        (["--weights", "nothing"], "nothing"),
    ],
)
def test_what_does_not_go_together_exits_2(words, capsys, more, word):
    try:
        status = main([*words, "--auxiliary", "f", *more])
    except SystemExit as stop:
        status = stop.code
    error = capsys.readouterr().err
    assert status == 2 and word in error and "Traceback" not in error


def test_units_options_beside_a_table_of_domains_exit_2(words, tmp_path, capsys):
    table = ["crosscheck", str(tmp_path / "totals.csv"), "--formula", "estimate ~ f"]
    assert main([*table, "--strata", "type"]) == 2
    assert "--strata" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(table[:2])
    assert "--formula" in capsys.readouterr().err
