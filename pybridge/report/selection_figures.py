"""Figures of a selection: each takes the record and optional axes, and returns the axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pybridge._checks import real_array
from pybridge.errors import InputError
from pybridge.report.canvas import (
    CHOSEN_COLOUR,
    NAIVE_COLOUR,
    interval_lines,
    axes_or_new,
    few_log_ticks,
    plain,
    readable,
)
from pybridge.report.words import counted, shortened
from pybridge.selection.words import score_name

if TYPE_CHECKING:
    from pybridge.selection.record import Selection

# Longer names are cut in the middle.
_LONGEST_NAME = 44
# A score whose interval reaches 0 has a line down to this share of the smallest error shown.
_BELOW = 0.5


def candidates_height(count: int) -> float:
    """Inches that a figure of this many candidates needs."""
    return 1.5 + max(0.24 * count, 1.2)


def scores_figure(selection: Selection, ax: Any = None) -> Any:
    """Reported RMSE of every candidate by the score that chose, with its error, against naive CV.

    Filled dots are candidates that cannot be told from the best. A line that ends at the left
    frame belongs to a score that is not far enough from 0.

    Returns the matplotlib Axes.
    """
    return _candidates(selection, ax, None)


def reported_against_true_figure(selection: Selection, true_rmse: Any, ax: Any = None) -> Any:
    """The same, with every candidate's true RMSE beside what was reported of it.

    Parameters
    ----------
    selection : Selection
    true_rmse : array of shape (C,)
        Of the candidates, in the selection's order, over the domains that were scored.
    ax : matplotlib Axes, optional

    Returns the matplotlib Axes.

    Raises
    ------
    InputError
        Another number of errors than of candidates, errors that are no numbers.
    """
    true = real_array("true_rmse", true_rmse)
    if true.shape != (len(selection.candidates),):
        raise InputError(
            "a true error is needed for every candidate",
            code="wrong_length",
            field="true_rmse",
            expected=counted(len(selection.candidates), "number"),
            got=f"shape {true.shape}",
        )
    return _candidates(selection, ax, true)


def _candidates(selection: Selection, ax: Any, true: np.ndarray | None) -> Any:
    """One row a candidate, best on top."""
    table = selection.to_frame().iloc[::-1]
    names = table["candidate"].tolist()
    axes = axes_or_new(ax, 6.5, candidates_height(len(names)))
    place = np.arange(len(names), dtype=float)
    score, naive, error = (
        table[key].to_numpy(dtype=np.float64, na_value=np.nan)
        for key in ("score", "naive", "score_standard_error")
    )
    low, middle, high = (_root(score + sign * 1.96 * error) for sign in (-1, 0, 1))
    middle = np.where(np.isnan(error), _root(score), middle)
    naive = _root(naive)
    floor = _BELOW * _smallest(middle, naive, low)
    interval_lines(axes, place, np.where(low > 0, low, floor), high, CHOSEN_COLOUR, 1.4)
    near = table["may_be_best"].to_numpy(dtype=bool)
    name = score_name(selection.score)
    level = f"{100 * selection.level:g} %"
    _dots(axes, middle, place, near, CHOSEN_COLOUR, f"{name}, may be the best ({level})")
    _dots(axes, middle, place, ~near, "white", name)
    axes.plot(naive, place, "x", color=NAIVE_COLOUR, markersize=5, label="naive CV")
    values = [floor, *middle, *high, *naive]
    if true is not None:
        order = [selection.candidates.index(one) for one in names]
        axes.plot(
            true[order], place, "|", color="black", markersize=11, markeredgewidth=2, label="true"
        )
        values += [*true]
    _frame(axes, selection, names, values, true is not None)
    return readable(axes)


def _dots(
    axes: Any, middle: np.ndarray, place: np.ndarray, here: np.ndarray, colour: str, label: str
) -> None:
    here = here & (middle > 0)
    if here.any():
        axes.plot(
            middle[here],
            place[here],
            "o",
            markersize=5,
            markerfacecolor=colour,
            markeredgecolor=CHOSEN_COLOUR,
            label=label,
            zorder=3,
        )


def _frame(
    axes: Any, selection: Selection, names: list[str], values: list[float], true: bool
) -> None:
    from matplotlib.transforms import ScaledTranslation

    marked = [
        shortened(name, _LONGEST_NAME) + (" *" if name == selection.selected else "")
        for name in names
    ]
    axes.set_yticks(np.arange(len(names)), [plain(text) for text in marked], fontsize=8)
    axes.set_ylim(-0.7, len(names) - 0.3)
    known = np.array([x for x in values if np.isfinite(x) and x > 0])
    axes.set_xscale("log")
    if known.size:
        axes.set_xlim(known.min(), 1.15 * known.max())
    few_log_ticks(axes)
    axes.set_xlabel("RMSE over the scored domains")
    title = "reported (95 % interval) and true error" if true else "reported error, 95 % interval"
    title = "no candidate could be scored" if selection.default else f"{title} (* chosen)"
    axes.set_title(title, fontsize=10)
    axes.grid(axis="y", color="#eeeeee", linewidth=0.8)
    axes.set_axisbelow(True)
    # Half an inch below the frame: inside it would lie on one candidate or another.
    below = axes.transAxes + ScaledTranslation(0.0, -0.5, axes.figure.dpi_scale_trans)
    axes.legend(
        fontsize=7,
        loc="upper center",
        bbox_to_anchor=(0.4, 0.0),
        bbox_transform=below,
        ncol=4,
        frameon=False,
        handletextpad=0.2,
        columnspacing=1.0,
    )


def _root(values: np.ndarray) -> np.ndarray:
    """√x where x is positive, NaN elsewhere."""
    return np.sqrt(values, out=np.full(len(values), np.nan), where=values > 0)


def _smallest(*values: np.ndarray) -> float:
    known = np.concatenate(values)
    known = known[np.isfinite(known) & (known > 0)]
    return float(known.min()) if known.size else 1.0
