"""The area table: one row a domain, with its direct estimate, sampling variance and covariates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from pybridge._checks import (
    collinear_columns,
    key_column,
    listed,
    need_frame,
    numeric_column,
)
from pybridge._record import Record
from pybridge.errors import InputError
from pybridge.tables.area_formula import area_covariates, parse_area_formula
from pybridge.tables.labels import need_one_reading, refuse_unreadable


@dataclass(frozen=True, eq=False, repr=False)
class AreaTable(Record):
    """What an area-level model takes, checked.

    Attributes
    ----------
    formula : str
        The model, in the user's words.
    outcome, variance_name, domain_name : str
        Columns of the direct estimate, its sampling variance, and the domain.
    domains : numpy.ndarray
        Shape (m,), object, labels in the order of the table.
    estimate : numpy.ndarray
        Shape (m,), direct estimates; NaN where a domain has none.
    variance : numpy.ndarray
        Shape (m,), sampling variances; may be NaN where there is no estimate.
    covariates : numpy.ndarray
        Shape (m, p), the design matrix.
    covariate_names : tuple of str
        p names.
    n_labelled : numpy.ndarray or None
        Shape (m,), labelled units of each domain, where the table has a column of that name.
    times : numpy.ndarray or None
        Shape (m,), object, the instants, where a domain has a row for each.
    """

    formula: str
    outcome: str
    variance_name: str
    domain_name: str
    domains: np.ndarray
    estimate: np.ndarray
    variance: np.ndarray
    covariates: np.ndarray
    covariate_names: tuple[str, ...]
    n_labelled: np.ndarray | None = None
    times: np.ndarray | None = None

    @property
    def sampled(self) -> np.ndarray:
        """Shape (m,), bool: domains with a direct estimate."""
        return ~np.isnan(self.estimate)

    def to_frame(self) -> pd.DataFrame:
        """Domain, estimate, variance and the columns of the design matrix."""
        table = {
            self.domain_name: self.domains,
            self.outcome: self.estimate,
            self.variance_name: self.variance,
        }
        for j, name in enumerate(self.covariate_names):
            table[name] = self.covariates[:, j]
        return pd.DataFrame(table)

    def summary(self) -> str:
        """Two lines: how many domains, and the model."""
        n = int(self.sampled.sum())
        return (
            f"{len(self.domains)} domains, {n} with a direct estimate\n"
            f"{self.formula}; {len(self.covariate_names)} coefficients"
        )


def area_table(
    formula: str,
    table: pd.DataFrame,
    *,
    variance: str = "variance",
    domain: str | None = None,
    time: str | None = None,
) -> AreaTable:
    """Check a table of domains against the formula of an area-level model.

    Parameters
    ----------
    formula : str
        A patsy formula, ``"estimate ~ f"``: on the left the column of direct estimates, empty
        where a domain has none.
    table : pandas.DataFrame
        One row a domain.
    variance : str
        Column of the sampling variances (squared standard errors).
    domain : str, optional
        Column of the domains' labels. Without it the column ``domain`` where there is one, else
        the number of the row, from 0.
    time : str, optional
        Column of the instants: one row a domain and instant.

    Raises
    ------
    InputError
        Columns missing or not numeric, duplicated domains, domains that read the same (1 beside
        "1"), variances that are negative, missing
        beside an estimate, infinite or all 0, covariates that are missing, constant or collinear,
        categories without data, no more domains than coefficients.
    """
    need_frame("area", table)
    parsed = parse_area_formula(formula, table)
    domain_name, domains = _domains(table, domain, time)
    estimate = numeric_column(table, parsed.outcome, field="formula", missing=True)
    sampling = numeric_column(table, variance, field="variance", missing=True)
    sampled = ~np.isnan(estimate)
    check_variances(sampling[sampled], labels=domains[sampled])
    check_range(estimate[sampled], sampling[sampled], parsed.outcome, labels=domains[sampled])
    names, covariates = area_covariates(parsed, table, sampled=sampled, labels=domains)
    check_counts(n_sampled=int(sampled.sum()), n_coefficients=len(names))
    collinear_columns(covariates[sampled], names=names, field="formula")
    labelled = None
    if "n_labelled" in table.columns:
        labelled = numeric_column(table, "n_labelled", field="area", missing=True)
    return AreaTable(
        formula=formula,
        outcome=parsed.outcome,
        variance_name=variance,
        domain_name=domain_name,
        domains=domains,
        estimate=estimate,
        variance=sampling,
        covariates=covariates,
        covariate_names=names,
        n_labelled=labelled,
        times=None if time is None else table[time].to_numpy(dtype=object),
    )


def _domains(table: pd.DataFrame, domain: str | None, time: str | None) -> tuple[str, np.ndarray]:
    if domain is None:
        if "domain" not in table.columns:
            return "domain", np.arange(len(table)).astype(object)
        domain = "domain"
    key = key_column(table, domain, field="domain")
    refuse_unreadable(key.to_numpy(dtype=object), domain)
    need_one_reading(key)
    again = key.duplicated()
    if time is not None:
        instant = key_column(table, time, field="time")
        need_one_reading(instant)
        again = pd.DataFrame({"domain": key, "time": instant}).duplicated()
    twice = key[again].unique()
    if len(twice):
        raise InputError(
            f"the area table has domains more than once: {listed(twice)}",
            code="duplicate_domain",
            field="domain",
            expected="one row a domain" + ("" if time is None else " and instant"),
            got=listed(twice),
            hint="Domains are independent in the model: a repeated row would count twice.",
        )
    return domain, key.to_numpy(dtype=object)


def check_counts(*, n_sampled: int, n_coefficients: int) -> None:
    """More domains with a direct estimate than coefficients, or InputError."""
    if n_coefficients < 1:
        raise InputError(
            "the model has no coefficient",
            code="no_covariates",
            field="formula",
            expected="at least an intercept",
            got="0 columns",
        )
    if n_sampled <= n_coefficients:
        raise InputError(
            "too few domains: nothing is left to estimate the variance between them from",
            code="too_few_domains",
            field="formula",
            expected=f"more than {n_coefficients} domains with a direct estimate",
            got=f"{n_sampled} domains with a direct estimate, {n_coefficients} coefficients",
            hint="Leave out covariates, or use the direct estimates.",
        )


def check_variances(variance: np.ndarray, *, labels: np.ndarray | None = None) -> None:
    """Sampling variances of the domains with an estimate: finite, not negative, not all 0.

    Parameters
    ----------
    variance : numpy.ndarray
        Shape (m,).
    labels : numpy.ndarray, optional
        Shape (m,), for messages; row numbers otherwise.
    """
    names = np.arange(len(variance)) if labels is None else labels
    for bad, code, message in (
        (np.isnan(variance), "missing_variance", "is missing beside a direct estimate"),
        (np.isinf(variance), "infinite_variance", "is infinite"),
        (variance < 0, "negative_variance", "is negative"),
    ):
        if bad.any():
            raise InputError(
                f"the sampling variance of {int(bad.sum())} domains {message}",
                code=code,
                field="variance",
                expected="a finite number, 0 or greater, beside every direct estimate",
                got=f"domains {listed(names[bad])}",
            )
    _check_sizes(variance, names)
    if len(variance) and not (variance > 0).any():
        raise InputError(
            "all sampling variances are 0: there is nothing to smooth",
            code="all_variances_zero",
            field="variance",
            expected="variances (squared standard errors) greater than 0",
            got=f"{len(variance)} zeros",
            hint="Use variance='smoothed' of the direct estimators where outcomes are constant.",
        )


# Sizes whose squares, weighted and summed, neither overflow nor vanish; how far apart variances,
# or estimates and standard errors, may lie for anything to be left of the smaller ones.
_LARGEST, _FURTHEST = 1e60, 1e40


def check_range(
    estimate: np.ndarray, variance: np.ndarray, name: str, *, labels: np.ndarray
) -> None:
    """Estimates (n,) of a size that can be computed with beside their variances, or InputError."""
    if not (variance > 0).any():
        return
    typical = float(np.sqrt(np.median(variance[variance > 0])))
    most = min(_LARGEST, _FURTHEST * typical)
    wild = np.abs(estimate) > most
    if wild.any():
        raise InputError(
            f"estimates in {name!r} are too large to compute with",
            code="out_of_range",
            field="formula",
            expected=f"at most {most:g} in size",
            got=f"domains {listed(labels[wild])}",
            hint="Choose another unit of measurement, or look at the variances.",
        )


def _check_sizes(variance: np.ndarray, names: np.ndarray) -> None:
    """Variances (n,) that can be computed with, not too far apart; 0 is one."""
    positive = variance[variance > 0]
    if not positive.size:
        return
    typical = float(np.median(positive))
    low = max(1.0 / _LARGEST**2, typical / _FURTHEST)
    high = min(_LARGEST**2, typical * _FURTHEST)
    wild = (variance > high) | ((variance > 0) & (variance < low))
    if wild.any():
        # Where all of them are too small or too large there is no range beside the others.
        least, most = (low, high) if low < high else (1.0 / _LARGEST**2, _LARGEST**2)
        bounds = f"{least:.3g} to {most:.3g}"
        raise InputError(
            f"the sampling variance of {int(wild.sum())} domains is out of the range that can be "
            "computed with beside the others",
            code="out_of_range",
            field="variance",
            expected=f"0, or {bounds}",
            got=f"domains {listed(names[wild])}",
            hint="A domain that says nothing has an empty estimate; one observed in full has "
            "variance 0.",
        )
