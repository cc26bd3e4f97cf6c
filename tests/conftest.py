"""The ``r`` marker: tests that need R are skipped without it, or fail if R is required.

``@pytest.mark.r`` needs R, rpy2 and every package of pybridge/r/packages.csv;
``@pytest.mark.r("sae", "survey")`` needs only these packages, ``@pytest.mark.r()`` with none named
in brackets is the first case. With PYBRIDGE_REQUIRE_R=1 what is missing is a failure, not a skip.
"""

import functools
import os
import subprocess
import sys
import textwrap

import pytest

from pybridge.errors import EngineUnavailable


@functools.lru_cache(maxsize=None)
def _missing_r(names):
    """Why tests that need these R packages cannot run here; an empty text if they can."""
    from pybridge.r.diagnosis import missing_packages

    try:
        missing = missing_packages(names or None)
    except EngineUnavailable as error:
        return str(error)
    return "; ".join(str(error) for error in missing)


def pytest_runtest_setup(item):
    needed = [marker.args for marker in item.iter_markers("r")]
    for names in needed:
        reason = _missing_r(tuple(names))
        if not reason:
            continue
        if os.environ.get("PYBRIDGE_REQUIRE_R") == "1":
            pytest.fail(f"R is required: {reason}", pytrace=False)
        pytest.skip(reason)


@pytest.fixture(scope="session")
def run_python():
    """Run code in a Python of its own: ``run_python(code, **variables)``; None unsets one.

    Returns the finished process with its output as text; a run that hangs is a failure.
    """

    def run(code, *, timeout=90, check=True, **variables):
        environment = {**os.environ, "PYTHONWARNINGS": "error", **variables}
        environment = {key: value for key, value in environment.items() if value is not None}
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            env=environment,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=timeout,
        )
        if check:
            assert done.returncode == 0, done.stderr
        return done

    return run
