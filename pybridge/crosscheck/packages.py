"""Fits by hbsae, metafor and JAGS under their own names, by every engine that has their model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from pybridge.crosscheck.area import crosscheck_area
from pybridge.crosscheck.fits import FitCrosscheck
from pybridge.crosscheck.taxonomy import crosscheck_taxonomy
from pybridge.engines._hbsae_record import HbsaeFit
from pybridge.engines._metafor_guard import nested_codes
from pybridge.engines._metafor_record import MetaforFit
from pybridge.engines._package_record import PackageFit
from pybridge.engines._rjags_record import JagsSamples
from pybridge.errors import InputError
from pybridge.smoothing.fay_herriot import fay_herriot
from pybridge.smoothing.taxonomy import taxonomy_model


def crosscheck_package(fit: PackageFit) -> FitCrosscheck:
    """A fit under a package's own name, by every engine that has its model.

    Raises
    ------
    InputError
        For a model that no other engine has.
    """
    if isinstance(fit, HbsaeFit):
        return crosscheck_hbsae(fit)
    if isinstance(fit, MetaforFit):
        return crosscheck_metafor(fit)
    assert isinstance(fit, JagsSamples)
    return crosscheck_jags(fit)


def crosscheck_hbsae(fit: HbsaeFit) -> FitCrosscheck:
    """The Bayesian area-level model by hbsae and natively.

    hbsae is asked again with the fit's rel.int.tol; its start and integrate()'s arguments are R's.

    Raises
    ------
    InputError
        For another method than HB, and for priors that no other engine has.
    """
    asked = fit.request.arguments
    own = {"prior", "beta0", "Omega0", "x"} & set(asked)
    if asked["method"] != "HB" or own:
        raise no_other(
            "method" if asked["method"] != "HB" else sorted(own)[0],
            "method='HB' with flat priors",
            asked["method"],
        )
    inputs = fit.inputs
    n, names = len(inputs["estimate"]), list(inputs.get("names") or inputs["domains"])
    X = np.ones((n, 1)) if inputs.get("X") is None else np.asarray(inputs["X"])
    table = columns_of(X).assign(domain=names)
    for column, values in (("estimate", inputs["estimate"]), ("variance", inputs["variance"])):
        known = dict(zip(list(inputs["domains"])[:n], values))
        table[column] = [known.get(name, np.nan) for name in names]
    model = fay_herriot(
        formula_of(X),
        table,
        engine="hbsae",
        method="bayes",
        level=fit.request.level,
        rel_int_tol=asked["rel.int.tol"],
    )
    return crosscheck_area(model)


def crosscheck_metafor(fit: MetaforFit) -> FitCrosscheck:
    """Nested random intercepts by metafor, with the fit's own control, and natively.

    Raises
    ------
    InputError
        For a model that is not nested random intercepts down to the single row.
    """
    inputs = fit.inputs
    codes = nested_codes(inputs)
    if codes is None:
        raise no_other("random", "nested random intercepts down to the single row", "another")
    X = np.asarray(fit.value["X"]) if "X" in fit.value else np.ones((len(fit.domains), 1))
    table = columns_of(X).assign(
        estimate=np.asarray(inputs["data"][inputs["yi"]]),
        variance=np.asarray(inputs["data"][inputs["V"]]),
    )
    levels = [f"level{k + 1}" for k in range(len(codes))]
    for name, column in zip(levels, codes):
        table[name] = column
    options: dict[str, Any] = dict(inputs["options"].get("control") or {})
    model = taxonomy_model(
        formula_of(X),
        table,
        levels=levels,
        engine="metafor",
        method=fit.request.arguments["method"],
        level=fit.request.level,
        **options,
    )
    return crosscheck_taxonomy(model)


def crosscheck_jags(samples: JagsSamples) -> FitCrosscheck:
    """The taxonomy model by JAGS, with the samples' own chains and seed, and natively.

    Raises
    ------
    InputError
        For a model of one's own.
    """
    inputs = samples.inputs
    if "covariates" not in inputs:
        raise no_other("model", "draws of rjags.taxonomy(...)", "a model of one's own")
    X, unit = np.asarray(inputs["covariates"]), float(inputs["unit"])
    table = columns_of(X).assign(estimate=np.nan, variance=np.nan)
    rows = np.asarray(inputs["place"], dtype=np.intp) - 1
    table.loc[rows, "estimate"] = np.asarray(inputs["estimate"]) * unit
    table.loc[rows, "variance"] = np.asarray(inputs["variance"]) * unit**2
    for name, codes in inputs["levels"].items():
        table[name] = np.asarray(codes)
    table["domain"] = np.arange(len(table))
    names = ("n_chains", "n_adapt", "n_burn", "n_draws", "thin")
    settings: dict[str, Any] = {name: int(inputs[name]) for name in names}
    model = taxonomy_model(
        formula_of(X),
        table,
        levels=[*inputs["levels"], "domain"],
        engine="rjags",
        prior={"shape": inputs["shape"], "scale": np.asarray(inputs["rate"]) * unit**2},
        level=samples.request.level,
        seed=samples.request.seed,
        **settings,
    )
    return crosscheck_taxonomy(model)


def columns_of(X: np.ndarray) -> pd.DataFrame:
    """The design matrix as columns x1, x2, ..."""
    return pd.DataFrame({f"x{j + 1}": X[:, j] for j in range(X.shape[1])})


def formula_of(X: np.ndarray) -> str:
    return "estimate ~ 0 + " + " + ".join(f"x{j + 1}" for j in range(X.shape[1]))


def no_other(field: str, expected: str, got: Any) -> InputError:
    return InputError(
        "no other engine has this model, so that there is nothing to compare with",
        code="not_available",
        field=field,
        expected=expected,
        got=got,
    )
