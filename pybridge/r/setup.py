"""Gets the R packages: ``pybridge setup-r``, or ``python -m pybridge.r.setup --scope demo``.

Debian's prebuilt packages come first, where apt and the rights are there, since building them
from source takes ten minutes; then CRAN, into the user's R library. Every package is loaded in a
process of its own afterwards, because R only warns when a build fails. One line a step; what apt,
R and the compilers say goes to a log.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence

from pybridge._options import choose
from pybridge.errors import EngineUnavailable, PybridgeError
from pybridge.r.commands import Commands, root_prefix
from pybridge.r.installation import find_r, need_rpy2
from pybridge.r.packages import SCOPES, Package, in_scope, install_line, older

# The home of the R that Debian's packages belong to: another R does not see them.
_APT_HOME = "/usr/lib/R"


@dataclasses.dataclass(frozen=True)
class SetupOutcome:
    """What :func:`setup_r` did.

    Attributes
    ----------
    installed : dict of str
        Version of each package that is there and loads.
    missing : dict of str
        Why each of the others is not.
    log : str
        The file with what apt, R and the compilers said.
    """

    installed: dict[str, str]
    missing: dict[str, str]
    log: str

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing


def setup_r(
    scope: str = "all", *, say: Callable[[str], object] | None = print, log: str | None = None
) -> SetupOutcome:
    """Get the R packages that are missing or too old; a second run does nothing.

    Parameters
    ----------
    scope : {"demo", "all"}
        What the main job and its demo need, or everything.
    say : callable, optional
        Takes one line a step; None for silence.
    log : str, optional
        Where the noise goes; default: setup-r.log in the user's cache directory.

    Raises
    ------
    EngineUnavailable
        Where R itself is missing or too old. What cannot be had of the packages is in the
        outcome's ``missing``, and said with the line that gets it.
    """
    choose("scope", scope, SCOPES)
    r = find_r()
    log = log or os.path.join(_cache(), "setup-r.log")
    return _Setup(Commands(r, log), in_scope(scope), say or (lambda line: None)).run()


class _Setup:
    """The steps, in order; what they find out on the way."""

    def __init__(
        self, commands: Commands, wanted: Sequence[Package], say: Callable[[str], object]
    ) -> None:
        self.commands = commands
        self.wanted = wanted
        self.say = say
        self.reasons: dict[str, str] = {}

    def run(self) -> SetupOutcome:
        version, home = self.commands.r.version, self.commands.r.home
        found = self.look()
        lacking = self.lacking(found)
        if not lacking and os.path.exists(self.mark(found)):
            self.say(f"R {version}: the {len(found)} packages are there, nothing to do")
            return SetupOutcome(found, {}, self.commands.log)
        self.commands.clear_log()
        names = ", ".join(item.name for item in lacking)
        self.say(
            f"R {version} in {home}: {f'to get: {names}' if names else 'loading each package'}"
        )
        if lacking:
            self.from_debian(lacking)
            self.from_cran(self.lacking(self.look()))
            _stop_workers()
        return self.prove()

    def look(self) -> dict[str, str]:
        """The version of each wanted package that is there."""
        pairs = self.commands.said("look", *[item.name for item in self.wanted], quiet=True)
        return {name: version for name, version in pairs if version != "NA"}

    def lacking(self, found: dict[str, str]) -> list[Package]:
        return [
            item
            for item in self.wanted
            if item.name not in found or older(found[item.name], item.minimum)
        ]

    def from_debian(self, lacking: list[Package]) -> None:
        """Debian's prebuilt packages, for those asked for and for what CRAN's ones need."""
        if self.commands.r.home != _APT_HOME or shutil.which("apt-get") is None:
            return
        named = [item.debian for item in lacking if item.debian]
        prefix = root_prefix()
        if prefix is None:
            if named:
                self.say(f"no rights for apt. Run: sudo apt-get install {' '.join(named)}")
            return
        cran = [item.name for item in lacking if not item.debian]
        planned = self.commands.said("plan", *cran) if cran else []
        names = [*named, *(f"r-cran-{name.lower()}" for (name,) in planned)]
        names = self.commands.known_to_apt(prefix, list(dict.fromkeys(names)))
        if not names:
            return
        started = time.monotonic()
        self.say(f"Debian: installing {len(names)} prebuilt packages")
        status = self.commands.apt_install(prefix, names)
        self.say(f"Debian: {'done' if status == 0 else 'failed'} in {_since(started)}")

    def from_cran(self, lacking: list[Package]) -> None:
        for item in lacking:
            started = time.monotonic()
            self.say(f"CRAN: getting {item.name}")
            text = self.commands.rscript("get", item.name)
            there = item.name in self.look()
            if not there:
                self.reasons[item.name] = _why(text)
            self.say(f"CRAN: {item.name} {'done' if there else 'failed'} in {_since(started)}")

    def prove(self) -> SetupOutcome:
        """Load each package in a process of its own."""
        found = self.look()
        good: dict[str, str] = {}
        missing: dict[str, str] = {}
        for item in self.wanted:
            if item.name not in found:
                missing[item.name] = self.reasons.get(item.name, "not installed")
            elif older(found[item.name], item.minimum):
                missing[item.name] = f"{found[item.name]} is older than {item.minimum}"
            else:
                text = self.commands.rscript("load", item.name)
                if f"loads {item.name} " in text:
                    good[item.name] = found[item.name]
                else:
                    missing[item.name] = f"does not load: {_why(text)}"
        self.tell(good, missing)
        return SetupOutcome(good, missing, self.commands.log)

    def tell(self, good: dict[str, str], missing: dict[str, str]) -> None:
        if good:
            self.say("loads: " + ", ".join(f"{name} {good[name]}" for name in good))
        for name, why in missing.items():
            self.say(f"missing: {name} ({why}). Run: {install_line(name)}")
        if missing:
            self.say(f"the log: {self.commands.log}")
            return
        try:
            with open(self.mark(good), "w", encoding="utf-8") as file:
                file.write("these packages loaded\n")
        except OSError:
            pass  # the next run loads them again

    def mark(self, found: dict[str, str]) -> str:
        """The file that says that exactly these packages have loaded in this R."""
        text = f"{self.commands.r.home} {self.commands.r.version} {sorted(found.items())}"
        return os.path.join(_cache(), "r-" + hashlib.sha256(text.encode()).hexdigest()[:24])


def _stop_workers() -> None:
    """A running worker may have been started before the user's library existed."""
    pool = sys.modules.get("pybridge.r.pool")
    if pool is not None:
        pool.shutdown()


def _cache() -> str:
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    path = os.path.join(root, "pybridge")
    os.makedirs(path, exist_ok=True)
    return path


def _since(started: float) -> str:
    return f"{time.monotonic() - started:.0f} s"


def _why(text: str) -> str:
    """The line of R's output that says what went wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if line.lower().startswith("error")]
    return (telling or lines or ["no word from R"])[-1][:200]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line: exit status 0 when all is there, 3 when something is missing."""
    parser = argparse.ArgumentParser(prog="pybridge setup-r", description="Get the R packages.")
    parser.add_argument("--scope", choices=SCOPES, default="all")
    scope = parser.parse_args(arguments).scope
    try:
        outcome = setup_r(scope, say=lambda line: print(f"setup-r: {line}", flush=True))
    except PybridgeError as error:
        print(f"setup-r: {error}", file=sys.stderr)
        return error.exit_status
    try:
        need_rpy2()
    except EngineUnavailable as error:
        print(f"setup-r: {error}", file=sys.stderr)
    return 0 if outcome.complete else EngineUnavailable.exit_status


if __name__ == "__main__":
    sys.exit(main())
