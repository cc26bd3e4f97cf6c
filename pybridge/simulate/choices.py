"""How well scores choose among candidates, and how true the error is that they report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from pybridge._record import Record
from pybridge.errors import InputError
from pybridge.simulate.measures import (
    mean_of_known,
    mean_with_error,
    ratio_with_error,
    root_error,
)
from pybridge.simulate.repeated import RepeatedSampling


@dataclass(frozen=True, eq=False, repr=False)
class ScoreQuality(Record):
    """Scores against the truth over repeated samples.

    Mean squared errors are averages over the domains that DB-CV scored. S scores, C candidates.

    Attributes
    ----------
    scores, candidates : tuple of str
    true_mse, true_mse_error : numpy.ndarray
        Shape (C,), and Monte Carlo errors.
    ratio, ratio_error : numpy.ndarray
        Shape (S, C), mean score over true MSE.
    values, errors : mapping of str to numpy.ndarray
        Shape (S,): ``best_chosen`` (how often the candidate of the smallest true MSE was chosen),
        ``within_tenth`` (or one whose MSE is at most a tenth larger), ``chosen_mse`` (the chosen
        candidates' true MSE over the best one's), ``rank_correlation`` (Spearman, with the true
        ranking), ``reported`` (the chosen candidate's score over its true MSE), ``reported_rmse``
        (the same for root mean squares, negative scores counting 0), ``negative`` (how often the
        chosen candidate's score is negative).
    n_repetitions : int
    """

    scores: tuple[str, ...]
    candidates: tuple[str, ...]
    true_mse: np.ndarray
    true_mse_error: np.ndarray
    ratio: np.ndarray
    ratio_error: np.ndarray
    values: Mapping[str, np.ndarray]
    errors: Mapping[str, np.ndarray]
    n_repetitions: int

    def to_frame(self) -> pd.DataFrame:
        """One row a score."""
        table: dict[str, object] = {"score": self.scores}
        for name in self.values:
            table[name] = self.values[name]
            table[f"{name}_error"] = self.errors[name]
        return pd.DataFrame(table)

    def ratios(self) -> pd.DataFrame:
        """One row a candidate: true RMSE, then every score's ratio to the true MSE with errors."""
        table: dict[str, object] = {
            "candidate": self.candidates,
            "true_rmse": np.sqrt(self.true_mse),
            "true_rmse_error": root_error(self.true_mse, self.true_mse_error),
        }
        for i, name in enumerate(self.scores):
            table[name] = self.ratio[i]
            table[f"{name}_error"] = self.ratio_error[i]
        return pd.DataFrame(table)

    def summary(self) -> str:
        """Both tables without their errors."""
        first, second = self.to_frame(), self.ratios()
        kept = [[c for c in t.columns if not c.endswith("_error")] for t in (first, second)]
        return (
            f"{self.n_repetitions} samples\n{first[kept[0]].to_string(index=False)}\n"
            f"mean score over true MSE\n{second[kept[1]].to_string(index=False)}"
        )


def score_quality(
    sampling: RepeatedSampling, candidates: Sequence[str], scores: Mapping[str, np.ndarray]
) -> ScoreQuality:
    """Compare scores with the truth.

    Parameters
    ----------
    sampling : RepeatedSampling
        Of `SelectCandidates`: ``estimate`` (R, C, m) and ``scored`` (R, m).
    candidates : sequence of str
        C names.
    scores : mapping of str to numpy.ndarray
        Shape (R, C) each, such as ``sampling["score_db_cv"]``; smaller is better.

    Raises
    ------
    InputError
        Scores of another shape.
    """
    names = tuple(candidates)
    square = (sampling["estimate"] - sampling.truth) ** 2
    error = mean_of_known(np.where(sampling["scored"][:, None, :], square, np.nan))
    wrong = [name for name, rows in scores.items() if np.shape(rows) != error.shape]
    if wrong or len(names) != error.shape[1]:
        raise InputError(
            "a score needs a number for every candidate in every sample",
            code="wrong_length",
            field="scores" if wrong else "candidates",
            expected=f"shape {error.shape}",
            got=f"{wrong[0]}: {np.shape(scores[wrong[0]])}" if wrong else f"{len(names)} names",
        )
    true, true_error = mean_with_error(error)
    pairs = [ratio_with_error(np.asarray(rows), error) for rows in scores.values()]
    each = [chosen_measures(score=np.asarray(rows), true=true) for rows in scores.values()]
    parts: dict[str, list[tuple[float, float]]] = {}
    for rows in each:
        ratio = ratio_with_error(rows["reported"], rows["its_true"])
        parts.setdefault("reported", []).append((float(ratio[0]), float(ratio[1])))
        ratio = ratio_with_error(
            np.sqrt(np.maximum(rows["reported"], 0.0)), np.sqrt(rows["its_true"])
        )
        parts.setdefault("reported_rmse", []).append((float(ratio[0]), float(ratio[1])))
        for key in ("best_chosen", "within_tenth", "chosen_mse", "rank_correlation", "negative"):
            mean, spread = mean_with_error(rows[key])
            parts.setdefault(key, []).append((float(mean), float(spread)))
    return ScoreQuality(
        scores=tuple(scores),
        candidates=names,
        true_mse=true,
        true_mse_error=true_error,
        ratio=np.stack([pair[0] for pair in pairs]),
        ratio_error=np.stack([pair[1] for pair in pairs]),
        values={key: np.array([value for value, _ in rows]) for key, rows in parts.items()},
        errors={key: np.array([value for _, value in rows]) for key, rows in parts.items()},
        n_repetitions=len(error),
    )


def chosen_measures(*, score: np.ndarray, true: np.ndarray) -> dict[str, np.ndarray]:
    """What one score did in every sample, (R,) each.

    Parameters
    ----------
    score : numpy.ndarray
        Shape (R, C), NaN where a candidate was not scored.
    true : numpy.ndarray
        Shape (C,), mean squared errors over all samples.
    """
    filled = np.where(np.isfinite(score), score, np.inf)
    chosen = filled.argmin(axis=1)
    its_true = true[chosen]
    reported = np.take_along_axis(score, chosen[:, None], axis=1)[:, 0]
    best = np.nanmin(true)
    return {
        "reported": reported,
        "its_true": its_true,
        "best_chosen": (its_true == best).astype(np.float64),
        "within_tenth": (its_true <= 1.1 * best).astype(np.float64),
        "chosen_mse": np.where(its_true == best, 1.0, its_true / (best if best > 0 else np.nan)),
        "rank_correlation": rank_correlation(filled, true),
        "negative": (reported < 0).astype(np.float64),
    }


def rank_correlation(rows: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Spearman's correlation of every row (R, C) with (C,) numbers; ties in their order."""
    a = np.argsort(np.argsort(rows, axis=1, kind="stable"), axis=1).astype(np.float64)
    b = np.argsort(np.argsort(other, kind="stable")).astype(np.float64)
    a, b = a - a.mean(axis=1, keepdims=True), b - b.mean()
    scale = np.sqrt((a**2).sum(axis=1) * (b**2).sum())
    return np.asarray((a @ b) / np.where(scale > 0, scale, np.nan))
