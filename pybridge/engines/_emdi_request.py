"""What is asked of emdi::fh: the checked table, R's own arguments, and what guarding adds."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Mapping
from typing import Any

import numpy as np

from pybridge._options import MODES, check_level, choose, real_number, whole_number, yes_or_no
from pybridge._record import Record
from pybridge.engines._emdi_legal import (
    BACKTRANSFORMATIONS,
    BOOTSTRAPS,
    CORRELATIONS,
    METHODS,
    MSE_TYPES,
    TRANSFORMATIONS,
    check_combination,
)
from pybridge.errors import InputError

ROBUST = ("reblup", "reblupbc")
DEFAULT_SEED = 123  # emdi's own
_MOST_SEED = 2**31 - 1
DEFAULTS = {
    "method": "reml",
    "interval": None,
    "k": 1.345,
    "mult_constant": 1.0,
    "transformation": "no",
    "backtransformation": None,
    "correlation": "no",
    "tol": 1e-4,
    "maxit": 100,
    "MSE": False,
    "mse_type": "analytical",
    "B": (50, 0),
    "seed": DEFAULT_SEED,
}


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class FhRequest(Record):
    """A request for emdi::fh on m domains.

    Attributes
    ----------
    fixed : str
        The formula in the user's words.
    code : str
        The formula as R gets it, columns under names that any locale reads.
    outcome : str
        The column of direct estimates, by its name in R.
    columns : mapping of str
        The columns by their names in R, rows in R's order: arrays; text as an object array;
        ``codes`` and ``levels`` where R gets a factor.
    labels : mapping of str to str
        The user's names of these columns.
    domains : numpy.ndarray
        Shape (m,), object, the user's labels in R's order of rows.
    order : numpy.ndarray
        Shape (m,): the user's row of each of R's rows.
    estimate, variance : numpy.ndarray
        Shape (m,), direct estimates (NaN where there is none) and sampling variances.
    n_effective : numpy.ndarray or None
        Shape (m,), effective sample sizes.
    proximity : numpy.ndarray or None
        Shape (n, n), W of the n sampled domains, in R's order.
    errors : numpy.ndarray or None
        Shape (p, p, m), covariances of the covariates' errors, in R's order.
    covariates : numpy.ndarray
        Shape (m, p), the design matrix.
    covariate_names : tuple of str
        p names.
    arguments : mapping
        emdi's own arguments by its own names, defaults filled in.
    mode : str
    level : float
        Confidence level of the intervals.
    time_limit : float or None
        Seconds for R.
    unit : float
        What the guarded call divides estimates by.
    covariates_unit : numpy.ndarray or None
        Shape (p,), the same for the columns of the design matrix, method ``me``.
    remarks : tuple of str
        What was changed or noticed before the call.
    """

    fixed: str
    code: str
    outcome: str
    columns: Mapping[str, Any]
    labels: Mapping[str, str]
    domains: np.ndarray
    order: np.ndarray
    estimate: np.ndarray
    variance: np.ndarray
    n_effective: np.ndarray | None
    proximity: np.ndarray | None
    errors: np.ndarray | None
    covariates: np.ndarray
    covariate_names: tuple[str, ...]
    arguments: Mapping[str, Any]
    mode: str = "guarded"
    level: float = 0.95
    time_limit: float | None = None
    unit: float = 1.0
    covariates_unit: np.ndarray | None = None
    remarks: tuple[str, ...] = ()

    @property
    def guarded(self) -> bool:
        """Whether more than R's own call is made."""
        return self.mode == "guarded"

    @property
    def sampled(self) -> np.ndarray:
        """Shape (m,), bool: domains with a direct estimate."""
        return ~np.isnan(self.estimate)

    @property
    def method(self) -> str:
        """emdi's word."""
        return str(self.arguments["method"])

    @property
    def transformation(self) -> str:
        """emdi's word; ``"no"`` for none."""
        return str(self.arguments["transformation"])

    @property
    def backtransformation(self) -> str | None:
        """emdi's word."""
        return self.arguments["backtransformation"]

    @property
    def spatial(self) -> bool:
        """Whether domain effects are correlated."""
        return bool(self.arguments["correlation"] == "spatial")

    @property
    def exact(self) -> bool:
        """Whether bias corrections are computed exactly."""
        return self.guarded and self.backtransformation == "bc" and self.transformation != "no"

    def summary(self) -> str:
        """The call as R would write it."""
        words = ", ".join(f"{name} = {_r_word(value)}" for name, value in self.arguments.items())
        return f"emdi::fh({self.fixed}, {words}); mode {self.mode}"


