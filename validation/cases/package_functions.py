"""Calls of survey, hbsae, metafor and rjags that r_reference/*_functions.R makes too."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd

import pybridge as pb
from validation.cases.package_models import (
    METAFOR_ANEW,
    metafor_calls,
    normal_draws,
    normal_posterior,
)
from validation.cases.survey import GOLDEN
from validation.reimplementations import survey_estimates as anew

Answer = dict[str, Any]
WHY_NOT = {
    "survey": "Brewer's approximation to joint probabilities is not written anew",
    "hbsae": "the suite of Bayesian area-level models has it written anew",
    "metafor": "correlated slopes are not written anew",
    "rjags": "",
}


# ------------------------------------------------------------------------------------------ survey


@lru_cache(maxsize=None)
def _table(name: str) -> pd.DataFrame:
    path = GOLDEN / "inputs" / f"survey_functions_{name}.csv"
    return pd.read_csv(path, float_precision="round_trip")


_TYPES = {"stypeH": 755.0, "stypeM": 1018.0}
_TOTALS = {"(Intercept)": 6194.0, "api99": 3914069.0}


def _design(name: str) -> Any:
    """A design through the bridge, raw."""
    s = pb.engines.survey
    words: dict[str, Any] = {"mode": "raw"}
    if name == "srs":
        return s.svydesign("~1", _table("srs"), fpc="~fpc", **words)
    if name in ("strat", "cal"):
        words.update(strata="~stype", weights="~pw", fpc="~fpc")
        design = s.svydesign("~1", _table("strat"), **words)
        if name == "strat":
            return design
        return s.calibrate(design, "~ api99 + stype", {**_TOTALS, **_TYPES})
    if name in ("clus1", "rak", "post"):
        design = s.svydesign("~dnum", _table("clus1"), weights="~pw", fpc="~fpc", **words)
        if name == "rak":
            return s.calibrate(design, "~api99", _TOTALS, calfun="raking")
        if name == "post":
            counts = pd.DataFrame({"stype": ["E", "H", "M"], "Freq": [4421.0, 755.0, 1018.0]})
            return s.postStratify(design, "~stype", counts)
        return design
    if name == "clus2":
        return s.svydesign("~ dnum + snum", _table("clus2"), fpc="~ fpc1 + fpc2", **words)
    if name == "replaced":
        return s.svydesign("~dnum", _table("clus1"), weights="~pw", **words)
    if name == "poisson":
        return s.svydesign("~1", _table("drawn"), probs="~p", pps="poisson", **words)
    assert name == "pps"
    return s.svydesign("~1", _table("drawn"), fpc="~p", pps="brewer", **words)


def _asked(
    function: str, *formulas: str, design: str, weights: bool = False, **words: Any
) -> Answer:
    s, made = pb.engines.survey, _design(design)
    if function in ("svyby", "svyratio"):
        words["covmat"] = True
    fit = getattr(s, function)(*formulas, made, **words)
    found = {
        "estimate": fit.estimate,
        "error": fit.standard_error,
        "covariance": fit.covariance.ravel(order="F"),
    }
    return {**found, "weight": s.weights(made)} if weights else found


def _survey() -> dict[str, Callable[[], Answer]]:
    by = {"domain_ratios": {"FUN": "svyratio", "denominator": "~api99"}}
    by["domain_totals"] = {"FUN": "svytotal"}
    return {
        "mean": partial(_asked, "svymean", "~ api00 + api99", design="strat"),
        "total": partial(_asked, "svytotal", "~enroll", design="srs", na_rm=True),
        "stages": partial(_asked, "svytotal", "~ api00 + api99", design="clus2"),
        "ratio": partial(_asked, "svyratio", "~ api00 + api99", "~meals", design="strat"),
        "domains": partial(_asked, "svyby", "~api00", "~stype", design="clus1"),
        "domain_totals": partial(
            _asked, "svyby", "~api00", "~awards", design="clus2", **by["domain_totals"]
        ),
        "domain_ratios": partial(
            _asked, "svyby", "~api00", "~stype", design="replaced", **by["domain_ratios"]
        ),
        "calibrated": partial(_asked, "svytotal", "~ api00 + meals", design="cal", weights=True),
        "raked": partial(_asked, "svytotal", "~api00", design="rak", weights=True),
        "post_stratified": partial(_asked, "svymean", "~api00", design="post", weights=True),
        "poisson": partial(_asked, "svytotal", "~ api00 + meals", design="poisson"),
        "brewer": partial(_asked, "svytotal", "~api00", design="pps"),
        "linear": partial(_asked, "svyglm", "api00 ~ ell + meals", design="strat"),
        "linear_calibrated": partial(_asked, "svyglm", "api00 ~ ell + meals", design="cal"),
        "logit": partial(
            _asked,
            "svyglm",
            "I(api00 > 700) ~ ell + meals",
            design="clus1",
            family="quasibinomial",
        ),
    }


def _slow_design(name: str) -> anew.Design:
    """The same design, written anew."""
    tables = {"cal": "strat", "rak": "clus1", "post": "clus1", "replaced": "clus1"}
    t = _table({**tables, "poisson": "drawn"}.get(name, name))
    n, nothing = len(t), np.full(len(t), np.nan)
    one, rows = np.zeros(n), np.arange(n)
    if name == "poisson":
        return anew.Design(1.0 / t["p"].to_numpy(), poisson=True)
    if name == "srs":
        return anew.Design(t["fpc"].to_numpy() / n, [(one, rows, t["fpc"].to_numpy())])
    if name == "clus2":
        first, second = t["dnum"].to_numpy(), t["snum"].to_numpy()
        sizes = [t["fpc1"].to_numpy(float), t["fpc2"].to_numpy(float)]
        inside = np.array([len(set(second[first == d])) for d in first])
        weights = sizes[0] / len(set(first)) * sizes[1] / inside
        return anew.Design(weights, [(one, first, sizes[0]), (one, second, sizes[1])])
    if name in ("strat", "cal"):
        stages = [(t["stype"].to_numpy(), rows, t["fpc"].to_numpy(float))]
    else:
        sizes = nothing if name == "replaced" else t["fpc"].to_numpy(float)
        stages = [(one, t["dnum"].to_numpy(), sizes)]
    design = anew.Design(t["pw"].to_numpy(), stages)
    if name not in ("cal", "rak", "post"):
        return design
    types = np.column_stack([(t["stype"] == k).to_numpy(float) for k in "EHM"])
    if name == "post":
        return anew.calibrated(design, types, np.array([4421.0, 755.0, 1018.0]), raking=False)
    X = np.column_stack([np.ones(n), t["api99"]])
    goal = np.array([6194.0, 3914069.0])
    if name == "cal":
        X, goal = np.column_stack([X, types[:, 1:]]), np.concatenate([goal, [755.0, 1018.0]])
    return anew.calibrated(design, X, goal, raking=name == "rak")


def _slow(
    kind: str,
    design: str,
    columns: list[str],
    *,
    by: str = "",
    over: str = "",
    weights: bool = False,
) -> Answer:
    made = _slow_design(design)
    tables = {"cal": "strat", "rak": "clus1", "post": "clus1", "replaced": "clus1"}
    t = _table({**tables, "poisson": "drawn"}.get(design, design))
    y = t[columns].to_numpy(float)
    member = np.ones((len(t), 1))
    if by:
        member = np.column_stack([(t[by] == g).to_numpy(float) for g in sorted(set(t[by]))])
    if kind == "total":
        value, V = anew.total(np.nan_to_num(y) * member, made)
    elif kind == "ratio":
        x = t[over].to_numpy(float)[:, None] if over else 1.0
        value, V = anew.ratio(y * member, x * member * np.ones_like(y), made)
    else:
        X = np.column_stack([np.ones(len(t)), t["ell"], t["meals"]])
        logit = kind == "logit"
        outcome = (t["api00"] > 700).to_numpy(float) if logit else t["api00"].to_numpy(float)
        value, V = anew.regression(outcome, X, made, logit=logit)
    found = {"estimate": value, "error": np.sqrt(np.diag(V)), "covariance": V.ravel(order="F")}
    return {**found, "weight": made.final} if weights else found


_BOTH = ["api00", "api99"]
_SURVEY_ANEW = {
    "mean": partial(_slow, "ratio", "strat", _BOTH),
    "total": partial(_slow, "total", "srs", ["enroll"]),
    "stages": partial(_slow, "total", "clus2", _BOTH),
    "ratio": partial(_slow, "ratio", "strat", _BOTH, over="meals"),
    "domains": partial(_slow, "ratio", "clus1", ["api00"], by="stype"),
    "domain_totals": partial(_slow, "total", "clus2", ["api00"], by="awards"),
    "domain_ratios": partial(_slow, "ratio", "replaced", ["api00"], by="stype", over="api99"),
    "calibrated": partial(_slow, "total", "cal", ["api00", "meals"], weights=True),
    "raked": partial(_slow, "total", "rak", ["api00"], weights=True),
    "post_stratified": partial(_slow, "ratio", "post", ["api00"], weights=True),
    "poisson": partial(_slow, "total", "poisson", ["api00", "meals"]),
    "linear": partial(_slow, "linear", "strat", ["api00"]),
    "linear_calibrated": partial(_slow, "linear", "cal", ["api00"]),
    "logit": partial(_slow, "logit", "clus1", ["api00"]),
}

# ------------------------------------------------------------------------------------------- hbsae


def _hbsae(words: dict[str, Any]) -> Answer:
    table = pd.read_csv(GOLDEN / "inputs" / "bayes_milk_areas.csv", float_precision="round_trip")
    table.loc[[3, 11], "estimate"] = np.nan
    X = table.set_index("domain")[["x1", "x2", "x3", "x4"]]
    fit = pb.engines.hbsae.fSAE_Area(
        table, "estimate", "variance", X, domain="domain", mode="raw", **words
    )
    found: Answer = {
        "estimate": fit.estimate,
        "mse": fit.mse,
        "coefficient": fit.coefficients["estimate"],
        "effect": fit.value["raneff"],
    }
    if np.isfinite(fit.model_variance):
        found["variance"] = fit.model_variance
    return found


_HBSAE: dict[str, dict[str, Any]] = {
    "HB": {},
    "hybrid": {"method": "hybrid"},
    "REML": {"method": "REML"},
    "synthetic": {"method": "synthetic"},
    "survreg": {"method": "survreg"},
    "BLUP": {"method": "BLUP", "lambda0": 0.02},
    "tight": {"rel_int_tol": 1e-7},
    "prior": {"prior": "function(x) 1 / sqrt(x)"},
    "informative": {"beta0": np.ones(4), "Omega0": 10.0 * np.eye(4)},
}

CALLS: dict[str, dict[str, Callable[[], Answer]]] = {
    "survey": _survey(),
    "hbsae": {name: partial(_hbsae, words) for name, words in _HBSAE.items()},
    "metafor": metafor_calls(),
    "rjags": {"normal": normal_draws},
}
ANEW: dict[str, dict[str, Callable[[], Answer]]] = {
    "survey": _SURVEY_ANEW,
    "hbsae": {},
    "metafor": METAFOR_ANEW,
    "rjags": {"normal": normal_posterior},
}
