"""What is asked of evd, ismev and evir: checked scores and options, units, and the asking."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pybridge._checks import number_vector
from pybridge._options import MODES, check_level, choose, real_number
from pybridge._record import Record
from pybridge.engines._tail_optimum import pareto_peak
from pybridge.errors import InputError
from pybridge.r import Reply, call_many, r_stopped

# Below, the likelihood of a tail mostly has no maximum, and R's packages report success.
FEWEST = 5
METHODS = ("BFGS", "Nelder-Mead", "CG", "L-BFGS-B", "SANN", "Brent")


@dataclass(frozen=True, eq=False, repr=False)
class TailRequest(Record):
    """The request, without the scores.

    Attributes
    ----------
    package, function : str
        R's names.
    arguments : mapping
        R's own arguments under R's own names, in the user's units.
    mode : str
        ``"guarded"`` or ``"raw"``.
    level : float
        Confidence level of the intervals.
    time_limit : float or None
        Seconds for R.
    unit : float
        What R's scores are divided by: 1 in raw mode, else a power of two, so that nothing is
        rounded and ties stay ties.
    """

    package: str
    function: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    mode: str = "guarded"
    level: float = 0.95
    time_limit: float | None = None
    unit: float = 1.0

    @property
    def raw(self) -> bool:
        """Whether R's answer stands as it is."""
        return self.mode == "raw"

    def summary(self) -> str:
        """One line, as R would write the call."""
        words = ", ".join(f"{name} = {_word(value)}" for name, value in self.arguments.items())
        return f"{self.package}::{self.function}({words}); mode {self.mode}"


