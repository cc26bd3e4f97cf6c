"""evd's confint: normal intervals of a fit, or those of a profile."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from pybridge._checks import name_list
from pybridge._options import check_level
from pybridge.engines._evd_profile import EvdProfile
from pybridge.engines._evd_record import EvdFit, back, need_fit
from pybridge.engines._engine_request import numbers
from pybridge.engines._tail_record import TailTable, common
from pybridge.engines._tail_request import ask, request
from pybridge.errors import InputError


def confint(
    object: EvdFit | EvdProfile,
    parm: str | Sequence[str] | None = None,
    level: float = 0.95,
) -> TailTable:
    """Intervals by evd's confint: normal ones of a fit, or of a profile by interpolation.

    Parameters
    ----------
    object : EvdFit or EvdProfile
    parm : str or sequence of str, optional
        Parameters; by default all.
    level : float

    Returns
    -------
    TailTable
        parameter, estimate, lower, upper, level; of a guarded profile exact_lower, exact_upper.

    Raises
    ------
    InputError
        For parameters that are not there, and a profile's interval at another level.
    """
    names = name_list("parm", parm)
    if isinstance(object, EvdProfile):
        return _confint_of_profile(object, names, check_level(level))
    fit = need_fit("object", object)
    asked = request(
        "evd",
        "confint",
        fit.request.arguments,
        mode=fit.request.mode,
        level=level,
        time_limit=fit.request.time_limit,
        unit=fit.request.unit,
    )
    if not fit.request.raw and fit.value.get("std.err") is None:
        raise InputError(
            "normal intervals need standard errors",
            code="no_standard_errors",
            field="object",
            expected="a fit with standard errors",
            got=f"status {fit.status}",
        )
    inputs = {**fit.inputs, "level": asked.level}
    reply = ask("evd_tail_confint", inputs, asked)
    words = list(reply.value["names"])
    by = np.array([back(name, 1.0, asked.unit) for name in words])
    trusted = np.isfinite([fit.standard_errors[name] for name in words])
    columns = {
        "parameter": np.array(words, dtype="O"),
        **{name: numbers(reply.value[name]) * by for name in ("estimate", "lower", "upper")},
    }
    for side in ("lower", "upper"):
        columns[side][~trusted] = math.nan
    table = _chosen(columns, names, fit.names)
    return TailTable(
        **common(
            asked,
            "evd_tail_confint",
            inputs,
            reply,
            status=fit.status,
            engine_status=fit.engine_status,
            notes=fit.conditions,
        ),
        table={**table, "level": np.full(len(table["parameter"]), asked.level)},
    )


def _confint_of_profile(object: EvdProfile, names: tuple[str, ...], level: float) -> TailTable:
    if level != object.request.level:
        raise InputError(
            "an interval at another level is another reading of the profile: ask profile for it",
            code="bad_level",
            field="level",
            expected=f"{object.request.level:g}, the profile's",
            got=level,
            hint=f"evd.profile(fit, level={level:g}).",
        )
    frame = object.to_frame()
    columns = {name: frame[name].to_numpy(copy=True) for name in frame.columns}
    columns["parameter"] = np.array(list(object.estimate), dtype="O")
    return TailTable(
        request=object.request,
        shim=object.shim,
        inputs=object.inputs,
        value=object.value,
        status=object.status,
        engine_status=object.engine_status,
        conditions=object.conditions,
        provenance=object.provenance,
        table=_chosen(columns, names, tuple(object.estimate)),
    )


def _chosen(
    columns: Mapping[str, np.ndarray], names: tuple[str, ...], known: tuple[str, ...]
) -> dict[str, np.ndarray]:
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InputError(
            "there is no such parameter",
            code="unknown_parameter",
            field="parm",
            expected=", ".join(known),
            got=", ".join(unknown),
        )
    rows = [list(columns["parameter"]).index(name) for name in names or known]
    return {name: column[rows] for name, column in columns.items()}
