"""sae::eblupFH and sae::mseFH."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from pybridge._options import choose, whole_number
from pybridge.engines import _engine_request as requests
from pybridge.engines._sae_input import AreaInput, area_input, design
from pybridge.engines._sae_likelihood import AreaData, fay_herriot_likelihoods
from pybridge.engines._sae_optimum import fay_herriot_optimum
from pybridge.engines._sae_record import SaeFit
from pybridge.engines._engine_request import EngineRequest
from pybridge.provenance import provenance
from pybridge.r import Reply

# A domain more or less than coefficients says little about the variance between them.
FEW_SPARE_DOMAINS = 5
# sae stops at a relative change of 1e-4, which costs about 1e-10 in the log-likelihood; beyond
# this it stopped elsewhere. The moment equation has no likelihood: relative difference there.
SHORTFALL = 1e-6
_MOMENT_DIFFERENCE = 1e-2
_LINEAR = "engine='native' of fay_herriot takes time linear in the domains."


def eblupFH(
    data: pd.DataFrame,
    formula: str,
    vardir: str,
    *,
    method: str = "REML",
    MAXITER: int = 100,
    PRECISION: float = 1e-4,
    B: int = 0,
    domain: str | None = None,
    level: float = 0.95,
    mode: str = "guarded",
    seed: int | None = None,
    time_limit: float | None = None,
) -> SaeFit:
    """EBLUPs of the Fay-Herriot model by sae::eblupFH.

    Parameters
    ----------
    data : pandas.DataFrame
        One row a domain.
    formula : str
        ``"y ~ x + as.factor(g)"`` in R's words; variables are columns of the table, names that R
        cannot read stand in backticks. A categorical column is a plain factor of R, an ordered
        one too: pandas' cut makes those, and R's cut does not.
    vardir : str
        The column of sampling variances (not of standard errors).
    method : {"REML", "ML", "FH"}
    MAXITER, PRECISION, B
        As in sae: iterations, relative change at which to stop, replicates of the bootstrap
        criteria (0: none).
    domain : str, optional
        The column of labels; else the column ``domain``, else the table's index.
    level : float
        Confidence level.
    mode : {"guarded", "raw"}
        ``"raw"``: R's function as it is. ``"guarded"``: what sae passes over in silence is refused
        first, its failures are statuses, and the exact optimum stands beside its answer.
    seed : int, optional
        For the bootstrap criteria; a fresh one, kept in the record, where none is given.
    time_limit : float, optional
        Seconds for R. Bootstraps, which draw a replicate that fails again without end, have one
        of 600 s by default.

    Returns
    -------
    SaeFit

    Raises
    ------
    InputError
        Before sae is called.
    EngineError
        Where R stops, in raw mode.
    EngineTimeout, EngineUnavailable

    References
    ----------
    Fay and Herriot (1979), JASA 74, 269; Molina and Marhuenda (2015), The R Journal 7(1), 81.
    """
    asked = _request("eblupFH", locals())
    return _fit(data, formula, vardir, domain, asked)


def mseFH(
    data: pd.DataFrame,
    formula: str,
    vardir: str,
    *,
    method: str = "REML",
    MAXITER: int = 100,
    PRECISION: float = 1e-4,
    B: int = 0,
    domain: str | None = None,
    level: float = 0.95,
    mode: str = "guarded",
    seed: int | None = None,
    time_limit: float | None = None,
) -> SaeFit:
    """EBLUPs of the Fay-Herriot model with their analytic MSEs by sae::mseFH.

    Arguments as in `eblupFH`. With ``method="FH"`` an MSE may be negative: it is not clipped, and
    the domain's status says so.

    References
    ----------
    Prasad and Rao (1990), JASA 85, 163; Datta and Lahiri (2000), Statistica Sinica 10, 613; Datta,
    Rao and Smith (2005), Biometrika 92, 183.
    """
    asked = _request("mseFH", locals())
    return _fit(data, formula, vardir, domain, asked)


def _request(function: str, given: Mapping[str, Any]) -> EngineRequest:
    replicates = whole_number("B", given["B"], least=0)
    arguments = {
        "formula": given["formula"],
        "vardir": given["vardir"],
        "method": choose("method", given["method"], ("REML", "ML", "FH")),
        "MAXITER": requests.iterations(given["MAXITER"]),
        "PRECISION": requests.precision(given["PRECISION"]),
        "B": replicates,
    }
    common = {name: given[name] for name in ("mode", "level", "seed", "time_limit")}
    return requests.request(function, arguments, **common, random=replicates > 0)


def options_of(asked: EngineRequest) -> dict[str, Any]:
    """R's arguments beside formula and columns."""
    return {k: v for k, v in asked.arguments.items() if k not in ("formula", "vardir", "proxmat")}


def _fit(
    data: pd.DataFrame, formula: str, vardir: str, domain: str | None, asked: EngineRequest
) -> SaeFit:
    table = area_input(data, formula, vardir, domain=domain, asked=asked)
    requests.refuse_cost(
        asked,
        rows=len(table.domains),
        seconds=16.0 * (len(table.domains) / 2000) ** 3 * (1 + asked.arguments["B"]),
        matrices=6,
        hint=_LINEAR,
    )
    shim = f"sae_{asked.function}"
    inputs = {**table.for_r(), "options": options_of(asked), "seed": asked.seed}
    if asked.raw:
        reply = requests.ask(shim, inputs, asked)
        return area_fit(table, asked, shim, inputs, reply)
    points = design(table, asked)
    reply = requests.ask(shim, inputs, asked, may_fail=True)
    return _guarded(table, points, asked, shim, inputs, reply)


