"""The answers kept in the repository against the scripts run afresh, file by file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from pybridge.crosscheck.agreement import NOT_POSSIBLE, PART, AgreementRow, AgreementTable
from pybridge.crosscheck.comparer import compare
from pybridge.crosscheck.tolerances import KEPT as TOLERANCE
from validation.suites.plain_r import KEPT, PlainR

# These sample for minutes; `make golden-check` runs them.
SLOW = ("taxonomy_rjags.R",)
# Beside numbers near 0, which are sums of larger ones that cancel.
_NOISE = 1e-3


def scripts_of_files() -> dict[str, str]:
    """Which script wrote which kept file, from the MANIFEST."""
    manifest = pd.read_csv(KEPT.parent / "MANIFEST", dtype=str)
    return {
        Path(row.file).name: row.script
        for row in manifest.itertuples()
        if "inputs" not in Path(row.file).parts
    }


def case_names() -> list[str]:
    """A case a kept file."""
    return [_label(name) for name in scripts_of_files()]


def _label(name: str) -> str:
    return f"kept {name.removesuffix('.csv')}"


def scripts(chosen: set[str]) -> tuple[str, ...]:
    """Scripts of r_reference that these cases need, but for those that sample for minutes."""
    found = dict.fromkeys(
        script
        for name, script in scripts_of_files().items()
        if _label(name) in chosen and script not in SLOW
    )
    return tuple(found)


def run(plain: PlainR, chosen: set[str]) -> AgreementTable:
    """All comparisons of the chosen files."""
    rows = []
    for name, script in scripts_of_files().items():
        case = _label(name)
        if case not in chosen:
            continue
        why_not = plain.why_not(script)
        if script in SLOW:
            why_not = why_not and "it samples for minutes (make golden-check runs it)"
        rows.append(_row(case, name, plain.answers(script), why_not))
    return AgreementTable(tuple(rows))


def _row(case: str, name: str, fresh: Path, why_not: str) -> AgreementRow:
    words = {"case": case, "quantity": "every number", "producer": "kept", "against": "Rscript"}
    if why_not:
        return AgreementRow(**words, reason=why_not, verdict=NOT_POSSIBLE)
    if not (fresh / name).is_file():
        return AgreementRow(**words, reason="no script writes it any more", verdict=PART)
    kept, new = (
        pd.read_csv(folder / name, dtype=str, keep_default_na=False) for folder in (KEPT, fresh)
    )
    if list(kept.columns) != list(new.columns) or len(kept) != len(new):
        return AgreementRow(**words, reason="other rows or columns than kept", verdict=PART)
    texts = [column for column in kept if _numbers(kept[column]) is None]
    if not kept[texts].equals(new[texts]):
        return AgreementRow(**words, reason="other words than kept", verdict=PART)
    columns = [column for column in kept if column not in texts]
    pairs = [(_numbers(kept[column]), _numbers(new[column])) for column in columns]
    if any(found is None for _, found in pairs):
        return AgreementRow(**words, reason="a number became a word", verdict=PART)
    values, reference = (np.concatenate(side) for side in zip(*pairs))
    finite = np.abs(values[np.isfinite(values)])
    least = _NOISE * float(np.median(finite)) if finite.size else 0.0
    rows = kept[texts].agg(" ".join, axis=1) if texts else kept.index.astype(str)
    return compare(
        **words,
        values=values,
        reference=reference,
        tolerance=TOLERANCE,
        unit=least,
        keys=[f"{row} {column}" for column in columns for row in rows],
    )


def _numbers(column: pd.Series) -> np.ndarray | None:
    """The column as numbers, NaN where it is empty; None where it holds words."""
    try:
        return np.array([float(text) if text not in ("", "NA") else np.nan for text in column])
    except ValueError:
        return None
