"""Writing an evaluation to a folder."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from pybridge.errors import InputError

if TYPE_CHECKING:
    from pybridge.report.record import Evaluation


def has_matplotlib() -> bool:
    """Whether figures can be drawn; matplotlib itself is not loaded."""
    import importlib.util

    return importlib.util.find_spec("matplotlib") is not None


def write_evaluation(evaluation: Evaluation, folder: str | os.PathLike[str]) -> dict[str, Path]:
    """Write all files of an evaluation; returns what was written, by kind."""
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError, PermissionError) as error:
        raise InputError(
            f"{target} cannot be made into a folder",
            code="bad_folder",
            field="out",
            expected="a folder that can be written",
            got=type(error).__name__,
        ) from error
    written = {
        "estimates": target / "estimates.csv",
        "selection": target / "selection.csv",
        "means": target / "means.csv",
        "provenance": target / "provenance.json",
    }
    evaluation.to_frame().to_csv(written["estimates"], index=False)
    evaluation.selection.to_frame().to_csv(written["selection"], index=False)
    _means(evaluation).to_csv(written["means"], index=False)
    record = {
        "provenance": evaluation.provenance.to_dict(),
        "assumptions": list(evaluation.assumptions),
        "selected": evaluation.selection.selected,
        "reference": evaluation.selection.reference,
        "reference_variances": dict(evaluation.selection.reference_variances),
        "not_scored": {k: list(v) for k, v in evaluation.selection.not_scored.items()},
        "failed": dict(evaluation.selection.failed),
        "conditions": {
            fit.candidate.name: list(fit.conditions) for fit in evaluation.fits if fit.conditions
        },
    }
    text = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False)
    written["provenance"].write_text(text + "\n", encoding="utf-8")
    if has_matplotlib():
        from pybridge.report.figures import save_evaluation_figure

        written["figure"] = target / "figure.png"
        save_evaluation_figure(evaluation, written["figure"])
        written["report"] = target / "report.html"
        evaluation.to_html(written["report"])
    return written


def _means(evaluation: Evaluation):  # type: ignore[no-untyped-def]
    import pandas as pd

    return pd.concat([a.to_frame() for a in evaluation.aggregates.values()], ignore_index=True)
