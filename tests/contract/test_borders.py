"""rpy2 stays behind the door, and the reimplementations share nothing with what they check."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from source_tree import ROOT, imports_of, is_or_below, python_files, write_tree

REIMPLEMENTATIONS = Path("validation/reimplementations")
# mpmath where more digits than a double's are wanted; no scipy.stats, which fits things itself.
ALLOWED = ("numpy", "scipy.optimize", "scipy.special", "mpmath", "validation.reimplementations")


def rpy2_outside_the_door(root: Path) -> list[str]:
    return [
        str(found)
        for folder in ("pybridge", "validation")
        for path in python_files(root / folder)
        for found in imports_of(path, root)
        if is_or_below(found.target, "rpy2") and not is_or_below(found.module, "pybridge.r")
    ]


def foreign_imports(root: Path) -> list[str]:
    """Imports of the reimplementations that are neither Python's own nor among ALLOWED."""
    return [
        str(found)
        for path in python_files(root / REIMPLEMENTATIONS)
        for found in imports_of(path, root)
        if found.target.split(".")[0] not in sys.stdlib_module_names
        and not any(is_or_below(found.target, name) for name in ALLOWED)
    ]


def test_rpy2_is_imported_behind_the_door_only() -> None:
    assert rpy2_outside_the_door(ROOT) == []


@pytest.mark.parametrize(
    "text",
    [
        "import rpy2",
        "from rpy2 import robjects",
        "def f():\n    import rpy2.robjects as ro",
        "__import__('rpy2')",
    ],
)
def test_rpy2_elsewhere_is_found(tmp_path: Path, text: str) -> None:
    write_tree(tmp_path, {"pybridge/smoothing/_sae.py": text, "pybridge/r/worker.py": text})
    assert len(rpy2_outside_the_door(tmp_path)) == 1


def test_the_reimplementations_stand_alone() -> None:
    assert foreign_imports(ROOT) == []


@pytest.mark.parametrize(
    "text",
    [
        "import pybridge",
        "from pybridge.smoothing import native",
        "import rpy2",
        "from tests import helper",
        "from scipy import stats",
        "import scipy.stats",
        "import statsmodels.api",
        "from .. import benchmarks",
        "def f():\n    import pandas",
    ],
)
def test_a_borrowing_reimplementation_is_found(tmp_path: Path, text: str) -> None:
    good = "import math\nimport numpy as np\nfrom scipy import optimize, special\nfrom . import b\n"
    write_tree(tmp_path, {str(REIMPLEMENTATIONS / "a.py"): good + text})
    assert len(foreign_imports(tmp_path)) == 1
