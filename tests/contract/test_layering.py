"""Imports go one way: each stage of the package sees only the stages before it."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_tree import ROOT, Import, imports_of, is_or_below, python_files, write_tree

# The stages in the data's order. A name sees those on earlier lines, and itself.
STAGES = (
    ("errors",),
    ("provenance",),
    ("tables",),
    ("engines", "datasets"),
    ("design",),
    ("direct",),
    ("smoothing", "tails"),
    ("selection", "protocol"),
    ("simulate",),
    ("report",),
    ("crosscheck",),
    ("evaluation",),
    ("demonstration",),
    ("commands",),
    ("cli",),
    ("__main__",),
)
RANK = {name: rank for rank, names in enumerate(STAGES) for name in names}

# The door to R sees only the first two lines; these alone see the door.
SEES_R = ("engines", "datasets", "crosscheck", "commands", "cli", "__main__")
ADAPTERS = ("_sae", "_emdi", "_hbsae", "_metafor", "_rjags", "_survey", "_evd", "_ismev")

# Methods of a record that reach up, when they are called, to what works on records.
LAZY = {
    "plot": ("report",),
    "to_html": ("report",),
    "_repr_html_": ("report",),
    "crosscheck": ("crosscheck",),
    "to_rds": ("r",),
    "r_script": ("r",),
    # What a guarded call of an R function puts beside R's answer.
    "exact_answer": ("smoothing",),
}


def stage_of(name: str) -> str:
    """The stage of a dotted name: its second part; private modules at the top are the bottom."""
    parts = name.split(".")
    if len(parts) == 1:
        return ""
    return "errors" if parts[1].startswith("_") and parts[1] != "__main__" else parts[1]


def sees_r(module: str) -> bool:
    return stage_of(module) in SEES_R or module.rpartition(".")[2] in ADAPTERS


def is_allowed(found: Import) -> bool:
    source, target = stage_of(found.module), stage_of(found.target)
    if found.typing_only or source == target:
        return True
    if found.function in LAZY and target in LAZY[found.function]:
        return True
    if target == "r":
        return sees_r(found.module)
    if source == "r":
        return RANK.get(target, 99) <= RANK["provenance"]
    if target not in RANK:
        # Names of the package itself (`from pybridge import fay_herriot`): for the command line.
        return source in ("cli", "__main__")
    return RANK[target] < RANK.get(source, -1)


def violations(root: Path) -> list[str]:
    found = [one for path in python_files(root / "pybridge") for one in imports_of(path, root)]
    ours = [one for one in found if is_or_below(one.target, "pybridge")]
    return [str(one) for one in ours if one.module != "pybridge" and not is_allowed(one)]


def test_the_package_keeps_to_its_layers() -> None:
    assert violations(ROOT) == []


def test_every_part_of_the_package_has_a_place() -> None:
    parts = {
        path.stem if path.is_file() else path.name
        for path in (ROOT / "pybridge").iterdir()
        if path.suffix == ".py" or any(path.glob("*.py"))
    }
    private = {name for name in parts if name.startswith("_") and name != "__main__"}
    assert parts - private - set(RANK) - {"r"} == set()


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("tables/a.py", "from pybridge.direct import b"),
        ("tables/a.py", "from ..direct import b"),
        ("tables/a.py", "from .. import direct"),
        ("tables/a.py", "def f():\n    from pybridge.direct import b"),
        ("tables/a.py", "import importlib\nimportlib.import_module('pybridge.direct')"),
        ("smoothing/a.py", "import pybridge.tails.b"),
        ("smoothing/a.py", "from pybridge.r import call"),
        ("smoothing/a.py", "from pybridge import fay_herriot"),
        ("selection/a.py", "class A:\n    def plot(self):\n        from pybridge.cli import b"),
        ("r/call.py", "from pybridge.tables import b"),
        ("errors.py", "from pybridge.tables import b"),
        ("_checks.py", "from pybridge.tables import b"),
        ("novel/a.py", "from pybridge.tables import b"),
    ],
)
def test_an_import_against_the_direction_is_found(tmp_path: Path, file: str, text: str) -> None:
    write_tree(tmp_path, {f"pybridge/{file}": text})
    assert len(violations(tmp_path)) == 1


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("direct/a.py", "from pybridge.tables import b\nfrom pybridge._checks import c"),
        ("direct/a.py", "from . import b"),
        ("smoothing/_sae.py", "from pybridge.r import call"),
        ("smoothing/a.py", "class A:\n    def to_rds(self):\n        from pybridge.r import call"),
        ("engines/sae.py", "from pybridge.r import call"),
        ("__main__.py", "from pybridge.cli import main"),
        ("direct/a.py", "import numpy\nimport pybridges"),
    ],
)
def test_an_import_with_the_direction_is_not(tmp_path: Path, file: str, text: str) -> None:
    write_tree(tmp_path, {f"pybridge/{file}": text})
    assert violations(tmp_path) == []
