"""Where R is, found without starting it and without importing rpy2."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import os
import re
import shutil
import subprocess
import sys

from pybridge.errors import EngineUnavailable
from pybridge.r.embedded import rpy2_version

LEAST_R = (4, 0)
LEAST_RPY2 = (3, 5)
_SECONDS = 20


@dataclasses.dataclass(frozen=True)
class Installation:
    """An R that was found.

    Attributes
    ----------
    home : str
        R's home directory.
    version : str
    source : str
        ``"R_HOME"`` or ``"PATH"``: what led to it.
    ignored_home : str or None
        The value of R_HOME where it does not hold an R and was ignored.
    variables : tuple of (str, str)
        What R's own start script would put into the environment.
    """

    home: str
    version: str
    source: str
    ignored_home: str | None
    variables: tuple[tuple[str, str], ...]


def find_r() -> Installation:
    """The R of R_HOME where that is right, else the R on the PATH.

    Raises
    ------
    EngineUnavailable
        Where there is none (code ``r_missing``) or it is too old (``r_too_old``).
    """
    return _find(os.environ.get("R_HOME") or None, os.environ.get("PATH", ""))


@functools.lru_cache(maxsize=8)
def _find(r_home: str | None, path: str) -> Installation:
    if r_home is not None and _is_home(r_home):
        return _checked(r_home, "R_HOME", None)
    program = shutil.which("R", path=path)
    home = None if program is None else _ask_home(program)
    if home is None or not _is_home(home):
        raise _no_r(r_home, program)
    return _checked(home, "PATH", r_home)


def _is_home(path: str) -> bool:
    return os.path.isfile(os.path.join(path, "library", "base", "DESCRIPTION"))


def _ask_home(program: str) -> str | None:
    variables = {key: value for key, value in os.environ.items() if key != "R_HOME"}
    try:
        done = subprocess.run(
            [program, "RHOME"], env=variables, capture_output=True, text=True, timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    return lines[-1] if done.returncode == 0 and lines else None


def _no_r(r_home: str | None, program: str | None) -> EngineUnavailable:
    got = "no program R on the PATH" if program is None else f"{program} does not start"
    if r_home is not None:
        got = f"R_HOME={r_home} holds no R, and {got}"
    return EngineUnavailable(
        "R was not found",
        code="r_missing",
        field="R",
        expected=f"R {LEAST_R[0]}.{LEAST_R[1]} or newer on the PATH, or its home in R_HOME",
        got=got,
        hint='Run: sudo apt-get install r-base-core; or use engine="native".',
    )


def _checked(home: str, source: str, ignored: str | None) -> Installation:
    version = _version(home)
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if numbers < LEAST_R:
        raise EngineUnavailable(
            f"R {version} is too old",
            code="r_too_old",
            field="R",
            expected=f"R {LEAST_R[0]}.{LEAST_R[1]} or newer",
            got=f"R {version} in {home}",
            hint="Install a newer R, or point R_HOME to one.",
        )
    return Installation(home, version, source, ignored, tuple(sorted(_variables(home).items())))


def _version(home: str) -> str:
    with open(os.path.join(home, "library", "base", "DESCRIPTION"), encoding="utf-8") as file:
        found = re.search(r"^Version:\s*(\S+)", file.read(), re.MULTILINE)
    return found.group(1) if found else "0.0"


def _variables(home: str) -> dict[str, str]:
    """R_HOME, R's directories and its library path, as the script `R` would set them."""
    found = {"R_HOME": home}
    try:
        with open(os.path.join(home, "bin", "R"), encoding="utf-8", errors="replace") as file:
            script = file.read()
    except OSError:
        script = ""
    for name in ("R_SHARE_DIR", "R_INCLUDE_DIR", "R_DOC_DIR"):
        line = re.search(rf"^{name}=(/\S+)$", script, re.MULTILINE)
        if line:
            found[name] = line.group(1)
    libraries = os.path.join(home, "lib")
    ldpaths = os.path.join(home, "etc", "ldpaths")
    if os.path.isfile(ldpaths):
        command = '. "$R_HOME/etc/ldpaths" && printf %s "$LD_LIBRARY_PATH"'
        try:
            done = subprocess.run(
                ["/bin/sh", "-c", command],
                env={**os.environ, "R_HOME": home},
                capture_output=True,
                text=True,
                timeout=_SECONDS,
            )
            libraries = done.stdout or libraries
        except (OSError, subprocess.TimeoutExpired):
            pass
    found["LD_LIBRARY_PATH"] = libraries
    return found


