"""Tables for hbsae::fSAE.Area: areas by their labels, covariates of all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import collinear_columns, listed, need_frame, need_range, numeric_column
from pybridge.engines import _engine_request as requests
from pybridge.engines._matrices import need_covariance
from pybridge.engines._r_formula import FUNCTIONS, read_one_sided
from pybridge.engines._sae_input import OVERFLOW, column_values, refuse_twice
from pybridge.engines._engine_request import EngineRequest
from pybridge.errors import InputError
from pybridge.tables.area import check_variances


def fsae_inputs(
    table: pd.DataFrame,
    labels: np.ndarray,
    estimate: np.ndarray,
    variance: np.ndarray,
    X: str | pd.DataFrame | None,
    x: str | None,
    asked: EngineRequest,
) -> dict[str, Any]:
    """What the shim takes: areas with a direct estimate first, X in that order (raw: as it is)."""
    seen = ~np.isnan(estimate)
    order = np.concatenate([np.flatnonzero(seen), np.flatnonzero(~seen)])
    domains = labels[order]
    inputs: dict[str, Any] = {"estimate": estimate[seen], "variance": variance[seen]}
    if isinstance(X, pd.DataFrame):
        matrix, domains, names = _given_matrix(X, domains, int(seen.sum()), raw=asked.raw)
        inputs.update(X=matrix, terms=[str(name) for name in X.columns], names=names)
    elif X is not None:
        matrix, terms = _design(table, X, "X", asked)
        inputs.update(X=matrix[order], terms=terms)
    else:
        domains = domains[: int(seen.sum())]
    # Where each area stands in the table; those that X has beside it come last.
    rows = np.concatenate([order, np.arange(len(order), len(order) + len(domains))])
    inputs["back"] = np.argsort(rows[: len(domains)], kind="stable")
    if x is not None:
        matrix, terms = _design(table[seen], x, "x", asked)
        inputs.update(x=matrix, x_terms=terms)
    inputs["labels"] = domains
    inputs["domains"] = [str(label) for label in domains]
    return inputs


def _design(
    table: pd.DataFrame, formula: str, field: str, asked: EngineRequest
) -> tuple[np.ndarray, list[str]]:
    """R's own design matrix of a formula."""
    read = read_one_sided(formula, table, field=field)
    if not read.columns:  # the number of rows comes from a column
        if read.code.replace(" ", "") != "~1":
            raise InputError(
                "a formula without a column can only be the intercept",
                code="bad_formula",
                field=field,
                expected="'~ x', '~ 0 + x' or '~ 1'",
                got=formula,
            )
        return np.ones((len(table), 1)), ["(Intercept)"]
    columns = {
        name: column_values(table[column], integers=True) for column, name in read.names.items()
    }
    sent = {"formula": read.code, "functions": list(FUNCTIONS), "data": columns}
    reply = requests.ask("hbsae_design", sent, asked)
    return np.asarray(reply.value["X"]), [read.label(term) for term in reply.value["terms"]]


def _given_matrix(
    X: pd.DataFrame, domains: np.ndarray, n: int, *, raw: bool
) -> tuple[np.ndarray, np.ndarray, list[str] | None]:
    """A table of covariates with the areas as index; raw: in its own order, under its own names."""
    need_frame("X", X)
    matrix = np.column_stack([numeric_column(X, name, field="X", missing=True) for name in X])
    labels = np.asarray(X.index, dtype=object)
    if raw:
        return matrix, domains, [str(label) for label in labels]
    refuse_twice(labels, field="X")
    if "" in map(str, labels):
        raise InputError(
            "R looks areas up by their labels, and finds none without text",
            code="empty_label",
            field="X",
            expected="a label of some text for every area",
            got="an empty label",
        )
    place = {str(label): k for k, label in enumerate(labels)}
    absent = [label for label in domains if str(label) not in place]
    if absent:
        raise InputError(
            "X does not have all areas",
            code="unknown_domain",
            field="X",
            expected="a row for each area of the table, by its label as index",
            got=f"not there: {listed(absent)}",
        )
    known = {str(label) for label in domains}
    more = [label for label in labels if str(label) not in known]
    wanted = np.concatenate([domains, np.array(more, dtype=object)])
    return matrix[[place[str(label)] for label in wanted]], wanted, None


def check_inputs(inputs: Mapping[str, Any], asked: EngineRequest) -> None:
    """What hbsae would stop at with other words, or pass over."""
    variance, labels = inputs["variance"], inputs["labels"]
    n = len(variance)
    bad = ~(variance > 0)
    if bad.any():
        raise InputError(
            "hbsae takes positive sampling variances only",
            code="bad_variance",
            field="var_init",
            expected="variances above 0 where there is a direct estimate",
            got=f"areas {listed(labels[:n][bad])}",
            hint="fay_herriot(engine='native', method='bayes') takes variances of 0.",
        )
    X = inputs.get("X")
    p = 1 if X is None else X.shape[1]
    for name, shape in (("beta0", (p,)), ("Omega0", (p, p))):
        given = inputs["options"].get(name)
        if given is not None and not (given.shape == shape and np.isfinite(given).all()):
            raise InputError(
                f"{name} must be finite numbers for {p} coefficients",
                code="bad_prior",
                field=name,
                expected=f"shape {shape}",
                got=f"shape {given.shape}" if given.shape != shape else "others",
            )
    precision = inputs["options"].get("Omega0")
    if precision is not None:
        need_covariance(precision, "Omega0", np.arange(1, p + 1).astype(object))
    for argument in ("estimate", "variance"):
        need_range(inputs[argument], argument, field=f"{argument[:3]}_init")
    if n:
        check_variances(variance, labels=labels[:n])
    if X is not None:
        holes = ~np.isfinite(X).all(axis=1)
        if holes.any():
            raise InputError(
                "covariates are missing or infinite",
                code="missing_covariate",
                field="X",
                expected="finite numbers in every row",
                got=f"areas {listed(labels[holes])}",
                hint=OVERFLOW,
            )
        if n >= p:
            collinear_columns(X[:n], names=inputs["terms"], field="X")
    least = p + 3 if asked.arguments["method"] in ("HB", "hybrid") else p + 1
    if n < least:
        raise InputError(
            f"{n} direct estimates are too few for {p} coefficients and a variance",
            code="too_few_domains",
            field="est_init",
            expected=f"at least {least}",
            got=n,
            hint="Under flat priors the posterior exists from p + 3 areas on.",
        )


def check_prior(prior: str, asked: EngineRequest) -> None:
    """InputError where R cannot read the code of the prior as a function."""
    problem = requests.ask("hbsae_prior", {"prior": prior}, asked).value["problem"][0]
    if problem:
        raise InputError(
            f"R cannot read the prior: {problem}",
            code="bad_function",
            field="prior",
            expected="one function in R's words, 'function(x) 1/sqrt(x)'",
            got=prior,
        )
