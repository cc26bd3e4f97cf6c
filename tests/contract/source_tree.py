"""Reading a source tree without running it: which file imports what, and how long things are.

The rules of the other files here are written against these functions, so that each rule can be
tried on a small tree that breaks it.
"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOT_OURS = {".git", ".venv", ".setup-stamps", ".mypy_cache", ".pytest_cache", "__pycache__"}


@dataclass(frozen=True)
class Import:
    """One import: of what, from which module, and inside which function (None at the top)."""

    module: str
    target: str
    line: int
    function: str | None
    typing_only: bool

    def __str__(self) -> str:
        where = f" in {self.function}()" if self.function else ""
        return f"{self.module}:{self.line}{where} imports {self.target}"


def module_name(path: Path, root: Path) -> str:
    """The dotted name of a file below ``root``; a package is named without ``__init__``."""
    parts = list(path.relative_to(root).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def python_files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*.py") if not NOT_OURS & set(p.parts))


def imports_of(path: Path, root: Path) -> list[Import]:
    """All imports of a file, the lazy ones and ``import_module("...")`` included."""
    module = module_name(path, root)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    return [
        Import(module, target, node.lineno, function, typing_only)
        for node, function, typing_only in _walk(tree, None, False)
        for target in _targets(node, package)
    ]


def _walk(
    node: ast.AST, function: str | None, typing_only: bool
) -> Iterator[tuple[ast.AST, str | None, bool]]:
    for child in ast.iter_child_nodes(node):
        inside, guarded = function, typing_only
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inside = function or child.name
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            guarded = True
        yield child, inside, guarded
        yield from _walk(child, inside, guarded)


def _targets(node: ast.AST, package: str) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join(above + ([base] if base else []))
        return [f"{base}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        called = ast.unparse(node.func).rpartition(".")[2]
        if called in ("import_module", "__import__") and isinstance(node.args[0].value, str):
            return [node.args[0].value]
    return []


def is_or_below(target: str, name: str) -> bool:
    """Whether the dotted name ``target`` is ``name`` or something inside it."""
    return target == name or target.startswith(name + ".")


def functions_of(path: Path) -> list[tuple[str, int]]:
    """Every function with the number of lines of its body, the docstring left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            lines = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
            found.append((node.name, lines))
    return found


def files_of_repository(root: Path = ROOT) -> list[Path]:
    """What git tracks or would track; every file outside the ignored folders where git is mute."""
    asked = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        check=False,
    )
    if asked.returncode == 0:
        names = [name for name in asked.stdout.decode().split("\0") if name]
        return sorted(p for p in (root / name for name in names) if p.is_file())
    return sorted(p for p in root.rglob("*") if p.is_file() and not NOT_OURS & set(p.parts))


def write_tree(folder: Path, files: dict[str, str]) -> Path:
    """A small tree for showing that a rule can fail."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder
