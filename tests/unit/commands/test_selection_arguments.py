"""Names with commas, sets of auxiliaries and scoring options on the command line."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.cli import main
from pybridge.commands.evaluate import auxiliary_set
from pybridge.commands.shared import names


def table() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    place = np.repeat(np.arange(8), 40)
    f, g = rng.normal(size=320) + place / 4, rng.normal(size=320)
    y = 1 + f + rng.normal(size=320)
    seen = np.arange(320) % 4 == 0
    return pd.DataFrame(
        {"town, state": [f"t{i}" for i in place], "a, b": f, 'q"x': g, "z": g + f, "r": place % 2}
    ).assign(y=np.where(seen, y, np.nan))


@pytest.fixture
def units(tmp_path: Path) -> Path:
    path = tmp_path / "units.csv"
    table().to_csv(path, index=False)
    return path


WORDS = ["--outcome", "y", "--domain", "town, state", "--engine", "native"]
DIRECT = [*WORDS, "--candidates", "direct"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b", ["a", "b"]),
        (" a , b ", ["a", "b"]),
        ('"a, b"', ["a, b"]),
        ('"a, b",c', ["a, b", "c"]),
        ('c, "a, b"', ["c", "a, b"]),
        ('"q""x",z', ['q"x', "z"]),
        ("", []),
        (",", []),
        ("점수,도시 이름", ["점수", "도시 이름"]),
    ],
)
def test_names(text: str, expected: list[str]) -> None:
    assert names(text) == expected


def scores(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    assert main([*words, "--json"]) == 0
    return list(json.loads(capsys.readouterr().out)["selection"])


def test_quotes_or_an_option_each(units: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["evaluate", str(units), *DIRECT]
    quoted = scores(capsys, *command, "--auxiliary", '"a, b",z')
    repeated = scores(capsys, *command, "--auxiliary", '"a, b"', "--auxiliary", "z")
    assert quoted == repeated
    found = pb.evaluate(
        table(), outcome="y", domain="town, state", auxiliary=["a, b", "z"], candidates="direct"
    )
    np.testing.assert_allclose(
        [row["db_cv"] for row in quoted], found.selection.to_frame()["db_cv"], rtol=1e-12
    )


def test_levels_by_several_options(units: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--auxiliary", "z", "--taxonomy", "r", "--taxonomy", '"town, state"']
    assert main(["evaluate", str(units), *DIRECT, *words]) == 0
    assert "r 1" in capsys.readouterr().out


def test_sets(units: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    words = ["--auxiliary-set", 'strong="a, b"', "--auxiliary-set", 'both="a, b","q""x"']
    assert main(["select", str(units), *WORDS, *words, "--out", str(out)]) == 0
    page = capsys.readouterr().out
    assert page.startswith("selected: ") and "PP-S [both]" in page
    assert sorted(path.name for path in out.iterdir()) == [
        *("auxiliary.csv", "pairs.csv", "references.csv", "scores.png", "scores_by_domain.csv"),
        "selection.csv",
    ]
    assert (out / "scores.png").read_bytes().startswith(b"\x89PNG")
    sets = pd.read_csv(out / "auxiliary.csv")
    assert sets["auxiliary"].tolist() == ["a, b", "a, b", 'q"x']
    assert set(pd.read_csv(out / "pairs.csv")["better"]) >= {"undecided"}
    # A sample with a table of totals, the sets' means among its columns.
    seen = table()[table()["y"].notna()].assign(w=4.0)
    seen.to_csv(tmp_path / "sample.csv", index=False)
    totals = table().groupby("town, state", as_index=False)[["a, b", 'q"x']].mean()
    totals.assign(N=40).to_csv(tmp_path / "totals.csv", index=False)
    more = ["--weights", "w", "--population", str(tmp_path / "totals.csv")]
    assert main(["evaluate", str(tmp_path / "sample.csv"), *WORDS, *words, *more]) == 0
    assert "FH-GREG [strong]" in capsys.readouterr().out


def test_scoring_options(units: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["select", str(units), *DIRECT, "--auxiliary", '"a, b"']
    words = ["--score", "all", "--repetitions", "2", "--size-corrected", "--covariance"]
    more = [*words, "linearised", "--split", "0.8", "--folds", "4", "--reference", "ht"]
    assert main([*command, *more, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    found = pb.evaluate(
        table(),
        outcome="y",
        domain="town, state",
        auxiliary="a, b",
        candidates="direct",
        score="all",
        repetitions=2,
        size_corrected=True,
        covariance="linearised",
        split=0.8,
        folds=4,
        reference="ht",
    ).selection.to_frame()
    for key in ("db_cv", "sure", "split", "split_50"):
        np.testing.assert_allclose([row[key] for row in rows], found[key], rtol=1e-12)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "field: auxiliary"),
        (["--auxiliary-set", "a=z", "--auxiliary-set", "a=z"], "field: auxiliary_sets"),
        (["--auxiliary-set", "a="], "field: auxiliary"),
        (["--auxiliary-set", "a=zz"], "there is no column 'zz'"),
        (["--auxiliary", "z", "--score", "best"], "field: score"),
        (["--auxiliary", "z", "--covariance", "none"], "field: covariance"),
        (["--auxiliary", "z", "--split", "1.5"], "field: split"),
        (["--auxiliary", "z", "--repetitions", "0"], "field: repetitions"),
        (["--auxiliary", "z", "--folds", "11"], "field: folds"),
        (["--auxiliary", "z", "--engine", "SAS"], "field: engine"),
    ],
)
def test_what_is_refused(
    units: Path, words: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["select", str(units), *DIRECT, *words]) == 2
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if not line.startswith("·")]
    assert out == "" and len(lines) == 1 and text in lines[0]


@pytest.mark.parametrize(
    "words", [["--auxiliary-set", "abc"], ["--auxiliary", '"a'], ["--auxiliary-set", "=a"]]
)
def test_bad_usage(units: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["select", str(units), *DIRECT, *words])
    assert caught.value.code == 2 and "Traceback" not in capsys.readouterr().err


def test_a_set_as_text() -> None:
    assert auxiliary_set("a b = x, y") == ("a b", ["x", "y"])
    with pytest.raises(argparse.ArgumentTypeError):
        auxiliary_set("x,y")


@pytest.mark.parametrize("command", ["evaluate", "select"])
def test_more_folds_than_labels(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = table()
    few["y"] = few["y"].where(few.groupby("town, state").cumcount() < 12)  # three labels a town
    path = tmp_path / "few.csv"
    few.to_csv(path, index=False)
    words = [command, str(path), *DIRECT, "--auxiliary", "z"]
    for folds in ("4", "5"):
        assert main([*words, "--folds", folds, "--json"]) == 2
        printed, said = capsys.readouterr()
        error = json.loads(printed)
        assert (error["code"], error["field"], error["got"]) == ("too_many_folds", "folds", folds)
        assert error["expected"] == "at most 3" and error["hint"]
        assert said.startswith("pybridge: error: there are more folds") and said.count("\n") == 1
    assert main([*words, "--folds", "3"]) == 0
    capsys.readouterr()
    assert main(words) == 0
    assert "No naive CV and no Dong–Li" in capsys.readouterr().out
