"""A table of all units, labelled or not: taken apart into population, sample and counts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from pybridge._checks import float_column, key_column, listed, need_frame, numeric_column
from pybridge.errors import InputError
from pybridge.tables.labels import encode, match
from pybridge.tables.population import Population, combine_populations, population

_ALL = "all"
_WEIGHT, _FPC = "weight_assumed_", "fpc_assumed_"


@dataclass(frozen=True, eq=False)
class UnitCounts:
    """How many units of the population lie in each stratum and each primary unit.

    Attributes
    ----------
    strata : numpy.ndarray
        Shape (H,), object, labels ("all" without strata).
    psus : numpy.ndarray
        Shape (U,), object, labels; one that is used in several strata stands once ("all" where no
        primary units are named).
    pair : numpy.ndarray
        Shape (C,), sorted: U × the stratum's code + the primary unit's, for those that occur.
    n : numpy.ndarray
        Shape (C,), units.
    """

    strata: np.ndarray
    psus: np.ndarray
    pair: np.ndarray
    n: np.ndarray

    @property
    def stratum(self) -> np.ndarray:
        """The stratum's code of every pair, shape (C,)."""
        return self.pair // len(self.psus)

    def by_stratum(self, *, primary: bool) -> np.ndarray:
        """Units, or primary units, of every stratum, shape (H,)."""
        count = np.ones(len(self.n)) if primary else self.n
        return np.bincount(self.stratum, weights=count, minlength=len(self.strata))


@dataclass(frozen=True, eq=False)
class Units:
    """What a table of units says.

    Attributes
    ----------
    population : Population
    labelled : pandas.DataFrame
        The rows with an outcome.
    counts : UnitCounts
        Of all units.
    """

    population: Population
    labelled: pd.DataFrame
    counts: UnitCounts


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

    Memory: one chunk, the labelled rows, and what is known of every domain. ``strata`` and ``ids``
    are for the counts, which only `assume_weights` needs.
    """
    parts, labelled, counts = [], [], []
    for chunk in chunks:
        if isinstance(chunk, pd.DataFrame) and not len(chunk):
            continue
        need_frame("units", chunk)
        known = _labelled(chunk, outcome)
        parts.append(population(chunk, domain=domain, auxiliary=auxiliary, taxonomy=taxonomy))
        labelled.append(known)
        counts.append(_count(chunk, strata, ids))
    if not parts:
        raise InputError(
            "there are no units", code="empty_table", field="units", expected="rows", got="0 rows"
        )
    sample = labelled[0] if len(labelled) == 1 else pd.concat(labelled, ignore_index=True)
    if len(sample) == 0:
        raise InputError(
            f"no unit has an outcome in {outcome!r}",
            code="no_labels",
            field="outcome",
            expected="at least one labelled unit",
            got="every value missing",
        )
    return Units(combine_populations(parts), sample, _merged(counts, strata, ids))


def _labelled(chunk: pd.DataFrame, outcome: str) -> pd.DataFrame:
    """Rows with an outcome; only these are looked at for values that no estimator can use."""
    y = float_column(chunk, outcome, field="outcome")
    known = _rows(chunk, np.flatnonzero(y == y))
    with np.errstate(over="ignore", invalid="ignore"):
        usable = math.isfinite(float_column(known, outcome, field="outcome").sum())
    if not usable:
        numeric_column(chunk, outcome, field="outcome", missing=True)
    return known


def _rows(chunk: pd.DataFrame, rows: np.ndarray) -> pd.DataFrame:
    """Some rows of a table, numbered anew.

    DataFrame.take would make the whole index of the table, as large as a column of it.
    """
    taken = {name: chunk[name].array.take(rows) for name in chunk.columns}
    return pd.DataFrame(taken, copy=False)


def _coded(chunk: pd.DataFrame, name: str | None, field: str) -> tuple[np.ndarray, np.ndarray]:
    """Codes of a column and their labels; without a column all rows are alike."""
    if name is None:
        return np.zeros(1, dtype=np.intp), np.array([_ALL], dtype=object)
    encoded = encode(key_column(chunk, name, field=field))
    return np.asarray(encoded.codes, dtype=np.intp), encoded.labels


def _count(chunk: pd.DataFrame, strata: str | None, ids: str | None) -> UnitCounts:
    stratum, strata_labels = _coded(chunk, strata, "strata")
    psu, psu_labels = _coded(chunk, ids, "ids")
    if strata is None and ids is None:
        n = np.array([len(chunk)], dtype=np.intp)
        return UnitCounts(strata_labels, psu_labels, np.zeros(1, dtype=np.intp), n)
    pair, n = _tally(stratum * len(psu_labels) + psu, len(strata_labels) * len(psu_labels))
    return UnitCounts(strata_labels, psu_labels, pair, n)


def _tally(code: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The codes that occur, sorted, and how often; without sorting where the range is short."""
    if size > max(4 * len(code), 1 << 16):
        found, count = np.unique(code, return_counts=True)
        return found, count
    n = np.bincount(code, minlength=size)
    found = np.flatnonzero(n)
    return found, n[found]


