"""How many exceedances a claim about tail shapes needs, and what a number of them can see.

Smith (1987, Annals of Statistics 15): for shapes above -1/2 the maximum likelihood estimate of the
shape from n exceedances is asymptotically normal with variance (1 + shape)^2 / n.

``required_exceedances`` promises the power of the two-sample z-test at a true difference, no more.
A rule that asks for two intervals that do not overlap and for an estimated difference above a
floor has less: at a true difference equal to the floor it is met about half the time at best,
however many exceedances there are. ``rule_power`` is the power of that rule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from pybridge._options import MOST_REPLICATES, check_level, choose, real_number, whole_number
from pybridge._record import Record
from pybridge.errors import InputError
from pybridge.tails._distribution import draw
from pybridge.tails._batch import refit_rows
from pybridge.tails._streams import stream
from pybridge.tails.thresholds import check_quantile


def required_exceedances(
    difference: float = 0.10,
    *,
    shape: float = 0.0,
    other_shape: float | None = None,
    power: float = 0.80,
    alpha: float = 0.05,
) -> int:
    """Exceedances that each of two models needs: 1,570 with the defaults.

    N* = ((1 + shape)^2 + (1 + other)^2) (z_{1 - alpha/2} + z_power)^2 / difference^2, rounded up.

    Parameters
    ----------
    difference : float
        The smallest difference of shapes worth claiming, positive.
    shape, other_shape : float
        Planning shapes of the two models (the second is the first by default); above -1/2.
        They are planned before the data, never estimates.
    power : float
        Of the two-sample z-test at that difference, above alpha.
    alpha : float
        Its two-sided level.

    Raises
    ------
    InputError
        ``nonregular_shape``, ``bad_difference``, ``bad_power``, ``bad_alpha``.
    """
    gap = _positive("difference", difference)
    factor = _variance_factor(shape, other_shape)
    return math.ceil(round(factor * _z_sum(power, alpha) ** 2 / gap**2, 9))


def detectable_difference(
    n_exceedances: int,
    *,
    shape: float = 0.0,
    other_shape: float | None = None,
    power: float = 0.80,
    alpha: float = 0.05,
) -> float:
    """The difference of shapes that so many exceedances can see; the inverse of the above."""
    n = whole_number("n_exceedances", n_exceedances, least=1)
    return _z_sum(power, alpha) * math.sqrt(_variance_factor(shape, other_shape) / n)


def required_scores(n_exceedances: int, *, quantile: float = 0.95) -> int:
    """Scores needed for so many exceedances of a sample quantile: 31,400 for 1,570 at 0.95."""
    n = whole_number("n_exceedances", n_exceedances, least=1)
    return math.ceil(round(n / (1.0 - check_quantile("quantile", quantile)), 6))


def rule_power(
    n_exceedances: int,
    difference: float,
    *,
    shape: float = 0.0,
    floor: float = 0.10,
    level: float = 0.95,
) -> float:
    """Probability that both criteria are met: intervals apart, and the estimate above the floor.

    With s_A = (1 + shape)/sqrt(n), s_B = (1 + shape + difference)/sqrt(n) and z of the level, the
    intervals are apart when |estimate| > z (s_A + s_B), and the estimate is normal around the
    difference with variance s_A^2 + s_B^2.

    Parameters
    ----------
    n_exceedances : int
        Of each model.
    difference : float
        The true difference, 0 or more; ``shape`` is the smaller of the two shapes.
    floor : float
        The least estimated difference that counts.
    level : float
        Of the two intervals.
    """
    n = whole_number("n_exceedances", n_exceedances, least=1)
    gap, least = real_number("difference", difference), real_number("floor", floor)
    first, second = _regular("shape", shape), _regular("shape", shape + gap)
    z = float(ndtri(0.5 + 0.5 * check_level(level)))
    s_a, s_b = (1.0 + first) / math.sqrt(n), (1.0 + second) / math.sqrt(n)
    limit, spread = max(least, z * (s_a + s_b)), math.hypot(s_a, s_b)
    return float(ndtr((gap - limit) / spread) + ndtr((-gap - limit) / spread))


def required_for_rule(
    difference: float,
    *,
    shape: float = 0.0,
    floor: float = 0.10,
    power: float = 0.80,
    level: float = 0.95,
) -> int:
    """Exceedances a model at which ``rule_power`` reaches ``power``.

    Raises
    ------
    InputError
        ``unreachable_power`` where the true difference is no larger than the floor: then the
        estimate falls below the floor half the time, with any number of exceedances.
    """
    gap = _positive("difference", difference)
    aim = _share("power", power)
    if gap <= floor:
        raise InputError(
            "no sample size reaches this power",
            code="unreachable_power",
            field="difference",
            expected=f"a true difference above the floor of {floor:g}",
            got=difference,
            hint="At a true difference equal to the floor the rule is met half the time at best.",
        )

    def reached(n: int) -> bool:
        return rule_power(n, gap, shape=shape, floor=floor, level=level) >= aim

    high = 2
    while not reached(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def planning_table(
    *,
    shapes: Sequence[float] = (-0.2, 0.0, 0.2, 0.5),
    differences: Sequence[float] = (0.05, 0.10, 0.15, 0.20, 0.25),
    power: float = 0.80,
    alpha: float = 0.05,
    quantile: float = 0.95,
    floor: float = 0.10,
) -> pd.DataFrame:
    """A row for every shape and difference: exceedances, scores, and the power of the whole rule.

    Returns
    -------
    pandas.DataFrame
        shape, difference, n_exceedances (z-test), n_scores, rule_power (of both criteria with
        that many exceedances), n_exceedances_rule (for the rule to reach ``power``; missing where
        no number does).
    """
    rows = []
    for shape in shapes:
        for gap in differences:
            n = required_exceedances(gap, shape=shape, power=power, alpha=alpha)
            rule = rule_power(n, gap, shape=shape, floor=floor, level=1.0 - alpha)
            needed = math.nan
            if gap > floor:
                needed = required_for_rule(
                    gap, shape=shape, floor=floor, power=power, level=1.0 - alpha
                )
            rows.append((shape, gap, n, required_scores(n, quantile=quantile), rule, needed))
    names = ["shape", "difference", "n_exceedances", "n_scores", "rule_power"]
    return pd.DataFrame(rows, columns=[*names, "n_exceedances_rule"])


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedPower(Record):
    """A power by simulation, with its Monte Carlo standard error."""

    what: str
    power: float
    standard_error: float
    replicates: int

    def summary(self) -> str:
        return f"{self.what}: {self.power:.3f} ± {self.standard_error:.3f} ({self.replicates})"


def simulated_power(
    n_exceedances: int,
    difference: float,
    *,
    what: str = "test",
    shape: float = 0.0,
    floor: float = 0.10,
    alpha: float = 0.05,
    replicates: int = 2000,
    seed: int = 1,
) -> SimulatedPower:
    """The power of the z-test or of the rule, with real fits of simulated excesses.

    Parameters
    ----------
    what : {"test", "rule"}
        ``test``: |difference of the estimates| > z sqrt(s_A^2 + s_B^2); ``rule``: the intervals
        estimate ± z s do not overlap and the difference exceeds the floor. The standard errors
        are Smith's at the estimates, s = (1 + estimate)/sqrt(n).
    n_exceedances, difference, shape, floor
        As in :func:`rule_power`.
    """
    choose("what", what, ("test", "rule"))
    n = whole_number("n_exceedances", n_exceedances, least=5)
    b = whole_number("replicates", replicates, least=2, most=MOST_REPLICATES)
    fits = []
    for label, value in (("A", shape), ("B", shape + difference)):
        rng = stream(seed, "power", label)
        per_block = max(1, (1 << 19) // n)
        parts = []
        for start in range(0, b, per_block):
            size = (min(per_block, b - start), n)
            x = draw(rng=rng, size=size, shape=_regular("shape", value), scale=1.0)
            parts.append(refit_rows(excesses=x, start=value).shape)
        fits.append(np.concatenate(parts))
    gap = np.abs(fits[0] - fits[1])
    s_a, s_b = ((1.0 + one) / math.sqrt(n) for one in fits)
    z = float(ndtri(1.0 - 0.5 * _share("alpha", alpha)))
    met = (
        gap > z * np.hypot(s_a, s_b) if what == "test" else gap > np.maximum(floor, z * (s_a + s_b))
    )
    share = float(met.mean())
    return SimulatedPower(what, share, math.sqrt(share * (1 - share) / b), b)


def _variance_factor(shape: float, other_shape: float | None) -> float:
    first = _regular("shape", shape)
    second = first if other_shape is None else _regular("other_shape", other_shape)
    return (1.0 + first) ** 2 + (1.0 + second) ** 2


def _z_sum(power: float, alpha: float) -> float:
    size, aim = _share("alpha", alpha), _share("power", power)
    if not aim > size:
        raise InputError(
            "a test at this level has this power without any difference",
            code="bad_power",
            field="power",
            expected=f"a power above alpha, {size:g}",
            got=power,
        )
    return float(ndtri(1.0 - 0.5 * size) + ndtri(aim))


def _share(field: str, value: float) -> float:
    """A number strictly between 0 and 1."""
    number = real_number(field, value)
    if not 0.0 < number < 1.0:
        raise InputError(
            f"{field} must lie strictly between 0 and 1",
            code=f"bad_{field}",
            field=field,
            expected=f"0 < {field} < 1",
            got=value,
            hint=f"Write {number / 100:g} for {number:g} %." if 1 < number < 100 else None,
        )
    return number


def _regular(field: str, shape: float) -> float:
    value = real_number(field, shape)
    if value <= -0.5:
        raise InputError(
            "the asymptotics of the shape do not hold at shapes of at most -1/2",
            code="nonregular_shape",
            field=field,
            expected="a shape above -0.5",
            got=shape,
        )
    return value


def _positive(field: str, value: float) -> float:
    number = real_number(field, value)
    if not number > 0.0:
        raise InputError(
            f"{field} must be positive",
            code=f"bad_{field}",
            field=field,
            expected=f"{field} > 0",
            got=value,
        )
    return number
