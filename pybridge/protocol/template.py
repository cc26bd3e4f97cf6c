"""The commented protocol file that ``pybridge protocol plan`` writes; valid as it is."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from pybridge.protocol._schema import KEYS, REQUIRED, SECTIONS

_HEAD = """\
# A pre-registered claim about the shapes of two or more score distributions' tails.
#
# Decide every value BEFORE looking at the scores, then:
#   pybridge protocol register claim.toml
#   pybridge protocol run claim.toml scores.csv --out results
# Values marked EXAMPLE have no default: they say what is the same in practice, in the units of
# your scores, and nobody but you can know that. Every other value is the default.
"""
_TAIL = """
# Where a scorer wants other values of [tail], [transform], [G1] or [G2], for example:
# [scorer.detoxify]
# transform.kind = "logit"
# G1.margin = 0.01
"""


def protocol_template(
    *, models: Sequence[str] | None = None, scorers: Sequence[str] | None = None
) -> str:
    """The text of a plan.

    Parameters
    ----------
    models, scorers : sequence of str, optional
        Written into it instead of the examples.

    Returns
    -------
    str
        TOML that :func:`pybridge.protocol.reading.load_protocol` accepts.
    """
    given = {"models": models, "scorers": scorers}
    lines = [_HEAD]
    section = ""
    for key in KEYS:
        if key.section != section:
            section = key.section
            lines.append("")
            lines += textwrap.wrap(
                SECTIONS[section], 96, initial_indent="# ", subsequent_indent="# "
            )
            lines.append(f"[{section}]")
        value = key.example if key.default is REQUIRED else key.default
        if key.field == "title":
            value = key.example
        decide = key.decide
        if given.get(key.field):
            value, decide = list(given[key.field] or ()), False
        if key.comment:
            mark = "EXAMPLE, decide: " if decide else ""
            lines += textwrap.wrap(
                mark + key.comment, 96, initial_indent="# ", subsequent_indent="# "
            )
        lines.append(f"{key.name} = {toml_value(value)}")
    return "\n".join(lines) + "\n" + _TAIL


def toml_value(value: Any) -> str:
    """Text, whole number, number, or a list of these, as TOML."""
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    if isinstance(value, str):
        out = []
        for char in value:
            if char in '"\\':
                out.append("\\" + char)
            elif ord(char) < 32 or ord(char) == 127:
                out.append(f"\\u{ord(char):04x}")
            else:
                out.append(char)
        return '"' + "".join(out) + '"'
    return repr(value)
