"""Figures: each takes a record and optional axes, and returns the axes it drew on.

matplotlib is loaded by the first call only, and no global setting of it is changed.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from pybridge.errors import EngineUnavailable

if TYPE_CHECKING:
    from pybridge.report.record import Evaluation
    from pybridge.selection.record import Selection

DIRECT_COLOUR = "#9a9a9a"
CHOSEN_COLOUR = "#1f5fa8"
NAIVE_COLOUR = "#c8732b"
# More domains than this make an unreadable axis: the labels are left out then.
_MOST_LABELS = 70


def _figure(width: float, height: float) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise EngineUnavailable(
            "figures need matplotlib",
            code="missing_package",
            field="plot",
            expected="matplotlib",
            got="not installed",
            hint="pip install 'pybridge[plot]', or Debian's python3-matplotlib.",
        ) from error
    return Figure(figsize=(width, height), layout="constrained")


def evaluation_figure(evaluation: Evaluation, axes: Any = None) -> Any:
    """Domains with intervals (chosen and direct) beside the reported errors of all candidates."""
    if axes is None:
        height = min(14.0, max(4.5, 1.5 + 0.17 * evaluation.population.n_domains))
        figure = _figure(11.0, height)
        axes = _two_panels(figure, height, len(evaluation.fits))
    domains_figure(evaluation, axes[0])
    scores_figure(evaluation.selection, axes[1])
    return axes


def _two_panels(figure: Any, height: float, n_candidates: int) -> Any:
    """The domains over the whole height; the candidates at the top, no taller than they need."""
    share = min(1.0, (1.5 + 0.4 * n_candidates) / height)
    grid = figure.add_gridspec(2, 2, width_ratios=[1.5, 1.0], height_ratios=[share, 1.001 - share])
    return [figure.add_subplot(grid[:, 0]), figure.add_subplot(grid[0, 1])]


def domains_figure(evaluation: Evaluation, axes: Any = None) -> Any:
    """Caterpillar of the domains: the chosen estimates, the reference's direct ones behind."""
    if axes is None:
        axes = _figure(7.0, 8.0).subplots()
    chosen = evaluation.selected
    order = np.argsort(np.where(np.isnan(chosen.estimate), np.inf, chosen.estimate), kind="stable")
    place = np.arange(len(order), dtype=float)
    direct = _direct_beside(evaluation)
    if direct is not None:
        _intervals(axes, direct, order, place + 0.18, DIRECT_COLOUR, direct.candidate.name)
    _intervals(axes, chosen, order, place - 0.18, CHOSEN_COLOUR, chosen.candidate.name)
    unlabelled = np.flatnonzero(evaluation.sample.whole.n[0][order] == 0)
    if unlabelled.size:
        axes.plot(
            chosen.estimate[order][unlabelled],
            place[unlabelled] - 0.18,
            "o",
            markersize=4,
            markerfacecolor="white",
            markeredgecolor=CHOSEN_COLOUR,
            label="no labels",
            zorder=4,
        )
    _limit_to_chosen(axes, chosen)
    labels = [str(evaluation.population.domains[i]) for i in order]
    if len(labels) <= _MOST_LABELS:
        axes.set_yticks(place, [_plain(text) for text in labels], fontsize=7)
    else:
        axes.set_yticks([])
        axes.set_ylabel(f"{len(labels)} domains")
    axes.set_ylim(-1, len(labels))
    axes.set_xlabel(_plain(f"mean of {evaluation.sample.outcome}"))
    percent = f"{100 * evaluation.level:g} %"
    axes.set_title(f"{percent} intervals (direct ones are cut at the frame)", fontsize=10)
    axes.legend(fontsize=8, loc="lower right", frameon=False)
    return axes


def _plain(text: str) -> str:
    """Text in which a dollar sign is a dollar sign (matplotlib reads pairs of them as formulas)."""
    return text.replace("$", r"\$")


def _direct_beside(evaluation: Evaluation) -> Any:
    """The direct candidate that the chosen one is compared with in the figure."""
    wanted = evaluation.selection.reference
    for fit in evaluation.fits:
        if fit.candidate.name == wanted and wanted != evaluation.selection.selected:
            return fit
    return None


def _intervals(
    axes: Any, fit: Any, order: np.ndarray, place: np.ndarray, colour: str, label: str
) -> None:
    _lines(axes, place, fit.lower[order], fit.upper[order], colour, 1.2)
    axes.plot(fit.estimate[order], place, "o", markersize=3.5, color=colour, label=_plain(label))


def _lines(
    axes: Any, place: np.ndarray, low: np.ndarray, high: np.ndarray, colour: str, width: float
) -> None:
    """Intervals that exist; matplotlib warns where an end is missing."""
    here = np.isfinite(low) & np.isfinite(high)
    axes.hlines(place[here], low[here], high[here], color=colour, linewidth=width)


def _limit_to_chosen(axes: Any, chosen: Any) -> None:
    """Direct intervals of two labels would otherwise squeeze everything else into a line."""
    finite = np.isfinite(chosen.lower) & np.isfinite(chosen.upper)
    if finite.any():
        low, high = chosen.lower[finite].min(), chosen.upper[finite].max()
        margin = 0.15 * (high - low) or 1.0
        axes.set_xlim(low - margin, high + margin)


def scores_figure(selection: Selection, axes: Any = None) -> Any:
    """Reported RMSE of every candidate by DB-CV, with its error, against naive CV."""
    if axes is None:
        axes = _figure(5.0, 4.0).subplots()
    table = selection.to_frame().iloc[::-1]
    place = np.arange(len(table), dtype=float)
    score = table["score"].to_numpy()
    error = 1.96 * table["score_standard_error"].to_numpy()
    floor = _smallest(table) / 2
    low, middle, high = (
        np.sqrt(np.maximum(x, floor**2)) for x in (score - error, score, score + error)
    )
    _lines(axes, place, low, high, CHOSEN_COLOUR, 1.4)
    axes.plot(middle, place, "o", color=CHOSEN_COLOUR, label="DB-CV (95 %)")
    naive = np.sqrt(np.maximum(table["naive"].to_numpy(), floor**2))
    axes.plot(naive, place, "x", color=NAIVE_COLOUR, label="naive CV")
    axes.set_xscale("log")
    names = [
        f"{_plain(name)} *" if name == selection.selected else _plain(name)
        for name in table["candidate"]
    ]
    axes.set_yticks(place, names)
    axes.set_xlabel("reported RMSE over domains")
    axes.set_title("candidates, best on top", fontsize=10)
    axes.legend(fontsize=8, loc="best", frameon=False)
    return axes


def _smallest(table: Any) -> float:
    values = np.sqrt(np.maximum(np.r_[table["score"], table["naive"]], 0.0))
    positive = values[np.isfinite(values) & (values > 0)]
    return float(positive.min()) if positive.size else 1.0


def save_evaluation_figure(evaluation: Evaluation, path: str | os.PathLike[str]) -> None:
    """Draw the evaluation's figure and write it as a picture."""
    figure = evaluation_figure(evaluation)[0].figure
    with known_glyphs_only():
        figure.savefig(path, dpi=130)


@contextmanager
def known_glyphs_only() -> Iterator[None]:
    """Names of domains may hold what the font does not: a box stands there, without a warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing")
        yield
