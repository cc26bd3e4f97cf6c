"""All scores of all candidates, per domain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pybridge.selection.fits import CandidateFit, Replicates
from pybridge.selection.options import SelectionOptions
from pybridge.selection.reference import Reference
from pybridge.selection.scores import (
    adjusted_score,
    debiased_score,
    jackknife_covariance,
    naive_score,
    size_factor,
    sure_score,
)


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
