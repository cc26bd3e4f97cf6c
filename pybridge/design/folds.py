"""Folds of a probability sample that are probability samples themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import key_column, listed
from pybridge._options import whole_number
from pybridge._record import Record
from pybridge.design.survey_design import SurveyDesign
from pybridge.errors import InputError
from pybridge.tables.labels import counted, encode


@dataclass(frozen=True, eq=False, repr=False)
class Folds(Record):
    """A split of the sample into K folds, whole primary units together.

    Attributes
    ----------
    n_folds : int
        K.
    unit_fold : numpy.ndarray
        Shape (n,), in [0, K).
    rest_stratum : numpy.ndarray
        Shape (H,), the stratum in which the sample without a fold has its weights rescaled: the
        design's own, but for strata that lie in one fold wholly.
    fold_stratum : numpy.ndarray
        Shape (H,), the same for a fold alone, where strata that some fold misses are pooled.
    pooled : tuple of str
        Labels of the strata that were pooled for the folds alone.
    """

    n_folds: int
    unit_fold: np.ndarray
    rest_stratum: np.ndarray
    fold_stratum: np.ndarray
    pooled: tuple[str, ...] = ()

    def summary(self) -> str:
        """One line."""
        text = f"{self.n_folds} folds of {len(self.unit_fold):,} units, drawn inside design strata"
        return f"{text}; pooled: {listed(self.pooled)}" if self.pooled else text


def single_fold(design: SurveyDesign) -> Folds:
    """The whole sample as one fold, for estimates without cross-validation."""
    return Folds(
        n_folds=1,
        unit_fold=np.zeros(design.n_units, dtype=np.int8),
        rest_stratum=np.arange(len(design.strata)),
        fold_stratum=np.arange(len(design.strata)),
    )


def make_folds(design: SurveyDesign, folds: int | Any = 5, *, seed: int = 1) -> Folds:
    """Split the sample at random inside design strata, or take the user's own split.

    Folds are balanced inside design strata and nowhere else: balancing them inside domains that
    are not strata would freeze the domains' sample sizes, and a jackknife over such folds misses
    the variation that the design has.

    Parameters
    ----------
    design : SurveyDesign
        The sample, n units.
    folds : int or array of shape (n,)
        K, or the fold of every unit.
    seed : int
        The same seed gives the same folds for the same sample in the same order.

    Raises
    ------
    InputError
        K below 2 or above the number of primary units; a given split that cuts a primary unit or
        has one fold only.
    """
    if not isinstance(folds, (int, np.integer)) or isinstance(folds, bool):
        return _given_folds(design, folds)
    total = int(design.n_psu.sum())
    n_folds = whole_number("folds", folds, least=2)
    if n_folds > total:
        raise InputError(
            f"there are more folds ({n_folds}) than primary units ({total})",
            code="too_many_folds",
            field="folds",
            expected=f"2 to {total}" if total >= 2 else "a sample of at least two primary units",
            got=n_folds,
        )
    rng = np.random.default_rng(np.random.SeedSequence(whole_number("seed", seed, least=0)))
    psu_fold = _balanced(_owner(design), len(design.strata), n_folds, rng)
    unit_fold = psu_fold if design.psu is None else psu_fold[design.psu]
    return _with_pools(design, unit_fold, n_folds)


def _with_pools(design: SurveyDesign, unit_fold: np.ndarray, n_folds: int) -> Folds:
    """The folds, with the strata that their weights are rescaled in.

    Pooling moves weight between strata, which a domain inside one of them feels: the sample
    without a fold is pooled only where a stratum would vanish from it.
    """
    present = psu_counts(design, unit_fold, n_folds) > 0
    alone, _ = _pool(design.n_psu, present, present.sum(axis=1) < 2, least=2)
    missed, pooled = _pool(design.n_psu, present, ~present.all(axis=1), least=n_folds)
    return Folds(
        n_folds=n_folds,
        unit_fold=unit_fold,
        rest_stratum=alone,
        fold_stratum=missed,
        pooled=tuple(str(label) for label in design.strata[pooled]),
    )


def psu_counts(design: SurveyDesign, unit_fold: np.ndarray, n_folds: int) -> np.ndarray:
    """Primary units (H, K) of the whole sample; a domain's units are only some of them."""
    n_strata, fold = len(design.strata), unit_fold
    if design.psu is not None:
        fold = np.empty(design.psu.max() + 1, dtype=np.intp)
        fold[design.psu] = unit_fold
    if n_strata == 1:
        return counted(fold, n_folds)[None, :]
    cell = _owner(design) * n_folds + fold
    return np.bincount(cell, minlength=n_strata * n_folds).reshape(n_strata, n_folds)


