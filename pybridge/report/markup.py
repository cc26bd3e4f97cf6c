"""Parts of the HTML pages: the style, preformatted text, tables, pictures."""

from __future__ import annotations

import base64
import html
import io
import re
from typing import Any

import numpy as np
import pandas as pd

from pybridge.report.canvas import known_glyphs_only
from pybridge.report.words import columns_of

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em;
       color: #222; }
pre { background: #f6f6f4; padding: 1em; white-space: pre-wrap; font-size: 13px; }
pre i { display: inline-block; font-style: normal; white-space: nowrap; }
.wide { overflow-x: auto; margin: 1em 0; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid #ddd; padding: 0.25em 0.7em; text-align: right; }
th { vertical-align: bottom; }
td { white-space: nowrap; }
.text { text-align: left; white-space: normal; }
img { max-width: 100%; }
"""

# Letters that take two columns of a terminal.
_WIDE = re.compile(
    "[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3"
    "\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6"
    "\U0001f300-\U0001faff]+"
)


def preformatted(text: str) -> str:
    """Text as it is; in lines with columns wide letters take two, whatever the browser's fonts."""
    lines = html.escape(text).split("\n")
    return f"<pre>{chr(10).join(_aligned(line) for line in lines)}</pre>"


def _aligned(line: str) -> str:
    def boxed(found: re.Match[str]) -> str:
        return f'<i style="width:{columns_of(found[0])}ch">{found[0]}</i>'

    return _WIDE.sub(boxed, line) if "  " in line.strip() else line


def table(frame: pd.DataFrame) -> str:
    """A table: numbers to the right, text to the left; a wide one scrolls by itself."""
    numeric = [pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes]
    kinds = ["" if number else ' class="text"' for number in numeric]
    # Long names of columns may break after an underscore.
    names = [html.escape(str(name)).replace("_", "_<wbr>") for name in frame.columns]
    lines = ["".join(f"<th{kind}>{name}</th>" for kind, name in zip(kinds, names))]
    for row in frame.itertuples(index=False, name=None):
        lines.append("".join(f"<td{kind}>{_cell(value)}</td>" for kind, value in zip(kinds, row)))
    head, *body = (f"<tr>{line}</tr>" for line in lines)
    rows = "\n".join(body)
    return (
        f'<div class="wide"><table><thead>{head}</thead>\n<tbody>\n{rows}\n</tbody></table></div>'
    )


def _cell(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return "–"
    if isinstance(value, (float, np.floating)):
        return f"{value:.5g}"
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    return html.escape(str(value))


def picture(axes: Any, words: str, *, dpi: int) -> str:
    """The figure of these axes, in the page itself."""
    buffer = io.BytesIO()
    with known_glyphs_only():
        axes.figure.savefig(buffer, dpi=dpi, format="png")
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    return f'<img alt="{html.escape(words)}" src="data:image/png;base64,{data}">'
