"""rjags: any model of JAGS by its text; draws summarised in R."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pybridge._checks import name_list, real_array
from pybridge._options import whole_number
from pybridge.engines import _sae_request as requests
from pybridge.engines._rjags_record import COLUMNS, SMALLEST_SIZE, WORST_R_HAT, JagsSamples
from pybridge.engines._sae_request import SaeRequest
from pybridge.errors import InputError
from pybridge.provenance import provenance
from pybridge.r import Reply

_MOST_SEED = 2**31 - 100


def coda_samples(
    model: str,
    data: Mapping[str, Any],
    variable_names: Sequence[str],
    n_iter: int,
    *,
    thin: int = 1,
    inits: Mapping[str, Any] | None = None,
    n_chains: int = 4,
    n_adapt: int = 1000,
    n_burn: int = 0,
    seed: int | None = None,
    level: float = 0.95,
    mode: str = "guarded",
    time_limit: float | None = None,
) -> JagsSamples:
    """Draws from a model of JAGS by rjags::jags.model and coda.samples, summarised.

    Parameters
    ----------
    model : str
        The model's text, ``"model { ... }"``.
    data : mapping of str
        Numbers, vectors and matrices that the model names.
    variable_names : sequence of str
        Nodes to watch.
    n_iter : int
        Draws kept a chain; of every ``thin`` one.
    inits : mapping, optional
        Starting values, the same in every chain.
    n_chains, n_adapt : int
        As in jags.model; ``n_burn`` draws are thrown away after adaption. R's own n.chains is 1,
        with which nothing can be said about convergence.
    seed : int, optional
        Chain c starts from seed + c. A fresh one, kept in the record, where none is given: JAGS
        itself takes the clock's, and ``set.seed`` does not reach it. In raw mode none is sent
        then.
    level : float
        Mass of the intervals (quantiles).
    mode : {"guarded", "raw"}
        Guarded, chains that have not met are ``not_converged``: an R-hat above 1.05, or an
        effective size below 200.
    time_limit : float, optional
        Seconds for R.

    Returns
    -------
    JagsSamples

    References
    ----------
    Plummer (2003), JAGS; Gelman and Rubin (1992), Statistical Science 7, 457.
    """
    if not isinstance(model, str) or "{" not in model:
        raise InputError(
            "the model is the text of a model of JAGS",
            code="bad_model",
            field="model",
            expected="'model { ... }'",
            got=model,
        )
    watched = name_list("variable_names", variable_names)
    words = locals()
    asked, settings = jags_request("coda.samples", {"variable.names": watched}, words)
    inputs = {
        "model": model,
        "data": {name: _node(name, value) for name, value in data.items()},
        "variable_names": list(watched),
        "inits": None if inits is None else {n: _node(n, v) for n, v in inits.items()},
        **settings,
    }
    reply = requests.ask("rjags_samples", inputs, asked, may_fail=not asked.raw)
    return jags_record(asked, inputs, reply)


def jags_request(
    function: str, arguments: Mapping[str, Any], given: Mapping[str, Any]
) -> tuple[SaeRequest, dict[str, Any]]:
    """The checked request, and what the shim takes beside model and data."""
    counts = {
        name: whole_number(name, given[name], least=0 if name == "n_burn" else 1)
        for name in ("n_iter", "thin", "n_chains", "n_adapt", "n_burn")
    }
    seed = given["seed"]
    if seed is not None:
        seed = whole_number("seed", seed, least=0, most=_MOST_SEED)
    elif given["mode"] != "raw":
        seed = secrets.randbelow(_MOST_SEED)
    words = {name: given[name] for name in ("level", "mode", "time_limit")}
    shown = {name.replace("_", "."): value for name, value in counts.items()}
    asked = requests.request(
        function,
        {**arguments, **shown},
        **words,
        seed=seed,
        random=seed is not None,
        package="rjags",
    )
    half = round(0.5 * (1.0 - asked.level), 12)  # 0.025 as it is written, not 1 - 0.95
    settings: dict[str, Any] = {name: float(value) for name, value in counts.items()}
    settings["n_draws"] = settings.pop("n_iter")
    settings["seed"] = None if seed is None else float(seed)
    settings["tails"] = np.array([half, 1.0 - half])
    return asked, settings


def _node(name: str, value: Any) -> Any:
    """A number, vector or matrix of a model of JAGS."""
    array = real_array("data", value)
    if array.ndim > 2 or array.size == 0:
        raise InputError(
            f"the node {name!r} must be a number, a vector or a matrix",
            code="bad_shape",
            field="data",
            expected="at most two dimensions",
            got=f"shape {array.shape}",
        )
    return float(array) if array.ndim == 0 else array


def _named(words: Sequence[str], named: Mapping[str, Sequence[str]] | None) -> np.ndarray:
    """R's names of the parameters, with the user's labels where there are any."""
    out = np.empty(len(words), dtype=object)
    for k, word in enumerate(words):
        node, _, rest = word.partition("[")
        own = (named or {}).get(node)
        out[k] = word if own is None else own[int(rest.rstrip("]")) - 1 if rest else 0]
    return out


def jags_record(
    asked: SaeRequest,
    inputs: Mapping[str, Any],
    reply: Reply,
    *,
    named: Mapping[str, Sequence[str]] | None = None,
) -> JagsSamples:
    """The record; ``named`` holds the user's labels of nodes' elements."""
    requests.hand_on(reply, package="rjags")
    value = dict(reply.value)
    table = {name: requests.numbers(value.get(name, ())) for name in COLUMNS}
    notes: list[str] = []
    status = "failed" if reply.error is not None else "converged"
    if status == "converged" and not asked.raw:
        worst = np.nanmax(np.append(table["r_hat"], np.nan_to_num(table["r_hat"], nan=0.0)))
        if worst > WORST_R_HAT or (table["effective_size"] < SMALLEST_SIZE).any():
            status = "not_converged"
        if inputs["n_chains"] == 1:
            notes.append("one chain: nothing says whether it has converged (n_chains=4)")
    return JagsSamples(
        request=asked,
        shim="rjags_samples",
        inputs=inputs,
        value={name: item for name, item in value.items() if name == "n_draws"},
        status=status,
        engine_status="error" if reply.error is not None else "converged",
        conditions=(*requests.said(reply), *notes),
        provenance=provenance(
            "rjags",
            asked.function,
            options={**asked.arguments, "mode": asked.mode, "level": asked.level},
            seed=asked.seed,
            versions=reply.versions,
        ),
        parameters=_named(list(value.get("parameter") or []), named),
        table=table,
        n_draws=int(value["n_draws"][0]) if reply.error is None else 0,
    )
