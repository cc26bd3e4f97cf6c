"""Figures of a selection: every candidate with its error, naive CV beside it, and the truth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.errors import InputError
from pybridge.report.figures import reported_against_true_figure, scores_figure
from pybridge.report.words import columns_of, shortened, table_text

LONG = "difficulty as the earlier models had it, averaged over all of them"


def evaluation(n_sets: int) -> tuple[Any, pd.Series]:
    rng = np.random.default_rng(4)
    place = np.arange(900) % 15
    f = rng.normal(size=900) + place / 5
    y = 1 + f + rng.normal(size=15)[place] / 3 + rng.normal(size=900)
    table = pd.DataFrame({"d": [f"d{i:02d}" for i in place], "f": f, "g": rng.normal(size=900)})
    truth = pd.Series(y).groupby(table["d"]).mean()
    table["y"] = np.where(rng.random(900) < 0.25, y, np.nan)
    sets = {f"{LONG} {k}": ["f", "g"] if k % 2 else ["f"] for k in range(n_sets)}
    kinds = [
        pb.candidate("GREG", direct="greg", unit_auxiliary="f"),
        pb.candidate("FH", smoothing="fay_herriot", area_formula="~ f"),
    ]
    found = pb.evaluate(
        table, outcome="y", domain="d", auxiliary_sets=sets, candidates=[pb.candidate("HT"), *kinds]
    )
    return found, truth


@pytest.mark.parametrize("n_sets", [1, 10])
def test_every_candidate_has_its_row(n_sets: int) -> None:
    found, truth = evaluation(n_sets)
    count = 1 + 2 * n_sets
    axes = scores_figure(found.selection)
    frame = found.selection.to_frame()
    labels = [text.get_text() for text in axes.get_yticklabels()][::-1]
    assert len(labels) == count and labels[0].endswith(" *")
    assert all(len(label) <= 46 for label in labels)
    assert [label[:3] for label in labels] == [name[:3] for name in frame["candidate"]]
    naive = next(line for line in axes.lines if line.get_label() == "naive CV")
    np.testing.assert_allclose(naive.get_xdata()[::-1], np.sqrt(frame["naive"]))
    dots = [line for line in axes.lines if line.get_label().startswith("DB-CV")]
    shown = np.sort(np.concatenate([line.get_xdata() for line in dots]))
    np.testing.assert_allclose(shown, np.sort(frame["reported_rmse"]))
    # The figure grows with the candidates, and nothing lies outside of it.
    figure = axes.figure
    figure.savefig("/dev/null", format="png")
    bounds = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert bounds.x0 > -0.02 and bounds.x1 < width + 0.02 and bounds.y0 > -0.02
    assert height > 0.24 * count
    assert len(found.plot_truth(truth).lines) == len(axes.lines) + 1


def test_the_true_errors() -> None:
    found, truth = evaluation(1)
    mine = found.true_rmse(truth.sample(frac=1.0, random_state=1))
    for error, fit in zip(mine, found.fits):
        gap = fit.estimate - truth.to_numpy()
        assert error == pytest.approx(np.sqrt((gap**2).mean()), rel=1e-12)
    axes = found.plot_truth(truth.to_numpy())
    line = next(line for line in axes.lines if line.get_label() == "true")
    order = [found.selection.candidates.index(c) for c in found.selection.to_frame()["candidate"]]
    np.testing.assert_allclose(line.get_xdata()[::-1], mine[order])


def test_truths_that_do_not_fit() -> None:
    found, truth = evaluation(1)
    twice = truth.rename(lambda name: truth.index[0])
    others = (truth.rename(lambda name: name + "!"), np.nan * truth, "high", ["a"] * len(truth))
    for bad in (truth.to_numpy()[:3], twice, *others):
        with pytest.raises(InputError) as caught:
            found.plot_truth(bad)
        assert caught.value.code == "wrong_length" and caught.value.field == "truth"
    with pytest.raises(InputError):
        reported_against_true_figure(found.selection, [1.0])


def test_wide_characters_take_two_columns() -> None:
    assert [columns_of(text) for text in ("abc", "서울", "e\u0301", "")] == [3, 4, 1, 0]
    rows = table_text([["서울", "1"], ["Paris", "22"]], ["city", "n"])
    assert [columns_of(row) for row in rows] == [11, 11, 11]
    long = shortened("서울특별시 " * 12, 20)
    assert columns_of(long) <= 20 and "…" in long
    assert shortened("short", 20) == "short"
