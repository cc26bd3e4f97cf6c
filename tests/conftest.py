"""The ``r`` marker: tests that need R are skipped without it, or fail if R is required.

``@pytest.mark.r`` needs R, rpy2 and every package of pybridge/r/packages.csv;
``@pytest.mark.r("sae", "survey")`` needs only these packages, ``@pytest.mark.r()`` with none named
in brackets is the first case. With PYBRIDGE_REQUIRE_R=1 what is missing is a failure, not a skip.
"""

import functools
import os

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
