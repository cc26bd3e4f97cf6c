"""What is asked of a function of R: checked options, a seed, a time limit, and the asking.

The same for sae, hbsae, metafor, rjags and survey; emdi and the tail packages take parts of it.
"""

from __future__ import annotations

import re
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pybridge._options import MODES, check_level, choose, real_number, whole_number
from pybridge._record import Record
from pybridge.errors import EngineError, InputError
from pybridge.r import Reply, call_many, r_stopped

# A bootstrap draws a replicate again where its fit does not converge, without end.
BOOTSTRAP_SECONDS = 600.0
_MOST_SECONDS = 900.0
_MOST_BYTES = 4e9
_MOST_SEED = 2**31 - 1
# Packages that another one is asked together with.
_ALSO = {"rjags": ("coda",)}


@dataclass(frozen=True, eq=False, repr=False)
class EngineRequest(Record):
    """The request, without the data.

    Attributes
    ----------
    function : str
        R's name of it, without its package's.
    arguments : mapping
        R's own arguments under R's own names; columns and tables by name.
    mode : str
        ``"guarded"`` or ``"raw"``.
    level : float
        Confidence level of the intervals.
    seed : int or None
        None where nothing is drawn.
    time_limit : float or None
        Seconds for R.
    package : str
        Whose function it is.
    """

    function: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    mode: str = "guarded"
    level: float = 0.95
    seed: int | None = None
    time_limit: float | None = None
    package: str = "sae"

    @property
    def raw(self) -> bool:
        """Whether R's answer stands as it is."""
        return self.mode == "raw"

    def summary(self) -> str:
        """One line, as R would write the call."""
        words = ", ".join(f"{name} = {value}" for name, value in self.arguments.items())
        seed = "" if self.seed is None else f", seed {self.seed}"
        return f"{self.package}::{self.function}({words}); mode {self.mode}{seed}"


def request(
    function: str,
    arguments: Mapping[str, Any],
    *,
    mode: str,
    level: float,
    seed: int | None,
    time_limit: float | None,
    random: bool = False,
    package: str = "sae",
) -> EngineRequest:
    """A checked request.

    Parameters
    ----------
    random : bool
        Whether R draws numbers. Then there is always a seed (a fresh one, kept in the record,
        where none is given) and always a time limit.
    package : str
        Whose function it is.
    """
    choose("mode", mode, MODES)
    if time_limit is not None:
        time_limit = real_number("time_limit", time_limit)
    elif random:
        time_limit = BOOTSTRAP_SECONDS
    if seed is not None:
        seed = whole_number("seed", seed, least=0, most=_MOST_SEED)
    if random and seed is None:
        seed = secrets.randbelow(_MOST_SEED)
    return EngineRequest(
        package=package,
        function=function,
        arguments=dict(arguments),
        mode=mode,
        level=check_level(level),
        seed=seed if random else None,
        time_limit=time_limit,
    )


def refuse_redrawn(what: str, *, hint: str) -> None:
    """InputError for a record that R drew without a seed: asked again it would draw others."""
    raise InputError(
        f"{what} without a seed: R would draw other numbers than this record's",
        code="no_seed",
        field="seed",
        expected="a call that gives the same numbers when it is made again",
        got=None,
        hint=hint,
    )


def precision(value: Any) -> float:
    """sae's relative change at which it stops."""
    number = real_number("PRECISION", value)
    if number <= 0:
        raise InputError(
            "PRECISION must be positive",
            code="bad_precision",
            field="PRECISION",
            expected="a relative change, for example 1e-4",
            got=value,
        )
    return number


def iterations(value: Any) -> int:
    """sae's MAXITER."""
    return whole_number("MAXITER", value, least=0)


def refuse_cost(
    asked: EngineRequest, *, rows: int, seconds: float, matrices: int, hint: str
) -> None:
    """InputError where R would need more time than is allowed, or more memory than there may be.

    Parameters
    ----------
    rows : int
        m, of matrices of m × m doubles.
    seconds : float
        The estimate, measured with R's reference BLAS.
    matrices : int
        How many such matrices sae holds.
    hint : str
        The engines that can.
    """
    allowed = _MOST_SECONDS if asked.time_limit is None else asked.time_limit
    size = matrices * 8.0 * rows * rows
    if seconds <= max(allowed, 10.0) and size <= _MOST_BYTES:
        return
    raise InputError(
        f"{asked.package}::{asked.function} would take about {_readable(seconds)} and "
        f"{size / 1e9:.1g} GB",
        code="too_large",
        field="data",
        expected=f"at most {_readable(allowed)} and {_MOST_BYTES / 1e9:.0f} GB",
        got=f"{rows} rows",
        hint=f"{hint} A larger time_limit allows more time.",
    )


def _readable(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"


def ask(
    shim: str,
    inputs: Mapping[str, Any],
    asked: EngineRequest,
    *,
    may_fail: bool | re.Pattern[str] = False,
) -> Reply:
    """Call a shim of the request's package.

    Parameters
    ----------
    may_fail : bool or re.Pattern
        Leave R's error in the reply instead of raising it: any, or those whose words match, by
        which the numbers are at fault and not the call.

    Raises
    ------
    InputError
        Where the formula is refused, before the package is called.
    EngineError
        Where R stops.
    EngineUnavailable, EngineTimeout, WorkerDied
        As everywhere.
    """
    packages = (asked.package, *_ALSO.get(asked.package, ()))
    (reply,) = call_many(shim, [inputs], packages=packages, time_limit=asked.time_limit)
    error = reply.error
    if error is None:
        return reply
    if "shared_refusal" in error["class"]:
        raise InputError(
            f"the formula is refused: {error['message']}",
            code="bad_formula",
            field="formula",
            expected="'y ~ x + as.factor(g)', in R's words",
            got=inputs.get("formula"),
        )
    if isinstance(may_fail, re.Pattern):
        may_fail = may_fail.search(error["message"]) is not None
    if not may_fail:
        raise engine_error(asked.function, reply, package=asked.package)
    return reply


def engine_error(function: str, reply: Reply, *, package: str = "sae") -> EngineError:
    """R's error as an exception."""
    return r_stopped(f"{package}::{function}", reply)


def said(reply: Reply) -> tuple[str, ...]:
    """R's own words, for the record; a bootstrap's count of its replicates left out."""
    lines = [f"R warning: {text.strip()}" for text in dict.fromkeys(reply.warnings)]
    lines += [f"R message: {text.strip()}" for text in dict.fromkeys(reply.messages)]
    printed = [text for text in reply.printed if text.strip() and not text.startswith("b = ")]
    lines += [f"R printed: {text}" for text in dict.fromkeys(printed)]
    if reply.error is not None:
        lines.append(f"R error: {reply.error['message']}")
    return tuple(lines)


def numbers(values: Any) -> np.ndarray:
    """R's numbers, its NA as a plain NaN: NA is one that arithmetic would complain about."""
    array = np.array(values, dtype=np.float64)
    array[np.isnan(array)] = np.nan
    return array


def hand_on(reply: Reply, *, package: str = "sae") -> None:
    """R's warnings as Python's, at the line outside the package that asked."""
    if not reply.warnings:
        return
    depth, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        depth, frame = depth + 1, frame.f_back
    reply.warn(package, stacklevel=depth)


def _is_ours(module: str) -> bool:
    return module == "pybridge" or module.startswith("pybridge.")
