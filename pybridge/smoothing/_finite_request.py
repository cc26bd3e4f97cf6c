"""Finite domains in `fay_herriot`: the spread c = s²/N of a domain's mean, and the fit with it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import listed, numeric_column
from pybridge.errors import InputError
from pybridge.smoothing._area_fit import AreaFit, domain_statuses
from pybridge.smoothing._finite import finite_domains
from pybridge.smoothing._model_scale import ModelScale
from pybridge.tables.area import AreaTable

SIZE = "size"
NOTE = (
    "finite domains: the mean of a domain's own units differs from the model's by a variance "
    "s²/N, which is counted"
)


def finite_spread(
    finite_population: Any,
    element_variance: Any,
    rows: pd.DataFrame,
    table: AreaTable,
    *,
    legal: bool,
) -> np.ndarray | None:
    """c = s²/N (m,), or None where finite domains are not asked for.

    Parameters
    ----------
    finite_population : None, bool or str
        The column of the domains' sizes N; True for ``size``.
    element_variance : None, str or float
        s², a column or one number. By default from the sampling variances, as those of simple
        random samples within the domains: s² = d n/(1 − n/N), pooled over the degrees of freedom
        n − 1 where a domain has no estimate or was observed in full.
    legal : bool
        Whether the model can take it.

    Raises
    ------
    InputError
        ``not_available``, ``missing_argument``, ``bad_size``, ``bad_variance``, and columns that
        are not there.
    """
    if finite_population is None or finite_population is False:
        if element_variance is not None:
            raise _needs("element_variance", "finite_population=True", element_variance)
        return None
    if not legal:
        raise InputError(
            "finite domains are for independent effects on the scale of the data, guarded",
            code="not_available",
            field="finite_population",
            expected="no correlation, no transformation, mode='guarded'",
            got=finite_population,
        )
    column = SIZE if finite_population is True else finite_population
    size = numeric_column(rows, column, field="finite_population")
    _refuse_sizes(size, table)
    if element_variance is None:
        return _from_sampling_variances(size, table) / size
    if isinstance(element_variance, str):
        square = numeric_column(rows, element_variance, field="element_variance")
    else:
        try:
            square = np.full(len(size), float(element_variance))
        except (TypeError, ValueError):
            raise _bad_square(element_variance) from None
    if not (np.isfinite(square) & (square >= 0)).all():
        raise _bad_square(listed(square[~(square >= 0)]))
    return np.asarray(square / size)


def _bad_square(got: Any) -> InputError:
    return InputError(
        "the variance of the units within a domain must be a number, 0 or greater",
        code="bad_variance",
        field="element_variance",
        expected="a column, or one number",
        got=got,
    )


def _needs(field: str, expected: str, got: Any) -> InputError:
    return InputError(
        f"{field} goes with finite domains",
        code="missing_argument",
        field=field,
        expected=expected,
        got=got,
    )


def _refuse_sizes(size: np.ndarray, table: AreaTable) -> None:
    bad = ~(size > 0)
    n = table.n_labelled
    if n is not None:
        bad = bad | (np.nan_to_num(n) > size)
    if bad.any():
        raise InputError(
            "sizes of domains must be positive, and not below the number of labelled units",
            code="bad_size",
            field="finite_population",
            expected="N > 0 and N >= n_labelled",
            got=f"domains {listed(table.domains[bad])}",
        )


def _from_sampling_variances(size: np.ndarray, table: AreaTable) -> np.ndarray:
    n = table.n_labelled
    if n is None:
        raise InputError(
            "the variance of the units within domains is not known",
            code="missing_argument",
            field="element_variance",
            expected="element_variance=, or a column n_labelled to get it from the variances",
            got=None,
        )
    rest = 1.0 - np.nan_to_num(n) / size
    usable = table.sampled & (n > 0) & (rest > 0)
    if not (usable & (n > 1)).any():
        raise _needs("element_variance", "element_variance=, a column or a number", None)
    square = np.zeros(len(size))
    square[usable] = table.variance[usable] * n[usable] / rest[usable]
    weight = np.where(usable, np.maximum(np.nan_to_num(n) - 1.0, 0.0), 0.0)
    pooled = float(weight @ square) / float(weight.sum())
    return np.where(usable, square, pooled)


def with_spread(table: AreaTable, spread: np.ndarray | None) -> AreaTable:
    """The table as the model takes it, with variances d + c; a census stays one."""
    if spread is None:
        return table
    wide = np.where(table.variance == 0, 0.0, table.variance + spread)
    return replace(table, variance=wide)


def for_finite_domains(fit: AreaFit, table: AreaTable, spread: np.ndarray) -> AreaFit:
    """The fit of the model, with variances d + c, as one of the finite domains' means."""
    if fit.status == "failed":
        return fit
    found = finite_domains(fit, estimate=table.estimate, variance=table.variance, spread=spread)
    total = fit.model_variance + with_spread(table, spread).variance
    residual = table.estimate - fit.synthetic
    scale = ModelScale(
        what="finite domains",
        direct=table.estimate,
        variance=table.variance,
        linear=fit.estimate,
        mse=fit.mse,
        synthetic=fit.synthetic,
        effect=np.where(table.sampled, fit.estimate - fit.synthetic, np.nan),
        total=np.where(np.isnan(residual), np.nan, total),
        domain_status=domain_statuses(
            estimate=table.estimate, variance=table.variance, mse=found.mse
        ),
    )
    return replace(
        fit,
        estimate=found.estimate,
        mse=found.mse,
        shrinkage=found.shrinkage,
        derivative=found.derivative,
        intervals=np.column_stack([found.lower, found.upper]),
        conditions=(*fit.conditions, NOTE),
        engine_fit=scale,
    )
