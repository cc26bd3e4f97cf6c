"""Sets of auxiliary variables: the candidates with each of them, and how each relates to y."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import listed, name_list
from pybridge._record import Record
from pybridge.direct.inputs import DomainSample, auxiliary_positions
from pybridge.direct.linear import DirectRequest, linear_estimates
from pybridge.direct.slopes import about_mean
from pybridge.errors import FitError, InputError
from pybridge.selection.candidates import Candidate, auxiliary_formula

Sets = Mapping[str, Any] | Sequence[Any]
_NUMBERS = (
    *("slope", "unit_correlation", "domain_correlation", "observed_domain_correlation"),
    *("set_unit_correlation", "set_domain_correlation"),
)


def read_sets(given: Sets | None) -> dict[str, tuple[str, ...]]:
    """Sets by name; sets without one are called by their variables.

    Raises
    ------
    InputError
        No set, an empty one, two of one name.
    """
    if given is None:
        return {}
    named: Iterable[tuple[Any, Any]]
    if isinstance(given, Mapping):
        named = given.items()
    elif isinstance(given, str) or not isinstance(given, Iterable):
        named = [(None, given)]
    else:
        named = [(None, item) for item in given]
    found: dict[str, tuple[str, ...]] = {}
    for name, columns in named:
        names = name_list("auxiliary_sets", columns)
        label = ", ".join(names) if name is None else name
        if not names or not isinstance(label, str) or not label.strip():
            raise InputError(
                "a set of auxiliary variables needs a name and at least one variable",
                code="bad_auxiliary_set",
                field="auxiliary_sets",
                expected="{'judge': ['f'], 'both': ['f', 'g']}",
                got=f"{label!r}: {listed(names) or 'nothing'}",
            )
        if label in found:
            raise InputError(
                f"two sets of auxiliary variables have the name {label!r}",
                code="duplicate_name",
                field="auxiliary_sets",
                expected="names of their own",
                got=label,
            )
        found[label] = names
    if not found:
        raise InputError(
            "there is no set of auxiliary variables",
            code="bad_auxiliary_set",
            field="auxiliary_sets",
            expected="at least one set",
            got="none",
        )
    return found


def with_sets(
    candidates: Sequence[Candidate], sets: Mapping[str, tuple[str, ...]]
) -> tuple[Candidate, ...]:
    """The candidates with every set of auxiliary variables in turn.

    What uses no auxiliary variable stands once. Of the others the set takes the place of the
    unit-level variables, and of the area-level formula where there is one; PPI, which takes one
    variable, is left out for sets of several.
    """
    out = [item for item in candidates if not _uses(item)]
    for label, names in sets.items():
        for item in candidates:
            if not _uses(item) or (item.direct == "ppi" and len(names) != 1):
                continue
            formula = item.area_formula
            out.append(
                replace(
                    item,
                    name=f"{item.name} [{label}]",
                    unit_auxiliary=names if item.unit_auxiliary else (),
                    area_formula=formula if _plain(formula) else auxiliary_formula(names),
                )
            )
    return tuple(out)


def _plain(formula: str | None) -> bool:
    return formula is None or formula.replace(" ", "") in ("~1", "1")


def _uses(item: Candidate) -> bool:
    return item.function is None and (bool(item.unit_auxiliary) or not _plain(item.area_formula))


def sets_of(candidates: Sequence[Candidate]) -> dict[str, tuple[str, ...]]:
    """The sets that candidates name themselves, each once."""
    used = dict.fromkeys(item.unit_auxiliary for item in candidates if item.unit_auxiliary)
    return {", ".join(names): names for names in used}


@dataclass(frozen=True, eq=False, repr=False)
class AuxiliaryRelations(Record):
    """How sets of auxiliary variables are related to the outcome; one entry a set × variable.

    Attributes
    ----------
    sets, variables : tuple of str
        The set, and the variable in it.
    slope : numpy.ndarray
        Shape (V,), GREG's pooled slope, all of the set's variables together.
    unit_correlation : numpy.ndarray
        Weighted correlation with the outcome over units.
    domain_correlation : numpy.ndarray
        Correlation of the domain means of variable and outcome, with the sampling variances taken
        out of the outcome's; NaN where they explain all of its spread.
    observed_domain_correlation : numpy.ndarray
        The same with the direct estimates as they are, which noise draws towards 0.
    set_unit_correlation, set_domain_correlation : numpy.ndarray
        Multiple correlations of the whole set, the same in all of its entries.
    n_domains : int
        Domains with at least two labels, which the domain-level numbers are from.
    direct : str
        The direct estimator that they use.
    """

    sets: tuple[str, ...]
    variables: tuple[str, ...]
    slope: np.ndarray
    unit_correlation: np.ndarray
    domain_correlation: np.ndarray
    observed_domain_correlation: np.ndarray
    set_unit_correlation: np.ndarray
    set_domain_correlation: np.ndarray
    n_domains: int
    direct: str

    def to_frame(self) -> pd.DataFrame:
        """One row a set × variable."""
        table: dict[str, Any] = {"set": self.sets, "auxiliary": self.variables}
        return pd.DataFrame({**table, **{name: getattr(self, name) for name in _NUMBERS}})

    def summary(self) -> str:
        """One line a set × variable."""
        lines = [
            "auxiliary variables: slope on the outcome; correlation over units; over domain means "
            f"({self.direct}, {self.n_domains} domains, sampling error taken out)"
        ]
        for row in self.to_frame().itertuples(index=False):
            name = row.auxiliary if row.set == row.auxiliary else f"{row.set}: {row.auxiliary}"
            lines.append(
                f"  {name}: {row.slope:.3g}; {row.unit_correlation:.2f}; "
                f"{row.domain_correlation:.2f}"
            )
        return "\n".join(lines)


def auxiliary_relations(
    sample: DomainSample,
    sets: Mapping[str, tuple[str, ...]],
    *,
    direct: str,
    estimate: np.ndarray,
    variance: np.ndarray,
) -> AuxiliaryRelations | None:
    """Slope, unit-level and domain-level correlation of every variable of every set.

    Parameters
    ----------
    sample : DomainSample
    sets : mapping of str to tuple of str
    direct : str
        Name of a direct estimator.
    estimate, variance : numpy.ndarray
        Shape (m,), its estimates and variances.

    Returns
    -------
    AuxiliaryRelations or None
        None without a set.
    """
    if not sets:
        return None
    moments, population = sample.whole, sample.population
    products = about_mean(moments.total[0].sum(axis=0), moments.gram[0].sum(axis=0))
    usable = (moments.n[0] >= 2) & np.isfinite(estimate) & np.isfinite(variance)
    rows: list[tuple[Any, ...]] = []
    for label, names in sets.items():
        positions = auxiliary_positions(population, names, field="auxiliary_sets")
        slopes = _slopes(sample, positions)
        places = [2 + j for j in positions]
        means = population.auxiliary_means[usable][:, list(positions)]
        level = _domain_level(estimate[usable], variance[usable], means)
        unit = [_correlation(products, column) for column in places]
        multiple = _multiple(products, places)
        for j, name in enumerate(names):
            rows.append(
                (label, name, slopes[j], unit[j], level[0][j], level[1][j], multiple, level[2])
            )
    labels, variables, *columns = zip(*rows)
    numbers: Any = {
        field: np.array(column, dtype=np.float64) for field, column in zip(_NUMBERS, columns)
    }
    return AuxiliaryRelations(
        sets=labels, variables=variables, n_domains=int(usable.sum()), direct=direct, **numbers
    )


def _slopes(sample: DomainSample, positions: tuple[int, ...]) -> np.ndarray:
    """GREG's pooled slopes (a,); NaN where they do not exist."""
    population = sample.population
    try:
        found = linear_estimates(
            DirectRequest("greg", positions),
            sample.whole,
            size=population.size,
            auxiliary_means=population.auxiliary_means,
            names=population.auxiliary,
        )
    except (FitError, InputError):
        return np.full(len(positions), np.nan)
    return np.asarray(found.coefficients[0, 0, 1:])


