"""The HTML page of a verdict: one file, figures included, nothing loaded from elsewhere."""

from __future__ import annotations

import base64
import html
import io
from typing import TYPE_CHECKING, Any

from pybridge._record import plain
from pybridge.report.canvas import known_glyphs_only
from pybridge.report.page import _STYLE, _table
from pybridge.report.tail_family import family_figure, verdict_figure
from pybridge.report.tail_figures import diagnostic_figure

if TYPE_CHECKING:
    from pybridge.protocol.verdict import Verdict

_MARK = (
    '<p style="background:#efb8ad;padding:0.5em 1em"><b>EXPLORATORY RUN.</b> The protocol was not '
    "registered; nothing here is confirmed.</p>"
)


def verdict_page(verdict: Verdict) -> str:
    """The page as text: the family, every gate's sentence, scans, fits, the protocol."""
    title = html.escape(str(verdict.protocol["title"]) or "Tail-shape claims")
    mark = _MARK if verdict.exploratory else ""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f"<title>{title}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{title}</h1>{mark}",
        f"<p>{verdict.n_passed} of {len(verdict.pairs)} pairs pass every gate and criterion.</p>",
    ]
    if len(verdict.scans) > 1:
        parts.append(_picture(family_figure(verdict), "The family"))
    for scorer in verdict.scans:
        parts.append(_picture(verdict_figure(verdict, scorer)[0], f"Gates and scan, {scorer}"))
    odd = verdict.findings_frame().drop(columns="run")
    if len(odd):
        parts += ["<h2>What is odd about the scores, beside the verdict</h2>", _table(odd)]
    parts += ["<h2>Every gate</h2>", *(_pair(one) for one in verdict.pairs)]
    parts.append("<h2>Fits</h2>")
    for name, fit in verdict.fits.items():
        parts.append(f"<h3>{html.escape(name)}</h3><pre>{html.escape(fit.summary())}</pre>")
        if fit.usable:
            parts.append(_picture(diagnostic_figure(fit)[0], f"Fit of {name}"))
    parts += [
        "<h2>Scan, beside the verdict and never part of it</h2>",
        _table(verdict.scan_frame()),
    ]
    parts += ["<h2>Protocol</h2>", f"<pre>{html.escape(_protocol(verdict))}</pre>"]
    parts += [f"<pre>{html.escape(verdict.provenance.summary())}</pre>{mark}", "</body></html>"]
    return "\n".join(parts) + "\n"


def _pair(pair: Any) -> str:
    return f"<pre>{html.escape(pair.summary())}</pre>"


def _picture(axes: Any, words: str) -> str:
    buffer = io.BytesIO()
    with known_glyphs_only():
        axes.figure.savefig(buffer, dpi=100, format="png")
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    return f'<img alt="{html.escape(words)}" src="data:image/png;base64,{data}">'


def _protocol(verdict: Verdict) -> str:
    """Registration, digests and every value."""
    lines = [
        f"registered: {verdict.registered_at or 'no'}",
        f"SHA-256 of the protocol: {verdict.protocol_sha256}",
        f"SHA-256 of the data: {verdict.data_sha256}",
    ]
    for key, value in verdict.protocol.items():
        lines.append(f"{key} = {plain(value)!r}")
    return "\n".join(lines)
