"""Every golden answer names its engine and its script, and none was made by this package."""

from __future__ import annotations

import csv
import hashlib
import re
from pathlib import Path

import pytest
from source_tree import ROOT, write_tree

# R and its packages: what may stand after the two underscores of a golden's name.
ENGINES = set(
    "R stats survey sae emdi hbsae metafor rjags evd ismev evir goftest saeRobust lme4".split()
)
# Words in a script's code by which Python could have a hand in its answers.
FOREIGN = re.compile(r"pybridge|reticulate|rpy2|\bpython", re.IGNORECASE)


def md5(path: Path) -> str:
    return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()


def code_of(script: Path) -> str:
    """An R script without its comments."""
    lines = script.read_text(encoding="utf-8").splitlines()
    return "\n".join(re.sub(r"#.*", "", line) for line in lines)


def faults_of_row(folder: Path, row: dict[str, str]) -> list[str]:
    """What is wrong with one row of the MANIFEST (file, md5, script, script_md5, engine)."""
    answer, script = folder / row["file"], folder / row["script"]
    if not answer.is_file():
        return [f"{row['file']}: in MANIFEST, not there"]
    if not script.is_file():
        return [f"{row['file']}: its script {row['script']} is not there"]
    found = []
    if md5(answer) != row["md5"]:
        found.append(f"{row['file']}: changed since its script wrote it")
    if md5(script) != row["script_md5"]:
        found.append(f"{row['file']}: {row['script']} changed since and was not run again")
    if not re.match(r"R \d+\.\d+", row["engine"]):
        found.append(f"{row['file']}: engine {row['engine']!r} does not name R's version")
    engine = answer.stem.rpartition("__")[2]
    if "inputs" not in answer.parts and engine not in ("R", "stats"):
        if not re.search(rf"\b{re.escape(engine)} \d", row["engine"]):
            found.append(f"{row['file']}: MANIFEST does not name {engine}'s version")
    return found


def faults(folder: Path) -> list[str]:
    manifest = folder / "MANIFEST"
    rows = []
    if manifest.is_file():
        with manifest.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    listed = {row["file"] for row in rows}
    found = [fault for row in rows for fault in faults_of_row(folder, row)]
    for path in sorted((folder / "golden").rglob("*")):
        if not path.is_file():
            continue
        name = path.relative_to(folder).as_posix()
        if name not in listed:
            found.append(f"{name}: not in MANIFEST")
        case, _, engine = path.stem.rpartition("__")
        if "inputs" not in path.parts and not (case and engine in ENGINES):
            found.append(f"{name}: not named <case>__<engine>.csv")
    for script in sorted({row["script"] for row in rows}):
        if (folder / script).is_file() and FOREIGN.search(code_of(folder / script)):
            found.append(f"{script}: Python has a hand in it")
    return found


def test_goldens_come_from_r_scripts_that_are_here() -> None:
    assert faults(ROOT / "r_reference") == []


SCRIPT = "# compared with pybridge later\nlibrary(sae)\n"
ANSWER = "case,value\na,1\n"


def good_tree(folder: Path) -> Path:
    write_tree(folder, {"sae.R": SCRIPT, "golden/milk__sae.csv": ANSWER})
    row = ["golden/milk__sae.csv", md5(folder / "golden/milk__sae.csv"), "sae.R"]
    row += [md5(folder / "sae.R"), "R 4.2.2; sae 1.3"]
    manifest = "file,md5,script,script_md5,engine\n" + ",".join(row) + "\n"
    return write_tree(folder, {"MANIFEST": manifest})


def test_a_good_folder_has_no_faults(tmp_path: Path) -> None:
    assert faults(good_tree(tmp_path)) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"golden/milk__sae.csv": ANSWER + "b,2\n"}, "changed since its script wrote it"),
        ({"sae.R": SCRIPT + "set.seed(1)\n"}, "was not run again"),
        ({"golden/beef__sae.csv": ANSWER}, "not in MANIFEST"),
        ({"golden/milk__pybridge.csv": ANSWER}, "not named"),
        ({"golden/milk.csv": ANSWER}, "not named"),
        ({"sae.R": SCRIPT + "reticulate::import('x')\n"}, "Python has a hand in it"),
        ({"sae.R": SCRIPT + "system('python3 -m pybridge')\n"}, "Python has a hand in it"),
    ],
)
def test_a_faulty_folder_is_found(tmp_path: Path, change: dict[str, str], fault: str) -> None:
    write_tree(good_tree(tmp_path), change)
    assert any(fault in found for found in faults(tmp_path))


@pytest.mark.parametrize(("old", "new"), [("sae 1.3", "1.3"), ("R 4.2.2; ", ""), ("sae.R", "b.R")])
def test_a_faulty_manifest_is_found(tmp_path: Path, old: str, new: str) -> None:
    manifest = good_tree(tmp_path) / "MANIFEST"
    manifest.write_text(manifest.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    assert len(faults(tmp_path)) == 1
