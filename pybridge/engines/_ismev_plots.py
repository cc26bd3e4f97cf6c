"""What ismev draws over thresholds and for diagnosis: gpd.fitrange, gpd.diag, mrl.plot."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pybridge._options import real_number, whole_number
from pybridge.engines import _ismev_input as given
from pybridge.engines._ismev_prepare import TIGHT
from pybridge.engines._ismev_record import IsmevFit, need_gpd_fit
from pybridge.engines._engine_request import numbers
from pybridge.engines._tail_record import TailRecord, TailTable, common
from pybridge.engines._tail_request import (
    ask,
    confidence,
    exceeding,
    limits,
    need_exceedances,
    power_of_two,
    request,
    scores,
)
from pybridge.engines._tail_stability import by_threshold, exact_over_thresholds, stability_verdict
from pybridge.errors import InputError


def gpd_fitrange(
    data: Any,
    umin: float,
    umax: float,
    nint: int = 10,
    method: str = "Nelder-Mead",
    maxit: int = 10_000,
    *,
    mode: str = "guarded",
    time_limit: float | None = None,
    **control: Any,
) -> TailTable:
    """Threshold stability by ismev::gpd.fitrange.

    Parameters
    ----------
    data : sequence of float, (n,)
    umin, umax : float
        The lowest and the highest threshold.
    nint : int
        How many thresholds.
    method, maxit, **control
        As in `gpd_fit`.
    mode : {"guarded", "raw"}
    time_limit : float, optional
        Seconds for R.

    Returns
    -------
    TailTable
        One row a threshold and parameter (``modified_scale`` = scale - shape threshold):
        threshold, parameter, lower, estimate, upper (ismev's, with 1.96), standard_error.
        Guarded: ``exact``, and ``shortfall``, what ismev lacks there in log-likelihood. Where
        gpd.fitrange stops, guarded fits each threshold for itself, NaN where there is none.

    Raises
    ------
    InputError
        Before ismev is called.
    EngineError
        Where R stops.
    """
    values = scores("data", data, mode=mode)
    low, high = limits("umin, umax", [real_number("umin", umin), real_number("umax", umax)])
    words = given.search(method, maxit, control, mode=mode)
    words["nint"] = whole_number("nint", nint, least=2)
    asked = request(
        "ismev",
        "gpd.fitrange",
        {"umin": low, "umax": high, **words},
        mode=mode,
        time_limit=time_limit,
        unit=power_of_two(exceeding(values, low)),
    )
    if not asked.raw:
        need_exceedances(exceeding(values, high), values)
    tight = TIGHT if not asked.raw and words["method"] in ("Nelder-Mead", "BFGS") else {}
    inputs = {
        "data": values,
        "umin": low,
        "umax": high,
        "unit": asked.unit,
        "arguments": {**tight, **words},
    }
    inputs, reply, notes = by_threshold("ismev_tail_gpd_fitrange", inputs, asked)
    by = np.array([asked.unit, 1.0])
    u = numbers(reply.value["thresholds"]) * asked.unit
    columns = {"lower": "ci.low", "estimate": "mle", "upper": "ci.up", "standard_error": "se"}
    table: dict[str, np.ndarray] = {
        "threshold": np.tile(u, 2),
        "parameter": np.repeat(np.array(["modified_scale", "shape"], dtype=object), u.size),
    }
    for name, own in columns.items():
        table[name] = (numbers(reply.value[own]) * by).ravel(order="F")
    status = "converged"
    if not asked.raw:
        table.update(exact_over_thresholds(values, u, table["estimate"]))
        status, found = stability_verdict(table["shortfall"], "ismev")
        notes += found
    return TailTable(
        **common(asked, "ismev_tail_gpd_fitrange", inputs, reply, status=status, notes=notes),
        table=table,
    )


@dataclass(frozen=True, eq=False, repr=False)
class IsmevDiagnosis(TailRecord):
    """The points and curves of ismev::gpd.diag's plots, in the user's units.

    Attributes
    ----------
    plots : mapping of str to mapping of str to numpy.ndarray
        ``probability`` (empirical, model), ``quantile`` (model, empirical), ``return_level``
        (period in years, level, lower, upper: ismev's band, with 1.96), ``return_points`` (period,
        level: the scores), ``density`` (x, model), ``histogram`` (left, right, density). With
        covariates the first two, of residuals on the exponential scale.
    """

    plots: Mapping[str, Mapping[str, np.ndarray]]

    def table_of(self, plot: str) -> pd.DataFrame:
        """One plot's values.

        Raises
        ------
        InputError
            For a plot that is not there.
        """
        if plot not in self.plots:
            raise InputError(
                f"there is no plot {plot}",
                code="unknown_plot",
                field="plot",
                expected=", ".join(self.plots),
                got=plot,
            )
        return pd.DataFrame({name: np.array(v) for name, v in self.plots[plot].items()})

    def to_frame(self) -> pd.DataFrame:
        """All plots, one below the other: plot, point, quantity, value."""
        parts = []
        for plot in self.plots:
            long = self.table_of(plot).rename_axis("point").reset_index().melt("point")
            parts.append(long.rename(columns={"variable": "quantity"}).assign(plot=plot))
        return pd.concat(parts, ignore_index=True)[["plot", "point", "quantity", "value"]]

    def summary(self) -> str:
        """How many points each plot has."""
        sizes = [f"{name}: {len(self.table_of(name))} points" for name in self.plots]
        return "\n".join([self.request.summary(), *sizes, *self.conditions])


def gpd_diag(z: IsmevFit, *, time_limit: float | None = None) -> IsmevDiagnosis:
    """The values of ismev::gpd.diag's plots: PP, QQ, return levels with their band, density.

    Parameters
    ----------
    z : IsmevFit
        Of `gpd_fit`; with covariates or a link there are residual plots only, as in ismev.
    time_limit : float, optional
        Seconds for R; by default the fit's.

    Returns
    -------
    IsmevDiagnosis

    Raises
    ------
    InputError
        Before ismev is called.
    EngineError
        Where R stops.
    """
    fit = need_gpd_fit(z, stationary=False)
    asked = request(
        "ismev",
        "gpd.diag",
        fit.request.arguments,
        mode=fit.request.mode,
        level=fit.request.level,
        time_limit=time_limit or fit.request.time_limit,
        unit=fit.request.unit,
    )
    reply = ask("ismev_tail_gpd_diag", fit.inputs, asked)
    value = {name: numbers(item) for name, item in reply.value.items()}
    plots = {
        "probability": {"empirical": value["pp_empirical"], "model": value["pp_model"]},
        "quantile": {"model": value["qq_model"], "empirical": value["qq_empirical"]},
    }
    if "rl_level" in value:
        plots["return_level"] = {
            "period": value["rl_period"],
            "level": value["rl_level"],
            "lower": value["rl_lower"],
            "upper": value["rl_upper"],
        }
        plots["return_points"] = {
            "period": value["rl_point_period"],
            "level": value["rl_point_level"],
        }
        plots["density"] = {"x": value["density_x"], "model": value["density_model"]}
        edges = value["breaks"]
        histogram = {"left": edges[:-1], "right": edges[1:], "density": value["density"]}
        plots["histogram"] = histogram
    return IsmevDiagnosis(
        **common(
            asked,
            "ismev_tail_gpd_diag",
            fit.inputs,
            reply,
            status=fit.status,
            engine_status=fit.engine_status,
        ),
        plots=plots,
    )


def mrl_plot(
    data: Any,
    umin: float | None = None,
    umax: float | None = None,
    conf: float = 0.95,
    nint: int = 100,
    *,
    mode: str = "guarded",
    time_limit: float | None = None,
) -> TailTable:
    """Mean residual life, as ismev::mrl.plot draws it.

    Parameters
    ----------
    data : sequence of float, (n,)
    umin, umax : float, optional
        The range of thresholds. R's defaults are the smallest value and the largest less 0.1,
        which means nothing in other units; guarded the latter is the fifth largest value.
    conf : float
        Confidence level.
    nint : int
        How many thresholds.
    mode : {"guarded", "raw"}
    time_limit : float, optional
        Seconds for R.

    Returns
    -------
    TailTable
        threshold, lower, estimate, upper.

    Raises
    ------
    InputError
        Before ismev is called.
    """
    values = scores("data", data, mode=mode)
    words: dict[str, Any] = {
        "umin": None if umin is None else real_number("umin", umin),
        "umax": None if umax is None else real_number("umax", umax),
        "conf": confidence("conf", conf),
        "nint": whole_number("nint", nint, least=2),
    }
    if mode == "guarded":
        if words["umax"] is None:
            words["umax"] = float(np.sort(values)[max(values.size - 5, 0)])
        low = float(values.min()) if words["umin"] is None else words["umin"]
        limits("umin, umax", [low, words["umax"]])
        need_exceedances(exceeding(values, words["umax"]), values, fewest=2)
    asked = request("ismev", "mrl.plot", words, mode=mode, time_limit=time_limit, level=conf)
    inputs = {"data": values, "unit": 1.0, "arguments": dict(asked.arguments)}
    reply = ask("ismev_tail_mrl_plot", inputs, asked)
    value = reply.value
    u = numbers(value["u"])
    table = {"threshold": u, "lower": np.full(u.size, math.nan), "estimate": numbers(value["mean"])}
    table["upper"] = np.full(u.size, math.nan)
    for side in ("lower", "upper"):
        table[side][np.isin(u, numbers(value[f"{side}_u"]))] = numbers(value[side])
    return TailTable(
        **common(asked, "ismev_tail_mrl_plot", inputs, reply),
        table=table,
    )
