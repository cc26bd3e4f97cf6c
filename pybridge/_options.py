"""The words that arguments may take, checked in one place with one kind of error."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from pybridge.errors import InputError

DIRECT_VARIANCES = ("direct", "smoothed", "pooled", "gvf")
LONELY_PSU = ("fail", "adjust", "average", "certainty", "remove")
SLOPES = ("pooled", "within", "domain")
SMOOTHING_ENGINES = ("sae", "emdi", "hbsae", "native")
MODES = ("guarded", "raw")
SCORES = ("db-cv", "naive", "adjusted", "sure", "split", "all")
REFERENCES = ("auto", "ht", "hajek", "ppi", "greg")
COVARIANCES = ("jackknife", "linearised")
# Of a bootstrap: more of them would not end, and say nothing more.
MOST_REPLICATES = 10_000_000
# Of a cross-validation: each refits every candidate on every fold.
MOST_REPETITIONS = 100_000

# The words of api.md, the same everywhere.
FIT_STATUSES = ("converged", "boundary", "not_converged", "weak_identification", "failed")
DOMAIN_STATUSES = (
    "ok",
    "out_of_sample",
    "single_unit",
    "constant_outcome",
    "census",
    "negative_mse",
    "not_scored",
)


def choose(field: str, value: Any, allowed: Iterable[str]) -> str:
    """Return ``value`` if it is one of the allowed words, else raise InputError naming them."""
    words = tuple(allowed)
    if isinstance(value, str) and value in words:
        return value
    raise InputError(
        f"{field} must be one of {', '.join(words)}",
        code="unknown_option",
        field=field,
        expected=" | ".join(words),
        got=value,
    )


def check_level(level: float) -> float:
    """A confidence level strictly between 0 and 1."""
    number = real_number("level", level)
    if not 0.0 < number < 1.0:
        raise InputError(
            "the confidence level must lie strictly between 0 and 1",
            code="bad_level",
            field="level",
            expected="0 < level < 1, for example 0.95",
            got=level,
            hint="Write 0.95 for a 95 % interval." if number > 1 else None,
        )
    return number


def real_number(field: str, value: Any) -> float:
    """A finite float, from any real number that is not a bool."""
    good = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    # An integer of more than 308 digits has no float.
    if not good or not abs(value) < math.inf or abs(value) > sys.float_info.max:
        raise InputError(
            f"{field} must be a finite number",
            code="not_a_number",
            field=field,
            expected="a finite number",
            got=value,
        )
    return float(value)


def whole_number(field: str, value: Any, *, least: int, most: int | None = None) -> int:
    """An integer in [least, most], from any integral type that is not a bool."""
    good = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not good or value < least or (most is not None and value > most):
        limits = f"a whole number, at least {least}" + ("" if most is None else f", at most {most}")
        raise InputError(
            f"{field} must be {limits}",
            code="bad_count",
            field=field,
            expected=limits,
            got=value,
        )
    return int(value)


def yes_or_no(field: str, value: Any) -> bool:
    """True or False as they are: text such as "no" would count as true otherwise."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise InputError(
        f"{field} must be True or False",
        code="not_a_bool",
        field=field,
        expected="True or False",
        got=value,
    )


def need_kind(field: str, value: Any, kind: type, maker: str) -> None:
    """InputError for anything but what one of the package's own functions makes."""
    if not isinstance(value, kind):
        raise InputError(
            f"{field} must come from pybridge.{maker}(...)",
            code="wrong_type",
            field=field,
            expected=kind.__name__,
            got=type(value).__name__,
        )
