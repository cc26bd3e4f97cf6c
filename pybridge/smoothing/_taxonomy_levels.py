"""The levels of a taxonomy in the area table: codes for the engines, labels for the user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from pybridge._checks import key_column, listed, name_list
from pybridge._record import Record
from pybridge.errors import InputError
from pybridge.tables.labels import encode


@dataclass(frozen=True, eq=False, repr=False)
class TaxonomyLevels(Record):
    """R nested levels, coarse to fine; the finest one is the domain.

    Attributes
    ----------
    names : tuple of str
        Columns of the area table.
    codes : tuple of R arrays
        Each (m,): the group of every domain.
    labels : tuple of R arrays
        Each (n_r,), object: the groups' labels, in the order of the codes.
    """

    names: tuple[str, ...]
    codes: tuple[np.ndarray, ...]
    labels: tuple[np.ndarray, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Groups a level."""
        return tuple(len(labels) for labels in self.labels)


def taxonomy_levels(area: pd.DataFrame, levels: Sequence[str]) -> TaxonomyLevels:
    """Check the level columns of a table with one row a domain.

    Raises
    ------
    InputError
        ``no_levels``, ``missing_column``, ``missing_values``, ``taxonomy_not_nested`` (naming
        what has two parents), ``level_equals_domain`` and ``redundant_level`` (every group has
        one child), ``single_group``.
    """
    names = name_list("levels", levels)
    if not names:
        raise InputError(
            "a taxonomy needs at least one level, the domain itself",
            code="no_levels",
            field="levels",
            expected="columns, coarse to fine, the domain last",
            got=levels,
        )
    encoded = [encode(key_column(area, name, field="levels")) for name in names]
    codes = tuple(np.asarray(column.codes, dtype=np.intp) for column in encoded)
    labels = tuple(column.labels for column in encoded)
    for place in range(len(names) - 1):
        _need_parents(names, codes, labels, place)
    for place in range(len(names) - 1):
        _need_groups(names, labels, place)
    return TaxonomyLevels(names=names, codes=codes, labels=labels)


def _need_parents(
    names: tuple[str, ...],
    codes: tuple[np.ndarray, ...],
    labels: tuple[np.ndarray, ...],
    place: int,
) -> None:
    """One parent at level ``place`` for every group of the level below."""
    above, below = codes[place], codes[place + 1]
    parent = np.full(len(labels[place + 1]), -1, dtype=np.intp)
    parent[below] = above
    clash = np.flatnonzero(parent[below] != above)
    if clash.size == 0:
        return
    child = below[clash[0]]
    several = labels[place][np.unique(above[below == child])]
    name = labels[place + 1][child]
    raise InputError(
        f"the taxonomy is not nested: {names[place + 1]} {name!r} lies in several groups of "
        f"{names[place]!r}",
        code="taxonomy_not_nested",
        field="levels",
        expected=f"one {names[place]} for every {names[place + 1]}",
        got=f"{name!r} in {listed(several)}",
        hint="Levels go from coarse to fine. Groups of the same name under different parents need "
        "different labels.",
    )


def _need_groups(names: tuple[str, ...], labels: tuple[np.ndarray, ...], place: int) -> None:
    """A level must group something, and must not be a single group."""
    size, finer = len(labels[place]), len(labels[place + 1])
    if size == finer:
        last = place + 1 == len(names) - 1
        raise InputError(
            f"every group of {names[place]!r} has one {names[place + 1]}: the two levels are the "
            "same, and their variances cannot be told apart",
            code="level_equals_domain" if last else "redundant_level",
            field="levels",
            expected="groups of several",
            got=f"{size} groups of {names[place]!r}, {finer} of {names[place + 1]!r}",
            hint=f"Leave {names[place]!r} out.",
        )
    if size == 1:
        raise InputError(
            f"the level {names[place]!r} has a single group: its effect is the intercept",
            code="single_group",
            field="levels",
            expected="two groups or more",
            got=listed(labels[place]),
            hint=f"Leave {names[place]!r} out.",
        )
