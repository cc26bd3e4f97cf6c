"""What is known of the whole population: sizes of domains, auxiliary means, the taxonomy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from pybridge._checks import (
    float_column,
    key_column,
    listed,
    name_list,
    need_columns,
    need_frame,
    need_range,
    numeric_column,
)
from pybridge._record import Record
from pybridge.errors import InputError
from pybridge.tables.formula import design_columns
from pybridge.tables.labels import encode, parents

# Rows handled at once: the working memory of a pass is that of one block, whatever the table.
BLOCK = 1 << 17


@dataclass(frozen=True, eq=False, repr=False)
class Population(Record):
    """The finite population, at the level of domains.

    Attributes
    ----------
    domain : str
        Name of the domain column.
    domains : numpy.ndarray
        Shape (m,), object, the labels of the domains, in the order of every result.
    size : numpy.ndarray
        Shape (m,), the number of units N_i.
    auxiliary : tuple of str
        Names of the q auxiliary variables (columns of the formula where one was given).
    auxiliary_means : numpy.ndarray
        Shape (m, q), the means F̄_i over all units of the domain.
    taxonomy : tuple of str
        The levels above the domain, coarse to fine.
    groups : mapping of str to numpy.ndarray
        For each level the group of every domain, shape (m,).
    formula : str or None
        The formula that made the auxiliary variables.
    categories : mapping of str to tuple
        Categories of the formula's categorical variables.
    """

    domain: str
    domains: np.ndarray
    size: np.ndarray
    auxiliary: tuple[str, ...]
    auxiliary_means: np.ndarray
    taxonomy: tuple[str, ...] = ()
    groups: Mapping[str, np.ndarray] = field(default_factory=dict)
    formula: str | None = None
    categories: Mapping[str, tuple[object, ...]] = field(default_factory=dict)

    @property
    def n_domains(self) -> int:
        """m, the number of domains."""
        return len(self.domains)

    @property
    def n_units(self) -> float:
        """N, the number of units in the population."""
        return float(self.size.sum())

    def group_codes(self, level: str) -> tuple[np.ndarray, np.ndarray]:
        """Codes (m,) of the domains' groups at one level of the taxonomy, and the groups' labels.

        The domain itself is a level too, each domain its own group.
        """
        if level == self.domain:
            return np.arange(self.n_domains), self.domains
        if level not in self.taxonomy:
            raise InputError(
                f"{level!r} is not a level of the taxonomy",
                code="unknown_level",
                field="level",
                expected=listed((*self.taxonomy, self.domain)),
                got=level,
            )
        encoded = encode(pd.Series(self.groups[level], dtype=object))
        return np.asarray(encoded.codes, dtype=np.intp), encoded.labels

    def to_frame(self) -> pd.DataFrame:
        """One row a domain: its groups, size and auxiliary means.

        Where columns have one name, the auxiliary variable stands, then the domain, then the level.
        """
        table: dict[str, np.ndarray] = {"size": self.size}
        named = [(level, self.groups[level]) for level in self.taxonomy]
        named.append((self.domain, self.domains))
        named += zip(self.auxiliary, self.auxiliary_means.T)
        table.update(named)
        order = [*self.taxonomy, self.domain, "size", *self.auxiliary]
        return pd.DataFrame({name: table[name] for name in dict.fromkeys(order)})

    def summary(self) -> str:
        """A few lines: how many domains, their sizes, what is known of them."""
        small, large = self.size.min(), self.size.max()
        lines = [
            f"Population of {self.n_units:,.0f} units in {self.n_domains} domains "
            f"({self.domain}), {small:,.0f} to {large:,.0f} units each",
            f"auxiliary: {', '.join(self.auxiliary) or 'none'}",
        ]
        if self.taxonomy:
            lines.append("taxonomy: " + " > ".join((*self.taxonomy, self.domain)))
        return "\n".join(lines)


def population(
    table: pd.DataFrame,
    *,
    domain: str,
    auxiliary: str | Sequence[str] | None = None,
    formula: str | None = None,
    taxonomy: str | Sequence[str] | None = None,
    size: str | None = None,
    auxiliary_means: str | Sequence[str] | None = None,
) -> Population:
    """Describe the population, from unit records or from a table of domain totals.

    Parameters
    ----------
    table : pandas.DataFrame
        One row a unit of the population; or, with ``size``, one row a domain.
    domain : str
        Column of the domain.
    auxiliary : str or list of str, optional
        Unit records: columns known on every unit, whose domain means enter PPI, GREG and the
        area-level models.
    formula : str, optional
        Unit records: a patsy formula instead of ``auxiliary``, for example ``"~ f + C(g)"``.
    taxonomy : str or list of str, optional
        Columns of the levels above the domain, coarse to fine. The domain itself may close the
        list.
    size : str, optional
        Totals: column of the number of units N_i. Its presence says that rows are domains.
    auxiliary_means : str or list of str, optional
        Totals: columns of the auxiliary means, under the names that the sample uses.

    Returns
    -------
    Population
        Domains sorted by label (unit records) or as in the table (totals).

    Raises
    ------
    InputError
        Missing columns or values, duplicated domains, sizes that are not positive, a taxonomy
        that is not nested.
    """
    need_frame("population", table)
    levels = _levels_above(name_list("taxonomy", taxonomy), domain)
    need_columns(table, levels, field="taxonomy")
    if size is None:
        if auxiliary_means is not None:
            raise InputError(
                "auxiliary means need the sizes of the domains",
                code="missing_argument",
                field="size",
                expected="the column of the number of units a domain",
                got=None,
            )
        names = name_list("auxiliary", auxiliary)
        return _in_range(_from_units(table, domain, names, formula, levels))
    if auxiliary is not None or formula is not None:
        raise InputError(
            "a table of totals has auxiliary_means, not auxiliary or formula",
            code="conflicting_arguments",
            field="auxiliary",
            expected="auxiliary_means=[...]",
            got=auxiliary or formula,
        )
    means = name_list("auxiliary_means", auxiliary_means)
    return _in_range(_from_totals(table, domain, size, means, levels))


def _in_range(found: Population) -> Population:
    need_range(found.size, "size", field="size")
    for name, means in zip(found.auxiliary, found.auxiliary_means.T):
        need_range(means, name, field="auxiliary")
    return found


def _levels_above(levels: tuple[str, ...], domain: str) -> tuple[str, ...]:
    if domain in levels[:-1]:
        raise InputError(
            "the domain is the finest level of the taxonomy and can only stand last",
            code="taxonomy_order",
            field="taxonomy",
            expected=f"levels coarse to fine, then {domain!r}",
            got=listed(levels),
        )
    return levels[:-1] if levels and levels[-1] == domain else levels


def _from_units(
    table: pd.DataFrame,
    domain: str,
    auxiliary: tuple[str, ...],
    formula: str | None,
    levels: tuple[str, ...],
) -> Population:
    encoded = encode(key_column(table, domain, field="domain"))
    m = len(encoded.labels)
    categories: dict[str, tuple[object, ...]] = {}
    if formula is not None:
        if auxiliary:
            raise InputError(
                "give auxiliary or formula, not both",
                code="conflicting_arguments",
                field="formula",
                got=formula,
            )
        auxiliary, values, categories = design_columns(formula, table)
        columns = [values[:, j] for j in range(values.shape[1])]
    else:
        columns = [float_column(table, name, field="auxiliary") for name in auxiliary]
    size = encoded.counts.astype(np.float64)
    totals = _domain_totals(encoded.codes, columns, m)
    if formula is None and not np.isfinite(totals).all():  # a value is missing or infinite
        columns = [numeric_column(table, name, field="auxiliary") for name in auxiliary]
    return Population(
        domain=domain,
        domains=encoded.labels,
        size=size,
        auxiliary=auxiliary,
        auxiliary_means=totals / size[:, None],
        taxonomy=levels,
        groups=parents(table, encoded.codes, m, levels),
        formula=formula,
        categories=categories,
    )


def _domain_totals(codes: np.ndarray, columns: list[np.ndarray], m: int) -> np.ndarray:
    """Totals (m, q), block by block so that the working memory stays small."""
    totals = np.zeros((m, len(columns)))
    for start in range(0, len(codes), BLOCK):
        part = slice(start, start + BLOCK)
        code = np.asarray(codes[part], dtype=np.intp)
        for j, column in enumerate(columns):
            totals[:, j] += np.bincount(code, weights=column[part], minlength=m)
    return totals


def _from_totals(
    table: pd.DataFrame,
    domain: str,
    size: str,
    means: tuple[str, ...],
    levels: tuple[str, ...],
) -> Population:
    key = key_column(table, domain, field="domain")
    if key.duplicated().any():
        twice = key[key.duplicated()].unique()
        raise InputError(
            f"the table of totals has domains more than once: {listed(twice)}",
            code="duplicate_domain",
            field="domain",
            expected="one row a domain",
            got=listed(twice),
        )
    sizes = numeric_column(table, size, field="size")
    if (sizes <= 0).any():
        bad = key[sizes <= 0]
        raise InputError(
            "sizes of domains must be positive",
            code="bad_size",
            field="size",
            expected="at least one unit a domain",
            got=f"domains {listed(bad)}",
        )
    columns = [numeric_column(table, name, field="auxiliary_means") for name in means]
    values = np.column_stack(columns) if columns else np.empty((len(table), 0))
    return Population(
        domain=domain,
        domains=key.to_numpy(dtype=object),
        size=sizes,
        auxiliary=means,
        auxiliary_means=values,
        taxonomy=levels,
        groups=parents(table, np.arange(len(table)), len(table), levels),
    )


def combine_populations(parts: Iterable[Population]) -> Population:
    """One population from descriptions of parts of its units, for tables read in chunks.

    Domains may lie in several parts. The result does not depend on how the units were split, up
    to rounding.

    Raises
    ------
    InputError
        Parts that name different columns, or that put one domain into different groups.
    """
    pieces = list(parts)
    if not pieces:
        raise InputError(
            "there is no part to combine", code="empty_table", field="parts", expected="populations"
        )
    first = pieces[0]
    if len(pieces) == 1:
        return first
    for part in pieces[1:]:
        if (part.domain, part.auxiliary, part.taxonomy, part.formula, part.categories) != (
            first.domain,
            first.auxiliary,
            first.taxonomy,
            first.formula,
            first.categories,
        ):
            raise InputError(
                "the parts describe different columns",
                code="parts_differ",
                field="parts",
                expected="one domain, one taxonomy, the same auxiliary variables",
                got=part.summary(),
            )
    labels = np.concatenate([part.domains for part in pieces])
    encoded = encode(pd.Series(labels, name=first.domain, dtype=object))
    codes, m = np.asarray(encoded.codes, dtype=np.intp), len(encoded.labels)
    sizes = np.concatenate([part.size for part in pieces])
    size = np.bincount(codes, weights=sizes, minlength=m)
    values = np.concatenate([part.auxiliary_means for part in pieces])
    means = np.empty((m, values.shape[1]))
    for j in range(values.shape[1]):
        means[:, j] = np.bincount(codes, weights=sizes * values[:, j], minlength=m) / size
    groups = {
        level: pd.Series(np.concatenate([part.groups[level] for part in pieces]), dtype=object)
        for level in first.taxonomy
    }
    return replace(
        first,
        domains=encoded.labels,
        size=size,
        auxiliary_means=means,
        groups=parents(pd.DataFrame(groups), codes, m, first.taxonomy),
    )
