"""Tables from files: CSV, CSV.gz and Parquet, in chunks, with labels kept as text."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from pybridge._checks import listed, need_columns
from pybridge.errors import EngineUnavailable, InputError
from pybridge.tables.csv_stream import UNREADABLE, CsvStream, open_csv, without_beyond

# Rows read at once: the memory of a pass over a file is that of one chunk and the labelled rows.
CHUNK = 1_000_000
# First bytes of files that are often met under another name.
_OTHER_KINDS = (
    (b"\x1f\x8b", "a gzip archive, which must be named .csv.gz", ".gz"),
    (b"PAR1", "a Parquet file, which must be named .parquet", ".parquet"),
    (b"PK\x03\x04", "a zip archive or a spreadsheet", ".zip"),
)
_MISSING = ["", "NA", "N/A", "NaN", "nan", "null", "None", "."]


def read_table(
    path: str | os.PathLike[str],
    *,
    labels: Sequence[str] = (),
    numbers: Sequence[str] = (),
    optional: Sequence[str] = (),
    fields: Mapping[str, str] | None = None,
    encoding: str = "utf-8-sig",
) -> pd.DataFrame:
    """Read the named columns of one file whole; see `read_chunks`."""
    words: dict[str, Any] = {"optional": optional, "fields": fields, "encoding": encoding}
    parts = list(read_chunks(path, labels=labels, numbers=numbers, **words))
    return parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)


def read_whole(
    path: str | os.PathLike[str], *, labels: Sequence[str], encoding: str = "utf-8-sig"
) -> pd.DataFrame:
    """Read every column of one file: the named ones as labels, the others as they come."""
    file = Path(path)
    _need_file(file)
    if file.suffix == ".parquet":
        return read_table(file, labels=labels, numbers=_parquet_columns(file, labels))
    with _opened(file, encoding) as stream:
        _refuse_twice(stream.header, stream.header, file)
        present = [name for name in labels if name in stream.header]
        others = [name for name in stream.header if name not in present]
        table = pd.read_csv(
            stream,
            dtype={name: str for name in present},
            keep_default_na=False,
            na_values={**_empty_only([*present, stream.beyond]), **dict.fromkeys(others, _MISSING)},
            low_memory=False,
            float_precision="round_trip",  # pandas' own parser is off by a last digit
        )
        table = without_beyond(table, stream, file, 0)
    if len(table) == 0:
        raise _empty(file)
    return table


def read_chunks(
    path: str | os.PathLike[str],
    *,
    labels: Sequence[str] = (),
    numbers: Sequence[str] = (),
    optional: Sequence[str] = (),
    fields: Mapping[str, str] | None = None,
    encoding: str = "utf-8-sig",
    rows: int = CHUNK,
) -> Iterator[pd.DataFrame]:
    """Read the named columns of a file, chunk by chunk.

    Parameters
    ----------
    path : path
        ``.csv``, ``.csv.gz`` or ``.parquet``.
    labels : sequence of str
        Columns of labels, read as text: leading zeros stay, and ``NA`` is a label like any other;
        only an empty cell is missing.
    numbers : sequence of str
        Columns of numbers, where an empty cell, ``NA`` or ``NaN`` is missing.
    optional : sequence of str
        Those of the above that need not be there.
    fields : mapping of str to str, optional
        The argument that asked for a column, which an error about that column then names.
    encoding : str
        Of a CSV file; UTF-8 with or without a byte order mark by default.
    rows : int
        Rows a chunk.

    Raises
    ------
    InputError
        No such file, an empty file, a file that is not a table, text in another encoding, missing
        columns.
    EngineUnavailable
        A Parquet file without the optional package that reads it.
    """
    file = Path(path)
    _need_file(file)
    if file.suffix == ".parquet":
        yield from _read_parquet(file, labels, numbers, optional, fields or {}, rows)
        return
    if file.suffixes[-1:] != [".csv"] and file.suffixes[-2:] != [".csv", ".gz"]:
        raise InputError(
            f"{file.name}: the kind of file is not known by its name",
            code="unknown_file_kind",
            field="path",
            expected=".csv, .csv.gz or .parquet",
            got=file.suffix or "no ending",
        )
    start = 0
    with _opened(file, encoding) as stream:
        wanted = _wanted(stream.header, labels, numbers, optional, fields or {}, file)
        as_text = [*(name for name in labels if name in wanted), stream.beyond]
        reader = pd.read_csv(
            stream,
            usecols=[*wanted, stream.beyond],
            dtype=dict.fromkeys(as_text, str),
            keep_default_na=False,
            na_values={**dict.fromkeys(wanted, _MISSING), **_empty_only(as_text)},
            chunksize=rows,
            low_memory=False,
            float_precision="round_trip",  # pandas' own parser is off by a last digit
        )
        with reader:
            for chunk in reader:
                if len(chunk):
                    yield without_beyond(chunk, stream, file, start)
                start += len(chunk)
    if start == 0:
        raise _empty(file)


def _empty_only(names: Sequence[str]) -> dict[str, list[str]]:
    return {name: [""] for name in names}


@contextmanager
def _opened(file: Path, encoding: str) -> Iterator[CsvStream]:
    """The stream; what goes wrong while it is read becomes an InputError."""
    try:
        codecs.lookup(encoding)
    except LookupError as error:
        raise _encoding_error(file, encoding, error) from error
    try:
        with open_csv(file, encoding) as stream:
            if not stream.header:
                raise _empty(file)
            yield stream
    except UnicodeError as error:
        raise _encoding_error(file, encoding, error) from error
    except UNREADABLE as error:
        raise _not_a_table(file, str(error)) from error


def _need_file(file: Path) -> None:
    if not file.exists():
        raise InputError(
            f"there is no file {file}", code="no_such_file", field="path", got=str(file)
        )
    if file.is_dir():
        raise InputError(f"{file} is a folder", code="no_such_file", field="path", got=str(file))
    if file.stat().st_size == 0:
        raise _empty(file)
    with file.open("rb") as handle:
        start = handle.read(4)
    for mark, kind, suffix in _OTHER_KINDS:
        if start.startswith(mark) and file.suffix != suffix:
            raise _not_a_table(file, kind)


def _refuse_twice(names: Sequence[str], header: Sequence[str], file: Path) -> None:
    twice = [name for name in dict.fromkeys(names) if list(header).count(name) > 1]
    if twice:
        raise InputError(
            f"{file.name} has columns of the same name: {listed(twice)}",
            code="duplicate_column",
            field="path",
            expected="unique column names",
            got=listed(twice),
        )


def _wanted(
    header: Sequence[str],
    labels: Sequence[str],
    numbers: Sequence[str],
    optional: Sequence[str],
    fields: Mapping[str, str],
    file: Path,
) -> list[str]:
    names = list(dict.fromkeys((*labels, *numbers)))
    both = sorted(set(labels) & set(numbers))
    if both:
        raise InputError(
            f"the column {both[0]!r} is named both as a label and as a number",
            code="conflicting_arguments",
            field=fields.get(both[0], both[0]),
            expected="one use of a column",
            got=both[0],
        )
    if len(header) == 1 and names and names[0] not in header:
        for separator, word in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
            if separator in header[0]:
                raise InputError(
                    f"{file.name}: its columns are separated by {word}",
                    code="not_a_table",
                    field="path",
                    expected="columns separated by commas",
                    got=header[0][:80],
                )
        if "\x00" in header[0] or header[0].startswith(("PK\x03", "\x1f\x8b", "<", "{", "[")):
            raise _not_a_table(file, f"its first line is {header[0][:40]!r}")
    _refuse_twice(names, header, file)
    table = pd.DataFrame(columns=list(dict.fromkeys(header)))
    for name in names:
        if name not in optional:
            need_columns(table, [name], field=fields.get(name, "columns"))
    return [name for name in names if name in header]


def _parquet_columns(file: Path, labels: Sequence[str]) -> list[str]:
    return [name for name in _open_parquet(file).schema_arrow.names if name not in labels]


def _open_parquet(file: Path) -> Any:
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise EngineUnavailable(
            "Parquet files need the package pyarrow",
            code="missing_package",
            field="path",
            expected="pyarrow",
            got="not installed",
            hint="pip install 'pybridge[parquet]', or write the table as CSV.",
        ) from error
    try:
        return parquet.ParquetFile(file)
    except Exception as error:  # pyarrow raises kinds of its own for files that are not Parquet
        raise _not_a_table(file, str(error)) from error


def _read_parquet(
    file: Path,
    labels: Sequence[str],
    numbers: Sequence[str],
    optional: Sequence[str],
    fields: Mapping[str, str],
    rows: int,
) -> Iterator[pd.DataFrame]:
    source = _open_parquet(file)
    header = list(source.schema_arrow.names)
    wanted = _wanted(header, labels, numbers, optional, fields, file)
    empty = True
    for batch in source.iter_batches(batch_size=rows, columns=wanted):
        if batch.num_rows:
            empty = False
            yield batch.to_pandas()
    if empty:
        raise _empty(file)


def _empty(file: Path) -> InputError:
    return InputError(
        f"{file.name} is empty",
        code="empty_file",
        field="path",
        expected="a header and rows",
        got="nothing",
    )


def _not_a_table(file: Path, why: str) -> InputError:
    return InputError(
        f"{file.name} is not a table",
        code="not_a_table",
        field="path",
        expected="a CSV file with a header, or a Parquet file",
        got=" ".join(why.split()),
    )


def _encoding_error(file: Path, encoding: str, error: Exception) -> InputError:
    return InputError(
        f"{file.name} is not text in {encoding.replace('-sig', '')}",
        code="wrong_encoding",
        field="encoding",
        expected="UTF-8, or the encoding named",
        got=str(error),
        hint="Name its encoding (--encoding latin-1, cp949, utf-16 …), or save it as UTF-8.",
    )
