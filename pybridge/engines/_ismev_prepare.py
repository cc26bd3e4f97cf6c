"""The request of ismev's fits, what R gets, and the way back to the user's units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pybridge.engines import _ismev_input as given
from pybridge.engines._tail_request import (
    FEWEST,
    TailRequest,
    exceeding,
    need_exceedances,
    positive,
    power_of_two,
    request,
    scores,
)

# Nelder-Mead stops early and is started again from there, with a new simplex.
TIGHT = {"reltol": 1e-15}
RESTARTS = 5


def prepared(
    function: str,
    data: tuple[Any, Any, Any, Any],
    chosen: Sequence[tuple[str, Any, Any, Any]],
    words: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> tuple[TailRequest, dict[str, Any], tuple[given.Block, ...]]:
    """The checked request of a fit, what R gets, and the linear predictors.

    Parameters
    ----------
    data : xdat, threshold, npy, ydat
    chosen : name, covariates, link and start of each parameter
    words : method, maxit and the rest of optim's
    settings : mode, level, time_limit
    """
    guarded = settings["mode"] == "guarded"
    values = scores("xdat", data[0], mode=settings["mode"])
    limit = given.threshold_of(data[1], values.size)
    table, names = given.covariate_table(data[3], values.size)
    excesses = exceeding(values, limit)
    if guarded:  # before their covariates are looked at
        need_exceedances(excesses, values)
    # A process has its parameters everywhere, a generalised Pareto fit where scores exceed.
    rows = values > limit if function == "gpd.fit" else np.ones(values.size, dtype=bool)
    blocks = tuple(
        given.block(name, columns, link, table=table, names=names, rows=rows if guarded else None)
        for name, columns, link, _ in chosen
    )
    starts = {
        f"{item.name}init": given.start(f"{item.name}init", entry[3], item)
        for item, entry in zip(blocks, chosen)
    }
    if guarded:
        fewest = max(FEWEST, 1 + sum(item.size for item in blocks))
        need_exceedances(excesses, values, fewest=fewest)
    arguments: dict[str, Any] = {
        "threshold": limit,
        "npy": positive("npy", data[2]),
        **linear_words(blocks),
        **starts,
        **words,
    }
    unit = power_of_two(excesses)
    asked = request("ismev", function, arguments, unit=unit, **settings)
    return asked, fit_inputs(asked, values, limit, table, blocks), blocks


def linear_words(blocks: Sequence[given.Block]) -> dict[str, Any]:
    """What the request says of covariates and links."""
    found: dict[str, Any] = {}
    for item in blocks:
        if item.columns:
            found[f"{item.name}l"] = item.labels
        if item.link != "identity":
            found[f"{item.name}link"] = item.link
    return found


def fit_inputs(
    asked: TailRequest,
    values: np.ndarray,
    limit: Any,
    table: np.ndarray | None,
    blocks: Sequence[given.Block],
) -> dict[str, Any]:
    """What the shim gets: data, covariates standardised in a guarded fit, and how to go back."""
    words = asked.arguments
    kept = ("npy", "method", "maxit", *given.CONTROLS)
    arguments = {name: words[name] for name in kept if name in words}
    for item in blocks:
        if item.columns:
            arguments[f"{item.name}l"] = np.array(item.columns, dtype=np.float64)
        first = words.get(f"{item.name}init")
        if first is not None:
            arguments[f"{item.name}init"] = item.to_r(first, asked.unit)
    if not asked.raw:
        arguments = (
            {**TIGHT, **arguments} if words["method"] in ("Nelder-Mead", "BFGS") else arguments
        )
    parts = [item.back(asked.unit) for item in blocks]
    size = sum(item.size for item in blocks)
    back, place = np.zeros((size, size)), 0
    for by, _ in parts:
        back[place : place + len(by), place : place + len(by)] = by
        place += len(by)
    return {
        "xdat": values,
        "threshold": limit,
        "unit": asked.unit,
        "covariates": standardised(table, blocks),
        **{f"{item.name}link": item.link for item in blocks},
        "arguments": arguments,
        "restarts": 0 if asked.raw or words["method"] != "Nelder-Mead" else RESTARTS,
        "back": None if asked.raw else back,
        "moved": None if asked.raw else np.concatenate([moved for _, moved in parts]),
    }


def standardised(table: np.ndarray | None, blocks: Sequence[given.Block]) -> np.ndarray | None:
    """The covariates as R gets them: of the columns in use the centre taken off, divided by 2^k."""
    if table is None or not any(item.columns for item in blocks):
        return None
    found = table.astype(np.float64)
    for item in blocks:
        for column, centre, spread in zip(item.columns, item.centre, item.spread):
            found[:, column - 1] = (table[:, column - 1] - centre) / spread
    return found
