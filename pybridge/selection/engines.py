"""Who fits the candidates' area-level models: what each engine has, and batches of problems to it.

Problems of one R engine go to R in one call, all candidates and all folds together. An error in
one problem stands in its place; the others go on.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pybridge._options import choose
from pybridge.errors import EngineError, FitError, InputError
from pybridge.smoothing._area_fit import AreaProblem
from pybridge.smoothing._batches import numbered_table
from pybridge.smoothing._spec import FayHerriotSpec
from pybridge.tables.area import check_variances

if TYPE_CHECKING:
    from pybridge.selection.candidates import Candidate

SMOOTHING = ("fay_herriot", "taxonomy")
NATIVE = "native"
# emdi's measurement error model needs the covariates' own errors beside the problem's arrays.
_NOT_HERE = {("emdi", "me")}
# Options that need a table of the user's, or change what is estimated.
_NEED_TABLE = ("transformation", "backtransformation", "correlation", "eff_smpsize", "Ci")


def engines_of(smoothing: str) -> dict[str, dict[str, str]]:
    """Engine -> its methods, each with the module of its adapter."""
    found: dict[str, dict[str, str]] = {}
    if smoothing == "taxonomy":
        from pybridge.smoothing.taxonomy import ENGINES

        for name, (methods, module) in ENGINES.items():
            found[name] = dict.fromkeys(methods, module)
        return found
    from pybridge.smoothing.fay_herriot import ADAPTERS

    for adapter in ADAPTERS:
        words = [word for word in adapter.methods if (adapter.engine, word) not in _NOT_HERE]
        found.setdefault(adapter.engine, {}).update(dict.fromkeys(words, adapter.module))
    return found


def method_of(smoothing: str, engine: str, method: str | None) -> str:
    """The method in the engine's own words; by default REML, or bayes where there is no REML.

    Raises
    ------
    InputError
        Engines and methods that are not there, with what is.
    """
    engines = engines_of(smoothing)
    methods = tuple(engines[choose("engine", engine, engines)])
    if method is None:
        wanted = "bayes" if smoothing == "taxonomy" and engine == NATIVE else "reml"
        method = next((word for word in methods if word.lower() == wanted), methods[0])
    own = {word.lower(): word for word in methods}
    if isinstance(method, str) and method.lower() in own:
        return own[method.lower()]
    return choose("method", method, methods)


def checked_options(
    smoothing: str, engine: str, method: str, given: Mapping[str, Any]
) -> dict[str, Any]:
    """The options as given, after the engine's adapter has looked at them.

    Raises
    ------
    InputError
        Options that the engine does not have, or that a candidate cannot use.
    """
    options = dict(given)
    needing = [name for name in _NEED_TABLE if name in options]
    if needing:
        raise InputError(
            f"a candidate cannot have {needing[0]}: every fold would need its own",
            code="unknown_option",
            field=needing[0],
            expected="candidates on the outcome's own scale, with independent domain effects",
            got=options[needing[0]],
        )
    own = {name: value for name, value in options.items() if name != "prior"}
    if "prior" in options:
        _check_prior(smoothing, method, options["prior"])
    if own:
        module: Any = importlib.import_module(engines_of(smoothing)[engine][method])
        words = (own,) if smoothing == "fay_herriot" else (own, method)
        module.complete_options(*words)
    return options


def _check_prior(smoothing: str, method: str, prior: Any) -> None:
    from pybridge.smoothing._taxonomy_prior import TaxonomyPrior

    if smoothing != "taxonomy" or method != "bayes" or not isinstance(prior, TaxonomyPrior):
        raise InputError(
            "a prior is a TaxonomyPrior, for a Bayesian taxonomy model",
            code="bad_prior",
            field="prior",
            expected="pybridge.TaxonomyPrior(shape=..., scale=...)",
            got=prior,
        )


def batch_key(candidate: Candidate) -> tuple[Any, ...]:
    """What candidates must share for their problems to go to R together."""
    options = tuple(sorted((name, repr(value)) for name, value in candidate.options.items()))
    return candidate.smoothing, candidate.engine, candidate.method, options


def fit_in_r(
    candidate: Candidate,
    problems: Sequence[AreaProblem],
    *,
    levels: tuple[np.ndarray, ...],
    level: float,
    seed: int,
) -> list[Any]:
    """All problems of candidates that share a batch key, in one call to R.

    Parameters
    ----------
    candidate : Candidate
        One of those candidates.
    problems : sequence of AreaProblem
    levels : tuple of numpy.ndarray
        Codes (m,) of the taxonomy's levels, the domain last.
    level : float
    seed : int

    Returns
    -------
    list
        Fits in the order of the problems, errors in the place of those that could not be made.
    """
    module: Any = importlib.import_module(f"pybridge.smoothing._{candidate.engine}")
    words: dict[str, Any] = {**candidate.options, "level": level}
    if candidate.engine in ("sae", "emdi"):
        words.update(method=candidate.method, return_errors=True)
    if candidate.smoothing == "taxonomy":
        words["levels"] = levels
        if candidate.engine == "rjags":
            words["seed"] = seed
        else:
            words["method"] = candidate.method
    try:
        found = module.fit_many(problems, **words)
    except EngineError as error:  # stopped, timed out or died: with the whole batch
        return [error] * len(problems)
    return list(found)


def fit_native(
    candidate: Candidate,
    problem: AreaProblem,
    *,
    labels: np.ndarray,
    levels: tuple[np.ndarray, ...],
    level: float,
    seed: int,
    quantiles: bool,
    near: Any = None,
) -> Any:
    """One problem by the native engine, or the error that it raised.

    Parameters
    ----------
    candidate : Candidate
    problem : AreaProblem
    labels : numpy.ndarray
        Shape (m,), for messages.
    levels, level, seed
        As in `fit_in_r`.
    quantiles : bool
        Whether more than means are wanted of a posterior.
    near : optional
        The fit of a problem much like this one, for a search to start from.
    """
    seen = ~np.isnan(problem.estimate)
    try:
        check_variances(problem.variance[seen], labels=labels[seen])
        words: dict[str, Any] = {
            "estimate": problem.estimate,
            "variance": problem.variance,
            "covariates": problem.covariates,
            "level": level,
        }
        return _native(candidate, words, levels, seed, quantiles, near)
    except (InputError, FitError) as error:
        return error
    except (np.linalg.LinAlgError, ArithmeticError) as error:
        return FitError(f"the numbers cannot be computed with: {error}", code="numerical_failure")


def _native(
    candidate: Candidate,
    words: dict[str, Any],
    levels: tuple[np.ndarray, ...],
    seed: int,
    quantiles: bool,
    near: Any = None,
) -> Any:
    if candidate.smoothing == "fay_herriot" and candidate.method != "bayes":
        module: Any = importlib.import_module(engines_of("fay_herriot")[NATIVE][candidate.method])
        table = numbered_table(
            AreaProblem(words["estimate"], words["variance"], words["covariates"])
        )
        options = module.complete_options(dict(candidate.options))
        if hasattr(module, "finish_options"):
            rows = table.to_frame()
            options = module.finish_options(options, rows, table, candidate.method, None)
        spec = FayHerriotSpec(
            NATIVE, candidate.method, level=words["level"], seed=seed, options=options
        )
        return module.fit(table, spec)
    if candidate.smoothing == "fay_herriot":
        from pybridge.smoothing._bayes import fit_area_model_bayes

        return fit_area_model_bayes(quantiles=quantiles, **words)
    if candidate.method == "bayes":
        from pybridge.smoothing._taxonomy import fit_taxonomy_bayes

        words["start"] = getattr(near, "model_variances", None)
        words.update(levels=levels, seed=seed, quantiles=quantiles, means_only=not quantiles)
        return fit_taxonomy_bayes(**candidate.options, **words)
    from pybridge.smoothing._taxonomy_reml import fit_taxonomy_likelihood

    return fit_taxonomy_likelihood(levels=levels, method=candidate.method, **words)
