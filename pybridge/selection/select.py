"""Choosing among estimators with the one sample at hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pybridge._options import check_level
from pybridge.design.folds import Folds, make_folds
from pybridge.design.survey_design import SurveyDesign
from pybridge.direct.inputs import DomainSample, domain_sample, need_design
from pybridge.direct.linear import DirectRequest
from pybridge.selection.averages import averaged
from pybridge.selection.candidates import Candidate, checked_candidates
from pybridge.selection.fits import CandidateFit, replicates_of
from pybridge.selection.options import SelectionOptions
from pybridge.selection.record import Selection
from pybridge.selection.reference import find_reference
from pybridge.selection.refits import fit_candidates
from pybridge.selection.scoring import score_candidates
from pybridge.selection.splits import split_scores
from pybridge.tables.population import Population


def select(
    design: SurveyDesign,
    population: Population,
    candidates: Sequence[Candidate],
    *,
    outcome: str = "y",
    domain: str | None = None,
    score: str = "db-cv",
    reference: str = "auto",
    covariance: str = "jackknife",
    size_corrected: bool = False,
    split: float = 0.5,
    repetitions: int = 1,
    folds: int | Any = 5,
    level: float = 0.95,
    seed: int = 1,
) -> Selection:
    """Score candidates by cross-validation and choose the one with the smallest error.

    Parameters
    ----------
    design, population, outcome, domain
        As in `horvitz_thompson`.
    candidates : sequence of Candidate
        From `candidate` or `standard_candidates`.
    score : {"db-cv", "naive", "adjusted", "sure", "split", "all"}
        The score that chooses; the others are in the table too (``split`` only when asked for, by
        name or with "all", which chooses by DB-CV).
    reference : {"auto", "ht", "hajek", "ppi", "greg"}
        Direct estimator that DB-CV and SURE refer to; "auto" is the one with the smallest sum of
        variances. Naive CV and Dong–Li keep HT, as published.
    covariance : {"jackknife", "linearised"}
        How Cov(R, M) is estimated.
    size_corrected : bool
        Scale DB-CV down for the smaller training sets: by (K−1)/K, and where much of a stratum
        was sampled by (K−1)φ/((K−1)φ + 1), φ its finite population correction.
    split : float
        Part of the sample to fit on, for ``score="split"``.
    repetitions : int
        Repeated K-folds to average over.
    folds : int or array of shape (n,)
        K, or the fold of every unit.
    level : float
        Confidence level of the candidates' intervals.
    seed : int

    Returns
    -------
    Selection

    Raises
    ------
    InputError
        Bad options, no domain that every candidate could be scored on, and all that the direct
        estimators raise.

    References
    ----------
    The bias-corrected score is E[(M − R)²] = MSE + Var(R) − 2 Cov(R, M), solved for MSE.
    """
    options = SelectionOptions(
        score=score,
        reference=reference,
        covariance=covariance,
        size_corrected=size_corrected,
        split=split,
        repetitions=repetitions,
        seed=seed,
    )
    check_level(level)
    found = run_selection(
        design,
        population,
        checked_candidates(candidates),
        options,
        outcome=outcome,
        domain=domain,
        folds=folds,
        level=level,
    )
    return found.selection


@dataclass(frozen=True, eq=False)
class SelectionRun:
    """A selection with the fits and the sample that it was made from."""

    selection: Selection
    fits: tuple[CandidateFit, ...]
    sample: DomainSample
    folds: Folds
    reference_request: DirectRequest


def run_selection(
    design: SurveyDesign,
    population: Population,
    candidates: tuple[Candidate, ...],
    options: SelectionOptions,
    *,
    outcome: str,
    domain: str | None,
    folds: int | Any,
    level: float,
    announce: Callable[[str], None] | None = None,
) -> SelectionRun:
    """Fit and score; the first repetition's fits are kept."""
    need_design(design, population)
    tables: list[dict[str, np.ndarray]] = []
    first: SelectionRun | None = None
    for repetition in range(options.repetitions):
        seed = options.seed + repetition
        split = make_folds(design, folds, seed=seed)
        sample = domain_sample(design, population, outcome=outcome, domain=domain, folds=split)
        replicates = replicates_of(sample, level=level)
        fits = fit_candidates(candidates, replicates, design=design, folds=split, announce=announce)
        chosen = find_reference(options.reference, candidates, replicates)
        scores = score_candidates(fits, replicates, chosen, options)
        if options.score in ("split", "all"):
            scores["split"] = split_scores(
                design,
                population,
                candidates,
                share=options.split,
                seed=seed,
                outcome=outcome,
                domain=domain,
                level=level,
            )
        tables.append(scores)
        if first is None:
            selection = averaged(candidates, fits, scores, replicates, chosen, options, split)
            first = SelectionRun(selection, fits, sample, split, chosen.chosen.request)
    assert first is not None
    if options.repetitions > 1:
        mean = {key: np.mean([table[key] for table in tables], axis=0) for key in tables[0]}
        selection = averaged(candidates, first.fits, mean, replicates, chosen, options, first.folds)
        first = replace(first, selection=selection)
    return first
