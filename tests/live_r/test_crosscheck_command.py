"""``pybridge crosscheck`` on tables of units (natively and by R's survey) and of scores."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.cli import main
from validation.cases.survey import load

pytestmark = pytest.mark.r("survey", "evd", "ismev")


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


@pytest.fixture
def scores(tmp_path):
    rng = np.random.default_rng(8)
    table = pd.DataFrame(
        {"model": np.repeat(["a", "b"], 300), "s": rng.exponential(size=600) ** 1.4}
    )
    table.to_csv(tmp_path / "scores.csv", index=False)
    return table, ["crosscheck", str(tmp_path / "scores.csv"), "--score", "s"]


@pytest.mark.parametrize(
    ("more", "begins"),
    [
        ([], {"quantile": 0.95}),
        (["--threshold", "1.5"], {"threshold": 1.5}),
        (["--exceedances", "60", "--transform", "log"], {"n_exceedances": 60, "transform": "log"}),
        (["--method", "PWM"], {"quantile": 0.95, "method": "PWM"}),
    ],
)
def test_scores_are_compared_as_their_fit_is(scores, capsys, more, begins):
    table, words = scores
    values = table.loc[table["model"] == "b", "s"]
    expected = pb.generalized_pareto(values, engine="native", **begins).crosscheck()
    nobody_else = "method" in begins
    assert main([*words, "--model", "b", "--json", *more]) == (3 if nobody_else else 0)
    found = json.loads(capsys.readouterr().out)
    numbers = {one["producer"]: one["numbers"] for one in found["answers"]}
    assert numbers == {one.producer: dict(one.numbers) for one in expected.answers}
    assert len(numbers) == (1 if nobody_else else 5)


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ([], "--model with one of a, b"),
        (["--model", "c"], "--model with one of a, b"),
        (["--model", "a", "--model-column", "m"], "'m'"),
        (["--model", "a", "--levels", "model"], "--levels has no meaning for scores"),
        (["--model", "a", "--domain", "model"], "--domain has no meaning for scores"),
        (["--model", "a", "--strata", "model"], "--strata has no meaning for scores"),
        (["--model", "a", "--threshold", "1e9"], "threshold"),
        (["--model", "a", "--score", "t"], "'t'"),
        (["--model", "a", "--score", "model"], "model"),
    ],
)
def test_scores_that_cannot_be_compared_exit_2(scores, capsys, more, word):
    assert main([*scores[1], *more]) == 2
    error = capsys.readouterr().err
    assert word in error and "Traceback" not in error


def test_options_of_scores_beside_other_tables_exit_2(words, tmp_path, capsys):
    table = ["crosscheck", str(tmp_path / "totals.csv"), "--formula", "estimate ~ f"]
    for more in (["--quantile", "0.9"], ["--model", "a"], ["--transform", "log"]):
        assert main([*table, *more]) == 2
        assert more[0] in capsys.readouterr().err
