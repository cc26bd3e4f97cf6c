"""What writer and reader of R's serialisation format share, and R's factor.

One request and one reply cross as one block of bytes that R's ``unserialize()`` and
``serialize(xdr = FALSE, version = 2)`` understand (R Internals, section 1.8). Doubles are copied
as they lie in memory, so they cross bit by bit; text is UTF-8; nothing is parsed as code.

The values are: None (NULL), float64, bool and int32 arrays of any number of dimensions, a list of
str or None (a character vector), bytes (a raw vector), :class:`Factor`, dict (a named list) and
tuple (a list without names).
"""

from __future__ import annotations

import dataclasses
import struct

import numpy as np

Buffer = bytes | memoryview

SYMBOL, PAIRLIST, CHAR, LOGICAL, INTEGER = 1, 2, 9, 10, 13
DOUBLE, TEXT, LIST, RAW = 14, 16, 19, 24
NULL, REFERENCE = 254, 255
OBJECT, ATTRIBUTES, TAGGED = 1 << 8, 1 << 9, 1 << 10
LATIN1, UTF8, ASCII = 1 << 14, 1 << 15, 1 << 18
NA_REAL = np.array([0x7FF00000000007A2], dtype=np.uint64).view(np.float64)[0]

WORD = struct.Struct("=i")
PAIR = struct.Struct("=ii")
FORMAT, VERSION = b"B\n", 2


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
