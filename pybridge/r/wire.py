"""R's own serialisation format, written and read in Python.

One request and one reply cross as one block of bytes that R's ``unserialize()`` and
``serialize(xdr = FALSE, version = 2)`` understand (R Internals, section 1.8). Doubles are copied
as they lie in memory, so they cross bit by bit; text is always UTF-8; nothing is parsed as code.

The values are: None (NULL), float64, bool and int32 arrays of any number of dimensions, a list of
str or None (a character vector), bytes (a raw vector), :class:`Factor`, dict (a named list) and
tuple (a list without names).
"""

from __future__ import annotations

import dataclasses
import struct
from typing import Any

import numpy as np

Buffer = bytes | memoryview

_SYMBOL, _PAIRLIST, _CHAR, _LOGICAL, _INTEGER = 1, 2, 9, 10, 13
_DOUBLE, _TEXT, _LIST, _RAW = 14, 16, 19, 24
_NULL, _REFERENCE = 254, 255
_OBJECT, _ATTRIBUTES, _TAGGED = 1 << 8, 1 << 9, 1 << 10
_LATIN1, _UTF8, _ASCII = 1 << 14, 1 << 15, 1 << 18
_NA_INTEGER = -(2**31)
NA_REAL = np.array([0x7FF00000000007A2], dtype=np.uint64).view(np.float64)[0]

_WORD = struct.Struct("=i")
_PAIR = struct.Struct("=ii")
_HEADER = b"B\n" + struct.pack("=iii", 2, 0x00040000, 0x00020300)


@dataclasses.dataclass(frozen=True, eq=False)
class Factor:
    """An R factor.

    Attributes
    ----------
    codes : ndarray of int32, shape (n,)
        Position in ``levels``, from 0; -1 where the value is missing.
    levels : tuple of str
    """

    codes: np.ndarray
    levels: tuple[str, ...]

    def labels(self) -> list[str | None]:
        """The factor as text, None where missing."""
        return [self.levels[code] if code >= 0 else None for code in self.codes.tolist()]


class _Writer:
    """Collects the pieces of one serialised value; symbols are written once, then referred to."""

    def __init__(self) -> None:
        self.pieces: list[Buffer] = [_HEADER]
        self.symbols: dict[str, int] = {}

    def word(self, value: int) -> None:
        self.pieces.append(_WORD.pack(value))

    def head(self, kind: int, length: int, flags: int = 0) -> None:
        if length < 2**31:
            self.pieces.append(_PAIR.pack(kind | flags, length))
        else:
            self.pieces.append(
                struct.pack("=iiiI", kind | flags, -1, length >> 32, length & 0xFFFFFFFF)
            )

    def text(self, items: list[str | None] | tuple[str, ...], flags: int = 0) -> None:
        self.head(_TEXT, len(items), flags)
        out = []
        for item in items:
            if item is None:
                out.append(_PAIR.pack(_CHAR, -1))
            else:
                data = item.encode("utf-8")
                mark = _ASCII if len(data) == len(item) else _UTF8
                out.append(_PAIR.pack(_CHAR | mark, len(data)) + data)
        self.pieces.append(b"".join(out))

    def attribute(self, name: str) -> None:
        """The head of one attribute; its value must follow."""
        self.word(_PAIRLIST | _TAGGED)
        if name in self.symbols:
            self.word(self.symbols[name] << 8 | _REFERENCE)
            return
        self.symbols[name] = len(self.symbols) + 1
        data = name.encode("ascii")
        self.pieces.append(_WORD.pack(_SYMBOL) + _PAIR.pack(_CHAR | _ASCII, len(data)) + data)

    def array(self, array: np.ndarray) -> None:
        kind = {"f": _DOUBLE, "b": _LOGICAL, "i": _INTEGER}[array.dtype.kind]
        has_dim = array.ndim != 1
        self.head(kind, array.size, _ATTRIBUTES if has_dim else 0)
        wanted = np.float64 if kind == _DOUBLE else np.int32
        flat = np.ascontiguousarray(array.ravel(order="F"), dtype=wanted)
        self.pieces.append(memoryview(flat).cast("B") if flat.size else b"")
        if has_dim:
            self.attribute("dim")
            self.array(np.asarray(array.shape, dtype=np.int32))
            self.word(_NULL)

    def factor(self, factor: Factor) -> None:
        codes = np.asarray(factor.codes, dtype=np.int32)
        self.head(_INTEGER, codes.size, _OBJECT | _ATTRIBUTES)
        shifted = np.where(codes < 0, np.int32(_NA_INTEGER), codes + np.int32(1)).astype(np.int32)
        self.pieces.append(shifted.tobytes())
        self.attribute("levels")
        self.text(factor.levels)
        self.attribute("class")
        self.text(["factor"])
        self.word(_NULL)

    def value(self, value: Any) -> None:
        if value is None:
            self.word(_NULL)
        elif isinstance(value, np.ndarray):
            self.array(value)
        elif isinstance(value, list):
            self.text(value)
        elif isinstance(value, Factor):
            self.factor(value)
        elif isinstance(value, dict):
            self.head(_LIST, len(value), _ATTRIBUTES)
            for item in value.values():
                self.value(item)
            self.attribute("names")
            self.text(list(value))
            self.word(_NULL)
        elif isinstance(value, tuple):
            self.head(_LIST, len(value))
            for item in value:
                self.value(item)
        elif isinstance(value, bytes):
            self.head(_RAW, len(value))
            self.pieces.append(value)
        else:
            raise TypeError(f"no R form for {type(value).__name__}")


