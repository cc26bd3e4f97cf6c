"""The record of a selection: every candidate's scores, and which one was chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import listed
from pybridge._options import check_level
from pybridge._record import Record
from pybridge.selection.auxiliary import AuxiliaryRelations
from pybridge.selection.pairs import may_be_best

SCORE_NAMES = {
    "db_cv": "DB-CV",
    "db_cv_ht": "DB-CV with HT as reference",
    "naive": "naive CV",
    "adjusted": "Dong–Li adjusted CV",
    "sure": "SURE",
    "split": "split",
}
# Scores that are made with a direct estimator as reference.
REFERRED = ("db_cv", "sure")


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
    level : float
        Confidence level of the comparisons.
    by_reference : mapping of str to mapping
        Reference -> "db_cv" and "sure" -> mean and standard error, shape (C, 2).
    pair_difference, pair_bound : numpy.ndarray
        Shape (C, C): Dong and Li's comparison of every pair, see `pairwise`.
    auxiliary : AuxiliaryRelations or None
        How each set of auxiliary variables is related to the outcome.
    default : str
        The candidate that is named because no score could choose; "" where one could.
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
    level: float = 0.95
    by_reference: Mapping[str, Mapping[str, np.ndarray]] = field(default_factory=dict)
    pair_difference: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    pair_bound: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    auxiliary: AuxiliaryRelations | None = None
    default: str = ""

    @property
    def selected(self) -> str:
        """The candidate with the smallest score; the default where no score could choose."""
        if self.default:
            return self.default
        return self.candidates[int(np.nanargmin(self.scores[self.score]))]

    @property
    def reported_rmse(self) -> np.ndarray:
        """√score, shape (C,); NaN where the score is negative."""
        score = np.asarray(self.scores[self.score])
        return np.sqrt(np.where(score >= 0, score, np.nan))

    @property
    def status(self) -> np.ndarray:
        """Shape (C,), "ok", "negative_score", "not_scored" or "failed"."""
        score = np.asarray(self.scores[self.score])
        failed = np.isin(np.asarray(self.candidates, dtype=object), list(self.failed))
        nothing = np.where(failed, "failed", "not_scored")
        return np.where(np.isnan(score), nothing, np.where(score < 0, "negative_score", "ok"))

    @property
    def per_domain(self) -> pd.DataFrame:
        """One row a candidate × domain, one column a score."""
        names, m = self.candidates, len(self.domains)
        table = {"candidate": np.repeat(names, m), "domain": np.tile(self.domains, len(names))}
        table.update({key: np.asarray(v).ravel() for key, v in self.domain_scores.items()})
        return pd.DataFrame(table)

    @property
    def pairwise(self) -> pd.DataFrame:
        """Dong and Li's comparison, one row a pair of candidates.

        ``difference`` of the adjusted scores (candidate less other), ``bound`` at the record's
        ``level``, and ``better``: the one with the smaller score where the difference lies beyond
        the bound, else "undecided"; None where one of the two has no score.
        """
        first, second = np.triu_indices(len(self.pair_difference), 1)
        gap = np.asarray(self.pair_difference)[first, second]
        bound = np.asarray(self.pair_bound)[first, second]
        names = np.array(self.candidates, dtype=object)
        better = np.where(gap < 0, names[first], names[second]).astype(object)
        better[np.abs(gap) <= bound] = "undecided"
        better[~(np.isfinite(gap) & np.isfinite(bound))] = None
        return pd.DataFrame(
            {
                "candidate": names[first],
                "other": names[second],
                "difference": gap,
                "bound": bound,
                "better": better,
            }
        )

    @property
    def references(self) -> pd.DataFrame:
        """DB-CV and SURE of every candidate against every reference that was looked at."""
        parts = []
        for name, tables in self.by_reference.items():
            part: dict[str, object] = {"reference": name, "candidate": self.candidates}
            for key in REFERRED:
                values = np.asarray(tables[key])
                part[key], part[f"{key}_standard_error"] = values[:, 0], values[:, 1]
            parts.append(pd.DataFrame(part))
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()

    def indistinguishable(self, level: float | None = None) -> tuple[str, ...]:
        """Candidates that cannot be told from the best at a confidence level.

        The set holds the truly best of the candidates with probability ``level`` (the record's by
        default): every candidate is compared with all others at once, with the joint distribution
        of their paired differences over domains.
        """
        inside = may_be_best(
            np.asarray(self.domain_scores[self.score]),
            level=check_level(self.level if level is None else level),
        )
        return tuple(
            name for name, near in zip(self.candidates, inside) if near or name == self.selected
        )

    def plot(self, ax: Any = None, *, true_rmse: Any = None) -> Any:
        """Every candidate's score with its error, against naive CV; returns the matplotlib Axes.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            To draw on; a new figure by default.
        true_rmse : array of shape (C,), optional
            True RMSE of the candidates, where the truth is known: it stands beside what was
            reported.
        """
        from pybridge.report.selection_figures import reported_against_true_figure, scores_figure

        if true_rmse is None:
            return scores_figure(self, ax)
        return reported_against_true_figure(self, true_rmse, ax)

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
            "may_be_best": np.isin(self.candidates, self.indistinguishable()),
            "n_domains_scored": self.n_domains_scored[self.score],
            "status": self.status,
        }
        for key in self.scores:
            table[key] = self.scores[key]
            table[f"{key}_standard_error"] = self.standard_errors[key]
        return pd.DataFrame(table).iloc[order].reset_index(drop=True)

    def summary(self) -> str:
        """The choice, why, and the table."""
        from pybridge.selection.words import selection_text

        return selection_text(self)

    def verdicts(self) -> str:
        """Dong and Li's comparison in one line: how many pairs it decides."""
        table = self.pairwise
        table = table[table["better"].notna()]
        undecided = int((table["better"] == "undecided").sum())
        decided = table[table["better"] != "undecided"]
        text = f"Dong–Li: {undecided} of {len(table)} pairs undecided"
        if len(decided):
            wins = [
                f"{row.better} over {row.other if row.better == row.candidate else row.candidate}"
                for row in decided.itertuples(index=False)
            ]
            text += f"; {listed(wins, most=6)}"
        return text
