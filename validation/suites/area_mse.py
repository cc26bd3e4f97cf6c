"""What the native Fay-Herriot model adds to R: bootstrap, benchmarked and finite domains' MSE.

R's packages have none of it (emdi drops the MSE of benchmarked estimates), so that the independent
reimplementation is the only other producer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from pybridge.crosscheck.agreement import AgreementTable, joined
from pybridge.crosscheck.comparer import Pairing
from pybridge.crosscheck.tolerances import MONTE_CARLO_ERRORS, TWO_ROUTES
from pybridge.smoothing.fay_herriot import fay_herriot
from pybridge.smoothing.fay_herriot_fit import FayHerriotFit
from validation.cases.fay_herriot_variants import Variants, load
from validation.reimplementations import fay_herriot_variants as slow
from validation.reimplementations.fay_herriot import variance_and_bias
from validation.suites.gathered import Gathered
from validation.suites.plain_r import PlainR

_REPLICATES = 150
_BOOTSTRAP = "MSE milk parametric bootstrap"
_FINITE = "MSE outlying finite domains"
_BENCHMARKS = {
    f"MSE milk benchmark {method} to a {kind} total": (method, kind)
    for method in ("difference", "ratio", "mse")
    for kind in ("known", "direct")
}


def case_names() -> list[str]:
    """Names of all cases of this suite."""
    return [_BOOTSTRAP, _FINITE, *_BENCHMARKS]


def scripts(chosen: set[str]) -> tuple[str, ...]:
    """None: R has nothing of it."""
    return ()


def run(plain: PlainR, chosen: set[str]) -> AgreementTable:
    """All comparisons of the chosen cases."""
    exact, drawn = Gathered(), Gathered()
    case = load("milk")
    for label, words in _BENCHMARKS.items():
        if label in chosen:
            _benchmark(exact, label, case, *words)
    if _FINITE in chosen:
        _finite(exact, load("outlying"))
    if _BOOTSTRAP in chosen:
        _bootstrap(drawn, case)
    quantities = ("estimate", "mse")
    table = exact.compared([_pair(dict.fromkeys(quantities, TWO_ROUTES))])
    more = drawn.compared([_pair({"mean mse": MONTE_CARLO_ERRORS})])
    return joined([table, more])


def _pair(tolerances: dict[str, Any]) -> Pairing:
    return Pairing("native", "reimplementation", tolerances)


def _fit(case: Variants, table: pd.DataFrame | None = None, **words: Any) -> FayHerriotFit:
    frame = case.frame if table is None else table
    return fay_herriot(case.formula, frame, domain="domain", engine="native", **words)


def _benchmark(gathered: Gathered, label: str, case: Variants, method: str, kind: str) -> None:
    fit = _fit(case)
    w, z, d = (case.frame[name].to_numpy(dtype=float) for name in ("n", "estimate", "variance"))
    target = float(w @ z) if kind == "direct" else 1.01 * float(w @ fit.fit.estimate)
    total = "direct" if kind == "direct" else target
    found = fit.benchmark(total=total, weights=w, method=method, mse_type="analytical")
    gathered.say("native", label, {"estimate": found.benchmarked, "mse": found.benchmarked_mse})
    penalty = {"difference": w, "ratio": w / fit.fit.estimate, "mse": w / fit.fit.mse}[method]
    A, X = fit.model_variance, case.covariates
    spare, bias = variance_and_bias(A, z, d, X, "REML")
    errors = slow.eblup_error_covariance(A, d, X, spare, bias)
    if kind == "known":
        mse = slow.known_total_mse(errors, penalty, w)
    else:
        extra = (errors - slow.eblup_error_covariance(A, d, X, 0.0, 0.0)).diagonal()
        mse = slow.direct_total_mse(A, d, X, penalty, w, extra)
    estimate = slow.benchmarked(fit.fit.estimate, penalty, w, target)
    gathered.say("reimplementation", label, {"estimate": estimate, "mse": mse})


def _finite(gathered: Gathered, case: Variants) -> None:
    size = np.linspace(8.0, 60.0, len(case.frame)).round()
    fit = _fit(case, case.frame.assign(size=size), finite_population=True, element_variance=9.0)
    c = 9.0 / size
    z, d = (case.frame[name].to_numpy(dtype=float) for name in ("estimate", "variance"))
    outside, A = np.isnan(z), fit.model_variance
    estimate, mse = slow.finite_domains(z, d, c, case.covariates, A, outside)
    # What estimating the variance costs the model's own mean counts as far as that mean does.
    inside = ~outside
    wide = (d + c)[inside]
    spare, _ = variance_and_bias(A, z[inside], wide, case.covariates[inside], "REML")
    third = 2 * (wide / (A + wide)) ** 2 * spare / (A + wide)
    mse = np.array(mse)
    mse[inside] += (d[inside] / wide) ** 2 * third
    gathered.say("native", _FINITE, {"estimate": fit.fit.estimate, "mse": fit.fit.mse})
    gathered.say("reimplementation", _FINITE, {"estimate": estimate, "mse": mse})


def _bootstrap(gathered: Gathered, case: Variants) -> None:
    fit = _fit(case, mse_type="boot", B=2000, seed=1)
    errors = slow.bootstrap_errors(
        fit.model_variance,
        fit.fit.coefficients,
        fit.area.variance,
        case.covariates,
        2,
        _REPLICATES,
    ).mean(axis=1)
    noise = float(errors.std(ddof=1) / np.sqrt(_REPLICATES))
    gathered.units[_BOOTSTRAP, "mean mse"] = noise
    gathered.say("native", _BOOTSTRAP, {"mean mse": float(fit.fit.mse.mean())})
    gathered.say("reimplementation", _BOOTSTRAP, {"mean mse": float(errors.mean())})
