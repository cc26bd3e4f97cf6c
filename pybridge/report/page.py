"""The HTML page of an evaluation: one file, figure included, nothing loaded from elsewhere."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from pybridge.report.markup import STYLE, picture, preformatted, table
from pybridge.selection.words import score_name

if TYPE_CHECKING:
    from pybridge.report.record import Evaluation
    from pybridge.selection.record import Selection


def evaluation_page(evaluation: Evaluation) -> str:
    """The page as text."""
    from pybridge.report.figures import evaluation_figure

    figure = picture(evaluation_figure(evaluation)[0], "Domain estimates and scores", dpi=110)
    title = html.escape(f"{evaluation.sample.outcome} by {evaluation.population.domain}")
    every = evaluation.to_frame()
    chosen = every[every["selected"]].drop(columns=["candidate", "selected"])
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f"<title>{title}</title><style>{STYLE}</style></head><body>",
        f"<h1>{title}</h1>",
        preformatted(evaluation.summary()),
        figure,
        f"<h2>{html.escape(evaluation.selection.selected)}, every domain</h2>",
        table(chosen),
        *_scores(evaluation.selection),
        *_comparisons(evaluation.selection),
        "<h2>Where it comes from</h2>",
        preformatted(evaluation.provenance.summary()),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _scores(selection: Selection) -> list[str]:
    """The score that chose, and all of them: together they would be too wide for a page."""
    scores = selection.to_frame()
    every = [
        key for key in scores.columns if key.removesuffix("_standard_error") in selection.scores
    ]
    own = [key for key in scores.columns if key not in every]
    return [
        f"<h2>Candidates by {html.escape(score_name(selection.score))}</h2>",
        table(scores[own]),
        "<h2>Every score</h2>",
        table(scores[["candidate", *every]]),
    ]


def _comparisons(selection: Selection) -> list[str]:
    """Auxiliary variables, references and pairs, as far as they are there."""
    parts = []
    if selection.auxiliary is not None:
        parts += ["<h2>Auxiliary variables</h2>", table(selection.auxiliary.to_frame())]
    if not selection.default:
        parts += ["<h2>Against every reference</h2>", table(selection.references)]
        pairs = selection.pairwise
        parts += ["<h2>Pairs, by Dong and Li</h2>", table(pairs[pairs["better"].notna()])]
    return parts
