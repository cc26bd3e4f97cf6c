"""The page, the figure and the files of an evaluation, whatever the domains are called."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.errors import InputError
from pybridge.report.text import number, plain_text, table_text


def evaluate(**words: Any) -> Any:
    rng = np.random.default_rng(1)
    n_domains = words.pop("n_domains", 8)
    place = np.arange(40 * n_domains) % n_domains
    f = rng.normal(size=len(place))
    y = words.pop("outcome", 1 + f + place / 8 + rng.normal(size=len(place)))
    names = words.pop("names", [f"c{i:03d}" for i in range(n_domains)])
    table = pd.DataFrame({"d": [names[i] for i in place], "f": f, "r": place % 2})
    table["y"] = np.where(rng.random(len(place)) < 0.25, y, np.nan)
    table["g"] = 1.0 + rng.normal(size=len(place))
    if words.pop("labels", None):
        table["y"] = np.where(np.arange(len(place)) < n_domains, y, np.nan)
    usual = dict(outcome="y", domain="d", auxiliary=["f"], taxonomy=["r"], candidates="direct")
    return pb.evaluate(table, **{**usual, **words})


ODD = ["a\nb", "\x1b[31mred", "<b>&", "$x_1$ and $", "서울", "😀", "a\tb", "x" * 60]


def test_numbers_and_tables() -> None:
    assert [number(x) for x in (1234.5678, 0.000012345, np.nan, np.inf)] == [
        *("1235", "1.234e-05", "–", "–"),
    ]
    rows = table_text([["a", "1"], ["bcd", "22"]], ["name", "n"])
    assert rows == ["  name   n", "  a      1", "  bcd   22"]


@pytest.mark.parametrize("candidates", ["direct", [pb.candidate("HT")]])
def test_the_page_is_lines_of_printable_text(candidates: Any) -> None:
    page = evaluate(names=ODD, candidates=candidates).summary()
    assert all(line.isprintable() for line in page.splitlines())
    assert "a b" in page and "서울" in page


@pytest.mark.parametrize("score", ["db-cv", "naive", "adjusted", "sure", "split", "all"])
def test_the_page_says_what_its_score_is(score: str) -> None:
    found = evaluate(score=score)
    page = found.summary()
    honest = score in ("db-cv", "sure", "all")
    assert ("the typical error of one of these" in page) == honest
    assert ("which holds error of the labels too; DB-CV says " in page) != honest
    words = {
        "naive": "naive CV over 5 folds",
        "sure": "(SURE; reference",
        "split": "(split: fitted",
    }
    assert words.get(score, "5 folds") in page


def test_a_label_on_one_line() -> None:
    assert plain_text("a\nb\x1b[0m\tc") == "a b [0m c"


def test_the_figure_is_drawn_on_the_axes_given() -> None:
    from matplotlib.figure import Figure

    from pybridge.report.figures import domains_figure, scores_figure

    found, axes = evaluate(), Figure().subplots(1, 2)
    assert found.plot(axes) is axes
    assert domains_figure(found, axes[0]) is axes[0]
    assert scores_figure(found.selection, axes[1]) is axes[1]
    labels = [text.get_text() for text in found.plot()[0].get_yticklabels()]
    assert sorted(labels) == [f"c{i:03d}" for i in range(8)]
    assert found.plot()[1].get_xscale() == "log"


def test_nothing_of_matplotlib_is_changed() -> None:
    before = dict(matplotlib.rcParams), "matplotlib.pyplot" in sys.modules
    evaluate().plot()
    assert (dict(matplotlib.rcParams), "matplotlib.pyplot" in sys.modules) == before


def failing(sample: pd.DataFrame, population: Any) -> Any:
    raise ValueError("no")


STATES: dict[str, dict[str, Any]] = {
    "odd names": dict(names=ODD),
    "one domain": dict(n_domains=1, taxonomy=None),
    "many domains": dict(n_domains=100),
    "all equal": dict(outcome=3.0),
    "all 0": dict(outcome=0.0),
    "no interval": dict(candidates=[pb.candidate("mine", function=lambda s, p: np.ones(8))]),
    "one failed": dict(candidates=[pb.candidate("HT"), pb.candidate("$m$", function=failing)]),
    "as many folds as labels": dict(folds="labels"),
    "nothing to choose by": dict(labels=1),
    "sets of auxiliaries": dict(auxiliary_sets={"$a$": ["f"], "b <&>": ["f", "g"]}),
}


@pytest.mark.parametrize("state", STATES)
def test_files_in_every_state(state: str, tmp_path: Path) -> None:
    words = dict(STATES[state])
    if words.get("folds") == "labels":
        words["folds"] = int(evaluate().sample.whole.n.max())
    found = evaluate(**words)
    written = found.write(tmp_path / "out")
    assert set(written) == {
        *("estimates", "selection", "means", "provenance", "figure", "report"),
    }
    assert all(path.stat().st_size > 100 for path in written.values())
    page = written["report"].read_text(encoding="utf-8")
    assert re.findall(r'(?:src|href)="(?!data:)', page) == []
    assert page.startswith("<!doctype html>") and "<script" not in page


def test_a_page_elsewhere(tmp_path: Path) -> None:
    path = evaluate().to_html(tmp_path / "page.html")
    assert path == tmp_path / "page.html" and path.stat().st_size > 10_000


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(InputError) as caught:
        evaluate().write(tmp_path / "out")
    assert caught.value.code == "bad_folder"


def test_a_file_that_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "estimates.csv").mkdir()
    with pytest.raises(InputError) as caught:
        evaluate().write(tmp_path)
    assert caught.value.code == "cannot_write"
