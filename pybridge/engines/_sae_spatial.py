"""sae::eblupSFH, mseSFH, pbmseSFH and npbmseSFH: domains correlated with their neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from pybridge._options import choose, whole_number
from pybridge.engines import _engine_request as requests
from pybridge.engines._sae_area import SHORTFALL, area_fit, fit_status, options_of
from pybridge.engines._sae_input import AreaInput, area_input, design
from pybridge.engines._sae_likelihood import (
    AreaData,
    Likelihoods,
    Proximity,
    proximity,
    spatial_likelihoods,
)
from pybridge.engines._sae_optimum import LARGEST_CORRELATION, Optimum, spatial_optimum
from pybridge.engines._sae_proximity import proximity_matrix, remarks
from pybridge.engines._sae_record import SaeFit
from pybridge.engines._engine_request import EngineRequest
from pybridge.r import Reply

# sae divides the change of rho by rho with its sign, and so never looks at a negative one: then it
# is asked to stop later.
TIGHT = {"PRECISION": 1e-10, "MAXITER": 1000}
_HINT = "engine='emdi' takes as long; without correlation engine='native' does not."
_COMMON = ("mode", "level", "seed", "time_limit")


def eblupSFH(
    data: pd.DataFrame,
    formula: str,
    vardir: str,
    proxmat: Any,
    *,
    method: str = "REML",
    MAXITER: int = 100,
    PRECISION: float = 1e-4,
    domain: str | None = None,
    level: float = 0.95,
    mode: str = "guarded",
    time_limit: float | None = None,
) -> SaeFit:
    """EBLUPs of the spatial Fay-Herriot model by sae::eblupSFH.

    θ = Xβ + v, v = ρWv + u, u_i ~ N(0, σ²): a SAR(1) over the domains.

    Parameters
    ----------
    data, formula, vardir, domain, level, mode, time_limit
        As in `eblupFH`.
    proxmat : pandas.DataFrame
        W, in most cases with rows that add up to 1. Its index and its columns hold the domains'
        labels, in any order. In raw mode any matrix, by position.
    method : {"REML", "ML"}
    MAXITER, PRECISION
        As in sae. Guarded, a fit with ρ < 0, which sae's rule for stopping does not look at, is
        asked for again with a PRECISION of 1e-10; ``as_given`` holds sae's answer to what was
        written.

    Returns
    -------
    SaeFit
        sae's error on reaching its iteration limit is the status ``not_converged``; a ρ at its
        limit of ±1, where sae may find its matrix singular, is ``boundary``.

    References
    ----------
    Pratesi and Salvati (2008), Statistical Methods and Applications 17, 113.
    """
    return _fit("eblupSFH", locals())


def mseSFH(
    data: pd.DataFrame,
    formula: str,
    vardir: str,
    proxmat: Any,
    *,
    method: str = "REML",
    MAXITER: int = 100,
    PRECISION: float = 1e-4,
    domain: str | None = None,
    level: float = 0.95,
    mode: str = "guarded",
    time_limit: float | None = None,
) -> SaeFit:
    """EBLUPs of the spatial Fay-Herriot model with their analytic MSEs by sae::mseSFH.

    Arguments as in `eblupSFH`.

    References
    ----------
    Singh, Shukla and Kundu (2005), Survey Methodology 31, 183; Molina, Salvati and Pratesi (2009),
    Computational Statistics 24, 441.
    """
    return _fit("mseSFH", locals())


def pbmseSFH(
    data: pd.DataFrame,
    formula: str,
    vardir: str,
    proxmat: Any,
    *,
    B: int = 100,
    method: str = "REML",
    MAXITER: int = 100,
    PRECISION: float = 1e-4,
    domain: str | None = None,
    level: float = 0.95,
    mode: str = "guarded",
    seed: int | None = None,
    time_limit: float | None = None,
) -> SaeFit:
    """EBLUPs of the spatial Fay-Herriot model, MSEs by parametric bootstrap: sae::pbmseSFH.

    Arguments as in `eblupSFH`, and B replicates, a seed (a fresh one, kept in the record, where
    none is given), and a time limit of 600 s where none is given. One replicate that does not
    converge ends sae's bootstrap with an error: guarded, the estimates are then there, the MSEs
    are NaN, and the status is ``not_converged``.

    References
    ----------
    Molina, Salvati and Pratesi (2009), Computational Statistics 24, 441.
    """
    return _fit("pbmseSFH", locals())


def npbmseSFH(
    data: pd.DataFrame,
    formula: str,
    vardir: str,
    proxmat: Any,
    *,
    B: int = 100,
    method: str = "REML",
    MAXITER: int = 100,
    PRECISION: float = 1e-4,
    domain: str | None = None,
    level: float = 0.95,
    mode: str = "guarded",
    seed: int | None = None,
    time_limit: float | None = None,
) -> SaeFit:
    """EBLUPs of the spatial Fay-Herriot model, MSEs by nonparametric bootstrap: sae::npbmseSFH.

    Arguments as in `pbmseSFH`; REML only.
    """
    return _fit("npbmseSFH", locals())


def _fit(function: str, given: Mapping[str, Any]) -> SaeFit:
    asked = _request(function, given)
    table = area_input(
        given["data"], given["formula"], given["vardir"], domain=given["domain"], asked=asked
    )
    matrix = proximity_matrix(given["proxmat"], table.domains, mode=asked.mode)
    m, replicates = len(table.domains), asked.arguments.get("B", 0)
    requests.refuse_cost(
        asked, rows=m, seconds=6.0 * (m / 400) ** 3 * (2 + replicates), matrices=20, hint=_HINT
    )
    inputs = {
        **table.for_r(),
        "proxmat": matrix,
        "options": options_of(asked),
        "seed": asked.seed,
    }
    shim = f"sae_spatial_{function}"
    if asked.raw:
        return area_fit(table, asked, shim, inputs, requests.ask(shim, inputs, asked))
    return _Guarded(table, design(table, asked), asked, inputs, matrix).fit()


def _request(function: str, given: Mapping[str, Any]) -> EngineRequest:
    methods = ("REML",) if function == "npbmseSFH" else ("REML", "ML")
    arguments = {"formula": given["formula"], "vardir": given["vardir"], "proxmat": "proxmat"}
    if "B" in given:
        arguments["B"] = whole_number("B", given["B"], least=1)
    arguments.update(
        method=choose("method", given["method"], methods),
        MAXITER=requests.iterations(given["MAXITER"]),
        PRECISION=requests.precision(given["PRECISION"]),
    )
    common: dict[str, Any] = {name: given.get(name) for name in _COMMON}
    return requests.request(function, arguments, **common, random="B" in arguments)


class _Guarded:
    """One guarded fit: the steps share the checked table and what was asked."""

    def __init__(
        self,
        table: AreaInput,
        points: AreaData,
        asked: EngineRequest,
        inputs: dict[str, Any],
        matrix: np.ndarray,
    ) -> None:
        self.table, self.points, self.asked, self.inputs = table, points, asked, inputs
        self.w: Proximity = proximity(matrix)
        self.notes = list(remarks(matrix, table.domains))
        self.method = asked.arguments["method"]

    def fit(self) -> SaeFit:
        """sae's fit, asked for more tightly where rho is negative, beside the optimum."""
        shim = f"sae_spatial_{self.asked.function}"
        inputs, as_given = self.inputs, {}
        reply = requests.ask(shim, inputs, self.asked, may_fail=True)
        if _rho(reply) < 0 and inputs["options"]["PRECISION"] > TIGHT["PRECISION"]:
            tight = {**inputs, "options": {**inputs["options"], **TIGHT}}
            again = requests.ask(shim, tight, self.asked, may_fail=True)
            if again.error is None:
                as_given = _parameters(reply)
                inputs, reply = tight, again
                self.notes.append(
                    "rho is negative, where sae's rule for stopping does not look at it: asked "
                    f"again with PRECISION {TIGHT['PRECISION']:g}"
                )
        bootstrap_failed = reply.error is not None and "B" in self.asked.arguments
        if bootstrap_failed:
            alone = self._alone(inputs)
            if alone is not None:
                return self._record(inputs, alone, as_given, failed=reply)
        return self._record(inputs, reply, as_given)

    def _alone(self, inputs: Mapping[str, Any]) -> Reply | None:
        """The estimates without the bootstrap that failed; None where they fail too."""
        reply = requests.ask("sae_spatial_eblupSFH", inputs, self.asked, may_fail=True)
        return reply if reply.error is None else None

    def _record(
        self,
        inputs: Mapping[str, Any],
        reply: Reply,
        as_given: Mapping[str, Any],
        *,
        failed: Reply | None = None,
    ) -> SaeFit:
        start = None if reply.error else np.array(list(_parameters(reply).values()))
        optimum = spatial_optimum(self.points, self.w, self.method, start=start)
        exact, status = self._compared(optimum, reply)
        if failed is not None:
            status = "not_converged"
            self.notes += list(requests.said(failed))
            self.notes.append(
                "a replicate of the bootstrap did not converge, which ends it: no MSE"
                if _is_iteration_limit(failed)
                else "the bootstrap failed: no MSE"
            )
        elif _is_iteration_limit(reply):
            status = "not_converged"
            self.notes.append(
                f"sae did not converge in {self.asked.arguments['MAXITER']} iterations, which it "
                "reports by this error"
            )
        return area_fit(
            self.table,
            self.asked,
            f"sae_spatial_{self.asked.function}",
            inputs,
            reply,
            exact=exact,
            as_given=as_given,
            status=status,
            notes=self.notes,
        )

    def _compared(self, optimum: Optimum, reply: Reply) -> tuple[dict[str, Any], str | None]:
        variance, rho = map(float, optimum.theta)
        exact: dict[str, Any] = {
            "model_variance": variance,
            "spatial_correlation": rho,
            "log_likelihood": optimum.at.ordinary,
            "restricted_log_likelihood": optimum.at.restricted,
        }
        at_limit = abs(rho) >= LARGEST_CORRELATION
        if reply.error is not None:
            # The last inverse of I - rho W, at the rho of 1 that sae puts in place of 0.999.
            singular = "(I - rho * proxmatt)" in str(reply.error.get("call"))
            return exact, "boundary" if singular or at_limit else None
        found = list(_parameters(reply).values())
        if not found:
            return exact, None
        status = fit_status(reply.value, n=len(self.points.y), p=self.points.x.shape[1])
        at = _likelihoods(self.points, self.w, found)
        if at is None:
            return exact, status
        exact.update(
            log_likelihood_at_engine=at.ordinary,
            restricted_at_engine=at.restricted,
            shortfall=optimum.at.of(self.method) - at.of(self.method),
        )
        if exact["shortfall"] > SHORTFALL:
            self.notes.append(
                f"sae ended at model variance {found[0]:.6g} and spatial correlation "
                f"{found[1]:.6g}; the optimum is {variance:.6g} and {rho:.6g}"
            )
            status = "not_converged"
        return exact, status


def _likelihoods(points: AreaData, w: Proximity, found: list[float]) -> Likelihoods | None:
    """At sae's parameters; None where V is singular, as it may be at a rho of 1 or -1."""
    try:
        with np.errstate(divide="ignore", invalid="ignore"):
            at = spatial_likelihoods(points, w, *found)
    except np.linalg.LinAlgError:
        return None
    return at if np.isfinite([at.ordinary, at.restricted]).all() else None


def _rho(reply: Reply) -> float:
    return _parameters(reply).get("spatial_correlation", 0.0)


def _parameters(reply: Reply) -> dict[str, float]:
    if reply.error is not None or "refvar" not in reply.value:
        return {}
    return {
        "model_variance": float(reply.value["refvar"][0]),
        "spatial_correlation": float(reply.value["spatialcorr"][0]),
    }


def _is_iteration_limit(reply: Reply) -> bool:
    """sae compares base R's function diff() with a number there, whatever R's language is."""
    return reply.error is not None and reply.error.get("call") == "diff >= PRECISION"
