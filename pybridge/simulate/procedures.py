"""Procedures for `repeated_sampling`: all candidates on a sample, without and with their choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from pybridge._options import check_level
from pybridge.design.folds import single_fold
from pybridge.design.survey_design import SurveyDesign
from pybridge.design.variance import DomainMoments
from pybridge.direct.inputs import domain_sample
from pybridge.selection.candidates import Candidate, checked_candidates
from pybridge.selection.fits import CandidateFit, Replicates
from pybridge.selection.options import SelectionOptions
from pybridge.selection.record import Selection
from pybridge.selection.refits import fit_candidates
from pybridge.selection.select import run_selection
from pybridge.simulate.repeated import Draw
from pybridge.tables.population import Population


def estimate_candidates(
    design: SurveyDesign,
    population: Population,
    candidates: Sequence[Candidate],
    *,
    outcome: str = "y",
    domain: str | None = None,
    level: float = 0.95,
    seed: int = 1,
) -> tuple[CandidateFit, ...]:
    """Every candidate on the whole sample only: what `select` fits, without its folds.

    Parameters
    ----------
    design, population, outcome, domain
        As in `pybridge.horvitz_thompson`.
    candidates : sequence of Candidate
    level : float
        Of the intervals.
    seed : int
        For engines that draw.

    Returns
    -------
    tuple of CandidateFit
        In the order of the candidates; one that fails says so in ``message``.
    """
    check_level(level)
    folds = single_fold(design)
    sample = domain_sample(design, population, outcome=outcome, domain=domain, folds=folds)
    nothing = _no_replicates(sample.whole)
    replicates = Replicates(sample, nothing, nothing, (), level, seed)
    return fit_candidates(checked_candidates(candidates), replicates, design=design, folds=folds)


def _no_replicates(moments: DomainMoments) -> DomainMoments:
    per_replicate = [field.name for field in fields(moments)]
    kept = [name for name in per_replicate if name not in ("shift", "fourth", "tails")]
    return replace(moments, **{name: getattr(moments, name)[:0] for name in kept})


@dataclass(frozen=True)
class EstimateCandidates:
    """The procedure that estimates: ``estimate``, ``lower``, ``upper``, ``mse`` (C, m) a sample.

    Beside them ``n_labelled`` (m,) and ``converged`` (C,), whether there was a fit.

    Attributes
    ----------
    candidates : tuple of Candidate
    level : float
    """

    candidates: tuple[Candidate, ...]
    level: float = 0.95

    def __call__(self, draw: Draw) -> dict[str, Any]:
        fits = estimate_candidates(
            draw.design,
            draw.known,
            self.candidates,
            outcome=draw.outcome,
            domain=draw.domain,
            level=self.level,
            seed=draw.seed,
        )
        return estimates_of(fits, draw)

    @property
    def names(self) -> tuple[str, ...]:
        """The candidates' names."""
        return tuple(item.name for item in self.candidates)


@dataclass(frozen=True)
class SelectCandidates:
    """The procedure that estimates and chooses: what `EstimateCandidates` returns, and the scores.

    ``score_<name>`` (C,) for every score of `pybridge.select` with ``score="all"``, the splits
    among them; ``scored`` (m,), the domains that DB-CV averaged over; ``reference``, its name;
    ``undecided``, the part of the pairs of candidates that Dong and Li's bounds leave open.

    Attributes
    ----------
    candidates : tuple of Candidate
    reference, covariance, folds, level
        As in `pybridge.select`.
    splits : bool
        Whether to score hold-out splits too, which costs their fits.
    """

    candidates: tuple[Candidate, ...]
    reference: str = "auto"
    covariance: str = "jackknife"
    folds: int | None = None
    level: float = 0.95
    splits: bool = True

    def __call__(self, draw: Draw) -> dict[str, Any]:
        options = SelectionOptions(
            score="all" if self.splits else "db-cv",
            reference=self.reference,
            covariance=self.covariance,
            seed=draw.seed,
        )
        run = run_selection(
            draw.design,
            draw.known,
            checked_candidates(self.candidates),
            options,
            outcome=draw.outcome,
            domain=draw.domain,
            folds=self.split(draw),
            level=self.level,
        )
        found = run.selection
        out = estimates_of(run.fits, draw)
        out.update({f"score_{key}": np.array(value) for key, value in found.scores.items()})
        out["scored"] = np.isfinite(found.domain_scores["db_cv"]).any(axis=0)
        out["reference"] = found.reference
        out["undecided"] = _undecided(found)
        return out

    def split(self, draw: Draw) -> int | np.ndarray | None:
        """The folds, for `pybridge.select`; a subclass may give every unit its own."""
        return self.folds

    @property
    def names(self) -> tuple[str, ...]:
        """The candidates' names."""
        return tuple(item.name for item in self.candidates)


def _undecided(found: Selection) -> float:
    pairs = found.pairwise["better"]
    return float((pairs == "undecided").mean()) if len(pairs) else float("nan")


def estimates_of(fits: Sequence[CandidateFit], draw: Draw) -> dict[str, Any]:
    """The fits of one sample as arrays that stack."""
    out: dict[str, Any] = {
        name: np.stack([getattr(fit, name) for fit in fits])
        for name in ("estimate", "lower", "upper", "mse")
    }
    out["converged"] = np.array([fit.fit_status != "failed" for fit in fits])
    codes = {label: i for i, label in enumerate(draw.known.domains.tolist())}
    rows = [codes[label] for label in draw.design.frame[draw.domain].tolist()]
    out["n_labelled"] = np.bincount(rows, minlength=draw.known.n_domains)
    return out
