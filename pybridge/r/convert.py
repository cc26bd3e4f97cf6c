"""What may cross to R, and in which form: the policy of the border.

Everything that R would change silently is refused here, with the name of the column: integers
beyond R's 32 bits, nullable columns with missing integers or flags, columns of mixed objects,
names that are empty or occur twice, text that is not valid Unicode or holds a NUL.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from pybridge._integers import Integers
from pybridge.errors import InputError
from pybridge.r.wire import NA_REAL, Factor

_MOST = 2**31 - 1
_SHOWN = 5


def to_r(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """A named list of plain vectors, ready for :func:`pybridge.r.writer.encode`.

    float64 stays as it is (NaN becomes R's NA_real_), bool becomes logical, integers become
    doubles (an array of :class:`pybridge._integers.Integers` R's integers), one Python int an R
    integer, text a character vector (None, NaN and NA become NA_character_), a categorical a
    factor, a table or a dict a named list, None NULL.

    Raises
    ------
    InputError
        For anything else, naming the entry.
    """
    return named_list(inputs, "inputs")


def named_list(items: Mapping[Any, Any], place: str) -> dict[str, Any]:
    """The entries of a mapping, each in its form for R."""
    check_names([*items], place)
    return {name: convert(item, name) for name, item in items.items()}


def check_names(names: list[Any], place: str) -> None:
    """Raise InputError unless the names are text, not empty, and each there once."""
    bad = [name for name in names if not isinstance(name, str) or not name]
    if bad:
        raise InputError(
            f"{place} has names that R cannot hold",
            code="bad_name",
            field=place,
            expected="non-empty text",
            got=_few(map(repr, bad)),
        )
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(
            f"{place} has a name twice: {_few(twice)}",
            code="duplicate_name",
            field=place,
            expected="each name once",
            got=_few(twice),
        )
    text(names, place)


def convert(value: Any, name: str) -> Any:
    """One entry in its form for R; InputError with its name where there is none."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, np.ndarray):
        return array(value, name)
    if isinstance(value, (str, bool, int, float, np.generic)):
        return _scalar(value, name)
    if isinstance(value, Mapping):
        return named_list(value, name)
    if isinstance(value, (list, tuple)):
        return sequence(value, name)
    if isinstance(value, Factor):
        return factor(value, name)
    if type(value).__module__.split(".")[0] == "pandas":
        # Only where the caller has pandas anyway: the door itself starts without it.
        from pybridge.r.convert_pandas import convert_pandas

        return convert_pandas(value, name)
    raise refusal(name, "numbers, true and false, or text", type(value).__name__)


def _scalar(value: Any, name: str) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return text([value], name)
    if isinstance(value, bool):
        return np.array([value])
    if isinstance(value, int):
        if abs(value) > _MOST:
            raise _too_large(value, name)
        return np.array([value], dtype=np.int32)
    if isinstance(value, float):
        return np.array([NA_REAL if math.isnan(value) else value])
    raise refusal(name, "a number, true or false, or text", repr(value))


def array(values: np.ndarray, name: str) -> Any:
    """A numpy array of numbers, flags or text."""
    kind = values.dtype.kind
    if values.ndim == 0:
        return convert(values.item(), name)
    if isinstance(values, np.ma.MaskedArray):
        raise refusal(name, "an array without a mask", "a masked array")
    if kind == "f" and values.dtype.itemsize <= 8:
        return doubles(np.asarray(values, dtype=np.float64))
    if kind == "b":
        return values
    if isinstance(values, Integers) and values.dtype == np.int32:
        return np.asarray(values)
    if kind in "iu":
        _check_range(values, name)
        return values.astype(np.float64)
    if kind in "OU" and values.ndim == 1:
        return sequence(values.tolist(), name)
    raise refusal(name, "numbers, true and false, or text", f"dtype {values.dtype}")


def doubles(values: np.ndarray) -> np.ndarray:
    """A float64 array with R's own bit pattern where a number is missing."""
    missing = np.isnan(values)
    if np.count_nonzero(missing):
        values = values.copy(order="K")
        values[missing] = NA_REAL
    return values


def sequence(items: list[Any] | tuple[Any, ...], name: str) -> Any:
    """Python objects: all text (or missing), or all numbers of one kind; no mixture."""
    texts = [None if _missing(item) else item for item in items]
    if all(item is None or isinstance(item, str) for item in texts):
        # Nothing but NaN is a column of numbers.
        if any(item is not None for item in texts) or all(item is None for item in items):
            return text(texts, name)
    plain = [item.item() if isinstance(item, np.generic) else item for item in items]
    kinds = {type(item) for item in plain}
    if kinds == {bool}:
        return np.array(plain, dtype=bool)
    if kinds == {int}:
        _check_range(np.array(plain, dtype=object), name)
        return np.array(plain, dtype=np.float64)
    if kinds and kinds <= {int, float}:
        return doubles(np.array(plain, dtype=np.float64))
    if all(isinstance(item, Mapping) for item in plain):
        return tuple(named_list(item, f"{name}[{i}]") for i, item in enumerate(plain))
    found = sorted({type(item).__name__ for item in items})
    raise refusal(name, "one kind of value", f"a mixture of {_few(found)}")


def _missing(item: Any) -> bool:
    if item is None or type(item).__name__ == "NAType":
        return True
    return isinstance(item, float) and math.isnan(item)


def text(items: list[Any], name: str) -> list[str | None]:
    """Text that R can hold, None where missing."""
    for item in items:
        if item is None:
            continue
        if "\0" in item:
            raise refusal(name, "text without the NUL character", repr(item))
        if not item.isascii():
            try:
                item.encode("utf-8")
            except UnicodeEncodeError:
                raise refusal(name, "valid Unicode text", repr(item)) from None
    # A text of a class of its own, as of an enumeration, may say something else in str().
    return [None if item is None else str.__str__(item) for item in items]


def factor(value: Factor, name: str) -> Factor:
    """A factor whose levels are text, each there once, and whose codes point at one."""
    levels = text(list(value.levels), name)
    codes = np.asarray(value.codes)
    if len(set(levels)) != len(levels) or None in levels:
        raise refusal(name, "each level of a factor once", _few(map(repr, levels)))
    if codes.size and (codes.max() >= len(levels) or codes.min() < -1):
        raise refusal(name, f"codes from -1 to {len(levels) - 1}", f"up to {codes.max()}")
    return Factor(codes.astype(np.int32), tuple(str(level) for level in levels))


def _check_range(values: np.ndarray, name: str) -> None:
    """R's integers have 32 bits, and the least of them stands for NA."""
    if values.size and (values.max() > _MOST or values.min() < -_MOST):
        worst = max(values.max(), values.min(), key=lambda value: abs(int(value)))
        raise _too_large(int(worst), name)


def _too_large(value: int, name: str) -> InputError:
    return InputError(
        f"{name!r} holds integers that R cannot hold",
        code="integer_too_large",
        field=name,
        expected=f"at most {_MOST} in absolute value",
        got=value,
        hint=f"Convert with {name}.astype('float64') if a double will do.",
    )


def refusal(name: str, expected: str, got: str, *, hint: str | None = None) -> InputError:
    """The error for an entry that cannot cross."""
    return InputError(
        f"{name!r} cannot be passed to R",
        code="cannot_cross",
        field=name,
        expected=expected,
        got=got,
        hint=hint,
    )


def _few(items: Any) -> str:
    known = [str(item) for item in items]
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return ", ".join(known[:_SHOWN]) + more
