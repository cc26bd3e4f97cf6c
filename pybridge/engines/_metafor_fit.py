"""metafor::rma.mv: multilevel models of estimates with known sampling variances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import name_list, need_columns, need_frame, real_array
from pybridge._options import check_level, choose, real_number
from pybridge.engines import _sae_request as requests
from pybridge.engines._metafor_guard import beside_the_optimum, check_table
from pybridge.engines._metafor_record import MetaforFit
from pybridge.engines._r_formula import FUNCTIONS, RFormula, r_names, read_one_sided
from pybridge.engines._sae_input import column_values, domain_labels
from pybridge.engines._sae_request import SaeRequest
from pybridge.errors import InputError
from pybridge.provenance import provenance
from pybridge.r import Reply

METHODS = ("REML", "ML")
STRUCTURES = (
    *("CS", "HCS", "UN", "DIAG", "ID", "UNR", "AR", "HAR", "CAR", "SPEXP", "SPGAU", "SPLIN"),
    *("SPRAT", "SPSPH", "GEN", "GDIAG", "PHYBM", "PHYPL", "PHYPD"),
)
TESTS = ("z", "t")
FREEDOMS = ("residual", "contain")
SCALES = ("none", "cor", "cor0", "cov0")
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
    method: str = "REML",
    test: str = "z",
    dfs: str = "residual",
    level: float = 95,
    btt: Sequence[int] | None = None,
    R: Mapping[str, pd.DataFrame] | None = None,
    Rscale: str = "cor",
    sigma2: Any = None,
    tau2: Any = None,
    rho: Any = None,
    gamma2: Any = None,
    phi: Any = None,
    cvvc: bool = False,
    sparse: bool = False,
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
    struct, intercept, method, test, dfs, btt, Rscale, cvvc, sparse
        As in R.
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
        Where R stops, in raw mode (metafor stops where its optimiser did not converge).
    EngineTimeout, EngineUnavailable

    References
    ----------
    Viechtbauer (2010), Journal of Statistical Software 36(3).
    """
    asked, options = _request(locals())
    table = need_frame("data", data)
    need_columns(table, [yi], field="yi")
    labels = domain_labels(table, domain)
    formulas = name_list("random", random)
    read = _read(table, yi, V, mods, formulas)
    inputs: dict[str, Any] = {
        "data": {name: column_values(table[column]) for column, name in read["names"].items()},
        "yi": read["names"][yi],
        "V": read["names"][V] if isinstance(V, str) else None,
        "matrix": None if isinstance(V, str) else _square(V, len(table), "V"),
        "W": None if W is None else _weights(W, len(table)),
        "mods": read["mods"].code if read["mods"] else None,
        "random": [one.code for one in read["random"]],
        "functions": list(FUNCTIONS),
        "options": options,
        "R": None if R is None else _correlations(R),
    }
    if asked.raw:
        reply = requests.ask("metafor_rma_mv", inputs, asked)
        return _record(table, labels, inputs, read, asked, reply)
    x = check_table(table, labels, inputs, read, asked)
    reply = requests.ask("metafor_rma_mv", inputs, asked, may_fail=True)
    verdict = beside_the_optimum(inputs, asked, reply, x)
    return _record(table, labels, inputs, read, asked, reply, **verdict)


