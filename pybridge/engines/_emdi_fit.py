"""Asking R for a fit by emdi::fh, and the record of its answer."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from pybridge._files import need_parent
from pybridge.engines._emdi_answer import record
from pybridge.engines._emdi_guard import NOT_SO, at_correlation_limit
from pybridge.engines._emdi_input import fh_request, for_r
from pybridge.engines._emdi_record import EmdiFit
from pybridge.engines._emdi_request import (
    DEFAULTS,
    ROBUST,
    FhRequest,
    check_arguments,
    check_settings,
)
from pybridge.engines._emdi_units import refuse_cost, rescaled, time_limit
from pybridge.errors import EngineUnavailable, EngineWarning
from pybridge.r import Reply

_K = 1.345
_K_SINCE = (2, 2, 3)


def prepare(
    fixed: str,
    vardir: str,
    combined_data: pd.DataFrame,
    domains: str | None = None,
    *,
    eff_smpsize: str | None = None,
    corMatrix: Any = None,
    Ci: Any = None,
    mode: str = "guarded",
    level: float = 0.95,
    time_limit: float | None = None,
    **arguments: Any,
) -> FhRequest:
    """A checked request for emdi::fh; what is not named in ``arguments`` is as emdi has it."""
    return fh_request(
        fixed,
        vardir,
        combined_data,
        domains,
        eff_smpsize=eff_smpsize,
        cor_matrix=corMatrix,
        errors=Ci,
        arguments=check_arguments({**DEFAULTS, **arguments}),
        settings=check_settings(mode=mode, level=level, time_limit=time_limit),
    )


def fit(request: FhRequest, *, stacklevel: int = 2) -> EmdiFit:
    """One fit; R's warnings become Python's, those of the caller ``stacklevel`` frames up.

    Raises
    ------
    InputError
        Too many domains.
    EngineError
        Where R stops, in raw mode; a guarded fit has the status ``failed``.
    """
    (found,) = fit_many([request])
    start = "R warning: "
    for text in found.conditions:
        if text.startswith(start) and not text.endswith(NOT_SO):
            words = text.removeprefix(start)
            warnings.warn(f"emdi: {words}", EngineWarning, stacklevel=stacklevel + 1)
    return found


def fit_many(requests: Sequence[FhRequest], *, workers: int = 1) -> list[EmdiFit]:
    """Several fits in one round trip; R's warnings stay in ``conditions``."""
    from pybridge.r import call_many

    for request in requests:
        refuse_cost(request)
        if request.method in ROBUST and request.arguments["k"] != _K:
            need_tuning_constant()
    ready = [rescaled(request) for request in requests]
    limits = [time_limit(request) for request in ready]
    known = [limit for limit in limits if limit is not None]
    replies = call_many(
        "emdi_fh",
        [inputs(request) for request in ready],
        packages=("emdi",),
        time_limit=sum(known) if known and len(known) == len(limits) else None,
        workers=workers,
    )
    kept = [in_another_unit(request, reply) for request, reply in zip(ready, replies)]
    return [record(request, reply) for request, reply in kept]


def in_another_unit(request: FhRequest, reply: Reply) -> tuple[FhRequest, Reply]:
    """The request and its answer; for a robust one at the limit of ρ, one from inside it.

    saeRobust's iteration for ρ depends on the unit of the data, and may end at its limit in one
    where it comes to rest inside in the next.
    """
    robust = request.guarded and request.spatial and request.method in ROBUST
    if not robust or not _at_limit(reply):
        return request, reply
    units = dict.fromkeys((1.0, 2.0 * request.unit, 4.0 * request.unit, 0.5 * request.unit))
    others = [replace(request, unit=unit) for unit in units if unit != request.unit]
    for other in others:
        quick = replace(other, arguments={**other.arguments, "MSE": False})
        found = _asked(quick)
        if found.error is not None or _at_limit(found):
            continue
        told = replace(other, remarks=(*request.remarks, _ended(request, reply, other.unit)))
        if request.arguments["MSE"]:
            found = _asked(told)
        return told, found
    tried = ", ".join(f"{other.unit:g}" for other in others)
    words = f"emdi ends at the limit of the spatial correlation in units of {tried} too"
    return replace(request, remarks=(*request.remarks, words)), reply


def _asked(request: FhRequest) -> Reply:
    from pybridge.r import call_many

    limit = time_limit(request)
    (reply,) = call_many("emdi_fh", [inputs(request)], packages=("emdi",), time_limit=limit)
    return reply


def _at_limit(reply: Reply) -> bool:
    return reply.error is None and at_correlation_limit(reply.value)


def _ended(request: FhRequest, reply: Reply, unit: float) -> str:
    correlation = float(reply.value["correlation"][0])
    return (
        f"with estimates in units of {request.unit:g} emdi ends at spatial correlation "
        f"{correlation:.6g}, its limit; in units of {unit:g} its iteration comes to rest inside: "
        "these are its numbers"
    )


def need_tuning_constant() -> None:
    """EngineUnavailable where emdi is so old that it ignores k."""
    from pybridge.r import require_packages

    have = require_packages("emdi")["emdi"]
    if version(have) < _K_SINCE:
        raise EngineUnavailable(
            f"emdi {have} ignores k in the robust methods",
            code="package_too_old",
            field="k",
            expected="emdi 2.2.3 or newer, or k = 1.345",
            got=f"emdi {have}",
            hint="pybridge setup-r installs the newest emdi.",
        )


def version(text: str) -> tuple[int, ...]:
    """An R package's version as numbers."""
    return tuple(int(part) for part in re.findall(r"\d+", text))


def inputs(request: FhRequest) -> dict[str, Any]:
    """The named list that the shims take."""
    arguments = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in request.arguments.items()
        if value is not None or name == "seed"
    }
    return {
        "data": for_r(request.columns),
        "fixed": request.code,
        "outcome": request.outcome,
        "arguments": arguments,
        "proximity": request.proximity,
        "errors": None if request.errors is None else request.errors.ravel(order="F"),
        "errors_dim": None if request.errors is None else list(map(float, request.errors.shape)),
        "guarded": request.guarded,
        "unit": request.unit,
        "covariates_unit": request.covariates_unit,
        "exact": request.exact,
    }


def save(request: FhRequest, path: str | PathLike[str], **more: Any) -> Path:
    """Fit again and save emdi's object; R's own warnings are known from the fit."""
    from pybridge.r import call

    place = need_parent(path)  # R may work in another folder
    asked = {**inputs(request), **more, "path": str(place)}
    call("emdi_save", asked, packages=("emdi",), what="emdi::fh", time_limit=time_limit(request))
    return place
