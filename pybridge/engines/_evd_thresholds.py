"""What evd draws over a range of thresholds, as values: tcplot, mrlplot, exiplot."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from pybridge._options import choose, whole_number, yes_or_no
from pybridge.engines._evd_input import MODELS, cluster_arguments
from pybridge.engines._engine_request import numbers
from pybridge.engines._tail_record import TailTable, common
from pybridge.engines._tail_request import (
    TailRequest,
    ask,
    confidence,
    control_list,
    exceeding,
    limits,
    need_exceedances,
    positive,
    power_of_two,
    request,
    scores,
    search_method,
)
from pybridge.engines._tail_stability import by_threshold, exact_over_thresholds, stability_verdict
from pybridge.errors import InputError
from pybridge.r import Reply

# evd looks at all data again for each threshold; by default there are as many as data.
_MOST_WORK = 2e9
_SIDES = ("lower", "estimate", "upper")


def tcplot(
    data: Any,
    tlim: Any,
    model: str = "gpd",
    pscale: bool = False,
    cmax: bool = False,
    r: int = 1,
    ulow: float = -math.inf,
    rlow: int = 1,
    nt: int = 25,
    conf: float = 0.95,
    *,
    npp: float | None = None,
    method: str = "BFGS",
    control: Mapping[str, Any] | None = None,
    mode: str = "guarded",
    time_limit: float | None = None,
) -> TailTable:
    """Threshold stability by evd::tcplot: the estimates over a range of thresholds.

    Parameters
    ----------
    data : sequence of float, (n,)
    tlim : pair of float
        The lowest and the highest threshold.
    model : {"gpd", "pp"}
    pscale : bool
        Whether thresholds are even in probability instead.
    cmax, r, ulow, rlow, npp, method, control
        As in `fpot`.
    nt : int
        How many thresholds.
    conf : float
        Confidence level.
    mode : {"guarded", "raw"}
    time_limit : float, optional
        Seconds for R.

    Returns
    -------
    TailTable
        One row a threshold and parameter (``modified_scale`` = scale - shape threshold, which does
        not depend on the threshold where the model holds): threshold, parameter, lower, estimate,
        upper, level. Guarded, without clusters: ``exact``, and ``shortfall``, what evd's answer
        lacks there in log-likelihood. Where tcplot stops, guarded fits each threshold for itself,
        NaN where there is no fit or no standard error.

    Raises
    ------
    InputError
        Before evd is called.
    EngineError
        Where R stops.
    """
    values = scores("data", data, mode=mode)
    ends = limits("tlim", tlim)
    arguments: dict[str, Any] = {
        "model": choose("model", model, MODELS),
        "pscale": yes_or_no("pscale", pscale),
        "cmax": yes_or_no("cmax", cmax),
        **cluster_arguments({"r": r, "ulow": ulow, "rlow": rlow}, threshold=ends[0]),
        "nt": whole_number("nt", nt, least=2),
        "conf": confidence("conf", conf),
        "npp": None if npp is None else positive("npp", npp),
        "method": search_method(method, mode=mode),
        "control": control_list(control),
    }
    asked = request(
        "evd",
        "tcplot",
        {"tlim": np.array(ends), **arguments},
        mode=mode,
        time_limit=time_limit,
        level=conf,
        unit=power_of_two(exceeding(values, ends[0])),
    )
    if not asked.raw:
        need_exceedances(exceeding(values, ends[1]), values)
    inputs: dict[str, Any] = {
        "data": values,
        "tlim": np.array(ends),
        "unit": asked.unit,
        "arguments": _for_r(asked),
    }
    return _stability(asked, *by_threshold("evd_tail_tcplot", inputs, asked))


def _for_r(asked: TailRequest) -> dict[str, Any]:
    found = {name: v for name, v in asked.arguments.items() if name != "tlim"}
    if found["ulow"] == -math.inf:
        del found["ulow"]
    else:
        found["ulow"] = found["ulow"] / asked.unit
    if not asked.raw and found["method"] == "BFGS":
        size = 3 if found["model"] == "pp" else 2
        tight = {"reltol": 1e-14, "ndeps": np.full(size, 1e-4), "maxit": 1000}
        found["control"] = {**tight, **dict(found.get("control") or {})}
    return found


def _stability(
    asked: TailRequest, inputs: Mapping[str, Any], reply: Reply, notes: list[str]
) -> TailTable:
    places = {"locs": "loc", "scales": "scale", "shapes": "shape"}
    if asked.arguments["model"] == "gpd":
        places["scales"] = "modified_scale"
    u = numbers(reply.value["thresholds"])
    parts: dict[str, list[Any]] = {}
    for key, name in places.items():
        if key not in reply.value:
            continue
        unit = 1.0 if name == "shape" else asked.unit
        block = numbers(reply.value[key]) * unit
        parts.setdefault("threshold", []).append(u)
        parts.setdefault("parameter", []).append(np.full(u.size, name, dtype=object))
        for side, column in zip(_SIDES, block.T):
            parts.setdefault(side, []).append(column)
    table = {name: np.concatenate(columns) for name, columns in parts.items()}
    table["level"] = np.full(len(table["threshold"]), asked.level)
    status = "converged" if np.isfinite(table["estimate"]).all() else "not_converged"
    if not asked.raw and asked.arguments["model"] == "gpd" and not asked.arguments["cmax"]:
        table.update(exact_over_thresholds(inputs["data"], u, table["estimate"]))
        status, found = stability_verdict(table["shortfall"], "evd")
        notes = notes + found
    return TailTable(
        **common(asked, "evd_tail_tcplot", inputs, reply, status=status, notes=notes),
        table=table,
    )


def mrlplot(
    data: Any,
    tlim: Any = None,
    pscale: bool = False,
    nt: int | None = None,
    conf: float = 0.95,
    *,
    mode: str = "guarded",
    time_limit: float | None = None,
) -> TailTable:
    """Mean residual life by evd::mrlplot: the mean excess over a range of thresholds.

    Parameters
    ----------
    data : sequence of float, (n,)
    tlim : pair of float, optional
        By default from the smallest value to the fifth largest.
    pscale : bool
        Whether thresholds are even in probability instead.
    nt : int, optional
        How many thresholds; evd's default is one a value, at least 100.
    conf : float
        Confidence level.
    mode : {"guarded", "raw"}
    time_limit : float, optional
        Seconds for R.

    Returns
    -------
    TailTable
        threshold (with ``pscale`` its probability), lower, estimate, upper, level.

    Raises
    ------
    InputError
        Before evd is called, also where evd's default of thresholds would take too long.
    """
    values = scores("data", data, mode=mode)
    count = None if nt is None else whole_number("nt", nt, least=2)
    arguments = {
        "pscale": yes_or_no("pscale", pscale),
        "nt": count,
        "conf": confidence("conf", conf),
    }
    ends = None if tlim is None else np.array(limits("tlim", tlim))
    asked = request(
        "evd", "mrlplot", {"tlim": ends, **arguments}, mode=mode, time_limit=time_limit, level=conf
    )
    if not asked.raw:
        _need_room(values, ends, count)
    inputs = {
        "data": values,
        "tlim": ends,
        "unit": 1.0,
        "arguments": {name: v for name, v in arguments.items() if v is not None},
    }
    return _curve(asked, "evd_tail_mrlplot", inputs)


def _need_room(values: np.ndarray, ends: np.ndarray | None, count: int | None) -> None:
    if values.size <= 5:
        raise InputError(
            "there are too few values",
            code="too_few_scores",
            field="data",
            expected="at least 6 values",
            got=values.size,
        )
    if ends is not None:
        need_exceedances(exceeding(values, float(ends[1])), values, fewest=2)
    work = values.size * float(count or max(100, values.size))
    if work > _MOST_WORK:
        raise InputError(
            "so many thresholds for so many values would take too long",
            code="too_large",
            field="nt",
            expected=f"nt of at most {int(_MOST_WORK / values.size)}",
            got="one threshold a value, evd's default" if count is None else count,
            hint="nt=100 shows as much; pybridge.mean_residual_life takes linear time.",
        )


def exiplot(
    data: Any,
    tlim: Any,
    r: int = 1,
    ulow: float = -math.inf,
    rlow: int = 1,
    nt: int = 100,
    *,
    mode: str = "guarded",
    time_limit: float | None = None,
) -> TailTable:
    """The extremal index over a range of thresholds, by evd::exiplot.

    Parameters
    ----------
    data : sequence of float, (n,)
        In the order of time.
    tlim : pair of float
    r, ulow, rlow
        As in `exi`; ``r=0`` is the intervals estimator.
    nt : int
        How many thresholds.
    mode : {"guarded", "raw"}
    time_limit : float, optional
        Seconds for R.

    Returns
    -------
    TailTable
        threshold, extremal_index.

    Raises
    ------
    InputError
        Before evd is called.
    """
    values = scores("data", data, mode=mode)
    r = whole_number("r", r, least=0)
    ends = np.array(limits("tlim", tlim))
    arguments = {
        **cluster_arguments({"r": max(r, 1), "ulow": ulow, "rlow": rlow}, threshold=ends[0]),
        "r": r,
        "nt": whole_number("nt", nt, least=2),
    }
    asked = request("evd", "exiplot", {"tlim": ends, **arguments}, mode=mode, time_limit=time_limit)
    if not asked.raw:
        need_exceedances(exceeding(values, float(ends[1])), values, fewest=1)
    inputs = {"data": values, "tlim": ends, "unit": 1.0, "arguments": arguments}
    return _curve(asked, "evd_tail_exiplot", inputs)


def _curve(asked: TailRequest, shim: str, inputs: Mapping[str, Any]) -> TailTable:
    reply = ask(shim, inputs, asked)
    x, y = numbers(reply.value["x"]), numbers(reply.value["y"])
    table = {"threshold": x}
    if y.ndim == 2:
        table.update(zip(_SIDES, y.T))
        table["level"] = np.full(x.size, asked.level)
    else:
        table["extremal_index"] = y
    return TailTable(
        **common(asked, shim, inputs, reply),
        table=table,
    )
