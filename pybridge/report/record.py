"""The record of an evaluation."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pybridge._files import write_text
from pybridge._checks import listed
from pybridge._record import Record
from pybridge.direct.aggregates import AggregateEstimates
from pybridge.direct.inputs import DomainSample
from pybridge.errors import InputError
from pybridge.provenance import Provenance
from pybridge.selection.fits import CandidateFit
from pybridge.selection.record import Selection
from pybridge.tables.population import Population


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Record):
    """Estimates of every candidate, the selection, and where all of it came from.

    Attributes
    ----------
    sample : DomainSample
        Cells and population; no units.
    fits : tuple of CandidateFit
        Every candidate on the whole sample and in every fold.
    selection : Selection
    aggregates : mapping of str to AggregateEstimates
        "all" and every level of the taxonomy, by the direct estimator named ``aggregate_by``,
        with design-based intervals from the full covariance.
    aggregate_by : str
    assumptions : tuple of str
        What was assumed because it was not said, first of all the weights.
    level : float
    provenance : Provenance
    """

    sample: DomainSample
    fits: tuple[CandidateFit, ...]
    selection: Selection
    aggregates: Mapping[str, AggregateEstimates]
    aggregate_by: str
    assumptions: tuple[str, ...]
    level: float
    provenance: Provenance

    @property
    def population(self) -> Population:
        """The population that was estimated."""
        return self.sample.population

    @property
    def selected(self) -> CandidateFit:
        """The chosen candidate's fit."""
        return self.fit(self.selection.selected)

    def fit(self, name: str) -> CandidateFit:
        """A candidate's fit by its name."""
        for item in self.fits:
            if item.candidate.name == name:
                return item
        raise InputError(
            f"there is no candidate {name!r}",
            code="unknown_candidate",
            field="name",
            expected=listed((f.candidate.name for f in self.fits), most=12),
            got=name,
        )

    def to_frame(self) -> pd.DataFrame:
        """One row a candidate × domain: estimate, interval, status."""
        return pd.concat([self._rows(fit) for fit in self.fits], ignore_index=True)

    def _rows(self, fit: CandidateFit) -> pd.DataFrame:
        population = self.population
        error = np.sqrt(np.where(fit.mse >= 0, fit.mse, np.nan))
        key = {"candidate": fit.candidate.name, "domain": population.domains}
        own: dict[str, Any] = dict(
            n_labelled=self.sample.whole.n[0].astype(np.int64),
            size=population.size,
            estimate=fit.estimate,
            standard_error=error,
            cv=error / np.abs(np.where(fit.estimate == 0, np.nan, fit.estimate)),
            lower=fit.lower,
            upper=fit.upper,
            level=self.level,
            shrinkage=fit.shrinkage,
            status=fit.status,
            selected=fit.candidate.name == self.selection.selected,
        )
        groups = {
            f"taxonomy_{level}" if level in {*key, *own} else level: population.groups[level]
            for level in population.taxonomy
        }
        return pd.DataFrame({**key, **groups, **own})

    def summary(self) -> str:
        """The page that a person reads first."""
        from pybridge.report.text import evaluation_text

        return evaluation_text(self)

    def plot(self, ax: Any = None) -> Any:
        """Domain estimates with intervals, and reported errors of all candidates.

        ``ax`` is two matplotlib Axes to draw on, by default those of a new figure; returns them.
        """
        from pybridge.report.figures import evaluation_figure

        return evaluation_figure(self, ax)

    def true_rmse(self, truth: Any) -> np.ndarray:
        """True RMSE of every candidate over the domains that were scored, shape (C,).

        Parameters
        ----------
        truth : array of shape (m,), or Series labelled by domains
            The true domain means, in the order of ``population.domains``; NaN where not known.

        Raises
        ------
        InputError
            Another number of means than of domains, or labels that are not there.
        """
        means = self._in_order(truth)
        scored = np.isfinite(self.selection.domain_scores[self.selection.score]).any(axis=0)
        kept = np.isfinite(means) & (scored if scored.any() else True)
        error = np.stack([(fit.estimate - means) ** 2 for fit in self.fits])[:, kept]
        count = np.isfinite(error).sum(axis=1)
        total = np.where(np.isfinite(error), error, 0.0).sum(axis=1)
        return np.sqrt(np.where(count > 0, total / np.maximum(count, 1), np.nan))

    def _in_order(self, truth: Any) -> np.ndarray:
        domains = self.population.domains
        if isinstance(truth, pd.Series) and not isinstance(truth.index, pd.RangeIndex):
            truth = truth.reindex(domains) if truth.index.is_unique else None
        try:
            means = np.asarray(truth, dtype=np.float64)
        except (TypeError, ValueError):  # text, or rows of different lengths
            means = np.empty(0)
        if means.shape != domains.shape or not np.isfinite(means).any():
            raise InputError(
                "the truth needs a mean for every domain",
                code="wrong_length",
                field="truth",
                expected=f"{len(domains)} numbers, or a Series labelled by domains",
                got=f"shape {means.shape}, {int(np.isfinite(means).sum())} of them known",
            )
        return means

    def plot_truth(self, truth: Any, ax: Any = None) -> Any:
        """Reported error of every candidate beside its true one, where the truth is known.

        ``truth`` is as in `true_rmse`. Returns the matplotlib Axes.
        """
        from pybridge.report.figures import reported_against_true_figure

        return reported_against_true_figure(self.selection, self.true_rmse(truth), ax)

    def to_html(self, path: str | os.PathLike[str]) -> Path:
        """Write the whole report as one HTML page, figure included."""
        from pybridge.report.page import evaluation_page

        return write_text(path, evaluation_page(self))

    def write(self, folder: str | os.PathLike[str]) -> dict[str, Path]:
        """Write estimates.csv, selection.csv, provenance.json, report.html and figure.png.

        The figure, and the page that holds it, are left out where matplotlib is missing.
        """
        from pybridge.report.files import write_evaluation

        return write_evaluation(self, folder)
