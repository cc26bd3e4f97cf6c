"""Plain Rscript for the tests that compare with it to the last bit."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import numpy as np
import pytest

_SHOW = """
show <- function(name, x) {
  if (is.factor(x)) x <- as.character(x)
  if (is.character(x)) cat(sprintf("TEXT %s %s\\n", name, x), sep = "")
  else cat(sprintf("BITS %s %a\\n", name, as.numeric(x)), sep = "")
}
"""


@pytest.fixture(scope="session")
def plain_r(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, list]]:
    """Run R code under Rscript; what it gives to ``show(name, x)`` comes back, exact."""

    def run(code: str, *, timeout: float = 240) -> dict[str, list]:
        path = tmp_path_factory.mktemp("plain_r") / "script.R"
        path.write_text(_SHOW + code, encoding="utf-8")
        done = subprocess.run(
            ["Rscript", str(path)], capture_output=True, text=True, timeout=timeout, check=False
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, list] = {}
        for line in done.stdout.splitlines():
            if line.startswith("BITS "):
                _, name, text = line.split()
                number = np.nan if text in ("NA", "NaN") else float.fromhex(text)
                found.setdefault(name, []).append(number)
            elif line.startswith("TEXT "):
                _, name, text = line.split(" ", 2)
                found.setdefault(name, []).append(text)
        return found

    return run
