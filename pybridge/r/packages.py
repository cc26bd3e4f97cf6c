"""The R packages that pybridge uses: read from packages.csv, the only list of them."""

from __future__ import annotations

import csv
import dataclasses
import functools
import os
import re

from pybridge.errors import EngineUnavailable

LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "packages.csv")
SCOPES = ("demo", "all")


@dataclasses.dataclass(frozen=True)
class Package:
    """One line of packages.csv.

    Attributes
    ----------
    name : str
    source : str
        ``"debian"`` where Debian's prebuilt package will do, else ``"cran"``.
    debian : str
        The name of Debian's package, empty where there is none.
    minimum : str
        The least version that works.
    scope : str
        ``"demo"`` or ``"tests"``: what needs it first.
    purpose : str
    """

    name: str
    source: str
    debian: str
    minimum: str
    scope: str
    purpose: str


@functools.lru_cache(maxsize=None)
def packages() -> tuple[Package, ...]:
    """All packages, in the order in which they are to be installed."""
    with open(LIST, encoding="utf-8", newline="") as file:
        return tuple(
            Package(
                row["package"],
                row["source"],
                row["debian"],
                row["minimum"],
                row["scope"],
                row["purpose"],
            )
            for row in csv.DictReader(file)
        )


def in_scope(scope: str) -> tuple[Package, ...]:
    """The packages of the demo, or all of them."""
    return tuple(item for item in packages() if scope == "all" or item.scope == scope)


def minimum(name: str) -> str:
    """The least version of a package; "0" where the list does not hold it."""
    return next((item.minimum for item in packages() if item.name == name), "0")


def install_line(name: str) -> str:
    """The line that installs one package."""
    for item in packages():
        if item.name == name and item.debian:
            return f"sudo apt-get install {item.debian}"
    return f"""Rscript -e 'chooseCRANmirror(ind = 1); install.packages("{name}")'"""


def older(version: str, least: str) -> bool:
    """Whether a version is below the least one: numbers compared part by part, as R does."""
    a, b = ([int(part) for part in re.findall(r"\d+", text)] for text in (version, least))
    return a < b


def unavailable(name: str, why: str, installed: str, text: str) -> EngineUnavailable:
    """The error for a package that is missing, too old, or does not load."""
    least = minimum(name)
    wanted = f"{name} {least} or newer" if least != "0" else name
    line = install_line(name)
    listed = any(item.name == name for item in packages())
    hint = f"Run: pybridge setup-r (or: {line})." if listed else f"Run: {line}."
    if why == "missing":
        message, code, got = f"the R package {name} is not installed", "package_missing", "none"
    elif why == "old":
        message, code = f"the R package {name} {installed} is too old", "package_too_old"
        got = f"{name} {installed}"
    else:
        message, code = f"the R package {name} {installed} does not load", "package_broken"
        got = " ".join(text.split()) or "no word from R"
    return EngineUnavailable(
        message, code=code, field=name, expected=f"the R package {wanted}", got=got, hint=hint
    )
