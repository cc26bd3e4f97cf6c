"""What is odd about scores before a tail is fitted to them: bounds, caps, ties, dependence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import number_vector
from pybridge._options import yes_or_no
from pybridge._record import Record
from pybridge.errors import InputError
from pybridge.tails._maximum import profile_maximum
from pybridge.tails._status import FEWEST, largest_tie
from pybridge.tails.dependence import extremal_index, lag_one_association
from pybridge.tails.thresholds import find_exceedances

NEAR = 0.01  # of the bounded range: what counts as close to a bound
SATURATED_SHARE = 0.05  # of the exceedances close to the bound
CAP_SHARE = 0.02  # of the exceedances equal to the largest score
TIED_SHARE = 0.05  # of the exceedances that share one value
HEAVY = 0.25  # a shape that a bounded score cannot have
DEPENDENT = 0.8  # extremal index


@dataclass(frozen=True, eq=False, repr=False)
class ScoreDiagnosis(Record):
    """Findings about one sample of scores.

    Attributes
    ----------
    n_scores, n_exceedances, n_distinct : int
        ``n_distinct`` counts the values among the exceedances.
    threshold, smallest, largest : float
    bounded : bool
        All scores lie in the bounds.
    upper_bound : float
        NaN without bounds.
    share_near_bound : float
        Of the exceedances, those within a hundredth of the range from the upper bound.
    share_at_largest, largest_tie : float
        Of the exceedances: those equal to the largest score, those with the most frequent value.
    integer : bool
    shape, upper_end_point : float
        Of the exact fit, with its end point.
    extremal_index : float
        Below 1 for serially dependent scores, in the order given.
    findings : tuple of (str, str)
        A code and a sentence each: "bounded", "saturated", "false_heavy_tail",
        "end_point_at_bound", "hard_cap", "ties", "integer", "serial_dependence".
    """

    n_scores: int
    n_exceedances: int
    n_distinct: int
    threshold: float
    smallest: float
    largest: float
    bounded: bool
    upper_bound: float
    share_near_bound: float
    share_at_largest: float
    largest_tie: float
    integer: bool
    shape: float
    upper_end_point: float
    extremal_index: float
    findings: tuple[tuple[str, str], ...]

    @property
    def codes(self) -> tuple[str, ...]:
        return tuple(code for code, _ in self.findings)

    def to_frame(self) -> pd.DataFrame:
        """One row a finding."""
        return pd.DataFrame(self.findings, columns=["finding", "meaning"])

    def summary(self) -> str:
        head = f"{self.n_scores} scores, {self.n_exceedances} above {self.threshold:g}"
        if not self.findings:
            return f"{head}: nothing odd found"
        return "\n".join([head, *(f"- {code}: {text}" for code, text in self.findings)])


def diagnose_scores(
    scores: Any,
    *,
    quantile: float = 0.95,
    threshold: float | None = None,
    bounds: tuple[float, float] | str | None = "auto",
    ordered: bool = False,
) -> ScoreDiagnosis:
    """Look for what makes the shape of a tail say something else than it seems to.

    Parameters
    ----------
    scores : sequence of float, (n,)
    quantile, threshold : float
        Where the tail begins; ``threshold`` goes first.
    bounds : (float, float), "auto" or None
        The range that scores cannot leave. "auto" takes (0, 1) when all scores lie there.
    ordered : bool
        Whether the scores stand in the order of time, so that dependence can be looked for.

    Raises
    ------
    InputError
        As for a fit; ``bad_bounds``.
    """
    ordered = yes_or_no("ordered", ordered)
    values = number_vector("scores", scores)
    limits = _limits(values, bounds)
    tail = find_exceedances(
        values, threshold=threshold, quantile=quantile if threshold is None else None
    )
    x = tail.excesses
    top = float(values.max())
    shape, end = math.nan, math.nan
    if x.size >= FEWEST:
        best = profile_maximum(excesses=x)
        shape = best.shape
        end = tail.threshold - best.scale / shape if shape < 0 else math.inf
    share_near = math.nan
    if limits is not None:
        near = limits[1] - NEAR * (limits[1] - limits[0])
        share_near = float(np.mean(x + tail.threshold >= near))
    facts: dict[str, Any] = {
        "n_scores": values.size,
        "n_exceedances": x.size,
        "n_distinct": int(np.unique(x).size),
        "threshold": tail.threshold,
        "smallest": float(values.min()),
        "largest": top,
        "bounded": limits is not None,
        "upper_bound": limits[1] if limits is not None else math.nan,
        "share_near_bound": share_near,
        "share_at_largest": float(np.mean(x == x.max())),
        "largest_tie": largest_tie(x)[0],
        "integer": bool(np.all(values == np.round(values))),
        "shape": shape,
        "upper_end_point": end,
        "extremal_index": extremal_index(values, threshold=tail.threshold) if ordered else math.nan,
    }
    association = lag_one_association(values > tail.threshold)[1] if ordered else math.nan
    return ScoreDiagnosis(**facts, findings=tuple(_findings(facts, association)))


def _limits(
    values: np.ndarray, bounds: tuple[float, float] | str | None
) -> tuple[float, float] | None:
    low, high = float(values.min()), float(values.max())
    if bounds is None:
        return None
    if isinstance(bounds, str):
        inside = low >= 0.0 and high <= 1.0 and bounds == "auto"
        # Whole numbers from 0 to 1 are answers, not probabilities, but as bounded as these.
        return (0.0, 1.0) if inside else None
    if len(bounds) != 2 or not bounds[0] < bounds[1] or low < bounds[0] or high > bounds[1]:
        raise InputError(
            "the scores do not lie within these bounds",
            code="bad_bounds",
            field="bounds",
            expected=f"(low, high) with low <= {low:g} and high >= {high:g}",
            got=bounds,
        )
    return float(bounds[0]), float(bounds[1])


def _findings(facts: dict[str, Any], association: float) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    bound, shape = facts["upper_bound"], facts["shape"]
    offer = "a logit transform (with a rule for exact 0 and 1) removes the bound"
    if facts["bounded"]:
        found += _bound_findings(facts, bound, shape, offer)
    if facts["share_at_largest"] >= CAP_SHARE and facts["n_exceedances"] * CAP_SHARE > 1:
        found.append(
            (
                "hard_cap",
                f"{facts['share_at_largest']:.1%} of the exceedances equal the largest score, "
                f"{facts['largest']:g}: scores are cut off there",
            )
        )
    count = facts["largest_tie"] * facts["n_exceedances"]
    if facts["integer"]:
        found.append(("integer", "the scores are whole numbers: tests of fit see the steps"))
    elif facts["largest_tie"] >= TIED_SHARE and count >= 3:
        found.append(
            (
                "ties",
                f"{facts['largest_tie']:.1%} of the exceedances share one value: not a density",
            )
        )
    if facts["extremal_index"] < DEPENDENT and abs(association) > 3.0:
        found.append(
            (
                "serial_dependence",
                f"extremal index {facts['extremal_index']:.2f}: in this order exceedances come in "
                "clusters; if it is the order of time, intervals that take them for independent "
                "are too short: decluster, or resample blocks",
            )
        )
    return found


def _bound_findings(
    facts: dict[str, Any], bound: float, shape: float, offer: str
) -> list[tuple[str, str]]:
    found = [("bounded", f"no score can exceed {bound:g}; {offer}")]
    if facts["share_near_bound"] >= SATURATED_SHARE:
        found.append(
            (
                "saturated",
                f"{facts['share_near_bound']:.1%} of the exceedances lie within {NEAR:.0%} of the "
                f"bound {bound:g}; {offer}",
            )
        )
    if shape > HEAVY:
        found.append(
            (
                "false_heavy_tail",
                f"shape {shape:.2f} says that scores have no upper end, and they end at {bound:g}",
            )
        )
    end = facts["upper_end_point"]
    if shape <= -0.5 or abs(end - bound) <= NEAR:
        found.append(
            (
                "end_point_at_bound",
                f"shape {shape:.2f} with its end point at {end:.4g}: the fit describes the bound, "
                "not the tail",
            )
        )
    return found
