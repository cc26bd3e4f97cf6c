"""The taxonomy model by JAGS: every node's draws, summarised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import collinear_columns, key_column, listed, name_list, need_frame
from pybridge._checks import LARGEST, need_range, numeric_column, real_array
from pybridge.engines import _engine_request as requests
from pybridge.engines._metafor_guard import each_inside
from pybridge.engines._native_twin import exact_answer
from pybridge.engines._r_formula import FUNCTIONS, read_formula
from pybridge.engines._rjags_record import JagsSamples
from pybridge.engines._rjags_samples import jags_record, jags_request
from pybridge.engines._sae_input import checked_design, column_values, refuse_formula
from pybridge.errors import InputError
from pybridge.tables.area import check_variances
from pybridge.tables.labels import encode

# Of the coefficients, in working units: normal with a standard deviation of 10^4.
_DIFFUSE = 1e-8


def taxonomy(
    data: pd.DataFrame,
    formula: str,
    variance: str,
    levels: Sequence[str],
    *,
    shape: float | Sequence[float] | None = None,
    scale: float | Sequence[float] | None = None,
    n_iter: int = 5000,
    thin: int = 1,
    n_chains: int = 4,
    n_adapt: int = 1000,
    n_burn: int = 2000,
    seed: int | None = None,
    level: float = 0.95,
    mode: str = "guarded",
    time_limit: float | None = None,
) -> JagsSamples:
    """The posterior of the taxonomy model by JAGS: every node's draws, summarised.

    z_i ~ N(θ_i, d_i), θ_i = x_i'β + Σ_r v^(r) + v_i, inverse-gamma priors on the variances, β
    normal with a standard deviation of 10^4 working units (the root of the median variance).
    The same as ``taxonomy_model(..., engine="rjags")``, whose record is a table of domains.

    Parameters
    ----------
    data : pandas.DataFrame
        One row a domain.
    formula : str
        ``"y ~ x"`` in R's words; empty direct estimates are predicted.
    variance : str
        Column of the sampling variances.
    levels : sequence of str
        Columns of the taxonomy, coarse to fine, the domain last.
    shape, scale : float, or one a level
        Of the inverse-gamma priors, coarse to fine; scale in squared units of the outcome. By
        default those of `taxonomy_model`.
    n_iter, thin, n_chains, n_adapt, n_burn, seed, level, mode, time_limit
        As in `coda_samples`.

    Returns
    -------
    JagsSamples
        Parameters ``beta[term]``, ``sigma2[level]``, ``theta[domain]`` and ``v[level: group]``.
    """
    words = locals()
    table = need_frame("data", data)
    names = name_list("levels", levels)
    read = read_formula(formula, table)
    refuse_formula(read)
    prior = {"formula": formula, "variance": variance, "levels": names}
    asked, settings = jags_request("taxonomy", prior, words)
    z = numeric_column(table, str(read.outcome), field="formula", missing=True)
    d = numeric_column(table, variance, field="variance", missing=True)
    columns = {
        name: column_values(table[column], integers=column not in (read.outcome, variance))
        for column, name in read.names.items()
    }
    sent = {"formula": read.code, "functions": list(FUNCTIONS), "data": columns}
    x, terms = checked_design(requests.ask("rjags_design", sent, asked, may_fail=True), read)
    codes, labels = _levels(table, names)
    seen = ~np.isnan(z)
    _check(z, d, x, terms, seen, labels[-1][codes[-1]])
    unit = float(np.sqrt(np.median(d[seen])))
    centred = z[seen] - z[seen].mean()
    usual = exact_answer("taxonomy prior", variance=d[seen], residual=centred, depth=len(names))
    inputs = {
        "estimate": z[seen] / unit,
        "variance": d[seen] / unit / unit,
        "place": np.flatnonzero(seen) + 1.0,
        "covariates": x,
        "levels": {f"level{k + 1}": code + 1.0 for k, code in enumerate(codes[:-1])},
        "shape": _one_a_level("shape", usual.shape if shape is None else shape, len(names)),
        "rate": _one_a_level("scale", usual.scale if scale is None else scale, len(names))
        / unit
        / unit,
        "diffuse": _DIFFUSE,
        "unit": unit,
        **settings,
    }
    reply = requests.ask("rjags_samples", inputs, asked, may_fail=not asked.raw)
    return jags_record(asked, inputs, reply, named=_labels(terms, names, codes, labels))


def _levels(table: pd.DataFrame, names: Sequence[str]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Codes and labels of the levels, nested, the last one the row itself."""
    if not names:
        raise InputError(
            "a taxonomy needs at least one level, the domain itself",
            code="no_levels",
            field="levels",
            expected="columns, coarse to fine, the domain last",
            got=names,
        )
    found = [encode(key_column(table, name, field="levels")) for name in names]
    codes = [np.asarray(one.codes, dtype=np.intp) for one in found]
    if not each_inside(codes):
        raise InputError(
            "the taxonomy is not nested",
            code="taxonomy_not_nested",
            field="levels",
            expected="every group in one group of the level above",
            got=listed(names),
            hint="Groups of the same name under different parents need different labels.",
        )
    twice = found[-1].labels[found[-1].counts > 1]
    if len(twice):
        raise InputError(
            f"the table has domains more than once: {listed(twice)}",
            code="duplicate_domain",
            field="levels",
            expected="one row a domain, the last level",
            got=listed(twice),
        )
    return codes, [one.labels for one in found]


