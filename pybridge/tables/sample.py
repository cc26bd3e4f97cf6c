"""The labelled sample met with the population: aligned arrays, checked once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from pybridge._checks import key_column, listed, need_range, numeric_column
from pybridge.errors import InputError
from pybridge.tables.formula import design_columns
from pybridge.tables.labels import match_domains
from pybridge.tables.population import Population


@dataclass(frozen=True, eq=False)
class SampleColumns:
    """Columns of the n labelled units.

    Attributes
    ----------
    domain : numpy.ndarray
        Shape (n,), positions in ``population.domains``.
    outcome : numpy.ndarray
        Shape (n,).
    auxiliary : tuple of numpy.ndarray
        The population's q auxiliary variables, shape (n,) each.
    """

    domain: np.ndarray
    outcome: np.ndarray
    auxiliary: tuple[np.ndarray, ...]


def sample_columns(
    sample: pd.DataFrame, population: Population, *, outcome: str, domain: str
) -> SampleColumns:
    """Take the columns that estimation needs out of the sample.

    Raises
    ------
    InputError
        Missing columns or values, an outcome that is not numeric, a domain that the population
        does not know, more labelled units than a domain has.
    """
    y = numeric_column(sample, outcome, field="outcome", missing=True)
    if np.isnan(y).any():
        if np.isnan(y).all():
            raise InputError(
                f"no unit has an outcome in {outcome!r}",
                code="no_labels",
                field="outcome",
                expected="at least one labelled unit",
                got="every value missing",
            )
        raise InputError(
            f"{int(np.isnan(y).sum())} units of the sample have no outcome in {outcome!r}",
            code="missing_values",
            field="outcome",
            expected="an outcome on every sampled unit",
            got=f"missing in rows {listed(np.flatnonzero(np.isnan(y)))} (counted from 0)",
            hint="The sample holds the labelled units only; the rest belongs to the population.",
        )
    need_range(y, outcome, field="outcome")
    code = match_domains(
        key_column(sample, domain, field="domain"), population.domains, field="domain"
    )
    count = np.bincount(code, minlength=population.n_domains)
    over = count > population.size + 0.5
    if over.any():
        i = int(np.flatnonzero(over)[0])
        raise InputError(
            f"{int(over.sum())} domains have more sampled units than units",
            code="size_below_sample",
            field="size",
            expected="at least as many units in a domain as were sampled from it",
            got=f"{population.domains[i]}: {count[i]} sampled of {population.size[i]:g}",
        )
    auxiliary = _auxiliary(sample, population)
    for name, values in zip(population.auxiliary, auxiliary):
        need_range(values, name, field="auxiliary")
    return SampleColumns(code, y, auxiliary)


def _auxiliary(sample: pd.DataFrame, population: Population) -> tuple[np.ndarray, ...]:
    if population.formula is None:
        return tuple(
            numeric_column(sample, name, field="auxiliary") for name in population.auxiliary
        )
    names, values, _ = design_columns(population.formula, sample, categories=population.categories)
    if names != population.auxiliary:
        raise InputError(
            "the formula makes other columns of the sample than of the population",
            code="formula_mismatch",
            field="formula",
            expected=listed(population.auxiliary, most=12),
            got=listed(names, most=12),
        )
    return tuple(values[:, j].copy() for j in range(values.shape[1]))
