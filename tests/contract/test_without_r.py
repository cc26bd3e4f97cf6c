"""Without rpy2, without R, or with a wrong R_HOME: what needs no R works, and the rest says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ENVIRONMENTS = ("rpy2 blocked", "R absent from PATH", "R_HOME wrong")

# Run in a child: the package, the native engines, and one request for an engine that R has.
WORK = """
import json
import numpy as np, pandas as pd
import pybridge as pb

f = np.arange(12.0)
area = pd.DataFrame({
    "county": [f"c{i}" for i in range(12)], "f": f,
    "estimate": 1 + 0.5 * f + np.tile([0.9, -0.8, 0.4], 4), "variance": np.linspace(0.2, 0.4, 12),
})
words = dict(variance="variance", domain="county")
fit = pb.fay_herriot("estimate ~ f", area, engine="native", **words)
answer = {"status": fit.status, "native": fit.provenance.engine}
try:
    answer["asked_for_sae"] = pb.fay_herriot("estimate ~ f", area, **words).provenance.engine
except pb.errors.EngineUnavailable as error:
    answer["asked_for_sae"] = "EngineUnavailable"
    answer["hint"] = error.hint
print(json.dumps(answer))
"""


@pytest.fixture(params=ENVIRONMENTS)
def environment(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """The environment of a child process, and of its own children, in which R cannot be had."""
    found = {name: value for name, value in os.environ.items() if name != "R_HOME"}
    if request.param == "rpy2 blocked":
        blocked = tmp_path / "rpy2"
        blocked.mkdir()
        (blocked / "__init__.py").write_text("raise ImportError('blocked by a test')\n")
        found["PYTHONPATH"] = str(tmp_path)
    elif request.param == "R absent from PATH":
        found["PATH"] = str(tmp_path)
    else:
        found["R_HOME"] = str(tmp_path / "nowhere")
    return found


def child(arguments: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_native_engines_work_and_r_is_reported_absent(environment: dict[str, str]) -> None:
    done = child(["-W", "error", "-c", WORK], environment)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["status"] == "converged"
    assert answer["native"] == "native"
    # Never a silent switch to the native engine; a wrong R_HOME may be mended by asking R itself.
    allowed = {"EngineUnavailable"} | ({"sae"} if "R_HOME" in environment else set())
    assert answer["asked_for_sae"] in allowed
    assert answer["asked_for_sae"] == "sae" or answer["hint"]


def test_doctor_reports(environment: dict[str, str]) -> None:
    done = child(["-m", "pybridge", "doctor", "--json"], environment)
    assert done.returncode in (0, 3), done.stderr
    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout)


def test_the_child_is_refused_rpy2(tmp_path: Path) -> None:
    # That the first environment above really blocks the import, in a child as in its child.
    (tmp_path / "rpy2").mkdir()
    (tmp_path / "rpy2" / "__init__.py").write_text("raise ImportError('blocked by a test')\n")
    nested = (
        "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import rpy2'], check=True)"
    )
    done = child(["-c", nested], {**os.environ, "PYTHONPATH": str(tmp_path)})
    assert done.returncode != 0 and "blocked by a test" in done.stderr
