"""The HTML page of an evaluation: one file, figure included, nothing loaded from elsewhere."""

from __future__ import annotations

import base64
import html
import io
from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from pybridge.report.record import Evaluation
    from pybridge.selection.record import Selection

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em;
       color: #222; }
pre { background: #f6f6f4; padding: 1em; white-space: pre-wrap; font-size: 13px; }
table { border-collapse: collapse; font-size: 13px; margin: 1em 0; }
th, td { border-bottom: 1px solid #ddd; padding: 0.25em 0.7em; text-align: right; }
th:first-child, td:first-child { text-align: left; }
img { max-width: 100%; }
"""


def evaluation_page(evaluation: Evaluation) -> str:
    """The page as text."""
    from pybridge.report.figures import evaluation_figure, known_glyphs_only

    buffer = io.BytesIO()
    with known_glyphs_only():
        evaluation_figure(evaluation)[0].figure.savefig(buffer, dpi=110, format="png")
    picture = base64.b64encode(buffer.getvalue()).decode("ascii")
    title = html.escape(f"{evaluation.sample.outcome} by {evaluation.population.domain}")
    table = evaluation.to_frame()
    chosen = table[table["selected"]].drop(columns=["candidate", "selected"])
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f"<title>{title}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{title}</h1>",
        f"<pre>{html.escape(evaluation.summary())}</pre>",
        f'<img alt="Domain estimates and scores" src="data:image/png;base64,{picture}">',
        f"<h2>{html.escape(evaluation.selection.selected)}, every domain</h2>",
        _table(chosen),
        "<h2>Scores</h2>",
        _table(evaluation.selection.to_frame()),
        *_comparisons(evaluation.selection),
        "<h2>Where it comes from</h2>",
        f"<pre>{html.escape(evaluation.provenance.summary())}</pre>",
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _comparisons(selection: Selection) -> list[str]:
    """Auxiliary variables, references and pairs, as far as they are there."""
    parts = []
    if selection.auxiliary is not None:
        parts += ["<h2>Auxiliary variables</h2>", _table(selection.auxiliary.to_frame())]
    if not selection.default:
        parts += ["<h2>Against every reference</h2>", _table(selection.references)]
        pairs = selection.pairwise
        parts += ["<h2>Pairs, by Dong and Li</h2>", _table(pairs[pairs["better"].notna()])]
    return parts


def _table(table: pd.DataFrame) -> str:
    return str(table.to_html(index=False, na_rep="–", border=0, float_format="{:.5g}".format))
