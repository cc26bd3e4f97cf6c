"""Figures of fits of 5, 57 and 500 domains: what they show, and that names can be read."""

from __future__ import annotations

import io
import sys

import matplotlib
import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.errors import InputError
from pybridge.report.smoothing_figures import FIGURES
from pybridge.report.tile_figure import _layout

ODD = ["a\nb", "$x$ and $", "서울", "x" * 60, "<b>"]


def table(m=57, groups=6, names=None, seed=1):
    rng = np.random.default_rng(seed)
    group = np.sort(np.r_[np.arange(groups), rng.integers(groups, size=m - groups)])
    d = np.exp(rng.normal(-1, 0.8, m))
    z = 3 + rng.normal(size=groups)[group] + np.sqrt(0.5 + d) * rng.normal(size=m)
    labels = names or [f"county {i:03d}" for i in range(m)]
    frame = pd.DataFrame({"domain": labels, "estimate": z, "variance": d})
    frame["region"] = [f"r{g}" for g in group]
    if m > 10:
        frame.loc[[3, 8], ["estimate", "variance"]] = np.nan
    return frame


def fits(frame):
    yield pb.fay_herriot("estimate ~ 1", frame, engine="native")
    yield pb.taxonomy_model("estimate ~ 1", frame, levels=["region", "domain"])


def drawn(ax):
    """The picture's size in bytes: every artist was rendered."""
    target = io.BytesIO()
    ax.figure.savefig(target, dpi=40)
    return len(target.getvalue())


@pytest.mark.parametrize(("m", "groups"), [(5, 2), (57, 6), (500, 20)])
def test_every_figure_is_drawn(m, groups):
    for fit in fits(table(m, groups)):
        for kind in FIGURES:
            assert drawn(fit.plot(kind)) > 1000
        panels = fit.plot()
        assert panels.shape == (2, 2) and drawn(panels[0, 0]) > 1000
        assert drawn(fit.leave_domain_out().plot()) > 1000


def test_names_that_are_no_plain_text():
    # The font has no Korean: a box stands there, and matplotlib says so.
    for fit in fits(table(5, 2, names=[*ODD[:2], "seoul", *ODD[3:]])):
        for kind in FIGURES:
            drawn(fit.plot(kind))
        labels = [text.get_text() for text in fit.plot("caterpillar").get_yticklabels()]
        assert "a b" in labels and max(map(len, labels)) <= 24
        assert r"\$x\$ and \$" in labels


def test_the_caterpillar_is_sorted_and_names_its_domains():
    frame = table()
    fit = pb.fay_herriot("estimate ~ 1", frame, engine="native")
    ax = fit.plot("caterpillar")
    order = fit.to_frame().sort_values("estimate", kind="stable")
    assert [t.get_text() for t in ax.get_yticklabels()] == list(order["domain"])
    marks = {line.get_label(): line.get_xdata() for line in ax.lines}
    np.testing.assert_array_equal(marks["smoothed"], order["estimate"])
    assert len(marks["no labels"]) == 2
    many = pb.fay_herriot("estimate ~ 1", table(500, 20), engine="native").plot("caterpillar")
    assert many.get_yticks().size == 0 and "500 domains" in many.get_ylabel()


def test_names_do_not_lie_over_each_other():
    """In pixels, of the tick labels of the caterpillar and the texts in the tiles."""
    for fit in fits(table(57, 6)):
        ax = fit.plot("caterpillar")
        drawn(ax)
        boxes = sorted((t.get_window_extent() for t in ax.get_yticklabels()), key=lambda b: b.y0)
        assert all(a.y1 <= b.y0 + 1 for a, b in zip(boxes, boxes[1:]))
        ax = fit.plot("domains")
        drawn(ax)
        tile = ax.transData.transform([(0, 0), (1, 1)])
        width = abs(tile[1, 0] - tile[0, 0])
        assert all(text.get_window_extent().width < width for text in ax.texts)
        for kind in ("residuals",):
            ax = fit.plot(kind)
            drawn(ax)
            boxes = [text.get_window_extent() for text in ax.texts]
            for i, one in enumerate(boxes):
                assert not any(one.overlaps(other) for other in boxes[:i])


def test_tiles_of_a_group_are_in_its_row():
    value = np.array([1.0, 5.0, 3.0, 2.0, 9.0])
    place, ticks, bottom = _layout(value, np.array(["a", "a", "a", "b", "b"], dtype=object), 2)
    assert place.tolist() == [[0, 1], [0, 0], [1, 0], [1, 2.25], [0, 2.25]]
    assert ticks == [(1.0, "a"), (2.75, "b")] and bottom == 3.25


def test_titles_hold_the_numbers():
    fit = pb.fay_herriot("estimate ~ 1", table(), engine="native")
    found = fit.diagnostics()
    panels = fit.plot().ravel()
    assert f"{found.brown_p_value:.2g}" in panels[0].get_title()
    assert f"{fit.model_variance:.3g}" in panels[1].get_title()
    assert f"{found.residual_normality.shapiro_p:.2g}" in panels[3].get_title()
    left_out = fit.leave_domain_out()
    assert f"{left_out.root_mean_square:.2f}" in left_out.plot().get_title()


def test_axes_given_are_used_and_nothing_global_changes():
    from matplotlib.figure import Figure

    before = dict(matplotlib.rcParams), "matplotlib.pyplot" in sys.modules
    for fit in fits(table()):
        for kind in FIGURES:
            ax = Figure().subplots()
            assert fit.plot(kind, ax) is ax
        four = Figure().subplots(2, 2)
        assert (fit.plot(ax=four) == four).all()
    assert (dict(matplotlib.rcParams), "matplotlib.pyplot" in sys.modules) == before


def test_a_boundary_fit_and_equal_variances():
    frame = table()
    frame["estimate"] = 3.0 + 0.01 * np.arange(57) % 0.03
    frame["variance"] = 1.0
    for fit in fits(frame):
        for kind in FIGURES:
            drawn(fit.plot(kind))


def test_a_kind_that_is_none():
    fit = pb.fay_herriot("estimate ~ 1", table(), engine="native")
    with pytest.raises(InputError) as caught:
        fit.plot("map")
    assert caught.value.field == "kind"
