"""Writing an evaluation to a folder."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from pybridge._files import place, writing
from pybridge._record import plain
from pybridge.errors import EngineUnavailable, InputError

if TYPE_CHECKING:
    from pybridge.report.record import Evaluation


def has_matplotlib() -> bool:
    """Whether figures can be drawn; matplotlib itself is not loaded."""
    import importlib.util

    return importlib.util.find_spec("matplotlib") is not None


def write_evaluation(evaluation: Evaluation, folder: str | os.PathLike[str]) -> dict[str, Path]:
    """Write all files of an evaluation; returns what was written, by kind."""
    target = make_folder(folder)
    written = {
        "estimates": target / "estimates.csv",
        "selection": target / "selection.csv",
        "means": target / "means.csv",
        "provenance": target / "provenance.json",
    }
    write_csv(evaluation.to_frame(), written["estimates"])
    write_csv(evaluation.selection.to_frame(), written["selection"])
    write_csv(_means(evaluation), written["means"])
    record = {
        "provenance": evaluation.provenance.to_dict(),
        "assumptions": list(evaluation.assumptions),
        "selected": evaluation.selection.selected,
        "default": evaluation.selection.default or None,
        "may_be_best": list(evaluation.selection.indistinguishable()),
        "reference": evaluation.selection.reference,
        "reference_variances": dict(evaluation.selection.reference_variances),
        "not_scored": {k: list(v) for k, v in evaluation.selection.not_scored.items()},
        "failed": dict(evaluation.selection.failed),
        "notes": list(evaluation.selection.notes),
        "conditions": {
            fit.candidate.name: list(fit.conditions) for fit in evaluation.fits if fit.conditions
        },
    }
    text = json.dumps(plain(record), indent=2, ensure_ascii=False, allow_nan=False)
    with writing(written["provenance"], field="out"):
        written["provenance"].write_text(text + "\n", encoding="utf-8")
    if has_matplotlib():
        written.update(_write_pictures(evaluation, target))
    return written


def _write_pictures(evaluation: Evaluation, target: Path) -> dict[str, Path]:
    from pybridge.report.figures import save_evaluation_figure

    written = {"figure": target / "figure.png", "report": target / "report.html"}
    try:
        with writing(target, field="out"):
            save_evaluation_figure(evaluation, written["figure"])
            evaluation.to_html(written["report"])
    except EngineUnavailable:  # matplotlib is there, but does not load
        return {}
    return written


def save_figure(figure: Any, path: str | os.PathLike[str]) -> Path:
    """Write a figure as a picture; InputError where the file cannot be written."""
    from pybridge.report.figures import known_glyphs_only

    target = place(path, field="out")
    with writing(target, field="out"), known_glyphs_only():
        figure.savefig(target, dpi=130)
    return target


def make_folder(folder: str | os.PathLike[str]) -> Path:
    """The folder, made where it is not there; InputError where that cannot be."""
    target = Path() if folder == "" else place(folder, field="out")
    try:
        if folder == "":
            raise FileNotFoundError(errno.ENOENT, "no name")
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{target} cannot be made into a folder",
            code="bad_folder",
            field="out",
            expected="a folder that can be written",
            got=error.strerror or type(error).__name__,
        ) from error
    return target


def write_csv(table: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a table; InputError where the file cannot be written."""
    target = place(path, field="out")
    with writing(target, field="out"):
        table.to_csv(target, index=False)


def _means(evaluation: Evaluation) -> pd.DataFrame:
    return pd.concat([a.to_frame() for a in evaluation.aggregates.values()], ignore_index=True)
