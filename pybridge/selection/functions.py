"""Candidates that are a user's own function."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pybridge.design.folds import Folds
from pybridge.design.survey_design import SurveyDesign
from pybridge.direct.estimates import domain_statuses
from pybridge.selection.candidates import Candidate
from pybridge.selection.fits import CandidateFit, Replicates, failed_fit
from pybridge.tables.population import Population


class FunctionFailed(Exception):
    """A user's function raised, or returned what cannot be used."""


def call_function(
    candidate: Candidate,
    replicates: Replicates,
    design: SurveyDesign | None,
    folds: Folds | None,
) -> CandidateFit:
    if design is None or folds is None:
        raise FunctionFailed("a function needs the units of the sample")
    whole = _one_call(candidate, design, replicates.population, design.weights, None)
    counts, unit_count = _fold_counts(design, folds)
    rest = np.empty((folds.n_folds, len(whole)))
    for k in range(folds.n_folds):
        keep = folds.unit_fold != k
        factor = counts.sum(axis=1) / (counts.sum(axis=1) - counts[:, k])
        weights = design.weights * factor[unit_count]
        rest[k] = _one_call(candidate, design, replicates.population, weights, keep)
    blank = failed_fit(candidate, replicates, "")
    return replace(
        blank,
        estimate=whole,
        rest=rest,
        status=domain_statuses(replicates.sample),
        fit_status="ok",
    )


def _fold_counts(design: SurveyDesign, folds: Folds) -> tuple[np.ndarray, np.ndarray]:
    """Primary units by the stratum of the rest × fold, and that stratum of every unit."""
    of_unit = folds.rest_stratum[design.stratum]
    psu = np.arange(design.n_units) if design.psu is None else design.psu
    _, first = np.unique(psu, return_index=True)
    counts = np.zeros((int(folds.rest_stratum.max()) + 1, folds.n_folds))
    np.add.at(counts, (of_unit[first], folds.unit_fold[first]), 1.0)
    return counts, of_unit


def _one_call(
    candidate: Candidate,
    design: SurveyDesign,
    population: Population,
    weights: np.ndarray,
    keep: np.ndarray | None,
) -> np.ndarray:
    table = design.frame.assign(weight=weights)
    table = table if keep is None else table[keep]
    assert candidate.function is not None
    try:
        answer = np.asarray(candidate.function(table, population), dtype=np.float64)
    except Exception as error:  # whatever a user's function raises must not lose the others
        raise FunctionFailed(f"{type(error).__name__}: {error}") from error
    if answer.shape != (population.n_domains,):
        raise FunctionFailed(
            f"returned shape {answer.shape}, expected ({population.n_domains},), "
            "one number a domain in the order of population.domains"
        )
    return np.where(np.isfinite(answer), answer, np.nan)
