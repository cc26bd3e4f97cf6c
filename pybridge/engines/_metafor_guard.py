"""What metafor::rma.mv passes over with a warning, and its answer beside the exact optimum."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import collinear_columns, listed, need_range, numeric_column
from pybridge.engines import _engine_request as requests
from pybridge.engines._native_twin import exact_answer
from pybridge.engines._r_formula import FUNCTIONS
from pybridge.engines._engine_request import EngineRequest
from pybridge.engines._sae_input import OVERFLOW
from pybridge.errors import InputError
from pybridge.r import Reply
from pybridge.tables.area import check_counts, check_variances
from pybridge.tables.labels import encode

# What metafor's default stopping rule leaves is smaller; beyond this it stopped elsewhere.
_SHORTFALL = 1e-4
# A variance below this share of the largest is metafor's way to say 0: its search is in logs.
_ZERO = 1e-7
_FEW_SPARE_ROWS = 5
_INTERCEPTS = re.compile(r"~\s*1\s*\|\s*(.+)")
# metafor inverts matrices of rows by rows at every step: measured seconds at 1 000 rows.
_SECONDS = 40.0


def check_table(
    table: pd.DataFrame,
    labels: np.ndarray,
    inputs: Mapping[str, Any],
    read: Mapping[str, Any],
    asked: EngineRequest,
) -> np.ndarray:
    """InputError for what metafor would leave out or change; the design matrix (m, p)."""
    requests.refuse_cost(
        asked,
        rows=len(table),
        seconds=_SECONDS * (len(table) / 1000) ** 3,
        matrices=8,
        hint="taxonomy_model(engine='native') takes time linear in the domains.",
    )
    users = {name: column for column, name in read["names"].items()}
    for field in ("yi", "V"):
        if inputs[field] is None:
            continue
        values = numeric_column(table, users[inputs[field]], field=field, missing=True)
        gaps = np.isnan(values)
        if gaps.any():
            raise InputError(
                f"{field} is missing in {int(gaps.sum())} rows, which metafor would leave out",
                code="missing_values",
                field=field,
                expected="a number in every row",
                got=f"missing in {listed(labels[gaps])}",
                hint="Drop these rows; taxonomy_model(engine='metafor') predicts such domains.",
            )
        need_range(values, users[inputs[field]], field=field)
        if field == "V" and (values < 0).any():
            raise InputError(
                "sampling variances are negative, which metafor would take for 0",
                code="negative_variance",
                field="V",
                expected="variances of at least 0",
                got=f"in {listed(labels[values < 0])}",
            )
        if field == "V" and (values > 0).any():
            check_variances(values, labels=labels)
    x = _design(table, inputs, read, asked)
    check_counts(n_sampled=len(x), n_coefficients=x.shape[1])
    for one in read["random"]:
        for column in one.columns:
            if table[column].isna().any() or table[column].nunique() < 2:
                raise InputError(
                    f"the random factor {column!r} has gaps, or a single level whose variance "
                    "metafor would set to 0",
                    code="single_group",
                    field="random",
                    expected="two levels or more, and one in every row",
                    got=f"{table[column].nunique()} levels",
                )
    return x


def _design(
    table: pd.DataFrame, inputs: Mapping[str, Any], read: Mapping[str, Any], asked: EngineRequest
) -> np.ndarray:
    """The design matrix that R fits: a formula says itself whether it has an intercept."""
    whole = read["mods"]
    if whole is not None and not whole.columns and whole.code.replace(" ", "") != "~1":
        raise InputError(
            "a formula of moderators without a column can only be the intercept",
            code="bad_formula",
            field="mods",
            expected="'~ x', '~ 0 + x' or '~ 1'",
            got=whole.text,
        )
    if whole is None or not whole.columns:
        return np.ones((len(table), 1))
    sent = {"formula": whole.code, "functions": list(FUNCTIONS), "data": inputs["data"]}
    reply = requests.ask("metafor_design", sent, asked)
    terms = [whole.label(term) for term in reply.value["terms"]]
    x = np.asarray(reply.value["X"])
    bad = ~np.isfinite(x).all(axis=1)
    if bad.any():
        raise InputError(
            f"moderators are missing or infinite in {int(bad.sum())} rows",
            code="missing_covariate",
            field="mods",
            expected="finite numbers in every row",
            got=f"rows {listed(np.flatnonzero(bad))} (counted from 0)",
            hint=OVERFLOW,
        )
    if len(x) >= len(terms):
        collinear_columns(x, names=terms, field="mods")
    return x


def beside_the_optimum(
    inputs: Mapping[str, Any], asked: EngineRequest, reply: Reply, x: np.ndarray
) -> dict[str, Any]:
    """Status, exact optimum and notes of a guarded call."""
    if reply.error is not None:
        return {"status": "failed"}
    m, p = x.shape
    status = "weak_identification" if m <= p + _FEW_SPARE_ROWS else "converged"
    variances = requests.numbers(reply.value.get("sigma2", ()))
    if status == "converged" and len(variances):
        if (variances <= _ZERO * max(float(variances.max()), 1e-300)).any():
            status = "boundary"
    levels = nested_codes(inputs)
    if levels is None:
        note = "no exact optimum beside it: not nested random intercepts down to the single row"
        return {"status": status, "notes": [note]}
    method = asked.arguments["method"]
    arrays = {
        "estimate": inputs["data"][inputs["yi"]],
        "variance": inputs["data"][inputs["V"]],
        "covariates": x,
        "levels": levels,
        "method": method,
    }
    try:
        exact = exact_answer("taxonomy", **arrays)
        at = exact_answer("taxonomy at", variances=variances, **arrays)
    except InputError as error:
        return {"status": status, "notes": [f"no exact optimum beside it: {error.message}"]}
    which = "restricted_log_likelihood" if method == "REML" else "log_likelihood"
    shortfall = getattr(exact, which) - getattr(at, which)
    found = {
        "variances": dict(zip(reply.value["s.names"], map(float, exact.model_variances))),
        which: getattr(exact, which),
        "at_engine": getattr(at, which),
        "shortfall": shortfall,
    }
    if shortfall > _SHORTFALL:
        words = ", ".join(f"{v:.6g}" for v in exact.model_variances)
        note = f"metafor's log-likelihood is {shortfall:.3g} below the optimum, at {words}"
        return {"status": "not_converged", "exact": found, "notes": [note]}
    return {"status": status, "exact": found}


def nested_codes(inputs: Mapping[str, Any]) -> list[np.ndarray] | None:
    """Codes of the random factors, coarse to fine, where they are intercepts down to the row.

    None for any other model, also with known correlations, weights or fixed parameters.
    """
    fixed = {"sigma2", "tau2", "rho", "gamma2", "phi"} & set(inputs["options"])
    if inputs["V"] is None or inputs["W"] is not None or inputs["R"] is not None or fixed:
        return None
    columns = inputs["data"]
    keys: list[pd.Series] = []
    for code in inputs["random"]:
        found = _INTERCEPTS.fullmatch(code.strip())
        if not found:
            return None
        parts = [part.strip().strip("`") for part in found[1].split("/")]
        if any(part not in columns for part in parts):
            return None
        keys += [_joined(columns, parts[: k + 1]) for k in range(len(parts))]
    codes = [np.asarray(encode(key).codes) for key in keys]
    if not codes or len(np.unique(codes[-1])) != len(codes[-1]):
        return None
    return codes if each_inside(codes) else None


def _joined(columns: Mapping[str, Any], parts: Sequence[str]) -> pd.Series:
    """Labels of nested groups: those of the levels above belong to a label."""
    labels = [
        np.asarray(one["codes"] if isinstance(one, Mapping) else one).astype(str)
        for one in (columns[part] for part in parts)
    ]
    return pd.Series(["\x1f".join(words) for words in zip(*labels)], dtype=object)


def each_inside(codes: Sequence[np.ndarray]) -> bool:
    """Whether every group lies in one group of the level above; codes (m,), coarse to fine."""
    return all(
        len(np.unique(below)) == len(np.unique(np.column_stack([above, below]), axis=0))
        for above, below in zip(codes, codes[1:])
    )
