"""Benchmarking a fit: the estimates made to add up, with the MSE that they then have."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pybridge._options import choose, whole_number
from pybridge._record import Record
from pybridge.errors import InputError
from pybridge.smoothing._area_fit import standard_errors
from pybridge.smoothing._benchmark import (
    METHODS,
    benchmarked,
    direct_total_mse,
    directions,
    known_total_mse,
)
from pybridge.smoothing._benchmark_request import (
    DIRECT,
    need_directions,
    need_numbers,
    refuse_far,
    total_of,
    weights_of,
)

if TYPE_CHECKING:
    from pybridge.smoothing.fay_herriot_fit import FayHerriotFit

MSE_TYPES = ("analytical", "boot", "none")
_MOST_SEED = 2**31 - 1


@dataclass(frozen=True, eq=False, repr=False)
class BenchmarkedEstimates(Record):
    """Estimates of m domains that add up to a total.

    Attributes
    ----------
    method : str
        ``difference``, ``ratio`` or ``mse``.
    total : float
        Σ weight × benchmarked.
    total_kind : str
        ``known``, or ``direct`` for the direct estimates' own.
    total_variance : float
        Of a total that is an estimate from elsewhere.
    domains, weights : numpy.ndarray
        Shape (m,).
    estimate, mse : numpy.ndarray
        Shape (m,), as the fit has them.
    benchmarked, benchmarked_mse : numpy.ndarray
        Shape (m,); NaN where no MSE was asked for.
    level : float
    mse_type : str
        ``analytical``, ``boot`` or ``none``.
    n_replicates : int
    seed : int or None
    """

    method: str
    total: float
    total_kind: str
    total_variance: float
    domains: np.ndarray
    weights: np.ndarray
    estimate: np.ndarray
    mse: np.ndarray
    benchmarked: np.ndarray
    benchmarked_mse: np.ndarray
    level: float
    mse_type: str
    n_replicates: int
    seed: int | None

    @property
    def adjustment(self) -> np.ndarray:
        """Shape (m,), by how much each estimate was moved."""
        return np.asarray(self.benchmarked - self.estimate)

    def to_frame(self) -> pd.DataFrame:
        """One row a domain.

        Columns: domain, weight, estimate, mse (of the fit), benchmarked, benchmarked_mse,
        standard_error, lower, upper, level (of the benchmarked).
        """
        error = standard_errors(self.benchmarked_mse)
        reach = NormalDist().inv_cdf(0.5 + self.level / 2) * error
        return pd.DataFrame(
            {
                "domain": np.array(self.domains),
                "weight": np.array(self.weights),
                "estimate": np.array(self.estimate),
                "mse": np.array(self.mse),
                "benchmarked": np.array(self.benchmarked),
                "benchmarked_mse": np.array(self.benchmarked_mse),
                "standard_error": error,
                "lower": self.benchmarked - reach,
                "upper": self.benchmarked + reach,
                "level": np.full(len(error), self.level),
            }
        )

    def summary(self) -> str:
        """The total and how it was met."""
        before = float(self.weights @ self.estimate)
        lines = [
            f"benchmarked by {self.method} to {self.total:.10g} ({self.total_kind} total): the "
            f"estimates gave {before:.10g}",
            f"mean squared errors: {self.mse_type}"
            + (f", {self.n_replicates} replicates, seed {self.seed}" if self.n_replicates else ""),
        ]
        if self.mse_type != "none":
            after = float(np.nanmean(self.benchmarked_mse))
            lines.append(f"their mean: {np.nanmean(self.mse):.6g} before, {after:.6g} after")
        return "\n".join(lines)


def benchmark(
    fit: FayHerriotFit,
    *,
    total: float | str,
    weights: Any,
    method: str = "difference",
    total_variance: float = 0.0,
    mse_type: str | None = None,
    B: int = 500,
    seed: int | None = None,
) -> BenchmarkedEstimates:
    """Make the estimates of a fit add up to a total; see `FayHerriotFit.benchmark`."""
    choose("method", method, METHODS)
    numbers = fit.fit
    need_numbers(numbers.estimate, numbers.mse, fit.area.domains, method)
    weight = weights_of(weights, fit.area.domains)
    kind, target, spare = total_of(total, total_variance, fit.area, weight)
    way = directions(method, weight=weight, estimate=numbers.estimate, mse=numbers.mse)
    need_directions(way, method)
    refuse_far(target, weight, numbers.estimate, numbers.mse)
    found = benchmarked(numbers.estimate, way, weight=weight, total=np.asarray(target))
    asked = mse_type or ("analytical" if method == "difference" else "boot")
    choose("mse_type", asked, MSE_TYPES)
    replicates = whole_number("B", B, least=2) if asked == "boot" else 0
    if asked == "boot":
        seed = secrets.randbelow(_MOST_SEED) if seed is None else seed
        seed = whole_number("seed", seed, least=0, most=_MOST_SEED)
    mse = np.full(len(weight), np.nan)
    if asked == "analytical":
        mse = _analytical(fit, kind, weight, way, spare)
    elif asked == "boot":
        mse = _bootstrap(fit, kind, weight, method, way, spare, replicates, int(seed or 0))
    return BenchmarkedEstimates(
        method=method,
        total=target,
        total_kind=kind,
        total_variance=spare,
        domains=fit.area.domains,
        weights=weight,
        estimate=numbers.estimate,
        mse=numbers.mse,
        benchmarked=found,
        benchmarked_mse=mse,
        level=fit.spec.level,
        mse_type=asked,
        n_replicates=replicates,
        seed=seed if asked == "boot" else None,
    )


def _analytical(
    fit: FayHerriotFit, kind: str, weight: np.ndarray, way: np.ndarray, spare: float
) -> np.ndarray:
    if fit.spec.correlation is not None or _transformation(fit) != "no":
        raise _no_mse("analytical", fit, "boot" if fit.spec.correlation is None else "none")
    numbers, area = fit.fit, fit.engine_area
    common: dict[str, Any] = {
        "mse": numbers.mse,
        "share": 1.0 - numbers.shrinkage,
        "covariates": area.covariates,
        "coefficient_covariance": numbers.coefficient_covariance,
        "weight": weight,
        "direction": way,
    }
    if kind == DIRECT:
        return direct_total_mse(variance=numbers.model_variance + area.variance, **common)
    return known_total_mse(total_variance=spare, **common)


def _bootstrap(
    fit: FayHerriotFit,
    kind: str,
    weight: np.ndarray,
    method: str,
    way: np.ndarray,
    spare: float,
    n_replicates: int,
    seed: int,
) -> np.ndarray:
    from pybridge.smoothing._adjusted import ADJUSTED_METHODS
    from pybridge.smoothing._area_bootstrap import Setting
    from pybridge.smoothing._area_model import NATIVE_METHODS, prepare
    from pybridge.smoothing._benchmark_bootstrap import Replicated, bootstrap_change

    own = fit.spec.method.upper()
    transformation = _transformation(fit)
    native = transformation == "no" or fit.spec.engine == "native"
    if fit.spec.correlation is not None or own not in NATIVE_METHODS + ADJUSTED_METHODS:
        raise _no_mse("boot", fit, "none" if fit.spec.correlation else "analytical")
    if not native:
        raise _no_mse("boot", fit, "none")
    area, inner = fit.engine_area, fit.fit.engine_fit
    z, d = area.estimate, area.variance
    synthetic = fit.fit.synthetic
    if transformation != "no":
        z, d, synthetic = inner.direct, inner.variance, inner.synthetic
    scaled = prepare(estimate=z, variance=d, covariates=area.covariates)
    asked = Replicated(
        setting=Setting.of(
            scaled,
            covariates=area.covariates,
            model_variance=fit.model_variance,
            method=own,
        ),
        synthetic=synthetic,
        method=method,
        weight=weight,
        direct_total=kind == DIRECT,
        total_variance=spare,
        mse=fit.fit.mse,
        direction=way,
        estimate=fit.area.estimate,
        variance=fit.area.variance,
        spread=fit.spread,
        transformation=transformation,
        backtransformation=str(fit.spec.options.get("backtransformation", "")),
    )
    plain = transformation == "no"
    change = bootstrap_change(asked, n_replicates=n_replicates, seed=seed, beside_fixed=plain)
    start = _analytical(fit, kind, weight, way, spare) if plain else fit.fit.mse
    return np.asarray(start + change)


def _transformation(fit: FayHerriotFit) -> str:
    return str(fit.spec.options.get("transformation", "no"))


def _no_mse(asked: str, fit: FayHerriotFit, instead: str) -> InputError:
    model = fit.spec.correlation or _transformation(fit)
    return InputError(
        f"there is no {asked} MSE of benchmarked estimates for this fit",
        code="not_available",
        field="mse_type",
        expected=f"mse_type={instead!r}",
        got=f"engine {fit.spec.engine}, method {fit.spec.method}, {model}",
    )