def _check(
    z: np.ndarray,
    d: np.ndarray,
    x: np.ndarray,
    terms: Sequence[str],
    seen: np.ndarray,
    labels: np.ndarray,
) -> None:
    """What JAGS would stop at with other words."""
    bad = seen & ~(d > 0)
    if bad.any():
        raise InputError(
            "JAGS takes positive sampling variances only",
            code="bad_variance",
            field="variance",
            expected="variances above 0 where there is a direct estimate",
            got=f"domains {listed(labels[bad])}",
            hint="taxonomy_model(engine='native') takes variances of 0.",
        )
    for values, name, field in ((z, "direct estimates", "formula"), (d, "variances", "variance")):
        need_range(values[seen], name, field=field)
    check_variances(d[seen], labels=labels[seen])
    n, p = int(seen.sum()), x.shape[1]
    if n < p + 3:
        raise InputError(
            f"{n} direct estimates are too few for {p} coefficients and variances",
            code="too_few_domains",
            field="formula",
            expected=f"at least {p + 3}",
            got=n,
        )
    collinear_columns(x[seen], names=terms, field="formula")


def _one_a_level(name: str, value: Any, depth: int) -> np.ndarray:
    array = np.atleast_1d(real_array(name, value))
    good = array.ndim == 1 and len(array) in (1, depth)
    if not good or not ((array > 0) & (array <= LARGEST)).all():
        raise InputError(
            f"the prior's {name} must be positive, one number or one a level",
            code="bad_prior",
            field=name,
            expected=f"1 or {depth} positive numbers",
            got=value,
        )
    return np.broadcast_to(array, (depth,)).astype(np.float64)


def _labels(
    terms: Sequence[str],
    names: Sequence[str],
    codes: Sequence[np.ndarray],
    labels: Sequence[np.ndarray],
) -> dict[str, list[str]]:
    """The user's labels of the nodes' elements, by node."""
    found = {
        "beta": [f"beta[{term}]" for term in terms],
        "sigma2": [f"sigma2[{name}]" for name in names],
        "theta": [f"theta[{label}]" for label in labels[-1][codes[-1]]],
    }
    for k, name in enumerate(names[:-1]):
        found[f"v_level{k + 1}"] = [f"v[{name}: {label}]" for label in labels[k]]
    return found
