"""Adapter of R's sae: the Fay-Herriot model by sae::mseFH, guarded or as it is.

What sae does at its edges and what the guarded mode makes of it:

- it iterates by Fisher scoring without a constraint and clips at 0 afterwards, so that it may end
  at 0 where the likelihood has its maximum elsewhere, or at a lower maximum: the exact optimum is
  computed beside it, and both are in the record;
- ``method="FH"`` may fail to converge where the solution is 0: then the moment equation is looked
  at, and 0 returned where it says so;
- at its iteration limit it returns NA: NaN here, with the status ``not_converged``;
- it has no prediction for domains without a direct estimate: x'β and its MSE are added;
- a negative MSE stays, and the domain says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pybridge._options import check_level, choose, real_number, whole_number
from pybridge.errors import InputError
from pybridge.smoothing._area_fit import AreaFit, AreaProblem
from pybridge.smoothing._area_model import prepare
from pybridge.smoothing._sae_reply import area_fit
from pybridge.smoothing._spec import FayHerriotSpec, refuse_options
from pybridge.tables.area import AreaTable

SAE_METHODS = ("REML", "ML", "FH")

# Measured: 16 s for 2 000 domains, growing with the cube; half a dozen matrices of m × m doubles.
_SECONDS_AT_2000 = 16.0
_MOST_SECONDS = 900.0
_MOST_BYTES = 4e9

# One replicate of the bootstrap criteria that fails is drawn again, without end.
_BOOTSTRAP_SECONDS = 600.0


def complete_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """sae's own options with its own defaults, and a time limit for the call.

    Raises
    ------
    InputError
        Names that sae does not have, and values that it would misread.
    """
    refuse_options(given, ("MAXITER", "PRECISION", "B", "time_limit"), engine="sae")
    options: dict[str, Any] = {
        "MAXITER": whole_number("MAXITER", given.get("MAXITER", 100), least=0),
        "PRECISION": real_number("PRECISION", given.get("PRECISION", 1e-4)),
        "B": whole_number("B", given.get("B", 0), least=0),
        "time_limit": given.get("time_limit"),
    }
    if options["PRECISION"] <= 0:
        raise InputError(
            "PRECISION must be positive",
            code="bad_precision",
            field="PRECISION",
            expected="a relative change, for example 1e-4",
            got=options["PRECISION"],
        )
    if options["B"] and options["time_limit"] is None:
        options["time_limit"] = _BOOTSTRAP_SECONDS
    return options


def fit(table: AreaTable, spec: FayHerriotSpec) -> AreaFit:
    """Fit one checked table; R's warnings become Python's.

    Raises
    ------
    InputError
        Domains without a direct estimate in raw mode; too many domains.
    EngineError
        Where R stops with an error, in raw mode; a guarded fit has the status ``failed``.
    """
    from pybridge.r import call, call_many

    problem = AreaProblem(table.estimate, table.variance, table.covariates)
    inputs = _inputs(problem, spec)
    words: dict[str, Any] = {"packages": ("sae",), "time_limit": spec.options["time_limit"]}
    if spec.mode == "raw":
        reply = call("sae_fay_herriot", inputs, **words)
    else:
        reply = call_many("sae_fay_herriot", [inputs], **words)[0]
    reply.warn("sae", stacklevel=3)
    return area_fit(problem, spec, reply)


def fit_many(
    problems: Sequence[AreaProblem],
    *,
    method: str = "REML",
    level: float = 0.95,
    mode: str = "guarded",
    workers: int = 1,
    return_errors: bool = False,
    **engine_options: Any,
) -> list[Any]:
    """Fit several problems in one round trip to R, for refits in cross-validation.

    Parameters
    ----------
    problems : sequence of AreaProblem
        Arrays as `fit_area_model` takes them.
    method, level, mode
        As in `fay_herriot`.
    workers : int
        R processes to share the problems out among.
    return_errors : bool
        Put the InputError of a problem that cannot be fitted (a fold with too few domains) in its
        place, instead of raising the first one.
    **engine_options
        MAXITER, PRECISION, B, time_limit (for the whole batch).

    Returns
    -------
    list of AreaFit (or InputError)
        In the order of the problems; R's warnings stay in ``conditions``.
    """
    from pybridge.r import call_many

    spec = FayHerriotSpec(
        engine="sae",
        method=choose("method", method, SAE_METHODS),
        mode=choose("mode", mode, ("guarded", "raw")),
        level=check_level(level),
        options=complete_options(engine_options),
    )
    inputs = [_numbered(k, problem, spec) for k, problem in enumerate(problems)]
    errors = [item for item in inputs if isinstance(item, InputError)]
    if errors and not return_errors:
        raise errors[0]
    good = [k for k, item in enumerate(inputs) if not isinstance(item, InputError)]
    if not good:
        return list(inputs)
    replies = call_many(
        "sae_fay_herriot",
        [inputs[k] for k in good],
        packages=("sae",),
        time_limit=spec.options["time_limit"],
        workers=workers,
    )
    found: list[Any] = list(inputs)
    for k, reply in zip(good, replies):
        found[k] = area_fit(problems[k], spec, reply)
    return found


def _numbered(k: int, problem: AreaProblem, spec: FayHerriotSpec) -> Any:
    """The inputs, or the InputError that says which problem is wrong."""
    try:
        return _inputs(problem, spec)
    except InputError as error:
        return InputError(f"problem {k}: {error.message}", **error.facts())


def _inputs(problem: AreaProblem, spec: FayHerriotSpec) -> dict[str, Any]:
    """The named list that the shim takes, checked."""
    sampled = ~np.isnan(problem.estimate)
    prepare(estimate=problem.estimate, variance=problem.variance, covariates=problem.covariates)
    _refuse_too_many(int(sampled.sum()), problem.covariates.shape[1])
    outside = None
    if not sampled.all():
        if spec.mode == "raw":
            raise InputError(
                "sae has no prediction for domains without a direct estimate",
                code="out_of_sample",
                field="area",
                expected="a direct estimate in every domain in raw mode",
                got=f"{int((~sampled).sum())} domains without one",
                hint="Use mode='guarded', which adds the synthetic prediction, or engine='native'.",
            )
        outside = problem.covariates[~sampled]
    names = ("MAXITER", "PRECISION", "B")
    return {
        "estimate": problem.estimate[sampled],
        "variance": problem.variance[sampled],
        "covariates": problem.covariates[sampled],
        "outside": outside,
        "method": spec.method,
        "guarded": spec.mode == "guarded",
        "seed": spec.seed,
        **{name: spec.options[name] for name in names},
    }


def _refuse_too_many(m: int, p: int) -> None:
    seconds = _SECONDS_AT_2000 * (m / 2000) ** 3
    gigabytes = 6 * 8 * m * m / 1e9
    if seconds > _MOST_SECONDS or gigabytes * 1e9 > _MOST_BYTES:
        raise InputError(
            f"sae would take about {seconds / 60:.0f} minutes and {gigabytes:.0f} GB: it builds "
            "matrices of domains by domains",
            code="too_many_domains",
            field="area",
            expected=f"at most {int(2000 * (_MOST_SECONDS / _SECONDS_AT_2000) ** (1 / 3))} domains",
            got=m,
            hint="engine='native' gives the same estimates, exactly and in time linear in m.",
        )
