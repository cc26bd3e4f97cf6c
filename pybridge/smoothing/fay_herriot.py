"""The public entry of the Fay-Herriot model: one request, checked, to one engine."""

from __future__ import annotations

import importlib
import secrets
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import need_frame
from pybridge._options import check_level, whole_number
from pybridge._record import Record
from pybridge.errors import InputError
from pybridge.provenance import provenance
from pybridge.smoothing._adapters import (
    ADAPTERS,
    CORRELATED,
    SPACE_TIME,
    SPATIAL,
    Adapter,
    adapter_for,
    own_case,
)
from pybridge.smoothing._finite_request import finite_spread, for_finite_domains, with_spread
from pybridge.smoothing._spec import FayHerriotSpec, shown
from pybridge.smoothing.fay_herriot_fit import FayHerriotFit
from pybridge.tables.area import AreaTable, area_table
from pybridge.tables.area_join import with_covariates

__all__ = ["ADAPTERS", "CORRELATED", "Adapter", "FayHerriotFit", "fay_herriot"]

_MOST_SEED = 2**31 - 1


def fay_herriot(
    formula: str,
    area: pd.DataFrame,
    *,
    variance: str = "variance",
    domain: str | None = None,
    covariates: pd.DataFrame | None = None,
    engine: str = "sae",
    method: str = "REML",
    correlation: str | None = None,
    proximity: Any = None,
    time: str | None = None,
    finite_population: str | bool | None = None,
    element_variance: str | float | None = None,
    level: float = 0.95,
    seed: int | None = None,
    mode: str = "guarded",
    **engine_options: Any,
) -> FayHerriotFit:
    """Smooth direct domain estimates by the area-level model of Fay and Herriot.

    z_i ~ N(θ_i, d_i), θ_i = x_i'β + v_i, v_i ~ N(0, σ²): domains with little data lean on the
    regression, domains with much data on their own estimate.

    Parameters
    ----------
    formula : str
        ``"estimate ~ f"``: the column of direct estimates (empty where a domain has none), then
        covariates in patsy's words.
    area : pandas.DataFrame
        One row a domain. A record with ``to_frame()`` will do.
    variance : str
        Column of the sampling variances, the squares of the standard errors; 0 for a domain
        observed in full.
    domain : str, optional
        Column of the domains' labels; by default ``domain`` if there is one, else row numbers.
    covariates : pandas.DataFrame, optional
        Further columns from a table of their own, one row a domain, labels in the same column.
    engine : {"sae", "emdi", "hbsae", "native"}
        Who computes: R's package sae, emdi or hbsae, or pybridge itself (exact optimum, any number
        of domains, no R). Never one in place of the other.
    method : str
        Estimator of σ²: ``"REML"``, ``"ML"``, ``"FH"`` (moments), natively also ``"PR"``, or
        ``"bayes"`` (flat priors; ``mse`` is then the posterior variance, and intervals are
        quantiles). emdi and native: ``"AMRL"``, ``"AMPL"`` (Li and Lahiri), ``"AMRL_YL"`` and
        ``"AMPL_YL"`` (Yoshimori and Lahiri), which keep σ² from being 0; the robust ``"reblup"``
        and ``"reblupbc"`` (Huber). emdi alone: ``"me"`` (measurement error). Upper or lower case.
    correlation : {"spatial", "spatio-temporal"}, optional
        None: domain effects are independent. ``"spatial"``: v = ρWv + u, a SAR(1) over the domains
        (sae and emdi, REML or ML; emdi also robust); σ² is then the variance of u.
        ``"spatio-temporal"``, which ``time`` implies: beside these, effects of domain and instant,
        an AR(1) within each domain (sae, REML).
    proximity : pandas.DataFrame, optional
        W, in most cases with rows that add up to 1; index and columns hold the domains' labels, in
        any order. In raw mode any matrix, by position.
    time : str, optional
        Column of the instants: the table then has one row a domain and instant.
    finite_population : str or True, optional
        Column of the domains' sizes N (True: ``size``). The mean of a domain's own N units differs
        from the model by a further variance s²/N; without it the intervals of domains of few
        units are too narrow. Off by default: the numbers are then the engine's own.
    element_variance : str or float, optional
        s², the variance of the units within a domain, a column or one number. By default from the
        sampling variances and ``n_labelled``, as of simple random samples within domains.
    level : float
        Confidence level of the intervals.
    seed : int, optional
        For engines that draw random numbers (sae's B; emdi's, by default its own 123; the native
        bootstrap, by default a fresh one that the record keeps).
    mode : {"guarded", "raw"}
        ``"raw"``: R's function as it is. ``"guarded"``: the same call, the answer compared with
        the exact optimum, failures named, domains without an estimate predicted.
    **engine_options
        The R function's own arguments by its own names: for sae MAXITER, PRECISION, B; for emdi
        transformation, backtransformation, eff_smpsize, MSE, mse_type, B, interval, k,
        mult_constant, Ci, tol, maxit; and ``time_limit`` in seconds. The native engine has
        emdi's transformation (``"log"``, ``"arcsin"``), backtransformation (``"bc"`` by default,
        ``"naive"``; for logarithms ``"bc_sm"``), eff_smpsize, mse_type (``"analytical"``,
        ``"boot"``, ``"bootbc"``; robust: ``"analytical"``, ``"pseudo"``, ``"boot"``), B, k and
        mult_constant.

    Returns
    -------
    FayHerriotFit

    Raises
    ------
    InputError
        Anything wrong with the request or the table, before an engine runs.
    EngineUnavailable
        R, rpy2 or a package is missing.
    EngineError
        R stopped, in raw mode.

    References
    ----------
    Fay and Herriot (1979), JASA 74, 269. Rao and Molina (2015), Small Area Estimation, ch. 6.
    """
    correlation = _implied(correlation, time)
    adapter = adapter_for(engine, method, mode, correlation)
    module = importlib.import_module(adapter.module)
    options = module.complete_options(engine_options)
    rows = area.to_frame() if isinstance(area, Record) else area
    if covariates is not None:
        need_frame("area", rows)
        rows = with_covariates(rows, covariates, domain=domain or "domain")
    table = area_table(formula, rows, variance=variance, domain=domain, time=time)
    labelled = domain is not None or "domain" in rows.columns
    own = own_case(method, adapter.methods)
    if hasattr(module, "finish_options"):
        options = module.finish_options(options, rows, table, own, correlation)
    plain = correlation is None and options.get("transformation", "no") == "no"
    spread = finite_spread(
        finite_population, element_variance, rows, table, legal=plain and mode == "guarded"
    )
    spec = FayHerriotSpec(
        engine=engine,
        method=own,
        mode=mode,
        level=check_level(level),
        seed=_seed(seed, module, options),
        options=options,
        correlation=correlation,
        proximity=_proximity(proximity, correlation, table, mode, labelled=labelled),
    )
    fit = module.fit(with_spread(table, spread), spec)
    if spread is not None:
        fit = for_finite_domains(fit, table, spread)
    made_by = provenance(
        engine,
        spec.method,
        options={**_described(formula, spec, spread), **shown(spec.options)},
        seed=spec.seed,
        versions=fit.versions,
    )
    return FayHerriotFit(spec=spec, area=table, fit=fit, provenance=made_by, spread=spread)


