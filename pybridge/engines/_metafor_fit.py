"""metafor::rma.mv: multilevel models of estimates with known sampling variances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import name_list, need_columns, need_frame, real_array
from pybridge._options import check_level, choose, real_number, yes_or_no
from pybridge.engines import _engine_request as requests
from pybridge.engines._metafor_guard import beside_the_optimum, check_table
from pybridge.engines._metafor_record import MetaforFit
from pybridge.engines._metafor_input import (
    control_list,
    correlations,
    flags_of_rows,
    kept_rows,
    mapping,
    of_rows,
    own_groups,
    read_columns,
    square,
    weights,
)
from pybridge.engines._metafor_refuse import NUMERICAL, check_call, check_matrices
from pybridge.engines._r_formula import FUNCTIONS
from pybridge.engines._sae_input import column_values, domain_labels
from pybridge.engines._engine_request import EngineRequest
from pybridge.errors import InputError
from pybridge.provenance import provenance
from pybridge.r import Reply

METHODS = ("REML", "ML", "EE", "CE", "FE")
STRUCTURES = (
    *("CS", "HCS", "UN", "DIAG", "ID", "UNR", "AR", "HAR", "CAR", "SPEXP", "SPGAU", "SPLIN"),
    *("SPRAT", "SPSPH", "GEN", "GDIAG", "PHYBM", "PHYPL", "PHYPD"),
)
TESTS = ("z", "t")
FREEDOMS = ("residual", "contain")
SCALES = ("none", "cor", "cor0", "cov0")
DISTANCES = ("euclidean", "maximum", "manhattan", "gcd")
COVARIANCES = ("varcor", "varcov", "transf")
# What R takes where nothing is said: not sent, since metafor warns of options without effect.
_DEFAULTS: dict[str, Any] = {
    "struct": ["CS"],
    "intercept": True,
    "test": "z",
    "dfs": "residual",
    "Rscale": "cor",
    "cvvc": False,
    "sparse": False,
}


def rma_mv(
    data: pd.DataFrame,
    yi: str,
    V: str | pd.DataFrame | np.ndarray,
    mods: str | None = None,
    random: str | Sequence[str] = (),
    *,
    W: Any = None,
    struct: str | Sequence[str] = "CS",
    intercept: bool = True,
    slab: str | None = None,
    subset: str | Sequence[bool] | None = None,
    method: str = "REML",
    test: str = "z",
    dfs: str | float | Sequence[float] = "residual",
    level: float = 95,
    btt: str | Sequence[int] | None = None,
    R: Mapping[str, pd.DataFrame] | None = None,
    Rscale: str = "cor",
    sigma2: Any = None,
    tau2: Any = None,
    rho: Any = None,
    gamma2: Any = None,
    phi: Any = None,
    cvvc: bool | str = False,
    sparse: bool = False,
    dist: str | Sequence[str] | None = None,
    control: Mapping[str, Any] | None = None,
    domain: str | None = None,
    mode: str = "guarded",
    time_limit: float | None = None,
) -> MetaforFit:
    """Multilevel models of estimates with known sampling variances by metafor::rma.mv.

    Parameters
    ----------
    data : pandas.DataFrame
        One row an estimate.
    yi : str
        Column of the estimates.
    V : str, or matrix (m, m)
        Column of the sampling variances, or the covariance matrix in the table's order.
    mods : str, optional
        Moderators in R's words, ``"~ x + as.factor(g)"``.
    random : str or sequence of str
        ``"~ 1 | region/county"``, or ``["~ 1 | region", "~ 1 | county"]``; up to two of the form
        ``"~ inner | outer"``.
    W : array, optional
        Weights (m,), or a matrix (m, m).
    struct, test, Rscale, sparse
        As in R.
    intercept : bool
        As in R, which takes no notice of it beside ``mods``: a formula says itself whether there
        is an intercept (``"~ 0 + x"``), and without one R puts it back.
    slab : str, optional
        Column of the labels that R writes beside the rows; also ``domain`` where that is not given.
    subset : str or sequence of bool, optional
        The rows that are fitted: a condition in R's words, ``"x > 10"``, or a flag a row. The
        others have NaN.
    method : {"REML", "ML", "EE", "CE", "FE"}
        The last three are the model without random effects, which R has under three names.
    dfs : {"residual", "contain"}, or number(s)
        Degrees of freedom of ``test="t"``.
    btt : str or sequence of int, optional
        Coefficients of the joint test: their numbers from 1, or a pattern of their names.
    cvvc : bool or {"varcor", "varcov", "transf"}
        Whether R computes the covariance of the variance parameters, ``value["vvc"]``.
    dist : str, or one for each term, optional
        Distances of spatial structures: euclidean, maximum, manhattan or gcd.
    level : float
        Of R's intervals: 95, or 0.95.
    R : mapping of str to pandas.DataFrame, optional
        Known correlations of the groups of a random factor, labels as index and columns.
    sigma2, tau2, rho, gamma2, phi : optional
        Values at which parameters are fixed; NaN for those to be estimated.
    control : mapping, optional
        R's control list: ``optimizer``, ``optmethod``, ``maxit``, ``reltol`` ...
    domain : str, optional
        The column of labels of the rows; else the column ``domain``, else the table's index.
    mode : {"guarded", "raw"}
        ``"raw"``: R's function as it is: rows with gaps are left out and redundant moderators
        dropped, with a warning each. ``"guarded"``: such tables are refused, and nested random
        intercepts are compared with the exact optimum.
    time_limit : float, optional
        Seconds for R.

    Returns
    -------
    MetaforFit

    Raises
    ------
    InputError
        Before metafor is called.
    EngineError
        Where R stops (metafor does where its optimiser did not converge: guarded that is the
        status ``failed``).
    EngineTimeout, EngineUnavailable

    References
    ----------
    Viechtbauer (2010), Journal of Statistical Software 36(3).
    """
    asked, options = _request(locals())
    table = need_frame("data", data)
    need_columns(table, [yi], field="yi")
    labels = domain_labels(table, slab if domain is None else domain)
    formulas = name_list("random", random)
    read = read_columns(table, yi, V, mods, formulas, slab=slab, subset=subset)
    computed = {yi, V} if isinstance(V, str) else {yi}
    inputs: dict[str, Any] = {
        "data": {
            name: column_values(table[column], integers=column not in computed)
            for column, name in read["names"].items()
        },
        "yi": read["names"][yi],
        "V": read["names"][V] if isinstance(V, str) else None,
        "matrix": None if isinstance(V, str) else square(V, len(table), "V"),
        "W": None if W is None else weights(W, len(table)),
        "mods": read["mods"].code if read["mods"] else None,
        "random": [one.code for one in read["random"]],
        "functions": list(FUNCTIONS),
        "options": options,
        "R": None if R is None else correlations(R, read["names"]),
        "slab": read["slab"],
        "subset": read["subset"].code if read["subset"] else None,
        "rows": flags_of_rows(subset, len(table)),
    }
    if asked.raw:
        reply = requests.ask("metafor_rma_mv", inputs, asked)
        return _record(table, labels, inputs, read, asked, reply)
    check_call(read, inputs)
    rows = kept_rows(inputs, len(table), asked)
    check_matrices(inputs, rows, labels)
    kept = of_rows(inputs, rows)
    x = check_table(table[rows], labels[rows], kept, read, asked)
    reply = requests.ask("metafor_rma_mv", inputs, asked, may_fail=NUMERICAL)
    verdict = beside_the_optimum(kept, asked, reply, x)
    return _record(table, labels, inputs, read, asked, reply, **verdict)


def _request(given: Mapping[str, Any]) -> tuple[EngineRequest, dict[str, Any]]:
    """The request, and R's options beside table and formulas, under R's names."""
    struct = given["struct"]
    structures = [struct] if isinstance(struct, (str, bytes)) or not np.ndim(struct) else struct
    structures = list(structures) or [None]
    for one in structures:
        choose("struct", one, STRUCTURES)
    number = real_number("level", given["level"])
    number = check_level(number / 100.0 if number >= 1.0 else number)
    options: dict[str, Any] = {
        "struct": structures,
        "intercept": yes_or_no("intercept", given["intercept"]),
        "method": choose("method", given["method"], METHODS),
        "test": choose("test", given["test"], TESTS),
        "dfs": _freedom(given["dfs"]),
        "level": 100.0 * number,
        "Rscale": choose("Rscale", given["Rscale"], SCALES),
        "cvvc": _word_or_flag("cvvc", given["cvvc"], COVARIANCES),
        "sparse": yes_or_no("sparse", given["sparse"]),
    }
    for name in ("btt", "sigma2", "tau2", "rho", "gamma2", "phi"):
        if given[name] is not None:
            pattern = name == "btt" and isinstance(given[name], str)
            options[name] = given[name] if pattern else _numbers(name, given[name])
    for one in name_list("dist", given["dist"]):
        options.setdefault("dist", []).append(choose("dist", one, DISTANCES))
    if given["control"] is not None and mapping("control", given["control"]):
        options["control"] = control_list(given["control"])
    arguments: dict[str, Any] = {"yi": given["yi"]}
    arguments["V"] = given["V"] if isinstance(given["V"], str) else "V"
    for name in ("mods", "random", "slab"):
        if name_list(name, given[name]):
            arguments[name] = given[name]
    if given["subset"] is not None:
        arguments["subset"] = given["subset"] if isinstance(given["subset"], str) else "subset"
    if given["mode"] != "raw" and options["method"] in METHODS[2:] and "random" in arguments:
        raise InputError(
            f"method {options['method']} has no random effects: R would disregard random",
            code="not_available",
            field="random",
            expected="method='REML' or 'ML', or no random",
            got=given["random"],
        )
    arguments.update(options)
    words = {name: given[name] for name in ("mode", "time_limit")}
    asked = requests.request(
        "rma.mv", arguments, **words, level=number, seed=None, package="metafor"
    )
    return asked, {n: v for n, v in options.items() if not _usual(n, v)}


def _usual(name: str, value: Any) -> bool:
    default = _DEFAULTS.get(name)
    return default is not None and isinstance(value, type(default)) and bool(value == default)


def _freedom(given: Any) -> Any:
    """R's dfs: a word, or degrees of freedom."""
    if isinstance(given, str):
        return choose("dfs", given, FREEDOMS)
    found = _numbers("dfs", given)
    if not (found > 0).all():
        raise InputError(
            "degrees of freedom must be positive",
            code="bad_count",
            field="dfs",
            expected=" | ".join(FREEDOMS) + ", or positive numbers",
            got=given,
        )
    return found


