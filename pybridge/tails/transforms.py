"""Monotone transforms of scores, with an explicit rule for exact 0 and 1.

A score in [0, 1], such as a classifier's probability, has a finite upper end point, and a model
that saturates piles scores up against it; the generalised Pareto shape of such scores says
something about the bound, not about the model. On the logit scale the bound is gone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pybridge._options import choose, real_number
from pybridge._record import Record
from pybridge.errors import InputError

KINDS = ("none", "logit", "log", "complementary_log")
EDGES = ("refuse", "clip", "squeeze")

_WORDS = {
    "none": "the score itself",
    "logit": "log(s / (1 - s))",
    "log": "log(s)",
    "complementary_log": "-log(1 - s)",
}


@dataclass(frozen=True, eq=False, repr=False)
class Transform(Record):
    """s -> scale * g(s) + shift with a rising g.

    Attributes
    ----------
    kind : {"none", "logit", "log", "complementary_log"}
        g(s) = s, log(s / (1 - s)), log(s) or -log(1 - s).
    edge : {"refuse", "clip", "squeeze"}
        What happens to scores at which g is infinite (0 and 1 for the logit, 0 for the log, 1 for
        the complementary log): refused; moved to ``epsilon`` from the bound (and so is every
        score that is nearer to it); or all n scores drawn inwards, (s (n - 1) + 1/2) / n
        (Smithson and Verkuilen, 2006).
    epsilon : float
        For ``clip``.
    scale, shift : float
        ``scale`` is positive.
    """

    kind: str = "none"
    edge: str = "refuse"
    epsilon: float = 1e-6
    scale: float = 1.0
    shift: float = 0.0

    def __post_init__(self) -> None:
        choose("kind", self.kind, KINDS)
        choose("edge", self.edge, EDGES)
        if not 0.0 < real_number("epsilon", self.epsilon) < 0.5:
            raise InputError(
                "epsilon must lie between 0 and 1/2",
                code="bad_epsilon",
                field="epsilon",
                expected="0 < epsilon < 0.5",
                got=self.epsilon,
            )
        if not real_number("scale", self.scale) > 0.0:
            raise InputError(
                "the scale of a transform must be positive",
                code="bad_scale",
                field="scale",
                expected="scale > 0, so that large scores stay large",
                got=self.scale,
            )
        real_number("shift", self.shift)
        super().__post_init__()

    def apply(self, scores: np.ndarray, *, field: str = "scores") -> np.ndarray:
        """The transformed scores, (n,) float64.

        Raises
        ------
        InputError
            ``score_out_of_range`` for scores outside the domain of g, ``score_at_bound`` for
            scores at a bound when ``edge`` is ``refuse``.
        """
        values = _g(self._inside(scores, field), self.kind)
        return (
            self.scale * values + self.shift if (self.scale, self.shift) != (1.0, 0.0) else values
        )

    def invert(self, values: np.ndarray) -> np.ndarray:
        """Scores whose transforms are the given values."""
        inner = (np.asarray(values, dtype=np.float64) - self.shift) / self.scale
        if self.kind == "none":
            return inner
        with np.errstate(over="ignore"):
            if self.kind == "log":
                return np.exp(inner)
            if self.kind == "logit":
                return 1.0 / (1.0 + np.exp(-inner))
        return -np.expm1(-inner)

    def n_at_bound(self, scores: np.ndarray) -> int:
        """How many scores the rule for the bounds concerns."""
        return int(np.count_nonzero(_at_bound(scores, self.kind)))

    def _inside(self, scores: np.ndarray, field: str) -> np.ndarray:
        if self.kind == "none":
            return scores
        outside = scores < 0.0
        if self.kind != "log":
            outside = outside | (scores > 1.0)
        if outside.any():
            worst = float(scores[outside][0])
            raise InputError(
                f"{int(outside.sum())} scores lie outside the domain of the {self.kind} transform",
                code="score_out_of_range",
                field=field,
                expected="scores > 0" if self.kind == "log" else "scores between 0 and 1",
                got=f"{worst!r} among them",
            )
        at_bound = _at_bound(scores, self.kind)
        if self.edge == "refuse" and at_bound.any():
            raise InputError(
                f"{int(at_bound.sum())} scores lie at a bound, where "
                f"{_WORDS[self.kind]} is infinite",
                code="score_at_bound",
                field=field,
                expected="scores strictly inside the bounds, or a rule for those at a bound",
                got=f"{float(scores[at_bound][0])!r} among them",
                hint='Give the rule: edge = "clip" (with epsilon) or edge = "squeeze".',
            )
        if self.edge == "clip":
            top = np.inf if self.kind == "log" else 1.0 - self.epsilon
            bottom = 0.0 if self.kind == "complementary_log" else self.epsilon
            return np.clip(scores, bottom, top)
        if self.edge == "squeeze":
            n = scores.size
            return (scores * (n - 1.0) + 0.5) / n
        return scores

    def summary(self) -> str:
        text = _WORDS[self.kind]
        if (self.scale, self.shift) != (1.0, 0.0):
            text = f"{self.scale:g} * {text} + {self.shift:g}"
        if self.kind == "none" or self.edge == "refuse":
            return text
        rule = f"moved to {self.epsilon:g} from the bound" if self.edge == "clip" else "squeezed"
        return f"{text}, scores at a bound {rule}"


def _at_bound(scores: np.ndarray, kind: str) -> np.ndarray:
    at_zero = (scores == 0.0) if kind in ("logit", "log") else np.zeros(scores.shape, dtype=bool)
    return at_zero | (scores == 1.0) if kind in ("logit", "complementary_log") else at_zero


def _g(s: np.ndarray, kind: str) -> np.ndarray:
    if kind == "log":
        return np.log(s)
    if kind == "logit":
        return np.log(s) - np.log1p(-s)
    if kind == "complementary_log":
        return -np.log1p(-s)
    return s


def as_transform(value: Transform | str | None) -> Transform:
    """A transform from a record, the name of its kind, or None.

    Raises
    ------
    InputError
        ``unknown_option`` for another word.
    """
    if isinstance(value, Transform):
        return value
    return _NONE if value is None else Transform(choose("transform", value, KINDS))


_NONE = Transform()
