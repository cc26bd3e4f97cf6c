"""Where a tail begins: thresholds by value, quantile or count, and what lies above."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pybridge._options import real_number, whole_number
from pybridge._record import Record, freeze
from pybridge.errors import InputError

RULES = ("value", "quantile", "count")


@dataclass(frozen=True, eq=False, repr=False)
class Exceedances(Record):
    """The part of a sample strictly above a threshold.

    Attributes
    ----------
    threshold : float
    rule : {"value", "quantile", "count"}
        How the threshold was asked for; ``asked`` is the number given.
    excesses : numpy.ndarray
        (n_exceedances,) float64, score minus threshold, in the order of the scores.
    n_scores : int
    n_at_threshold : int
        Scores equal to the threshold, which are not above it.
    """

    threshold: float
    rule: str
    asked: float
    excesses: np.ndarray
    n_scores: int
    n_at_threshold: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "excesses", freeze(self.excesses))

    @property
    def n_exceedances(self) -> int:
        return self.excesses.size

    @property
    def exceedance_rate(self) -> float:
        return self.excesses.size / self.n_scores


def find_exceedances(
    scores: np.ndarray,
    *,
    threshold: float | None = None,
    quantile: float | None = None,
    n_exceedances: int | None = None,
    allow_none: bool = False,
) -> Exceedances:
    """Excesses over a threshold that is given in exactly one of three ways.

    Parameters
    ----------
    scores : (n,) finite float64
    threshold : the value itself
    quantile : in (0, 1); the sample quantile by linear interpolation (R's default, type 7)
    n_exceedances : the threshold is the largest score with this many larger ones, ties aside
    allow_none : whether no exceedance at all is an answer, not an error

    Raises
    ------
    InputError
        ``threshold_choice``, ``bad_quantile``, ``no_exceedances``, ``too_few_scores``.
    """
    value, rule, asked = _threshold(scores, threshold, quantile, n_exceedances)
    above = scores > value
    excesses = scores[above] - value
    if excesses.size == 0 and not allow_none:
        largest = float(scores.max())
        constant = largest == float(scores.min())
        raise InputError(
            "no score lies above the threshold" + (": all scores are equal" if constant else ""),
            code="no_exceedances",
            field={"value": "threshold", "quantile": "quantile", "count": "n_exceedances"}[rule],
            expected=f"a threshold below the largest score, {largest!r}",
            got=f"threshold {value!r}" + ("" if rule == "value" else f", from {rule} {asked:g}"),
        )
    ties = int(np.count_nonzero(scores == value))
    return Exceedances(value, rule, asked, excesses, scores.size, ties)


def _threshold(
    scores: np.ndarray, threshold: object, quantile: object, n_exceedances: object
) -> tuple[float, str, float]:
    given = {"threshold": threshold, "quantile": quantile, "n_exceedances": n_exceedances}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        raise InputError(
            "give the threshold in exactly one way",
            code="threshold_choice",
            field="threshold",
            expected="one of threshold=, quantile=, n_exceedances=",
            got=", ".join(named) or "none of them",
        )
    if threshold is not None:
        value = real_number("threshold", threshold)
        return value, "value", value
    if quantile is not None:
        probability = check_quantile("quantile", quantile)
        return float(np.quantile(scores, probability)), "quantile", probability
    count = whole_number("n_exceedances", n_exceedances, least=1)
    if count >= scores.size:
        raise InputError(
            "there are not enough scores for so many exceedances",
            code="too_few_scores",
            field="n_exceedances",
            expected=f"fewer than the {scores.size} scores",
            got=count,
        )
    place = scores.size - count - 1
    return float(np.partition(scores, place)[place]), "count", float(count)


def check_quantile(field: str, value: object) -> float:
    """A quantile strictly between 0 and 1."""
    number = real_number(field, value)
    if not 0.0 < number < 1.0:
        raise InputError(
            f"{field} must lie strictly between 0 and 1",
            code="bad_quantile",
            field=field,
            expected="0 < quantile < 1, for example 0.95",
            got=value,
            hint="Write 0.95 for the 95 % quantile." if number > 1 else None,
        )
    return number
