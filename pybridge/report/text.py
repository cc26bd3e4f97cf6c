"""The page that a person reads first, as plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pybridge._checks import listed
from pybridge._version import __version__

if TYPE_CHECKING:
    from pybridge.report.record import Evaluation

_WIDEST = 5
_WHO = {"native": "pybridge", "sae": "R sae"}


def number(value: float, digits: int = 4) -> str:
    """A number for reading; a dash where there is none."""
    return "–" if not np.isfinite(value) else f"{value:.{digits}g}"


def plain_text(value: object) -> str:
    """A label on one line: what moves the cursor becomes a space."""
    return "".join(c if c.isprintable() else " " for c in str(value))


def table_text(rows: list[list[str]], header: list[str]) -> list[str]:
    """Aligned columns: the first to the left, the others to the right."""
    widths = [max(len(row[j]) for row in [header, *rows]) for j in range(len(header))]

    def line(cells: list[str]) -> str:
        first = cells[0].ljust(widths[0])
        return "  " + "  ".join([first, *(c.rjust(w) for c, w in zip(cells[1:], widths[1:]))])

    return [line(header), *(line(row).rstrip() for row in rows)]


def engine_of(fit: Any) -> str:
    """Who computed a candidate, and how."""
    item = fit.candidate
    if item.function is not None:
        return "your function"
    if item.smoothing is None:
        return "pybridge"
    who = f"{_WHO.get(item.engine, 'R ' + item.engine)}, {item.method}"
    return f"{who}, finite N" if item.finite_population else who


def evaluation_text(evaluation: Evaluation) -> str:
    """The summary of an evaluation: means, the choice and why, what to be careful with."""
    blocks = [
        _headline(evaluation),
        _choice(evaluation),
        _means(evaluation),
        _widest(evaluation),
        _left_out(evaluation),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _headline(evaluation: Evaluation) -> list[str]:
    population = evaluation.population
    n = int(evaluation.sample.whole.n.sum())
    lines = [
        f"{evaluation.sample.outcome} by {population.domain}: {population.n_domains} domains, "
        f"{n:,} labels of {population.n_units:,.0f} units (pybridge {__version__})",
    ]
    lines += [f"Assumed: {text}." for text in evaluation.assumptions]
    return lines


def _choice(evaluation: Evaluation) -> list[str]:
    selection = evaluation.selection
    i = selection.candidates.index(selection.selected)
    rmse = float(selection.reported_rmse[i])
    scored = selection.n_domains_scored[selection.score]
    lines = [
        f"Chosen: {selection.selected}, the smallest bias-corrected cross-validation score (DB-CV, "
        f"{selection.n_folds} folds,",
        f"  reference {selection.reference}: the direct estimator with the smallest variances), "
        f"over {scored} domains.",
    ]
    if np.isfinite(rmse):
        lines.append(f"  Its reported RMSE over these domains is {number(rmse)}.")
    else:
        lines.append("  Its score is negative: the error is too small for these labels to measure.")
    ties = [name for name in selection.indistinguishable() if name != selection.selected]
    if ties:
        lines.append(f"  Not told apart from it at 95 %: {listed(ties, most=8)}.")
    lines.append("  What DB-CV adds is an honest error; naive CV usually picks about as well.")
    lines.append("")
    lines += _candidate_table(evaluation)
    return lines


def _candidate_table(evaluation: Evaluation) -> list[str]:
    frame = evaluation.selection.to_frame()
    rows = []
    for row in frame.itertuples(index=False):
        fit = evaluation.fit(row.candidate)
        width = fit.upper - fit.lower
        scored = np.isfinite(evaluation.selection.domain_scores[evaluation.selection.score]).any(0)
        mark = " *" if row.candidate == evaluation.selection.selected else ""
        rows.append(
            [
                f"{row.candidate}{mark}",
                number(row.score),
                number(row.score_standard_error, 3),
                number(row.reported_rmse),
                number(_root(row.naive)),
                number(_mean(width[scored])),
                engine_of(fit),
            ]
        )
    header = ["candidate", "DB-CV", "± se", "RMSE", "naive RMSE", "mean width", "computed by"]
    lines = table_text(rows, header)
    for name, reason in evaluation.selection.failed.items():
        lines.append(f"  {name} has no score: {reason}")
    return lines


def _mean(values: np.ndarray) -> float:
    kept = values[np.isfinite(values)]
    return float(kept.mean()) if kept.size else float("nan")


def _root(value: float) -> float:
    return float(np.sqrt(value)) if value >= 0 else float("nan")


def _means(evaluation: Evaluation) -> list[str]:
    percent = f"{100 * evaluation.level:g} % interval"
    lines = [
        f"Means by {evaluation.aggregate_by} (design-based, from all covariances of the domains)"
    ]
    rows = []
    for level, aggregate in evaluation.aggregates.items():
        for row in aggregate.to_frame().itertuples(index=False):
            name = (
                "all" if level == "all" else plain_text(f"{aggregate.taxonomy_level} {row.group}")
            )
            rows.append(
                [
                    name,
                    f"{row.n_labelled:,}",
                    f"{row.size:,.0f}",
                    number(row.estimate),
                    number(row.standard_error, 3),
                    f"{number(row.lower)} to {number(row.upper)}",
                ]
            )
    return lines + table_text(rows, ["group", "labels", "units", "mean", "se", percent])


def _widest(evaluation: Evaluation) -> list[str]:
    table = evaluation.to_frame()
    chosen = table[table["selected"]].assign(width=lambda t: t["upper"] - t["lower"])
    known = chosen[np.isfinite(chosen["width"])]
    if not len(known):
        return []
    widest = known.sort_values("width", ascending=False, kind="stable").head(_WIDEST)
    rows = [
        [
            plain_text(row.domain),
            f"{row.n_labelled:,}",
            f"{row.size:,.0f}",
            number(row.estimate),
            f"{number(row.lower)} to {number(row.upper)}",
            row.status,
        ]
        for row in widest.itertuples(index=False)
    ]
    percent = f"{100 * evaluation.level:g} % interval"
    return [f"Widest intervals of {evaluation.selection.selected}"] + table_text(
        rows, [evaluation.population.domain, "labels", "units", "mean", percent, "status"]
    )


def _left_out(evaluation: Evaluation) -> list[str]:
    selection = evaluation.selection
    count = sum(len(domains) for domains in selection.not_scored.values())
    lines = []
    if count:
        lines.append(
            f"Not scored: {count} of {evaluation.population.n_domains} domains "
            "(they have estimates, but took no part in the choice)"
        )
        for reason, domains in selection.not_scored.items():
            lines.append(f"  {reason}: {plain_text(listed(domains, most=8))}")
    statuses = evaluation.selected.status.astype(str)
    for word, text in (
        ("out_of_sample", "without labels, predicted from the model alone (out_of_sample)"),
        ("constant_outcome", "whose labels are all equal (constant_outcome)"),
        ("negative_mse", "with a negative error estimate, not clipped (negative_mse)"),
    ):
        here = statuses == word
        if here.any():
            names = evaluation.population.domains[here]
            lines.append(f"{int(here.sum())} domains {text}: {plain_text(listed(names, most=8))}")
    return lines + _too_narrow(evaluation) + list(selection.notes)


def _too_narrow(evaluation: Evaluation) -> list[str]:
    """What a reader must know before trusting the intervals of a plain area-level model."""
    lines = []
    for fit in evaluation.fits:
        few = fit.too_narrow
        if few.any():
            names = evaluation.population.domains[few]
            lines.append(
                f"{fit.candidate.name}: intervals too narrow in {int(few.sum())} domains of few "
                f"units, whose means scatter by more than the model's variance (s²/N > σ²): "
                f"{plain_text(listed(names))}"
            )
    return lines
