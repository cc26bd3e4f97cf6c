"""The public entry of the Fay-Herriot model: one request, checked, to one engine."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pybridge._options import MODES, check_level, choose, whole_number
from pybridge._record import Record
from pybridge.engines._emdi_legal import METHODS, legal_methods
from pybridge.errors import InputError
from pybridge.provenance import provenance
from pybridge.smoothing._spec import FayHerriotSpec, shown
from pybridge.smoothing.fay_herriot_fit import FayHerriotFit
from pybridge.tables.area import AreaTable, area_table


@dataclass(frozen=True)
class Adapter:
    """One way of computing: a module with ``complete_options(given)`` and ``fit(table, spec)``."""

    engine: str
    methods: tuple[str, ...]
    module: str
    modes: tuple[str, ...] = MODES


# One line an adapter; an engine may have several, for different methods.
ADAPTERS = (
    Adapter("sae", ("REML", "ML", "FH"), "pybridge.smoothing._sae"),
    Adapter("emdi", METHODS, "pybridge.smoothing._emdi"),
    Adapter("hbsae", ("bayes",), "pybridge.smoothing._hbsae"),
    Adapter("native", ("REML", "ML", "FH", "PR"), "pybridge.smoothing._native", ("guarded",)),
    Adapter("native", ("bayes",), "pybridge.smoothing._native_bayes", ("guarded",)),
)


# The same for correlated domain effects: (correlation, adapter).
CORRELATED = (
    ("spatial", Adapter("sae", ("REML", "ML"), "pybridge.smoothing._sae_spatial")),
    ("spatial", Adapter("emdi", legal_methods("spatial"), "pybridge.smoothing._emdi")),
)


def fay_herriot(
    formula: str,
    area: pd.DataFrame,
    *,
    variance: str = "variance",
    domain: str | None = None,
    engine: str = "sae",
    method: str = "REML",
    correlation: str | None = None,
    proximity: Any = None,
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
    engine : {"sae", "emdi", "hbsae", "native"}
        Who computes: R's package sae, emdi or hbsae, or pybridge itself (exact optimum, any number
        of domains, no R). Never one in place of the other.
    method : str
        Estimator of σ²: ``"REML"``, ``"ML"``, ``"FH"`` (moments), natively also ``"PR"``, or
        ``"bayes"`` (flat priors; ``mse`` is then the posterior variance, and intervals are
        quantiles); emdi: REML, ML, AMRL, AMPL, AMRL_YL, AMPL_YL, the robust ``"reblup"`` and
        ``"reblupbc"``, and ``"me"`` (measurement error); upper or lower case.
    correlation : {"spatial"}, optional
        None: domain effects are independent. ``"spatial"``: v = ρWv + u, a SAR(1) over the domains
        (sae and emdi, REML or ML; emdi also robust); σ² is then the variance of u.
    proximity : pandas.DataFrame, optional
        W, in most cases with rows that add up to 1; index and columns hold the domains' labels, in
        any order. In raw mode any matrix, by position.
    level : float
        Confidence level of the intervals.
    seed : int, optional
        For engines that draw random numbers (sae's B; emdi's, by default its own 123).
    mode : {"guarded", "raw"}
        ``"raw"``: R's function as it is. ``"guarded"``: the same call, the answer compared with
        the exact optimum, failures named, domains without an estimate predicted.
    **engine_options
        The R function's own arguments by its own names: for sae MAXITER, PRECISION, B; for emdi
        transformation, backtransformation, eff_smpsize, MSE, mse_type, B, interval, k,
        mult_constant, Ci, tol, maxit; and ``time_limit`` in seconds.

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
    adapter = _adapter(engine, method, mode, correlation)
    module = importlib.import_module(adapter.module)
    options = module.complete_options(engine_options)
    rows = area.to_frame() if isinstance(area, Record) else area
    table = area_table(formula, rows, variance=variance, domain=domain)
    labelled = domain is not None or "domain" in rows.columns
    if hasattr(module, "finish_options"):
        own = _own_case(method, adapter.methods)
        options = module.finish_options(options, rows, table, own, correlation)
    spec = FayHerriotSpec(
        engine=engine,
        method=_own_case(method, adapter.methods),
        mode=mode,
        level=check_level(level),
        seed=None if seed is None else whole_number("seed", seed, least=0, most=2**31 - 1),
        options=options,
        correlation=correlation,
        proximity=_proximity(proximity, correlation, table, mode, labelled=labelled),
    )
    fit = module.fit(table, spec)
    made_by = provenance(
        engine,
        spec.method,
        options={**_described(formula, spec), **shown(spec.options)},
        seed=spec.seed,
        versions=fit.versions,
    )
    return FayHerriotFit(spec=spec, area=table, fit=fit, provenance=made_by)


def _described(formula: str, spec: FayHerriotSpec) -> dict[str, Any]:
    words = {"formula": formula, "mode": spec.mode, "level": spec.level}
    return words if spec.correlation is None else {**words, "correlation": spec.correlation}


def _proximity(
    proximity: Any, correlation: str | None, table: AreaTable, mode: str, *, labelled: bool
) -> np.ndarray | None:
    """The matrix in the order of the table, where domain effects are correlated."""
    if (correlation is None) != (proximity is None):
        raise InputError(
            "a proximity matrix and correlated domain effects go together",
            code="missing_argument",
            field="proximity" if proximity is None else "correlation",
            expected="correlation='spatial', proximity=W, or neither",
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

    return proximity_matrix(proximity, table.domains, mode=mode, field="proximity")


def _own_case(method: str, methods: tuple[str, ...]) -> str:
    return next(own for own in methods if own.lower() == method.lower())


def _adapter(engine: Any, method: Any, mode: Any, correlation: Any) -> Adapter:
    """The adapter for a legal combination, or an InputError that lists what is legal."""
    choose("engine", engine, dict.fromkeys(adapter.engine for adapter in ADAPTERS))
    choose("mode", mode, MODES)
    adapters: tuple[Adapter, ...] = ADAPTERS
    if correlation is not None:
        choose("correlation", correlation, dict.fromkeys(name for name, _ in CORRELATED))
        adapters = tuple(adapter for name, adapter in CORRELATED if name == correlation)
    own = [adapter for adapter in adapters if adapter.engine == engine]
    if not own:
        able = dict.fromkeys(adapter.engine for adapter in adapters)
        raise InputError(
            f"engine {engine!r} has no {correlation} correlation",
            code="not_available",
            field="correlation",
            expected=f"engine={' | '.join(able)}",
            got=engine,
        )
    for adapter in own:
        if isinstance(method, str) and method.lower() in map(str.lower, adapter.methods):
            if mode not in adapter.modes:
                raise InputError(
                    f"engine {engine!r} has no mode {mode!r}: there is no R function to call as "
                    "it is",
                    code="unknown_option",
                    field="mode",
                    expected=" | ".join(adapter.modes),
                    got=mode,
                )
            return adapter
    others = dict.fromkeys(
        adapter.engine
        for adapter in adapters
        if isinstance(method, str) and method.lower() in map(str.lower, adapter.methods)
    )
    raise InputError(
        f"engine {engine!r} has no method {method!r}",
        code="unknown_option",
        field="method",
        expected=" | ".join(word for adapter in own for word in adapter.methods),
        got=method,
        hint=f"Engines with it: {', '.join(others)}." if others else None,
    )
