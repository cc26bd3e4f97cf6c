"""Paths that cannot be written are named in a structured error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pybridge._files import need_parent, place, write_text
from pybridge.errors import InputError


@pytest.mark.parametrize("path", [None, 3, "", b"x"])
@pytest.mark.parametrize("function", [place, need_parent, lambda path: write_text(path, "text")])
def test_what_is_no_path(function: Any, path: Any) -> None:
    with pytest.raises(InputError) as caught:
        function(path)
    assert (caught.value.code, caught.value.field) == ("bad_path", "path")
    assert caught.value.got == repr(path)


@pytest.mark.parametrize("function", [need_parent, lambda path: write_text(path, "text")])
def test_a_folder_and_a_missing_folder(function: Any, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none" / "file"):
        with pytest.raises(InputError) as caught:
            function(path)
        assert caught.value.code == "cannot_write" and str(path) in caught.value.message


def test_text_as_it_is(tmp_path: Path) -> None:
    target = write_text(str(tmp_path / "a"), "ä\nb\n")
    assert target.read_bytes() == "ä\nb\n".encode()
    assert need_parent(target) == target.resolve()
