"""Tables from files: labels stay text, and what is no table of this encoding is said so."""

from __future__ import annotations

import gzip
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pybridge.errors import EngineUnavailable, InputError
from pybridge.tables.files import read_chunks, read_table, read_whole

TEXT = "county,f,y,other\n01,1.5,,a\nNA,-2,3,b\n007,0,4e-3,c\n"
WORDS: dict[str, Any] = dict(labels=["county"], numbers=["f", "y"])


def written(folder: Path, content: str | bytes, name: str = "units.csv", **options: Any) -> Path:
    path = folder / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content, newline="", **{"encoding": "utf-8", **options})
    return path


def is_right(table: pd.DataFrame) -> None:
    assert table["county"].tolist() == ["01", "NA", "007"]
    np.testing.assert_array_equal(table["f"], [1.5, -2.0, 0.0])
    np.testing.assert_array_equal(table["y"], [np.nan, 3.0, 0.004])


def refused(path: Path, **words: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        read_table(path, **{**WORDS, **words})
    return caught.value


# --- what is read ------------------------------------------------------------------------------


def test_labels_stay_text_and_only_named_columns_are_read(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, TEXT), **WORDS)
    is_right(table)
    assert table.columns.tolist() == ["county", "f", "y"]


@pytest.mark.parametrize(
    ("encoding", "named"),
    [("utf-8-sig", "utf-8-sig"), ("utf-16", "utf-16"), ("cp949", "cp949"), ("latin-1", "latin-1")],
)
def test_encodings(tmp_path: Path, encoding: str, named: str) -> None:
    word = "é" if encoding == "latin-1" else "서울" if encoding != "utf-8-sig" else "😀"
    path = written(tmp_path, TEXT.replace("007", word), encoding=encoding)
    assert read_table(path, encoding=named, **WORDS)["county"].tolist() == ["01", "NA", word]


@pytest.mark.parametrize("ends", ["\r\n", "\r"])
def test_line_ends(tmp_path: Path, ends: str) -> None:
    is_right(read_table(written(tmp_path, TEXT.replace("\n", ends)), **WORDS))


def test_compressed(tmp_path: Path) -> None:
    is_right(read_table(written(tmp_path, gzip.compress(TEXT.encode()), "units.csv.gz"), **WORDS))


def test_blank_lines_before_the_header(tmp_path: Path) -> None:
    is_right(read_table(written(tmp_path, "\n\n" + TEXT), **WORDS))


def test_commas_at_the_ends_of_rows(tmp_path: Path) -> None:
    header, *rows = TEXT.splitlines()
    is_right(read_table(written(tmp_path, "\n".join([header, *(r + "," for r in rows)])), **WORDS))


@pytest.mark.parametrize(
    "label", ['a "quoted" name', "with, comma", "two\nlines", " spaces ", "None", "nan", "-"]
)
def test_odd_labels(tmp_path: Path, label: str) -> None:
    path = tmp_path / "units.csv"
    pd.DataFrame({"county": [label, "b"], "f": [1.0, 2.0], "y": [3.0, 4.0]}).to_csv(
        path, index=False
    )
    assert read_table(path, **WORDS)["county"].tolist() == [label, "b"]


@pytest.mark.parametrize("word", ["", "NA", "NaN", "nan", "N/A", "null", "None", "."])
def test_words_for_a_missing_number(tmp_path: Path, word: str) -> None:
    table = read_table(written(tmp_path, TEXT.replace("4e-3", word)), **WORDS)
    assert table["y"].isna().tolist() == [True, False, True]


def test_an_empty_label_is_missing(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, TEXT.replace("007", "")), **WORDS)
    assert table["county"].isna().tolist() == [False, False, True]


@pytest.mark.parametrize(("rows", "lengths"), [(1, [1, 1, 1]), (2, [2, 1]), (3, [3]), (9, [3])])
def test_chunks_together_are_the_table(tmp_path: Path, rows: int, lengths: list[int]) -> None:
    chunks = list(read_chunks(written(tmp_path, TEXT), rows=rows, **WORDS))
    assert [len(chunk) for chunk in chunks] == lengths
    is_right(pd.concat(chunks, ignore_index=True))


def test_optional_columns_may_be_away(tmp_path: Path) -> None:
    words = {**WORDS, "labels": ["county", "region"], "optional": ["region"]}
    assert read_table(written(tmp_path, TEXT), **words).columns.tolist() == ["county", "f", "y"]


def test_every_column_of_a_whole_table(tmp_path: Path) -> None:
    table = read_whole(written(tmp_path, TEXT), labels=["county"])
    is_right(table)
    assert table["other"].tolist() == ["a", "b", "c"]


# --- what is refused ---------------------------------------------------------------------------


def test_no_file(tmp_path: Path) -> None:
    assert refused(tmp_path / "away.csv").code == "no_such_file"
    assert refused(tmp_path).code == "no_such_file"


@pytest.mark.parametrize("text", ["", "\n\n", "county,f,y\n"])
def test_an_empty_file(tmp_path: Path, text: str) -> None:
    assert refused(written(tmp_path, text)).code == "empty_file"


@pytest.mark.parametrize("reader", [read_table, read_whole])
def test_an_empty_file_whole(tmp_path: Path, reader: Any) -> None:
    with pytest.raises(InputError) as caught:
        reader(written(tmp_path, "county,f,y\n"), labels=["county"])
    assert caught.value.code == "empty_file"


