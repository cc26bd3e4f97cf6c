"""All splits that a selection asks for: folds, and the hold-outs that people use today."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pybridge.design.folds import Folds, make_folds
from pybridge.design.survey_design import SurveyDesign
from pybridge.direct.inputs import DomainSample
from pybridge.errors import InputError
from pybridge.selection.options import SelectionOptions

# K where none is given. DB-CV and SURE need no hold-out of a domain's own: it stays where domains
# have fewer labels, because smaller training sets would only make the scores larger.
USUAL_FOLDS = 5
# The part to fit on; the other one, in per cent, is in the score's name.
STANDARD_SHARES = (0.5, 0.8)


@dataclass(frozen=True, eq=False)
class Split:
    """One split of the sample: into folds (score ""), or into two parts for a score."""

    score: str
    folds: Folds
    without: tuple[int, ...] | None = None


def splits_of(
    design: SurveyDesign, options: SelectionOptions, folds: int | Any | None
) -> list[Split]:
    """The folds of every repetition, then the hold-out splits of every repetition."""
    if folds is None:
        folds = max(2, min(USUAL_FOLDS, int(design.n_psu.sum())))
    given = not isinstance(folds, (int, np.integer)) or isinstance(folds, bool)
    if given and np.ndim(folds) == 0:
        raise InputError(
            "folds must be their number, or the fold of every unit",
            code="bad_folds",
            field="folds",
            expected=f"a whole number, at least 2, or an array of {design.n_units} folds",
            got=folds,
        )
    if given and options.repetitions > 1:
        raise InputError(
            "a split that is given cannot be drawn again",
            code="conflicting_arguments",
            field="repetitions",
            expected="repetitions=1, or the number of folds",
            got=options.repetitions,
        )
    seeds = [options.seed + repetition for repetition in range(options.repetitions)]
    found = [Split("", make_folds(design, folds, seed=seed)) for seed in seeds]
    for score, share in split_keys(options.score, options.split).items():
        # Fitted on part 0, which is the sample without part 1.
        found += [Split(score, split_in_two(design, share, seed), (1,)) for seed in seeds]
    return found


def most_in_a_domain(sample: DomainSample) -> tuple[int, str]:
    """The largest number of what folds are dealt out of in one domain, and what that is.

    Primary units stay whole: a domain has a label in every one of K folds only where it has
    labels in K primary units.
    """
    clusters = sample.cells.clusters
    if clusters is None:
        return int(sample.whole.n[0].max()), "labels"
    return int(np.bincount(clusters.domain).max()), "primary units with labels"


def need_fillable_folds(n_folds: int, sample: DomainSample) -> None:
    """Refuse a K that was asked for where no domain can have a label in every fold.

    Raises
    ------
    InputError
        ``too_many_folds``, with the largest K that some domain can fill.
    """
    most, things = most_in_a_domain(sample)
    if n_folds <= most:
        return
    raise InputError(
        f"there are more folds ({n_folds}) than {things} in any domain ({most})",
        code="too_many_folds",
        field="folds",
        expected=f"at most {most}" if most >= 2 else f"a domain with at least two {things}",
        got=n_folds,
        hint=f"Fewer folds, or none named: {USUAL_FOLDS} are the default whatever the labels, for "
        "DB-CV and SURE, which need no label in every fold."
        if most >= 2
        else "No domain can be scored; evaluate without folds named has all estimates and says so.",
    )


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
