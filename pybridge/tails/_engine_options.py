"""Options of evd's and ismev's fits, checked before R is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pybridge._checks import number_vector
from pybridge._options import choose, real_number, whole_number, yes_or_no
from pybridge.errors import InputError

METHODS = ("Nelder-Mead", "BFGS", "CG", "L-BFGS-B", "SANN", "Brent")


def checked_options(
    options: Mapping[str, Any], allowed: Sequence[str], function: str
) -> dict[str, Any]:
    """The options that say something, each of its kind.

    Raises
    ------
    InputError
        ``unknown_option`` for what would not reach R's function, or would change what it fits.
    """
    unknown = [name for name in options if name not in allowed]
    if unknown:
        raise InputError(
            f"{function} is not called with {', '.join(unknown)} here",
            code="unknown_option",
            field=unknown[0],
            expected=", ".join(allowed),
            got=", ".join(unknown),
            hint="Every argument of R's function can be reached through pybridge.engines.",
        )
    given = {name: value for name, value in options.items() if value is not None}
    return {name: _KINDS[name](name, value) for name, value in given.items()}


def _method(name: str, value: Any) -> str:
    return choose(name, value, METHODS)


def _count(name: str, value: Any) -> int:
    return whole_number(name, value, least=0)


def _mapping(name: str, value: Any) -> dict[str, Any]:
    """Numbers by name, or vectors of them."""
    if not isinstance(value, Mapping) or not all(isinstance(word, str) for word in value):
        raise InputError(
            f"{name} must be a mapping of numbers by R's words",
            code="not_a_mapping",
            field=name,
            expected="{'scale': 1.0, 'shape': 0.1}" if name == "start" else "{'maxit': 500}",
            got=type(value).__name__,
        )
    return {word: _numbers(f"{name}[{word}]", item) for word, item in value.items()}


def _numbers(name: str, value: Any) -> Any:
    many = isinstance(value, Sequence) and not isinstance(value, (str, bytes))
    many = many or getattr(value, "ndim", 0) == 1
    return number_vector(name, value) if many else real_number(name, value)


_KINDS: dict[str, Callable[[str, Any], Any]] = {
    "start": _mapping,
    "control": _mapping,
    "std.err": yes_or_no,
    "corr": yes_or_no,
    "warn.inf": yes_or_no,
    "method": _method,
    "maxit": _count,
    "npp": real_number,
    "npy": real_number,
    "siginit": _numbers,
    "shinit": _numbers,
    "reltol": real_number,
    "abstol": real_number,
    "parscale": _numbers,
    "ndeps": _numbers,
    "time_limit": real_number,
}
