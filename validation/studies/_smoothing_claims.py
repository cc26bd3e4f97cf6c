"""What smoothing must hold, as claims about the settings of `_smoothing.py`.

Used by the study `smoothing_coverage.py`, by `python -m validation` and, with fewer samples, by the
tests. A claim has a number, its Monte Carlo error, its bounds, and whether the number is inside
them within two errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pybridge.simulate import accuracy, repeated_sampling
from pybridge.simulate.measures import mean_of_known, mean_with_error, ratio_with_error
from pybridge.simulate.repeated import RepeatedSampling

if TYPE_CHECKING:
    from validation.studies._smoothing import Setting

LOW, HIGH = 0.93, 0.97
FEWEST = 10  # labels from which t intervals of HT are asked to hold
ORDER = ("HT", "GREG", "FH", "PP-S", "PP-TS")


@dataclass(frozen=True)
class Claim:
    """One thing that must hold: ``value`` (``error``) in [``least``, ``most``]."""

    setting: str
    claim: str
    value: float
    error: float
    least: float
    most: float
    holds: bool
    note: str = ""

    @property
    def bound(self) -> str:
        """In words."""
        if not np.isfinite(self.most):
            return f"at least {self.least:g}"
        if self.least == 0.0:
            return f"at most {self.most:g}"
        return f"{self.least:g} to {self.most:g}"

    @property
    def nearest(self) -> float:
        """The number inside the bounds that is nearest to the value."""
        return float(np.clip(self.value, self.least, self.most))


def measured(one: Setting, runs: RepeatedSampling) -> pd.DataFrame:
    """RMSE, coverage, width and interval score of every estimator, with errors; a row each."""
    table = accuracy(runs, one.procedure.names, level=one.procedure.level).to_frame()
    table.insert(0, "setting", one.name)
    extra = []
    for key, name in (("ht", "HT, smoothed variance"), ("greg", "GREG, smoothed variance")):
        low, high = (runs[f"smoothed_{key}_{end}"] for end in ("lower", "upper"))
        known = np.isfinite(low)
        inside = np.where(known, (low <= runs.truth) & (runs.truth <= high), np.nan)
        coverage, error = map(float, mean_with_error(mean_of_known(inside)))
        width, width_error = map(float, mean_with_error(mean_of_known(high - low)))
        row = {"setting": one.name, "candidate": name, "coverage": coverage}
        row.update(coverage_error=error, width=width, width_error=width_error)
        extra.append(row)
    enough = np.where(runs["n_labelled"] >= FEWEST, 1.0, np.nan)
    ht = one.procedure.names.index("HT")
    low, high = (runs[end][:, ht] for end in ("lower", "upper"))
    inside = enough * ((low <= runs.truth) & (runs.truth <= high))
    coverage, error = map(float, mean_with_error(mean_of_known(inside)))
    row = {"setting": one.name, "candidate": f"HT, {FEWEST} labels or more"}
    extra.append({**row, "coverage": coverage, "coverage_error": error})
    return pd.concat([table, pd.DataFrame(extra)], ignore_index=True)


def claims(one: Setting, runs: RepeatedSampling, table: pd.DataFrame) -> list[Claim]:
    """The claims that are made of this kind of setting."""
    out = _coverages(one, table)
    names = list(one.procedure.names)
    square = mean_of_known((runs["estimate"] - runs.truth) ** 2)
    if one.kind == "built":
        out += _order(one, names, square)
    if "PPI, weak" in names and one.kind == "built":
        out += _weak(one, names, square)
    if one.kind == "flat":
        out += _flat(one, names, square, runs)
    return out


def _coverages(one: Setting, table: pd.DataFrame) -> list[Claim]:
    """At least 0.93; above 0.97 only where the mean width is below GREG's."""
    rows = table.set_index("candidate")
    wanted = ["GREG", "PP-S", "PP-TS", f"HT, {FEWEST} labels or more"]
    if one.kind == "design":
        wanted = ["PP-S", "PP-TS", "HT, smoothed variance", "GREG, smoothed variance"]
    greg = float(rows.loc["GREG", "width"])
    out = []
    for name in (name for name in wanted if name in rows.index):
        value, error, width = (
            float(rows.loc[name, key]) for key in ("coverage", "coverage_error", "width")
        )
        conservative = value - 2 * error > HIGH
        note = f"conservative, width {width / greg:.2f} of GREG's" if conservative else ""
        narrow = not conservative or width < greg
        out.append(
            Claim(
                setting=one.name,
                claim=f"coverage of {name}",
                value=value,
                error=error,
                least=LOW,
                most=HIGH,
                holds=value + 2 * error >= LOW and narrow,
                note=note,
            )
        )
    return out


def _order(one: Setting, names: list[str], square: np.ndarray) -> list[Claim]:
    """RMSE falls from HT to PP-TS, each against the one before, paired over samples."""
    out = []
    for worse, better in zip(ORDER, ORDER[1:]):
        top, bottom = square[:, names.index(better)], square[:, names.index(worse)]
        out.append(_ratio(one, f"RMSE of {better} / {worse}", top, bottom, most=1.0))
    first, ht = square[:, names.index("FH, intercept only")], square[:, names.index("HT")]
    out.append(_ratio(one, "RMSE of FH, intercept only / HT", first, ht, least=0.85))
    return out


def _weak(one: Setting, names: list[str], square: np.ndarray) -> list[Claim]:
    ht = square[:, names.index("HT")]
    return [
        _ratio(one, "RMSE of PPI / HT, weak", square[:, names.index("PPI, weak")], ht, least=1.0),
        _ratio(one, "RMSE of GREG / HT, weak", square[:, names.index("GREG, weak")], ht, most=1.0),
    ]


def _flat(
    one: Setting, names: list[str], square: np.ndarray, runs: RepeatedSampling
) -> list[Claim]:
    """A level without variation: a small variance, and a small cost."""
    ratio, error = mean_with_error(runs["level_ratio"])
    what = "median variance of the level / the domain's"
    less = bool(ratio - 2 * error < 0.5)
    small = Claim(one.name, what, float(ratio), float(error), 0.0, 0.5, less)
    tree, area = square[:, names.index("PP-TS")], square[:, names.index("PP-S")]
    return [small, _ratio(one, "RMSE of PP-TS / PP-S", tree, area, most=1.03)]


def _ratio(
    one: Setting,
    what: str,
    top: np.ndarray,
    bottom: np.ndarray,
    *,
    most: float = np.inf,
    least: float = 0.0,
) -> Claim:
    """A ratio of RMSEs, with the error of the paired difference."""
    ratio, error = ratio_with_error(top, bottom)
    value = float(np.sqrt(ratio))
    size = float(error) / (2.0 * value)
    holds = value - 2 * size <= most and value + 2 * size >= least
    return Claim(one.name, what, value, size, least, most, bool(holds))


def simulate(
    one: Setting, *, repetitions: int, seed: int = 1
) -> tuple[pd.DataFrame, list[Claim], RepeatedSampling]:
    """Run one setting in this process: its table, its claims, and everything."""
    runs = repeated_sampling(
        one.population,
        one.plan,
        one.procedure,
        repetitions=repetitions,
        seed=seed,
        progress=False,
    )
    table = measured(one, runs)
    return table, claims(one, runs, table), runs
