"""The record of what each piece of information brings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import listed
from pybridge._record import Record


@dataclass(frozen=True, eq=False, repr=False)
class Step(Record):
    """One estimator of the m domains.

    Attributes
    ----------
    name : str
    brings : str
        What it has that the step before has not.
    estimate, mse, lower, upper, shrinkage : numpy.ndarray
        Shape (m,).
    model_variance : float
        NaN for HT; the domain level's for a taxonomy.
    status, message : str
        Of the fit.
    """

    name: str
    brings: str
    estimate: np.ndarray
    mse: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    shrinkage: np.ndarray
    model_variance: float
    status: str
    message: str = ""

    @classmethod
    def normal(cls, name: str, estimate: np.ndarray, mse: np.ndarray, *, level: float) -> Step:
        """A direct estimator, with normal intervals."""
        half = NormalDist().inv_cdf(0.5 + level / 2.0) * np.sqrt(mse)
        return cls(
            name=name,
            brings="",
            estimate=estimate,
            mse=mse,
            lower=estimate - half,
            upper=estimate + half,
            shrinkage=np.full(len(estimate), np.nan),
            model_variance=math.nan,
            status="ok",
        )


@dataclass(frozen=True, eq=False, repr=False)
class Contributions(Record):
    """Estimators with more and more information, and what each piece brought.

    Attributes
    ----------
    steps : tuple of Step
        HT, FH with an intercept only, FH, PP-S and, where there is a taxonomy, PP-TS.
    domains, n_labelled : numpy.ndarray
        Shape (m,).
    outcome : str
    auxiliary : tuple of str
    area_formula : str
        Right-hand side of the area-level regression.
    taxonomy : tuple of str
    level : float
    truth : numpy.ndarray or None
        Shape (m,).
    """

    steps: tuple[Step, ...]
    domains: np.ndarray
    n_labelled: np.ndarray
    outcome: str
    auxiliary: tuple[str, ...]
    area_formula: str
    taxonomy: tuple[str, ...]
    level: float
    truth: np.ndarray | None = None

    @property
    def compared(self) -> np.ndarray:
        """Domains (m,), bool, over which means are taken: every step that exists has them."""
        here = self.n_labelled > 0
        for step in self.steps:
            if step.status != "failed":
                here = here & np.isfinite(step.mse) & np.isfinite(step.estimate)
        return here

    @property
    def per_domain(self) -> pd.DataFrame:
        """One row a step × domain: step, domain, n_labelled, estimate, mse, interval, truth."""
        parts = []
        for step in self.steps:
            table: dict[str, Any] = {
                "step": step.name,
                "domain": self.domains,
                "n_labelled": self.n_labelled,
                "estimate": step.estimate,
                "mse": step.mse,
                "lower": step.lower,
                "upper": step.upper,
                "shrinkage": step.shrinkage,
            }
            if self.truth is not None:
                table["truth"] = self.truth
            parts.append(pd.DataFrame(table))
        return pd.concat(parts, ignore_index=True)

    def to_frame(self) -> pd.DataFrame:
        """One row a step.

        Columns: step, brings, n_domains, mean_mse, rmse (its root), mean_width, mse_reduction and
        width_reduction (share of the step before), total_mse_reduction (share of HT),
        model_variance, mean_shrinkage, status; with a truth also true_rmse, true_mse_reduction,
        coverage, coverage_standard_error (binomial, over domains).
        """
        rows = [self._row(step) for step in self.steps]
        table = pd.DataFrame(rows)
        table["mse_reduction"] = _reductions(table["mean_mse"])
        table["width_reduction"] = _reductions(table["mean_width"])
        table["total_mse_reduction"] = 1.0 - table["mean_mse"] / table["mean_mse"].iloc[0]
        if self.truth is not None:
            table["true_mse_reduction"] = _reductions(table["true_rmse"] ** 2)
        order = (
            *("step", "brings", "n_domains", "mean_mse", "rmse", "mean_width", "mse_reduction"),
            *("width_reduction", "total_mse_reduction", "model_variance", "mean_shrinkage"),
            *("status", "true_rmse", "true_mse_reduction", "coverage", "coverage_standard_error"),
        )
        return table[[name for name in order if name in table]]

    def _row(self, step: Step) -> dict[str, Any]:
        here = self.compared
        n = int(here.sum())
        mse = _mean(step.mse[here])
        row: dict[str, Any] = {
            "step": step.name,
            "brings": step.brings,
            "n_domains": n,
            "mean_mse": mse,
            "rmse": math.sqrt(mse) if mse >= 0 else math.nan,
            "mean_width": _mean((step.upper - step.lower)[here]),
            "model_variance": step.model_variance,
            "mean_shrinkage": _mean(step.shrinkage[here]),
            "status": step.status,
        }
        if self.truth is not None:
            error = (step.estimate - self.truth)[here]
            known = np.isfinite(step.lower[here])
            inside = (step.lower <= self.truth) & (self.truth <= step.upper)
            share = _mean(inside[here][known].astype(np.float64))
            row["true_rmse"] = math.sqrt(_mean(error**2))
            row["coverage"] = share
            size = math.sqrt(self.level * (1.0 - self.level) / n) if n else math.nan
            row["coverage_standard_error"] = size if math.isfinite(share) else math.nan
        return row

    def summary(self) -> str:
        """The table as text, with what it cannot say."""
        table = self.to_frame()
        n, m = int(self.compared.sum()), len(self.domains)
        lines = [
            f"{self.outcome}: contributions over {n} of {m} domains (those with labels)",
            f"auxiliary: {listed(self.auxiliary)} on units, {self.area_formula} on domains"
            + (f"; taxonomy: {listed(self.taxonomy)}" if self.taxonomy else "; no taxonomy"),
            "",
        ]
        truth = self.truth is not None
        head = f"  {'step':<20} {'adds':<24} {'RMSE':>9} {'MSE less':>9} {'width':>9} {'less':>6}"
        lines.append(head + (f" {'true RMSE':>10} {'covered':>8}" if truth else ""))
        for row in table.to_dict("records"):
            text = f"  {row['step']:<20} {row['brings']:<24} {row['rmse']:>9.4g} "
            text += f"{_percent(row['mse_reduction']):>9} {row['mean_width']:>9.4g} "
            text += f"{_percent(row['width_reduction']):>6}"
            if truth:
                text += f" {row['true_rmse']:>10.4g} {_percent(row['coverage']):>8}"
            lines.append(text.rstrip())
        lines += ["", "RMSE: root of the mean reported MSE, which for a model is the model's word."]
        lines += [f"{s.name} failed: {s.message}" for s in self.steps if s.status == "failed"]
        if truth and n:
            size = 100 * math.sqrt(self.level * (1.0 - self.level) / n)
            lines.append(
                f"One sample: coverage over {n} domains has a standard error of {size:.1f} points."
            )
        return "\n".join(lines)

    def plot(self, ax: Any = None) -> Any:
        """Reported (and true) error of every step; returns the matplotlib Axes."""
        from pybridge.report.contributions_figure import contributions_figure

        return contributions_figure(self, ax)


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if values.size else math.nan


def _reductions(values: pd.Series) -> np.ndarray:
    """1 − value/value before; NaN for the first."""
    numbers = values.to_numpy(dtype=np.float64)
    out = np.full(numbers.size, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        out[1:] = 1.0 - numbers[1:] / numbers[:-1]
    return out


def _percent(share: float) -> str:
    """A share in whole percent, with its sign where it is a loss."""
    return f"{100 * share:.0f} %" if math.isfinite(share) else "–"
