"""A table of all units, labelled or not: taken apart into population, sample and counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from pybridge._checks import key_column, listed, need_columns, need_frame, numeric_column
from pybridge.errors import InputError
from pybridge.tables.population import Population, combine_populations, population


_ALL = "all"
_WEIGHT, _FPC = "weight_assumed_", "fpc_assumed_"


@dataclass(frozen=True, eq=False)
class Units:
    """What a table of units says.

    Attributes
    ----------
    population : Population
    labelled : pandas.DataFrame
        The rows with an outcome.
    stratum_units : pandas.Series
        Units of the population by stratum ("all" without strata).
    psu_units : pandas.Series or None
        Units of the population by stratum and primary unit, where primary units are named.
    """

    population: Population
    labelled: pd.DataFrame
    stratum_units: pd.Series
    psu_units: pd.Series | None


def split_units(
    chunks: Iterable[pd.DataFrame],
    *,
    outcome: str,
    domain: str,
    auxiliary: Sequence[str],
    taxonomy: Sequence[str],
    strata: str | None = None,
    ids: str | None = None,
) -> Units:
    """Take apart a table of all units, given whole or in chunks.

    Memory: one chunk, the labelled rows, and what is known of every domain.
    """
    parts, labelled, counts, clusters = [], [], [], []
    for chunk in chunks:
        need_frame("units", chunk)
        y = numeric_column(chunk, outcome, field="outcome", missing=True)
        parts.append(population(chunk, domain=domain, auxiliary=auxiliary, taxonomy=taxonomy))
        labelled.append(_rows(chunk, np.flatnonzero(~np.isnan(y))))
        if strata is None:
            counts.append(pd.Series({_ALL: len(chunk)}))
        else:
            counts.append(_strata_of(chunk, strata).value_counts())
        if ids is not None:
            need_columns(chunk, [ids], field="ids")
            key = _strata_of(chunk, strata)
            clusters.append(_psu_sizes(key, chunk[ids]))
    if not parts:
        raise InputError(
            "there are no units", code="empty_table", field="units", expected="rows", got="0 rows"
        )
    psu = None
    if clusters:
        psu = pd.concat(clusters).groupby(level=[0, 1]).sum()
    sample = labelled[0] if len(labelled) == 1 else pd.concat(labelled, ignore_index=True)
    if len(sample) == 0:
        raise InputError(
            f"no unit has an outcome in {outcome!r}",
            code="no_labels",
            field="outcome",
            expected="at least one labelled unit",
            got="every value missing",
        )
    total = pd.concat(counts)
    return Units(
        population=combine_populations(parts),
        labelled=sample,
        stratum_units=total.groupby(level=0, observed=True).sum(),
        psu_units=psu,
    )


def _rows(chunk: pd.DataFrame, rows: np.ndarray) -> pd.DataFrame:
    """Some rows of a table, numbered anew.

    DataFrame.take would make the whole index of the table, as large as a column of it.
    """
    return pd.DataFrame({name: chunk[name].array.take(rows) for name in chunk.columns})


def _strata_of(chunk: pd.DataFrame, strata: str | None) -> pd.Series:
    if strata is None:
        return pd.Series(_ALL, index=chunk.index)
    return key_column(chunk, strata, field="strata")


@dataclass(frozen=True, eq=False)
class AssumedDesign:
    """Weights and corrections that follow from knowing all units, and what was assumed."""

    labelled: pd.DataFrame
    weights: str
    fpc: str
    words: str


def assume_weights(units: Units, *, strata: str | None, ids: str | None) -> AssumedDesign:
    """Weights N_h/n_h inside strata (N/n without), by primary units where these are named.

    Raises
    ------
    InputError
        Where primary units are named but were labelled in part only: then the weights do not
        follow from the counts.
    """
    if ids is not None:
        assert units.psu_units is not None
        inside = _psu_sizes(_strata_of(units.labelled, strata), units.labelled[ids])
        _need_whole_clusters(inside, units.psu_units, ids)
        sampled, total = inside.groupby(level=0).size(), units.psu_units.groupby(level=0).size()
    elif strata is not None:
        total, sampled = units.stratum_units, units.labelled[strata].value_counts()
    else:
        total, sampled = units.stratum_units, pd.Series({_ALL: len(units.labelled)})
    total = total.astype(np.float64)
    ratio = total / sampled.reindex(total.index)
    missing = total.index[ratio.isna().to_numpy()]
    if len(missing):
        raise InputError(
            f"no unit is labelled in {len(missing)} strata: {listed(missing)}",
            code="unsampled_stratum",
            field="strata",
            expected="a labelled unit in every stratum of the population",
            got=f"none in {listed(missing)}",
            hint="Join strata: what was never sampled cannot be estimated from the design.",
        )
    if strata is None:
        columns = {_WEIGHT: float(ratio.iloc[0]), _FPC: float(total.iloc[0])}
    else:
        key = units.labelled[strata]
        columns = {_WEIGHT: key.map(ratio).astype(float), _FPC: key.map(total).astype(float)}
    what = "units" if ids is None else "primary units"
    where = f"N_h/n_h of {what} inside the strata of {strata!r}" if strata else f"N/n of {what}"
    low, high = ratio.min(), ratio.max()
    words = (
        f"no weights given: taken as {where} "
        f"({low:.4g}{'' if low == high else f' to {high:.4g}'}), "
        "with finite population correction"
    )
    return AssumedDesign(units.labelled.assign(**columns), _WEIGHT, _FPC, words)


def _psu_sizes(stratum: pd.Series, psu: pd.Series) -> pd.Series:
    pairs = pd.DataFrame({"stratum": stratum.to_numpy(), "psu": psu.to_numpy()})
    return pairs.groupby(["stratum", "psu"], observed=True).size()


def _need_whole_clusters(labelled: pd.Series, units: pd.Series, ids: str) -> None:
    """Weights follow from counts of primary units only where sampled ones were labelled whole."""
    part = labelled[labelled < units.reindex(labelled.index)]
    if len(part):
        raise InputError(
            f"{len(part)} primary units were labelled in part: weights do not follow from counts",
            code="clusters_in_part",
            field="weights",
            expected="a column of weights, or sampled primary units labelled whole",
            got=f"{ids} {listed(label[1] for label in part.index)}",
        )
