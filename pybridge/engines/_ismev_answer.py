"""The record of ismev's fits from R's answer, with its status."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pybridge.engines import _ismev_input as given
from pybridge.engines._ismev_record import IsmevFit
from pybridge.engines._engine_request import numbers
from pybridge.engines._tail_likelihood import Peak
from pybridge.engines._tail_record import common
from pybridge.engines._tail_request import TailRequest, exceeding
from pybridge.engines._tail_status import WITH_ERRORS, findings, tail_status, tied, trusted
from pybridge.r import Reply


def negative_log_likelihood(reply: Reply) -> float:
    """R's, in the user's units; infinite where R stopped."""
    return float(reply.value["nllh"][0]) if reply.value else math.inf


def fit_record(
    shim: str,
    asked: TailRequest,
    inputs: Mapping[str, Any],
    blocks: tuple[given.Block, ...],
    reply: Reply,
    peak: Peak | None = None,
    gap: float = math.nan,
    notes: Sequence[str] = (),
    as_given: Mapping[str, Any] | None = None,
) -> IsmevFit:
    """The record.

    Parameters
    ----------
    peak : the exact optimum in R's units, None in raw mode and where there is none
    gap : what R's log-likelihood lacks to it
    """
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
        **common(
            asked,
            shim,
            inputs,
            reply,
            status=status,
            engine_status=f"conv {int(value['conv'][0])}" if value else "error",
            notes=[*notes, *findings(status, exact, n)],
            value=value,
        ),
        blocks=blocks,
        estimate=estimate,
        covariance=covariance,
        log_likelihood=-negative_log_likelihood(reply) if value else math.nan,
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
    place = sum(item.size for item in blocks[:-2])
    scales[place] = blocks[-2].link == "identity"
    excesses = exceeding(inputs["xdat"], inputs["threshold"])
    return tail_status(
        n=int(value["nexc"][0]),
        is_tied=tied(excesses),
        shape=float(np.min(numbers(value["vals"])[:, len(blocks) - 1])),
        settled=settled,
        converged=int(value["conv"][0]) == 0,
        gap=gap if math.isfinite(gap) else 0.0,
        good_errors=trusted(errors, estimate, scales),
    )
