"""Figures of area-level fits: each takes a fit and optional axes, and returns the axes.

matplotlib is loaded by the first call only, and no global setting of it is changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Union

import numpy as np
from scipy.special import betaincinv, ndtri

from pybridge._options import choose
from pybridge.report.canvas import axes_or_new, few_log_ticks, readable, several_axes
from pybridge.report.figures import CHOSEN_COLOUR, DIRECT_COLOUR, NAIVE_COLOUR, _figure, _plain

if TYPE_CHECKING:
    from pybridge.smoothing.fay_herriot_fit import FayHerriotFit
    from pybridge.smoothing.leave_domain_out import LeaveDomainOut
    from pybridge.smoothing.taxonomy_fit import TaxonomyFit

    Fit = Union[FayHerriotFit, TaxonomyFit]

INK = "#333333"
BAND = "#cfdced"
# More domains than this make an unreadable axis: the labels are left out then.
_MOST_LABELS = 70
_LONGEST_LABEL = 24
# A domain is named in a plot of points only where it stands out, and never more than a few.
_MOST_NAMED = 4


def fit_figure(fit: Fit, kind: str = "overview", ax: Any = None) -> Any:
    """One of the figures below by its name, or four of them."""
    if choose("kind", kind, ("overview", *FIGURES)) != "overview":
        return FIGURES[kind](fit, ax)
    axes = _figure(10.0, 8.0).subplots(2, 2) if ax is None else several_axes(ax, 4).reshape(2, 2)
    for place, name in zip(axes.ravel(), ("direct", "shrinkage", "residuals", "qq")):
        FIGURES[name](fit, place)
    return axes


def caterpillar_figure(fit: Fit, ax: Any = None) -> Any:
    """Estimates with intervals, smallest at the bottom, the direct estimates behind them."""
    table = fit.to_frame()
    order = np.argsort(np.nan_to_num(table["estimate"].to_numpy(), nan=np.inf), kind="stable")
    table = table.iloc[order]
    m = len(table)
    ax = axes_or_new(ax, 7.0, min(13.0, max(2.6, 1.3 + 0.17 * m)))
    place = np.arange(m, dtype=float)
    size = float(np.clip(260.0 / m, 1.0, 4.0))
    ax.plot(table["direct"], place, "|", color=DIRECT_COLOUR, markersize=2 * size, label="direct")
    low, high = (table[name].to_numpy() for name in ("lower", "upper"))
    inside = np.isfinite(low) & np.isfinite(high)
    ax.hlines(place[inside], low[inside], high[inside], color=CHOSEN_COLOUR, linewidth=0.3 * size)
    ax.plot(table["estimate"], place, "o", color=CHOSEN_COLOUR, markersize=size, label="smoothed")
    outside = (table["status"] == "out_of_sample").to_numpy()
    if outside.any():
        ax.plot(
            table["estimate"][outside],
            place[outside],
            "o",
            markersize=size,
            markerfacecolor="white",
            markeredgecolor=CHOSEN_COLOUR,
            label="no labels",
        )
    _limits(ax.set_xlim, np.r_[low[inside], high[inside], table["estimate"]])
    if m <= _MOST_LABELS:
        ax.set_yticks(place, [_short(label) for label in table["domain"]], fontsize=7)
    else:
        ax.set_yticks([])
        ax.set_ylabel(f"{m} domains, by estimate")
    ax.set_ylim(-1, m)
    ax.set_xlabel(_plain(fit.area.outcome))
    ax.set_title(f"{100 * fit.spec.level:g} % intervals", fontsize=10)
    _legend(ax, "lower right", marker=4.0 / size)
    return _open(ax)


def direct_figure(fit: Fit, ax: Any = None) -> Any:
    """Direct against model estimates, with the line of equality; size by shrinkage."""
    ax = axes_or_new(ax)
    area = fit.area
    seen = area.sampled
    numbers = fit.to_frame()
    x, y = (numbers[name].to_numpy()[seen] for name in ("direct", "estimate"))
    ax.scatter(
        x,
        y,
        s=8 + 30 * numbers["shrinkage"].to_numpy()[seen],
        color=CHOSEN_COLOUR,
        alpha=0.6,
        linewidths=0,
    )
    ends = [min(x.min(), y.min()), max(x.max(), y.max())]
    ax.plot(ends, ends, color=INK, linewidth=0.8)
    found = fit.diagnostics()
    ax.set_xlabel("direct estimate")
    ax.set_ylabel("model estimate")
    ax.set_title(
        f"larger points lean on their own labels; Brown's test p = {found.brown_p_value:.2g}",
        fontsize=9,
    )
    return _open(ax)


def shrinkage_figure(fit: Fit, ax: Any = None) -> Any:
    """The weight of the direct estimate against its sampling variance, and σ²/(σ² + d)."""
    ax = axes_or_new(ax)
    seen = fit.area.sampled
    table = fit.to_frame()
    d, gamma = (table[name].to_numpy()[seen] for name in ("direct_variance", "shrinkage"))
    shown = d > 0
    variance = fit.model_variance
    own = float(variance if isinstance(variance, float) else list(variance.values())[-1])
    if shown.any():
        line = np.geomspace(d[shown].min() / 1.3, d[shown].max() * 1.3, 100)
        if own > 0:
            ax.plot(line, own / (own + line), color=INK, linewidth=0.8, label="σ²/(σ² + d)")
        ax.plot(d[shown], gamma[shown], "o", color=CHOSEN_COLOUR, markersize=3.5, alpha=0.7)
        if line[0] < own < line[-1]:
            ax.axvline(own, color=NAIVE_COLOUR, linewidth=0.8, linestyle="--", label="σ²")
        ax.set_xscale("log")
        few_log_ticks(ax)
    ax.set_ylim(-0.03, 1.03)
    ax.set_xlabel("sampling variance d")
    ax.set_ylabel("weight of the direct estimate")
    ax.set_title(f"shrinkage; model variance σ² = {own:.3g}", fontsize=9)
    _legend(ax, "best")
    return _open(ax)


def residuals_figure(fit: Fit, ax: Any = None) -> Any:
    """Standardised residuals against the synthetic part, with the band of a standard normal."""
    ax = axes_or_new(ax)
    found, table = fit.diagnostics(), fit.to_frame()
    residual, x = found.standardised_residual, table["synthetic"].to_numpy()
    here = np.isfinite(residual)
    half = float(ndtri(0.5 + fit.spec.level / 2))
    ax.axhspan(-half, half, color=BAND, linewidth=0)
    ax.axhline(0.0, color=INK, linewidth=0.8)
    ax.plot(x[here], residual[here], "o", color=CHOSEN_COLOUR, markersize=3.5, alpha=0.7)
    far = np.argsort(-np.abs(np.where(here, residual, 0.0)))[:_MOST_NAMED]
    inside = np.mean(np.abs(residual[here]) <= half) if here.any() else np.nan
    ax.set_xlabel("synthetic part")
    ax.set_ylabel("standardised residual")
    ax.set_title(f"{100 * inside:.0f} % inside the {100 * fit.spec.level:g} % band", fontsize=9)
    ax.margins(x=0.08, y=0.12)
    ax.autoscale_view()
    _name(ax, x, residual, found.domains, [i for i in far if abs(residual[i]) > half])
    return _open(ax)


def quantile_figure(fit: Fit, ax: Any = None) -> Any:
    """Normal QQ plot of the standardised residuals, with the pointwise band of a true model."""
    ax = axes_or_new(ax)
    found = fit.diagnostics()
    value = found.standardised_residual[np.isfinite(found.standardised_residual)]
    if value.size:
        x = np.sort(value)
        i = np.arange(1.0, x.size + 1.0)
        tail = 0.5 - 0.5 * fit.spec.level
        low, high = (ndtri(betaincinv(i, x.size - i + 1.0, q)) for q in (tail, 1.0 - tail))
        expected = ndtri((i - 0.375) / (x.size + 0.25))
        ax.fill_between(
            expected, low, high, color=BAND, linewidth=0, label=f"{fit.spec.level:.0%} band"
        )
        ax.plot(expected[[0, -1]], expected[[0, -1]], color=INK, linewidth=0.8)
        ax.plot(expected, x, "o", color=CHOSEN_COLOUR, markersize=3)
        _legend(ax, "upper left")
    w = found.residual_normality
    ax.set_xlabel("standard normal quantile")
    ax.set_ylabel("standardised residual")
    ax.set_title(f"normal QQ; Shapiro–Wilk p = {w.shapiro_p:.2g}", fontsize=9)
    return _open(ax)


def leave_out_figure(found: LeaveDomainOut, ax: Any = None) -> Any:
    """Direct estimates against predictions without their own labels; those missed are marked."""
    ax = axes_or_new(ax, 5.5, 5.0)
    here = found.scored
    x, y = found.prediction[here], found.direct[here]
    half = float(ndtri(0.5 + found.level / 2)) * np.sqrt(found.numbers.spread[here])
    inside = found.covered[here]
    faint = float(np.clip(30.0 / max(1, x.size), 0.12, 0.8))
    for which, colour in ((inside, CHOSEN_COLOUR), (~inside, NAIVE_COLOUR)):
        finite = which & np.isfinite(half)
        ax.hlines(
            y[finite],
            (x - half)[finite],
            (x + half)[finite],
            color=colour,
            alpha=faint,
            linewidth=1,
        )
        words = "inside" if colour == CHOSEN_COLOUR else "outside"
        if which.any():
            label = f"{words} ({which.sum()})"
            ax.plot(x[which], y[which], "o", color=colour, markersize=3.5, label=label)
    ends = [min(x.min(), y.min()), max(x.max(), y.max())]
    ax.plot(ends, ends, color=INK, linewidth=0.8)
    _limits(ax.set_xlim, np.r_[x, y])
    size = np.abs(np.nan_to_num(found.standardised_error[here]))
    far = [i for i in np.argsort(-size)[:_MOST_NAMED] if not inside[i]]
    _name(ax, x, y, found.domains[here], far)
    ax.set_xlabel(f"prediction without the domain's labels, {100 * found.level:g} % interval")
    ax.set_ylabel("direct estimate")
    ax.set_title(
        f"{100 * found.coverage:.0f} % inside (± {100 * found.coverage_standard_error:.0f}); "
        f"standardised errors {found.root_mean_square:.2f}",
        fontsize=9,
    )
    _legend(ax, "upper left")
    return _open(ax)


def _open(ax: Any) -> Any:
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return readable(ax)


def _legend(ax: Any, where: str, *, marker: float = 1.0) -> None:
    if ax.get_legend_handles_labels()[0]:
        ax.legend(fontsize=8, loc=where, frameon=False, markerscale=marker)


def _short(label: Any) -> str:
    """A label on one line that leaves room for the figure."""
    text = " ".join(str(label).split())
    return _plain(text if len(text) <= _LONGEST_LABEL else text[: _LONGEST_LABEL - 1] + "…")


def _limits(setter: Callable[..., Any], values: np.ndarray) -> None:
    """An axis over these values; extremes of what lies behind them are cut off."""
    finite = values[np.isfinite(values)]
    if finite.size:
        margin = 0.06 * float(np.ptp(finite)) or 1.0
        setter(finite.min() - margin, finite.max() + margin)


def _name(ax: Any, x: np.ndarray, y: np.ndarray, labels: np.ndarray, which: Any) -> None:
    """Write a few domains' names beside their points, on the side that has room.

    A name that would come to lie on another one is left out.
    """
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    taken: list[tuple[float, float]] = []
    for i in which:
        across, up = (x[i] - left) / (right - left), (y[i] - low) / (high - low)
        if any(abs(across - a) < 0.45 and abs(up - b) < 0.045 for a, b in taken):
            continue
        taken.append((across, up))
        beyond = across > 0.5
        ax.annotate(
            _short(labels[i]),
            (x[i], y[i]),
            xytext=(-5 if beyond else 5, 0),
            textcoords="offset points",
            ha="right" if beyond else "left",
            va="center",
            fontsize=7,
            color=INK,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.6},
        )


def _tiles(fit: Fit, ax: Any = None) -> Any:
    from pybridge.report.tile_figure import tile_figure

    return tile_figure(fit, ax)


FIGURES: dict[str, Callable[..., Any]] = {
    "caterpillar": caterpillar_figure,
    "domains": _tiles,
    "direct": direct_figure,
    "shrinkage": shrinkage_figure,
    "residuals": residuals_figure,
    "qq": quantile_figure,
}