def _correlation(products: np.ndarray, column: int) -> float:
    length = products[1, 1] * products[column, column]
    return float(products[1, column] / np.sqrt(length)) if length > 0 else float("nan")


def _multiple(products: np.ndarray, columns: list[int]) -> float:
    """Multiple correlation of y with the columns."""
    if not products[1, 1] > 0:
        return float("nan")
    inner, own = products[np.ix_(columns, columns)], products[columns, 1]
    explained = own @ np.linalg.lstsq(inner, own, rcond=None)[0]
    return float(np.sqrt(np.clip(explained / products[1, 1], 0.0, 1.0)))


def _domain_level(
    estimate: np.ndarray, variance: np.ndarray, means: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Correlations (a,) without and with the sampling error, and the set's multiple one.

    Domains' true means have the variance of the estimates less the mean sampling variance; the
    covariance with the population's auxiliary means is free of it.
    """
    m, count = means.shape
    nothing = np.full(count, np.nan)
    if m < 3:
        return nothing, nothing, float("nan")
    about, z = means - means.mean(axis=0), estimate - estimate.mean()
    spread = float(z @ z) / (m - 1)
    true = spread - float(variance.mean())
    size = np.sqrt((about**2).sum(axis=0) / (m - 1))
    shared = np.where(size > 0, about.T @ z / (m - 1) / np.where(size > 0, size, 1.0), np.nan)
    observed = shared / np.sqrt(spread) if spread > 0 else nothing
    if true <= 0 or m <= count + 1:
        return nothing, observed, float("nan")
    left = z - about @ np.linalg.lstsq(about, z, rcond=None)[0]
    unexplained = max(0.0, float(left @ left) / (m - count - 1) - float(variance.mean()))
    multiple = float(np.sqrt(np.clip(1.0 - unexplained / true, 0.0, 1.0)))
    return np.clip(shared / np.sqrt(true), -1.0, 1.0), observed, multiple
