"""What lies at the top, under which licence, and nothing that belongs to one machine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from source_tree import ROOT, files_of_repository, write_tree

TOP = {
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "Makefile",
    "pybridge",
    "r_reference",
    "validation",
    "tests",
}
LARGEST = 1_000_000  # bytes

# In pieces, so that this file does not hold what it forbids.
_HOSTS = (
    ("py", r"pi\.(org|python)"),
    ("pythonhosted", r"\.org"),
    ("cran", r"\.r-project\.org"),
    ("cloud", r"\.r-project\.org"),
    ("deb", r"\.debian\.org"),
    ("npm", r"js\.org"),
    ("conda", r"\.anaconda\.org"),
    ("packagemanager", r"\.\w+\.\w+"),
)
_PLACES = (("/wo", "rk/"), ("/tm", "p/"), ("/ro", "ot/"), ("/ho", "me/"), ("/Us", "ers/"))
FORBIDDEN = {
    "the host of a package registry": "|".join(a + b for a, b in _HOSTS),
    "a path of one machine": r"(?<![\w.~$}])(" + "|".join(a + b for a, b in _PLACES) + ")",
    "the number of an issue": r"\bissues? #?\d+\b",
}


def out_of_place(root: Path) -> set[str]:
    names = {path.relative_to(root).parts[0] for path in files_of_repository(root)}
    return {name for name in names - TOP if not name.startswith(".")}


def forbidden_text(root: Path) -> list[str]:
    found = []
    for path in files_of_repository(root):
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue  # a picture
        for number, line in enumerate(lines, start=1):
            for what, pattern in FORBIDDEN.items():
                if re.search(pattern, line, re.IGNORECASE):
                    found.append(f"{path.relative_to(root)}:{number} holds {what}")
    return found


def test_the_top_holds_what_it_should() -> None:
    assert out_of_place(ROOT) == set()


def test_a_file_out_of_place_is_found(tmp_path: Path) -> None:
    write_tree(tmp_path, {"README.md": "", ".flake8": "", "scripts/a.py": "", "notes.txt": ""})
    assert out_of_place(tmp_path) == {"scripts", "notes.txt"}


def test_no_file_names_a_registry_a_machine_or_an_issue() -> None:
    assert forbidden_text(ROOT) == []


@pytest.mark.parametrize(
    "pieces",
    [
        ("https://py", "pi.org/simple"),
        ("https://cloud.r-", "project.org"),
        ("HTTP://DEB.DEB", "IAN.ORG/debian"),
        ("see /wo", "rk/main"),
        ('open("/tm', 'p/a.csv")'),
        ("(/ro", "ot/.cache)"),
        ("as issue", " 3 asks"),
        ("issue", " #12"),
    ],
)
def test_forbidden_text_is_found(tmp_path: Path, pieces: tuple[str, str]) -> None:
    write_tree(tmp_path, {"pybridge/a.py": "good = 1\n" + "".join(pieces)})
    assert len(forbidden_text(tmp_path)) == 1


@pytest.mark.parametrize(
    "text", ["a/home/b", "~/R/library", "tests/work/x", "/usr/bin/python3", "3 issues", "$HOME/x"]
)
def test_other_text_is_not(tmp_path: Path, text: str) -> None:
    write_tree(tmp_path, {"pybridge/a.py": text})
    assert forbidden_text(tmp_path) == []


def test_the_licence_is_the_one_declared() -> None:
    declared = re.search(
        r'^license = "(.*)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE
    )
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert declared is not None and declared[1] == "GPL-2.0-or-later"
    assert "GNU GENERAL PUBLIC LICENSE" in licence and "Version 2, June 1991" in licence
    assert "END OF TERMS AND CONDITIONS" in licence


def test_no_file_is_large() -> None:
    sizes = {str(p.relative_to(ROOT)): p.stat().st_size for p in files_of_repository(ROOT)}
    assert {name: size for name, size in sizes.items() if size > LARGEST} == {}
