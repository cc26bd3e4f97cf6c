"""ismev::gpd.fit: generalised Pareto fits with covariates in scale and shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any


from pybridge.engines import _ismev_input as given
from pybridge.engines._ismev_answer import fit_record, negative_log_likelihood
from pybridge.engines._ismev_prepare import prepared
from pybridge.engines._ismev_record import IsmevFit
from pybridge.engines._engine_request import numbers
from pybridge.engines._tail_likelihood import LINKS, regression
from pybridge.engines._tail_optimum import pareto_peak, regression_peak
from pybridge.engines._tail_request import TailRequest, ask, exceeding
from pybridge.engines._tail_status import SHORTFALL
from pybridge.r import Reply

_SHIM = "ismev_tail_gpd_fit"
_AGAIN = "ismev's search stopped short; it was asked once more, from the exact optimum"


def gpd_fit(
    xdat: Any,
    threshold: Any,
    npy: float = 365,
    ydat: Any = None,
    sigl: Any = None,
    shl: Any = None,
    siglink: str = "identity",
    shlink: str = "identity",
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
    """Generalised Pareto fits by ismev::gpd.fit, with all its options and its defaults.

    Parameters
    ----------
    xdat : sequence of float, (n,)
    threshold : float or sequence of float, (n,)
        One threshold, or one for each score.
    npy : float
        Observations in a year, for return levels.
    ydat : pandas.DataFrame or array, optional
        Covariates, a row for each score.
    sigl, shl : names or numbers, optional
        Covariates of scale and shape: names of columns, or ismev's numbers, from 1.
    siglink, shlink : str
        ``"identity"``, ``"exp"``, or an R function as text (``"function(x) ..."``). The exact
        optimum is known for the first two.
    siginit, shinit : float or sequence of float, optional
        Where the search starts: the intercept, then a number a covariate.
    method, maxit, **control
        Of R's optim; what ismev's ``...`` hands on to its control.
    level : float
        Confidence level of the record's intervals.
    mode : {"guarded", "raw"}
        ``"raw"``: R's function as it is. ``"guarded"``: scores are divided by a power of two near
        their scale and covariates standardised, the search is tightened and started again where
        it stopped, and the exact optimum stands beside the answer; where the search stops short
        (and no start was given) R is asked once more from there.
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
    EngineTimeout, EngineUnavailable

    References
    ----------
    Coles (2001), An Introduction to Statistical Modeling of Extreme Values, chapters 4 and 6;
    Davison and Smith (1990), JRSS B 52, 393.
    """
    asked, inputs, blocks = prepared(
        "gpd.fit",
        (xdat, threshold, npy, ydat),
        (("sig", sigl, siglink, siginit), ("sh", shl, shlink, shinit)),
        given.search(method, maxit, control, mode=mode),
        {"mode": mode, "level": level, "time_limit": time_limit},
    )
    if asked.raw:
        return fit_record(_SHIM, asked, inputs, blocks, ask(_SHIM, inputs, asked))
    return _guarded(asked, inputs, blocks)


def _guarded(
    asked: TailRequest,
    inputs: dict[str, Any],
    blocks: tuple[given.Block, ...],
) -> IsmevFit:
    rows = inputs["xdat"] > inputs["threshold"]
    reply = ask(_SHIM, inputs, asked, may_fail=True)
    known = all(item.link in LINKS for item in blocks)
    if not known:
        notes = ["the exact optimum is known for the links identity and exp only"]
        return fit_record(_SHIM, asked, inputs, blocks, reply, notes=notes)
    scaled = exceeding(inputs["xdat"], inputs["threshold"]) / asked.unit
    design = [item.design(inputs["covariates"], rows) for item in blocks]
    links = tuple(item.link for item in blocks)
    words: dict[str, Any] = {
        "excesses": scaled,
        "scale_design": design[0],
        "shape_design": design[1],
        "links": links,
    }
    near = numbers(reply.value["mle"]) if reply.value else None
    plain = sum(item.size for item in blocks) == 2 and links == ("identity", "identity")
    peak = pareto_peak(scaled) if plain else regression_peak(**words, near=near)
    function = regression(**words)
    gap = math.inf if near is None else peak.value - function(near)[0]
    notes, as_given = [], {}
    free = not any(f"{item.name}init" in asked.arguments for item in blocks)
    if peak.settled and not gap < SHORTFALL and free:
        first = blocks[0].size
        inits = {"siginit": peak.theta[:first], "shinit": peak.theta[first:]}
        again = {**inputs, "arguments": {**inputs["arguments"], **inits}}
        second = ask(_SHIM, again, asked, may_fail=True)
        if second.value and not negative_log_likelihood(second) > negative_log_likelihood(reply):
            as_given = _first_answer(reply, blocks)
            reply, inputs, notes = second, again, [_AGAIN]
            gap = peak.value - function(numbers(reply.value["mle"]))[0]
    return fit_record(_SHIM, asked, inputs, blocks, reply, peak, gap, notes, as_given)


def _first_answer(reply: Reply, blocks: Sequence[given.Block]) -> dict[str, Any]:
    if not reply.value:
        return {"error": (reply.error or {}).get("message")}
    terms = [term for item in blocks for term in item.terms]
    named = dict(zip(terms, map(float, reply.value["mle_user"])))
    return {**named, "log_likelihood": -negative_log_likelihood(reply)}
