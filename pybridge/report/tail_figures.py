"""Figures of tails and verdicts: each takes a record and optional axes, and returns the axes.

matplotlib is loaded by the first call only, and no global setting of it is changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import betaincinv

from pybridge.report.canvas import axes_or_new, new_figure, plain, readable, several_axes
from pybridge.tails._distribution import from_exponential, to_exponential
from pybridge.tails._status import USABLE

if TYPE_CHECKING:
    from pybridge.tails.mean_residual_life import MeanResidualLife
    from pybridge.tails.records import ParetoFit
    from pybridge.tails.return_levels import ReturnLevels
    from pybridge.tails.scan import TailScan

INK = "#333333"
COLOURS = ("#1f5fa8", "#c8732b", "#3b8a4e", "#8a3b7d", "#6b6b6b", "#b0a020")
BAND = "#cfdced"
LONGEST = 40  # letters of a name
MOST_POINTS = 4000
MARKERS = "osD^v"  # where there are more models than colours


def _bare(axes: Any) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def shortened(name: str, longest: int = LONGEST) -> str:
    """A long name without its middle."""
    if len(name) <= longest:
        return name
    half = (longest - 1) // 2
    return f"{name[:half]}…{name[-(longest - 1 - half):]}"


def _shown(n: int) -> np.ndarray:
    """Places of the order statistics to draw: all, or of many the largest and every so many-th."""
    if n <= MOST_POINTS:
        return np.arange(n)
    spread = np.linspace(0, n - 1, MOST_POINTS // 2).astype(np.int64)
    return np.union1d(spread, np.arange(n - MOST_POINTS // 2, n))


def _order_bands(
    places: np.ndarray, n: int, level: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Plotting positions and pointwise bands of some of n uniform order statistics."""
    i = places + 1.0
    low = betaincinv(i, n - i + 1.0, 0.5 - 0.5 * level)
    high = betaincinv(i, n - i + 1.0, 0.5 + 0.5 * level)
    return i / (n + 1.0), low, high


def quantile_figure(fit: ParetoFit, ax: Any = None) -> Any:
    """QQ plot: excesses against the fit's quantiles, with the pointwise band of a true fit."""
    ax = axes_or_new(ax)
    places = _shown(fit.n_exceedances)
    x = np.sort(fit.excesses)[places]
    p, low, high = _order_bands(places, fit.n_exceedances, fit.level)
    expected, lower, upper = (
        from_exponential(exponentials=-np.log1p(-q), shape=fit.shape, scale=fit.scale)
        for q in (p, low, high)
    )
    ax.fill_between(expected, lower, upper, color=BAND, linewidth=0, label=f"{fit.level:.0%} band")
    ax.plot([0, expected[-1]], [0, expected[-1]], color=INK, linewidth=1)
    ax.plot(expected, x, "o", color=COLOURS[0], markersize=3, label="excesses")
    # The band of a heavy tail would leave no room for anything else.
    top = max(x[-1], expected[-1])
    ax.set_ylim(-0.05 * top, 1.05 * max(top, min(upper[-1], 3.0 * top)))
    ax.set_xlabel("quantile of the fit")
    ax.set_ylabel("excess over the threshold")
    ax.set_title(f"QQ, shape {fit.shape:.3f}, {fit.n_exceedances} exceedances", fontsize=10)
    ax.legend(frameon=False, fontsize=8, loc="upper left")
    _bare(ax)
    return ax


def probability_figure(fit: ParetoFit, ax: Any = None) -> Any:
    """PP plot: the fit's probabilities at the excesses, with the pointwise band of a true fit."""
    ax = axes_or_new(ax)
    places = _shown(fit.n_exceedances)
    x = np.sort(fit.excesses)[places]
    p, low, high = _order_bands(places, fit.n_exceedances, fit.level)
    fitted = -np.expm1(-to_exponential(excesses=x, shape=fit.shape, scale=fit.scale))
    ax.fill_between(p, low, high, color=BAND, linewidth=0, label=f"{fit.level:.0%} band")
    ax.plot([0, 1], [0, 1], color=INK, linewidth=1)
    ax.plot(p, fitted, "o", color=COLOURS[0], markersize=3, label="excesses")
    ax.set_xlabel("share of the excesses below")
    ax.set_ylabel("probability by the fit")
    ax.set_title("PP", fontsize=10)
    ax.legend(frameon=False, fontsize=8, loc="upper left")
    _bare(ax)
    return ax


