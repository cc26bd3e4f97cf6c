"""From scores per domain to the choice: averages over the domains that all candidates share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pybridge.design.folds import Folds
from pybridge.errors import InputError
from pybridge.selection.candidates import Candidate
from pybridge.selection.fits import CandidateFit, Replicates
from pybridge.selection.options import SelectionOptions
from pybridge.selection.record import Selection
from pybridge.selection.reference import Reference
from pybridge.selection.scores import mean_and_error


def averaged(
    candidates: tuple[Candidate, ...],
    fits: Sequence[CandidateFit],
    scores: dict[str, np.ndarray],
    replicates: Replicates,
    reference: Reference,
    options: SelectionOptions,
    folds: Folds,
) -> Selection:
    """Average over the domains that every candidate with a fit was scored on."""
    key = options.key
    common: dict[str, np.ndarray] = {}
    for name, values in scores.items():
        # What is nowhere scored (a fold without a fit; SURE of a function, which has no
        # derivative) takes nothing from the others.
        alive = np.isfinite(values).any(axis=1)
        nowhere = np.zeros(values.shape[1], dtype=bool)
        scored = np.isfinite(values[alive]).all(axis=0) if alive.any() else nowhere
        common[name] = np.where(scored, values, np.nan)
    failed = {
        fit.candidate.name: _why_unscored(fit)
        for fit, values in zip(fits, scores[key])
        if not np.isfinite(values).any()
    }
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


def _why_unscored(fit: CandidateFit) -> str:
    """The reason of a failed fit, or of the folds that could not be fitted."""
    if fit.fit_status == "failed":
        return fit.message
    folds = [text for text in fit.conditions if text.startswith("without fold ")]
    return "; ".join(folds[:1]) or "no domain can be scored by this score"


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
