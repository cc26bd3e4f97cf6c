"""What emdi::fh cannot use among the numbers of a table, or uses without a word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pybridge._checks import collinear_columns, listed, need_range
from pybridge.engines._sae_input import OVERFLOW
from pybridge.errors import InputError
from pybridge.tables.area import check_counts, check_variances


def check_numbers(
    estimate: np.ndarray,
    variance: np.ndarray,
    n_effective: np.ndarray | None,
    domains: np.ndarray,
    x: np.ndarray,
    names: tuple[str, ...],
    arguments: Mapping[str, Any],
) -> None:
    """Estimates and variances (m,), effective sizes (m,) or None, design matrix (m, p).

    Raises
    ------
    InputError
        Too few domains, variances that are negative, missing or all 0, covariates that are not
        finite, constant or collinear, estimates outside the range of the transformation or all
        the same, effective sample sizes that are missing.
    """
    sampled = ~np.isnan(estimate)
    labels = domains[sampled]
    check_counts(n_sampled=int(sampled.sum()), n_coefficients=x.shape[1])
    check_variances(variance[sampled], labels=labels)
    need_range(estimate[sampled], "direct estimates", field="fixed")
    if not np.isfinite(x).all():
        bad = ~np.isfinite(x).all(axis=1)
        which = listed([names[k] for k in np.flatnonzero(~np.isfinite(x).all(axis=0))])
        raise InputError(
            f"covariates are not finite: {which}",
            code="not_finite",
            field="fixed",
            expected="finite numbers in every domain",
            got=f"domains {listed(domains[bad])}",
            hint=OVERFLOW,
        )
    collinear_columns(x[sampled], names=names, field="fixed")
    check_range(estimate[sampled], labels, str(arguments["transformation"]))
    if np.ptp(estimate[sampled]) == 0:
        raise InputError(
            "all direct estimates are the same: there is nothing to explain",
            code="constant_outcome",
            field="fixed",
            expected="direct estimates that vary",
            got=f"{float(estimate[sampled][0]):g} in {len(labels)} domains",
        )
    if arguments["transformation"] == "arcsin":
        check_sizes(n_effective, sampled, domains)


def check_range(estimate: np.ndarray, labels: np.ndarray, transformation: str) -> None:
    """Estimates (m,) that a transformation takes, or InputError with the others."""
    outside = {
        "log": estimate <= 0,
        "arcsin": (estimate < 0) | (estimate > 1),
        "logit": (estimate < 0) | (estimate > 1),
    }.get(transformation)
    if outside is not None and outside.any():
        raise InputError(
            f"{int(outside.sum())} direct estimates have no {transformation}",
            code="outside_range",
            field="transformation",
            expected="estimates above 0" if transformation == "log" else "estimates in [0, 1]",
            got=f"domains {listed(labels[outside])}",
        )


def check_sizes(n_effective: np.ndarray | None, sampled: np.ndarray, domains: np.ndarray) -> None:
    """Positive effective sample sizes (m,) beside every direct estimate, or InputError."""
    if n_effective is None:
        raise InputError(
            "transformation 'arcsin' takes its variance, 1/(4 n), from effective sample sizes",
            code="missing_argument",
            field="eff_smpsize",
            expected="a column of effective sample sizes",
            got=None,
        )
    bad = sampled & ~(n_effective > 0)
    if bad.any():
        raise InputError(
            "effective sample sizes must be positive beside every direct estimate",
            code="bad_size",
            field="eff_smpsize",
            expected="numbers greater than 0",
            got=f"domains {listed(domains[bad])}",
        )
