"""Finite populations whose truth is known: simulated ones, and complete tables of a user's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import key_column, need_frame, numeric_column
from pybridge._options import whole_number
from pybridge.errors import InputError
from pybridge.simulate.auxiliaries import Auxiliary, auxiliary_values
from pybridge.simulate.outcomes import Outcome, domain_means, outcome_values
from pybridge.tables.labels import encode
from pybridge.tables.population import Population, population
from pybridge.tails._streams import stream


@dataclass(frozen=True, eq=False)
class FinitePopulation:
    """Every unit of a population with its outcome, so that estimates have a truth to meet.

    It holds the units, as `SurveyDesign` holds its sample; records of results do not.

    Attributes
    ----------
    units : pandas.DataFrame
        One row a unit, N rows.
    outcome, domain : str
        Columns.
    known : Population
        What an analyst would know: sizes, auxiliary means, taxonomy.
    truth : numpy.ndarray
        Shape (m,), the domain means of the outcome in the order of ``known.domains``.
    code : numpy.ndarray
        Shape (N,), the domain of every unit as a position in ``known.domains``.
    """

    units: pd.DataFrame
    outcome: str
    domain: str
    known: Population
    truth: np.ndarray
    code: np.ndarray

    @property
    def auxiliary(self) -> tuple[str, ...]:
        """Names of the auxiliary variables."""
        return self.known.auxiliary

    @property
    def taxonomy(self) -> tuple[str, ...]:
        """Levels above the domain, coarse to fine."""
        return self.known.taxonomy

    @property
    def n_units(self) -> int:
        """N."""
        return len(self.code)

    def with_column(self, name: str, values: Any) -> FinitePopulation:
        """The same population with one more column of units (odds, sizes, strata), shape (N,).

        Raises
        ------
        InputError
            ``name_taken``, for columns that the truth and the known means were made from.
        """
        if name in (self.outcome, self.domain, *self.auxiliary, *self.taxonomy):
            raise InputError(
                f"the column {name!r} is a part of the population",
                code="name_taken",
                field="name",
                expected="a new name",
                got=name,
                hint="Change the table of units, and make a population of it by finite_population.",
            )
        return replace(self, units=self.units.assign(**{name: values}))

    def correlations(self) -> pd.DataFrame:
        """Each auxiliary variable's correlation with the outcome, of units and of domain means.

        Returns
        -------
        pandas.DataFrame
            auxiliary, unit_correlation, domain_correlation (domains count alike), slope (of the
            outcome on the auxiliary variable, over all units).
        """
        y = self.units[self.outcome].to_numpy(dtype=np.float64)
        rows = []
        for name, means in zip(self.auxiliary, self.known.auxiliary_means.T):
            f = self.units[name].to_numpy(dtype=np.float64)
            unit = float(np.corrcoef(y, f)[0, 1])
            rows.append(
                {
                    "auxiliary": name,
                    "unit_correlation": unit,
                    "domain_correlation": float(np.corrcoef(self.truth, means)[0, 1]),
                    "slope": unit * float(y.std() / f.std()),
                }
            )
        return pd.DataFrame(
            rows, columns=["auxiliary", "unit_correlation", "domain_correlation", "slope"]
        )

    def summary(self) -> str:
        """What there is, and how good the auxiliary variables are."""
        lines = [self.known.summary(), f"outcome {self.outcome}: mean {self._mean():.4g}"]
        for row in self.correlations().itertuples(index=False):
            lines.append(
                f"{row.auxiliary}: correlation {row.unit_correlation:.2f} of units, "
                f"{row.domain_correlation:.2f} of domain means"
            )
        return "\n".join(lines)

    def _mean(self) -> float:
        return float(np.average(self.truth, weights=self.known.size))

    def __repr__(self) -> str:
        return f"FinitePopulation: {self.summary()}"


def finite_population(
    units: pd.DataFrame,
    *,
    outcome: str,
    domain: str,
    auxiliary: str | Sequence[str] | None = None,
    taxonomy: str | Sequence[str] | None = None,
) -> FinitePopulation:
    """A complete table of units as a population to sample from.

    Parameters
    ----------
    units : pandas.DataFrame
        One row a unit, the outcome known on every one.
    outcome, domain : str
        Columns.
    auxiliary, taxonomy : str or list of str, optional
        As in `pybridge.population`.

    Raises
    ------
    InputError
        Missing columns or values, and all that `pybridge.population` raises.
    """
    need_frame("units", units)
    y = numeric_column(units, outcome, field="outcome")
    known = population(units, domain=domain, auxiliary=auxiliary, taxonomy=taxonomy)
    code = np.asarray(encode(key_column(units, domain, field="domain")).codes, dtype=np.intp)
    truth = np.bincount(code, weights=y, minlength=known.n_domains) / known.size
    return FinitePopulation(units.reset_index(drop=True), outcome, domain, known, truth, code)


def _need_kinds(sizes: Any, outcome: Any, auxiliaries: Any) -> None:
    """Sizes, an outcome and auxiliary variables are what they should be, or InputError."""
    many = auxiliaries if isinstance(auxiliaries, (list, tuple)) else [None]
    for field, given, good, expected in (
        ("sizes", sizes, isinstance(sizes, Iterable), "one whole number a domain"),
        ("outcome", outcome, isinstance(outcome, Outcome), "pybridge.simulate.Outcome(...)"),
        (
            "auxiliaries",
            auxiliaries,
            all(isinstance(item, Auxiliary) for item in many),
            "a list of pybridge.simulate.Auxiliary(...)",
        ),
    ):
        if not good:
            raise InputError(
                f"{field} must be {expected}",
                code="wrong_type",
                field=field,
                expected=expected,
                got=type(given).__name__,
            )


def simulate_population(
    sizes: Sequence[int] | np.ndarray,
    *,
    labels: Sequence[str] | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    outcome: Outcome = Outcome(),
    auxiliaries: Sequence[Auxiliary] = (),
    cluster_size: int | None = None,
    seed: int = 1,
) -> FinitePopulation:
    """A population with stated features, the same for the same seed.

    Parameters
    ----------
    sizes : (m,) int
        Units of every domain.
    labels : (m,) str, optional
        Names of the domains; ``d000``, ``d001``, ... by default.
    groups : mapping of str to (m,) str, optional
        For each level above the domain, coarse to fine, the group of every domain.
    outcome : Outcome
        Its kind, mean and the standard deviations of its domain means.
    auxiliaries : sequence of Auxiliary
        Each with the correlations that it shall have.
    cluster_size : int, optional
        Adds a column ``cluster``: clusters of this many units on average, which cut across domains
        (users with several requests). ``Outcome.cluster_share`` is their part of the spread.
    seed : int

    Returns
    -------
    FinitePopulation
        Columns ``y``, ``domain``, the levels, the auxiliary variables, and ``cluster`` if asked.

    Raises
    ------
    InputError
        Sizes that are no counts, labels or groups of another length, correlations that the outcome
        does not allow.
    """
    _need_kinds(sizes, outcome, auxiliaries)
    counts = np.array([whole_number("sizes", size, least=1) for size in sizes], dtype=np.intp)
    m = len(counts)
    names = _labels("labels", labels or [f"d{i:03d}" for i in range(m)], m)
    levels = {level: _labels(f"groups[{level!r}]", of, m) for level, of in (groups or {}).items()}
    if not m or len(set(names.tolist())) < m:
        raise InputError(
            "domains need a size and a name each, all different",
            code="duplicate_domain",
            field="labels",
            expected="m different names for m >= 1 sizes",
            got=f"{m} sizes, {len(set(names.tolist()))} names",
        )
    code = np.repeat(np.arange(m), counts)
    mean = domain_means(outcome, levels, m, seed)
    cluster = None
    if cluster_size is not None:
        n_clusters = max(1, len(code) // whole_number("cluster_size", cluster_size, least=1))
        cluster = stream(seed, "clusters").integers(n_clusters, size=len(code))
    y = outcome_values(outcome, mean=mean, sizes=counts, cluster=cluster, seed=seed)
    table: dict[str, np.ndarray] = {level: of[code] for level, of in levels.items()}
    table.update(domain=names[code], y=y)
    for item in auxiliaries:
        table[item.name] = auxiliary_values(item, y=y, sizes=counts, seed=seed)
    if cluster is not None:
        table["cluster"] = cluster
    return finite_population(
        pd.DataFrame(table),
        outcome="y",
        domain="domain",
        auxiliary=[item.name for item in auxiliaries],
        taxonomy=list(levels),
    )


def _labels(field: str, values: Sequence[str], m: int) -> np.ndarray:
    found = np.array(list(values), dtype=object)
    if found.shape != (m,):
        raise InputError(
            f"{field} needs one label a domain",
            code="wrong_length",
            field=field,
            expected=f"{m} labels",
            got=f"{len(found)}",
        )
    return found
