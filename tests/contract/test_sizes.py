"""Small modules, short functions."""

from __future__ import annotations

from pathlib import Path

from source_tree import ROOT, functions_of, python_files, write_tree

LONGEST_MODULE = 350
LONGEST_BODY = 60
FOLDERS = ("pybridge", "validation")


def too_long(root: Path) -> list[str]:
    found = []
    for path in (path for folder in FOLDERS for path in python_files(root / folder)):
        name = str(path.relative_to(root))
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > LONGEST_MODULE:
            found.append(f"{name} has {lines} lines")
        found += [
            f"{name}: {function}() has {body} lines"
            for function, body in functions_of(path)
            if body > LONGEST_BODY
        ]
    return found


def test_modules_and_functions_are_short() -> None:
    assert too_long(ROOT) == []


def test_a_long_module_is_found(tmp_path: Path) -> None:
    write_tree(tmp_path, {"pybridge/a.py": "a = 1\n" * 350, "pybridge/b.py": "a = 1\n" * 351})
    assert too_long(tmp_path) == ["pybridge/b.py has 351 lines"]


def test_a_long_function_is_found_whatever_its_docstring(tmp_path: Path) -> None:
    docstring = '    """' + "words\n    " * 90 + '"""\n'
    short, long = ("def {}():\n" + docstring + "    a = 1\n" * count for count in (60, 61))
    nested = "class A:\n    def {}(self):\n" + "        a = 1\n" * 61
    write_tree(
        tmp_path,
        {
            "pybridge/short.py": short.format("short"),
            "pybridge/long.py": long.format("long"),
            "validation/nested.py": nested.format("method"),
        },
    )
    assert too_long(tmp_path) == [
        "pybridge/long.py: long() has 61 lines",
        "validation/nested.py: method() has 61 lines",
    ]