def environment(installation: Installation, temporary: str) -> dict[str, str]:
    """The environment of a child that owns R; the host's own is not touched."""
    variables = dict(os.environ)
    # The shims rely on R's usual packages; the others are another R's, or Python's.
    strange = ("R_HOME", "R_SESSION_INITIALIZED", "R_SESSION_TMPDIR", "R_DEFAULT_PACKAGES")
    for name in (*strange, "PYTHONINSPECT"):
        variables.pop(name, None)
    variables.update(installation.variables)
    # R asks timedatectl where TZ is not set, and warns where that is missing, as in containers.
    variables.setdefault("TZ", "UTC")
    variables["LANGUAGE"] = "en"
    # glibc gives large blocks back to the system and takes fresh, unmapped pages for the next
    # ones: measured, 26 ms against 2 ms for R to serialise 10^6 doubles. R's first limit before
    # it collects garbage lies below what glibc keeps, for the same reason.
    variables.setdefault("MALLOC_MMAP_THRESHOLD_", str(32 << 20))
    variables.setdefault("MALLOC_TRIM_THRESHOLD_", str(256 << 20))
    variables.setdefault("R_VSIZE", "128M")
    # R walks over 200 MB of small cells between two collections: on huge pages, for which glibc
    # asks when it is told to, 1,000 fits by sae take 6 % less.
    tunables = [part for part in variables.get("GLIBC_TUNABLES", "").split(":") if part]
    if not any(part.startswith("glibc.malloc.hugetlb=") for part in tunables):
        tunables.append("glibc.malloc.hugetlb=1")
    variables["GLIBC_TUNABLES"] = ":".join(tunables)
    variables["TMPDIR"] = variables["PYBRIDGE_R_TEMPORARY"] = temporary
    return variables


def need_rpy2() -> str:
    """The version of rpy2, found by its metadata; EngineUnavailable where there is none."""
    version = rpy2_version()
    if version is None or importlib.util.find_spec("rpy2") is None:
        raise EngineUnavailable(
            "rpy2 is not installed for this Python",
            code="rpy2_missing",
            field="rpy2",
            expected="rpy2 3.5.9 or newer",
            got=f"none in {sys.prefix}",
            hint=install_rpy2_hint(None),
        )
    if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < LEAST_RPY2:
        raise EngineUnavailable(
            f"rpy2 {version} is too old",
            code="rpy2_too_old",
            field="rpy2",
            expected="rpy2 3.5.9 or newer",
            got=f"rpy2 {version}",
            hint=install_rpy2_hint(None),
        )
    return version


def install_rpy2_hint(r_version: str | None) -> str:
    """The line that installs an rpy2 that fits this R."""
    numbers = tuple(int(part) for part in re.findall(r"\d+", r_version or "")[:2])
    if numbers >= (4, 5):
        return "Run: pip install 'rpy2>=3.6'."
    return (
        "Run: pip install 'pybridge[r]' (or pip install 'rpy2==3.5.17'; Debian's own Python: "
        "sudo apt-get install python3-rpy2)."
    )


_DOCTOR = "Run pybridge doctor for what was found."
_QUIT = (
    "A .Rprofile that ends R ends it here too: R_PROFILE_USER=/dev/null starts R without it. "
    + _DOCTOR
)
_ASKED = (
    "A .Rprofile that asks a question waits for ever here: it is read as in an interactive "
    "session. R_PROFILE_USER=/dev/null starts R without it."
)


def why_not_started(text: str, installation: Installation) -> EngineUnavailable:
    """The error for an R that did not start in the child, from what the child said."""
    rpy2 = rpy2_version()
    pair = f"rpy2 {rpy2} with R {installation.version}"
    tail = " | ".join(line.strip() for line in text.strip().splitlines()[-3:])
    if re.search(r"R_getVar|undefined symbol|ffi\.error|FFIError|cffi", text):
        return EngineUnavailable(
            f"rpy2 {rpy2} does not fit R {installation.version}",
            code="rpy2_does_not_fit",
            field="rpy2",
            expected="a pair that fits: R below 4.5 needs rpy2 3.5.x or rpy2-rinterface <= 3.6.5",
            got=f"{pair}: {tail}",
            hint=install_rpy2_hint(installation.version),
        )
    if "ModuleNotFoundError" in text or "ImportError" in text:
        return EngineUnavailable(
            "rpy2 cannot be imported",
            code="rpy2_missing",
            field="rpy2",
            expected="an rpy2 that imports",
            got=tail,
            hint=install_rpy2_hint(installation.version),
        )
    return EngineUnavailable(
        "R did not start in the child process",
        code="r_does_not_start",
        field="R",
        expected=f"{pair} in {installation.home}",
        got=tail or "no word from it",
        hint=_ASKED if "no answer within" in text else _QUIT if "exited" in text else _DOCTOR,
    )
