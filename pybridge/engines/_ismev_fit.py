"""ismev::gpd.fit: generalised Pareto fits with covariates in scale and shape."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pybridge.engines import _ismev_input as given
from pybridge.engines._ismev_record import IsmevFit
from pybridge.engines._sae_request import numbers
from pybridge.engines._tail_likelihood import LINKS, Peak, regression
from pybridge.engines._tail_optimum import pareto_peak, regression_peak
from pybridge.engines._tail_record import made_by, said
from pybridge.engines._tail_request import (
    FEWEST,
    TailRequest,
    ask,
    exceeding,
    hand_on,
    need_exceedances,
    positive,
    power_of_two,
    request,
    scores,
)
from pybridge.engines._tail_status import (
    SHORTFALL,
    WITH_ERRORS,
    findings,
    tail_status,
    tied,
    trusted,
)
from pybridge.r import Reply

_SHIM = "ismev_tail_gpd_fit"
# Nelder-Mead stops early and is started again from there, with a new simplex.
TIGHT = {"reltol": 1e-15}
RESTARTS = 5
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
    values = scores("xdat", xdat, mode=mode)
    limit = given.threshold_of(threshold, values.size)
    table, names = given.covariate_table(ydat, values.size)
    rows = values > limit
    blocks = tuple(
        given.block(name, chosen, link, table=table, names=names, rows=rows if guard else None)
        for guard in [mode == "guarded"]
        for name, chosen, link in (("sig", sigl, siglink), ("sh", shl, shlink))
    )
    starts = {"siginit": given.start("siginit", siginit, blocks[0])}
    starts["shinit"] = given.start("shinit", shinit, blocks[1])
    words = given.search(method, maxit, control, mode=mode)
    excesses = exceeding(values, limit)
    if mode == "guarded":
        fewest = max(FEWEST, 1 + sum(item.size for item in blocks))
        need_exceedances(excesses, values, fewest=fewest)
    asked = request(
        "ismev",
        "gpd.fit",
        {
            "threshold": limit,
            "npy": positive("npy", npy),
            **linear_words(blocks),
            **starts,
            **words,
        },
        mode=mode,
        level=level,
        time_limit=time_limit,
        unit=power_of_two(excesses),
    )
    inputs = fit_inputs(asked, values, limit, table, blocks)
    if asked.raw:
        return _record(asked, inputs, blocks, ask(_SHIM, inputs, asked))
    return _guarded(asked, inputs, blocks, excesses, rows)


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


def _guarded(
    asked: TailRequest,
    inputs: dict[str, Any],
    blocks: tuple[given.Block, ...],
    excesses: np.ndarray,
    rows: np.ndarray,
) -> IsmevFit:
    reply = ask(_SHIM, inputs, asked, may_fail=True)
    known = all(item.link in LINKS for item in blocks)
    if not known:
        notes = ["the exact optimum is known for the links identity and exp only"]
        return _record(asked, inputs, blocks, reply, notes=notes)
    scaled = excesses / asked.unit
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
        if second.value and not _nllh(second) > _nllh(reply):
            as_given = _first_answer(reply, blocks)
            reply, inputs, notes = second, again, [_AGAIN]
            gap = peak.value - function(numbers(reply.value["mle"]))[0]
    return _record(asked, inputs, blocks, reply, peak, gap, notes, as_given)


def _nllh(reply: Reply) -> float:
    return float(reply.value["nllh"][0]) if reply.value else math.inf


def _first_answer(reply: Reply, blocks: Sequence[given.Block]) -> dict[str, Any]:
    if not reply.value:
        return {"error": (reply.error or {}).get("message")}
    terms = [term for item in blocks for term in item.terms]
    named = dict(zip(terms, map(float, reply.value["mle_user"])))
    return {**named, "log_likelihood": -_nllh(reply)}


def _record(
    asked: TailRequest,
    inputs: Mapping[str, Any],
    blocks: tuple[given.Block, ...],
    reply: Reply,
    peak: Peak | None = None,
    gap: float = math.nan,
    notes: Sequence[str] = (),
    as_given: Mapping[str, Any] | None = None,
) -> IsmevFit:
    hand_on(reply, "ismev")
    value = dict(reply.value)
    terms = [term for item in blocks for term in item.terms]
    exact: dict[str, Any] = {}
    if peak is not None and np.isfinite(peak.value):
        moved = int((inputs["xdat"] > inputs["threshold"]).sum()) * math.log(asked.unit)
        theirs = inputs["back"] @ peak.theta + inputs["moved"]
        exact = dict(zip(terms, theirs.tolist()))
        exact["log_likelihood"] = peak.value - moved
        exact["log_likelihood_at_engine"] = peak.value - gap - moved
        exact["shortfall"] = gap
    status = _status(asked, value, inputs, blocks, peak, gap)
    size = len(terms)
    estimate, covariance = np.full(size, math.nan), np.full((size, size), math.nan)
    n = 0
    if value:
        estimate, n = numbers(value["mle_user"]), int(value["nexc"][0])
        # A guarded fit gives none where they stand for nothing; R's own stay in `value`.
        if asked.raw or status in WITH_ERRORS:
            covariance = numbers(value["cov_user"])
    return IsmevFit(
        request=asked,
        shim=_SHIM,
        inputs=inputs,
        value=value,
        status=status,
        engine_status="error" if reply.error else f"conv {int(value['conv'][0])}",
        conditions=(*said(reply), *notes, *findings(status, exact, n)),
        provenance=made_by(asked, reply),
        blocks=blocks,
        estimate=estimate,
        covariance=covariance,
        log_likelihood=-_nllh(reply) if value else math.nan,
        n_exceedances=n,
        exact=exact,
        as_given=as_given or {},
    )


def _status(
    asked: TailRequest,
    value: Mapping[str, Any],
    inputs: Mapping[str, Any],
    blocks: Sequence[given.Block],
    peak: Peak | None,
    gap: float,
) -> str:
    plain = all(item.size == 1 for item in blocks)
    settled = peak is None or peak.settled or not plain
    if not value:
        return "failed" if settled else "infeasible"
    estimate, errors = numbers(value["mle"]), numbers(value["se"])
    scales = np.zeros(estimate.size, dtype=bool)
    scales[0] = blocks[0].link == "identity"
    excesses = exceeding(inputs["xdat"], inputs["threshold"])
    return tail_status(
        n=int(value["nexc"][0]),
        is_tied=tied(excesses),
        shape=float(np.min(numbers(value["vals"])[:, 1])),
        settled=settled,
        converged=int(value["conv"][0]) == 0,
        gap=gap if math.isfinite(gap) else 0.0,
        good_errors=trusted(errors, estimate, scales),
    )
