"""pybridge evaluate, direct, select, smooth and demo: what they write, print and return."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.cli import main

NAMES = ["a, b", 'q"q', "two\nlines", "서울", "😀", " space", "007", "NA", "$x$", "<b>&"]


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """A table of 300 units in ten domains with odd names, two in five labelled."""
    rng = np.random.default_rng(3)
    place = np.repeat(np.arange(10), 30)
    f = rng.normal(size=300) + place / 5
    table = pd.DataFrame({"county": [NAMES[i] for i in place], "f": f, "region": place % 3})
    table["y"] = (1 + f + rng.normal(size=300)) * (np.arange(300) % 5 < 2)
    table["y"] = table["y"].where(np.arange(300) % 5 < 2)
    path = tmp_path / "units.csv"
    table.to_csv(path, index=False)
    return path


WORDS = ["--outcome", "y", "--domain", "county", "--auxiliary", "f"]
NATIVE = [*WORDS, "--engine", "native"]
DIRECT = [*NATIVE, "--candidates", "direct"]


def read(path: Path) -> pd.DataFrame:
    return pd.read_csv(
        path, keep_default_na=False, dtype={"domain": str}, float_precision="round_trip"
    )


def exactly(path: Path) -> pd.DataFrame:
    """The units as they were before they were written."""
    return pd.read_csv(
        path,
        keep_default_na=False,
        na_values={"y": [""]},
        dtype={"county": str},
        float_precision="round_trip",
    )


def errors(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("·")]


# --- evaluate ----------------------------------------------------------------------------------


def test_what_is_written(units: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "deep" / "out"
    words = ["--taxonomy", "region,county", "--out", str(out)]
    assert main(["evaluate", str(units), *NATIVE, *words]) == 0
    printed, said = capsys.readouterr()
    assert said.startswith("· no weights given") and printed.startswith("y by county: 10 domains")
    assert sorted(p.name for p in out.iterdir()) == [
        *("estimates.csv", "figure.png", "means.csv", "provenance.json"),
        *("report.html", "selection.csv"),
    ]
    estimates = read(out / "estimates.csv")
    assert sorted(estimates["domain"].unique()) == sorted(NAMES)
    assert estimates["candidate"].nunique() == 9 and estimates["region"].nunique() == 3
    selection = pd.read_csv(out / "selection.csv")
    assert selection["rank"].tolist() == list(range(1, 10))
    record = json.loads((out / "provenance.json").read_text(encoding="utf-8"))
    assert record["selected"] == selection["candidate"][0]
    assert record["provenance"]["options"]["domain"] == "county"
    assert record["assumptions"][0].startswith("no weights given")
    means = pd.read_csv(out / "means.csv")
    assert means["taxonomy_level"].tolist() == ["all", "region", "region", "region"]
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;&amp;" in page and "<b>&" not in page and "data:image/png;base64," in page
    # Again into the same folder: the files are replaced.
    assert main(["evaluate", str(units), *DIRECT, "--out", str(out)]) == 0
    assert read(out / "estimates.csv")["candidate"].nunique() == 4


def test_the_same_numbers_as_the_function(units: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["evaluate", str(units), *DIRECT, "--seed", "4", "--out", str(out)]) == 0
    table = exactly(units)
    words: dict[str, Any] = dict(outcome="y", domain="county", auxiliary=["f"], candidates="direct")
    found = pb.evaluate(table, engine="native", seed=4, **words)
    written, there = read(out / "estimates.csv"), found.to_frame()
    np.testing.assert_array_equal(written["domain"], there["domain"])
    np.testing.assert_array_equal(written["estimate"].astype(float), there["estimate"])
    np.testing.assert_array_equal(written["standard_error"].astype(float), there["standard_error"])


def test_names_of_columns_from_another_alphabet(
    units: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pd.read_csv(units, keep_default_na=False)
    path = tmp_path / "korean.csv"
    table.rename(columns={"y": "점수", "county": "도시 이름", "f": "f, x"}).to_csv(
        path, index=False, encoding="cp949", errors="replace"
    )
    words = ["--outcome", "점수", "--domain", "도시 이름", "--auxiliary", "region"]
    options = ["--engine", "native", "--candidates", "direct", "--encoding", "cp949"]
    assert main(["evaluate", str(path), *words, *options]) == 0
    assert "점수 by 도시 이름" in capsys.readouterr().out


def test_true_and_false_in_a_file(
    units: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = exactly(units)
    answers = {}
    for words in (("true", "false"), ("TRUE", "FALSE"), ("1", "0")):
        path = tmp_path / "binary.csv"
        y = np.where(table["y"] > 1.5, *words)
        table.assign(y=np.where(table["y"].isna(), "", y)).to_csv(path, index=False)
        assert main(["evaluate", str(path), *DIRECT]) == 0
        answers[words[0]] = capsys.readouterr().out
    assert answers["true"] == answers["TRUE"] == answers["1"]


def test_as_json(units: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(units), *NATIVE, "--json"]) == 0
    out, err = capsys.readouterr()
    answer = json.loads(out)
    assert err == "" and answer["selection"][0]["candidate"] == answer["selected"]
    names = {"selected", "default", "reference", "assumptions", "selection", "files"}
    assert set(answer) == names and answer["default"] is None


@pytest.mark.parametrize("command", ["evaluate", "select"])
def test_json_keeps_all_digits(
    units: Path, tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = exactly(units)
    small = tmp_path / "small.csv"
    table.assign(y=1e-8 * table["y"]).to_csv(small, index=False)
    assert main([command, str(small), *DIRECT, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    rows = answer["selection"] if command == "evaluate" else answer
    table = table.assign(y=1e-8 * table["y"])
    words: dict[str, Any] = dict(outcome="y", domain="county", auxiliary=["f"], candidates="direct")
    expected = pb.evaluate(table, engine="native", **words).selection.to_frame()["db_cv"]
    np.testing.assert_array_equal([row["db_cv"] for row in rows], expected)


def test_an_error_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(tmp_path / "away.csv"), *DIRECT, "--json"]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["code"] == "no_such_file" and len(err.splitlines()) == 1


@pytest.mark.parametrize("command", ["evaluate", "select"])
@pytest.mark.parametrize("where", ["a file", "below a file", "nowhere", "no name"])
def test_a_folder_that_cannot_be_is_refused_before_the_work(
    units: Path, tmp_path: Path, command: str, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {
        "a file": str(units),
        "below a file": str(units / "out"),
        "nowhere": "/proc/nowhere/out",
        "no name": "",
    }
    assert main([command, str(units), *DIRECT, "--out", places[where]]) == 2
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 1
    assert err.startswith("pybridge: error: ") and "cannot be made into a folder" in err


def test_debug_shows_the_traceback(units: Path) -> None:
    with pytest.raises(pb.InputError):
        main(["evaluate", str(units), *DIRECT, "--folds", "1", "--debug"])


def test_no_command_and_bad_usage(units: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    capsys.readouterr()
    for arguments in (["evaluate"], ["nothing"], ["evaluate", str(units), "--folds", "x"]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
        out, err = capsys.readouterr()  # one line, as any other error
        assert err.startswith("pybridge: error: ") and "--help" in err and err.count("\n") == 1


# --- the others --------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["ht", "hajek", "ppi", "greg"])
def test_direct(units: Path, method: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["direct", str(units), *WORDS, "--method", method]) == 0
    out, _ = capsys.readouterr()
    rows = out.splitlines()
    assert rows[0].startswith("domain,n_labelled,size,estimate,variance") and len(rows) == 12


@pytest.mark.parametrize("slope", ["within", "domain", "0.5"])
def test_slopes(units: Path, slope: str, tmp_path: Path) -> None:
    out = tmp_path / "direct.csv"
    assert main(["direct", str(units), *WORDS, "--slope", slope, "--out", str(out)]) == 0
    table = exactly(units)
    known = pb.population(table, domain="county", auxiliary=["f"])
    sample = table[table["y"].notna()].assign(w=2.5, N=300.0)
    design = pb.survey_design(sample, weights="w", fpc="N")
    value = float(slope) if slope == "0.5" else slope
    expected = pb.generalized_regression(design, known, outcome="y", slope=value)
    np.testing.assert_array_equal(read(out)["estimate"], expected.estimate)


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["--method", "ols"], "method"),
        (["--slope", "best"], "slope"),
        (["--slope", "1,2"], "slope"),
        (["--variance", "best"], "variance"),
        (["--level", "95"], "level"),
        (["--out", "/proc/nowhere/x.csv"], "out"),
        (["--out", "."], "out"),
    ],
)
def test_direct_refused(
    units: Path, words: list[str], field: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["direct", str(units), *WORDS, *words]) == 2
    lines = errors(capsys.readouterr().err)
    assert len(lines) == 1 and f"field: {field}" in lines[0]


def test_direct_without_auxiliary(units: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(units), "--outcome", "y", "--domain", "county"]
    assert main(["direct", *words, "--method", "hajek"]) == 0
    assert main(["direct", *words]) == 2


def test_select(units: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "scores"
    assert main(["select", str(units), *DIRECT, "--out", str(out)]) == 0
    assert capsys.readouterr().out.startswith("selected: ")
    assert len(pd.read_csv(out / "scores_by_domain.csv")) == 40
    assert len(pd.read_csv(out / "selection.csv")) == 4


def test_smooth(units: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    area = tmp_path / "area.csv"
    assert main(["direct", str(units), *WORDS, "--variance", "smoothed", "--out", str(area)]) == 0
    capsys.readouterr()
    words = ["--formula", "estimate ~ 1", "--engine", "native"]
    assert main(["smooth", str(area), *words]) == 0
    rows = capsys.readouterr().out
    # Domains by name, newlines in quotes: read as a table.
    path = tmp_path / "smoothed.csv"
    path.write_text(rows, encoding="utf-8", newline="")
    assert sorted(read(path)["domain"]) == sorted(NAMES)
    for bad in (
        ["--variance", "vv"],
        ["--domain", "zz"],
        ["--method", "x"],
        ["--out", "/proc/x/y"],
    ):
        assert main(["smooth", str(area), *words, *bad]) == 2
    assert main(["smooth", str(area), "--formula", "nothing", "--engine", "native"]) == 2
    assert all(line.startswith("pybridge: error") for line in errors(capsys.readouterr().err)[-5:])


@pytest.mark.parametrize("share", ["0", "1", "-0.1", "2"])
def test_a_share_of_labels_for_the_demonstration(share: str) -> None:
    from pybridge.demonstration import draw_labels

    with pytest.raises(pb.InputError) as caught:
        draw_labels(pd.DataFrame(), outcome="y", strata="h", share=float(share), seed=1)
    assert caught.value.code == "bad_share"


# --- a process of its own ----------------------------------------------------------------------


def run(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pybridge", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=90, **options)


def test_a_reader_that_goes_away(units: Path) -> None:
    command = [sys.executable, "-m", "pybridge", "direct", str(units), *WORDS]
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, text=True, timeout=90)
    os.close(theirs)
    assert done.returncode == 0 and errors(done.stderr) == []


def test_a_full_disk(units: Path) -> None:
    command = [sys.executable, "-m", "pybridge", "evaluate", str(units), *DIRECT]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=90)
    lines = errors(done.stderr)
    assert done.returncode == 2 and len(lines) == 1 and "No space left" in lines[0]


def test_one_line_and_no_traceback(units: Path) -> None:
    done = run("evaluate", str(units), *WORDS, "--engine", "native", "--weights", "w")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("pybridge: error: ")


def test_a_terminal_of_another_alphabet(units: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = run("evaluate", str(units), *DIRECT, env=environment)
    assert done.returncode == 0 and "\\u" in done.stdout


def test_without_matplotlib(units: Path, tmp_path: Path, run_python: Any) -> None:
    code = f"""
        import sys
        sys.modules["matplotlib"] = None
        from pybridge.cli import main
        words = [{str(units)!r}, *{DIRECT!r}, "--out", {str(tmp_path / "out")!r}]
        sys.exit(main(["evaluate", *words]))
    """
    done = run_python(code)
    assert "No figure: matplotlib is missing" in done.stdout
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        *("estimates.csv", "means.csv", "provenance.json", "selection.csv"),
    ]


def test_a_matplotlib_that_does_not_load(units: Path, tmp_path: Path, run_python: Any) -> None:
    broken = tmp_path / "site" / "matplotlib"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('another numpy')\n")
    code = f"""
        import sys
        sys.path.insert(0, {str(tmp_path / "site")!r})
        from pybridge.cli import main
        words = [{str(units)!r}, *{DIRECT!r}, "--out", {str(tmp_path / "out")!r}]
        sys.exit(main(["evaluate", *words]))
    """
    assert "No figure" in run_python(code).stdout
