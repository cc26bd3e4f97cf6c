"""What a gate or a criterion found: observed value, limit, verdict, and a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pybridge._record import Record

GATES = ("G1", "G2", "G3", "G4", "G5", "P1", "P2")
NAMES = {
    "G1": "mean equivalence",
    "G2": "tail-size equivalence",
    "G3": "sample size",
    "G4": "fit",
    "G5": "threshold stability",
    "P1": "intervals apart",
    "P2": "difference above the floor",
}
VERDICTS = ("pass", "fail", "not computed")


@dataclass(frozen=True, eq=False, repr=False)
class GateOutcome(Record):
    """One gate or criterion of one pair.

    Attributes
    ----------
    gate : str
        "G1" to "G5", "P1", "P2".
    name : str
    verdict : {"pass", "fail", "not computed"}
        "not computed" counts as not passed.
    observed, limit : float
        What decided, and what it was held against: the interval end farther from 0 against the
        margin (G1, G2), the smaller count against N* (G3), the smaller p against alpha (G4), the
        larger range against the smaller of the tolerances it met (G5), the gap between the
        intervals against 0 (P1), the absolute difference against the floor (P2).
    lower, upper : float
        The interval, where there is one.
    sentence : str
    """

    gate: str
    name: str
    verdict: str
    observed: float
    limit: float
    lower: float
    upper: float
    sentence: str

    @property
    def passed(self) -> bool:
        return self.verdict == "pass"

    def summary(self) -> str:
        return f"{self.gate} {self.name}: {self.verdict}. {self.sentence}"


def outcome(
    gate: str,
    passed: bool | None,
    sentence: str,
    *,
    observed: float = np.nan,
    limit: float = np.nan,
    interval: tuple[float, float] = (np.nan, np.nan),
) -> GateOutcome:
    """The record; ``passed`` is None where the gate could not be computed."""
    verdict = "not computed" if passed is None else ("pass" if passed else "fail")
    return GateOutcome(
        gate=gate,
        name=NAMES[gate],
        verdict=verdict,
        observed=float(observed),
        limit=float(limit),
        lower=float(interval[0]),
        upper=float(interval[1]),
        sentence=sentence,
    )


def equivalence(
    gate: str, what: str, *, replicates: np.ndarray, estimate: float, margin: float, level: float
) -> GateOutcome:
    """G1 and G2: the percentile interval of a difference lies inside ±margin (TOST).

    Parameters
    ----------
    what : words for the sentence, for example "means"
    replicates : (B,) differences, A minus B
    """
    if np.isnan(replicates).any():
        return outcome(gate, None, f"the resamples have no {what}", limit=margin)
    low, high = np.quantile(replicates, [0.5 - 0.5 * level, 0.5 + 0.5 * level])
    farther = low if abs(low) > abs(high) else high
    inside = bool(-margin < low and high < margin)
    sentence = (
        f"the {level:.0%} interval of the difference of {what}, {estimate:.4g} "
        f"[{low:.4g}, {high:.4g}], {'lies inside' if inside else 'does not lie inside'} "
        f"±{margin:g}"
    )
    return outcome(
        gate, inside, sentence, observed=abs(farther), limit=margin, interval=(low, high)
    )


def joined(parts: list[tuple[str, Any]]) -> str:
    """ "a: 3, b: 4" for a sentence."""
    return ", ".join(f"{name}: {value}" for name, value in parts)
