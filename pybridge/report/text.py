"""The page that a person reads first, as plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pybridge._checks import listed
from pybridge._version import __version__
from pybridge.report.choice import candidate_table, choice
from pybridge.report.words import counted, number, percent, plain_text, table_text

if TYPE_CHECKING:
    from pybridge.report.record import Evaluation

_WIDEST = 5
# Of a level with more groups than this the largest are shown; all are in means.csv.
_MOST_GROUPS = 20


def evaluation_text(evaluation: Evaluation) -> str:
    """The summary of an evaluation: means, the choice and why, what to be careful with."""
    blocks = [
        _headline(evaluation),
        choice(evaluation),
        candidate_table(evaluation),
        _auxiliary(evaluation),
        _means(evaluation),
        _widest(evaluation),
        _left_out(evaluation),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _headline(evaluation: Evaluation) -> list[str]:
    population = evaluation.population
    n = int(evaluation.sample.whole.n.sum())
    outcome, domain = plain_text(evaluation.sample.outcome), plain_text(population.domain)
    domains, labels = counted(population.n_domains, "domain"), counted(n, "label")
    lines = [
        f"{outcome} by {domain}: {domains}, {labels} of {population.n_units:,.0f} units "
        f"(pybridge {__version__})",
    ]
    lines += [f"Assumed: {text}." for text in evaluation.assumptions]
    return lines


def _auxiliary(evaluation: Evaluation) -> list[str]:
    found = evaluation.selection.auxiliary
    if found is None:
        return []
    several = len(set(found.sets)) > 1
    rows = []
    for row in found.to_frame().itertuples(index=False):
        name = f"{row.set}: {row.auxiliary}" if several else row.auxiliary
        values = (row.slope, row.unit_correlation, row.domain_correlation)
        rows.append([plain_text(name), *(number(value, 3) for value in values)])
    lines = [f"Auxiliary variables and {plain_text(evaluation.sample.outcome)}"]
    header = ["set: variable" if several else "variable", "slope"]
    lines += table_text(rows, [*header, "corr. of units", "corr. of domains"])
    lines.append(
        f"  (domains: {found.n_domains} with two labels or more, by {plain_text(found.direct)}, "
        "sampling error taken out)"
    )
    return lines


def _means(evaluation: Evaluation) -> list[str]:
    by = plain_text(evaluation.aggregate_by)
    lines = [f"Means by {by} (design-based, from all covariances of the domains)"]
    rows, left = [], []
    for level, aggregate in evaluation.aggregates.items():
        table = aggregate.to_frame()
        shown = table
        if len(table) > _MOST_GROUPS:
            shown = table.nlargest(_MOST_GROUPS, "size").sort_index()
            left.append(f"{len(table) - len(shown)} smaller groups of {aggregate.taxonomy_level}")
        for row in shown.itertuples(index=False):
            name = "all" if level == "all" else f"{aggregate.taxonomy_level} {row.group}"
            rows.append(
                [
                    plain_text(name),
                    f"{row.n_labelled:,}",
                    f"{row.size:,.0f}",
                    number(row.estimate),
                    number(row.standard_error, 3),
                    f"{number(row.lower)} to {number(row.upper)}",
                ]
            )
    interval = f"{percent(evaluation.level)} interval"
    lines += table_text(rows, ["group", "labels", "units", "mean", "se", interval])
    return lines + [f"  and {text}, in means.csv" for text in left]


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
    interval = f"{percent(evaluation.level)} interval"
    domain = plain_text(evaluation.population.domain)
    title = f"Widest intervals of {plain_text(evaluation.selection.selected)}"
    if len(known) > len(widest):
        title += f" (of {len(known)})"
    return [title] + table_text(rows, [domain, "labels", "units", "mean", interval, "status"])


def _left_out(evaluation: Evaluation) -> list[str]:
    selection = evaluation.selection
    count = sum(len(domains) for domains in selection.not_scored.values())
    lines = []
    if count and not selection.default:
        lines.append(
            f"Not scored: {count} of {evaluation.population.n_domains} domains "
            "(they have estimates, but no part in the choice and in the reported RMSE)"
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
            several = counted(int(here.sum()), "domain")
            lines.append(f"{several} {text}: {plain_text(listed(names, most=8))}")
    notes = selection.notes[1:] if selection.default else selection.notes
    return lines + _outside(evaluation) + _too_narrow(evaluation) + list(notes)


def _outside(evaluation: Evaluation) -> list[str]:
    """Estimates of a proportion that are none: flagged, never clipped."""
    low, high = evaluation.sample.cells.outcome_range
    estimate = evaluation.selected.estimate
    if low < 0 or high > 1:
        return []
    with np.errstate(invalid="ignore"):
        outside = (estimate < -1e-12) | (estimate > 1 + 1e-12)
    if not outside.any():
        return []
    names = plain_text(listed(evaluation.population.domains[outside], most=8))
    count = counted(int(outside.sum()), "domain")
    return [f"{count} with an estimate outside [0, 1], not clipped: {names}"]


def _too_narrow(evaluation: Evaluation) -> list[str]:
    """What a reader must know before trusting the intervals of a plain area-level model."""
    named = [
        f"{plain_text(fit.candidate.name)} {int(fit.too_narrow.sum())}"
        for fit in evaluation.fits
        if fit.too_narrow.any()
    ]
    if not named:
        return []
    text = (
        "Intervals too narrow where domains have few units, whose means scatter by more than the "
        f"model's variance (s²/N > σ²), in so many domains: {listed(named, most=12)}"
    )
    few = evaluation.selected.too_narrow
    if few.any():
        own = plain_text(listed(evaluation.population.domains[few], most=8))
        text += f"; of {plain_text(evaluation.selection.selected)}: {own}"
    return [text]