def _request(given: Mapping[str, Any]) -> tuple[SaeRequest, dict[str, Any]]:
    """The request, and R's options beside table and formulas, under R's names."""
    struct = given["struct"]
    structures = [struct] if isinstance(struct, (str, bytes)) or not np.ndim(struct) else struct
    structures = list(structures)
    for one in structures:
        choose("struct", one, STRUCTURES)
    number = real_number("level", given["level"])
    number = check_level(number / 100.0 if number >= 1.0 else number)
    options: dict[str, Any] = {
        "struct": structures,
        "intercept": requests.flag("intercept", given["intercept"]),
        "method": choose("method", given["method"], METHODS),
        "test": choose("test", given["test"], TESTS),
        "dfs": choose("dfs", given["dfs"], FREEDOMS),
        "level": 100.0 * number,
        "Rscale": choose("Rscale", given["Rscale"], SCALES),
        "cvvc": requests.flag("cvvc", given["cvvc"]),
        "sparse": requests.flag("sparse", given["sparse"]),
    }
    for name in ("btt", "sigma2", "tau2", "rho", "gamma2", "phi"):
        if given[name] is not None:
            options[name] = np.atleast_1d(real_array(name, given[name]))
    if given["control"] is not None and _mapping("control", given["control"]):
        options["control"] = _control(given["control"])
    arguments: dict[str, Any] = {"yi": given["yi"]}
    arguments["V"] = given["V"] if isinstance(given["V"], str) else "V"
    for name in ("mods", "random"):
        if name_list(name, given[name]):
            arguments[name] = given[name]
    arguments.update(options)
    words = {name: given[name] for name in ("mode", "time_limit")}
    asked = requests.request(
        "rma.mv", arguments, **words, level=number, seed=None, package="metafor"
    )
    return asked, {n: v for n, v in options.items() if n not in _DEFAULTS or v != _DEFAULTS[n]}


def _control(given: Mapping[str, Any]) -> dict[str, Any]:
    for name, value in given.items():
        if not isinstance(value, (bool, int, float, str)) and value is not None:
            raise InputError(
                f"the entry {name!r} of control must be a number, a word or a logical",
                code="unknown_option",
                field="control",
                expected="an entry of metafor's control list",
                got=value,
            )
    return dict(given)


def _read(
    table: pd.DataFrame, yi: str, V: Any, mods: str | None, formulas: Sequence[str]
) -> dict[str, Any]:
    """The formulas read against the table, and one set of names for all columns."""
    also = [yi]
    if isinstance(V, str):
        need_columns(table, [V], field="V")
        also.append(V)
    parts = [read_one_sided(text, table, field="random") for text in formulas]
    whole = None if mods is None else read_one_sided(mods, table, field="mods")
    used = [column for one in [*parts, *([whole] if whole else [])] for column in one.columns]
    names = r_names(dict.fromkeys([*also, *used]), table=table)

    def again(text: str, field: str) -> RFormula:
        return read_one_sided(text, table, field=field, names=names)

    return {
        "names": names,
        "mods": None if mods is None else again(mods, "mods"),
        "random": [again(text, "random") for text in formulas],
    }


def _square(matrix: Any, m: int, field: str) -> np.ndarray:
    found = real_array(field, matrix)
    if found.shape != (m, m):
        raise InputError(
            f"{field} must be a matrix of rows by rows",
            code="bad_shape",
            field=field,
            expected=f"shape ({m}, {m})",
            got=f"shape {found.shape}",
        )
    return found


def _weights(W: Any, m: int) -> np.ndarray:
    found = real_array("W", W)
    return found if found.shape == (m,) else _square(W, m, "W")


def _mapping(field: str, given: Any) -> Mapping[str, Any]:
    if isinstance(given, Mapping) and all(isinstance(name, str) for name in given):
        return given
    raise InputError(
        f"{field} must be a mapping by name",
        code="not_a_mapping",
        field=field,
        expected="{'name': value}",
        got=type(given).__name__,
    )


def _correlations(given: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
    found = {}
    for name, table in _mapping("R", given).items():
        need_frame("R", table)
        labels = [str(label) for label in table.index]
        if labels != [str(label) for label in table.columns]:
            raise InputError(
                f"the correlations of {name!r} must have the same labels as index and columns",
                code="bad_labels",
                field="R",
                expected="index and columns alike",
                got=f"{len(table.index)} rows, {len(table.columns)} columns",
            )
        found[name] = {"matrix": real_array("R", table), "labels": labels}
    return found


def _record(
    table: pd.DataFrame,
    labels: np.ndarray,
    inputs: Mapping[str, Any],
    read: Mapping[str, Any],
    asked: SaeRequest,
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
