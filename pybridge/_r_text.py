"""Values as R source text that R reads back to the last bit, in any locale."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from pybridge._integers import NA_INTEGER, Integers

_LONG = 500


def number(value: float) -> str:
    """A double: whole numbers as they are, others in hexadecimal, which R reads exactly."""
    value = float(value)
    if math.isnan(value):
        return "NA_real_"
    if math.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    if value.is_integer() and abs(value) < 2**53:
        return f"{value:.0f}" if value or math.copysign(1, value) > 0 else "-0"
    return value.hex()


def text(value: str) -> str:
    """A string literal with everything but plain ASCII escaped."""
    out = []
    for char in value:
        if char in '"\\':
            out.append("\\" + char)
        elif " " <= char <= "~":
            out.append(char)
        else:
            wide = ord(char) > 0xFFFF
            out.append(f"\\{'U' if wide else 'u'}{{{ord(char):x}}}")
    return '"' + "".join(out) + '"'


def vector(items: Iterable[str]) -> str:
    """``c(...)`` over several lines: R's parser has a limit on the length of one.

    Long ones in long lines, since Rscript reads an expression of many lines slowly: its time
    grows with their square.
    """
    words = list(items)
    if len(words) >= _LONG:
        rows = (", ".join(words[i : i + 100]) for i in range(0, len(words), 100))
        return "c(" + ",\n  ".join(rows) + ")"
    lines, line = [], ""
    for item in words:
        if len(line) + len(item) > 90:
            lines.append(line)
            line = ""
        line += item + ", "
    return "c(" + "\n  ".join([*lines, line]).rstrip(", ") + ")"


def value(item: Any) -> str:
    """Any option: NULL, logical, number, string, vector, or a named list."""
    if item is None:
        return "NULL"
    if isinstance(item, (bool, np.bool_)):
        return "TRUE" if item else "FALSE"
    if isinstance(item, str):
        return text(item)
    if isinstance(item, Mapping):
        inner = ", ".join(f"{name(str(key))} = {value(part)}" for key, part in item.items())
        return f"list({inner})"
    if isinstance(item, (list, tuple, np.ndarray)):
        return vector(value(part) for part in item)
    return number(item)


def name(word: str) -> str:
    """An argument's name, in backticks where R would not read it plainly."""
    plain = word.replace(".", "").replace("_", "").isalnum() and word.isascii()
    return word if plain and not word[0].isdigit() and word[0] != "_" else f"`{word}`"


EXACT_NUMBERS = (
    "# Numbers are written in hexadecimal: R reads them to the last bit, which it does not always",
    "# do with decimals.",
)


def ascii_line(line: str) -> str:
    """A line of ASCII, for a comment."""
    return line.encode("ascii", "backslashreplace").decode("ascii").replace("\n", " ")


def matrix(values: Any, *, rows: Any = None, columns: Any = None) -> str:
    """A matrix, column by column, with its names where there are any."""
    array = np.asarray(values, dtype=np.float64)
    flat = vector(map(number, array.ravel(order="F")))
    text_of = f"matrix({flat},\n  nrow = {array.shape[0]}"
    if rows is None and columns is None:
        return text_of + ")"
    names = (
        "NULL" if item is None else vector(text(str(word)) for word in item)
        for item in (rows, columns)
    )
    return text_of + f", dimnames = list({', '.join(names)}))"


def column(values: Any) -> str:
    """A column of a table as it crosses: numbers, flags, text, or codes and levels."""
    if isinstance(values, Mapping):
        codes = np.asarray(values["codes"]) + 1
        places = vector("NA" if code == 0 else number(code) for code in codes)
        levels = vector(text(str(level)) for level in values["levels"])
        return f"factor({levels}[{places}],\n  levels = {levels})"
    if isinstance(values, Integers):
        return vector("NA_integer_" if v == NA_INTEGER else f"{v}L" for v in values.tolist())
    array = np.asarray(values)
    if array.dtype.kind == "b":
        return vector("TRUE" if item else "FALSE" for item in array)
    if array.dtype.kind in "fiu":
        return vector(number(item) for item in array)
    return vector("NA_character_" if item is None else text(str(item)) for item in array.tolist())


def frame(columns: Mapping[str, Any]) -> str:
    """``data.frame(...)`` of named columns."""
    # A name in quotes may be escaped, one in backticks may not.
    lines = [
        f"  {name(key) if key.isascii() else text(key)} = {column(item)}"
        for key, item in columns.items()
    ]
    inside = ",\n".join([*lines, "  check.names = FALSE, stringsAsFactors = FALSE"])
    return f"data.frame(\n{inside}\n)"


def item(value_: Any) -> str:
    """An input of a shim: a matrix, a named list of inputs, or what `value` writes."""
    if isinstance(value_, Mapping):
        inner = (f"{name(str(key))} = {item(part)}" for key, part in value_.items())
        return f"list({', '.join(inner)})"
    if isinstance(value_, np.ndarray) and value_.ndim == 2:
        return matrix(value_)
    return value(value_)
