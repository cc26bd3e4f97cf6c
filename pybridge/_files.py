"""Writing files, with a structured error where a place cannot be written."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pybridge.errors import InputError


def place(path: Any, *, field: str = "path") -> Path:
    """A path of a file or folder; InputError for what cannot be one."""
    if isinstance(path, (str, os.PathLike)) and isinstance(os.fspath(path), str):
        try:
            if os.fspath(path):
                os.stat(path)  # a name that the system cannot hold ends here
                return Path(path)
        except FileNotFoundError:
            return Path(path)
        except (OSError, ValueError) as error:
            if not _is_no_name(error):
                return Path(path)
    raise InputError(
        f"{field} must name a file or folder",
        code="bad_path",
        field=field,
        expected="a path, as text or pathlib.Path",
        got=repr(path)[:100],
    )


def _is_no_name(error: Exception) -> bool:
    """A null character, or a name that is too long: no file of this name can be."""
    return isinstance(error, ValueError) or getattr(error, "errno", None) == errno.ENAMETOOLONG


@contextmanager
def writing(target: Path, *, field: str = "path") -> Iterator[None]:
    """Turn the system's refusal to write into an InputError."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{target} cannot be written",
            code="cannot_write",
            field=field,
            expected="a place that can be written",
            got=error.strerror or str(error),
        ) from error


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Write text as UTF-8 with plain line ends, the same on every system.

    Raises
    ------
    InputError
        ``bad_path``, ``cannot_write``.
    """
    target = place(path)
    with writing(target), open(target, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
    return target


def need_parent(path: str | os.PathLike[str]) -> Path:
    """The whole path of a file that R is to write; InputError where its folder is not there."""
    whole = place(path).expanduser().resolve()
    if whole.parent.is_dir() and not whole.is_dir():
        return whole
    raise InputError(
        f"{whole} cannot be written",
        code="cannot_write",
        field="path",
        expected="the name of a file in a folder that is there",
        got="a folder" if whole.is_dir() else f"no folder {whole.parent}",
    )
