"""Units in which emdi's absolute tolerances do no harm, and what a call may cost.

R's ``optimize`` stops at an absolute change of the model variance, saeRobust's iterations start
from a variance of 1, emdi's measurement error model stops at an absolute change of the weights, and
two of emdi's objectives are products of densities, which underflow. So a guarded call is made on
estimates divided by a power of 2, chosen here, and the answer is multiplied back in R.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from pybridge.engines._emdi_exact import LIKELIHOODS, RESTRICTED, evaluate, optimum, sampled
from pybridge.engines._emdi_legal import BOOTSTRAPS
from pybridge.engines._emdi_request import ROBUST, FhRequest
from pybridge.errors import InputError

# Sampling variances of about 100 leave 1e-6 of the 1.2e-4 that optimize stops at.
_VARIANCE = 100.0
# Weights of about 1e4, against an absolute change of 1e-4 of their mean.
_VARIANCE_ME = 1e-4
# A product of densities between e-650 and e650 neither under- nor overflows.
_LARGEST_EXPONENT = 650.0

# Measured on one core with R's reference BLAS, seconds at 1 000 domains; they grow with the cube.
_SECONDS = {
    "likelihood": 33.0,
    "spatial": 105.0,
    "robust": 25.0,
    "robust spatial": 900.0,
    "me": 5.0,
}
_START = {"likelihood": 0.05, "spatial": 0.1, "robust": 0.5, "robust spatial": 2.0, "me": 0.05}
_MOST_SECONDS = 900.0
_MOST_BYTES = 4e9
_MATRICES = 12


def rescaled(request: FhRequest) -> FhRequest:
    """The request with the units of the guarded call; as it is in raw mode."""
    if not request.guarded:
        return request
    if request.transformation != "no":
        return dataclasses.replace(_widened(request), unit=1.0)
    if request.method == "me":
        return _measured_units(request)
    if request.spatial and request.method not in ROBUST:
        return request  # Fisher scoring is stopped by a relative change
    spread = _median(request)
    unit = _power_of_2(math.sqrt(spread / _VARIANCE))
    if request.method in ("amrl_yl", "ampl_yl"):
        unit = _power_of_2(max(unit, _unit_without_underflow(request)), up=True)
    return dataclasses.replace(_widened(request), unit=unit)


def _median(request: FhRequest) -> float:
    variance = request.variance[request.sampled]
    return float(np.median(variance[variance > 0]))


def _power_of_2(value: float, *, up: bool = False) -> float:
    exponent = math.log2(value)
    return 2.0 ** (math.ceil(exponent - 1e-9) if up else round(exponent))


def _measured_units(request: FhRequest) -> FhRequest:
    unit = _power_of_2(math.sqrt(_median(request) / _VARIANCE_ME))
    size = np.sqrt((request.covariates[request.sampled] ** 2).mean(axis=0))
    by = np.array([_power_of_2(float(one)) if one > 0 else 1.0 for one in size])
    return dataclasses.replace(request, unit=unit, covariates_unit=by)


def _unit_without_underflow(request: FhRequest) -> float:
    """The smallest unit at which the objective is a number at its maximum and where R looks first.

    In units of s the logarithm of the objective grows by m log s, or (m − p) log s.
    """
    inside = request.sampled
    y, x = request.estimate[inside], request.covariates[inside]
    problem = sampled(estimate=y, variance=request.variance[inside], covariates=x)
    method = request.method
    upper = float(np.var(y, ddof=1))
    places = [optimum(problem, method).model_variance, 0.382 * upper, 0.618 * upper]
    least = min(evaluate(problem, place, method)[0].objective for place in places)
    m, p = x.shape
    return math.exp((-_LARGEST_EXPONENT - least) / (m - p if method in RESTRICTED else m))


def transformed(request: FhRequest) -> tuple[np.ndarray, np.ndarray]:
    """Estimates and sampling variances (n,) of the sampled domains as emdi transforms them."""
    inside = request.sampled
    y, d = request.estimate[inside], request.variance[inside]
    if request.transformation == "log":
        return np.log(y), d / y**2
    if request.transformation == "arcsin":
        assert request.n_effective is not None
        return np.arcsin(np.sqrt(y)), 1.0 / (4.0 * request.n_effective[inside])
    if request.transformation == "logit":
        p = np.where(y == 0, 0.001, np.where(y == 1, 1 - 0.001, y))
        return np.log(p / (1 - p)), d / (p * (1 - p)) ** 2
    return y, d


def _widened(request: FhRequest) -> FhRequest:
    """With an interval that holds the maximum, where emdi's own (0, var(direct)) does not."""
    if request.arguments["interval"] is not None or request.method not in LIKELIHOODS:
        return request
    y, d = transformed(request)
    found = optimum(
        sampled(estimate=y, variance=d, covariates=request.covariates[request.sampled]),
        request.method,
    ).model_variance
    upper = float(np.var(y, ddof=1))
    if found < 0.999 * upper:
        return request
    wide = (0.0, 2.0 * found)
    return dataclasses.replace(
        request,
        arguments={**request.arguments, "interval": wide},
        remarks=(
            *request.remarks,
            f"the maximum, {found:.6g}, lies beyond emdi's interval (0, {upper:.6g}): "
            f"interval = (0, {wide[1]:.6g})",
        ),
    )


def _kind(request: FhRequest) -> str:
    if request.method in ROBUST:
        return "robust spatial" if request.spatial else "robust"
    if request.method == "me":
        return "me"
    return "spatial" if request.spatial else "likelihood"


def expected_seconds(request: FhRequest) -> float:
    """About how long R will take, from measurements at up to 800 domains."""
    n = int(request.sampled.sum())
    kind = _kind(request)
    once = _START[kind] + _SECONDS[kind] * (n / 1000.0) ** 3
    replicates, criteria = request.arguments["B"]
    fits = 1 + (criteria if criteria > 1 else 0)
    if kind == "robust" and request.guarded:
        fits += 2  # once more, with a tighter tolerance
    if request.arguments["MSE"]:
        kind_of_mse = request.arguments["mse_type"]
        if kind_of_mse in BOOTSTRAPS:
            fits += replicates
        elif "jackknife" in kind_of_mse:
            fits += n
    return once * fits


def refuse_cost(request: FhRequest) -> None:
    """InputError where R would need more time or memory than is allowed."""
    n = int(request.sampled.sum())
    seconds, size = expected_seconds(request), _MATRICES * 8.0 * n * n
    allowed = max(request.time_limit or _MOST_SECONDS, 10.0)
    if seconds <= allowed and size <= _MOST_BYTES:
        return
    able = "fay_herriot(engine='native') fits any number of domains, engine='sae' about 7,000"
    raise InputError(
        f"emdi would take about {_readable(seconds)} and {size / 1e9:.1g} GB: it works with "
        "matrices of domains by domains",
        code="too_many_domains",
        field="combined_data",
        expected=f"at most {_readable(allowed)} and {_MOST_BYTES / 1e9:.0f} GB",
        got=f"{n} domains with a direct estimate",
        hint=f"{able}. A larger time_limit allows more time; a smaller B, or another mse_type, "
        "needs less.",
    )


def _readable(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"


def time_limit(request: FhRequest) -> float | None:
    """Seconds for R: what was asked for; guarded, never without a limit."""
    if request.time_limit is not None or not request.guarded:
        return request.time_limit
    return max(600.0, 5.0 * expected_seconds(request))
