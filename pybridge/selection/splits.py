"""Hold-out splits, as the procedures that people use today."""

from __future__ import annotations

import numpy as np

from pybridge.design.folds import Folds, make_folds
from pybridge.design.survey_design import SurveyDesign
from pybridge.errors import InputError

# The part to fit on; the other one, in per cent, is in the score's name.
STANDARD_SHARES = (0.5, 0.8)


def split_keys(score: str, share: float) -> dict[str, float]:
    """The splits that a score asks for: column -> the part to fit on.

    "split" is the one asked for; with "all" the standard ones stand beside it.
    """
    if score not in ("split", "all"):
        return {}
    found = {"split": share}
    if score == "all":
        found.update({f"split_{100 * part:g}": part for part in STANDARD_SHARES if part != share})
    return found


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


def split_in_two(design: SurveyDesign, share: float, seed: int) -> Folds:
    """Two folds: the part to fit on (0) and the hold-out (1).

    Raises
    ------
    InputError
        Where one of them would be empty.
    """
    labels = split_labels(design, share, seed)
    if labels.min() == labels.max():
        raise InputError(
            "the split leaves one part empty",
            code="bad_split",
            field="split",
            expected="strata of enough primary units for both parts",
            got=f"{share:g} of {int(design.n_psu.max())} primary units at most",
        )
    return make_folds(design, labels)
