"""The record of a selection: every candidate's scores, and which one was chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from pybridge._checks import listed
from pybridge._record import Record

SCORE_NAMES = {
    "db_cv": "DB-CV",
    "db_cv_ht": "DB-CV with HT as reference",
    "naive": "naive CV",
    "adjusted": "Dong–Li adjusted CV",
    "sure": "SURE",
    "split": "split",
}


@dataclass(frozen=True, eq=False, repr=False)
class Selection(Record):
    """Candidates, their scores over domains, and the choice.

    Attributes
    ----------
    candidates : tuple of str
        C names, in the order given.
    score : str
        The score that chose, one of the keys of ``scores``.
    scores, standard_errors : mapping of str to numpy.ndarray
        Mean over scored domains and its standard error, shape (C,) each.
    domain_scores : mapping of str to numpy.ndarray
        Shape (C, m), NaN where a domain was not scored.
    n_domains_scored : mapping of str to int
        Domains that each score used, the same for all candidates.
    difference, difference_standard_error : numpy.ndarray
        Shape (C,), the score less the best one's, paired over domains.
    reference : str
        The direct estimator that DB-CV was referred to.
    reference_variances : mapping of str to float
        What the choice of the reference was made from: each one's sum of variances.
    domains : numpy.ndarray
        Shape (m,), labels.
    not_scored : mapping of str to tuple
        Reason -> domains that the score could not use.
    failed : mapping of str to str
        Candidates without a score, and why.
    n_folds, repetitions : int
    covariance : str
        "jackknife" or "linearised".
    size_corrected : bool
    notes : tuple of str
        What was done that a reader should know (strata pooled for the folds, …).
    """

    candidates: tuple[str, ...]
    score: str
    scores: Mapping[str, np.ndarray]
    standard_errors: Mapping[str, np.ndarray]
    domain_scores: Mapping[str, np.ndarray]
    n_domains_scored: Mapping[str, int]
    difference: np.ndarray
    difference_standard_error: np.ndarray
    reference: str
    reference_variances: Mapping[str, float]
    domains: np.ndarray
    not_scored: Mapping[str, tuple[str, ...]]
    failed: Mapping[str, str]
    n_folds: int
    repetitions: int
    covariance: str
    size_corrected: bool
    notes: tuple[str, ...] = ()

    @property
    def selected(self) -> str:
        """The candidate with the smallest score."""
        return self.candidates[int(np.nanargmin(self.scores[self.score]))]

    @property
    def reported_rmse(self) -> np.ndarray:
        """√score, shape (C,); NaN where the score is negative."""
        score = np.asarray(self.scores[self.score])
        return np.sqrt(np.where(score >= 0, score, np.nan))

    @property
    def status(self) -> np.ndarray:
        """Shape (C,), "ok", "negative_score" or "failed"."""
        score = np.asarray(self.scores[self.score])
        return np.where(np.isnan(score), "failed", np.where(score < 0, "negative_score", "ok"))

    @property
    def per_domain(self) -> pd.DataFrame:
        """One row a candidate × domain, one column a score."""
        names, m = self.candidates, len(self.domains)
        table = {"candidate": np.repeat(names, m), "domain": np.tile(self.domains, len(names))}
        table.update({key: np.asarray(v).ravel() for key, v in self.domain_scores.items()})
        return pd.DataFrame(table)

    def indistinguishable(self, z: float = 1.96) -> tuple[str, ...]:
        """Candidates whose paired difference to the best is within z standard errors of 0."""
        close = np.asarray(self.difference) <= z * np.asarray(self.difference_standard_error)
        return tuple(
            name for name, near in zip(self.candidates, close) if near or name == self.selected
        )

    def to_frame(self) -> pd.DataFrame:
        """One row a candidate, best first."""
        score = np.asarray(self.scores[self.score])
        order = np.argsort(np.where(np.isnan(score), np.inf, score), kind="stable")
        rank = np.full(len(order), np.nan)
        known = order[~np.isnan(score[order])]
        rank[known] = np.arange(1, len(known) + 1)
        table: dict[str, object] = {
            "candidate": self.candidates,
            "rank": rank,
            "score": score,
            "score_standard_error": self.standard_errors[self.score],
            "reported_rmse": self.reported_rmse,
            "difference_to_best": self.difference,
            "difference_standard_error": self.difference_standard_error,
            "n_domains_scored": self.n_domains_scored[self.score],
            "status": self.status,
        }
        for key in self.scores:
            table[key] = self.scores[key]
            table[f"{key}_standard_error"] = self.standard_errors[key]
        return pd.DataFrame(table).iloc[order].reset_index(drop=True)

    def summary(self) -> str:
        """The choice, why, and the table."""
        i = self.candidates.index(self.selected)
        lines = [
            f"selected: {self.selected} by {SCORE_NAMES[self.score]} "
            f"({self.n_folds} folds, reference {self.reference})"
        ]
        if np.isfinite(self.reported_rmse[i]):
            lines.append(f"reported RMSE over domains: {self.reported_rmse[i]:.4g}")
        else:
            lines.append(
                "its score is negative: the error is too small for these labels to measure"
            )
        ties = [name for name in self.indistinguishable() if name != self.selected]
        if ties:
            lines.append(f"not told apart from it at 95 %: {listed(ties, most=8)}")
        shown = self.to_frame()[
            ["candidate", "rank", "score", "score_standard_error", "reported_rmse", "status"]
        ]
        lines.append(shown.to_string(index=False))
        for reason, domains in self.not_scored.items():
            lines.append(f"not scored, {reason}: {len(domains)} domains ({listed(domains)})")
        for name, reason in self.failed.items():
            lines.append(f"{name} failed: {reason}")
        lines += self.notes
        return "\n".join(lines)
