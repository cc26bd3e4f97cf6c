"""From tables to a design and a population, whichever way they were given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import listed, name_list, need_frame, numeric_column
from pybridge.design.survey_design import SurveyDesign, survey_design
from pybridge.errors import InputError
from pybridge.tables.population import Population
from pybridge.tables.population import population as describe_population
from pybridge.tables.units import assume_weights, split_units

# Names under which a table of domain totals may hold the number of units.
SIZE_NAMES = ("size", "N", "n_units", "N_i")


@dataclass(frozen=True, eq=False)
class Prepared:
    """The labelled sample's design, the population, and what was assumed about them."""

    design: SurveyDesign
    population: Population
    assumptions: tuple[str, ...]


def prepare_units(
    given: pd.DataFrame | Iterable[pd.DataFrame],
    *,
    population: Population | pd.DataFrame | None,
    outcome: str,
    domain: str,
    auxiliary: Sequence[str],
    taxonomy: str | Sequence[str] | None = None,
    weights: str | None = None,
    strata: str | None = None,
    ids: str | None = None,
    fpc: str | None = None,
    pps: str | None = None,
    lonely_psu: str = "fail",
) -> Prepared:
    """Population, labelled sample and design, whichever way they were given; see `evaluate`."""
    chunks = _tables(given)
    assumptions: tuple[str, ...] = ()
    names = name_list("auxiliary", auxiliary)
    levels = name_list("taxonomy", taxonomy)
    if population is None:
        # With weights given, strata and primary units need be known of the labelled units only.
        counted = weights is None and fpc is None and pps is None
        units = split_units(
            chunks,
            outcome=outcome,
            domain=domain,
            auxiliary=names,
            taxonomy=levels,
            strata=strata if counted else None,
            ids=ids if counted else None,
        )
        known, labelled = units.population, units.labelled
        _need_unlabelled(known, labelled)
        if counted:
            assumed = assume_weights(units, strata=strata, ids=ids)
            labelled, weights, fpc = assumed.labelled, assumed.weights, assumed.fpc
            assumptions = (assumed.words,)
    else:
        known = _known(population, domain, names, levels)
        labelled = _labelled(chunks, outcome)
    design = survey_design(
        labelled,
        weights=weights,
        strata=strata,
        ids=ids,
        fpc=fpc,
        pps=pps,
        lonely_psu=lonely_psu,
    )
    return Prepared(design, known, assumptions)


def _tables(given: Any) -> Iterable[pd.DataFrame]:
    """One table or several; what they hold is checked one by one."""
    if isinstance(given, pd.DataFrame):
        return [given]
    if isinstance(given, Iterable) and not isinstance(given, (str, bytes)):
        return given
    return [need_frame("units", given)]


def _need_unlabelled(known: Population, labelled: pd.DataFrame) -> None:
    if len(labelled) >= known.n_units:
        raise InputError(
            "every unit has an outcome, so there is nothing to estimate",
            code="nothing_unlabelled",
            field="population",
            expected="units without an outcome, or the population's sizes and means",
            got=f"{len(labelled)} units, all labelled",
            hint="If these are the sample only, give the population too (--population FILE).",
        )


def _labelled(chunks: Iterable[pd.DataFrame], outcome: str) -> pd.DataFrame:
    tables = [chunk for chunk in chunks if not (isinstance(chunk, pd.DataFrame) and chunk.empty)]
    for table in tables or [pd.DataFrame()]:
        need_frame("sample", table)
    sample = tables[0] if len(tables) == 1 else pd.concat(tables, ignore_index=True)
    y = numeric_column(sample, outcome, field="outcome", missing=True)
    labelled = sample if not np.isnan(y).any() else sample[~np.isnan(y)]
    if len(labelled) == 0:
        raise InputError(
            f"no unit has an outcome in {outcome!r}",
            code="no_labels",
            field="outcome",
            expected="at least one labelled unit",
            got="every value missing",
        )
    return labelled


def _known(
    population: Population | pd.DataFrame,
    domain: str,
    auxiliary: tuple[str, ...],
    taxonomy: tuple[str, ...],
) -> Population:
    if isinstance(population, Population):
        above = tuple(level for level in taxonomy if level != population.domain)
        if above and above != population.taxonomy:
            raise InputError(
                "the population was described with another taxonomy",
                code="conflicting_arguments",
                field="taxonomy",
                expected=listed(population.taxonomy) or "none",
                got=listed(taxonomy),
            )
        return population
    need_frame("population", population)
    size = next((name for name in SIZE_NAMES if name in population.columns), None)
    if size is None:
        _need_units(population, domain)
        return describe_population(
            population, domain=domain, auxiliary=auxiliary, taxonomy=taxonomy
        )
    return describe_population(
        population, domain=domain, size=size, auxiliary_means=auxiliary, taxonomy=taxonomy
    )


def _need_units(table: pd.DataFrame, domain: str) -> None:
    """One row a domain and no size among the columns: totals, not units."""
    if domain not in table.columns or len(table) < 2 or table[domain].duplicated().any():
        return
    raise InputError(
        "the population has one row a domain and no column of their sizes",
        code="missing_column",
        field="population",
        expected=f"a column named {' or '.join(SIZE_NAMES)}, or unit records",
        got=f"columns {listed(table.columns, most=12)}",
    )
