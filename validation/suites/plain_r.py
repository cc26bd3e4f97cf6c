"""Plain R, run afresh: the scripts of r_reference/ in a folder of their own, and fits' scripts."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

REFERENCE = Path(__file__).resolve().parents[2] / "r_reference"
KEPT = REFERENCE / "golden"
# One thread: how a BLAS shares a sum out among threads changes its last digits.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
_SECONDS = 900

# Prints every number of a vector in hexadecimal, so that it is read back to the last bit.
SHOW = (
    "show_bits <- function(name, x) cat(sprintf("
    '"BIT %s %s\\n", name, ifelse(is.na(x), "NA", sprintf("%a", as.numeric(x)))), sep = "")\n'
)


def rscript(path: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run one script in a folder; nothing of Python comes near it."""
    return subprocess.run(
        ["Rscript", "--vanilla", str(path)],
        cwd=folder,
        env={**os.environ, **ONE_THREAD},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=_SECONDS,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def no_r() -> str:
    """Why plain R cannot be run; "" where it can."""
    return "" if shutil.which("Rscript") else "no Rscript on PATH"


@dataclass
class PlainR:
    """The fresh answers; scripts run in the background, two at a time, until they are asked for.

    Attributes
    ----------
    folder : Path
        A copy of the scripts, where they write.
    missing : str
        Why no script can run; "" where they can.
    """

    folder: Path
    missing: str
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2))
    _runs: dict[str, Future[str]] = field(default_factory=dict)

    @classmethod
    def in_temporary_folder(cls) -> PlainR:
        folder = Path(tempfile.mkdtemp(prefix="pybridge-validate-"))
        for script in REFERENCE.glob("*.R"):
            shutil.copy(script, folder)
        return cls(folder, no_r())

    def start(self, scripts: Iterable[str]) -> None:
        """Start these scripts of r_reference."""
        for name in scripts:
            if not self.missing and name not in self._runs:
                self._runs[name] = self._pool.submit(self._run, name)

    def _run(self, name: str) -> str:
        # A folder a script: two of them would write one MANIFEST at once.
        own = self.folder / name.removesuffix(".R")
        own.mkdir()
        for script in self.folder.glob("*.R"):
            shutil.copy(script, own)
        try:
            done = rscript(own / name, own)
        except subprocess.TimeoutExpired:
            return f"{name} did not end within {_SECONDS} s"
        last = (done.stderr.strip().splitlines() or [""])[-1]
        return "" if done.returncode == 0 else f"{name} stopped: {last}"

    def why_not(self, name: str) -> str:
        """Why this script has no answers; "" where it has. Waits for it."""
        if self.missing:
            return self.missing
        if name not in self._runs:
            return f"{name} was not run"
        return self._runs[name].result()

    def answers(self, name: str) -> Path:
        """The folder that this script wrote its answers to."""
        return self.folder / name.removesuffix(".R") / "golden"

    def reference(self, name: str) -> tuple[str, Path]:
        """Who answers for plain R, and where: the fresh run, or the answers kept without one."""
        return ("kept", KEPT) if self.why_not(name) else ("Rscript", self.answers(name))

    def bits(self, texts: Mapping[str, str]) -> tuple[dict[str, list[float]], str]:
        """What several scripts show by ``show_bits``, all in one R; and why there is nothing.

        Parameters
        ----------
        texts : mapping of str to str
            R code, each run in a ``local()`` of its own.
        """
        if self.missing:
            return {}, self.missing
        path = self.folder / f"scripts_{len(list(self.folder.glob('scripts_*')))}.R"
        body = "".join(f"local({{\n{text}\n}})\n" for text in texts.values())
        path.write_text(SHOW + body, encoding="utf-8")
        done = rscript(path, self.folder)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or [""])[-1]
            return {}, f"a fit's own script stopped: {last}"
        return read_bits(done.stdout), ""

    def close(self) -> None:
        """Forget what has not started, and the folder."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def read_bits(text: str) -> dict[str, list[float]]:
    """Lines ``BIT name number``, in order, by name."""
    found: dict[str, list[float]] = {}
    for line in text.splitlines():
        if line.startswith("BIT "):
            _, name, number = line.split()
            value = float("nan") if number == "NA" else float.fromhex(number)
            found.setdefault(name, []).append(value)
    return found
