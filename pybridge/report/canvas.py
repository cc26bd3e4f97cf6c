"""What the figures share: loading matplotlib, colours, labels, intervals.

matplotlib is loaded by the first figure only, and no global setting of it is changed.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pybridge._checks import listed
from pybridge.errors import EngineUnavailable, InputError

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
    return _part("figure", "Figure")(figsize=(width, height), layout="constrained")


def _part(module: str, name: str) -> Any:
    """A class of matplotlib, or another of its objects."""
    try:
        return getattr(importlib.import_module(f"matplotlib.{module}"), name)
    except ImportError as error:
        raise EngineUnavailable(
            "figures need matplotlib",
            code="missing_package",
            field="plot",
            expected="matplotlib",
            got="not installed",
            hint="pip install 'pybridge[plot]', or Debian's python3-matplotlib.",
        ) from error


def axes_or_new(ax: Any, width: float = 5.5, height: float = 4.2) -> Any:
    """The axes to draw on: the user's own, or those of a new figure of so many inches.

    Raises
    ------
    InputError
        ``ax`` is something else.
    EngineUnavailable
        matplotlib is missing.
    """
    if ax is None:
        return new_figure(width, height).subplots()
    if isinstance(ax, _part("axes", "Axes")):
        return ax
    raise _no_axes(ax, "a matplotlib Axes")


def several_axes(ax: Any, count: int) -> np.ndarray:
    """So many axes of the user's own in an array or a list, as an array (count,).

    Raises
    ------
    InputError
        ``ax`` is something else, or their number is another one.
    """
    kind, given = _part("axes", "Axes"), _flat(ax)
    if len(given) == count and all(isinstance(one, kind) for one in given):
        found = np.empty(count, dtype=object)
        found[:] = given
        return ax if isinstance(ax, np.ndarray) and ax.shape == (count,) else found
    raise _no_axes(ax, f"{count} matplotlib Axes, as from plt.subplots(1, {count})")


def _flat(ax: Any) -> list[Any]:
    """All items of arrays and lists, and of those in them."""
    if isinstance(ax, np.ndarray):
        return list(ax.ravel())
    if isinstance(ax, (list, tuple)):
        return [one for part in ax for one in _flat(part)]
    return [ax]


def _no_axes(ax: Any, expected: str) -> InputError:
    got = type(ax).__name__
    if isinstance(ax, (np.ndarray, list, tuple)):
        given = _flat(ax)
        got += f" of {len(given)}: {listed(type(one).__name__ for one in given)}"
    return InputError(
        f"there is nothing to draw on: ax must be {expected}",
        code="not_axes",
        field="ax",
        expected=expected,
        got=got,
        hint="Without ax a new figure is made.",
    )


def plain(text: str) -> str:
    """Text in which a dollar sign is a dollar sign (matplotlib reads pairs of them as formulas)."""
    return text.replace("$", r"\$")


def interval_lines(
    axes: Any, place: np.ndarray, low: np.ndarray, high: np.ndarray, colour: str, width: float
) -> None:
    """Intervals that exist; matplotlib warns where an end is missing."""
    here = np.isfinite(low) & np.isfinite(high)
    axes.hlines(place[here], low[here], high[here], color=colour, linewidth=width)


def few_log_ticks(axes: Any) -> None:
    """Plain numbers on a log axis, also where it spans less than a power of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    low, high = axes.get_xlim()
    short = np.log10(high / low) < 1.7
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if short else (1.0,)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


# Fonts with letters that matplotlib's own one lacks, in the order in which they are tried.
_FURTHER_FONTS = (
    *("Noto Sans CJK KR", "Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans KR", "Nanum Gothic"),
    *("NanumGothic", "NanumBarunGothic", "Baekmuk Gulim", "UnDotum", "Malgun Gothic"),
    *("Apple SD Gothic Neo", "Arial Unicode MS", "Microsoft YaHei", "WenQuanYi Micro Hei"),
    *("WenQuanYi Zen Hei", "IPAexGothic", "Droid Sans Fallback", "Noto Sans Arabic"),
    *("Noto Sans Devanagari", "Noto Sans Thai", "Noto Emoji", "Symbola", "Unifont"),
)


def readable(axes: Any) -> Any:
    """The axes, with a further font for names in letters that matplotlib's own does not have.

    Only fonts that are installed; a box stays where none has the letter.
    """
    texts = [text for text in axes.findobj(_part("text", "Text")) if not _latin(text.get_text())]
    if texts:
        there = {font.name for font in _part("font_manager", "fontManager").ttflist}
        further = [name for name in _FURTHER_FONTS if name in there]
        for text in texts:
            usual = [name for name in text.get_fontfamily() if name not in further]
            text.set_fontfamily([*usual, *further])
    return axes


def _latin(text: str) -> bool:
    """Whether all letters are of those that every font has: up to Greek and Cyrillic."""
    return text.isascii() or all(
        ord(letter) < 0x0530 or 0x2000 <= ord(letter) < 0x2300 for letter in text
    )


@contextmanager
def known_glyphs_only() -> Iterator[None]:
    """Names of domains may hold what the font does not: a box stands there, without a warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing")
        yield