def return_level_figure(
    fit: ParetoFit,
    ax: Any = None,
    *,
    observations_per_period: float = 1.0,
    longest: float | None = None,
) -> Any:
    """Return levels with delta intervals, and the scores above the threshold at their periods.

    Parameters
    ----------
    observations_per_period : float
        1 for periods in scores.
    longest : float, optional
        Default: ten times the sample.
    """
    ax = axes_or_new(ax)
    per = observations_per_period
    shortest = 1.0 / (fit.exceedance_rate * per)
    last = 10.0 * fit.n_scores / per if longest is None else longest
    periods = np.geomspace(shortest * (1 + 1e-9), max(last, 2 * shortest), 80)
    levels = fit.return_level(periods, observations_per_period=per)
    ax.fill_between(
        periods,
        levels.lower,
        levels.upper,
        color=BAND,
        linewidth=0,
        label=f"{fit.level:.0%} interval",
    )
    ax.plot(periods, levels.estimate, color=COLOURS[0], linewidth=1.5, label="fit")
    places = _shown(fit.n_exceedances)
    observed = (fit.n_scores + 1.0) / (fit.n_exceedances - places) / per
    ax.plot(
        observed,
        fit.threshold + np.sort(fit.excesses)[places],
        "o",
        color=INK,
        markersize=3,
        label="scores",
    )
    _limit_levels(ax, fit, levels)
    ax.set_xscale("log")
    ax.set_xlabel("return period" + (", in scores" if per == 1.0 else ""))
    ax.set_ylabel("level")
    ax.set_title("Return levels", fontsize=10)
    ax.legend(frameon=False, fontsize=8, loc="upper left")
    _bare(ax)
    return ax


def _limit_levels(ax: Any, fit: ParetoFit, levels: ReturnLevels) -> None:
    """Room for the scores and the fit; the intervals of a heavy tail may leave it."""
    reach = max(levels.estimate.max() - fit.threshold, fit.excesses.max())
    ends = np.concatenate([levels.lower, levels.upper])
    ends = ends[np.isfinite(ends)]
    if not np.isfinite(reach) or not reach > 0 or not ends.size:
        return
    bottom = max(min(ends.min(), fit.threshold), fit.threshold - reach)
    top = max(min(ends.max(), fit.threshold + 3.0 * reach), fit.threshold + reach)
    ax.set_ylim(bottom - 0.05 * reach, top + 0.05 * reach)


def mean_residual_life_figure(life: MeanResidualLife, ax: Any = None) -> Any:
    """Mean excess against the threshold; straight where a generalised Pareto tail has begun."""
    ax = axes_or_new(ax)
    ax.fill_between(
        life.threshold,
        life.lower,
        life.upper,
        color=BAND,
        linewidth=0,
        label=f"{life.level:.0%} interval",
    )
    ax.plot(life.threshold, life.mean_excess, color=COLOURS[0], linewidth=1.5, label="mean excess")
    ax.set_xlabel("threshold")
    ax.set_ylabel("mean excess")
    ax.set_title("Mean residual life", fontsize=10)
    ax.legend(frameon=False, fontsize=8)
    _bare(ax)
    return ax


def stability_figure(
    scan: TailScan,
    ax: Any = None,
    *,
    window: tuple[float, float] | None = None,
    registered: float | None = None,
) -> Any:
    """The shape of every model over the thresholds, with intervals.

    Parameters
    ----------
    window : (float, float), optional
        The robustness range of G5, shaded.
    registered : float, optional
        The quantile of the protocol, as a line.
    """
    ax = axes_or_new(ax, 6.5, 4.2)
    if window is not None:
        ax.axvspan(*window, color="#f3ead7", linewidth=0, label="window of G5")
    if registered is not None:
        ax.axvline(registered, color=INK, linewidth=0.8, linestyle=":", label="protocol's quantile")
    models = scan.models
    steps = np.diff(np.unique(scan.quantile))
    shift = min(0.12 * float(steps.min()), 0.0006) if steps.size else 0.0005
    usable = np.isin(scan.status.astype(str), USABLE)
    for k, name in enumerate(models):
        colour = COLOURS[k % len(COLOURS)]
        line = f"{MARKERS[k // len(COLOURS) % len(MARKERS)]}-"
        place = scan.quantile + shift * (k - (len(models) - 1) / 2)
        good, bad = (scan.model == name) & usable, (scan.model == name) & ~usable
        known = good & np.isfinite(scan.lower) & np.isfinite(scan.upper)
        ax.vlines(place[known], scan.lower[known], scan.upper[known], color=colour, linewidth=1)
        ax.plot(place[good], scan.shape[good], line, color=colour, markersize=4, linewidth=1)
        bad = bad & np.isfinite(scan.shape)
        ax.plot(place[bad], scan.shape[bad], "x", color=colour, markersize=5)
        mark = line if good.any() else "x"
        ax.plot([], [], mark, color=colour, markersize=4, linewidth=1, label=plain(shortened(name)))
    if not usable.all():
        ax.plot([], [], "x", color=INK, markersize=5, label="no fit")
    ax.locator_params(axis="x", nbins=6)
    ax.set_xlabel("threshold: quantile of the scores")
    ax.set_ylabel("shape")
    ax.set_title(f"Stability of the shape, {scan.interval} intervals", fontsize=10)
    ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    _bare(ax)
    return readable(ax)


def diagnostic_figure(fit: ParetoFit, ax: Any = None) -> Any:
    """QQ, PP and return levels of one fit side by side; returns the three axes."""
    axes = new_figure(13.0, 4.2).subplots(1, 3) if ax is None else several_axes(ax, 3)
    quantile_figure(fit, axes[0])
    probability_figure(fit, axes[1])
    return_level_figure(fit, axes[2])
    return axes
