"""Python values as bytes that R's ``unserialize()`` reads."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from pybridge._integers import NA_INTEGER
from pybridge.r import wire
from pybridge.r.wire import Buffer, Factor

# The version of R that wrote it and the least one that can read it.
_HEADER = wire.FORMAT + struct.pack("=iii", wire.VERSION, 0x00040000, 0x00020300)


class _Writer:
    """Collects the pieces of one serialised value; symbols are written once, then referred to."""

    def __init__(self) -> None:
        self.pieces: list[Buffer] = [_HEADER]
        self.symbols: dict[str, int] = {}

    def word(self, value: int) -> None:
        self.pieces.append(wire.WORD.pack(value))

    def head(self, kind: int, length: int, flags: int = 0) -> None:
        if length < 2**31:
            self.pieces.append(wire.PAIR.pack(kind | flags, length))
        else:
            self.pieces.append(
                struct.pack("=iiiI", kind | flags, -1, length >> 32, length & 0xFFFFFFFF)
            )

    def text(self, items: list[str | None] | tuple[str, ...], flags: int = 0) -> None:
        self.head(wire.TEXT, len(items), flags)
        out = []
        for item in items:
            if item is None:
                out.append(wire.PAIR.pack(wire.CHAR, -1))
            else:
                data = item.encode("utf-8")
                mark = wire.ASCII if len(data) == len(item) else wire.UTF8
                out.append(wire.PAIR.pack(wire.CHAR | mark, len(data)) + data)
        self.pieces.append(b"".join(out))

    def attribute(self, name: str) -> None:
        """The head of one attribute; its value must follow."""
        self.word(wire.PAIRLIST | wire.TAGGED)
        if name in self.symbols:
            self.word(self.symbols[name] << 8 | wire.REFERENCE)
            return
        self.symbols[name] = len(self.symbols) + 1
        data = name.encode("ascii")
        self.pieces.append(
            wire.WORD.pack(wire.SYMBOL) + wire.PAIR.pack(wire.CHAR | wire.ASCII, len(data)) + data
        )

    def array(self, array: np.ndarray) -> None:
        kind = {"f": wire.DOUBLE, "b": wire.LOGICAL, "i": wire.INTEGER}[array.dtype.kind]
        has_dim = array.ndim != 1
        self.head(kind, array.size, wire.ATTRIBUTES if has_dim else 0)
        wanted = np.float64 if kind == wire.DOUBLE else np.int32
        flat = np.ascontiguousarray(array.ravel(order="F"), dtype=wanted)
        self.pieces.append(flat.data.cast("B") if flat.size else b"")
        if has_dim:
            self.attribute("dim")
            self.array(np.asarray(array.shape, dtype=np.int32))
            self.word(wire.NULL)

    def factor(self, factor: Factor) -> None:
        codes = np.asarray(factor.codes, dtype=np.int32)
        self.head(wire.INTEGER, codes.size, wire.OBJECT | wire.ATTRIBUTES)
        shifted = np.where(codes < 0, np.int32(NA_INTEGER), codes + np.int32(1)).astype(np.int32)
        self.pieces.append(shifted.tobytes())
        self.attribute("levels")
        self.text(factor.levels)
        self.attribute("class")
        self.text(["factor"])
        self.word(wire.NULL)

    def value(self, value: Any) -> None:
        if value is None:
            self.word(wire.NULL)
        elif isinstance(value, np.ndarray):
            self.array(value)
        elif isinstance(value, list):
            self.text(value)
        elif isinstance(value, Factor):
            self.factor(value)
        elif isinstance(value, dict):
            self.head(wire.LIST, len(value), wire.ATTRIBUTES)
            for item in value.values():
                self.value(item)
            self.attribute("names")
            self.text(list(value))
            self.word(wire.NULL)
        elif isinstance(value, tuple):
            self.head(wire.LIST, len(value))
            for item in value:
                self.value(item)
        elif isinstance(value, bytes):
            self.head(wire.RAW, len(value))
            self.pieces.append(value)
        else:
            raise TypeError(f"no R form for {type(value).__name__}")


def encode(value: Any) -> list[Buffer]:
    """One value as pieces of bytes that R's ``unserialize`` reads when they are joined."""
    writer = _Writer()
    writer.value(value)
    return writer.pieces
