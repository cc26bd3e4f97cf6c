"""Quantiles that intervals are made of, and the small record that holds one interval."""

from __future__ import annotations

from dataclasses import dataclass

from scipy.special import ndtri

from pybridge._record import Record


@dataclass(frozen=True, eq=False, repr=False)
class Interval(Record):
    """A confidence interval of one number.

    Attributes
    ----------
    parameter : str
    estimate, lower, upper, level : float
    kind : str
        "delta" (normal, from the standard error), "profile", "resampling" or "parametric".
    """

    parameter: str
    estimate: float
    lower: float
    upper: float
    level: float
    kind: str

    def summary(self) -> str:
        ends = f"{self.estimate:.6g} [{self.lower:.6g}, {self.upper:.6g}]"
        return f"{self.parameter}: {ends} ({self.kind}, level {self.level:g})"


def normal_quantile(level: float) -> float:
    """The z of a two-sided interval: 1.96 at 0.95."""
    return float(ndtri(0.5 + 0.5 * level))


def chi_square_drop(level: float) -> float:
    """By how much the log-likelihood falls inside a profile interval: 1.92 at 0.95."""
    return 0.5 * normal_quantile(level) ** 2
