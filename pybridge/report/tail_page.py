"""The HTML page of a verdict: one file, figures included, nothing loaded from elsewhere."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from pybridge._record import plain
from pybridge.report.markup import STYLE, picture, preformatted, table
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
        f"<title>{title}</title><style>{STYLE}</style></head><body>",
        f"<h1>{title}</h1>{mark}",
        f"<p>{verdict.n_passed} of {len(verdict.pairs)} pairs pass every gate and criterion.</p>",
    ]
    if len(verdict.scans) > 1:
        parts.append(picture(family_figure(verdict), "The family", dpi=100))
    for scorer in verdict.scans:
        words = f"Gates and scan, {scorer}"
        parts.append(picture(verdict_figure(verdict, scorer)[0], words, dpi=100))
    odd = verdict.findings_frame().drop(columns="run")
    if len(odd):
        parts += ["<h2>What is odd about the scores, beside the verdict</h2>", table(odd)]
    parts += ["<h2>Every gate</h2>", *(preformatted(one.summary()) for one in verdict.pairs)]
    parts.append("<h2>Fits</h2>")
    for name, fit in verdict.fits.items():
        parts.append(f"<h3>{html.escape(name)}</h3>{preformatted(fit.summary())}")
        if fit.usable:
            parts.append(picture(diagnostic_figure(fit)[0], f"Fit of {name}", dpi=100))
    parts += [
        "<h2>Scan, beside the verdict and never part of it</h2>",
        table(verdict.scan_frame()),
    ]
    parts += ["<h2>Protocol</h2>", preformatted(_protocol(verdict))]
    parts += [f"{preformatted(verdict.provenance.summary())}{mark}", "</body></html>"]
    return "\n".join(parts) + "\n"


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
