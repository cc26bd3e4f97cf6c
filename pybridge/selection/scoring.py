"""All scores of all candidates, per domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pybridge.direct.estimates import domain_statuses
from pybridge.direct.linear import DirectRequest
from pybridge.selection.fits import CandidateFit, Replicates
from pybridge.selection.options import SelectionOptions
from pybridge.selection.pairs import dong_li_comparison
from pybridge.selection.reference import Reference, ReferenceEstimates
from pybridge.selection.scores import (
    adjusted_score,
    debiased_score,
    jackknife_covariance,
    naive_score,
    size_factor,
    sure_score,
)


@dataclass(frozen=True, eq=False)
class Scores:
    """What one split of the sample says of all candidates.

    Attributes
    ----------
    tables : mapping of str to numpy.ndarray
        Score -> shape (C, m).
    by_reference : mapping of str to mapping
        Reference -> "db_cv" and "sure" -> shape (C, m).
    pairs : tuple of numpy.ndarray
        Dong and Li's differences and bounds, shape (C, C).
    """

    tables: Mapping[str, np.ndarray]
    by_reference: Mapping[str, Mapping[str, np.ndarray]]
    pairs: tuple[np.ndarray, np.ndarray]


def score_candidates(
    fits: Sequence[CandidateFit],
    replicates: Replicates,
    reference: Reference,
    options: SelectionOptions,
    *,
    z: float = 1.96,
) -> Scores:
    """Every score of every candidate in every domain.

    Parameters
    ----------
    fits : sequence of CandidateFit
    replicates : Replicates
    reference : Reference
    options : SelectionOptions
    z : float
        Normal quantile of Dong and Li's bounds.
    """
    ht = reference.horvitz_thompson
    ht_fold = replicates.direct(ht.request, replicates.fold)
    rest = np.stack([fit.rest for fit in fits])
    by_reference = {
        base.name: {
            "db_cv": _debiased(fits, base, replicates, options),
            "sure": _sure(fits, base, replicates),
        }
        for base in reference.looked_at
    }
    chosen = by_reference[reference.chosen.name]
    alone = by_reference.get(ht.name) or {"db_cv": _debiased(fits, ht, replicates, options)}
    adjusted = np.stack([adjusted_score(rest=fit.rest, ht_fold=ht_fold) for fit in fits])
    # What is known whole has no error, which the fits without a fold cannot know.
    census = domain_statuses(replicates.sample) == "census"
    tables = {
        "db_cv": chosen["db_cv"],
        "db_cv_ht": alone["db_cv"],
        "naive": np.stack([naive_score(rest=fit.rest, ht_fold=ht_fold) for fit in fits]),
        "adjusted": adjusted,
        "sure": chosen["sure"],
    }
    tables = {key: np.where(census, np.nan, rows) for key, rows in tables.items()}
    by_reference = {
        name: {key: np.where(census, np.nan, rows) for key, rows in own.items()}
        for name, own in by_reference.items()
    }
    pairs = dong_li_comparison(rest=rest, adjusted=tables["adjusted"], variance_ht=ht.variance, z=z)
    return Scores(tables, by_reference, pairs)


def _debiased(
    fits: Sequence[CandidateFit],
    base: ReferenceEstimates,
    replicates: Replicates,
    options: SelectionOptions,
) -> np.ndarray:
    k = replicates.rest.n_replicates
    smaller = size_factor(k, base.fpc_factor) if options.size_corrected else 1.0
    rows = [
        debiased_score(
            rest=fit.rest,
            reference=base.whole,
            variance=base.variance,
            covariance=_covariance(fit, base, replicates, options.covariance),
        )
        for fit in fits
    ]
    return np.asarray(smaller * np.stack(rows))


def _sure(
    fits: Sequence[CandidateFit], base: ReferenceEstimates, replicates: Replicates
) -> np.ndarray:
    rows = [
        sure_score(
            whole=fit.estimate,
            reference=base.whole,
            variance=base.variance,
            covariance=_covariance(fit, base, replicates, "linearised"),
        )
        for fit in fits
    ]
    return np.stack(rows)


def _covariance(
    fit: CandidateFit, base: ReferenceEstimates, replicates: Replicates, kind: str
) -> np.ndarray:
    if kind == "jackknife":
        return jackknife_covariance(
            reference_rest=base.rest, rest=fit.rest, fpc_factor=base.fpc_factor
        )
    return np.asarray(fit.derivative * base.covariance_with(fit.candidate, replicates))


def split_score(fits: Sequence[CandidateFit], replicates: Replicates) -> np.ndarray:
    """(M fitted on one part − HT on the other)², shape (C, m), for a split into two parts.

    ``replicates`` leaves out the other part only, so that each has one replicate.
    """
    held_out = replicates.direct(DirectRequest("ht"), replicates.fold)[0]
    held_out = np.where(domain_statuses(replicates.sample) == "census", np.nan, held_out)
    return np.stack([(fit.rest[0] - held_out) ** 2 for fit in fits])
