"""Compare two copies of r_reference/golden, cell by cell; exit 1 when a number drifted.

    python .ci/golden_drift.py KEPT NEW [SCRIPT]

With a script's name only the files that MANIFEST says are its own.

Numbers may differ by 1e-9 of the larger one (another BLAS gives other last digits), or by 1e-12
where both are nearly 0; a column whose answer an optimiser finds may be given a wider tolerance
in LOOSE, with its reason. Everything else must be equal.
"""

from __future__ import annotations

import csv
import math
import sys
from pathlib import Path

RELATIVE = 1e-9
ABSOLUTE = 1e-12
# file name's ending -> (relative tolerance, why)
LOOSE: dict[str, tuple[float, str]] = {
    "sae_unit_cornsoybean__sae.csv": (1e-5, "lme4's optimiser stops on a change of the deviance"),
}


def table(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def tolerance(name: str) -> float:
    wider = [value for ending, (value, _) in LOOSE.items() if name.endswith(ending)]
    return max([RELATIVE, *wider])


def number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def agree(kept: str, new: str, relative: float) -> bool:
    if kept == new:
        return True
    a, b = number(kept), number(new)
    if a is None or b is None or math.isnan(a) or math.isnan(b):
        return False
    return math.isclose(a, b, rel_tol=relative, abs_tol=ABSOLUTE)


def drift(kept: Path, new: Path, name: str) -> list[str]:
    """What differs between the two files of this name, one line each."""
    if not (new / name).exists():
        return [f"{name}: no script writes it any more"]
    if not (kept / name).exists():
        return [f"{name}: new, not kept yet"]
    old_rows, new_rows = table(kept / name), table(new / name)
    if [len(row) for row in old_rows] != [len(row) for row in new_rows]:
        return [f"{name}: {len(old_rows)} rows became {len(new_rows)}, or columns changed"]
    relative = tolerance(name)
    return [
        f"{name}, line {line}, column {column}: {a} became {b}"
        for line, rows in enumerate(zip(old_rows, new_rows), start=1)
        for column, (a, b) in enumerate(zip(*rows), start=1)
        if not agree(a, b, relative)
    ]


def names_of(kept: Path, new: Path, script: str | None) -> list[str]:
    """The answers to compare, relative to the two folders."""
    if script is None:
        return sorted(
            {str(p.relative_to(f)) for f in (kept, new) for p in (f / "golden").rglob("*.csv")}
        )
    with (kept / "MANIFEST").open(newline="", encoding="utf-8") as file:
        return sorted(row["file"] for row in csv.DictReader(file) if row["script"] == script)


def main(kept: Path, new: Path, script: str | None = None) -> int:
    names = names_of(kept, new, script)
    found = {name: drift(kept, new, name) for name in names}
    for lines in found.values():
        for line in lines[:5]:
            print(line)
        if len(lines) > 5:
            print(f"  and {len(lines) - 5} more in that file")
    drifted = sum(bool(lines) for lines in found.values())
    print(f"{len(names)} files compared, {drifted} drifted")
    return int(drifted > 0 or not names)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:4]))