def encode(value: Any) -> list[Buffer]:
    """One value as pieces of bytes that R's ``unserialize`` reads when they are joined."""
    writer = _Writer()
    writer.value(value)
    return writer.pieces


class _Reader:
    """Reads one serialised value; arrays are copied out of the buffer."""

    def __init__(self, buffer: Any) -> None:
        self.buffer = memoryview(buffer)
        self.at = 0
        self.symbols: list[str] = []

    def word(self) -> int:
        value = _WORD.unpack_from(self.buffer, self.at)[0]
        self.at += 4
        return value

    def take(self, count: int) -> memoryview:
        piece = self.buffer[self.at : self.at + count]
        if len(piece) != count:
            raise ValueError("the reply of R ends too early")
        self.at += count
        return piece

    def length(self) -> int:
        count = self.word()
        if count == -1:
            high, low = self.word(), self.word()
            count = (high << 32) + (low & 0xFFFFFFFF)
        return count

    def numbers(self, dtype: type, count: int) -> np.ndarray:
        return np.frombuffer(self.take(count * np.dtype(dtype).itemsize), dtype=dtype).copy()

    def char(self) -> str | None:
        flags, size = self.word(), self.word()
        if flags & 0xFF != _CHAR:
            raise ValueError(f"expected a string in R's reply, found type {flags & 0xFF}")
        if size == -1:
            return None
        return bytes(self.take(size)).decode("latin-1" if flags & _LATIN1 else "utf-8", "replace")

    def symbol(self) -> str:
        flags = self.word()
        if flags & 0xFF == _REFERENCE:
            return self.symbols[(flags >> 8) - 1]
        self.symbols.append(self.char() or "")
        return self.symbols[-1]

    def attributes(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while True:
            flags = self.word()
            if flags & 0xFF == _NULL:
                return found
            name = self.symbol()
            found[name] = self.value()

    def value(self) -> Any:
        flags = self.word()
        kind = flags & 0xFF
        if kind == _NULL:
            return None
        count = self.length()
        data = self.vector(kind, count)
        attributes = self.attributes() if flags & _ATTRIBUTES else {}
        return _assemble(kind, data, attributes)

    def vector(self, kind: int, count: int) -> Any:
        if kind == _DOUBLE:
            return self.numbers(np.float64, count)
        if kind in (_LOGICAL, _INTEGER):
            return self.numbers(np.int32, count)
        if kind == _TEXT:
            return [self.char() for _ in range(count)]
        if kind == _LIST:
            return [self.value() for _ in range(count)]
        if kind == _RAW:
            return bytes(self.take(count))
        raise ValueError(f"R sent a value of type {kind}, which does not cross the bridge")


def _assemble(kind: int, data: Any, attributes: dict[str, Any]) -> Any:
    """A vector and its attributes as one Python value."""
    if kind == _LIST:
        return _named(data, attributes.get("names"))
    if kind == _INTEGER and "levels" in attributes:
        codes = np.where(data == _NA_INTEGER, np.int32(-1), data - np.int32(1))
        return Factor(codes=codes.astype(np.int32), levels=tuple(attributes["levels"]))
    if kind in (_LOGICAL, _INTEGER):
        data = _small(kind, data)
    if isinstance(data, np.ndarray) and "dim" in attributes:
        return data.reshape(tuple(int(n) for n in attributes["dim"]), order="F")
    return data


def _small(kind: int, data: np.ndarray) -> np.ndarray:
    """Logical vectors as bool, integer vectors as float64; as float64 with NaN where NA is."""
    missing = data == _NA_INTEGER
    if kind == _LOGICAL and not missing.any():
        return data.astype(bool)
    numbers = data.astype(np.float64)
    numbers[missing] = np.nan
    return numbers


def _named(items: list[Any], names: list[str | None] | None) -> Any:
    if names is None:
        return items if items else {}
    if len(set(names)) != len(names):
        raise ValueError(f"R sent a list with a name twice: {names}")
    return dict(zip(names, items))


def decode(buffer: Any) -> Any:
    """The value that R wrote with ``serialize(xdr = FALSE, version = 2)``.

    Integer vectors become float64 (NaN where NA), logical vectors bool (float64 with NaN if there
    is an NA), character vectors a list of str with None for NA, lists a dict or, without names, a
    list; attributes other than names, dim and levels are dropped.
    """
    reader = _Reader(buffer)
    if bytes(reader.take(2)) != b"B\n" or reader.word() != 2:
        raise ValueError("not a reply of R in its binary format, version 2")
    reader.at += 8
    return reader.value()
