"""hbsae::fSAE.Area: the area-level model, Bayesian or by REML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import need_columns, need_frame, numeric_column, real_array
from pybridge._options import choose, real_number, yes_or_no
from pybridge.engines import _engine_request as requests
from pybridge.engines._hbsae_input import check_inputs, check_prior, fsae_inputs
from pybridge.engines._hbsae_numerics import integration, start
from pybridge.engines._hbsae_record import HbsaeFit
from pybridge.engines._native_twin import exact_answer
from pybridge.engines._sae_input import domain_labels, refuse_twice
from pybridge.engines._sae_likelihood import AreaData, fay_herriot_likelihoods
from pybridge.engines._sae_optimum import fay_herriot_optimum
from pybridge.engines._engine_request import EngineRequest
from pybridge.errors import InputError
from pybridge.provenance import provenance
from pybridge.r import Reply

METHODS = ("HB", "hybrid", "REML", "synthetic", "survreg", "BLUP")
# Difference to the exact posterior means, in posterior deviations, beyond which it is named; and
# what REML may lack.
_APART = 1e-2
_SHORTFALL = 1e-4
_FEW_SPARE_DOMAINS = 5
# R's words where the numbers are at fault, not the call: such a fit is a status.
_NUMERICAL = re.compile(
    r"diverg|non-finite|infinite|optimi[sz]ation|overflow|subdivisions|roundoff|bad integrand"
    r"|positive definite|singular|missing value where TRUE/FALSE needed"
)


def fSAE_Area(
    data: pd.DataFrame,
    est_init: str,
    var_init: str,
    X: str | pd.DataFrame | None = None,
    x: str | None = None,
    *,
    method: str = "HB",
    prior: str | None = None,
    beta0: Any = None,
    Omega0: Any = None,
    lambda0: float | None = None,
    CV: bool | None = None,
    CVweights: str | Any = None,
    keep_data: bool = False,
    full_cov: bool | None = None,
    rel_int_tol: float = 0.01,
    subdivisions: int = 100,
    abs_tol: float | None = None,
    stop_on_error: bool = True,
    domain: str | None = None,
    level: float = 0.95,
    mode: str = "guarded",
    time_limit: float | None = None,
) -> HbsaeFit:
    """Area-level estimates by hbsae::fSAE.Area, with R's own arguments (dots as underscores).

    Parameters
    ----------
    data : pandas.DataFrame
        One row an area.
    est_init, var_init : str
        Columns of the direct estimates (empty where an area has none) and their variances.
    X : str or pandas.DataFrame, optional
        Covariates of all areas: a formula in R's words, ``"~ x + as.factor(g)"``, read against
        ``data``; or a table with the areas' labels as index, which may have more areas. Without
        it there is an intercept only.
    x : str, optional
        A formula for the covariates at which the direct estimates were made, where they differ.
    method : {"HB", "hybrid", "REML", "synthetic", "survreg", "BLUP"}
    prior : str, optional
        The prior density of the variance as R code, ``"function(x) 1/sqrt(x)"``; flat by default.
    beta0, Omega0 : array, optional
        Mean (p,) and precision (p, p) of the coefficients' normal prior; flat by default.
    lambda0 : float, optional
        The variance of the area effects: what method BLUP takes it to be; methods HB, hybrid and
        REML start their search (and the first two scale their integrals) there instead of at a
        value of R's own. The others have no use of it.
    CV, full_cov : bool, optional
        Whether cross-validation measures, and all covariances, are computed; R's defaults depend on
        the size.
    CVweights : str, or sequence of float (m,), optional
        Weights of the areas in the cross-validation measure: a column, or a number a row.
    keep_data : bool
        Whether R's object, which ``to_rds`` saves, holds the data too.
    rel_int_tol : float
        Of the numerical integration: R warns where its own estimate of the error is larger.
    subdivisions, abs_tol, stop_on_error
        Arguments of integrate(), which methods HB and hybrid call; the last two only of hybrid,
        since HB sets them itself and R would stop.
    domain : str, optional
        The column of labels; else the column ``domain``, else the table's index.
    level : float
        Confidence level of the intervals.
    mode : {"guarded", "raw"}
        ``"raw"``: R's function as it is; where X has as many rows as there are direct estimates, R
        takes them by position, whatever their names. ``"guarded"``: rows are matched by label,
        what cannot be fitted is refused first, and the exact posterior (or optimum) stands beside
        R's answer.
    time_limit : float, optional
        Seconds for R.

    Returns
    -------
    HbsaeFit

    Notes
    -----
    fSAE.Area holds the scale of the sampling variances at 1 by a prior worth 10^4 observations an
    area, not exactly: that leaves about 1e-5 posterior deviations, whatever ``rel_int_tol`` is.

    Raises
    ------
    InputError
        Before hbsae is called.
    EngineError
        Where R stops; guarded, an integral or a search that fails is the status ``failed``.
    EngineTimeout, EngineUnavailable

    References
    ----------
    Boonstra (2012), hbsae: Hierarchical Bayesian Small Area Estimation. Datta and Smith (2003),
    Journal of Statistical Planning and Inference 112, on when the posterior exists.
    """
    asked, options = _request(locals())
    table = need_frame("data", data)
    need_columns(table, [est_init, var_init], field="est_init")
    labels = domain_labels(table, domain)
    if not asked.raw:
        refuse_twice(labels, field="domain" if domain is None else domain)
    estimate = numeric_column(table, est_init, field="est_init", missing=True)
    variance = numeric_column(table, var_init, field="var_init", missing=True)
    inputs = fsae_inputs(table, labels, estimate, variance, X, x, asked)
    weights = _cv_weights(table, CVweights, ~np.isnan(estimate))
    inputs = {**inputs, "options": {**options, **weights}, "prior": prior}
    if asked.raw:
        return _record(inputs, asked, _ask(inputs, asked))
    check_inputs(inputs, asked)
    if prior is not None:
        check_prior(prior, asked)
    return _guarded(inputs, asked, _ask(inputs, asked, may_fail=_NUMERICAL))


def _cv_weights(table: pd.DataFrame, given: Any, seen: np.ndarray) -> dict[str, Any]:
    """Of the areas with a direct estimate, in the order in which they are sent."""
    if given is None:
        return {}
    if isinstance(given, str):
        values = numeric_column(table, given, field="CVweights", missing=True)
    else:
        values = real_array("CVweights", given)
    good = values.shape == seen.shape and bool((values[seen] >= 0).all())
    if not good or not 0 < values[seen].sum() < np.inf:
        raise InputError(
            "CVweights must be a number of at least 0 for each row, and not all 0",
            code="bad_weight",
            field="CVweights",
            expected=f"{len(seen)} numbers",
            got=f"shape {values.shape}" if values.shape != seen.shape else "others",
        )
    return {"CVweights": values[seen]}


def _request(given: Mapping[str, Any]) -> tuple[EngineRequest, dict[str, Any]]:
    """The request, and R's options under R's names."""
    method = choose("method", given["method"], METHODS)
    tolerance = real_number("rel_int_tol", given["rel_int_tol"])
    if not 0.0 < tolerance < 1.0:
        raise InputError(
            "rel_int_tol must lie between 0 and 1",
            code="bad_tolerance",
            field="rel_int_tol",
            expected="0 < rel_int_tol < 1",
            got=tolerance,
        )
    prior = given["prior"]
    if prior is not None and (not isinstance(prior, str) or not re.match(r"\s*function\b", prior)):
        raise InputError(
            "the prior is an R function as text",
            code="bad_function",
            field="prior",
            expected="'function(x) 1/sqrt(x)', a density up to a constant",
            got=prior,
        )
    options: dict[str, Any] = {"method": method, "rel.int.tol": tolerance}
    for name, own in (("CV", "CV"), ("full_cov", "full.cov")):
        if given[name] is not None:
            options[own] = yes_or_no(name, given[name])
    if yes_or_no("keep_data", given["keep_data"]):
        options["keep.data"] = True
    options.update(start(given, method))
    options.update(integration(given, method))
    for name in ("beta0", "Omega0"):
        if given[name] is not None:
            options[name] = real_array(name, given[name])
    arguments = {"est.init": given["est_init"], "var.init": given["var_init"]}
    for name in ("X", "x"):
        if given[name] is not None:
            arguments[name] = given[name] if isinstance(given[name], str) else name
    shown = {**options, **({} if prior is None else {"prior": prior})}
    if isinstance(given["CVweights"], str):
        shown["CVweights"] = given["CVweights"]
    words = {name: given[name] for name in ("mode", "level", "time_limit")}
    arguments = {**arguments, **shown}
    return requests.request("fSAE.Area", arguments, **words, seed=None, package="hbsae"), options


def _guarded(inputs: dict[str, Any], asked: EngineRequest, reply: Reply) -> HbsaeFit:
    n = len(inputs["estimate"])
    X = inputs["X"] if inputs.get("X") is not None else np.ones((n, 1))
    m, p = X.shape
    nothing = np.full(m - n, np.nan)
    arrays = {
        "estimate": np.concatenate([inputs["estimate"], nothing]),
        "variance": np.concatenate([inputs["variance"], nothing]),
        "covariates": X,
    }
    method = asked.arguments["method"]
    plain_prior = not {"prior", "beta0", "Omega0", "x"} & set(asked.arguments)
    status = "weak_identification" if n <= p + _FEW_SPARE_DOMAINS else "converged"
    exact: dict[str, Any] = {}
    notes: list[str] = []
    if reply.error is not None:
        status = "failed"
    elif method == "HB" and plain_prior:
        found = exact_answer("area posterior", **arrays, level=asked.level, quantiles=False)
        spread = np.sqrt(found.mse)
        own = _in_order(reply, inputs)["est"]
        apart = float(np.nanmax(np.abs(own - found.estimate) / spread))
        exact = {
            "model_variance": found.model_variance,
            "model_variance_mean": found.model_variance_mean,
            "estimate": found.estimate[inputs["back"]],
            "mse": found.mse[inputs["back"]],
            "apart": apart,
        }
        if not apart <= _APART:
            status = "not_converged"
            notes.append(
                f"hbsae is up to {apart:.3g} posterior deviations from the exact posterior means "
                "(fay_herriot(engine='native', method='bayes') gives those)"
            )
    elif method == "REML" and plain_prior:
        status, exact, notes = _beside_optimum(
            reply, AreaData(inputs["estimate"], inputs["variance"], X[:n]), status
        )
    return _record(inputs, asked, reply, status=status, exact=exact, notes=notes)


def _beside_optimum(
    reply: Reply, points: AreaData, status: str
) -> tuple[str, dict[str, Any], list[str]]:
    optimum = fay_herriot_optimum(points, "REML")
    found = float(reply.value["sv2"][0])
    at = fay_herriot_likelihoods(points, found)
    shortfall = optimum.at.restricted - at.restricted
    exact = {
        "model_variance": float(optimum.theta[0]),
        "restricted_log_likelihood": optimum.at.restricted,
        "restricted_at_engine": at.restricted,
        "shortfall": shortfall,
    }
    if shortfall > _SHORTFALL:
        note = f"hbsae ended at {found:.6g}; the optimum is {exact['model_variance']:.6g}"
        return "not_converged", exact, [note]
    return ("boundary" if found == 0 and status == "converged" else status), exact, []


def _in_order(reply: Reply, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """R's estimates by the names it gives them, in the order of the areas that were sent."""
    place = {name: k for k, name in enumerate(reply.value["domain"])}
    rows = [place[name] for name in inputs["domains"]]
    return {name: requests.numbers(reply.value[name])[rows] for name in ("est", "mse")}


