"""All domains at a glance, without a map: a tile a domain, groups of the taxonomy in rows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pybridge.report.canvas import axes_or_new, readable
from pybridge.report.smoothing_figures import _short

if TYPE_CHECKING:
    from pybridge.smoothing.fay_herriot_fit import FayHerriotFit
    from pybridge.smoothing.taxonomy_fit import TaxonomyFit

# Rows of groups that can still be told apart; tiles whose names can still be read.
_MOST_GROUPS = 45
_MOST_NAMED_TILES = 80
_WIDEST = 25


def tile_figure(fit: FayHerriotFit | TaxonomyFit, ax: Any = None) -> Any:
    """A tile a domain, coloured by its estimate; groups of the taxonomy in rows, sorted inside.

    Domains without labels have a dotted frame. Where the taxonomy has several levels above the
    domain, rows are the groups of the finest one of no more than 45 groups.
    """
    table = fit.to_frame()
    groups = _groups(fit, table)
    columns = _columns(groups)
    place, ticks, bottom = _layout(table["estimate"].to_numpy(), groups, columns)
    named = len(table) <= _MOST_NAMED_TILES
    width = float(np.clip((0.95 if named else 0.3) * columns + 2.5, 4.5, 13.0))
    ax = axes_or_new(ax, width, float(np.clip(0.42 * bottom + 1.0, 2.2, 12.0)))
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    unlabelled = (table["status"] == "out_of_sample").to_numpy()
    tiles = PatchCollection(
        [Rectangle((x + 0.03, y + 0.06), 0.94, 0.88) for x, y in place],
        cmap="viridis",
        edgecolors=["black" if absent else "none" for absent in unlabelled],
        linestyles=[":" if absent else "-" for absent in unlabelled],
        linewidths=1.2,
    )
    value = table["estimate"].to_numpy()
    tiles.set_array(value)
    ax.add_collection(tiles)
    if named:
        _write(ax, table["domain"].to_numpy(), value, place, columns)
    ax.set_xlim(0, columns)
    ax.set_ylim(bottom, 0)
    ax.set_xticks([])
    ax.set_yticks([y for y, _ in ticks], [_short(name) for _, name in ticks], fontsize=7)
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    bar = ax.figure.colorbar(tiles, ax=ax, fraction=0.04, pad=0.02)
    bar.set_label(_short(fit.area.outcome), fontsize=8)
    bar.ax.tick_params(labelsize=7)
    note = f"; dotted: {unlabelled.sum()} without labels" if unlabelled.any() else ""
    ax.set_title(f"{len(table)} domains{note}", fontsize=9)
    readable(bar.ax)
    return readable(ax)


def _groups(fit: FayHerriotFit | TaxonomyFit, table: pd.DataFrame) -> np.ndarray:
    """The row of tiles (m,), object, that each domain belongs to."""
    coarse = getattr(getattr(fit, "levels", None), "names", ("",))[:-1]
    fitting = [name for name in coarse if table[name].nunique() <= _MOST_GROUPS]
    if not coarse:
        return np.full(len(table), "", dtype=object)
    chosen = fitting[-1] if fitting else coarse[0]
    return np.asarray(table[chosen].astype(str), dtype=object)


def _columns(groups: np.ndarray) -> int:
    """Tiles in a row: as many as the largest group needs, but no more than fit."""
    largest = int(np.unique(groups, return_counts=True)[1].max())
    if len(np.unique(groups)) == 1:
        largest = int(np.ceil(np.sqrt(1.6 * largest)))
    return int(np.clip(largest, 1, _WIDEST))


def _layout(
    value: np.ndarray, groups: np.ndarray, columns: int
) -> tuple[np.ndarray, list[tuple[float, str]], float]:
    """Corners of the tiles (m, 2), ticks of the groups (height, name), and the last row's end."""
    place = np.empty((value.size, 2))
    ticks = []
    top = 0.0
    names = np.unique(groups)
    gap = 0.25 if names.size > 1 else 0.0
    for name in names:
        inside = np.flatnonzero(groups == name)
        order = inside[np.argsort(-value[inside], kind="stable")]
        rows = int(np.ceil(order.size / columns))
        turn = np.arange(order.size)
        place[order, 0], place[order, 1] = turn % columns, top + turn // columns
        if name:
            ticks.append((top + 0.5 * rows, str(name)))
        top += rows + gap
    return place, ticks, top - gap


def _write(ax: Any, labels: np.ndarray, value: np.ndarray, place: np.ndarray, columns: int) -> None:
    """Names in the tiles, in a colour that can be read on the tile's."""
    low, high = float(np.nanmin(value)), float(np.nanmax(value))
    middle = low + 0.6 * (high - low)
    room = int(min(17, 17 * 11 / columns))
    texts = [" ".join(str(label).split()) for label in labels]
    # What all names begin with tells them apart least.
    shared = os.path.commonprefix(texts) if len(texts) > 1 else ""
    if max(map(len, texts)) > room:
        texts = ["…" + text[len(shared) :] if len(shared) > 3 else text for text in texts]
    for text, own, (x, y) in zip(texts, value, place):
        ax.text(
            x + 0.5,
            y + 0.5,
            _short(text if len(text) <= room else text[: room - 1] + "…"),
            ha="center",
            va="center",
            fontsize=6,
            color="black" if own > middle else "white",
            clip_on=True,
        )
