"""Sampling plans: how units of a finite population get their labels, repeatedly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import key_column, numeric_column
from pybridge._options import choose, real_number, whole_number
from pybridge.design.survey_design import SurveyDesign, survey_design
from pybridge.errors import InputError
from pybridge.simulate.populations import FinitePopulation
from pybridge.tables.labels import encode

KINDS = ("simple", "stratified", "clustered", "unequal", "poisson", "self_selected")
# Columns that a plan adds to the sample.
WEIGHT, CORRECTION = "weight", "stratum_size"


@dataclass(frozen=True)
class SamplingPlan:
    """How a sample is drawn; made by `sampling_plan`, where the fields are described."""

    kind: str
    fraction: float | None = None
    n: int | None = None
    strata: str | None = None
    ids: str | None = None
    size: str | None = None
    weights: str = "known"
    least: int = 2

    def draw(self, population: FinitePopulation, rng: np.random.Generator) -> SurveyDesign:
        """One sample with its weights and everything that the variance needs to know.

        The index of its rows is their place in ``population.units``.
        """
        table = population.units
        if self.kind in ("simple", "stratified", "clustered"):
            rows, columns = _stratified(self, population, rng)
        else:
            size = _sizes(self, population)
            chance = _inclusion(size, self.expected(population))
            if self.kind == "unequal":
                rows = _systematic(chance, rng)
            else:
                rows = np.flatnonzero(rng.random(len(chance)) < chance)
            weight = 1.0 / chance[rows]
            if self.weights == "none":
                weight = np.full(len(rows), population.n_units / max(len(rows), 1))
            columns = {WEIGHT: weight}
        _need_units(rows)
        kept = [population.outcome, population.domain, *_numeric_parts(population, table)]
        kept += [name for name in (self.strata, self.ids) if name is not None]
        sample = pd.DataFrame(
            {name: table[name].to_numpy()[rows] for name in dict.fromkeys(kept)}, index=rows
        )
        return self.describe(sample.assign(**columns))

    def describe(self, sample: pd.DataFrame) -> SurveyDesign:
        """The design of a sample that this plan drew, as an analyst would describe it."""
        if self.kind in ("simple", "stratified", "clustered"):
            return survey_design(
                sample, weights=WEIGHT, strata=self.strata, ids=self.ids, fpc=CORRECTION
            )
        independent = self.kind != "unequal" and self.weights == "known"
        return survey_design(sample, weights=WEIGHT, pps="poisson" if independent else None)

    def expected(self, population: FinitePopulation) -> float:
        """The number of units that a sample of unequal probabilities is expected to have."""
        total = population.n_units
        return float(self.n if self.n is not None else round((self.fraction or 0.0) * total))


def sampling_plan(
    kind: str,
    *,
    fraction: float | None = None,
    n: int | None = None,
    strata: str | None = None,
    ids: str | None = None,
    size: str | None = None,
    weights: str = "known",
    least: int = 2,
) -> SamplingPlan:
    """Describe how samples are drawn.

    Parameters
    ----------
    kind : {"simple", "stratified", "clustered", "unequal", "poisson", "self_selected"}
        Simple random; simple random inside ``strata``; whole clusters ``ids``, inside strata where
        named; a fixed number with probabilities in proportion to ``size`` (randomised systematic
        sampling, analysed with replacement); units independently of each other with such
        probabilities (Poisson); the same with ``size`` the odds of a volunteer.
    fraction, n : float or int
        The sampled part of the population (of every stratum; of the clusters), or a number.
    strata, ids, size : str, optional
        Columns of the population's units.
    weights : {"known", "none"}
        "none", for self-selected samples: every unit gets N/n, as if it were a simple random
        sample. That is the mistake whose cost a simulation shows.
    least : int
        Of every stratum, where a fraction would give fewer.

    Raises
    ------
    InputError
        Arguments that the kind lacks or does not take.
    """
    choose("kind", kind, KINDS)
    choose("weights", weights, ("known", "none"))
    whole_number("least", least, least=1)
    if (fraction is None) == (n is None):
        raise InputError(
            "a plan needs the fraction or the number of units",
            code="missing_argument",
            field="fraction",
            expected="fraction or n, one of them",
            got=f"fraction {fraction}, n {n}",
        )
    if fraction is not None and not 0.0 < real_number("fraction", fraction) <= 1.0:
        raise InputError(
            "a sampled fraction lies in (0, 1]",
            code="bad_share",
            field="fraction",
            expected="0 < fraction <= 1",
            got=fraction,
        )
    if n is not None:
        whole_number("n", n, least=1)
    _check_words(kind, strata=strata, ids=ids, size=size)
    if (weights == "none" and kind != "self_selected") or (kind == "stratified" and n is not None):
        raise InputError(
            f"a {kind} sample has no such option",
            code="conflicting_arguments",
            field="weights" if weights == "none" else "n",
            expected="weights='none' for self-selected samples; a fraction for stratified ones",
            got=weights if weights == "none" else n,
        )
    return SamplingPlan(kind, fraction, n, strata, ids, size, weights, least)


def _check_words(kind: str, **given: str | None) -> None:
    needs = {
        "simple": (),
        "stratified": ("strata",),
        "clustered": ("ids",),
        "unequal": ("size",),
        "poisson": ("size",),
        "self_selected": ("size",),
    }[kind]
    allowed = (*needs, "strata") if kind == "clustered" else needs
    wrong = [name for name in needs if given[name] is None]
    wrong += [name for name, value in given.items() if value is not None and name not in allowed]
    if wrong:
        raise InputError(
            f"a {kind} sample is described by {', '.join(allowed) or 'its size only'}",
            code="wrong_arguments",
            field=wrong[0],
            expected=f"columns for: {', '.join(needs) or 'none'}",
            got=given[wrong[0]],
        )


def _numeric_parts(population: FinitePopulation, table: pd.DataFrame) -> list[str]:
    """Columns of the auxiliary variables; all columns where a formula makes them."""
    if population.known.formula is not None:
        return [str(name) for name in table.columns]
    return list(population.auxiliary)


def _need_units(rows: np.ndarray) -> None:
    if not len(rows):
        raise InputError(
            "the sample is empty",
            code="empty_sample",
            field="n",
            expected="an expected number of units that leaves no sample empty",
            got="0 units",
        )


def _codes(population: FinitePopulation, name: str | None, field: str) -> np.ndarray:
    if name is None:
        return np.zeros(population.n_units, dtype=np.intp)
    found = encode(key_column(population.units, name, field=field))
    return np.asarray(found.codes, dtype=np.intp)


def _stratified(
    plan: SamplingPlan, population: FinitePopulation, rng: np.random.Generator
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Primary units at random inside strata: rows, weights N_h/n_h, and N_h."""
    stratum = _codes(population, plan.strata, "strata")
    psu = np.arange(population.n_units)
    if plan.ids is not None:
        psu = _codes(population, plan.ids, "ids")
    owner = np.empty(int(psu.max()) + 1, dtype=np.intp)
    owner[psu] = stratum
    if (owner[psu] != stratum).any():
        raise InputError(
            "clusters are not nested in strata",
            code="clusters_cross_strata",
            field="ids",
            expected="every cluster in one stratum",
            got=plan.ids,
        )
    total = np.bincount(owner)
    if plan.n is not None:
        wanted = np.maximum(np.round(plan.n * total / total.sum()), 1)
    else:
        wanted = np.round(float(plan.fraction or 0.0) * total)
    count = np.minimum(np.maximum(wanted, min(plan.least, plan.n or plan.least)), total)
    # The first count_h primary units of every stratum, in an order that is random.
    order = np.lexsort((rng.random(len(owner)), owner))
    place = np.empty(len(owner), dtype=np.intp)
    place[order] = np.arange(len(owner)) - np.repeat(np.cumsum(total) - total, total)
    drawn = place < count[owner]
    rows = np.flatnonzero(drawn[psu])
    own = stratum[rows]
    return rows, {WEIGHT: (total / count)[own], CORRECTION: total[own].astype(np.float64)}