def _r_word(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, (tuple, np.ndarray)):
        return f"c({', '.join(_r_word(item) for item in value)})"
    return f'"{value}"' if isinstance(value, str) else f"{value:g}"


def check_arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """emdi's arguments that are not data, checked one by one and together.

    Parameters
    ----------
    given : mapping
        method, interval, k, mult_constant, transformation, backtransformation, correlation, tol,
        maxit, MSE, mse_type, B, seed.

    Raises
    ------
    InputError
        Words that emdi does not know, numbers that it would misread, and combinations that it
        does not have: then the error names those that it has.
    """
    words = dict(given)
    choose("method", words["method"], METHODS)
    choose("transformation", words["transformation"], TRANSFORMATIONS)
    choose("correlation", words["correlation"], CORRELATIONS)
    if words["backtransformation"] is not None:
        choose("backtransformation", words["backtransformation"], BACKTRANSFORMATIONS)
    if yes_or_no("MSE", words["MSE"]):
        choose("mse_type", words["mse_type"], MSE_TYPES)
    check_combination(
        method=words["method"],
        transformation=words["transformation"],
        backtransformation=words["backtransformation"],
        correlation=words["correlation"],
        mse_type=words["mse_type"] if words["MSE"] else None,
    )
    for name in ("k", "mult_constant", "tol"):
        words[name] = _positive(name, words[name])
    words["maxit"] = whole_number("maxit", words["maxit"], least=1)
    words["interval"] = _interval(words["interval"])
    words["B"] = _replicates(words)
    words["seed"] = seed_on_record(words["seed"], drawn=draws(words))
    return words


def draws(words: Mapping[str, Any]) -> bool:
    """Whether emdi draws random numbers with these arguments: MSE, mse_type and B."""
    bootstrap = words["MSE"] and words["mse_type"] in BOOTSTRAPS
    counts = np.atleast_1d(np.asarray(words["B"])).tolist()
    several = len(counts) == 2 and isinstance(counts[1], (int, float)) and counts[1] > 1
    return bool(bootstrap or several)


def seed_on_record(seed: Any, *, drawn: bool) -> int | None:
    """The seed that was given; where none was and numbers are drawn, a fresh one.

    R's random stream is put back after each call: without a seed every call would draw the same.
    """
    if seed is not None:
        return whole_number("seed", seed, least=0, most=_MOST_SEED)
    return secrets.randbelow(_MOST_SEED) if drawn else None


def check_settings(*, mode: Any, level: Any, time_limit: Any) -> dict[str, Any]:
    """What is pybridge's own in a request."""
    if time_limit is not None:
        time_limit = _positive("time_limit", time_limit)
    return {
        "mode": choose("mode", mode, MODES),
        "level": check_level(level),
        "time_limit": time_limit,
    }


def _positive(name: str, value: Any) -> float:
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


def _interval(value: Any) -> tuple[float, float] | None:
    if value is None:
        return None
    ends = [real_number("interval", end) for end in np.asarray(value).ravel().tolist()]
    if len(ends) != 2 or not 0 <= ends[0] < ends[1]:
        raise InputError(
            "interval must be two numbers, the smaller one first, neither negative",
            code="bad_interval",
            field="interval",
            expected="(lower, upper) for the model variance, or None",
            got=value,
        )
    return ends[0], ends[1]


def _replicates(words: Mapping[str, Any]) -> tuple[int, int]:
    """B: replicates of the bootstrap MSE, and of the bootstrap criteria."""
    value = words["B"]
    items: list[Any] = np.atleast_1d(np.asarray(value)).tolist()
    if len(items) not in (1, 2):
        raise InputError(
            "B must be one or two whole numbers",
            code="bad_count",
            field="B",
            expected="(replicates of the MSE, replicates of the information criteria)",
            got=value,
        )
    counts = [
        int(item) if isinstance(item, float) and item.is_integer() else item for item in items
    ]
    drawn = words["MSE"] and words["mse_type"] in BOOTSTRAPS
    first = whole_number("B", counts[0], least=2 if drawn else 0)
    second = whole_number("B", counts[1] if len(counts) == 2 else 0, least=0)
    if second > 1 and _without_criteria(words):
        raise InputError(
            "emdi has bootstrap criteria for the model without transformation and correlation only",
            code="illegal_combination",
            field="B",
            expected="B = (replicates of the MSE, 0)",
            got=value,
        )
    return first, second


def _without_criteria(words: Mapping[str, Any]) -> bool:
    special = words["method"] in (*ROBUST, "me")
    return special or words["correlation"] != "no" or words["transformation"] != "no"
