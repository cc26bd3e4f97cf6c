"""A fit of the taxonomy model by every engine that has its method, beside the native one."""

from __future__ import annotations

import importlib
import importlib.util
import math
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from pybridge.crosscheck.agreement import AgreementTable
from pybridge.crosscheck.asking import why
from pybridge.crosscheck.comparer import Answers, Pairing, compare_producers
from pybridge.crosscheck.fits import EngineAnswer, FitCrosscheck
from pybridge.crosscheck.tolerances import (
    METAFOR,
    METAFOR_SHORTFALL,
    MONTE_CARLO,
    Tolerance,
    relative,
)
from pybridge.errors import EngineError, EngineUnavailable, EngineWarning, InputError
from pybridge.smoothing._taxonomy_mse import information
from pybridge.smoothing._taxonomy_problem import Problem
from pybridge.smoothing._taxonomy_reml import taxonomy_at
from pybridge.smoothing._taxonomy_spec import TaxonomyAnswer, TaxonomySpec, arrays
from pybridge.smoothing._taxonomy_tree import build_tree
from pybridge.smoothing.taxonomy import ENGINES
from pybridge.smoothing.taxonomy_fit import TaxonomyFit

_CASE = "this fit"
_CRITERIA = {"REML": "restricted_log_likelihood", "ML": "log_likelihood"}

METAFOR_TAXONOMY: dict[str, Tolerance] = {
    "variances": METAFOR,
    "coefficients": METAFOR,
    "estimate": METAFOR,
    "maximum": METAFOR_SHORTFALL,
}
RJAGS_TAXONOMY: dict[str, Tolerance] = {
    "coefficients": MONTE_CARLO,
    "estimate": MONTE_CARLO,
    "mse": relative(MONTE_CARLO),
}


def crosscheck_taxonomy(fit: TaxonomyFit) -> FitCrosscheck:
    """Fit the table of ``fit`` again, by every engine with its method.

    For REML and ML the likelihood at every engine's variances is computed natively, so that they
    can be ranked; for the posterior JAGS's draws are held against the native quadrature.

    Parameters
    ----------
    fit : TaxonomyFit

    Returns
    -------
    FitCrosscheck
        An engine that is missing, or refuses the table, is in ``unavailable``.
    """
    found: dict[str, TaxonomyAnswer] = {}
    unavailable: dict[str, str] = {}
    for engine, (methods, module) in ENGINES.items():
        if fit.spec.method not in methods:
            continue
        answer = _ask(engine, module, fit)
        if isinstance(answer, TaxonomyAnswer):
            found[engine] = answer
        else:
            unavailable[engine] = answer
    criterion = _CRITERIA.get(fit.spec.method)
    heights = {name: _height(answer, fit, criterion) for name, answer in found.items()}
    answers = []
    for name, answer in found.items():
        variances = dict(zip(fit.levels.names, map(float, answer.numbers.model_variances)))
        answers.append(
            EngineAnswer(
                producer=name,
                status=answer.numbers.status,
                numbers=variances,
                criterion=heights[name],
                conditions=answer.conditions,
            )
        )
    return FitCrosscheck(
        subject=f"taxonomy model {fit.area.formula}, method {fit.spec.method}, "
        f"{len(fit.area.domains)} domains, levels {', '.join(fit.levels.names)}",
        answers=tuple(answers),
        table=_table(fit, found, heights),
        criterion_name=""
        if criterion is None
        else criterion.replace("_", " ").replace("g l", "g-l"),
        unavailable=unavailable,
    )


def _ask(engine: str, module: str, fit: TaxonomyFit) -> TaxonomyAnswer | str:
    """The engine's answer, or why it has none."""
    if importlib.util.find_spec(module) is None:
        return "pybridge has no adapter for it"
    adapter = importlib.import_module(module)
    own = fit.spec.engine == engine
    spec: TaxonomySpec = replace(
        fit.spec,
        engine=engine,
        options=adapter.complete_options(dict(fit.spec.options) if own else {}, fit.spec.method),
    )
    try:
        with warnings.catch_warnings():
            # What R says is kept in the answer's conditions.
            warnings.simplefilter("ignore", EngineWarning)
            found: TaxonomyAnswer = adapter.fit(fit.area, fit.levels, spec)
            return found
    except (InputError, EngineUnavailable, EngineError) as error:
        return why(error)


def _height(answer: TaxonomyAnswer, fit: TaxonomyFit, criterion: str | None) -> float:
    """The likelihood that the method maximises, at the answer's variances."""
    variances = np.asarray(answer.numbers.model_variances)
    if criterion is None or not np.isfinite(variances).all():
        return math.nan
    numbers = arrays(fit.area, fit.levels)
    return float(getattr(taxonomy_at(variances, method=fit.spec.method, **numbers), criterion))


def _table(
    fit: TaxonomyFit, found: Mapping[str, TaxonomyAnswer], heights: Mapping[str, float]
) -> AgreementTable:
    if "native" not in found:
        return AgreementTable(())
    bayes = fit.spec.method == "bayes"
    answers = []
    for name, answer in found.items():
        numbers = answer.numbers
        values: dict[str, Any] = {
            "coefficients": numbers.coefficients,
            "estimate": numbers.estimate,
            "mse": numbers.mse,
        }
        if not bayes:
            values.update(variances=numbers.model_variances, maximum=heights[name])
        answers.append(Answers(name, {(_CASE, n): v for n, v in values.items()}))
    pairs = [
        Pairing(name, "native", RJAGS_TAXONOMY if bayes else METAFOR_TAXONOMY)
        for name in found
        if name != "native"
    ]
    exact = found["native"].numbers
    units: dict[tuple[str, str], Any] = {
        (_CASE, "coefficients"): np.sqrt(np.diagonal(exact.coefficient_covariance)),
        (_CASE, "estimate"): np.sqrt(np.maximum(exact.mse, 0.0)),
    }
    if not bayes:
        units[_CASE, "variances"] = variance_errors(replace(fit, answer=found["native"]))
    keys = {_CASE: [str(label) for label in fit.area.domains]}
    return compare_producers(answers, pairs, units=units, keys=keys)


def variance_errors(fit: TaxonomyFit) -> np.ndarray:
    """Asymptotic standard errors (R,) of the levels' variances of a REML or ML fit."""
    numbers = arrays(fit.area, fit.levels)
    problem = Problem.of(
        z=numbers["estimate"],
        d=numbers["variance"],
        x=numbers["covariates"],
        tree=build_tree(list(numbers["levels"])),
        prior=None,
    )
    scaled = np.asarray(fit.numbers.model_variances) / problem.scale**2
    spread = np.linalg.pinv(information(scaled, problem.data), hermitian=True)
    return np.sqrt(np.maximum(np.diagonal(spread), 0.0)) * problem.scale**2
