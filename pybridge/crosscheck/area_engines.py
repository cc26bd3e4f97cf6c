"""Area-level fits by sae and emdi under their own names, by every engine that has their model."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd

from pybridge.crosscheck.fits import FitCrosscheck
from pybridge.crosscheck.packages import columns_of, formula_of, no_other
from pybridge.engines._emdi_record import EmdiFit
from pybridge.engines._engine_request import ask
from pybridge.engines._sae_record import SaeFit
from pybridge.errors import EngineWarning
from pybridge.smoothing.fay_herriot import fay_herriot

# What emdi's numbers depend on, and are compared with; MSE is the default kind of the model.
_OPTIONS = ("interval", "k", "mult_constant", "tol", "maxit")


def crosscheck_sae(fit: SaeFit) -> FitCrosscheck:
    """The fit's model, independent or spatially correlated, by its method.

    A bootstrap is not repeated: its mean squared errors are another quantity.

    Raises
    ------
    InputError
        For the model over time, which no other engine has.
    """
    if fit.times is not None:
        raise no_other("model", "a model of one instant", fit.request.function)
    inputs, asked = fit.inputs, fit.request
    order = np.asarray(fit.order, dtype=np.intp)
    x = np.asarray(ask("sae_design", dict(inputs), asked).value["X"], dtype=np.float64)
    table = columns_of(x).assign(estimate=fit.direct[order], variance=fit.direct_variance[order])
    words: dict[str, Any] = {name: asked.arguments[name] for name in ("MAXITER", "PRECISION")}
    return _crosschecked(
        table,
        formula_of(x),
        inputs.get("proxmat"),
        fit.domains[order],
        engine="sae",
        method=asked.arguments["method"],
        mode=asked.mode,
        level=asked.level,
        **words,
    )


def crosscheck_emdi(fit: EmdiFit) -> FitCrosscheck:
    """The fit's model by its method, with emdi's own settings.

    Raises
    ------
    InputError
        For transformed estimates, which each engine brings back in its own way, and for correlated
        effects where domains have no direct estimate.
    """
    asked = fit.request
    if asked.transformation != "no":
        raise no_other("transformation", "transformation='no'", asked.transformation)
    if asked.spatial and not asked.sampled.all():
        raise no_other("correlation", "a direct estimate in every domain", "domains without one")
    x = np.asarray(asked.covariates)
    table = columns_of(x).assign(estimate=asked.estimate, variance=asked.variance)
    words: dict[str, Any] = {name: asked.arguments[name] for name in _OPTIONS}
    if asked.errors is not None:
        words["Ci"] = np.asarray(asked.errors)
    return _crosschecked(
        table,
        formula_of(x),
        asked.proximity,
        asked.domains,
        engine="emdi",
        method=asked.method,
        mode=asked.mode,
        level=asked.level,
        **words,
    )


def _crosschecked(
    table: pd.DataFrame, formula: str, w: np.ndarray | None, labels: np.ndarray, **words: Any
) -> FitCrosscheck:
    """The same model as a fit of `fay_herriot`, cross-checked."""
    # Labels as text, each once: a raw call may have had the same one twice.
    names = [f"{k + 1}: {label}" for k, label in enumerate(labels)]
    table = table.assign(domain=names)
    if w is not None:
        words["correlation"] = "spatial"
        words["proximity"] = pd.DataFrame(np.asarray(w), index=names, columns=names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EngineWarning)  # the first fit has warned before
        model = fay_herriot(formula, table, **words)
    return model.crosscheck()