def _implied(correlation: str | None, time: str | None) -> str | None:
    """Instants ask for the model over time, and that for instants."""
    if time is not None and correlation in (None, SPATIAL):
        return SPACE_TIME
    if time is None and correlation == SPACE_TIME:
        raise InputError(
            "a model over time needs the column of the instants",
            code="missing_argument",
            field="time",
            expected=f"time= with correlation={SPACE_TIME!r}",
            got=f"time={time!r}, correlation={correlation!r}",
        )
    return correlation


def _seed(seed: int | None, module: Any, options: dict[str, Any]) -> int | None:
    """The seed; where numbers are drawn and none is given, the engine's own or a fresh one."""
    if seed is not None:
        return whole_number("seed", seed, least=0, most=_MOST_SEED)
    if hasattr(module, "default_seed"):
        return module.default_seed(options)
    drawn = hasattr(module, "needs_seed") and module.needs_seed(options)
    return secrets.randbelow(_MOST_SEED) if drawn else None


def _described(formula: str, spec: FayHerriotSpec, spread: np.ndarray | None) -> dict[str, Any]:
    words = {"formula": formula, "mode": spec.mode, "level": spec.level}
    if spec.correlation is not None:
        words["correlation"] = spec.correlation
    if spread is not None:
        words["finite_population"] = True
    return words


def _proximity(
    proximity: Any, correlation: str | None, table: AreaTable, mode: str, *, labelled: bool
) -> np.ndarray | None:
    """The matrix in the order of the table, where domain effects are correlated."""
    if (correlation is None) != (proximity is None):
        raise InputError(
            "a proximity matrix and correlated domain effects go together",
            code="missing_argument",
            field="proximity" if proximity is None else "correlation",
            expected="correlation='spatial' or time=, with proximity=W, or neither",
            got=f"correlation={correlation!r}, proximity={type(proximity).__name__}",
        )
    if correlation is None:
        return None
    if mode == "guarded" and not labelled:
        raise InputError(
            "the table has no labels of domains to match the proximity matrix to",
            code="missing_argument",
            field="domain",
            expected="domain=, the column of labels",
            got=None,
        )
    from pybridge.engines._sae_proximity import proximity_matrix

    labels = np.asarray(pd.unique(table.domains), dtype=object)
    return proximity_matrix(proximity, labels, mode=mode, field="proximity")
