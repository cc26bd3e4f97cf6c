"""What was asked of the taxonomy model, and what an engine answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pybridge._record import Record
from pybridge.smoothing._taxonomy_levels import TaxonomyLevels
from pybridge.smoothing._taxonomy_prior import TaxonomyPrior
from pybridge.smoothing._taxonomy_record import TaxonomyEstimate, TaxonomyPosterior
from pybridge.tables.area import AreaTable


@dataclass(frozen=True, eq=False, repr=False)
class TaxonomySpec(Record):
    """The request.

    Attributes
    ----------
    engine, method : str
        In the words of `taxonomy_model`.
    level : float
    seed : int or None
    prior : TaxonomyPrior or None
        As given; None for the default and for likelihood methods.
    options : mapping
        The engine's own options, completed with their defaults.
    """

    engine: str
    method: str
    level: float = 0.95
    seed: int | None = None
    prior: TaxonomyPrior | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def summary(self) -> str:
        """One line."""
        options = ", ".join(f"{name}={value}" for name, value in self.options.items())
        return f"engine {self.engine}, method {self.method}" + (f", {options}" if options else "")


@dataclass(frozen=True, eq=False, repr=False)
class TaxonomyAnswer(Record):
    """What an engine gave.

    Attributes
    ----------
    numbers : TaxonomyPosterior or TaxonomyEstimate
    engine_status : str
        The engine's own verdict.
    conditions : tuple of str
        What the engine said, and what was done about it.
    versions : mapping of str
        Of R and its packages, where used.
    """

    numbers: TaxonomyPosterior | TaxonomyEstimate
    engine_status: str = "converged"
    conditions: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


def arrays(area: AreaTable, levels: TaxonomyLevels) -> dict[str, Any]:
    """The keyword arguments that the numeric functions take."""
    return {
        "estimate": area.estimate,
        "variance": np.where(area.sampled, area.variance, np.nan),
        "covariates": area.covariates,
        "levels": list(levels.codes),
    }
