"""A CSV file as pandas reads it, with its header checked and rows that are too long found out.

pandas drops the fields of a row beyond the header when it reads some columns only, and takes the
first column for an index when every row is one field longer: both would shift numbers under other
names without a word. So the stream's header has one column more, which must stay empty.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pandas as pd

from pybridge.errors import InputError

# What reading text of another kind, or a broken archive, raises.
UNREADABLE = (pd.errors.ParserError, OSError, EOFError, zlib.error, csv.Error)


class CsvStream:
    """A text stream whose header line was read, and is given out with one column more.

    Attributes
    ----------
    header : tuple of str
        Names of the columns, as the file has them.
    beyond : str
        Name of the column of what lies beyond the header.
    """

    def __init__(self, handle: TextIO) -> None:
        self._handle = handle
        record: list[str] = next((row for row in csv.reader(handle) if row), [])
        _refuse_null("".join(record))
        self.header = tuple(record)
        self.beyond = "beyond_the_header"
        while self.beyond in self.header:
            self.beyond += "_"
        line = io.StringIO()
        if record:
            csv.writer(line, lineterminator="\n").writerow([*record, self.beyond])
        self._line = line.getvalue()

    def read(self, size: int = -1) -> str:
        """The next characters; the header first."""
        if self._line:
            text, self._line = self._line, ""
            return text
        return _refuse_null(self._handle.read(size))

    def __iter__(self) -> Iterator[str]:
        """pandas wants a stream to have lines, and reads it by ``read``."""
        return iter(self._handle)


def _refuse_null(text: str) -> str:
    """The text; pandas would drop the rest of a cell after a null character, and tell nobody."""
    if "\0" in text:
        raise csv.Error(
            f"null characters, the first after {text[: text.index(chr(0))][-20:]!r} "
            "(a damaged file, or text in UTF-16 or UTF-32)"
        )
    return text


@contextmanager
def open_csv(file: Path, encoding: str) -> Iterator[CsvStream]:
    """Open a ``.csv`` or ``.csv.gz`` file."""
    if file.suffix == ".gz":
        handle = gzip.open(file, "rt", encoding=encoding, newline="")
    else:
        handle = open(file, "rt", encoding=encoding, newline="")
    with handle:
        yield CsvStream(handle)  # type: ignore[arg-type]


def without_beyond(chunk: pd.DataFrame, stream: CsvStream, file: Path, start: int) -> pd.DataFrame:
    """The rows without the column beyond the header, which must be empty.

    ``start`` is the number of rows before this chunk.
    """
    beyond = chunk.pop(stream.beyond)
    if beyond.notna().any():
        row = int(beyond.notna().to_numpy().argmax())
        raise InputError(
            f"{file.name}: row {start + row + 1} has more fields than the header",
            code="not_a_table",
            field="path",
            expected=f"{len(stream.header)} fields in every row",
            got=f"{beyond.iloc[row]!r} beyond them",
            hint="A text that holds a comma must stand in quotes.",
        )
    return chunk
