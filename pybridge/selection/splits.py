"""Hold-out splits, as the procedures that people use today."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pybridge.design.survey_design import SurveyDesign
from pybridge.direct.inputs import domain_sample
from pybridge.direct.linear import DirectRequest
from pybridge.errors import InputError
from pybridge.selection.candidates import Candidate
from pybridge.selection.fits import replicates_of
from pybridge.selection.refits import fit_candidates
from pybridge.tables.population import Population


def split_labels(design: SurveyDesign, share: float, seed: int) -> np.ndarray:
    """0 for the training part, 1 for the hold-out, shape (n,): whole primary units, in strata."""
    rng = np.random.default_rng(np.random.SeedSequence([seed, 1]))
    psu = np.arange(design.n_units) if design.psu is None else design.psu
    owner = np.empty(int(psu.max()) + 1, dtype=np.intp)
    owner[psu] = design.stratum
    order = np.lexsort((rng.random(len(owner)), owner))
    counts = np.bincount(owner, minlength=len(design.strata))
    position = np.empty(len(owner))
    position[order] = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    test = position + 0.5 > share * counts[owner]
    return test[psu].astype(np.int8)


def split_scores(
    design: SurveyDesign,
    population: Population,
    candidates: Sequence[Candidate],
    *,
    share: float,
    seed: int,
    outcome: str,
    domain: str | None,
    level: float,
) -> np.ndarray:
    """(M fitted on one part − HT on the other)², shape (C, m)."""
    from pybridge.design.folds import make_folds

    labels = split_labels(design, share, seed)
    if labels.min() == labels.max():
        raise InputError(
            "the split leaves one part empty",
            code="bad_split",
            field="split",
            expected="strata of enough primary units for both parts",
            got=f"{share:g} of {int(design.n_psu.max())} primary units at most",
        )
    folds = make_folds(design, labels)
    sample = domain_sample(design, population, outcome=outcome, domain=domain, folds=folds)
    replicates = replicates_of(sample, level=level)
    fits = fit_candidates(candidates, replicates, design=design, folds=folds)
    held_out = replicates.direct(DirectRequest("ht"), replicates.fold)[1]
    return np.stack([(fit.rest[1] - held_out) ** 2 for fit in fits])
