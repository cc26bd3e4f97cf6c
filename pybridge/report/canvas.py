"""What the figures share: loading matplotlib, colours, labels, intervals.

matplotlib is loaded by the first figure only, and no global setting of it is changed.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pybridge.errors import EngineUnavailable

DIRECT_COLOUR = "#9a9a9a"
CHOSEN_COLOUR = "#1f5fa8"
NAIVE_COLOUR = "#c8732b"


def new_figure(width: float, height: float) -> Any:
    """An empty figure, in inches.

    Raises
    ------
    EngineUnavailable
        matplotlib is missing.
    """
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


def plain(text: str) -> str:
    """Text in which a dollar sign is a dollar sign (matplotlib reads pairs of them as formulas)."""
    return text.replace("$", r"\$")


def interval_lines(
    axes: Any, place: np.ndarray, low: np.ndarray, high: np.ndarray, colour: str, width: float
) -> None:
    """Intervals that exist; matplotlib warns where an end is missing."""
    here = np.isfinite(low) & np.isfinite(high)
    axes.hlines(place[here], low[here], high[here], color=colour, linewidth=width)


@contextmanager
def known_glyphs_only() -> Iterator[None]:
    """Names of domains may hold what the font does not: a box stands there, without a warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing")
        yield
