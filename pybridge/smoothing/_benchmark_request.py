"""What a request to benchmark must have: weights, a total, and numbers to move."""

from __future__ import annotations

from typing import Any

import numpy as np

from pybridge._checks import listed
from pybridge._options import choose, real_number
from pybridge.errors import InputError
from pybridge.smoothing._area_fit import standard_errors
from pybridge.tables.area import AreaTable
from pybridge.tables.labels import weights_by_label

DIRECT = "direct"


def total_of(
    total: Any, variance: Any, area: AreaTable, weight: np.ndarray
) -> tuple[str, float, float]:
    spare = real_number("total_variance", variance)
    if spare < 0:
        raise InputError(
            "the variance of the total is negative",
            code="negative_variance",
            field="total_variance",
            expected="0 for a known total, or the variance of an estimate",
            got=variance,
        )
    if not isinstance(total, str):
        return "known", real_number("total", total), spare
    choose("total", total, (DIRECT,))
    outside = ~area.sampled & (weight != 0)
    if outside.any():
        raise InputError(
            "the direct estimates have no total: some domains have none",
            code="out_of_sample",
            field="total",
            expected="a number, or a direct estimate in every domain with a weight",
            got=f"missing in {listed(area.domains[outside])}",
        )
    known = np.where(weight != 0, area.estimate, 0.0)
    return DIRECT, float(weight @ known), 0.0


def weights_of(weights: Any, domains: np.ndarray) -> np.ndarray:
    """How much each domain counts (m,), in the order of the fit, or InputError."""
    return weights_by_label(
        weights,
        list(domains),
        field="weights",
        code="bad_weights",
        what="weights must say how much each domain counts in the total: sizes, or shares",
    )


def need_numbers(estimate: np.ndarray, mse: np.ndarray, domains: np.ndarray, method: str) -> None:
    for what, values in (("estimate", estimate), ("mse", mse)):
        bad = np.isnan(values) if what == "estimate" else ~(values >= 0)
        if bad.any() and (what == "estimate" or method == "mse"):
            raise InputError(
                f"benchmarking needs the {what} of every domain",
                code="missing_values",
                field="method" if what == "mse" else "fit",
                expected=f"a usable {what} in every domain",
                got=f"none in {listed(domains[bad])}",
                hint="method='difference' needs no MSE." if what == "mse" else None,
            )


def need_directions(way: np.ndarray, method: str) -> None:
    if not np.isfinite(way).all():
        raise InputError(
            f"method {method!r} has nothing to move: the weighted sum of what it goes by is 0",
            code="degenerate",
            field="method",
            expected="method='difference'",
            got=method,
        )


def refuse_far(target: float, weight: np.ndarray, estimate: np.ndarray, mse: np.ndarray) -> None:
    """InputError for a total that the estimates cannot mean: a sum taken for a mean, or reversed.

    Beyond the range of the estimates by more than its width, or ten standard errors of the weighted
    sum away, were all errors perfectly correlated.
    """
    low, high = float(estimate.min()), float(estimate.max())
    span = high - low if high > low else abs(high)
    mean = target / float(weight.sum())
    reach = 10.0 * float(weight @ standard_errors(mse))
    gap = abs(target - float(weight @ estimate))
    if low - span <= mean <= high + span and not gap > reach > 0:
        return
    raise InputError(
        "the total is far from every weighted sum of the estimates",
        code="far_benchmark",
        field="total",
        expected=f"something like {float(weight @ estimate):.6g}",
        got=target,
        hint="Weights that are sizes go with a total, shares that add up to 1 with a mean.",
    )
