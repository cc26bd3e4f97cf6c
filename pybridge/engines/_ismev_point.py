"""ismev::pp.fit: exceedances as a point process."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pybridge.engines import _ismev_input as given
from pybridge.engines._ismev_answer import fit_record
from pybridge.engines._ismev_prepare import prepared
from pybridge.engines._ismev_record import IsmevFit
from pybridge.engines._engine_request import numbers
from pybridge.engines._tail_optimum import Model, optimum
from pybridge.engines._tail_request import TailRequest, ask, exceeding

_SHIM = "ismev_tail_pp_fit"
_LINEAR = "no exact optimum is computed for a point process with covariates or links"
_FROM_THERE = "ismev's own start may lead it elsewhere; the search began at the exact optimum"
_FROM_PLAIN = "ismev's own start may lead it elsewhere; it began at the optimum without covariates"


def pp_fit(
    xdat: Any,
    threshold: Any,
    npy: float = 365,
    ydat: Any = None,
    mul: Any = None,
    sigl: Any = None,
    shl: Any = None,
    mulink: str = "identity",
    siglink: str = "identity",
    shlink: str = "identity",
    muinit: Any = None,
    siginit: Any = None,
    shinit: Any = None,
    method: str = "Nelder-Mead",
    maxit: int = 10_000,
    *,
    level: float = 0.95,
    mode: str = "guarded",
    time_limit: float | None = None,
    **control: Any,
) -> IsmevFit:
    """Exceedances as a point process by ismev::pp.fit.

    ismev's own start, and its demand that every score (not only exceedances) be possible, can end
    its search far from the optimum with its flag at 0. Guarded the search begins at the exact
    optimum where no start is given, and says where it ends below it; ``evd.fpot(model="pp")`` has
    no such demand.

    Parameters
    ----------
    xdat : sequence of float, (n,)
    threshold : float or sequence of float, (n,)
    npy : float
        Observations in a year.
    ydat, mul, sigl, shl, mulink, siglink, shlink
        Covariates and links of location, scale and shape, as in `gpd_fit`.
    muinit, siginit, shinit : float or sequence of float, optional
        Where the search starts.
    method, maxit, **control
        Of R's optim.
    level : float
    mode : {"guarded", "raw"}
    time_limit : float, optional
        Seconds for R.

    Returns
    -------
    IsmevFit

    Raises
    ------
    InputError
        Before ismev is called.
    EngineError
        Where R stops, in raw mode.

    References
    ----------
    Coles (2001), An Introduction to Statistical Modeling of Extreme Values, chapter 7; Smith
    (1989), Statistical Science 4, 367.
    """
    asked, inputs, blocks = prepared(
        "pp.fit",
        (xdat, threshold, npy, ydat),
        (
            ("mu", mul, mulink, muinit),
            ("sig", sigl, siglink, siginit),
            ("sh", shl, shlink, shinit),
        ),
        given.search(method, maxit, control, mode=mode),
        {"mode": mode, "level": level, "time_limit": time_limit},
    )
    if asked.raw:
        return fit_record(_SHIM, asked, inputs, blocks, ask(_SHIM, inputs, asked))
    return _guarded(asked, inputs, blocks)


def _guarded(
    asked: TailRequest, inputs: dict[str, Any], blocks: tuple[given.Block, ...]
) -> IsmevFit:
    varies = np.ndim(inputs["threshold"]) > 0
    plain = not varies and all(item.size == 1 and item.link == "identity" for item in blocks)
    limit = float(np.mean(inputs["threshold"])) / asked.unit
    model = Model(
        "pp",
        exceeding(inputs["xdat"], inputs["threshold"]) / asked.unit,
        threshold=limit,
        periods=inputs["xdat"].size / asked.arguments["npy"],
    )
    peak = optimum(model, {})
    notes = []
    free = not any(f"{item.name}init" in asked.arguments for item in blocks)
    if free and peak.settled:
        inits = {}
        for item, value in zip(blocks, peak.theta.tolist()):
            first = np.zeros(item.size)
            first[0] = math.log(max(value, 1e-2)) if item.link == "exp" else value
            inits[f"{item.name}init"] = first
        inputs = {**inputs, "arguments": {**inputs["arguments"], **inits}}
        notes.append(_FROM_THERE if plain else _FROM_PLAIN)
    reply = ask(_SHIM, inputs, asked, may_fail=True)
    if not plain:
        return fit_record(_SHIM, asked, inputs, blocks, reply, notes=[*notes, _LINEAR])
    gap = math.inf
    if reply.value:
        gap = peak.value - model.log_likelihood(numbers(reply.value["mle"]))
    return fit_record(_SHIM, asked, inputs, blocks, reply, peak, gap, notes)
