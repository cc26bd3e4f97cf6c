"""plot(ax=...) of every record: on the user's own axes, and an error by name for anything else."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import pybridge as pb
from pybridge.errors import InputError
from pybridge.simulate.tail_scores import TailModel, simulate_tail_scores


def domains() -> Iterator[tuple[str, Any, int]]:
    rng = np.random.default_rng(1)
    place = np.arange(400) % 10
    f = rng.normal(size=400) + place / 5
    y = 1 + f + rng.normal(size=400)
    table = pd.DataFrame({"d": [f"c{i}" for i in place], "f": f, "r": place % 2})
    table["y"] = np.where(rng.random(400) < 0.3, y, np.nan)
    words: dict[str, Any] = dict(outcome="y", domain="d", auxiliary="f")
    found = pb.evaluate(table, candidates="direct", **words)
    yield "evaluation", found, 2
    yield "selection", found.selection, 1
    sample = table.dropna().assign(w=10.0 / 3)
    design, known = pb.survey_design(sample, weights="w"), pb.population(table, **without(words))
    yield "contributions", pb.contributions(design, known, outcome="y"), 1
    area = pb.hajek(design, known, outcome="y", variance="smoothed").to_area()
    fit = pb.fay_herriot("estimate ~ 1", area, engine="native")
    yield "fit", fit, 4
    yield "leave_domain_out", fit.leave_domain_out(), 1
    area["r"] = np.arange(len(area)) % 3
    yield "taxonomy", pb.taxonomy_model("estimate ~ 1", area, levels=["r", "domain"]), 4


def without(words: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in words.items() if name != "outcome"}


def tails() -> Iterator[tuple[str, Any, int]]:
    models = {"a": TailModel(shape=0.2), "b": TailModel()}
    table = simulate_tail_scores(models, n_items=2000)
    scores = table[table["model"] == "a"]["score"].to_numpy()
    yield "pareto", pb.generalized_pareto(scores, quantile=0.9, engine="native"), 3
    yield "life", pb.mean_residual_life(scores), 1
    yield "scan", pb.tail_scan(table, quantiles=[0.9, 0.95], engine="native"), 1
    words: dict[str, Any] = dict(replicates=99, engine="native", fit_method="table")
    plan = pb.make_protocol(
        models=list(models), mean_margin=0.1, tail_margin=0.5, scan_quantiles=[0.95, 0.97], **words
    )
    yield "verdict", pb.run_protocol(plan, table, exploratory=True), 2


NAMES = (
    *("evaluation", "selection", "contributions", "fit", "leave_domain_out", "taxonomy"),
    *("pareto", "life", "scan", "verdict"),
)


@functools.lru_cache(maxsize=1)
def records() -> dict[str, tuple[Any, int]]:
    """Every record with a figure, and on how many axes it is drawn."""
    return {name: (record, count) for name, record, count in [*domains(), *tails()]}


@pytest.mark.parametrize("name", NAMES)
def test_on_axes_of_the_users_own(name: str) -> None:
    record, count = records()[name]
    assert "ax" in inspect.signature(record.plot).parameters
    axes = Figure().subplots(1, count)
    drawn = record.plot(ax=axes)
    for mine, there in zip(np.ravel(np.array(axes)), np.ravel(np.array(drawn))):
        assert there is mine and mine.has_data()
    if count > 1:  # a list, a tuple and rows of axes will do
        record.plot(ax=tuple(axes))
        record.plot(ax=[np.array([one]) for one in list(axes)])


@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_axes(name: str) -> None:
    record, count = records()[name]
    figure = Figure()
    wrong = [figure, "ax", 3, [], [1] * count, figure.subplots(1, count + 1), {}, np.array("ax")]
    if count > 1:
        wrong += [
            figure.subplots(),
            [*figure.subplots(1, count - 1), None] if count > 2 else [None],
        ]
    for ax in wrong:
        with pytest.raises(InputError) as caught:
            record.plot(ax=ax)
        error = caught.value
        assert (error.code, error.field) == ("not_axes", "ax"), ax
        assert "matplotlib Axes" in error.expected and error.got and error.hint


def test_kinds_of_a_fit() -> None:
    fit, _ = records()["fit"]
    for kind in ("caterpillar", "domains", "direct", "shrinkage", "residuals", "qq"):
        ax = Figure().subplots()
        assert fit.plot(kind, ax=ax) is ax
        with pytest.raises(InputError) as caught:
            fit.plot(kind, ax=[ax, ax])
        assert caught.value.code == "not_axes" and caught.value.got.startswith("list of 2: ")


def test_the_truth_beside_a_selection() -> None:
    selection = records()["selection"][0]
    true = np.arange(1.0, 1.0 + len(selection.candidates))
    drawn = selection.plot(true_rmse=true)
    assert "true" in [text.get_text() for text in drawn.get_legend().get_texts()]
    assert "true" not in [text.get_text() for text in selection.plot().get_legend().get_texts()]
    for bad, code in ((true[:-1], "wrong_length"), (["a"] * len(true), "not_numeric")):
        with pytest.raises(InputError) as caught:
            selection.plot(true_rmse=bad)
        assert (caught.value.code, caught.value.field) == (code, "true_rmse")


def test_a_scorer_that_is_not_there() -> None:
    with pytest.raises(InputError) as caught:
        records()["verdict"][0].plot("nobody")
    assert (caught.value.code, caught.value.field) == ("unknown_option", "scorer")
