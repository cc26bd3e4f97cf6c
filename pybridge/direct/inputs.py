"""From design and population to cells: what every direct estimator starts with."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pybridge._options import need_kind
from pybridge._record import Record
from pybridge.design.cell_pass import make_cells, plan_pass, unit_arrays
from pybridge.design.cells import Cells
from pybridge.design.folds import Folds, single_fold
from pybridge.design.survey_design import SurveyDesign
from pybridge.design.variance import DomainMoments, domain_moments
from pybridge.errors import InputError
from pybridge.tables.population import Population
from pybridge.tables.sample import sample_columns


@dataclass(frozen=True, eq=False, repr=False)
class DomainSample(Record):
    """The sample after the pass: cells, and the population they estimate.

    Attributes
    ----------
    population : Population
    cells : Cells
    whole : DomainMoments
        Moments of the whole sample (R = 1).
    outcome : str
    design : str
        The design in words.
    """

    population: Population
    cells: Cells
    whole: DomainMoments
    outcome: str
    design: str

    def summary(self) -> str:
        """Two lines."""
        return f"{self.design}\n{self.population.summary()}"


def domain_sample(
    design: SurveyDesign,
    population: Population,
    *,
    outcome: str = "y",
    domain: str | None = None,
    auxiliary: tuple[str, ...] | None = None,
    folds: Folds | None = None,
) -> DomainSample:
    """Pass over the sample once.

    Parameters
    ----------
    design : SurveyDesign
    population : Population
    outcome : str
        Column of the outcome in the sample.
    domain : str, optional
        Column of the domain in the sample; the population's name for it by default.
    auxiliary : tuple of str, optional
        The auxiliary variables to keep; all that the population knows by default.
    folds : Folds, optional
        For cross-validation; without it the sample is one fold.
    """
    need_design(design, population)
    if auxiliary is not None:
        population = only_auxiliary(population, auxiliary)
    columns = sample_columns(
        design.frame, population, outcome=outcome, domain=domain or population.domain
    )
    split = folds if folds is not None else single_fold(design)
    units = unit_arrays(
        design,
        split,
        domain=columns.domain,
        outcome=columns.outcome,
        auxiliary=columns.auxiliary,
    )
    plan = plan_pass(
        design,
        split,
        units,
        n_domains=population.n_domains,
        variables=(outcome, *population.auxiliary),
    )
    cells = make_cells(units, plan)
    return DomainSample(population, cells, domain_moments(cells), outcome, design.summary())


def need_design(design: object, population: object) -> None:
    """Both arguments of the right kind, told apart where they were swapped."""
    need_kind("design", design, SurveyDesign, "survey_design")
    need_kind("population", population, Population, "population")


def auxiliary_positions(
    population: Population, names: tuple[str, ...], *, field: str = "auxiliary"
) -> tuple[int, ...]:
    """Positions of auxiliary variables among those that the population knows."""
    missing = [name for name in names if name not in population.auxiliary]
    if missing:
        known = ", ".join(population.auxiliary) or "none"
        raise InputError(
            f"the population does not know the auxiliary variable {missing[0]!r}",
            code="unknown_auxiliary",
            field=field,
            expected=f"one of: {known}",
            got=missing[0],
            hint="Name it in pybridge.population(..., auxiliary=[...]).",
        )
    return tuple(population.auxiliary.index(name) for name in names)


def only_auxiliary(population: Population, names: tuple[str, ...]) -> Population:
    """The population with these auxiliary variables only: the sample needs no others then."""
    if names == population.auxiliary or (names and population.formula is not None):
        return population  # a formula makes all of its columns or none
    positions = list(auxiliary_positions(population, names))
    return replace(
        population,
        auxiliary=names,
        auxiliary_means=population.auxiliary_means[:, positions],
        formula=population.formula if names else None,
        categories=population.categories if names else {},
    )
