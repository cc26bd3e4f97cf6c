"""ismev::pp.fit: exceedances as a point process."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pybridge.engines import _ismev_input as given
from pybridge.engines._ismev_fit import fit_inputs, linear_words
from pybridge.engines._ismev_record import IsmevFit
from pybridge.engines._sae_request import numbers
from pybridge.engines._tail_likelihood import Peak
from pybridge.engines._tail_optimum import Model, optimum
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
from pybridge.engines._tail_status import WITH_ERRORS, findings, tail_status, tied, trusted
from pybridge.r import Reply

_SHIM = "ismev_tail_pp_fit"
_LINEAR = "no exact optimum is computed for a point process with covariates or links"
_FROM_THERE = "ismev's own start may lead it elsewhere; the search began at the exact optimum"


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
    values = scores("xdat", xdat, mode=mode)
    limit = given.threshold_of(threshold, values.size)
    table, names = given.covariate_table(ydat, values.size)
    chosen = (("mu", mul, mulink), ("sig", sigl, siglink), ("sh", shl, shlink))
    rows = np.ones(values.size, dtype=bool) if mode == "guarded" else None
    blocks = tuple(
        given.block(name, columns, link, table=table, names=names, rows=rows)
        for name, columns, link in chosen
    )
    starts = {
        f"{item.name}init": given.start(f"{item.name}init", value, item)
        for item, value in zip(blocks, (muinit, siginit, shinit))
    }
    words = given.search(method, maxit, control, mode=mode)
    excesses = exceeding(values, limit)
    if mode == "guarded":
        fewest = max(FEWEST, 1 + sum(item.size for item in blocks))
        need_exceedances(excesses, values, fewest=fewest)
    asked = request(
        "ismev",
        "pp.fit",
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
        notes.append(_FROM_THERE)
    reply = ask(_SHIM, inputs, asked, may_fail=True)
    if not plain:
        return _record(asked, inputs, blocks, reply, notes=[*notes, _LINEAR])
    gap = math.inf
    if reply.value:
        gap = peak.value - model.log_likelihood(numbers(reply.value["mle"]))
    return _record(asked, inputs, blocks, reply, peak, gap, notes)


def _record(
    asked: TailRequest,
    inputs: Mapping[str, Any],
    blocks: tuple[given.Block, ...],
    reply: Reply,
    peak: Peak | None = None,
    gap: float = math.nan,
    notes: Sequence[str] = (),
) -> IsmevFit:
    hand_on(reply, "ismev")
    value = dict(reply.value)
    terms = [term for item in blocks for term in item.terms]
    excesses = exceeding(inputs["xdat"], inputs["threshold"])
    exact: dict[str, Any] = {}
    if peak is not None:
        moved = excesses.size * math.log(asked.unit)
        exact = dict(zip(terms, (inputs["back"] @ peak.theta + inputs["moved"]).tolist()))
        exact["log_likelihood"] = peak.value - moved
        exact["log_likelihood_at_engine"] = peak.value - gap - moved
        exact["shortfall"] = gap
    status, size = "failed", len(terms)
    estimate, covariance = np.full(size, math.nan), np.full((size, size), math.nan)
    if value:
        estimate = numbers(value["mle_user"])
        mle = numbers(value["mle"])
        scales = np.zeros(size, dtype=bool)
        scales[blocks[0].size] = blocks[1].link == "identity"
        status = tail_status(
            n=excesses.size,
            is_tied=tied(excesses),
            shape=float(np.min(numbers(value["vals"])[:, 2])),
            settled=peak is None or peak.settled,
            converged=int(value["conv"][0]) == 0,
            gap=gap if math.isfinite(gap) else 0.0,
            good_errors=trusted(numbers(value["se"]), mle, scales),
        )
        if asked.raw or status in WITH_ERRORS:
            covariance = numbers(value["cov_user"])
    return IsmevFit(
        request=asked,
        shim=_SHIM,
        inputs=inputs,
        value=value,
        status=status,
        engine_status="error" if reply.error else f"conv {int(value['conv'][0])}",
        conditions=(*said(reply), *notes, *findings(status, exact, excesses.size)),
        provenance=made_by(asked, reply),
        blocks=blocks,
        estimate=estimate,
        covariance=covariance,
        log_likelihood=-float(value["nllh"][0]) if value else math.nan,
        n_exceedances=excesses.size,
        exact=exact,
        as_given={},
    )
