"""What every study needs: its command line, tables as CSV and Markdown, figures, candidates."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

import pybridge as pb
from pybridge.selection.scores import size_factor
from pybridge.simulate import repeated_sampling

HERE = Path(__file__).resolve().parent
DATA_VARIABLE = "PYBRIDGE_STUDY_DATA"
GREY, BLUE, ORANGE, GREEN, RED = "#8a8a8a", "#1f5fa8", "#c8732b", "#3b8f5a", "#b03a48"


@dataclass(frozen=True)
class Words:
    """A study's options, and where its results go."""

    name: str
    quick: bool
    repetitions: int
    workers: int
    seed: int
    out: Path
    checkpoint: Path | None
    data: Path | None

    def repeat(self, population, plan, procedure, *, part, repetitions=None):
        """Repeated sampling with this study's options; each part resumes by itself."""
        return repeated_sampling(
            population,
            plan,
            procedure,
            repetitions=repetitions or self.repetitions,
            seed=self.seed,
            workers=self.workers,
            checkpoint=None if self.checkpoint is None else self.checkpoint / self.name / part,
        )


def words(name, doc, *, repetitions, quick=2):
    """Read the command line of a study."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="a few repetitions, to see that it runs")
    add("--repetitions", type=int, help=f"samples of each population ({repetitions})")
    add("--workers", type=int, default=min(2, os.cpu_count() or 1), help="processes")
    add("--seed", type=int, default=1)
    add("--out", type=Path, default=HERE / "results", help="folder of tables and figures")
    add("--checkpoint", type=Path, help="folder in which finished repetitions are kept")
    add(
        "--data", type=Path, help=f"folder of further real tables (or the variable {DATA_VARIABLE})"
    )
    given = parser.parse_args()
    folder = given.data or (
        Path(os.environ[DATA_VARIABLE]) if DATA_VARIABLE in os.environ else None
    )
    count = given.repetitions or (quick if given.quick else repetitions)
    given.out.mkdir(parents=True, exist_ok=True)
    return Words(
        name=name,
        quick=given.quick,
        repetitions=count,
        workers=1 if given.quick else given.workers,
        seed=given.seed,
        out=given.out,
        checkpoint=given.checkpoint,
        data=folder,
    )


def smoothed(name, direct, unit, area, *, taxonomy=False, finite=False):
    """A Bayesian native candidate: direct estimator, unit-level and area-level variables."""
    return pb.candidate(
        name,
        direct=direct,
        unit_auxiliary=unit if direct == "greg" else None,
        smoothing="taxonomy" if taxonomy else "fay_herriot",
        area_formula="~ " + (" + ".join(area) if area else "1"),
        method="bayes",
        finite_population=finite,
    )


def scores_of(runs, columns, *, fraction, folds):
    """Scores (R, C) by the names of the tables: name -> column of `SelectCandidates`."""
    out = {name: runs[f"score_{key}"] for name, key in columns.items()}
    # The same sampling fraction everywhere, so that the correction is one number.
    factor = size_factor(folds, np.array([1.0 - fraction]))[0]
    out["DB-CV, size-corrected"] = factor * out["DB-CV, size-corrected"]
    return out


def with_error(value, error, digits=3):
    """``0.123 (0.004)``: a number and its Monte Carlo error, rounded to what the error allows."""
    if not np.isfinite(value):
        return "–"
    if not np.isfinite(error) or error <= 1e-9 * abs(value):
        return f"{value:.{digits}g}"
    places = int(np.clip(1 - np.floor(np.log10(error)), 0, 8))
    return f"{value:.{places}f} ({error:.{places}f})"


def cells(table, columns):
    """Columns ``x`` with ``x_error`` joined into one of text."""
    out = pd.DataFrame(index=table.index)
    for name in columns:
        error = f"{name}_error"
        if error in table:
            out[name] = [with_error(v, e) for v, e in zip(table[name], table[error])]
        elif table[name].dtype.kind == "f":
            out[name] = [f"{v:.3g}" if np.isfinite(v) else "–" for v in table[name]]
        else:
            out[name] = table[name].astype(str)
    return out


def markdown(table):
    """A table of text as GitHub Markdown."""
    lines = ["| " + " | ".join(map(str, table.columns)) + " |", "|" + "---|" * table.shape[1]]
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in table.itertuples(index=False)]
    return "\n".join(lines)


def write_table(say: Words, name: str, table: pd.DataFrame) -> None:
    """All digits as CSV."""
    table.to_csv(say.out / f"{say.name}_{name}.csv", index=False, lineterminator="\n")


def write_page(say: Words, lines: list[str]) -> None:
    """The study's page, and the same on standard output."""
    text = "\n".join(lines).rstrip() + "\n"
    (say.out / f"{say.name}.md").write_text(text, encoding="utf-8")
    sys.stdout.write(text)


def figure(width, height, **words):
    """An empty figure without global settings, and its axes."""
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height), layout="constrained")
    return made, made.subplots(**words)


def save(say: Words, name: str, made) -> str:
    """Write a figure as PNG, and return the Markdown that shows it."""
    path = say.out / f"{say.name}_{name}.png"
    made.savefig(path, dpi=110)
    return f"![{name.replace('_', ' ')}]({path.name})"


def log_ticks(axis):
    """Ticks of a logarithmic axis at 1, 2, 5, 10 and so on, written out."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def tidy(axes, xlabel, ylabel="", title=""):
    """Labels, no box."""
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.set_title(title, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
