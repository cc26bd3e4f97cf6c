"""The commands of tails: what they print and write, and how they refuse."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pybridge.commands import protocol, tail
from pybridge.errors import InputError
from pybridge.simulate.tail_scores import TailModel, simulate_tail_scores


def command(module, *words: str) -> int:
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    return module.run(parser.parse_args([str(word) for word in words]))


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scores") / "scores.csv"
    models = {"a": TailModel(), "b": TailModel(shape=0.2)}
    simulate_tail_scores(models, n_items=2000).to_csv(path, index=False)
    return path


def test_tail_prints_fit_test_and_levels_and_writes_tables(scores, tmp_path, capsys) -> None:
    words = ["--engine", "native", "--replicates", 99, "--scan", "--return-period", 10_000]
    assert command(tail, scores, *words, "--out", tmp_path) == 0
    printed = capsys.readouterr().out
    for expected in ("== a", "== b", "100 of 2000", "Anderson–Darling", "10000.0", "0.99"):
        assert expected in printed
    assert len(pd.read_csv(tmp_path / "fits.csv")) == 4
    assert len(pd.read_csv(tmp_path / "scan.csv")) == 18
    for name in ("fit_a", "life_a", "scan"):
        assert (tmp_path / f"{name}.png").stat().st_size > 5000


def test_tail_as_json_for_one_model(scores, capsys) -> None:
    words = ["--engine", "native", "--replicates", 99, "--json", "--model", "b"]
    assert command(tail, scores, *words, "--exceedances", 150) == 0
    answer = json.loads(capsys.readouterr().out)
    assert list(answer) == ["b"] and answer["b"]["fit"]["n_exceedances"] == 150
    assert "excesses" not in answer["b"]["fit"]


def test_tail_chooses_a_threshold_and_says_why(scores, capsys) -> None:
    words = ["--engine", "native", "--replicates", 99, "--model", "a", "--choose"]
    assert command(tail, scores, *words) == 0
    printed = capsys.readouterr().out
    assert "the lowest candidate" in printed and "after looking at the scores" in printed


def test_tail_finds_clusters_in_time_and_fits_one_score_of_each(tmp_path, capsys) -> None:
    rng = np.random.default_rng(2)
    score = np.repeat(rng.exponential(size=200), 10) + 0.01 * rng.exponential(size=2000)
    path = tmp_path / "serial.csv"
    table = pd.DataFrame({"model": "m", "item": range(2000), "score": score})
    table.sample(frac=1, random_state=1).to_csv(path, index=False)
    words = [path, "--engine", "native", "--replicates", 99]
    assert command(tail, *words) == 0
    assert "serial_dependence" not in capsys.readouterr().out  # nobody said that there is an order
    assert command(tail, *words, "--ordered") == 0
    assert "serial_dependence" in capsys.readouterr().out
    assert command(tail, *words, "--decluster", 5) == 0
    printed = capsys.readouterr().out
    assert "100 exceedances" in printed and "10 clusters (run 5): extremal index 0.1" in printed


def test_tail_without_a_usable_fit_is_status_4(tmp_path, capsys) -> None:
    path = tmp_path / "flat.csv"
    pd.DataFrame({"model": "m", "item": range(9), "score": [0.0] * 5 + [1.0] * 4}).to_csv(path)
    assert command(tail, path, "--engine", "native", "--quantile", 0.5) == 4
    assert "too_few" in capsys.readouterr().out


def test_columns_may_have_other_names(scores, tmp_path, capsys) -> None:
    path = tmp_path / "renamed.csv.gz"
    pd.read_csv(scores).rename(columns={"model": "m", "item": "i", "score": "s"}).to_csv(path)
    words = ["--model-column", "m", "--item-column", "i", "--score-column", "s"]
    assert command(tail, path, *words, "--engine", "native", "--replicates", 99) == 0
    with pytest.raises(InputError) as caught:
        command(tail, path, "--engine", "native")
    assert caught.value.code == "missing_column"


def test_plan_register_run_and_what_is_refused(scores, tmp_path, capsys) -> None:
    claim = tmp_path / "claim.toml"
    assert command(protocol, "plan", "--out", claim, "--models", "a,b") == 0
    assert "1570" in capsys.readouterr().out
    with pytest.raises(InputError) as caught:
        command(protocol, "plan", "--out", claim)
    assert caught.value.code == "file_exists"
    text = claim.read_text(encoding="utf-8").replace('engine = "evd"', 'engine = "native"')
    claim.write_text(text.replace("replicates = 2000", "replicates = 99"), encoding="utf-8")

    with pytest.raises(InputError) as caught:
        command(protocol, "run", claim, scores)
    assert caught.value.code == "not_registered"
    assert command(protocol, "register", claim) == 0
    digest = capsys.readouterr().out.split("SHA-256 ")[1].split()[0]
    assert command(protocol, "run", claim, scores, "--out", tmp_path / "out") == 0
    printed = capsys.readouterr().out
    assert digest in printed and "G3 sample size: fail" in printed and "EXPLORATORY" not in printed
    written = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert written == [
        "family.csv",
        "gates.csv",
        "scan.csv",
        "verdict.html",
        "verdict.json",
        "verdict.txt",
        "verdict_score.png",
    ]

    claim.write_text(
        claim.read_text(encoding="utf-8").replace("floor = 0.1", "floor = 0.01"), encoding="utf-8"
    )
    with pytest.raises(InputError) as caught:
        command(protocol, "run", claim, scores)
    assert caught.value.code == "protocol_differs" and caught.value.field == "P2.floor"
    assert command(protocol, "run", claim, scores, "--exploratory", "--json") == 0
    assert json.loads(capsys.readouterr().out)["run"] == "EXPLORATORY"


def test_a_demonstration_is_printed_and_written(tmp_path, capsys) -> None:
    words = ["--replicates", 99, "--out", tmp_path]
    assert command(protocol, "demo", "true_difference", *words) == 0
    printed = capsys.readouterr().out
    assert "PASS" in printed and "Truth: shapes 0 and 0.25" in printed
    assert (tmp_path / "true_difference_1" / "verdict_score.png").exists()
