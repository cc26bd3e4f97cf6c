"""Numbers, labels and tables as plain text."""

from __future__ import annotations

import unicodedata

import numpy as np


def number(value: float, digits: int = 4) -> str:
    """A number for reading; a dash where there is none."""
    return "–" if not np.isfinite(value) else f"{value:.{digits}g}"


def counted(count: int, noun: str) -> str:
    """A number of things: "1 domain", "2 domains"."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def percent(level: float) -> str:
    """A confidence level in per cent."""
    return f"{100 * level:g} %"


def plain_text(value: object) -> str:
    """A label on one line: what moves the cursor becomes a space."""
    return "".join(c if c.isprintable() else " " for c in str(value))


def columns_of(text: str) -> int:
    """The columns that a text takes in a terminal: two for a wide character, none for an accent."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(bool(unicodedata.combining(c)) for c in text)


def shortened(text: str, most: int) -> str:
    """The text, cut in the middle where it takes more columns than that."""
    if columns_of(text) <= most:
        return text
    head, tail = (most - 1) * 2 // 3, (most - 1) // 3
    while columns_of(text[:head] + text[-tail:]) > most - 1:
        head -= 1
    return f"{text[:head]}…{text[-tail:]}"


def table_text(rows: list[list[str]], header: list[str]) -> list[str]:
    """Aligned columns: the first to the left, the others to the right."""
    shown = [[shortened(row[0], 48), *row[1:]] for row in rows]
    widths = [max(columns_of(row[j]) for row in [header, *shown]) for j in range(len(header))]

    def line(cells: list[str]) -> str:
        blanks = [" " * (width - columns_of(cell)) for cell, width in zip(cells, widths)]
        rest = [blank + cell for cell, blank in zip(cells[1:], blanks[1:])]
        return "  " + "  ".join([cells[0] + blanks[0], *rest])

    return [line(header), *(line(row).rstrip() for row in shown)]
