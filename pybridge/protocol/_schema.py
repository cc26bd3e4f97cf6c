"""Every key of a protocol file: its place, type, limits, default, and the comment that explains it.

The template and the checks are both made from this table, so that they cannot part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pybridge.tails.transforms import EDGES, KINDS

FORMAT = 1
REQUIRED = object()


@dataclass(frozen=True)
class Key:
    """One key.

    Attributes
    ----------
    section, name : str
        Its place in the file; "" is the top.
    field : str
        Its name in the :class:`Protocol` record.
    check : callable
        Value -> cleaned value; raises ValueError with what is allowed.
    default : object
        REQUIRED where there is none.
    example : object
        Written into the template.
    comment : str
    decide : bool
        Marked in the template as an example that must be decided.
    """

    section: str
    name: str
    field: str
    check: Callable[[Any], Any]
    default: Any
    comment: str
    example: Any = None
    decide: bool = False

    @property
    def place(self) -> str:
        return f"{self.section}.{self.name}" if self.section else self.name


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def number(low: float, high: float, *, ends: bool = False) -> Callable[[Any], float]:
    """A number strictly between two limits, or with ``ends`` at them too."""
    words = f"a number from {low:g} to {high:g}" if ends else f"a number, {low:g} < x < {high:g}"

    def check(value: Any) -> float:
        good = _is_number(value) and (low <= value <= high if ends else low < value < high)
        if not good:
            raise ValueError(words)
        return float(value)

    return check


def count(least: int, most: int = 10**9) -> Callable[[Any], int]:
    """A whole number."""

    def check(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return value

    return check


def word(*allowed: str) -> Callable[[Any], str]:
    """One of a few words."""

    def check(value: Any) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise ValueError(" or ".join(f'"{one}"' for one in allowed))
        return str(value)

    return check


def text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("text in quotes")
    return value


def names(least: int) -> Callable[[Any], tuple[str, ...]]:
    """A list of different names."""

    def check(value: Any) -> tuple[str, ...]:
        good = isinstance(value, list) and all(isinstance(v, str) and v for v in value)
        if not good or len(value) < least or len(set(value)) != len(value):
            raise ValueError(f"a list of at least {least} different names")
        return tuple(value)

    return check


def pairs(value: Any) -> Any:
    if value == "all":
        return "all"
    good = (
        isinstance(value, list)
        and value
        and all(
            isinstance(pair, list)
            and len(pair) == 2
            and all(isinstance(v, str) for v in pair)
            and pair[0] != pair[1]
            for pair in value
        )
    )
    if not good or len({frozenset(pair) for pair in value}) != len(value):
        raise ValueError('"all", or a list of different pairs [["a", "b"], ...]')
    return tuple((pair[0], pair[1]) for pair in value)


def tolerance(value: Any) -> float | str:
    if value == "calibrated":
        return "calibrated"
    if not _is_number(value) or not 0 < value < 10:
        raise ValueError('a positive number, or "calibrated"')
    return float(value)


def rising(value: Any) -> tuple[float, ...]:
    good = isinstance(value, list) and value and all(_is_number(v) and 0 < v < 1 for v in value)
    if not good or any(a >= b for a, b in zip(value, value[1:])):
        raise ValueError("a list of rising numbers between 0 and 1")
    return tuple(float(v) for v in value)


# Sections whose keys may have another value for a scorer, in [scorer.<name>].
PER_SCORER = ("tail", "transform", "G1", "G2")
SCAN = (0.95, 0.955, 0.96, 0.965, 0.97, 0.975, 0.98, 0.985, 0.99)
SECTIONS = {
    "": "",
    "tail": "The tail: where it begins, and who fits it.",
    "transform": "What happens to the scores before the tail is fitted.",
    "resampling": "The bootstrap of G1, G2 and P1.",
    "G1": "Mean equivalence: the interval of the difference of means lies inside +- margin.",
    "G2": "Tail-size equivalence: the same for TVaR, the mean at and beyond a quantile.",
    "G3": "Sample size: both models have at least N* exceedances (Smith, 1987).",
    "G4": "Fit: Anderson-Darling p above alpha for both generalised Pareto fits.",
    "G5": "Threshold stability: the shape's range over [quantile - half_width, quantile + "
    "half_width] is at most the tolerance, for both.",
    "P2": "The estimated difference of shapes exceeds the floor. (P1, two bootstrap intervals of "
    "the shapes that do not overlap, has its parameters under [resampling].)",
    "scan": "Fits beside the verdict, never part of it.",
}
KEYS = (
    Key("", "format", "format", count(1), FORMAT, "Version of this file's format."),
    Key("", "title", "title", text, "", "The claim, in words.", "A's worst cases differ in kind"),
    Key(
        "",
        "models",
        "models",
        names(2),
        REQUIRED,
        "Models, as the table of scores names them.",
        ["model_a", "model_b"],
        True,
    ),
    Key(
        "",
        "scorers",
        "scorers",
        names(1),
        ("score",),
        'Scorers, as the table names them; "score" for a table without that column.',
    ),
    Key(
        "",
        "pairs",
        "pairs",
        pairs,
        "all",
        'Pairs to compare: "all", or a list like [["model_a", "model_b"]].',
    ),
    Key("", "seed", "seed", count(0), 20250101, "Everything random follows from it."),
    Key("tail", "quantile", "quantile", number(0, 1), 0.95, "The threshold is this quantile."),
    Key(
        "tail",
        "engine",
        "engine",
        word("evd", "ismev", "native"),
        "evd",
        "Who computes the estimates (refits in bootstraps are native).",
    ),
    Key(
        "transform",
        "kind",
        "kind",
        word(*KINDS),
        "none",
        'Bounded scores in [0, 1] want "logit".',
    ),
    Key(
        "transform",
        "edge",
        "edge",
        word(*EDGES),
        "refuse",
        'What becomes of scores at a bound: "refuse", "clip" (to epsilon from it), "squeeze".',
    ),
    Key("transform", "epsilon", "epsilon", number(0, 0.5), 1e-6, 'For edge = "clip".'),
    Key("transform", "scale", "scale", number(0, 1e300), 1.0, "Then times scale,"),
    Key("transform", "shift", "shift", number(-1e300, 1e300), 0.0, "plus shift."),
    Key("resampling", "replicates", "replicates", count(99, 10**7), 2000, "Resamples (B)."),
    Key("resampling", "level", "level", number(0, 1), 0.95, "Level of the percentile intervals."),
    Key(
        "resampling",
        "pairing",
        "pairing",
        word("auto", "items", "none"),
        "auto",
        '"auto": by item where two models have the same items; "items": they must; "none".',
    ),
    Key(
        "resampling",
        "equivalence_scale",
        "equivalence_scale",
        word("raw", "transformed"),
        "raw",
        "G1 and G2 on the scores as they are, or after the transform.",
    ),
    Key(
        "G1",
        "margin",
        "mean_margin",
        number(0, 1e300),
        REQUIRED,
        "The largest difference of means that means the same in practice.",
        0.05,
        True,
    ),
    Key(
        "G2",
        "margin",
        "tail_margin",
        number(0, 1e300),
        REQUIRED,
        "The largest difference of TVaR that means the same in practice.",
        0.10,
        True,
    ),
    Key("G2", "quantile", "tail_quantile", number(0, 1), 0.9, "TVaR is the mean beyond it."),
    Key(
        "G3",
        "difference",
        "difference",
        number(0, 10),
        0.10,
        "The difference of shapes to be seen,",
    ),
    Key("G3", "power", "power", number(0, 1), 0.80, "with this power"),
    Key("G3", "alpha", "alpha", number(0, 1), 0.05, "of the two-sided z-test at this level,"),
    Key(
        "G3",
        "shape",
        "planning_shape",
        number(-0.5, 10),
        0.0,
        "planned at this shape (never at an estimate).",
    ),
    Key("G4", "alpha", "fit_alpha", number(0, 1), 0.05, "p must exceed it."),
    Key(
        "G4",
        "method",
        "fit_method",
        word("bootstrap", "table"),
        "bootstrap",
        "How the p-value learns that the parameters were estimated.",
    ),
    Key("G4", "replicates", "fit_replicates", count(99, 10**7), 999, "For the bootstrap."),
    Key("G5", "half_width", "half_width", number(0, 0.5), 0.01, "Of the window of quantiles."),
    Key("G5", "points", "points", count(2, 1000), 5, "Quantiles in the window."),
    Key(
        "G5",
        "tolerance",
        "tolerance",
        tolerance,
        0.10,
        'The largest range of the shape: a number, or "calibrated" (the 95 % point of the range '
        "under the fitted distribution).",
    ),
    Key("P2", "floor", "floor", number(0, 10), 0.10, "The least difference worth a claim."),
    Key("scan", "quantiles", "scan_quantiles", rising, SCAN, "Thresholds of the scan."),
)
