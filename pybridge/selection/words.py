"""A selection as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pybridge._checks import listed

if TYPE_CHECKING:
    from pybridge.selection.record import Selection


def score_name(key: str) -> str:
    """A score in words."""
    from pybridge.selection.record import SCORE_NAMES

    if key.startswith("split_"):
        share = float(key[len("split_") :])
        return f"{share:g}/{100 - share:g} split"
    return SCORE_NAMES[key]


def how_scored(selection: Selection) -> str:
    """The splits and the reference of the score that chose, in a few words."""
    words = [f"{selection.n_folds} folds"]
    if selection.repetitions > 1:
        words[0] += f" × {selection.repetitions} repetitions"
    if selection.score in ("db_cv", "sure"):
        words.append(f"reference {selection.reference}")
    return ", ".join(words)


def selection_text(selection: Selection) -> str:
    """The choice, why, and the table."""
    lines = [*_choice(selection), *_table(selection)]
    if selection.n_domains_scored["adjusted"] and len(selection.candidates) > 1:
        lines.append(selection.verdicts())
    for reason, domains in selection.not_scored.items():
        lines.append(f"not scored, {reason}: {len(domains)} domains ({listed(domains)})")
    for name, reason in selection.failed.items():
        lines.append(f"{name} failed: {reason}")
    lines += selection.notes
    if selection.auxiliary is not None:
        lines.append(selection.auxiliary.summary())
    return "\n".join(lines)


def _choice(selection: Selection) -> list[str]:
    if selection.default:
        return [f"nothing could be chosen; by default: {selection.default}"]
    i = selection.candidates.index(selection.selected)
    name = score_name(selection.score)
    lines = [f"selected: {selection.selected} by {name} ({how_scored(selection)})"]
    if np.isfinite(selection.reported_rmse[i]):
        lines.append(f"reported RMSE over domains: {selection.reported_rmse[i]:.4g}")
    else:
        lines.append("its score is negative: the error is too small for these labels to measure")
    ties = [one for one in selection.indistinguishable() if one != selection.selected]
    if ties:
        percent = f"{100 * selection.level:g} %"
        lines.append(f"not told apart from it at {percent}: {listed(ties, most=8)}")
    return lines


def _table(selection: Selection) -> list[str]:
    shown = selection.to_frame()[
        ["candidate", "rank", "score", "score_standard_error", "reported_rmse", "status"]
    ]
    return [shown.to_string(index=False)]
