"""sae::eblupSTFH and pbmseSTFH: domains over time, correlated with their neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import key_column, listed, need_columns, need_frame
from pybridge._options import choose, real_number, whole_number, yes_or_no
from pybridge.engines import _engine_request as requests
from pybridge.engines._sae_area import SHORTFALL, area_fit, fit_status, options_of
from pybridge.engines._sae_input import (
    AreaInput,
    design,
    domain_labels,
    ordered_input,
    read_vardir_formula,
)
from pybridge.engines._sae_likelihood import AreaData, proximity
from pybridge.engines._sae_optimum import space_time_optimum, space_time_restricted
from pybridge.engines._sae_proximity import proximity_matrix, remarks
from pybridge.engines._sae_record import SaeFit
from pybridge.engines._engine_request import EngineRequest
from pybridge.errors import InputError
from pybridge.r import Reply
from pybridge.tables.labels import encode

# Beyond this many rows the optimum is not looked for: each step multiplies m × m matrices.
_MOST_ROWS = 300
_HINT = "No other engine has this model; a model of one instant is smaller."
_COMMON = ("mode", "level", "seed", "time_limit")


def eblupSTFH(
    data: pd.DataFrame,
    formula: str,
    vardir: str,
    proxmat: Any,
    *,
    D: int | None = None,
    T: int | None = None,
    domain: str | None = None,
    time: str | None = None,
    model: str = "ST",
    MAXITER: int = 100,
    PRECISION: float = 1e-4,
    theta_iter: bool = False,
    sigma21_start: float | None = None,
    rho1_start: float = 0.5,
    sigma22_start: float | None = None,
    rho2_start: float = 0.5,
    level: float = 0.95,
    mode: str = "guarded",
    time_limit: float | None = None,
) -> SaeFit:
    """EBLUPs of the spatio-temporal Fay-Herriot model by sae::eblupSTFH (REML).

    Domain effects follow a SAR(1) over the domains; effects of domain and instant are independent
    (model S) or an AR(1) in time within each domain (model ST).

    Parameters
    ----------
    data : pandas.DataFrame
        One row a domain and instant, all D × T of them. Guarded, rows may stand in any order: R
        gets them by domain, then time, and the record is in the table's order. Raw, they go as
        they are, and sae does not notice if they are not in that order.
    formula, vardir, level, mode, time_limit
        As in `eblupFH`.
    proxmat : pandas.DataFrame
        D × D, labelled by the domains; raw: by position.
    D, T : int, optional
        Domains and instants. Guarded they follow from the columns, and must agree where given.
        Raw they are needed.
    domain, time : str, optional
        Columns; guarded ``time`` is needed, and ``domain`` unless there is a column of that name.
        Instants are in the order of their values, of the categories where they are categorical.
    model : {"ST", "S"}
    MAXITER, PRECISION, theta_iter, rho1_start, rho2_start
        As in sae; with ``theta_iter`` the steps are in ``value["component_iterations"]``.
    sigma21_start, sigma22_start : float, optional
        Half the median of the sampling variances, as in sae.

    References
    ----------
    Marhuenda, Molina and Morales (2013), Computational Statistics and Data Analysis 58, 308.
    """
    return _fit("eblupSTFH", locals())


def pbmseSTFH(
    data: pd.DataFrame,
    formula: str,
    vardir: str,
    proxmat: Any,
    *,
    D: int | None = None,
    T: int | None = None,
    B: int = 100,
    domain: str | None = None,
    time: str | None = None,
    model: str = "ST",
    MAXITER: int = 100,
    PRECISION: float = 1e-4,
    theta_iter: bool = False,
    sigma21_start: float | None = None,
    rho1_start: float = 0.5,
    sigma22_start: float | None = None,
    rho2_start: float = 0.5,
    level: float = 0.95,
    mode: str = "guarded",
    seed: int | None = None,
    time_limit: float | None = None,
) -> SaeFit:
    """EBLUPs of the spatio-temporal model, MSEs by parametric bootstrap: sae::pbmseSTFH.

    Arguments as in `eblupSTFH`, and B replicates and a seed. sae draws a replicate whose fit does
    not converge again, without end: there is a time limit of 600 s where none is given.
    """
    return _fit("pbmseSTFH", locals())


def _fit(function: str, given: Mapping[str, Any]) -> SaeFit:
    data = need_frame("data", given["data"])
    asked = _request(function, given)
    read = read_vardir_formula(given["formula"], data, given["vardir"])
    if asked.raw:
        labels = domain_labels(data, given["domain"])
        times = None
        if given["time"] is not None:
            need_columns(data, [given["time"]], field="time")
            times = data[given["time"]].to_numpy(dtype=object)
        table = ordered_input(data, read, given["vardir"], domains=labels, times=times, asked=asked)
        order = labels
    else:
        table = _in_order(data, read, given, asked)
        order = table.domains[:: asked.arguments["T"]]
    matrix = proximity_matrix(given["proxmat"], order, mode=asked.mode)
    m, power = len(data), 10.0 if asked.arguments["model"] == "ST" else 2.0
    seconds = power * (m / 400) ** 3 * (1 + asked.arguments.get("B", 0))
    requests.refuse_cost(asked, rows=m, seconds=seconds, matrices=20, hint=_HINT)
    inputs = {
        **table.for_r(),
        "proxmat": matrix,
        "options": options_of(asked),
        "seed": asked.seed,
    }
    shim = f"sae_spatial_{function}"
    if asked.raw:
        return area_fit(table, asked, shim, inputs, requests.ask(shim, inputs, asked))
    points = design(table, asked)
    reply = requests.ask(shim, inputs, asked, may_fail=True)
    exact, status, notes = _compared(points, matrix, asked, reply)
    notes = [*remarks(matrix, order), *notes]
    return area_fit(table, asked, shim, inputs, reply, exact=exact, status=status, notes=notes)


def _request(function: str, given: Mapping[str, Any]) -> EngineRequest:
    choose("mode", given["mode"], ("guarded", "raw"))
    counts = _counts(given)
    arguments = {
        "formula": given["formula"],
        **counts,
        "vardir": given["vardir"],
        "proxmat": "proxmat",
    }
    if "B" in given:
        arguments["B"] = whole_number("B", given["B"], least=1)
    arguments.update(
        model=choose("model", given["model"], ("S", "ST")),
        MAXITER=requests.iterations(given["MAXITER"]),
        PRECISION=requests.precision(given["PRECISION"]),
        theta_iter=yes_or_no("theta_iter", given["theta_iter"]),
    )
    for number in ("1", "2"):
        name = f"sigma2{number}_start"
        if given[name] is not None:
            arguments[name] = _start(name, given[name], least=0.0, most=np.inf)
        name = f"rho{number}_start"
        arguments[name] = _start(name, given[name], least=-1.0, most=1.0)
    common: dict[str, Any] = {name: given.get(name) for name in _COMMON}
    return requests.request(function, arguments, **common, random="B" in arguments)


def _start(name: str, value: Any, *, least: float, most: float) -> float:
    number = real_number(name, value)
    if number < least or number >= most or (least < 0 and number <= least):
        raise InputError(
            f"{name} is out of range",
            code="bad_start",
            field=name,
            expected="a variance, 0 or more" if least == 0 else "a number between -1 and 1",
            got=value,
        )
    return number


def _counts(given: Mapping[str, Any]) -> dict[str, int]:
    """D and T: as given in raw mode, from the columns in guarded mode."""
    found = {}
    columns = {"D": "domain" if given["domain"] is None else given["domain"], "T": given["time"]}
    for name, column in columns.items():
        counted = None
        if given["mode"] == "guarded":
            if column is None:
                raise InputError(
                    "the column of the instants must be named, to put the rows in sae's order",
                    code="missing_argument",
                    field="time",
                    expected="time='year'",
                    got=None,
                )
            field = "domain" if name == "D" else "time"
            counted = int(key_column(given["data"], column, field=field).nunique())
        value = counted if given[name] is None else whole_number(name, given[name], least=1)
        if value is None:
            raise InputError(
                f"{name} is needed in raw mode",
                code="missing_argument",
                field=name,
                expected="the number of domains D and of instants T",
                got=None,
            )
        if counted is not None and counted != value:
            raise InputError(
                f"{name} is not what the table holds",
                code="bad_count",
                field=name,
                expected=counted,
                got=value,
                hint="Leave D and T out: they follow from the columns.",
            )
        found[name] = value
    return found


def _in_order(
    data: pd.DataFrame, read: Any, given: Mapping[str, Any], asked: EngineRequest
) -> AreaInput:
    """The table by domain, then time, every combination once."""
    domain = given["domain"] or "domain"
    domains = encode(key_column(data, domain, field="domain"))
    times = encode(key_column(data, given["time"], field="time"))
    d, t = asked.arguments["D"], asked.arguments["T"]
    if t < 2:
        raise InputError(
            "the model over time needs two instants or more",
            code="one_instant",
            field="time",
            expected="at least 2 instants",
            got=t,
            hint="Use eblupSFH or mseSFH for one instant.",
        )
    place = domains.codes.astype(np.intp) * t + times.codes
    counts = np.bincount(place, minlength=d * t)
    if (counts != 1).any():
        odd = np.flatnonzero(counts != 1)
        cells = [f"{domains.labels[k // t]} at {times.labels[k % t]}" for k in odd]
        raise InputError(
            "the table must have one row for each domain and instant",
            code="not_balanced",
            field="data",
            expected=f"{d} x {t} = {d * t} rows, each combination once",
            got=f"{len(data)} rows; missing or repeated: {listed(cells)}",
        )
    return ordered_input(
        data,
        read,
        given["vardir"],
        domains=domains.labels[domains.codes],
        times=times.labels[times.codes],
        order=np.argsort(place, kind="stable"),
        asked=asked,
    )


def _compared(
    points: AreaData, matrix: np.ndarray, asked: EngineRequest, reply: Reply
) -> tuple[dict[str, Any], str | None, list[str]]:
    """sae's answer beside the highest restricted likelihood reached from it and from elsewhere."""
    found = None if reply.error else reply.value.get("component_estimate")
    status = None
    if found is not None and "eblup" in reply.value:
        status = fit_status(reply.value, n=len(points.y), p=points.x.shape[1])
    if len(points.y) > _MOST_ROWS:
        return {}, status, [f"the optimum is not looked for beyond {_MOST_ROWS} rows"]
    w, n_times = proximity(matrix), asked.arguments["T"]
    half = 0.5 * float(np.median(points.d))
    size = 4 if asked.arguments["model"] == "ST" else 3
    starts = [np.array([half, rho, half, rho])[:size] for rho in (0.5, -0.5)]
    if found is not None:
        starts.append(np.asarray(found, dtype=np.float64))
    optimum = space_time_optimum(points, w, starts, n_times)
    if optimum is None:
        return {}, status, ["the optimum was not found: V is singular to rounding"]
    names = ("sigma21", "rho1", "sigma22", "rho2")
    exact: dict[str, Any] = dict(zip(names, map(float, optimum.theta)))
    exact["log_likelihood"] = optimum.at.ordinary
    exact["restricted_log_likelihood"] = optimum.at.restricted
    if status is None or found is None or (np.abs(np.asarray(found)[1::2]) >= 1.0).any():
        return exact, status, []
    at = space_time_restricted(points, w, np.asarray(found), n_times)
    exact["restricted_at_engine"] = at
    exact["shortfall"] = optimum.at.restricted - at
    if exact["shortfall"] <= SHORTFALL:
        return exact, status, []
    best = ", ".join(f"{name} {exact[name]:.6g}" for name in names if name in exact)
    note = f"sae's restricted log-likelihood is {exact['shortfall']:.3g} below that at {best}"
    return exact, "not_converged", [note]
