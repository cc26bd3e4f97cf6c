"""Choosing among estimators with the one sample at hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from pybridge._options import check_level
from pybridge.design.folds import Folds
from pybridge.design.survey_design import SurveyDesign
from pybridge.direct.inputs import DomainSample, domain_sample, need_design
from pybridge.direct.linear import DirectRequest
from pybridge.selection.auxiliary import (
    AuxiliaryRelations,
    Sets,
    auxiliary_relations,
    read_sets,
    sets_of,
    with_sets,
)
from pybridge.selection.averages import Scored, averaged, mean_scores
from pybridge.selection.candidates import Candidate, checked_candidates
from pybridge.selection.fits import CandidateFit, replicates_of
from pybridge.selection.options import SelectionOptions
from pybridge.selection.record import Selection
from pybridge.selection.reference import Reference, find_reference
from pybridge.selection.refits import Resample, fit_resamples
from pybridge.selection.scoring import Scores, score_candidates, split_score
from pybridge.selection.splits import Split, need_fillable_folds, splits_of
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
    auxiliary_sets: Sets | None = None,
    folds: int | Any | None = None,
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
        name or with "all", which chooses by DB-CV and has a 50/50 and an 80/20 split).
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
        Repeated K-folds to average over, at most 100000.
    auxiliary_sets : mapping of str to list of str, optional
        Sets of auxiliary variables to compare: every candidate that uses auxiliary variables is
        taken once with each set in their place, as "GREG [name]". The result's ``auxiliary`` holds
        each one's slope, unit-level and domain-level correlation.
    folds : int or array of shape (n,), optional
        K, or the fold of every unit; some domain must have labels in K primary units (units where
        there are no clusters). By default 5 (fewer only where the sample has fewer primary units),
        also where no domain has five labels: DB-CV and SURE need no label in every fold, naive CV
        and Dong–Li then do not exist, and ``notes`` of the result say so.
    level : float
        Confidence level of the candidates' intervals and of the comparisons.
    seed : int

    Returns
    -------
    Selection

    Raises
    ------
    InputError
        Bad options, more folds than any domain has labels (primary units, where there are
        clusters), no domain that every candidate could be scored on, and all that the direct
        estimators raise.
    EngineUnavailable
        A candidate's engine is not there.

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
    chosen, sets = checked_candidates(candidates), read_sets(auxiliary_sets)
    if auxiliary_sets is not None:
        chosen = checked_candidates(with_sets(chosen, sets))
    found = run_selection(
        design,
        population,
        chosen,
        options,
        outcome=outcome,
        domain=domain,
        folds=folds,
        level=level,
        sets=sets,
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
    folds: int | Any | None,
    level: float,
    sets: Mapping[str, tuple[str, ...]] | None = None,
    announce: Callable[[str], None] | None = None,
    may_default: bool = False,
) -> SelectionRun:
    """Fit all candidates on all splits, then score; the first repetition's fits are kept.

    ``may_default`` names a candidate where no domain can be scored, instead of raising.
    """
    need_design(design, population)
    if isinstance(folds, (int, np.integer)) and folds > design.n_psu.sum():
        # More than can be dealt out at all; what some domain can fill is fewer still.
        whole = domain_sample(design, population, outcome=outcome, domain=domain)
        need_fillable_folds(int(folds), whole)
    splits = splits_of(design, options, folds)
    resamples: list[Resample] = []
    for split in splits:
        sample = domain_sample(
            design, population, outcome=outcome, domain=domain, folds=split.folds
        )
        if folds is not None and not split.score:
            need_fillable_folds(split.folds.n_folds, sample)
        replicates = replicates_of(sample, level=level, seed=options.seed, without=split.without)
        resamples.append(Resample(replicates, split.folds))
    fits = fit_resamples(candidates, resamples, design=design, announce=announce)
    reference, scores = _scores(candidates, splits, resamples, fits, options, level)
    first = resamples[0].replicates
    found = Scored(
        candidates=candidates,
        fits=fits[0],
        scores=scores,
        replicates=first,
        reference=reference,
        options=options,
        folds=splits[0].folds,
        level=level,
        auxiliary=_relations(first.sample, sets or sets_of(candidates), reference),
    )
    selection = averaged(found, may_default=may_default)
    return SelectionRun(selection, fits[0], first.sample, splits[0].folds, reference.chosen.request)


def _scores(
    candidates: tuple[Candidate, ...],
    splits: Sequence[Split],
    resamples: Sequence[Resample],
    fits: Sequence[tuple[CandidateFit, ...]],
    options: SelectionOptions,
    level: float,
) -> tuple[Reference, Scores]:
    """All scores, averaged over the repetitions, and the first repetition's reference."""
    z = NormalDist().inv_cdf(0.5 + level / 2.0)
    references: list[Reference] = []
    parts: list[Scores] = []
    extra: dict[str, list[np.ndarray]] = {}
    for split, each, own in zip(splits, resamples, fits):
        if split.score:
            extra.setdefault(split.score, []).append(split_score(own, each.replicates))
            continue
        references.append(find_reference(options.reference, candidates, each.replicates))
        parts.append(score_candidates(own, each.replicates, references[-1], options, z=z))
    with_splits = [
        Scores(
            {**part.tables, **{key: rows[k] for key, rows in extra.items()}},
            part.by_reference,
            part.pairs,
        )
        for k, part in enumerate(parts)
    ]
    return references[0], mean_scores(with_splits)


def _relations(
    sample: DomainSample, sets: Mapping[str, tuple[str, ...]], reference: Reference
) -> AuxiliaryRelations | None:
    base = reference.chosen
    return auxiliary_relations(
        sample, sets, direct=base.name, estimate=base.whole, variance=base.variance
    )
