"""A call of evd, ismev or evir as a plain R script, data included, as an R user would write it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import resources
from typing import Any

import numpy as np

from pybridge import _r_text as r
from pybridge.engines._tail_request import TailRequest

_LONG = 500

_HEAD = """\
# {call}
# Numbers are written in hexadecimal: R reads them to the last bit.
"""
_UNIT = """\
# What is in the scores' units is divided by a power of two near their scale, which rounds nothing:
# R's optimisers depend on the units.
"""


def tail_script(shim: str, asked: TailRequest, inputs: Mapping[str, Any]) -> str:
    """The script; it leaves R's object in ``fit`` or ``found``, the user's in ``result``."""
    from pybridge.engines._evd_script import EVD
    from pybridge.engines._ismev_script import ISMEV

    write: Callable[[TailRequest, Mapping[str, Any]], str] = {**EVD, **ISMEV}[shim]
    call = asked.summary().encode("ascii", "backslashreplace").decode("ascii").replace("\n", " ")
    head = _HEAD.format(call=call)
    unit = inputs.get("unit", 1.0)
    if unit != 1.0:
        head += _UNIT
    return head + f"unit <- {r.number(unit)}\n" + write(asked, inputs) + "print(result)\n"


def vector(name: str, values: Any) -> str:
    """``name <- c(...)``, or a matrix; long ones in long lines, which Rscript reads faster."""
    array = np.asarray(values)
    if array.ndim == 2:
        flat = _joined(r.number(item) for item in array.ravel(order="F"))
        return f"{name} <- matrix({flat}, {array.shape[0]}, {array.shape[1]})\n"
    return f"{name} <- {_joined(r.number(item) for item in array.ravel())}\n"


def _joined(items: Iterable[str]) -> str:
    words = list(items)
    if len(words) < _LONG:
        return r.vector(words)
    lines = [", ".join(words[i : i + 100]) for i in range(0, len(words), 100)]
    return "c(" + ",\n  ".join(lines) + ")"


def call_of(function: str, first: Iterable[str], arguments: Mapping[str, Any]) -> str:
    """``function(first, name = value, ...)``."""
    words = [*first, *(f"{r.name(name)} = {_value(name, v)}" for name, v in arguments.items())]
    return f"{function}({', '.join(words)})"


def _value(name: str, item: Any) -> str:
    if name == "start" or isinstance(item, Mapping):
        inner = ", ".join(f"{r.name(str(key))} = {_value('', part)}" for key, part in item.items())
        return f"list({inner})"
    return r.value(item)


def shim_source(file: str, *names: str) -> str:
    """The bridge's own R functions, as they stand in a file of its shims."""
    text = (resources.files("pybridge.r") / "shims" / file).read_text(encoding="utf-8")
    parts = []
    for name in names:
        start = text.index(f"\n{name} <- function") + 1
        parts.append(text[start : text.index("\n}\n", start) + 3])
    return "".join(parts)