def _merged(counts: Sequence[UnitCounts], strata: str | None, ids: str | None) -> UnitCounts:
    """Counts of several chunks together."""
    if len(counts) == 1:
        return counts[0]

    def joined(labels: list[np.ndarray], name: str | None) -> tuple[np.ndarray, np.ndarray]:
        encoded = encode(pd.Series(np.concatenate(labels), name=name, dtype=object))
        return np.asarray(encoded.codes, dtype=np.intp), encoded.labels

    stratum, strata_labels = joined([c.strata[c.stratum] for c in counts], strata)
    psu, psu_labels = joined([c.psus[c.pair % len(c.psus)] for c in counts], ids)
    pair, code = np.unique(stratum * len(psu_labels) + psu, return_inverse=True)
    n = np.bincount(code.reshape(-1), weights=np.concatenate([c.n for c in counts]))
    return UnitCounts(strata_labels, psu_labels, pair, n)


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
    counts, labelled = units.counts, units.labelled
    stratum = np.zeros(1, dtype=np.intp)
    if strata is not None:
        stratum = match(labelled[strata], counts.strata)
    if ids is None:
        sampled = np.bincount(stratum, minlength=len(counts.strata))
        sampled = sampled if strata is not None else sampled * len(labelled)
    else:
        pair = stratum * len(counts.psus) + match(labelled[ids], counts.psus)
        sampled = _whole_clusters(counts, pair, ids)
    total = counts.by_stratum(primary=ids is not None)
    _need_every_stratum(counts.strata[sampled == 0])
    ratio = total / sampled
    weight, fpc = _unused(_WEIGHT, labelled), _unused(_FPC, labelled)
    columns = {
        name: float(values[0]) if strata is None else values[stratum]
        for name, values in ((weight, ratio), (fpc, total))
    }
    what = "units" if ids is None else "primary units"
    where = f"N_h/n_h of {what} inside the strata of {strata!r}" if strata else f"N/n of {what}"
    low, high = ratio.min(), ratio.max()
    words = (
        f"no weights given: taken as {where} "
        f"({low:.4g}{'' if low == high else f' to {high:.4g}'}), "
        "with finite population correction"
    )
    known = labelled.copy(deep=False)
    for name, values in columns.items():
        known[name] = values
    return AssumedDesign(known, weight, fpc, words)


def _unused(name: str, table: pd.DataFrame) -> str:
    """A name that the user's table does not have."""
    while name in table.columns:
        name += "_"
    return name


def _need_every_stratum(empty: np.ndarray) -> None:
    if not len(empty):
        return
    raise InputError(
        f"no unit is labelled in {len(empty)} strata: {listed(empty)}",
        code="unsampled_stratum",
        field="strata",
        expected="a labelled unit in every stratum of the population",
        got=f"none in {listed(empty)}",
        hint="Join strata: what was never sampled cannot be estimated from the design.",
    )


def _whole_clusters(counts: UnitCounts, pair: np.ndarray, ids: str) -> np.ndarray:
    """Primary units labelled in every stratum, shape (H,).

    Weights follow from counts of primary units only where sampled ones were labelled whole.
    """
    found, n = np.unique(pair, return_counts=True)
    part = found[n < counts.n[np.searchsorted(counts.pair, found)]]
    if len(part):
        raise InputError(
            f"{len(part)} primary units were labelled in part: weights do not follow from counts",
            code="clusters_in_part",
            field="weights",
            expected="a column of weights, or sampled primary units labelled whole",
            got=f"{ids} {listed(counts.psus[part % len(counts.psus)])}",
        )
    return np.bincount(found // len(counts.psus), minlength=len(counts.strata))
