"""The family of verdicts as a picture of gates, alone and above the scan of one scorer.

The places are computed in inches, so that the cells keep their size whatever the number of pairs
and the length of the names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pybridge._options import choose
from pybridge.report.canvas import axes_or_new, new_figure, plain, readable, several_axes
from pybridge.report.words import columns_of
from pybridge.report.tail_figures import INK, shortened, stability_figure

if TYPE_CHECKING:
    from pybridge.protocol.verdict import PairVerdict, Verdict

VERDICT_COLOURS = {"pass": "#bfe0c5", "fail": "#efb8ad", "not computed": "#dddddd"}
_LETTER = 0.07  # inches, at the size of the labels
_CELL, _ROW = 0.92, 0.46  # inches
_HEAD, _FOOT, _EDGE = 0.75, 0.35, 0.15
_GAP = 0.2  # of a cell, between the gates and the criteria
_VERDICT = 1.3  # inches, for the last column
_SCAN = 3.9  # inches, for the scan below


class _Row(NamedTuple):
    """A pair, or without one the heading of a scorer's pairs."""

    label: str
    pair: PairVerdict | None


def family_figure(verdict: Verdict, ax: Any = None, *, scorer: str | None = None) -> Any:
    """The family as a table: a row a pair, a column a gate, coloured by what each found.

    Below the verdict of each gate stand the observed value and its limit.

    Parameters
    ----------
    scorer : str, optional
        Only its pairs.
    """
    if scorer is not None:
        choose("scorer", scorer, verdict.scans)
    rows = _rows(verdict, scorer)
    if ax is None:
        width, height = _size(rows)
        ax = _free_figure(width, height).add_axes(_box(rows, width, height))
    ax = axes_or_new(ax)
    _draw(ax, rows)
    ax.set_xlabel(_mark(verdict), fontsize=8, color="#b03020" if verdict.exploratory else INK)
    return readable(ax)


def verdict_figure(verdict: Verdict, scorer: str | None = None, ax: Any = None) -> Any:
    """The table of one scorer's pairs over its scan; returns both axes."""
    name = choose("scorer", scorer or next(iter(verdict.scans)), verdict.scans)
    rows = _rows(verdict, name)
    both: Any = _two_axes(verdict, name, rows) if ax is None else several_axes(ax, 2)
    upper, lower = both
    family_figure(verdict, upper, scorer=name)
    if len(verdict.scans) > 1:
        upper.set_title(plain(f"scorer {shortened(name)}"), fontsize=10, loc="left")
        readable(upper)
    tail, gate = verdict.protocol["tail"], verdict.protocol["G5"]
    own = dict(verdict.protocol["scorer"].get(name, {}))
    q = own.get("tail.quantile", tail["quantile"])
    window = (q - gate["half_width"], q + gate["half_width"])
    stability_figure(verdict.scans[name], lower, window=window, registered=q)
    return [upper, lower]


def _two_axes(verdict: Verdict, name: str, rows: list[_Row]) -> tuple[Any, Any]:
    """Of a new figure: the table at the top, as large as it needs, the scan below."""
    names = [shortened(one) for one in verdict.scans[name].models]
    legend = 0.6 + _LETTER * max(19, *map(columns_of, names))
    wide, high = _size(rows)
    width, height = max(wide, 6.5 + legend), high + _SCAN
    figure = _free_figure(width, height)
    upper = figure.add_axes(_box(rows, width, height))
    left, bottom = 0.95, 0.55
    lower = figure.add_axes(
        (
            left / width,
            bottom / height,
            (width - left - legend - _EDGE) / width,
            (_SCAN - bottom - 0.55) / height,
        )
    )
    return upper, lower


def _free_figure(width: float, height: float) -> Any:
    """A figure whose axes stay where they are put."""
    figure = new_figure(width, height)
    figure.set_layout_engine("none")
    return figure


def _rows(verdict: Verdict, scorer: str | None) -> list[_Row]:
    out: list[_Row] = []
    several = scorer is None and len(verdict.scans) > 1
    for name in verdict.scans:
        if scorer not in (None, name):
            continue
        if several:
            out.append(_Row(f"scorer {shortened(name)}", None))
        for pair in verdict.pairs:
            if pair.scorer == name:
                a, b = shortened(pair.model_a), shortened(pair.model_b)
                between = "\n" if columns_of(a) + columns_of(b) > 30 else " "
                out.append(_Row(f"{a} –{between}{b}", pair))
    return out


def _size(rows: list[_Row]) -> tuple[float, float]:
    width = _label_width(rows) + (7 + _GAP) * _CELL + _VERDICT + 2 * _EDGE
    return width, _HEAD + _ROW * len(rows) + _FOOT


def _label_width(rows: list[_Row]) -> float:
    lines = [line for row in rows if row.pair for line in row.label.split("\n")]
    return 0.2 + _LETTER * max(map(columns_of, lines), default=1)


def _box(rows: list[_Row], width: float, height: float) -> tuple[float, float, float, float]:
    """Where the table lies at the top of a figure of this size."""
    left, inner = _EDGE + _label_width(rows), (7 + _GAP) * _CELL + _VERDICT
    tall = _ROW * len(rows)
    return left / width, (height - _HEAD - tall) / height, inner / width, tall / height


def _draw(ax: Any, rows: list[_Row]) -> None:
    from pybridge.protocol.outcomes import GATES, NAMES

    places = [k + (_GAP if gate.startswith("P") else 0.0) for k, gate in enumerate(GATES)]
    end = places[-1] + 0.5
    for y, row in enumerate(rows):
        if row.pair is None:
            ax.text(-0.5, y, plain(row.label), va="center", fontsize=9, weight="bold", color=INK)
            continue
        for x, gate in zip(places, GATES):
            _cell(ax, x, y, row.pair, gate)
        why = f" ({row.pair.first_failure})" if row.pair.first_failure else ""
        words = {"va": "center", "fontsize": 9, "weight": "bold", "color": INK}
        ax.text(end + 0.1, y, f"{row.pair.verdict}{why}", **words)
    held = [(y, plain(row.label)) for y, row in enumerate(rows) if row.pair is not None]
    ax.set_yticks([y for y, _ in held], labels=[label for _, label in held], fontsize=8)
    names = [f"{gate}\n{NAMES[gate].replace(' ', chr(10), 1)}" for gate in GATES]
    ax.set_xticks(places, labels=names, fontsize=8)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.set_xlim(-0.5, end + _VERDICT / _CELL)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    for side in ax.spines.values():
        side.set_visible(False)


def _cell(ax: Any, x: float, y: float, pair: PairVerdict, gate: str) -> None:
    from matplotlib.patches import Rectangle

    found = pair.outcome(gate)
    colour = VERDICT_COLOURS[found.verdict]
    ax.add_patch(Rectangle((x - 0.47, y - 0.45), 0.94, 0.9, facecolor=colour, linewidth=0))
    words = {"ha": "center", "va": "center", "color": INK}
    known = found.observed == found.observed and found.limit == found.limit
    ax.text(x, y - (0.17 if known else 0.0), found.verdict, fontsize=8, **words)
    if known:
        text = f"{found.observed:.4g} | {found.limit:.4g}"
        ax.text(x, y + 0.22, text, fontsize=6.5, **words)


def _mark(verdict: Verdict) -> str:
    if verdict.exploratory:
        return "EXPLORATORY RUN, not registered; in the cells: observed | limit"
    digest = verdict.protocol_sha256[:12]
    return f"registered {verdict.registered_at}, SHA-256 {digest}…; in the cells: observed | limit"
