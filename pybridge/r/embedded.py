"""R inside this process, by rpy2's low-level interface: bytes in, bytes out.

Used by the worker (where this process is the child) and by the in-process transport. Only
``rpy2.rinterface`` is imported: ``rpy2.robjects`` costs another 0.3 s and brings conversion
rules, which the door does not need. No numpy here, for the same reason.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from typing import Any

SHIMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shims")

# Rscript's own settings: no .RData of the working directory, nothing saved, no questions.
_OPTIONS = ("rpy2", "--quiet", "--no-save", "--no-restore")

# Of the stack, for R: it says itself when so much is used, and needs some more to say it.
_MOST_STACK, _SHARE_OF_STACK = 64 << 20, 0.85


def rpy2_version() -> str | None:
    """The version of the installed rpy2, by its metadata; None where there is none.

    rpy2 3.6 is three distributions, and the one that talks to R is rpy2-rinterface.
    """
    for name in ("rpy2-rinterface", "rpy2"):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


def _start_rinterface() -> Any:
    """rpy2.rinterface, without the R processes that it starts to ask for R's environment.

    What they would say is in the environment already: `installation.environment` put it there.
    Each costs half a second; the second one is of rpy2 3.6.
    """
    import rpy2.situation

    def known_path(r_home: str) -> str:
        return os.environ.get("LD_LIBRARY_PATH", "")

    def nothing(actions: Any) -> None:
        return None

    with _replaced(rpy2.situation, "r_ld_library_path_from_subprocess", known_path):
        import rpy2.rinterface
    with _replaced(rpy2.rinterface, "_setrenvvars", nothing):
        from rpy2.rinterface_lib import embedded

        if not embedded.isinitialized():
            embedded.set_initoptions(_OPTIONS)
            rpy2.rinterface.initr(interactive=False)
    return rpy2.rinterface


@contextlib.contextmanager
def _replaced(module: Any, name: str, value: Any) -> Iterator[None]:
    """Another function under this name for a while, where there is one."""
    original = getattr(module, name, None)
    if original is None:
        yield
        return
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, original)


def limit_stack() -> None:
    """Let R, which runs in the main thread, notice the end of its stack.

    rpy2 switches that off for the sake of other threads: a function that calls itself without end
    would kill the process, in the place of R's own error.
    """
    from rpy2.rinterface_lib import openrlib

    soft, _ = resource.getrlimit(resource.RLIMIT_STACK)
    most = _MOST_STACK if soft == resource.RLIM_INFINITY else min(soft, _MOST_STACK)
    openrlib.rlib.R_CStackLimit = openrlib.ffi.cast("uintptr_t", int(_SHARE_OF_STACK * most))


def session_folder() -> str:
    """The folder of R's temporary files in this process; empty where no R runs here."""
    if "rpy2.rinterface" not in sys.modules:
        return ""
    import rpy2.rinterface
    from rpy2.rinterface_lib import embedded

    if not embedded.isinitialized():
        return ""
    folder = str(rpy2.rinterface.baseenv["tempdir"]()[0])
    # What R made has such a name; a profile may have put a folder of the user's in its place.
    return folder if re.fullmatch("Rtmp[A-Za-z0-9]{6}", os.path.basename(folder)) else ""


def start_r(locale: str | None = None) -> Callable[[Any], memoryview]:
    """Start R and return the door: a function from a request to a reply, both bytes.

    Where a ``locale`` is given, R's locale and language are set to what the door needs. The
    memoryview that it returns lies in R's memory and holds it as long as it lives.
    """
    rinterface = _start_rinterface()
    from rpy2.rinterface_lib import openrlib

    base = rinterface.baseenv
    # Its parent is the namespace of stats, behind which lie R's own base and what stats imports:
    # nothing that a user defines or attaches can stand in for a function of R.
    rooms = base["new.env"](parent=base["asNamespace"](rinterface.StrSexpVector(["stats"])))
    base["sys.source"](os.path.join(SHIMS, "_door.R"), envir=rooms)
    rooms["door_open"](SHIMS)
    if locale is not None:
        rooms["door_settle"](locale)
    door = rooms["door_answer"]

    def answer(request: Any) -> memoryview:
        # rpy2's own way to make a vector of bytes takes several times as long.
        # A length as a double: R has no integers from 2³¹ on.
        vector = base["raw"](float(len(request)))
        openrlib.ffi.memmove(openrlib.RAW(vector.__sexp__._cdata), request, len(request))
        reply = door(vector)
        data = openrlib.RAW(reply.__sexp__._cdata)
        view = memoryview(openrlib.ffi.buffer(data, len(reply)))
        _owners[0] = reply
        return view

    _owners: list[Any] = [None]
    return answer