NO_TABLES = {
    "zip": b"PK\x03\x04" + bytes(60),
    "gzip under another name": gzip.compress(TEXT.encode()),
    "parquet under another name": b"PAR1" + bytes(60),
    "json": b'[{"county": 1}]',
    "html": b"<html><body>not found</body></html>",
    "semicolons": TEXT.replace(",", ";").encode(),
    "tabs": TEXT.replace(",", "\t").encode(),
    "an open quote": TEXT.replace("007", '"007').encode(),
}


@pytest.mark.parametrize("kind", NO_TABLES)
def test_no_table(tmp_path: Path, kind: str) -> None:
    error = refused(written(tmp_path, NO_TABLES[kind]))
    assert error.code == "not_a_table" and error.field == "path"
    assert "\n" not in str(error)
    if kind in ("semicolons", "tabs"):
        assert kind in error.message


@pytest.mark.parametrize("row", ["x,y,1,2,z\n", "a,1,2,3,4,5,6\n"])
def test_a_row_longer_than_the_header(tmp_path: Path, row: str) -> None:
    # As an unquoted comma in a name makes it: the numbers would stand one column too far.
    error = refused(written(tmp_path, TEXT + row))
    assert error.code == "not_a_table" and "row 4" in error.message


def test_a_row_longer_than_the_header_in_a_later_chunk(tmp_path: Path) -> None:
    rows = TEXT.split("\n", 1)[1]
    path = written(tmp_path, TEXT + rows + "x,y,1,2,z\n")
    with pytest.raises(InputError, match="row 7 has more fields"):
        list(read_chunks(path, rows=2, **WORDS))


@pytest.mark.parametrize("damage", ["cut", "overwritten", "not compressed"])
def test_a_broken_archive(tmp_path: Path, damage: str) -> None:
    rows = TEXT + "".join(f"c{i},{i / 7},{i / 3},x\n" for i in range(500))
    data = gzip.compress(rows.encode())
    damaged = {"cut": data[:900], "overwritten": data[:300] + b"\xff" * 300 + data[600:]}
    error = refused(written(tmp_path, damaged.get(damage, rows.encode()), "units.csv.gz"))
    assert error.code == "not_a_table"


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (TEXT.replace("007", "é").encode("latin-1"), "utf-8-sig"),
        (TEXT.encode("utf-16"), "utf-8-sig"),
        (bytes(range(256)) * 20, "utf-8-sig"),
        (TEXT.encode(), "utf-16"),
        (TEXT.replace("007", "é").encode(), "ascii"),
        (TEXT.encode(), "klingon"),
    ],
)
def test_another_encoding(tmp_path: Path, content: bytes, encoding: str) -> None:
    error = refused(written(tmp_path, content), encoding=encoding)
    assert (error.code, error.field) == ("wrong_encoding", "encoding")
    assert error.hint and "--encoding" in error.hint


def test_a_missing_column_and_the_nearest(tmp_path: Path) -> None:
    error = refused(written(tmp_path, TEXT), labels=["conty"])
    assert error.code == "missing_column" and error.hint and "county" in error.hint


@pytest.mark.parametrize("name", ["units.csv", "units.parquet"])
def test_an_error_of_a_column_names_who_asked_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = written(tmp_path, TEXT, name)
    # Of a Parquet file its names are all that is asked for before the error.
    schema = SimpleNamespace(schema_arrow=SimpleNamespace(names=["county", "f", "y"]))
    monkeypatch.setattr("pybridge.tables.files._open_parquet", lambda file: schema)
    fields = {"conty": "domain", "z": "outcome", "f": "auxiliary"}
    for labels, numbers, field in (
        (["conty"], ["f"], "domain"),
        (["county"], ["z"], "outcome"),
        (["county"], ["nobody"], "columns"),
        (["county", "f"], ["f"], "auxiliary"),
    ):
        with pytest.raises(InputError) as raised:
            read_table(path, labels=labels, numbers=numbers, fields=fields)
        assert raised.value.field == field


def test_a_column_twice(tmp_path: Path) -> None:
    path = written(tmp_path, TEXT.replace("other", "f"))
    assert refused(path).code == "duplicate_column"
    assert refused(path, numbers=["y"], labels=["f"]).code == "duplicate_column"
    read_table(path, labels=["county"], numbers=["y"])
    with pytest.raises(InputError, match="same name"):
        read_whole(path, labels=["county"])


def test_a_column_for_two_uses(tmp_path: Path) -> None:
    assert refused(written(tmp_path, TEXT), labels=["county", "f"]).code == "conflicting_arguments"


def test_an_unknown_kind_of_file(tmp_path: Path) -> None:
    assert refused(written(tmp_path, TEXT, "units.txt")).code == "unknown_file_kind"


def test_parquet_without_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    with pytest.raises(EngineUnavailable) as caught:
        read_table(written(tmp_path, b"PAR1", "units.parquet"), **WORDS)
    assert caught.value.hint and "pybridge[parquet]" in caught.value.hint


@pytest.mark.parametrize("place", ["county,f", "007", "4e-3"])
@pytest.mark.parametrize("name", ["units.csv", "units.csv.gz"])
def test_null_characters_are_no_text(tmp_path: Path, place: str, name: str) -> None:
    """pandas would read 0\\0a and 0\\0b both as 0."""
    content = TEXT.replace(place, place[0] + "\0" + place[1:]).encode()
    path = written(tmp_path, gzip.compress(content) if name.endswith("gz") else content, name)
    error = refused(path)
    assert error.code == "not_a_table"
    with pytest.raises(InputError, match="null characters|NUL"):
        read_whole(path, labels=["county"])
