"""What is found of R, rpy2 and the packages, what is missing, and the line that mends it."""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Sequence

import pandas as pd

from pybridge._record import FrozenMapping, Record
from pybridge._version import __version__
from pybridge.errors import EngineError, EngineUnavailable
from pybridge.r.door import call
from pybridge.r.embedded import rpy2_version
from pybridge.r.installation import Installation, find_r
from pybridge.r.packages import Package, minimum, older, packages, unavailable

_LOAD_SECONDS = 120.0


def installed_packages(names: Sequence[str]) -> dict[str, str | None]:
    """The version of each R package, None where it is not installed; nothing is loaded."""
    value = call("selftest_packages", {"packages": list(names)}).value
    return dict(zip(names, value["version"]))


def missing_packages(names: Sequence[str] | None = None) -> list[EngineUnavailable]:
    """An error for each package that is not there or too old.

    Parameters
    ----------
    names : sequence of str, optional
        Default: every package of packages.csv.

    Raises
    ------
    EngineUnavailable
        Where R or rpy2 themselves are missing.
    """
    wanted = [item.name for item in packages()] if names is None else list(names)
    found = installed_packages(wanted)
    errors = []
    for name, version in found.items():
        if version is None:
            errors.append(unavailable(name, "missing", "", ""))
        elif older(version, minimum(name)):
            errors.append(unavailable(name, "old", version, ""))
    return errors


def _broken_packages(names: Sequence[str]) -> list[EngineUnavailable]:
    """An error for each package that is there and does not load, each tried by itself."""
    errors = []
    for name in names:
        try:
            call("selftest_echo", {}, packages=[name], time_limit=_LOAD_SECONDS)
        except EngineUnavailable as error:
            errors.append(error)
        except EngineError as error:  # it took R with it, or too long
            version = installed_packages([name])[name] or ""
            errors.append(unavailable(name, "broken", version, error.message))
    return errors


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Doctor(Record):
    """What ``pybridge doctor`` found.

    Attributes
    ----------
    pybridge, python : str
        Versions.
    r_version, r_home, r_source : str or None
        The R that is used, and whether R_HOME or the PATH led to it.
    ignored_r_home : str or None
        The value of R_HOME where it holds no R.
    rpy2 : str or None
        Version of rpy2 (of rpy2-rinterface from 3.6 on).
    pair_fits : bool
        Whether R started through rpy2 in a child process.
    libraries : tuple of str
        R's library paths, in R's order.
    packages : mapping of str to str or None
        Installed version of each package; None where missing.
    missing : tuple of dict
        ``what``, ``needed`` (version), ``found``, ``mend`` (the line that mends it).
    """

    pybridge: str
    python: str
    r_version: str | None
    r_home: str | None
    r_source: str | None
    ignored_r_home: str | None
    rpy2: str | None
    pair_fits: bool
    libraries: tuple[str, ...]
    packages: FrozenMapping
    missing: tuple[FrozenMapping, ...]

    @property
    def healthy(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing

    def to_frame(self) -> pd.DataFrame:
        """One row a package: installed, minimum, scope, purpose, mend."""
        faults = {item["what"]: item["mend"] for item in self.missing}
        rows = [
            {
                "package": item.name,
                "installed": self.packages.get(item.name),
                "minimum": item.minimum,
                "scope": item.scope,
                "purpose": item.purpose,
                "mend": faults.get(item.name),
            }
            for item in packages()
        ]
        return pd.DataFrame(rows)

    def summary(self) -> str:
        """The findings as text, a line each."""
        lines = [f"pybridge {self.pybridge}, Python {self.python}"]
        if self.r_version is None:
            lines.append("R         not found")
        else:
            lines.append(f"R         {self.r_version} in {self.r_home} (by {self.r_source})")
        if self.ignored_r_home is not None:
            lines.append(f"          R_HOME={self.ignored_r_home} holds no R and is ignored")
        fit = "fits this R" if self.pair_fits else "does not start this R"
        fit = fit if self.r_version is not None else "has no R to start"
        lines.append(
            "rpy2      not found" if self.rpy2 is None else f"rpy2      {self.rpy2}, {fit}"
        )
        lines += [f"library   {path}" for path in self.libraries]
        if self.pair_fits:
            lines += [_package_line(item, self.packages.get(item.name)) for item in packages()]
        if self.missing:
            lines.append("")
            lines += [f"missing: {item['what']} ({item['found']})" for item in self.missing]
            lines += [f"    {line}" for line in dict.fromkeys(i["mend"] for i in self.missing)]
        else:
            lines.append("nothing is missing")
        return "\n".join(lines)


def _package_line(item: Package, version: str | None) -> str:
    if version is None:
        state = "missing"
    elif older(version, item.minimum):
        state = f"{version}, older than {item.minimum}"
    else:
        state = version
    return f"{item.name:<9} {state:<12} {item.purpose}"


def doctor() -> Doctor:
    """Look for R, rpy2 and the packages, and load each; R is started in a child process only.

    Never raises for what is missing: that is what the record says.
    """
    missing: list[EngineUnavailable] = []
    installation: Installation | None = None
    libraries: tuple[str, ...] = ()
    found: dict[str, str | None] = {}
    fits = False
    try:
        installation = find_r()
    except EngineUnavailable as error:
        missing.append(error)
    try:
        session = call("selftest_session", {}).value
        fits, libraries = True, tuple(session["libraries"])
        found = installed_packages([item.name for item in packages()])
        missing += missing_packages()
        faulty = {error.field for error in missing}
        there = [name for name, version in found.items() if version and name not in faulty]
        missing += _broken_packages(there)
    except EngineUnavailable as error:
        if error.code != "r_missing" and error.code != "r_too_old":
            missing.append(error)
    codes = [error.code for error in missing]
    return Doctor(
        pybridge=__version__,
        python=platform.python_version(),
        r_version=None if installation is None else installation.version,
        r_home=None if installation is None else installation.home,
        r_source=None if installation is None else installation.source,
        ignored_r_home=None if installation is None else installation.ignored_home,
        rpy2=None if "rpy2_missing" in codes else rpy2_version(),
        pair_fits=fits,
        libraries=libraries,
        packages=FrozenMapping(found),
        missing=tuple(_fault(error) for error in missing),
    )


def _fault(error: EngineUnavailable) -> FrozenMapping:
    return FrozenMapping(
        {
            "what": error.field,
            "code": error.code,
            "needed": error.expected,
            "found": error.got,
            "mend": error.hint,
        }
    )
