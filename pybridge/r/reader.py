"""What R's ``serialize(xdr = FALSE, version = 2)`` wrote, as Python values."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from pybridge._integers import NA_INTEGER
from pybridge.r import wire
from pybridge.r.wire import Factor
from pybridge.r.worker import read_file

_WINDOW = 1 << 16
# Text vectors up to this length, names above all, are looked for among those read before.
_REPEATED = 256
# What needs nothing more where it has no attributes.
_PLAIN = (wire.DOUBLE, wire.TEXT, wire.RAW)


class _Reader:
    """Reads one serialised value; arrays are copied out of the buffer."""

    def __init__(self, buffer: Any) -> None:
        self.buffer = memoryview(buffer)
        self.at = 0
        self.symbols: list[str] = []
        self.texts: dict[int, tuple[bytes, list[str | None]]] = {}

    def need(self, count: int) -> int:
        """The place of the next ``count`` bytes in the buffer, which may be another one then."""
        if self.at + count > len(self.buffer):
            raise ValueError("the reply of R ends too early")
        return self.at

    def word(self) -> int:
        value: int = wire.WORD.unpack_from(self.buffer, self.at)[0]
        self.at += 4
        return value

    def take(self, count: int) -> memoryview:
        start = self.need(count)
        self.at += count
        return self.buffer[start : self.at]

    def length(self) -> int:
        count = self.word()
        if count == -1:
            high, low = self.word(), self.word()
            count = (high << 32) + (low & 0xFFFFFFFF)
        return count

    def numbers(self, dtype: type, count: int) -> np.ndarray:
        size = count * np.dtype(dtype).itemsize
        start = self.need(size)
        self.at += size
        if not count:
            return np.empty(0, dtype=dtype)
        return np.frombuffer(self.buffer, dtype=dtype, count=count, offset=start).copy()

    def doubles(self, count: int) -> np.ndarray:
        """R's NA is a signalling NaN, at which arithmetic may warn: it becomes the usual NaN."""
        array = self.numbers(np.float64, count)
        missing = np.isnan(array)
        if np.count_nonzero(missing):
            array[missing] = np.nan
        return array

    def text(self, count: int) -> list[str | None]:
        """Strings; those of a batch's other items are often the same, byte by byte."""
        before, texts = self.texts.get(count, (b"", []))
        if before and self.buffer[self.at : self.at + len(before)] == before:
            self.at += len(before)
            return texts.copy()
        buffer, start = self.buffer, self.at
        texts = [self.char() for _ in range(count)]
        if count <= _REPEATED and self.buffer is buffer:
            self.texts[count] = bytes(buffer[start : self.at]), texts
        return texts.copy()

    def char(self) -> str | None:
        start = self.need(8)
        self.at += 8
        flags, size = wire.PAIR.unpack_from(self.buffer, start)
        if flags & 0xFF != wire.CHAR:
            raise ValueError(f"expected a string in R's reply, found type {flags & 0xFF}")
        if size == -1:
            return None
        return bytes(self.take(size)).decode(
            "latin-1" if flags & wire.LATIN1 else "utf-8", "replace"
        )

    def symbol(self) -> str:
        flags = self.word()
        if flags & 0xFF == wire.REFERENCE:
            return self.symbols[(flags >> 8) - 1]
        self.symbols.append(self.char() or "")
        return self.symbols[-1]

    def attributes(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while True:
            flags = self.word()
            if flags & 0xFF == wire.NULL:
                return found
            name = self.symbol()
            found[name] = self.value()

    def value(self) -> Any:
        flags = self.word()
        kind = flags & 0xFF
        if kind == wire.NULL:
            return None
        count = self.length()
        data = self.vector(kind, count)
        if kind in _PLAIN and not flags & wire.ATTRIBUTES:
            return data
        attributes = self.attributes() if flags & wire.ATTRIBUTES else {}
        return _assemble(kind, data, attributes)

    def vector(self, kind: int, count: int) -> Any:
        if kind == wire.DOUBLE:
            return self.doubles(count)
        if kind in (wire.LOGICAL, wire.INTEGER):
            return self.numbers(np.int32, count)
        if kind == wire.TEXT:
            return self.text(count)
        if kind == wire.LIST:
            return [self.value() for _ in range(count)]
        if kind == wire.RAW:
            return bytes(self.take(count))
        raise ValueError(f"R sent a value of type {kind}, which does not cross the bridge")


class _FileReader(_Reader):
    """Reads from a file: arrays straight to where they stay, all else through a small window."""

    def __init__(self, file: int, length: int) -> None:
        super().__init__(b"")
        self.file, self.size = file, length
        self.start = 0  # where the window begins in the file

    def _load(self, count: int) -> None:
        self.start += self.at
        self.at = 0
        window = memoryview(bytearray(min(max(count, _WINDOW), self.size - self.start)))
        self.buffer = read_file(self.file, window, self.start)

    def need(self, count: int) -> int:
        if self.at + count > len(self.buffer):
            self._load(count)
        return super().need(count)

    def word(self) -> int:
        self.need(4)
        return super().word()

    def numbers(self, dtype: type, count: int) -> np.ndarray:
        array: np.ndarray = np.empty(count, dtype=dtype)
        if array.nbytes < _WINDOW:
            return super().numbers(dtype, count)
        at = self.start + self.at
        if at + array.nbytes > self.size:
            raise ValueError("the reply of R ends too early")
        read_file(self.file, array.data.cast("B"), at)
        self.start, self.at, self.buffer = at + array.nbytes, 0, memoryview(b"")
        return array


def _assemble(kind: int, data: Any, attributes: dict[str, Any]) -> Any:
    """A vector and its attributes as one Python value."""
    if kind == wire.LIST:
        return _named(data, attributes.get("names"))
    if kind == wire.INTEGER and "levels" in attributes:
        codes = np.where(data == NA_INTEGER, np.int32(-1), data - np.int32(1))
        return Factor(codes=codes.astype(np.int32), levels=tuple(attributes["levels"]))
    if kind in (wire.LOGICAL, wire.INTEGER):
        data = _small(kind, data)
    if isinstance(data, np.ndarray) and "dim" in attributes:
        return data.reshape(tuple(int(n) for n in attributes["dim"]), order="F")
    return data


def _small(kind: int, data: np.ndarray) -> np.ndarray:
    """Logical vectors as bool, integer vectors as float64; as float64 with NaN where NA is."""
    missing = data == NA_INTEGER
    if kind == wire.LOGICAL and not np.count_nonzero(missing):
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
    return _decode(_Reader(buffer))


def decode_file(file: int, length: int) -> Any:
    """As :func:`decode`, from the first bytes of an open file."""
    return _decode(_FileReader(file, length))


def _decode(reader: _Reader) -> Any:
    try:
        if bytes(reader.take(2)) != wire.FORMAT or reader.word() != wire.VERSION:
            raise ValueError("not a reply of R in its binary format, version 2")
        reader.take(8)
        return reader.value()
    except struct.error:
        raise ValueError("the reply of R ends too early") from None