def _guarded(
    table: AreaInput,
    points: AreaData,
    asked: EngineRequest,
    shim: str,
    inputs: dict[str, Any],
    reply: Reply,
) -> SaeFit:
    method = asked.arguments["method"]
    optimum = fay_herriot_optimum(points, method)
    exact: dict[str, Any] = {
        "model_variance": float(optimum.theta[0]),
        "log_likelihood": optimum.at.ordinary,
        "restricted_log_likelihood": optimum.at.restricted,
    }
    value, notes = dict(reply.value), []
    if method == "FH" and "beta" not in value and optimum.theta[0] == 0 and not reply.error:
        zero = requests.ask("sae_mseFH_at_zero", inputs, asked).value
        if zero:
            if asked.function == "eblupFH":
                zero = {k: v for k, v in zero.items() if k != "mse"}
            value.update(zero, terms=_terms(inputs, asked), at_zero=np.array([True]))
            notes.append(
                "sae did not converge; the moment equation has its solution at 0, taken here"
            )
    status = None
    if "refvar" in value:
        found = float(value["refvar"][0])
        apart, exact = _compared(points, method, found, exact)
        status = fit_status(value, n=len(points.y), p=points.x.shape[1])
        if apart:
            status = "not_converged"
            notes.append(
                f"sae ended at model variance {found:.6g}; the optimum is "
                f"{exact['model_variance']:.6g} (engine='native' gives the estimates there)"
            )
    return area_fit(
        table, asked, shim, inputs, reply, value=value, exact=exact, status=status, notes=notes
    )


def _terms(inputs: Mapping[str, Any], asked: EngineRequest) -> list[str]:
    return list(requests.ask("sae_design", inputs, asked).value["terms"])


def _compared(
    points: AreaData, method: str, found: float, exact: Mapping[str, Any]
) -> tuple[bool, dict[str, Any]]:
    """Whether sae ended elsewhere than the optimum, and the likelihoods where it ended."""
    if not np.isfinite(found):
        return True, dict(exact)
    at = fay_herriot_likelihoods(points, found)
    more = {
        **exact,
        "log_likelihood_at_engine": at.ordinary,
        "restricted_at_engine": at.restricted,
    }
    if method == "FH":
        larger = max(exact["model_variance"], found)
        return abs(exact["model_variance"] - found) > _MOMENT_DIFFERENCE * larger, more
    which = "log_likelihood" if method == "ML" else "restricted_log_likelihood"
    more["shortfall"] = exact[which] - at.of(method)
    return more["shortfall"] > SHORTFALL, more


def fit_status(value: Mapping[str, Any], *, n: int, p: int) -> str:
    """The verdict on an answer with numbers in it, from what R says alone."""
    if not np.isfinite(np.asarray(value["eblup"])).all():
        return "failed"
    if not value["convergence"][0] and "at_zero" not in value:
        return "not_converged"
    if n <= p + FEW_SPARE_DOMAINS:
        return "weak_identification"
    if "component_estimate" in value:
        variances = np.asarray(value["component_estimate"])[::2]
        limits = np.abs(np.asarray(value["component_estimate"])[1::2]) >= 0.999
        return "boundary" if (variances == 0).any() or limits.any() else "converged"
    at_limit = "spatialcorr" in value and abs(float(value["spatialcorr"][0])) >= 0.999
    return "boundary" if at_limit or float(value["refvar"][0]) == 0 else "converged"


def _not_converged(value: Mapping[str, Any]) -> str:
    """What sae says by a flag only."""
    missing = "" if "eblup" in value else " and returned no estimates"
    return f"sae did not converge in {int(value['iterations'][0])} iterations{missing}"


def area_fit(
    table: AreaInput,
    asked: EngineRequest,
    shim: str,
    inputs: Mapping[str, Any],
    reply: Reply,
    *,
    value: Mapping[str, Any] | None = None,
    exact: Mapping[str, Any] | None = None,
    as_given: Mapping[str, Any] | None = None,
    status: str | None = None,
    notes: list[str] | tuple[str, ...] = (),
) -> SaeFit:
    """The record, rows put back in the table's order; warnings of R become Python's."""
    requests.hand_on(reply)
    found = dict(reply.value if value is None else value)
    engine_status = "error"
    if reply.error is None:
        engine_status = "converged" if found["convergence"][0] else "not_converged"
    if "terms" in found:
        found["terms"] = [table.formula.label(term) for term in found["terms"]]
    if status is None and "eblup" in found:
        status = fit_status(found, n=len(table.domains), p=len(found["beta"]))
    if status is None:
        status = "failed" if reply.error is not None else "not_converged"
    if engine_status == "not_converged" and "at_zero" not in found:
        notes = [_not_converged(found), *notes]
    back = np.argsort(table.order)
    empty = np.full(len(back), np.nan)
    arrays = {
        name: requests.numbers(found[name])[back] if name in found else empty
        for name in ("eblup", "mse", "msebc")
    }
    return SaeFit(
        request=asked,
        shim=shim,
        inputs=inputs,
        value=found,
        status=status,
        engine_status=engine_status,
        conditions=(*requests.said(reply), *notes),
        provenance=provenance(
            "sae",
            f"{asked.function} {asked.arguments.get('method', asked.arguments.get('model', ''))}",
            options={**asked.arguments, "mode": asked.mode, "level": asked.level},
            seed=asked.seed,
            versions=reply.versions,
        ),
        domains=table.domains[back],
        times=None if table.times is None else table.times[back],
        order=table.order,
        direct=table.direct[back],
        direct_variance=table.variance[back],
        estimate=arrays["eblup"],
        mse=arrays["mse"],
        mse_corrected=arrays["msebc"] if "msebc" in found else None,
        exact=exact or {},
        as_given=as_given or {},
    )
