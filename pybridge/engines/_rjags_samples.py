"""rjags: any model of JAGS by its text; draws summarised in R."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pybridge._checks import name_list, real_array
from pybridge._options import whole_number, yes_or_no
from pybridge.engines import _engine_request as requests
from pybridge.engines._rjags_record import COLUMNS, SMALLEST_SIZE, WORST_R_HAT, JagsSamples
from pybridge.engines._engine_request import EngineRequest
from pybridge.errors import InputError
from pybridge.provenance import provenance
from pybridge.r import Reply

_MOST_SEED = 2**31 - 100
# JAGS's words where the numbers of a node are at fault; a model that it cannot read or compile, or
# a node that is not there, is an error.
NUMERICAL = re.compile(
    r"Invalid parent values|inconsistent with|[Ss]licer|log density|Failure to calculate|infinite"
)


def coda_samples(
    model: str,
    data: Mapping[str, Any],
    variable_names: Sequence[str],
    n_iter: int,
    *,
    thin: int = 1,
    na_rm: bool = True,
    inits: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
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
    n_iter, thin : int
        Iterations of a chain, of which every ``thin``-th is kept.
    na_rm : bool
        Whether nodes with missing values are left out of the draws.
    inits : mapping, or sequence of mappings, optional
        Starting values, the same in every chain, or a mapping for each. With ``.RNG.name`` and
        ``.RNG.seed`` among them a chain draws from that generator, and there is no ``seed``.
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

    Raises
    ------
    InputError
        Before JAGS is called.
    EngineError
        A model that JAGS cannot read or compile, or nodes that it does not have; in raw mode also
        where a node's numbers fail, which is the status ``failed`` otherwise.
    EngineTimeout, EngineUnavailable

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
    if not watched:
        raise InputError(
            "no node is to be watched",
            code="empty",
            field="variable_names",
            expected="names of nodes of the model",
            got=variable_names,
        )
    words = locals()
    start, own_generator = _inits(inits, n_chains, seed)
    arguments: dict[str, Any] = {"variable.names": watched}
    if not yes_or_no("na_rm", na_rm):
        arguments["na.rm"] = False
    asked, settings = jags_request("coda.samples", arguments, words, drawn=not own_generator)
    inputs = {
        "model": model,
        "data": {name: _node(name, value) for name, value in _named_values("data", data).items()},
        "variable_names": list(watched),
        "inits": start,
        "na_rm": na_rm,
        **settings,
    }
    reply = requests.ask("rjags_samples", inputs, asked, may_fail=False if asked.raw else NUMERICAL)
    return jags_record(asked, inputs, reply)


def _named_values(field: str, given: Any) -> Mapping[str, Any]:
    if isinstance(given, Mapping) and all(isinstance(name, str) and name for name in given):
        return given
    raise InputError(
        f"{field} must be a mapping of values by the names of nodes",
        code="not_a_mapping",
        field=field,
        expected="{'y': [1.0, 2.0], 'n': 2}",
        got=type(given).__name__,
    )


def _inits(given: Any, n_chains: Any, seed: int | None) -> tuple[Any, bool]:
    """R's inits, and whether they hold generators of random numbers of their own."""
    if given is None:
        return None, False
    several = not isinstance(given, Mapping)
    chains = list(given) if several and np.iterable(given) else [given]
    if several and len(chains) != n_chains:
        raise InputError(
            "inits must be a mapping, or one for each chain",
            code="wrong_length",
            field="inits",
            expected=f"{n_chains} mappings",
            got=len(chains),
        )
    found = []
    for chain in chains:
        values = _named_values("inits", chain)
        found.append({name: _start(name, value) for name, value in values.items()})
    own = any(name.startswith(".RNG.") for chain in found for name in chain)
    if own and seed is not None:
        raise InputError(
            "seed and the generators in inits are two ways to say the same",
            code="both_given",
            field="seed",
            expected="no seed beside .RNG.name and .RNG.seed in inits",
            got=seed,
        )
    if several:
        return {f"chain{k + 1}": chain for k, chain in enumerate(found)}, own
    return found[0], own


def _start(name: str, value: Any) -> Any:
    if name != ".RNG.name":
        return _node(name, value, field="inits")
    if isinstance(value, str):
        return value
    raise InputError(
        ".RNG.name is the name of a generator of JAGS",
        code="bad_name",
        field="inits",
        expected="'base::Mersenne-Twister', 'base::Wichmann-Hill' ...",
        got=value,
    )


def jags_request(
    function: str,
    arguments: Mapping[str, Any],
    given: Mapping[str, Any],
    *,
    drawn: bool = True,
) -> tuple[EngineRequest, dict[str, Any]]:
    """The checked request, and what the shim takes beside model and data.

    Parameters
    ----------
    drawn : bool
        Whether a seed is drawn where none is given.
    """
    counts = {
        name: whole_number(name, given[name], least=0 if name in ("n_burn", "n_adapt") else 1)
        for name in ("n_iter", "thin", "n_chains", "n_adapt", "n_burn")
    }
    seed = given["seed"]
    if seed is not None:
        seed = whole_number("seed", seed, least=0, most=_MOST_SEED)
    elif given["mode"] != "raw" and drawn:
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
    if counts["n_iter"] < counts["thin"]:
        raise InputError(
            "no draw is kept",
            code="bad_count",
            field="n_iter",
            expected=f"at least thin, {counts['thin']}",
            got=counts["n_iter"],
        )
    settings["n_draws"] = float(counts["n_iter"] // counts["thin"])
    settings["seed"] = None if seed is None else float(seed)
    settings["tails"] = np.array([half, 1.0 - half])
    return asked, settings


def _node(name: str, value: Any, *, field: str = "data") -> Any:
    """A number, vector or matrix of a model of JAGS."""
    array = real_array(field, value)
    if array.ndim > 2 or array.size == 0:
        raise InputError(
            f"the node {name!r} must be a number, a vector or a matrix",
            code="bad_shape",
            field=field,
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
    asked: EngineRequest,
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
