"""R's emdi: its functions under their own names, with R's own argument names.

Every function takes ``mode="guarded"`` (the default) or ``mode="raw"``. Raw is emdi's function as
it is, to the last bit. Guarded is the same call in units in which emdi's absolute tolerances do no
harm, on keyed tables, with the answer compared to an exact optimum; what emdi leaves out or has
wrong is mended, and emdi's own number kept beside it. emdi's ``combine_data`` has no entry: it
sorts rows by the session's locale, so that a proximity matrix no longer fits them. Join tables by
key, with pandas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from pybridge.engines._emdi_benchmark import EmdiBenchmark, benchmark
from pybridge.engines._emdi_compare import (
    EmdiComparison,
    EmdiTable,
    compare,
    compare_pred,
    estimators,
)
from pybridge.engines._emdi_direct import direct
from pybridge.engines._emdi_direct_record import EmdiDirect
from pybridge.engines._emdi_fit import fit, prepare
from pybridge.engines._emdi_legal import legal_combinations
from pybridge.engines._emdi_record import EmdiFit
from pybridge.engines._emdi_request import DEFAULT_SEED
from pybridge.engines._emdi_spatialcor import EmdiSpatialTests, spatialcor_tests
from pybridge.engines._emdi_step import EmdiStep, step

__all__ = [
    "EmdiBenchmark",
    "EmdiComparison",
    "EmdiDirect",
    "EmdiFit",
    "EmdiSpatialTests",
    "EmdiStep",
    "EmdiTable",
    "benchmark",
    "compare",
    "compare_pred",
    "direct",
    "estimators",
    "fh",
    "legal_combinations",
    "spatialcor_tests",
    "step",
]


def fh(
    fixed: str,
    vardir: str,
    combined_data: pd.DataFrame,
    domains: str | None = None,
    method: str = "reml",
    interval: Sequence[float] | None = None,
    k: float = 1.345,
    mult_constant: float = 1.0,
    transformation: str = "no",
    backtransformation: str | None = None,
    eff_smpsize: str | None = None,
    correlation: str = "no",
    corMatrix: Any = None,
    Ci: Mapping[Any, Any] | Any = None,
    tol: float = 1e-4,
    maxit: int = 100,
    MSE: bool = False,
    mse_type: str = "analytical",
    B: int | Sequence[int] = (50, 0),
    seed: int | None = DEFAULT_SEED,
    *,
    mode: str = "guarded",
    level: float = 0.95,
    time_limit: float | None = None,
) -> EmdiFit:
    """Fay-Herriot models by emdi::fh, with all its options and its defaults.

    Parameters
    ----------
    fixed : str
        A formula in R's words, ``"y ~ x + as.factor(g)"``; empty direct estimates are domains
        to be predicted. A categorical column is a plain factor, an ordered one too.
    vardir : str
        Column of the sampling variances.
    combined_data : pandas.DataFrame
        One row a domain.
    domains : str, optional
        Column of the domains' labels; by default they are numbered from 1.
    method : str
        ``reml``, ``ml``, ``amrl``, ``ampl``, ``amrl_yl``, ``ampl_yl``, robust ``reblup`` and
        ``reblupbc``, or ``me`` (measurement error).
    interval : pair of float, optional
        Where the model variance is looked for; by default (0, var(direct)).
    k, mult_constant : float
        Tuning of the robust methods.
    transformation : {"no", "log", "arcsin", "logit"}
    backtransformation : {"bc_crude", "bc_sm", "naive", "bc"}, optional
    eff_smpsize : str, optional
        Column of effective sample sizes, for arcsin.
    correlation : {"no", "spatial"}
    corMatrix : pandas.DataFrame, optional
        Proximity, with the domains as index and columns; in raw mode by position.
    Ci : mapping or array, optional
        Method ``me``: the covariance (p, p) of each domain's covariates, by label, or R's array
        of shape (p, p, m) in the table's order.
    tol, maxit
        For spatial, robust and measurement error models.
    MSE : bool
        Whether mean squared errors are estimated.
    mse_type : str
        How; `legal_combinations` tells what goes together.
    B : int or pair of int
        Replicates of the bootstrap MSE, and of the bootstrap information criteria.
    seed : int or None
        emdi's default is 123. None: a fresh one where numbers are drawn, kept in the record. R's
        random stream is put back afterwards.
    mode : {"guarded", "raw"}
    level : float
        Confidence level of the intervals, which are pybridge's own.
    time_limit : float, optional
        Seconds for R.

    Raises
    ------
    InputError
        Combinations that emdi does not have (the error names those that it has), and anything
        wrong with the table, before emdi is called.
    EngineUnavailable
        R, rpy2 or emdi is missing, or emdi is too old for the option.
    EngineError
        R stopped, in raw mode; a guarded fit has the status ``failed``.

    References
    ----------
    Kreutzmann et al. (2019), J. Statistical Software 91(7); Harmening et al. (2023), The R Journal
    15, 166.
    """
    return fit(
        prepare(
            fixed,
            vardir,
            combined_data,
            domains,
            eff_smpsize=eff_smpsize,
            corMatrix=corMatrix,
            Ci=Ci,
            mode=mode,
            level=level,
            time_limit=time_limit,
            method=method,
            interval=interval,
            k=k,
            mult_constant=mult_constant,
            transformation=transformation,
            backtransformation=backtransformation,
            correlation=correlation,
            tol=tol,
            maxit=maxit,
            MSE=MSE,
            mse_type=mse_type,
            B=B,
            seed=seed,
        )
    )
