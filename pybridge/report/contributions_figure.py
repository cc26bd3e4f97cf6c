"""The figure of what each piece of information brings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pybridge.report.canvas import axes_or_new, readable
from pybridge.report.figures import CHOSEN_COLOUR, NAIVE_COLOUR, _plain

if TYPE_CHECKING:
    from pybridge.selection.contributions_record import Contributions


def contributions_figure(found: Contributions, ax: Any = None) -> Any:
    """A bar a step: the root of the mean reported MSE, and what the step took off it.

    With a truth, a mark shows the true RMSE.
    """
    table = found.to_frame()
    ax = axes_or_new(ax, 7.5, 0.55 * len(table) + 1.3)
    place = np.arange(len(table), dtype=float)
    value = table["rmse"].to_numpy()
    ax.barh(place, np.nan_to_num(value), height=0.6, color=CHOSEN_COLOUR, label="reported")
    ends = value
    if found.truth is not None:
        true = table["true_rmse"].to_numpy()
        ax.plot(true, place, "D", color=NAIVE_COLOUR, markersize=6, label="true")
        ends = np.fmax(value, true)
    top = float(np.nanmax(ends)) if np.isfinite(ends).any() else 1.0
    for y, end, less in zip(place, np.nan_to_num(ends), table["mse_reduction"]):
        if np.isfinite(less):
            words = f"MSE {-100 * less:+.0f} %".replace("-", "\N{MINUS SIGN}")
            ax.text(end + 0.02 * top, y, words, va="center", fontsize=8)
    names = [
        f"{name}\n(+ {brings})" if brings else name
        for name, brings in zip(table["step"], table["brings"])
    ]
    ax.set_yticks(place, names, fontsize=8)
    ax.invert_yaxis()
    ax.set_xlim(0.0, 1.2 * top)
    ax.set_xlabel(_plain(f"RMSE of {found.outcome} over {table['n_domains'].iloc[0]} domains"))
    ax.set_title("what each piece of information brings (MSE against the step before)", fontsize=9)
    if found.truth is not None:
        ax.legend(fontsize=8, loc="lower right", frameon=False)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return readable(ax)
