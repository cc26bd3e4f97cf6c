"""Figures: each takes a record and optional axes, and returns the axes it drew on.

matplotlib is loaded by the first call only, and no global setting of it is changed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from pybridge.report.canvas import (
    CHOSEN_COLOUR,
    DIRECT_COLOUR,
    NAIVE_COLOUR,
    axes_or_new,
    interval_lines,
    known_glyphs_only,
    new_figure,
    plain,
    readable,
    several_axes,
)
from pybridge.report.selection_figures import (
    candidates_height,
    reported_against_true_figure,
    scores_figure,
)
from pybridge.report.words import shortened

if TYPE_CHECKING:
    from pybridge.report.record import Evaluation

__all__ = [
    "CHOSEN_COLOUR",
    "DIRECT_COLOUR",
    "NAIVE_COLOUR",
    "domains_figure",
    "evaluation_figure",
    "known_glyphs_only",
    "reported_against_true_figure",
    "save_evaluation_figure",
    "scores_figure",
]

# More domains than this make an unreadable axis: the labels are left out then.
_MOST_LABELS = 70
_LONGEST_LABEL = 36
_METHODS = {"ht": "HT", "hajek": "Hájek", "ppi": "PPI", "greg": "GREG"}
# Used by the other figures under these names.
_figure, _plain = new_figure, plain


def evaluation_figure(evaluation: Evaluation, ax: Any = None) -> Any:
    """Domains with intervals (chosen and direct) beside the reported errors of all candidates."""
    if ax is None:
        count = len(evaluation.fits)
        height = max(4.5, 1.5 + 0.17 * min(evaluation.population.n_domains, _MOST_LABELS))
        height = max(height, candidates_height(count))
        figure = new_figure(13.0, height)
        axes = _two_panels(figure, height, count)
    else:
        axes = several_axes(ax, 2)
    domains_figure(evaluation, axes[0])
    scores_figure(evaluation.selection, axes[1])
    return axes


def _two_panels(figure: Any, height: float, n_candidates: int) -> Any:
    """The domains over the whole height; the candidates at the top, no taller than they need."""
    share = min(1.0, candidates_height(n_candidates) / height)
    if share > 0.8:
        return figure.subplots(1, 2, width_ratios=[1.0, 1.0])
    grid = figure.add_gridspec(2, 2, width_ratios=[1.0, 1.0], height_ratios=[share, 1.0 - share])
    return np.array([figure.add_subplot(grid[:, 0]), figure.add_subplot(grid[0, 1])])


def domains_figure(evaluation: Evaluation, ax: Any = None) -> Any:
    """Caterpillar of the domains: the chosen estimates, the reference's direct ones behind."""
    axes = axes_or_new(ax, 7.0, 8.0)
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
        axes.set_yticks(place, [plain(shortened(t, _LONGEST_LABEL)) for t in labels], fontsize=7)
    else:
        axes.set_yticks([])
        axes.set_ylabel(f"{len(labels)} domains")
    axes.set_ylim(-1, len(labels))
    axes.set_xlabel(plain(f"mean of {evaluation.sample.outcome}"))
    percent = f"{100 * evaluation.level:g} %"
    axes.set_title(f"{percent} intervals (direct ones are cut at the frame)", fontsize=10)
    axes.legend(fontsize=8, loc="lower right", frameon=False)
    return readable(axes)


def _direct_beside(evaluation: Evaluation) -> Any:
    """The direct candidate that the chosen one is compared with in the figure."""
    wanted = evaluation.selection.reference
    for fit in evaluation.fits:
        item = fit.candidate
        if item.function is not None or item.smoothing or item.slope != "pooled":
            continue
        own = f"{_METHODS[item.direct]}({', '.join(item.unit_auxiliary)})"
        # With several sets of auxiliary variables a reference is named with its own.
        if wanted in (own, _METHODS[item.direct]) and item.name != evaluation.selection.selected:
            return fit
    return None


def _intervals(
    axes: Any, fit: Any, order: np.ndarray, place: np.ndarray, colour: str, label: str
) -> None:
    interval_lines(axes, place, fit.lower[order], fit.upper[order], colour, 1.2)
    axes.plot(
        fit.estimate[order],
        place,
        "o",
        markersize=3.5,
        color=colour,
        label=plain(shortened(label, _LONGEST_LABEL)),
    )


def _limit_to_chosen(axes: Any, chosen: Any) -> None:
    """Direct intervals of two labels would otherwise squeeze everything else into a line."""
    finite = np.isfinite(chosen.lower) & np.isfinite(chosen.upper)
    if finite.any():
        low, high = chosen.lower[finite].min(), chosen.upper[finite].max()
        margin = 0.15 * (high - low) or 1.0
        axes.set_xlim(low - margin, high + margin)


def save_evaluation_figure(evaluation: Evaluation, path: str | os.PathLike[str]) -> None:
    """Draw the evaluation's figure and write it as a picture."""
    figure = evaluation_figure(evaluation)[0].figure
    with known_glyphs_only():
        figure.savefig(path, dpi=130)
