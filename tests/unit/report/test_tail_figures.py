"""Figures of tails take a record and axes, draw what the record holds, and return the axes."""

from __future__ import annotations

import functools
import html

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from pybridge.protocol.reading import make_protocol
from pybridge.protocol.run import run_protocol
from pybridge.protocol.verdict import Verdict
from pybridge.report import tail_family as family
from pybridge.report import tail_figures as figures
from pybridge.simulate.tail_scores import TailModel, simulate_tail_scores
from pybridge.tails.generalized_pareto import generalized_pareto
from pybridge.tails.mean_residual_life import mean_residual_life
from pybridge.tails.records import ParetoFit
from pybridge.tails.scan import tail_scan


def scores() -> np.ndarray:
    return simulate_tail_scores({"a": TailModel(shape=0.2)}, n_items=2000)["score"].to_numpy()


@functools.lru_cache(maxsize=1)
def fit() -> ParetoFit:
    return generalized_pareto(scores(), quantile=0.9, engine="native")


@functools.lru_cache(maxsize=1)
def verdict() -> Verdict:
    models = {"a": TailModel(), "b": TailModel(), "c": TailModel(location=9, sigmoid=True)}
    table = simulate_tail_scores(models, n_items=2000)
    plan = make_protocol(
        models=list(models),
        mean_margin=0.1,
        tail_margin=0.5,
        replicates=99,
        engine="native",
        fit_method="table",
        scan_quantiles=[0.95, 0.97],
    )
    return run_protocol(plan, table, exploratory=True)


def axes():
    return Figure().subplots()


def points(ax, marker: str = "o") -> np.ndarray:
    """Coordinates of the line with this marker that has most points."""
    lines = [line for line in ax.get_lines() if line.get_marker() == marker]
    return max((line.get_xydata() for line in lines), key=len)


@pytest.mark.parametrize("given", [True, False])
def test_quantile_and_probability_plots(given: bool) -> None:
    for draw in (figures.quantile_figure, figures.probability_figure):
        ax = axes() if given else None
        out = draw(fit(), ax)
        assert out is ax or not given
        drawn = points(out)
        assert len(drawn) == fit().n_exceedances
        band = out.collections[0].get_paths()[0].vertices
        inside = np.mean(
            (drawn[:, 1] >= np.interp(drawn[:, 0], *band[1 : len(drawn) + 1].T) - 1e-9)
        )
        assert inside > 0.8  # most points of a good fit lie above the band's lower edge
    np.testing.assert_allclose(
        points(figures.quantile_figure(fit()))[:, 1], np.sort(fit().excesses)
    )


def test_of_many_excesses_the_largest_and_some_others_are_drawn() -> None:
    x = np.random.default_rng(1).exponential(size=50_000)
    many = generalized_pareto(x, threshold=0.5, engine="native")
    for draw in (figures.quantile_figure, figures.return_level_figure):
        drawn = points(draw(many, axes()))
        assert 3000 < len(drawn) <= figures.MOST_POINTS
        above = 0.5 if draw is figures.return_level_figure else 0.0
        np.testing.assert_allclose(drawn[-1000:, 1], np.sort(x)[-1000:] - 0.5 + above)


@pytest.mark.parametrize("shape", [2.0, -0.7])
def test_a_band_that_is_wide_or_missing_leaves_room_for_the_scores(shape: float) -> None:
    e = np.random.default_rng(2).exponential(size=40)
    extreme = generalized_pareto(np.expm1(shape * e) / shape, threshold=0.0, engine="native")
    for draw in (figures.quantile_figure, figures.return_level_figure):
        ax = draw(extreme, axes())
        low, high = ax.get_ylim()
        drawn = points(ax)[:, 1]
        assert low <= drawn.min() and drawn.max() <= high
    ax = figures.quantile_figure(extreme, axes())
    assert ax.get_ylim()[1] <= 3.2 * max(points(ax).ravel())


def test_return_levels_pass_through_the_scores() -> None:
    ax = figures.return_level_figure(fit(), axes())
    drawn = points(ax)
    assert len(drawn) == fit().n_exceedances and drawn[-1, 1] == pytest.approx(scores().max())
    assert ax.get_xscale() == "log"