def _word(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"({', '.join(f'{name} = {_word(item)}' for name, item in value.items())})"
    if isinstance(value, np.ndarray):
        return f"{value.size} numbers" if value.size > 4 else f"{value.tolist()}"
    return f"{value:.10g}" if isinstance(value, float) else f"{value}"


def request(
    package: str,
    function: str,
    arguments: Mapping[str, Any],
    *,
    mode: str,
    level: float = 0.95,
    time_limit: float | None = None,
    unit: float = 1.0,
) -> TailRequest:
    """A checked request; arguments that are None are R's defaults and left out."""
    choose("mode", mode, MODES)
    if time_limit is not None:
        time_limit = positive("time_limit", time_limit)
    return TailRequest(
        package=package,
        function=function,
        arguments={name: value for name, value in arguments.items() if value is not None},
        mode=mode,
        level=check_level(level),
        time_limit=time_limit,
        unit=unit if mode == "guarded" else 1.0,
    )


def ask(
    shim: str, inputs: Mapping[str, Any], asked: TailRequest, *, may_fail: bool = False
) -> Reply:
    """Call a shim of the tail packages.

    Parameters
    ----------
    may_fail : bool
        Leave R's error in the reply instead of raising it.

    Raises
    ------
    EngineError
        Where R stops.
    EngineUnavailable, EngineTimeout, WorkerDied
        As everywhere.
    """
    (reply,) = call_many(shim, [inputs], packages=(asked.package,), time_limit=asked.time_limit)
    if reply.error is not None and not may_fail:
        raise r_stopped(f"{asked.package}::{asked.function}", reply)
    return reply


def hand_on(reply: Reply, package: str) -> None:
    """R's warnings as Python's, at the line outside the package that asked."""
    if not reply.warnings:
        return
    depth, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("pybridge"):
        depth, frame = depth + 1, frame.f_back
    reply.warn(package, stacklevel=depth)


def scores(field: str, values: Any, *, mode: str) -> np.ndarray:
    """The scores as (n,) float64. Raw mode lets missing and infinite ones through, as R does."""
    if choose("mode", mode, MODES) == "guarded":
        return number_vector(field, values)
    array = np.asarray(values)
    if array.ndim == 1 and array.dtype.kind in "fiub" and array.size:
        return array.astype(np.float64)
    return number_vector(field, values)


def power_of_two(excesses: np.ndarray) -> float:
    """The power of two nearest to the scale of (n,) excesses: of the best fit, or their mean."""
    above = excesses[np.isfinite(excesses)]
    if above.size == 0 or not above.max() < 1e300:
        return 1.0
    peak = pareto_peak(above)
    scale = float(peak.theta[0]) if peak.settled else float(above.mean())
    return 2.0 ** min(max(round(math.log2(scale)), -1000), 1000)


def exceeding(values: np.ndarray, threshold: Any) -> np.ndarray:
    """Excesses over a threshold, or over one threshold a score."""
    above = values > threshold
    limit = threshold[above] if isinstance(threshold, np.ndarray) else threshold
    return values[above] - limit


def need_exceedances(excesses: np.ndarray, values: np.ndarray, *, fewest: int = FEWEST) -> None:
    """InputError unless there are enough excesses for a fit."""
    if excesses.size == 0:
        raise InputError(
            "no score lies above the threshold",
            code="no_exceedances",
            field="threshold",
            expected=f"a threshold below the largest score, {float(values.max())!r}",
            got="no exceedance",
        )
    if excesses.size < fewest:
        raise InputError(
            "too few scores lie above the threshold",
            code="too_few_exceedances",
            field="threshold",
            expected=f"at least {fewest} exceedances",
            got=excesses.size,
            hint="R's packages report success there, at a place that is no maximum.",
        )


def need_clusters(count: int) -> None:
    """InputError unless there are enough clusters' maxima for a fit."""
    if count < FEWEST:
        raise InputError(
            "too few clusters lie above the threshold",
            code="too_few_exceedances",
            field="r",
            expected=f"at least {FEWEST} clusters",
            got=count,
            hint="A smaller r, or rlow with ulow, ends clusters sooner; a higher threshold too.",
        )


def positive(name: str, value: Any) -> float:
    """A positive number."""
    number = real_number(name, value)
    if number <= 0:
        raise InputError(
            f"{name} must be positive",
            code="not_positive",
            field=name,
            expected="a number greater than 0",
            got=value,
        )
    return number


def confidence(name: str, value: Any) -> float:
    """A level under R's own name for it."""
    number = real_number(name, value)
    if not 0.0 < number < 1.0:
        raise InputError(
            f"{name} must lie strictly between 0 and 1",
            code="bad_level",
            field=name,
            expected=f"0 < {name} < 1, for example 0.95",
            got=value,
        )
    return number


def limits(name: str, value: Any) -> tuple[float, float]:
    """Two numbers, the smaller one first."""
    ends = number_vector(name, value)
    if ends.size != 2 or not ends[0] < ends[1]:
        raise InputError(
            f"{name} must be two numbers, the smaller one first",
            code="bad_limits",
            field=name,
            expected="(lower, upper)",
            got=value,
        )
    return float(ends[0]), float(ends[1])


def search_method(value: Any, *, mode: str) -> str:
    """A method of R's optim; the one that draws at random has no place in a guarded fit."""
    word = choose("method", value, METHODS)
    if word == "SANN" and mode == "guarded":
        raise InputError(
            "simulated annealing draws at random and ends anywhere near a maximum",
            code="random_search",
            field="method",
            expected="another method of optim, or mode='raw'",
            got=value,
        )
    return word


def control_list(value: Any) -> dict[str, Any] | None:
    """optim's ``control``: numbers, or vectors of numbers, by name."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise InputError(
            "control must be a mapping of optim's words",
            code="bad_control",
            field="control",
            expected="for example {'maxit': 500}",
            got=value,
        )
    found: dict[str, Any] = {}
    for name, item in value.items():
        many = isinstance(item, (Sequence, np.ndarray)) and not isinstance(item, str)
        found[str(name)] = (
            number_vector(f"control[{name}]", item)
            if many
            else real_number(f"control[{name}]", item)
        )
    return found
