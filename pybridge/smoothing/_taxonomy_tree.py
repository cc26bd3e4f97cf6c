"""A nested taxonomy as sorted arrays, so that sums over children are one ``reduceat`` each."""

from __future__ import annotations

import dataclasses

import numpy as np

from pybridge._checks import listed
from pybridge.errors import InputError


@dataclasses.dataclass(frozen=True)
class Tree:
    """R nested levels, coarse (0) to fine (R - 1); the finest level is the domain itself.

    Attributes
    ----------
    order : (m,)
        Rows of the domains in tree order: the children of a node are next to each other.
    parent : tuple of R arrays
        ``parent[r]`` (n_r,): place of each node's parent among the nodes of level r - 1; all 0
        for level 0.
    starts : tuple of R arrays
        ``starts[r]`` (n_{r-1},): first child, at level r, of each node of level r - 1.
    labels : tuple of R arrays
        ``labels[r]`` (n_r,): the codes of the level's nodes in tree order.
    """

    order: np.ndarray
    parent: tuple[np.ndarray, ...]
    starts: tuple[np.ndarray, ...]
    labels: tuple[np.ndarray, ...]

    @property
    def depth(self) -> int:
        """The number of levels R."""
        return len(self.parent)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of nodes a level, coarse to fine."""
        return tuple(label.size for label in self.labels)

    def sums(self, values: np.ndarray, level: int) -> np.ndarray:
        """Sums over the children (last axis, level ``level``) of each node one level up."""
        return np.add.reduceat(values, self.starts[level], axis=-1)

    def climb(self, level: int) -> np.ndarray:
        """For every domain in tree order, the place of its ancestor at ``level``."""
        place = np.arange(self.sizes[-1])
        for finer in range(self.depth - 1, level, -1):
            place = self.parent[finer][place]
        return place


def build_tree(levels: list[np.ndarray]) -> Tree:
    """Sort the domains so that every level is contiguous.

    Parameters
    ----------
    levels : R arrays (m,)
        Codes of each domain's group at each level, coarse to fine; the last one tells the
        domains apart.

    Raises
    ------
    InputError
        ``taxonomy_not_nested`` where a code of one level has two parents, ``duplicate_domain``
        where the finest level repeats, ``bad_shape``.
    """
    codes = [np.asarray(level) for level in levels]
    m = codes[-1].size if codes else 0
    if not codes or any(code.shape != (m,) for code in codes):
        raise InputError(
            "levels must be arrays of the same length, coarse to fine",
            code="bad_shape",
            field="levels",
            expected="R arrays of shape (m,)",
            got=[code.shape for code in codes],
        )
    ranks = [np.unique(code, return_inverse=True)[1].reshape(-1) for code in codes]
    order = np.lexsort(tuple(reversed(ranks)))
    parent, starts, labels = [], [], []
    above = np.zeros(m, dtype=np.intp)
    for level, rank in enumerate(ranks):
        sorted_rank = rank[order]
        new = np.ones(m, dtype=bool)
        new[1:] = (sorted_rank[1:] != sorted_rank[:-1]) | (above[1:] != above[:-1])
        first = np.flatnonzero(new)
        node = np.cumsum(new) - 1
        label = codes[level][order][first]
        _need_nested(label, level, len(ranks), first.size, m)
        parent.append(above[first])
        starts.append(np.flatnonzero(np.diff(above[first], prepend=-1)))
        labels.append(label)
        above = node
    return Tree(order=order, parent=tuple(parent), starts=tuple(starts), labels=tuple(labels))


def _need_nested(label: np.ndarray, level: int, depth: int, count: int, m: int) -> None:
    """A code that appears as two nodes has two parents, or is a domain given twice."""
    names, times = np.unique(label, return_counts=True)
    twice = names[times > 1]
    if twice.size:
        raise InputError(
            f"the taxonomy is not nested: {listed(twice)} of level {level} has two parents",
            code="taxonomy_not_nested",
            field="levels",
            expected="one parent for every group and domain",
            got=listed(twice),
        )
    if level == depth - 1 and count < m:
        raise InputError(
            "the finest level does not tell the domains apart",
            code="duplicate_domain",
            field="levels",
            expected=f"{m} different codes, one a domain",
            got=f"{count} different codes",
        )
