"""Choosing among estimators with the one sample at hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pybridge._options import COVARIANCES, REFERENCES, SCORES, check_level, choose, whole_number
from pybridge.design.folds import Folds, make_folds
from pybridge.design.survey_design import SurveyDesign
from pybridge.direct.inputs import DomainSample, domain_sample
from pybridge.direct.linear import DirectRequest
from pybridge.errors import InputError
from pybridge.selection.candidates import Candidate, checked_candidates
from pybridge.selection.record import Selection
from pybridge.selection.reference import Reference, find_reference
from pybridge.selection.fits import CandidateFit, Replicates, replicates_of
from pybridge.selection.refits import fit_candidates
from pybridge.selection.scores import (
    adjusted_score,
    debiased_score,
    jackknife_covariance,
    mean_and_error,
    naive_score,
    size_factor,
    sure_score,
)
from pybridge.selection.splits import split_scores
from pybridge.tables.population import Population

_COLUMN = {"db-cv": "db_cv", "all": "db_cv"}


@dataclass(frozen=True)
class SelectionOptions:
    """How to score, checked."""

    score: str = "db-cv"
    reference: str = "auto"
    covariance: str = "jackknife"
    size_corrected: bool = False
    split: float = 0.5
    repetitions: int = 1
    seed: int = 1

    def __post_init__(self) -> None:
        choose("score", self.score, SCORES)
        choose("reference", self.reference, REFERENCES)
        choose("covariance", self.covariance, COVARIANCES)
        whole_number("repetitions", self.repetitions, least=1)
        whole_number("seed", self.seed, least=0)
        if not 0.0 < self.split < 1.0:
            raise InputError(
                "split is the part of the sample that candidates are fitted on",
                code="bad_split",
                field="split",
                expected="0 < split < 1",
                got=self.split,
            )


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
    tables: list[dict[str, np.ndarray]] = []
    first: SelectionRun | None = None
    for repetition in range(options.repetitions):
        split = make_folds(design, folds, seed=options.seed + repetition)
        sample = domain_sample(design, population, outcome=outcome, domain=domain, folds=split)
        replicates = replicates_of(sample, level=level)
        fits = fit_candidates(candidates, replicates, design=design, folds=split, announce=announce)
        chosen = find_reference(options.reference, candidates, replicates)
        scores = score_candidates(fits, replicates, chosen, options)
        if options.score in ("split", "all"):
            scores["split"] = split_scores(
                design, population, candidates, options, outcome=outcome, domain=domain, level=level
            )
        tables.append(scores)
        if first is None:
            selection = _selection(candidates, fits, scores, replicates, chosen, options, split)
            first = SelectionRun(selection, fits, sample, split, chosen.chosen.request)
    assert first is not None
    if options.repetitions > 1:
        mean = {key: np.mean([table[key] for table in tables], axis=0) for key in tables[0]}
        selection = _selection(
            candidates, first.fits, mean, replicates, chosen, options, first.folds
        )
        first = replace(first, selection=selection)
    return first


def score_candidates(
    fits: Sequence[CandidateFit],
    replicates: Replicates,
    reference: Reference,
    options: SelectionOptions,
) -> dict[str, np.ndarray]:
    """Every score of every candidate in every domain, shape (C, m) each."""
    ht = reference.horvitz_thompson
    ht_fold = replicates.direct(ht.request, replicates.fold)
    out: dict[str, list[np.ndarray]] = {
        key: [] for key in ("db_cv", "db_cv_ht", "naive", "adjusted", "sure")
    }
    k = replicates.rest.n_replicates
    for fit in fits:
        for key, base in (("db_cv", reference.chosen), ("db_cv_ht", ht)):
            covariance = _covariance(fit, base, replicates, options.covariance)
            smaller = size_factor(k, base.fpc_factor) if options.size_corrected else 1.0
            out[key].append(
                smaller
                * debiased_score(
                    rest=fit.rest,
                    reference=base.whole,
                    variance=base.variance,
                    covariance=covariance,
                )
            )
            if key == "db_cv":
                out["sure"].append(
                    sure_score(
                        whole=fit.estimate,
                        reference=base.whole,
                        variance=base.variance,
                        covariance=_covariance(fit, base, replicates, "linearised"),
                    )
                )
        out["naive"].append(naive_score(rest=fit.rest, ht_fold=ht_fold))
        out["adjusted"].append(adjusted_score(rest=fit.rest, ht_fold=ht_fold))
    return {key: np.stack(rows) for key, rows in out.items()}


def _covariance(fit: CandidateFit, base: Any, replicates: Replicates, kind: str) -> np.ndarray:
    if kind == "jackknife":
        return jackknife_covariance(
            reference_rest=base.rest, rest=fit.rest, fpc_factor=base.fpc_factor
        )
    return fit.derivative * base.covariance_with(fit.candidate, replicates)


def _selection(
    candidates: tuple[Candidate, ...],
    fits: Sequence[CandidateFit],
    scores: dict[str, np.ndarray],
    replicates: Replicates,
    reference: Reference,
    options: SelectionOptions,
    folds: Folds,
) -> Selection:
    """Average over the domains that every candidate with a fit was scored on."""
    key = _COLUMN.get(options.score, options.score)
    failed = {f.candidate.name: f.message for f in fits if f.fit_status == "failed"}
    common: dict[str, np.ndarray] = {}
    for name, values in scores.items():
        # A function of the user's has no derivative, so no SURE: the others keep theirs.
        alive = np.array([f.fit_status != "failed" for f in fits])
        alive &= np.isfinite(values).any(axis=1) | (name == key)
        nowhere = np.zeros(values.shape[1], dtype=bool)
        scored = np.isfinite(values[alive]).all(axis=0) if alive.any() else nowhere
        common[name] = np.where(scored, values, np.nan)
    means = {name: [mean_and_error(row) for row in rows] for name, rows in common.items()}
    counts = {name: int(np.isfinite(rows).any(axis=0).sum()) for name, rows in common.items()}
    if counts[key] == 0:
        raise InputError(
            "there is no domain on which every candidate could be scored",
            code="no_common_domain",
            field="candidates",
            expected="a domain with labels in every training part",
            got=f"{len(candidates)} candidates, {replicates.population.n_domains} domains",
            hint="More labels a domain, fewer folds, or fewer candidates."
            + (f" Failed: {failed}" if failed else ""),
        )
    best = int(np.nanargmin([value for value, _ in means[key]]))
    paired = [mean_and_error(row - common[key][best]) for row in common[key]]
    return Selection(
        candidates=tuple(item.name for item in candidates),
        score=key,
        scores={name: np.array([v for v, _ in rows]) for name, rows in means.items()},
        standard_errors={name: np.array([e for _, e in rows]) for name, rows in means.items()},
        domain_scores=common,
        n_domains_scored=counts,
        difference=np.array([v for v, _ in paired]),
        difference_standard_error=np.array(
            [0.0 if i == best else e for i, (_, e) in enumerate(paired)]
        ),
        reference=reference.chosen.name,
        reference_variances=reference.variance_sums,
        domains=replicates.population.domains,
        not_scored=_reasons(common[key], fits, replicates),
        failed=failed,
        n_folds=folds.n_folds,
        repetitions=options.repetitions,
        covariance=options.covariance,
        size_corrected=options.size_corrected,
        notes=_notes(folds),
    )


def _reasons(
    scores: np.ndarray, fits: Sequence[CandidateFit], replicates: Replicates
) -> dict[str, tuple[str, ...]]:
    """Why domains were not scored, a domain under its first reason only."""
    left = ~np.isfinite(scores).any(axis=0)
    n, rest = replicates.sample.whole.n[0], replicates.rest.n
    tests = {
        "no labels": n == 0,
        "one label": n == 1,
        "all its labels in one fold": (rest == 0).any(axis=0),
        "a candidate does not exist there": np.ones(len(n), dtype=bool),
    }
    out = {}
    for reason, applies in tests.items():
        here = left & applies
        left = left & ~applies
        if here.any():
            out[reason] = tuple(str(label) for label in replicates.population.domains[here])
    return out


def _notes(folds: Folds) -> tuple[str, ...]:
    if not folds.pooled:
        return ()
    return (
        f"strata that some of the {folds.n_folds} folds miss, pooled for naive CV's hold-outs: "
        + ", ".join(folds.pooled),
    )
