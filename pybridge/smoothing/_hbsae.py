"""Adapter of R's hbsae: the Bayesian area-level model by fSAE.Area.

fSAE.Area holds the scale of the sampling variances at 1 by a prior worth 10^4 observations a
domain, not exactly, which leaves about 1e-5 in the variance's mean; it has posterior means and
variances, no quantiles, no median of the variance and no sampling variance of 0. Intervals are
normal ones. The exact posterior is computed beside it in guarded mode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pybridge._checks import listed
from pybridge._options import check_level, real_number
from pybridge.errors import InputError
from pybridge.smoothing._area_fit import AreaFit, AreaProblem
from pybridge.smoothing._area_model import area_model_at
from pybridge.smoothing._batches import in_one_call
from pybridge.smoothing._bayes import fit_area_model_bayes
from pybridge.smoothing._bayes_input import need_enough
from pybridge.smoothing._spec import FayHerriotSpec, refuse_options
from pybridge.tables.area import AreaTable

if TYPE_CHECKING:
    from pybridge.r import Reply

# Difference to the exact posterior, in posterior standard deviations, beyond which it is named.
_APART = 1e-2


def complete_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """``rel.int.tol`` of fSAE.Area (also as rel_int_tol), and a time limit in seconds."""
    names = {"rel_int_tol": "rel.int.tol"}
    given = {names.get(name, name): value for name, value in given.items()}
    refuse_options(given, ("rel.int.tol", "time_limit"), engine="hbsae")
    tolerance = real_number("rel.int.tol", given.get("rel.int.tol", 0.01))
    if not 0.0 < tolerance < 1.0:
        raise InputError(
            "rel.int.tol must lie between 0 and 1",
            code="bad_tolerance",
            field="rel.int.tol",
            expected="0 < rel.int.tol < 1",
            got=tolerance,
        )
    limit = given.get("time_limit")
    return {
        "rel.int.tol": tolerance,
        "time_limit": None if limit is None else real_number("time_limit", limit),
    }


def fit(table: AreaTable, spec: FayHerriotSpec) -> AreaFit:
    """Fit one checked table; R's warnings become Python's.

    Raises
    ------
    InputError
        Too few domains for the flat prior; sampling variances of 0.
    EngineUnavailable, EngineError
    """
    from pybridge.r import call

    reply = call(
        "hbsae_fay_herriot",
        _inputs(table, spec),
        packages=("hbsae",),
        time_limit=spec.options["time_limit"],
    )
    reply.warn("hbsae", stacklevel=3)
    return _read(table, spec, reply)


def fit_many(
    problems: Sequence[AreaProblem], *, level: float = 0.95, **engine_options: Any
) -> list[Any]:
    """Fit several problems in one round trip to R, for refits in cross-validation.

    An AreaFit for each problem, or the error of one that cannot be fitted; R's warnings stay in
    ``conditions``.
    """
    from pybridge.r import call_many

    options = complete_options(engine_options)
    spec = FayHerriotSpec(engine="hbsae", method="bayes", level=check_level(level), options=options)
    return in_one_call(
        problems,
        inputs=lambda table: _inputs(table, spec),
        call=lambda items: call_many(
            "hbsae_fay_herriot", items, packages=("hbsae",), time_limit=options["time_limit"]
        ),
        read=lambda table, reply: _read(table, spec, reply),
    )


def _inputs(table: AreaTable, spec: FayHerriotSpec) -> dict[str, Any]:
    """The named list that the shim takes, checked."""
    seen = table.sampled
    need_enough(int(seen.sum()), table.covariates.shape[1])
    census = seen & (table.variance == 0.0)
    if census.any():
        raise InputError(
            "hbsae cannot take sampling variances of 0",
            code="census_not_supported",
            field="variance",
            expected="variances above 0",
            got=f"0 in domains {listed(table.domains[census])}",
            hint="engine='native' takes them.",
        )
    return {
        "estimate": table.estimate[seen],
        "variance": table.variance[seen],
        "place": np.flatnonzero(seen) + 1.0,
        "covariates": table.covariates,
        "tolerance": spec.options["rel.int.tol"],
    }


def _read(table: AreaTable, spec: FayHerriotSpec, reply: Reply) -> AreaFit:
    said = tuple(f"R warning: {text.strip()}" for text in reply.warnings)
    return _fit_record(table, spec, reply.value, said, dict(reply.versions))


def _fit_record(
    table: AreaTable,
    spec: FayHerriotSpec,
    value: Mapping[str, Any],
    said: tuple[str, ...],
    versions: dict[str, str],
) -> AreaFit:
    """hbsae's numbers; in guarded mode with the exact posterior beside them."""
    p = table.covariates.shape[1]
    beta = np.array(value["beta"])
    variance = float(value["variance_mean"][0])
    arrays: dict[str, Any] = {
        "estimate": table.estimate,
        "variance": table.variance,
        "covariates": table.covariates,
    }
    likelihood = area_model_at(variance, **arrays, method="ML", level=spec.level)
    mse = np.array(value["mse"])
    exact: dict[str, Any] = {}
    status = "weak_identification" if table.sampled.sum() <= p + 5 else "converged"
    if spec.mode == "guarded":
        posterior = fit_area_model_bayes(**arrays, level=spec.level, quantiles=False)
        exact = {
            "model_variance": posterior.model_variance,
            "model_variance_mean": posterior.model_variance_mean,
        }
        spread = np.sqrt(posterior.mse)
        apart = float(np.nanmax(np.abs(value["estimate"] - posterior.estimate) / spread))
        said += ("model_variance is the posterior mean: hbsae has no median",)
        if apart > _APART or not np.isfinite(mse[table.sampled]).all():
            status = "not_converged"
            said += (
                f"hbsae is up to {apart:.3g} posterior standard deviations from the exact "
                "posterior means (engine='native' gives those)",
            )
    return AreaFit(
        engine="hbsae",
        method="bayes",
        level=spec.level,
        model_variance=variance,
        coefficients=beta,
        coefficient_covariance=np.array(value["vb"]).reshape(p, p),
        estimate=np.array(value["estimate"]),
        mse=mse,
        shrinkage=np.array(value["shrinkage"]),
        synthetic=np.array(value["synthetic"]),
        derivative=np.divide(
            mse, table.variance, out=np.full(mse.shape, np.nan), where=table.sampled
        ),
        log_likelihood=likelihood.log_likelihood,
        restricted_log_likelihood=likelihood.restricted_log_likelihood,
        iterations=0,
        status=status,
        engine_status="converged",
        exact=exact,
        conditions=said,
        versions=versions,
    )
