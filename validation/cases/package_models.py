"""Calls of metafor and rjags that r_reference/*_functions.R makes too, and their models anew."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.integrate import quad
from scipy.stats import gamma

import pybridge as pb
from validation.cases.survey import GOLDEN
from validation.reimplementations import multilevel

Answer = dict[str, Any]

# ----------------------------------------------------------------------------------------- metafor


@lru_cache(maxsize=1)
def _groups() -> pd.DataFrame:
    path = GOLDEN / "inputs" / "taxonomy_groups34.csv"
    return pd.read_csv(path, float_precision="round_trip")


_LEVELS = ["~ 1 | region", "~ 1 | domain"]


def _correlations() -> pd.DataFrame:
    groups = sorted(set(_groups()["region"]))
    apart = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    return pd.DataFrame(0.5**apart, index=groups, columns=groups)


def _metafor(**words: Any) -> Answer:
    table = _groups()
    arguments: dict[str, Any] = {"V": "variance", "mods": "~ x2", "random": _LEVELS, **words}
    fit = pb.engines.metafor.rma_mv(table, "estimate", domain="domain", mode="raw", **arguments)
    coefficients = fit.coefficients
    found: Answer = {
        "coefficient": coefficients["estimate"],
        "coefficient_error": coefficients["standard_error"],
        "lower": coefficients["lower"],
        "log_likelihood": fit.log_likelihood,
        "QE": fit.value["QE"],
        "fitted": fit.synthetic,
        **fit.parameters,
    }
    for k, name in enumerate(fit.variances, start=1):
        found[f"effect{k}"] = fit.effects(name)["effect"]
    return found


def metafor_calls() -> dict[str, Callable[[], Answer]]:
    """The calls of rma.mv, raw."""
    V = np.diag(_groups()["variance"]) + 0.05
    return {
        "nested": partial(_metafor, random="~ 1 | region / domain"),
        "ml": partial(_metafor, method="ML"),
        "t": partial(_metafor, test="t", dfs="contain", level=90),
        "covariance": partial(_metafor, V=V),
        "related": partial(_metafor, R={"region": _correlations()}),
        "fixed": partial(_metafor, sigma2=[np.nan, 0.2]),
        "one": partial(_metafor, mods=None, random="~ 1 | domain"),
        "slopes": partial(
            _metafor,
            random="~ x2 | region",
            struct="GEN",
            control={"optimizer": "optim", "reltol": 1e-10},
        ),
    }


def _dense(
    *,
    reml: bool = True,
    covariance: bool = False,
    related: bool = False,
    fixed: list[float] | None = None,
    one: bool = False,
) -> Answer:
    t = _groups()
    m = len(t)
    V = np.diag(t["variance"]) + (0.05 if covariance else 0.0)
    X = np.ones((m, 1)) if one else np.column_stack([np.ones(m), t["x2"]])
    R = None
    if related:
        table = _correlations()
        R = {(a, b): table.loc[a, b] for a in table.index for b in table.index}
    parts = [multilevel.same_group(list(t["region"]), R), np.eye(m)]
    found = multilevel.fit(
        t["estimate"].to_numpy(), V, X, parts[1:] if one else parts, reml=reml, fixed=fixed
    )
    return {
        "sigma2": found["sigma2"],
        "coefficient": found["coefficients"],
        "log_likelihood": found["log-likelihood"],
    }


METAFOR_ANEW = {
    "nested": _dense,
    "ml": partial(_dense, reml=False),
    "t": _dense,
    "covariance": partial(_dense, covariance=True),
    "related": partial(_dense, related=True),
    "fixed": partial(_dense, fixed=[np.nan, 0.2]),
    "one": partial(_dense, one=True),
}

# ------------------------------------------------------------------------------------------- rjags

_TEXT = """model {
  for (i in 1:n) { y[i] ~ dnorm(mu, tau) }
  mu ~ dnorm(0, 0.01)
  tau ~ dgamma(2, 1)
}"""
_Y = np.array([4.1, 5.3, 3.9, 6.0, 4.4, 5.1, 4.8, 5.9])


def normal_draws() -> Answer:
    """The chains of the normal sample, summarised."""
    fit = pb.engines.rjags.coda_samples(
        _TEXT,
        {"y": _Y, "n": 8},
        ["mu", "tau"],
        8000,
        thin=2,
        n_adapt=500,
        n_burn=500,
        seed=11,
        mode="raw",
    )
    names = {"mean": "mean", "deviation": "standard_deviation", "lower": "lower"}
    names.update(upper="upper", r_hat="r_hat", effective_size="effective_size")
    names["monte_carlo_error"] = "monte_carlo_error"
    return {ours: fit.table[theirs] for ours, theirs in names.items()}


def normal_posterior() -> Answer:
    """μ and τ of the normal sample: given τ, μ is normal; integrals over τ."""
    prior, n = 0.01, len(_Y)

    def given(tau: float) -> tuple[float, float, float]:
        precision = prior + n * tau
        centre = tau * _Y.sum() / precision
        log = 0.5 * n * np.log(tau) - 0.5 * tau * (_Y**2).sum() + 0.5 * precision * centre**2
        log += gamma.logpdf(tau, 2.0) - 0.5 * np.log(precision)
        return float(np.exp(log)), centre, 1.0 / precision

    def mean_of(function: Callable[..., float]) -> float:
        tops = [given(t)[0] for t in np.geomspace(0.01, 20, 200)]
        scale = max(tops)
        words = {"epsabs": 0.0, "epsrel": 1e-10, "limit": 400, "points": [0.5, 1.0, 2.0, 4.0]}
        top = quad(lambda t: function(t, *given(t)[1:]) * given(t)[0] / scale, 1e-9, 40, **words)
        bottom = quad(lambda t: given(t)[0] / scale, 1e-9, 40, **words)
        return top[0] / bottom[0]

    mu, tau = mean_of(lambda t, c, s: c), mean_of(lambda t, c, s: t)
    spread = [mean_of(lambda t, c, s: s + (c - mu) ** 2), mean_of(lambda t, c, s: (t - tau) ** 2)]
    return {"mean": np.array([mu, tau]), "deviation": np.sqrt(spread)}
