"""evd's clusters of exceedances, and the extremal index."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pybridge._checks import number_vector
from pybridge._options import whole_number, yes_or_no
from pybridge.engines._evd_input import cluster_arguments
from pybridge.engines._engine_request import numbers
from pybridge.engines._tail_record import TailTable, common
from pybridge.engines._tail_request import (
    ask,
    exceeding,
    need_exceedances,
    request,
    scores,
)
from pybridge.errors import InputError


@dataclass(frozen=True, eq=False, repr=False)
class EvdClusters(TailTable):
    """Clusters of exceedances.

    Attributes
    ----------
    n_clusters : int
    mean_size : float
        Exceedances a cluster, evd's ``acs``.
    """

    n_clusters: int
    mean_size: float

    @property
    def extremal_index(self) -> float:
        """Clusters per exceedance; 1 without dependence."""
        return 1.0 / self.mean_size


def clusters(
    data: Any,
    u: Any,
    r: int = 1,
    ulow: float = -math.inf,
    rlow: int = 1,
    cmax: bool = False,
    *,
    mode: str = "guarded",
    time_limit: float | None = None,
) -> EvdClusters:
    """Clusters of exceedances by evd::clusters.

    Parameters
    ----------
    data : sequence of float, (n,)
        In the order of time.
    u : float or sequence of float
        The threshold, or one a value.
    r : int
        A cluster ends when so many values in a row lie at or below the threshold.
    ulow, rlow : float, int
        Or when ``rlow`` values lie at or below ``ulow``.
    cmax : bool
        Only the largest value of each cluster.
    mode : {"guarded", "raw"}
    time_limit : float, optional
        Seconds for R.

    Returns
    -------
    EvdClusters
        Table: cluster, position (from 0), value; with ``cmax`` one row a cluster.

    Raises
    ------
    InputError
        Before evd is called.

    References
    ----------
    Ferro and Segers (2003), JRSS B 65, 545.
    """
    values, limit, arguments = _checked(data, u, r, ulow, rlow, mode, least=1)
    if yes_or_no("cmax", cmax):
        arguments["cmax"] = True
    asked = request("evd", "clusters", {"u": limit, **arguments}, mode=mode, time_limit=time_limit)
    inputs = {"data": values, "u": limit, "unit": 1.0, "arguments": arguments}
    reply = ask("evd_tail_clusters", inputs, asked)
    value = reply.value
    if cmax:
        largest = numbers(value["largest"])
        table = {
            "cluster": np.arange(1, largest.size + 1),
            "position": numbers(value["place"]).astype(np.int64) - 1,
            "value": largest,
        }
        count = largest.size
    else:
        table = {
            "cluster": numbers(value["cluster"]).astype(np.int64),
            "position": numbers(value["place"]).astype(np.int64) - 1,
            "value": numbers(value["value"]),
        }
        count = int(table["cluster"].max()) if len(table["cluster"]) else 0
    return EvdClusters(
        **common(asked, "evd_tail_clusters", inputs, reply),
        table=table,
        n_clusters=count,
        mean_size=float(value["acs"][0]),
    )


def exi(
    data: Any,
    u: Any,
    r: int = 1,
    ulow: float = -math.inf,
    rlow: int = 1,
    *,
    mode: str = "guarded",
    time_limit: float | None = None,
) -> TailTable:
    """The extremal index by evd::exi: the reciprocal of the mean size of clusters.

    Parameters
    ----------
    data, u, r, ulow, rlow
        As in `clusters`; ``r=0`` is the intervals estimator of Ferro and Segers (2003).
    mode : {"guarded", "raw"}
    time_limit : float, optional
        Seconds for R.

    Returns
    -------
    TailTable
        One row: extremal_index. In raw mode NaN where nothing exceeds; guarded that is refused.

    Raises
    ------
    InputError
        Before evd is called.
    """
    values, limit, arguments = _checked(data, u, r, ulow, rlow, mode, least=0)
    asked = request("evd", "exi", {"u": limit, **arguments}, mode=mode, time_limit=time_limit)
    inputs = {"data": values, "u": limit, "unit": 1.0, "arguments": arguments}
    reply = ask("evd_tail_exi", inputs, asked)
    return TailTable(
        **common(asked, "evd_tail_exi", inputs, reply),
        table={"extremal_index": numbers(reply.value["extremal_index"])},
    )


def _checked(
    data: Any, u: Any, r: int, ulow: float, rlow: int, mode: str, *, least: int
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    values = scores("data", data, mode=mode)
    limit = number_vector("u", np.atleast_1d(np.asarray(u)))
    if limit.size not in (1, values.size):
        raise InputError(
            "u must be one threshold, or one for each value",
            code="wrong_length",
            field="u",
            expected=f"1 or {values.size} numbers",
            got=limit.size,
        )
    run = whole_number("r", r, least=least)
    words: Mapping[str, Any] = {"r": max(run, 1), "ulow": ulow, "rlow": rlow}
    arguments = {**cluster_arguments(words, threshold=limit), "r": run}
    if mode == "guarded":
        one = float(limit[0]) if limit.size == 1 else limit
        need_exceedances(exceeding(values, one), values, fewest=1)
    return values, limit, arguments