def _ask(
    inputs: Mapping[str, Any],
    asked: EngineRequest,
    *,
    may_fail: bool | re.Pattern[str] = False,
) -> Reply:
    """The call; what is kept for the record alone does not cross."""
    sent = {name: item for name, item in inputs.items() if name not in ("labels", "back")}
    return requests.ask("hbsae_fSAE_Area", sent, asked, may_fail=may_fail)


def _record(
    inputs: Mapping[str, Any],
    asked: EngineRequest,
    reply: Reply,
    *,
    status: str = "converged",
    exact: Mapping[str, Any] | None = None,
    notes: list[str] | tuple[str, ...] = (),
) -> HbsaeFit:
    """The record; raw: in the order of R's answer."""
    requests.hand_on(reply, package="hbsae")
    value = dict(reply.value)
    labels = np.asarray(inputs["labels"], dtype=object)
    n = len(inputs["estimate"])
    known = {str(label): k for k, label in enumerate(labels[:n])}
    if reply.error is not None:
        found = {name: np.full(len(labels), np.nan) for name in ("est", "mse")}
    elif asked.raw:
        theirs = {str(label): label for label in labels}
        labels = np.array([theirs.get(w, w) for w in value["domain"]], dtype=object)
        found = {name: requests.numbers(value[name]) for name in ("est", "mse")}
    else:
        found = _in_order(reply, inputs)
    if not asked.raw:
        labels = labels[inputs["back"]]
        found = {name: column[inputs["back"]] for name, column in found.items()}
    places = np.array([known.get(str(label), -1) for label in labels], dtype=np.intp)
    seen = places >= 0
    columns = {
        name: np.where(seen, np.asarray(inputs[name])[places], np.nan)
        for name in ("estimate", "variance")
    }
    return HbsaeFit(
        request=asked,
        shim="hbsae_fSAE_Area",
        inputs={name: item for name, item in inputs.items() if name not in ("labels", "back")},
        value=value,
        status=status,
        engine_status="error" if reply.error is not None else "converged",
        conditions=(*requests.said(reply), *notes),
        provenance=provenance(
            "hbsae",
            f"fSAE.Area {asked.arguments['method']}",
            options={**asked.arguments, "mode": asked.mode, "level": asked.level},
            versions=reply.versions,
        ),
        domains=labels,
        direct=columns["estimate"],
        direct_variance=columns["variance"],
        estimate=found["est"],
        mse=found["mse"],
        exact=exact or {},
    )