def _sizes(plan: SamplingPlan, population: FinitePopulation) -> np.ndarray:
    assert plan.size is not None
    size = numeric_column(population.units, plan.size, field="size")
    if (size <= 0).any():
        raise InputError(
            "sizes (odds) must be positive, or a unit could never be drawn",
            code="bad_size",
            field="size",
            expected="positive numbers",
            got=float(size.min()),
        )
    return size


def _inclusion(size: np.ndarray, expected: float) -> np.ndarray:
    """Probabilities min(1, c size) that add up to ``expected``."""
    expected = min(expected, float(len(size)))
    chance = np.minimum(1.0, expected * size / size.sum())
    for _ in range(50):
        certain = chance >= 1.0
        free = ~certain
        if not free.any() or abs(chance.sum() - expected) < 1e-9 * expected:
            break
        scale = (expected - certain.sum()) / size[free].sum()
        chance = np.where(certain, 1.0, np.minimum(1.0, scale * size))
    return chance


def _systematic(chance: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A fixed number of units with these probabilities: systematic, in random order."""
    order: Any = rng.permutation(len(chance))
    ends = np.cumsum(chance[order])
    ticks = np.arange(rng.random(), ends[-1] - 1e-9, 1.0)
    return np.asarray(np.sort(order[np.searchsorted(ends, ticks, side="right")]))
