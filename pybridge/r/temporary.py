"""Where temporary files may be, found without leaving one there."""

from __future__ import annotations

import os
import tempfile

from pybridge.errors import EngineUnavailable

_VARIABLES = ("TMPDIR", "TEMP", "TMP")
_USUAL = ("/tmp", "/var/tmp", "/usr/tmp")


def temporary_folder() -> str:
    """The folder that ``tempfile`` would take.

    ``tempfile.gettempdir`` tries a folder by a file with a name, which stays there for ever
    when this process is killed in that moment; here the file has no name where the system can
    do that.

    Raises
    ------
    EngineUnavailable
        Where no folder can be written to (code ``no_temporary_folder``).
    """
    if tempfile.tempdir is not None:  # set by the user, or tried by tempfile before
        return os.path.abspath(os.fsdecode(tempfile.tempdir))
    named = [os.environ[name] for name in _VARIABLES if os.environ.get(name)]
    places = (*named, *_USUAL, os.curdir)
    for place in places:
        if _takes_files(place):
            return os.path.abspath(place)
    raise EngineUnavailable(
        "R needs a folder for temporary files",
        code="no_temporary_folder",
        field="TMPDIR",
        expected="a folder that may be written to",
        got=f"none of {', '.join(places)}",
        hint="Set the environment variable TMPDIR to a folder that this user may write to.",
    )


def _takes_files(place: str) -> bool:
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(b"text")
            file.flush()
    except OSError:
        return False
    return True
