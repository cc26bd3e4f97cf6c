"""Candidates that are a user's own function."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from pybridge._checks import LARGEST, listed
from pybridge.design.folds import Folds
from pybridge.design.survey_design import SurveyDesign
from pybridge.direct.estimates import domain_statuses
from pybridge.selection.candidates import Candidate
from pybridge.selection.fits import CandidateFit, Replicates, failed_fit
from pybridge.tables.labels import match
from pybridge.tables.population import Population


class FunctionFailed(Exception):
    """A user's function raised, or returned what cannot be used."""


def function_whole(
    candidate: Candidate, replicates: Replicates, design: SurveyDesign | None
) -> CandidateFit:
    """The function on the whole sample; ``rest`` still empty."""
    if design is None:
        raise FunctionFailed("a function needs the units of the sample")
    blank = failed_fit(candidate, replicates, "")
    return replace(
        blank,
        estimate=_one_call(
            candidate,
            design,
            replicates.population,
            design.weights,
            None,
            replicates.sample.whole.n[0] > 0,
        ),
        status=domain_statuses(replicates.sample),
        fit_status="ok",
        code="",
    )


def function_rest(
    candidate: Candidate,
    replicates: Replicates,
    design: SurveyDesign | None,
    folds: Folds | None,
) -> np.ndarray:
    """The function on the re-weighted sample without each fold, shape (K, m)."""
    if design is None or folds is None:
        raise FunctionFailed("a function needs the units of the sample")
    counts, unit_count = _fold_counts(design, folds)
    rest = np.empty((len(replicates.without), replicates.population.n_domains))
    for place, k in enumerate(replicates.without):
        keep = folds.unit_fold != k
        factor = counts.sum(axis=1) / (counts.sum(axis=1) - counts[:, k])
        weights = design.weights * factor[unit_count]
        labelled = replicates.rest.n[place] > 0
        rest[place] = _one_call(candidate, design, replicates.population, weights, keep, labelled)
    return rest


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
    labelled: np.ndarray,
) -> np.ndarray:
    """The answer (m,), finite in every domain with labels, NaN where there is none elsewhere."""
    # The function's own copy, whatever it does to it.
    rows = design.frame if keep is None else design.frame[keep]
    table = rows.assign(weight=weights if keep is None else weights[keep])
    assert candidate.function is not None
    try:
        answer = _in_order(candidate.function(table, population), population.domains)
    except FunctionFailed:
        raise
    except Exception as error:  # whatever a user's function raises must not lose the others
        raise FunctionFailed(f"{type(error).__name__}: {error}") from error
    if answer.shape != (population.n_domains,):
        raise FunctionFailed(
            f"returned shape {answer.shape}, expected ({population.n_domains},), "
            "one number a domain in the order of population.domains"
        )
    with np.errstate(invalid="ignore"):
        vast = np.isfinite(answer) & (np.abs(answer) > LARGEST)
    if (labelled & vast).any():
        raise FunctionFailed(f"returned numbers larger than {LARGEST:g}, which cannot be squared")
    missing = labelled & ~np.isfinite(answer)
    if missing.any():
        raise FunctionFailed(
            f"returned no finite number in {int(missing.sum())} of {int(labelled.sum())} domains "
            f"with labels: {listed(population.domains[missing])}"
        )
    return np.where(np.isfinite(answer) & ~vast, answer, np.nan)


def _in_order(answer: object, domains: np.ndarray) -> np.ndarray:
    """The answer as numbers; a Series that is labelled by domains is put into their order."""
    if isinstance(answer, pd.Series) and not isinstance(answer.index, pd.RangeIndex):
        return _by_label(answer, domains)
    if isinstance(answer, np.ma.MaskedArray):
        answer = np.ma.filled(answer.astype(np.float64), np.nan)
    arrays = (pd.Series, pd.api.extensions.ExtensionArray)
    if isinstance(answer, arrays) and not isinstance(answer.dtype, np.dtype):
        if pd.api.types.is_string_dtype(answer.dtype):
            raise FunctionFailed("returned text, expected numbers")
        answer = answer.to_numpy(dtype=np.float64, na_value=np.nan)
    values = np.asarray(answer)
    if values.dtype.kind == "c":  # a cast would drop the imaginary part
        raise FunctionFailed("returned complex numbers, expected real ones")
    words = values.dtype.kind == "O" and any(isinstance(x, (str, bytes)) for x in values.flat)
    if words or values.dtype.kind in "US":  # "1.5" would be read as a number
        raise FunctionFailed("returned text, expected numbers")
    return values.astype(np.float64)


def _by_label(answer: pd.Series, domains: np.ndarray) -> np.ndarray:
    """Numbers in the order of the domains, NaN where a domain has none; no label may be odd."""
    place = match(answer.index.to_series(), domains)
    if (place < 0).any():
        raise FunctionFailed(
            "returned a Series whose labels are not domains: "
            f"{listed(answer.index[place < 0])}; return its values if they are in the order of "
            "population.domains"
        )
    if not answer.index.is_unique:
        twice = answer.index[answer.index.duplicated()].unique()
        raise FunctionFailed(f"returned several numbers for one domain: {listed(twice)}")
    ordered = np.full(len(domains), np.nan)
    ordered[place] = _in_order(answer.reset_index(drop=True), domains)
    return ordered
