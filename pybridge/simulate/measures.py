"""How good estimates and intervals are over repeated samples, each with its Monte Carlo error.

Notation: R repetitions, C estimators, m domains. Averages run over domains first, then over
repetitions; a measure's error is the standard deviation of the repetitions' averages over √R.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from pybridge._options import check_level
from pybridge._record import Record
from pybridge.errors import InputError
from pybridge.simulate.repeated import RepeatedSampling

QUARTERS = 4


@dataclass(frozen=True, eq=False, repr=False)
class Accuracy(Record):
    """Measures of every estimator.

    Attributes
    ----------
    candidates : tuple of str
        C names.
    values, errors : mapping of str to numpy.ndarray
        Shape (C,): ``rmse``, ``bias``, ``coverage``, ``width``, ``width_q1`` to ``width_q4`` (mean
        widths in the quarters of the domains by size, smallest first), ``interval_score``,
        ``missing`` (the part of estimates that do not exist), and their Monte Carlo errors.
    level : float
    n_repetitions, n_domains : int
    """

    candidates: tuple[str, ...]
    values: Mapping[str, np.ndarray]
    errors: Mapping[str, np.ndarray]
    level: float
    n_repetitions: int
    n_domains: int

    def to_frame(self) -> pd.DataFrame:
        """One row an estimator; a column ``<measure>_error`` beside every measure."""
        table: dict[str, object] = {"candidate": self.candidates}
        for name in self.values:
            table[name] = self.values[name]
            table[f"{name}_error"] = self.errors[name]
        return pd.DataFrame(table)

    def summary(self) -> str:
        """The main measures, with Monte Carlo errors in brackets."""
        shown = ("rmse", "coverage", "width", "width_q1", "width_q4", "interval_score")
        frame = pd.DataFrame({"candidate": self.candidates})
        for name in shown:
            pairs = zip(self.values[name], self.errors[name])
            frame[name] = [f"{value:.4g} ({error:.1g})" for value, error in pairs]
        head = f"{self.n_repetitions} samples, {self.n_domains} domains, level {self.level:g}"
        return f"{head} (Monte Carlo errors in brackets)\n{frame.to_string(index=False)}"


def accuracy(
    sampling: RepeatedSampling,
    candidates: Sequence[str],
    *,
    level: float = 0.95,
    domains: np.ndarray | None = None,
) -> Accuracy:
    """Measure what `repeated_sampling` collected under ``estimate``, ``lower`` and ``upper``.

    Parameters
    ----------
    sampling : RepeatedSampling
        Its values ``estimate``, ``lower``, ``upper`` have shape (R, C, m).
    candidates : sequence of str
        C names.
    level : float
        Of the intervals.
    domains : (m,) bool, optional
        The domains to average over; all by default.

    Raises
    ------
    InputError
        Names that are not as many as the estimators.
    """
    names = tuple(candidates)
    shape = sampling["estimate"].shape
    if len(shape) != 3 or shape[1] != len(names):
        raise InputError(
            "a name is needed for every estimator",
            code="wrong_length",
            field="candidates",
            expected=f"{shape[1] if len(shape) == 3 else 'C'} names, estimates of shape (R, C, m)",
            got=f"{len(names)} names, estimates of shape {shape}",
        )
    kept = np.ones(shape[2], dtype=bool) if domains is None else np.asarray(domains, dtype=bool)
    parts = {key: sampling[key][:, :, kept] for key in ("estimate", "lower", "upper")}
    each = repetition_measures(
        **parts, truth=sampling.truth[kept], size=sampling.size[kept], level=check_level(level)
    )
    values, errors = {}, {}
    for name, rows in each.items():
        values[name], errors[name] = mean_with_error(rows)
    # The root comes after the mean: a repetition's own RMSE would average to less.
    mse, spread = values.pop("mse"), errors.pop("mse")
    return Accuracy(
        candidates=names,
        values={"rmse": np.sqrt(mse), **values},
        errors={"rmse": root_error(mse, spread), **errors},
        level=level,
        n_repetitions=sampling.n_repetitions,
        n_domains=int(kept.sum()),
    )


def repetition_measures(
    *,
    estimate: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    truth: np.ndarray,
    size: np.ndarray,
    level: float,
) -> dict[str, np.ndarray]:
    """Averages over domains in every repetition, shape (R, C) each.

    Parameters
    ----------
    estimate, lower, upper : numpy.ndarray
        Shape (R, C, m), NaN where there is none.
    truth, size : numpy.ndarray
        Shape (m,).
    level : float
    """
    error, width = estimate - truth, upper - lower
    inside = np.where(np.isfinite(width), (lower <= truth) & (truth <= upper), np.nan)
    out = {
        "mse": mean_of_known(error**2),
        "bias": mean_of_known(error),
        "coverage": mean_of_known(inside),
        "width": mean_of_known(width),
        "interval_score": mean_of_known(
            interval_score(lower=lower, upper=upper, truth=truth, level=level)
        ),
        "missing": np.isnan(estimate).mean(axis=-1),
    }
    for q, group in enumerate(np.array_split(np.argsort(size, kind="stable"), QUARTERS)):
        out[f"width_q{q + 1}"] = mean_of_known(width[..., group])
    return out


def interval_score(
    *, lower: np.ndarray, upper: np.ndarray, truth: np.ndarray, level: float
) -> np.ndarray:
    """(u − l) + (2/a)(l − θ)⁺ + (2/a)(θ − u)⁺ with a = 1 − level; smaller is better.

    Source: Gneiting and Raftery (2007), equation 43.
    """
    rate = 2.0 / (1.0 - level)
    outside = np.maximum(lower - truth, 0.0) + np.maximum(truth - upper, 0.0)
    return np.asarray(upper - lower + rate * outside)


def mean_of_known(values: np.ndarray) -> np.ndarray:
    """Mean over the last axis of the values that are there, NaN where none is."""
    known = np.isfinite(values)
    count = known.sum(axis=-1)
    total = np.where(known, values, 0.0).sum(axis=-1)
    return np.asarray(total / np.where(count > 0, count, np.nan))


def mean_with_error(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean over repetitions (R, ...) and its Monte Carlo error; NaN for a single repetition."""
    turned = np.moveaxis(rows, 0, -1)
    mean = mean_of_known(turned)
    count = np.isfinite(turned).sum(axis=-1)
    square = mean_of_known((turned - mean[..., None]) ** 2)
    return mean, np.sqrt(square / np.where(count > 1, count - 1, np.nan))


def ratio_with_error(top: np.ndarray, bottom: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ratio of two means over repetitions (R, ...), and its error by linearisation."""
    above, _ = mean_with_error(top)
    below, _ = mean_with_error(bottom)
    ratio = above / np.where(below != 0, below, np.nan)
    _, error = mean_with_error(top - ratio * bottom)
    return ratio, error / np.where(below != 0, np.abs(below), np.nan)


def root_error(mean: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Error of the square root of a mean, by linearisation; NaN at 0."""
    return np.asarray(error / (2.0 * np.sqrt(np.where(mean > 0, mean, np.nan))))
