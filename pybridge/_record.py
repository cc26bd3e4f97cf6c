"""The base of every record: frozen, comparable, picklable, with read-only arrays."""

from __future__ import annotations

import dataclasses
import html
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd


class FrozenMapping(Mapping[str, Any]):
    """A read-only mapping that pickles (``types.MappingProxyType`` does not)."""

    def __init__(self, items: Mapping[str, Any]) -> None:
        self._items = {key: freeze(value) for key, value in items.items()}

    def __getitem__(self, key: str) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"FrozenMapping({self._items!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and same(dict(self), dict(other))

    def __reduce__(self) -> tuple[Any, ...]:
        return (FrozenMapping, (self._items,))


def freeze(value: Any) -> Any:
    """A read-only view of arrays and mappings, anything else as it is."""
    if isinstance(value, np.ndarray):
        if value.flags.writeable:
            # A copy, so that the caller's own array stays writable and cannot change the record.
            value = value.copy()
            value.flags.writeable = False
        return value
    if isinstance(value, Mapping) and not isinstance(value, FrozenMapping):
        return FrozenMapping(value)
    if isinstance(value, list):
        return tuple(freeze(item) for item in value)
    return value


def same(a: Any, b: Any) -> bool:
    """Equality that knows arrays and takes NaN as equal to NaN."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        left, right = np.asarray(a), np.asarray(b)
        if left.shape != right.shape or left.dtype.kind != right.dtype.kind:
            return False
        if left.dtype.kind in "fc":
            return bool(np.array_equal(left, right, equal_nan=True))
        if left.dtype.kind == "O":
            return all(same(x, y) for x, y in zip(left.ravel(), right.ravel()))
        return bool(np.array_equal(left, right))
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b):
        return True
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return bool(a == b)


def plain(value: Any) -> Any:
    """The value in types that ``json`` can write; numbers that do not exist become None."""
    if isinstance(value, Record):
        return value.to_dict()
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (str, int, bool)):
        return value
    return str(value)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Record:
    """Base of the records that pybridge returns.

    Three views: the attributes, ``to_frame()`` (a tidy table, where there is one) and
    ``summary()`` (a text that prints nothing by itself).
    """

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, freeze(getattr(self, field.name)))

    def __setstate__(self, state: dict[str, Any]) -> None:
        # numpy forgets on pickling that an array was read-only.
        for name, value in state.items():
            object.__setattr__(self, name, freeze(value))

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(
            same(getattr(self, field.name), getattr(other, field.name))
            for field in dataclasses.fields(self)
        )

    __hash__ = None  # type: ignore[assignment]  # arrays inside

    def __repr__(self) -> str:
        return self.summary()

    def to_frame(self) -> pd.DataFrame:
        """The record as a tidy table."""
        raise NotImplementedError(f"{type(self).__name__} has no table of its own")

    def summary(self) -> str:
        """The record as text, for reading."""
        names = ", ".join(field.name for field in dataclasses.fields(self))
        return f"{type(self).__name__}({names})"

    def to_dict(self) -> dict[str, Any]:
        """The record as plain Python values, ready for ``json``."""
        return {field.name: plain(getattr(self, field.name)) for field in dataclasses.fields(self)}

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.summary())}</pre>"