def test_mean_residual_life() -> None:
    life = mean_residual_life(scores(), thresholds=np.linspace(0, 3, 20))
    ax = figures.mean_residual_life_figure(life, axes())
    np.testing.assert_allclose(ax.get_lines()[0].get_ydata(), life.mean_excess)


def test_the_scan_shows_every_model_its_window_and_fits_that_are_none() -> None:
    scan = tail_scan(
        {"a": scores(), "bad": np.linspace(0, 1, 500)}, quantiles=[0.9, 0.95], engine="native"
    )
    ax = figures.stability_figure(scan, axes(), window=(0.92, 0.97), registered=0.95)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["window of G5", "protocol's quantile", "a", "bad", "no fit"]
    assert len(points(ax)) == 2 and len(points(ax, "x")) == 2


def test_the_family_names_every_gate_verdict_and_that_it_is_exploratory() -> None:
    ax = family.family_figure(verdict(), axes())
    texts = [text.get_text() for text in ax.texts]
    assert texts.count("not computed") >= 2
    assert sum(text in ("pass", "fail", "not computed") for text in texts) == 3 * 7
    assert "100 | 1570" in texts  # observed value and limit of G3
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a – b", "a – c", "b – c"]
    for one in verdict().pairs:
        assert f"KILL ({one.first_failure})" in texts
    assert "EXPLORATORY" in ax.get_xlabel()


def test_long_names_and_many_pairs_keep_their_place(tmp_path) -> None:
    long = {name: f"maker-of-{name}/a-model-with-a-very-long-name-{name}-$5-$8" for name in "abc"}
    table = simulate_tail_scores({long[n]: TailModel() for n in "abc"}, n_items=1000)
    both = [table.assign(scorer=name) for name in ("first", "second")]
    plan = make_protocol(
        models=list(long.values()),
        scorers=["first", "second"],
        mean_margin=0.1,
        tail_margin=0.5,
        replicates=99,
        engine="native",
        fit_method="table",
        scan_quantiles=[0.95, 0.97],
    )
    found = run_protocol(plan, pd.concat(both), exploratory=True)
    ax = family.family_figure(found)
    ax.figure.savefig(tmp_path / "family.png")
    width, height = ax.figure.get_size_inches()
    places = [text.get_window_extent() for text in (*ax.get_yticklabels(), *ax.texts)]
    dots = ax.figure.dpi
    assert min(one.x0 for one in places) >= 0 and max(one.x1 for one in places) <= width * dots
    assert min(one.y0 for one in places) >= 0 and max(one.y1 for one in places) <= height * dots
    rows = [one for one in places[:6]]
    assert all(above.y0 >= below.y1 for above, below in zip(rows, rows[1:]))
    assert "scorer second" in [text.get_text() for text in ax.texts]
    one_scorer = family.verdict_figure(found, "second")[0]
    assert len(one_scorer.get_yticklabels()) == 3 and "second" in one_scorer.get_title(loc="left")
    assert found.to_html(tmp_path / "page.html").read_text(encoding="utf-8").count("<img alt=") == 9


def test_figures_of_several_panels(tmp_path) -> None:
    panels = figures.diagnostic_figure(fit())
    assert len(panels) == 3
    upper, lower = family.verdict_figure(verdict())
    for one in (panels[0], upper):
        one.figure.savefig(tmp_path / "figure.png")
        assert (tmp_path / "figure.png").stat().st_size > 5000
    assert lower.get_ylabel() == "shape"


def test_records_draw_themselves(tmp_path) -> None:
    scan = verdict().scans["score"]
    assert scan.plot(axes()).get_ylabel() == "shape"
    assert len(fit().plot()) == 3 and len(verdict().plot()) == 2
    assert mean_residual_life(scores()).plot().get_xlabel() == "threshold"


def test_the_page_holds_everything_and_loads_nothing(tmp_path) -> None:
    text = verdict().to_html(tmp_path / "page.html").read_text(encoding="utf-8")
    assert text.count("EXPLORATORY RUN") == 2
    for one in verdict().pairs:
        for outcome in one.outcomes:
            assert outcome.sentence in html.unescape(text)
    assert verdict().protocol_sha256 in text and verdict().data_sha256 in text
    assert "http" not in text and text.count("data:image/png") >= 3