def _owner(design: SurveyDesign) -> np.ndarray:
    """The design stratum of every primary unit."""
    if design.psu is None:
        return design.stratum
    owner = np.empty(design.psu.max() + 1, dtype=np.intp)
    owner[design.psu] = design.stratum
    return owner


def _pool(
    n_psu: np.ndarray, present: np.ndarray, small: np.ndarray, *, least: int
) -> tuple[np.ndarray, np.ndarray]:
    """Join the small strata, and the next smallest ones until the pool lies in enough folds.

    Returns the pool of every stratum (H,), numbered from 0, and which strata were pooled (H,).
    """
    joined = small.copy()
    for h in np.argsort(n_psu, kind="stable"):
        if not joined.any() or present[joined].any(axis=0).sum() >= least:
            break
        joined[h] = True
    pool = np.arange(len(n_psu))
    if joined.any():
        pool[joined] = np.flatnonzero(joined)[0]
    return np.unique(pool, return_inverse=True)[1].reshape(-1), joined


def _balanced(
    stratum: np.ndarray, n_strata: int, n_folds: int, rng: np.random.Generator
) -> np.ndarray:
    """Fold of every primary unit: in each stratum a random order dealt out to the folds in turn.

    The first fold dealt to is drawn anew in every stratum, or small strata would all be short of
    the same folds; a stratum with fewer than K primary units has each in a fold of its own.
    """
    n, kind = len(stratum), _fold_type(n_folds)
    fold = np.empty(n, dtype=kind)
    if n_strata == 1:
        order = rng.permutation(n)
        turn = (np.arange(n_folds) + rng.integers(0, n_folds)) % n_folds
        fold[order] = np.tile(turn.astype(kind), -(-n // n_folds))[:n]
        return fold
    order = np.argsort(stratum + rng.random(n))
    counts = np.bincount(stratum)
    shift = rng.integers(0, n_folds, size=n_strata)
    first = np.cumsum(counts) - counts - shift
    fold[order] = (np.arange(n) - np.repeat(first, counts)) % n_folds
    return fold


def _given_folds(design: SurveyDesign, folds: Any) -> Folds:
    if np.ma.is_masked(folds):
        raise InputError(
            f"the split is masked in {int(np.ma.count_masked(folds))} places",
            code="bad_folds",
            field="folds",
            expected="the fold of every unit",
            got="a masked array",
        )
    values = np.asarray(folds)
    if values.shape != (design.n_units,):
        raise InputError(
            "a given split needs one fold a labelled unit",
            code="bad_folds",
            field="folds",
            expected=f"an array of {design.n_units} folds",
            got=f"shape {values.shape}",
        )
    column = pd.DataFrame({"folds": values})
    encoded = encode(key_column(column, "folds", field="folds"))
    labels, codes = encoded.labels, np.asarray(encoded.codes, dtype=np.intp)
    if len(labels) < 2:
        raise InputError(
            "a split needs at least two folds",
            code="bad_folds",
            field="folds",
            expected="at least two different folds",
            got=f"all units in {listed(labels)}",
        )
    if design.psu is not None:
        of_psu = np.empty(design.psu.max() + 1, dtype=np.intp)
        of_psu[design.psu] = codes
        if (of_psu[design.psu] != codes).any():
            cut = np.unique(design.psu[of_psu[design.psu] != codes])
            raise InputError(
                f"the split cuts {len(cut)} primary units",
                code="folds_split_cluster",
                field="folds",
                expected="whole primary units in one fold",
                got=f"{len(cut)} primary units in several folds",
            )
    return _with_pools(design, codes.astype(_fold_type(len(labels))), len(labels))


def _fold_type(n_folds: int) -> Any:
    """Small integers for the folds of many units, as long as they can count them."""
    return np.int16 if n_folds <= np.iinfo(np.int16).max else np.int32