def _word_or_flag(field: str, given: Any, words: Sequence[str]) -> Any:
    return choose(field, given, words) if isinstance(given, str) else yes_or_no(field, given)


def _numbers(field: str, given: Any) -> np.ndarray:
    found = np.atleast_1d(real_array(field, given))
    if found.ndim == 1 and found.size:
        return found
    raise InputError(
        f"{field} must be a number or a sequence of them",
        code="bad_shape",
        field=field,
        expected="one dimension",
        got=f"shape {found.shape}",
    )


def _about_the_intercept(asked: EngineRequest, value: Mapping[str, Any]) -> list[str]:
    """What was fitted, where the formula overrules the argument."""
    if asked.arguments["intercept"] or "intrcpt" not in (value.get("terms") or []):
        return []
    if "mods" in asked.arguments:
        return ["the model has an intercept: R takes no notice of intercept beside a formula"]
    return ["the model has an intercept: R puts one in where there are no moderators"]


def _record(
    table: pd.DataFrame,
    labels: np.ndarray,
    inputs: Mapping[str, Any],
    read: Mapping[str, Any],
    asked: EngineRequest,
    reply: Reply,
    *,
    status: str = "converged",
    exact: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
) -> MetaforFit:
    """The record; what R left out is NaN."""
    requests.hand_on(reply, package="metafor")
    value = dict(reply.value)
    if "terms" in value and read["mods"] is not None:
        value["terms"] = [read["mods"].label(term) for term in value["terms"]]
    own_groups(value, table, inputs["data"], read["names"])
    notes = (*notes, *_about_the_intercept(asked, value))
    m = len(table)
    columns = {name: np.full(m, np.nan) for name in ("fitted", "prediction")}
    if reply.error is None:
        for name, column in columns.items():
            if value.get(name) is not None:
                column[np.asarray(value["used"])] = requests.numbers(value[name])
    variance = (
        inputs["data"][inputs["V"]] if inputs["V"] is not None else np.diagonal(inputs["matrix"])
    )
    return MetaforFit(
        request=asked,
        shim="metafor_rma_mv",
        inputs=inputs,
        value=value,
        status=status,
        engine_status="error" if reply.error is not None else "converged",
        conditions=(*requests.said(reply), *notes),
        provenance=provenance(
            "metafor",
            f"rma.mv {asked.arguments['method']}",
            options={**asked.arguments, "mode": asked.mode},
            versions=reply.versions,
        ),
        domains=labels,
        direct=np.asarray(inputs["data"][inputs["yi"]], dtype=np.float64),
        direct_variance=np.asarray(variance, dtype=np.float64),
        synthetic=columns["fitted"],
        estimate=columns["prediction"],
        exact=exact or {},
    )
