"""The programs that setting up R runs: Rscript, apt-get, apt-cache; their noise goes to a log."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence

from pybridge.r.installation import Installation

_SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "install.R")
_SECONDS = 3600


class Commands:
    """Runs programs without input, with their output in ``log``."""

    def __init__(self, r: Installation, log: str) -> None:
        self.r = r
        self.log = log

    def clear_log(self) -> None:
        """Begin the log anew."""
        with open(self.log, "w", encoding="utf-8"):
            pass

    def run(
        self, command: Sequence[str], variables: dict[str, str], *, quiet: bool = False
    ) -> tuple[int, str]:
        """The exit status and what was printed; ``quiet`` logs only failures."""
        try:
            done = subprocess.run(
                command,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_SECONDS,
            )
            status, text = done.returncode, done.stdout.decode("utf-8", "replace")
        except (OSError, subprocess.TimeoutExpired) as error:
            status, text = 1, str(error)
        if not quiet or status != 0:
            with open(self.log, "a", encoding="utf-8") as file:
                file.write(f"\n$ {' '.join(command)}\n{text}")
        return status, text

    def rscript(self, *arguments: str, quiet: bool = False) -> str:
        """What install.R printed; see there for its commands."""
        program = os.path.join(self.r.home, "bin", "Rscript")
        if not os.path.exists(program):
            program = shutil.which("Rscript") or program
        variables = {key: value for key, value in os.environ.items() if key != "R_HOME"}
        variables.setdefault("TZ", "UTC")
        variables.setdefault("MAKEFLAGS", "-j2")
        return self.run([program, _SCRIPT, *arguments], variables, quiet=quiet)[1]

    def said(self, word: str, *arguments: str, quiet: bool = False) -> list[list[str]]:
        """The lines of install.R that begin with ``word``, split, without it."""
        lines = self.rscript(word, *arguments, quiet=quiet).splitlines()
        return [line.split()[1:] for line in lines if line.startswith(f"{word} ")]

    # --- apt ------------------------------------------------------------------------------------

    def apt(self, prefix: list[str], verb: str, *names: str) -> int:
        """Run apt-get; the exit status."""
        options = ["-q", "-o", "DPkg::Lock::Timeout=300"]
        if verb == "install":
            options += ["-y", "--no-install-recommends"]
        command = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", verb, *options]
        return self.run([*command, *names], dict(os.environ))[0]

    def apt_install(self, prefix: list[str], names: Sequence[str]) -> int:
        """Install; where that fails, fetch the lists of packages and try once more."""
        status = self.apt(prefix, "install", *names)
        if status != 0:
            self.apt(prefix, "update")
            status = self.apt(prefix, "install", *names)
        return status

    def known_to_apt(self, prefix: list[str], names: list[str]) -> list[str]:
        """Those that apt has; its lists are fetched where it knows none of them."""
        known: set[str] = set()
        for attempt in range(2 if names else 0):
            command = ["apt-cache", "show", "--no-all-versions", *names]
            text = self.run(command, dict(os.environ), quiet=True)[1]
            known = {line[9:].strip() for line in text.splitlines() if line.startswith("Package: ")}
            if known or attempt:
                break
            self.apt(prefix, "update")
        return [name for name in names if name in known]


def root_prefix() -> list[str] | None:
    """What to put before a command so that root runs it; None without the right to."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") is None:
        return None
    asked = subprocess.run(["sudo", "-n", "true"], capture_output=True, stdin=subprocess.DEVNULL)
    return ["sudo", "-n"] if asked.returncode == 0 else None
