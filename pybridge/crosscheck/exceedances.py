"""A fit of evd's, ismev's or evir's own functions by every engine that can do it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Union

import numpy as np
import pandas as pd

from pybridge.crosscheck.agreement import AgreementTable
from pybridge.crosscheck.asking import why
from pybridge.crosscheck.comparer import Answers, Pairing, compare_producers
from pybridge.crosscheck.fits import EngineAnswer, FitCrosscheck
from pybridge.crosscheck.tail import TAIL, crosscheck_tail
from pybridge.engines import evd, ismev
from pybridge.engines._evd_record import EvdFit
from pybridge.engines._evir_gpd import EvirFit
from pybridge.engines._ismev_record import IsmevFit
from pybridge.engines._tail_record import TailFit
from pybridge.engines._tail_likelihood import LINKS
from pybridge.errors import EngineError, EngineUnavailable, EngineWarning, InputError
from pybridge.tails.generalized_pareto import generalized_pareto

ExceedanceFit = Union[EvdFit, IsmevFit, EvirFit]
_CASE = "these exceedances"
_TOLERANCES = {
    mode: {"parameters": known["shape"], "log-likelihood": known["log-likelihood"]}
    for mode, known in TAIL.items()
}


def crosscheck_exceedances(fit: TailFit) -> FitCrosscheck:
    """The same model by every engine that has it, guarded and raw, beside the exact optimum.

    Parameters
    ----------
    fit : EvdFit, IsmevFit or EvirFit

    Returns
    -------
    FitCrosscheck
        A generalised Pareto fit without covariates and held parameters is compared over evd,
        ismev and the native engine; a point process over evd and ismev; others over the modes of
        their own engine.

    Raises
    ------
    InputError
        For links whose optimum is not known, and for anything else than such a fit.
    """
    if not isinstance(fit, (EvdFit, IsmevFit, EvirFit)):
        raise InputError(
            "only fits of evd, ismev and evir are compared here",
            code="not_a_fit",
            field="fit",
            expected="EvdFit, IsmevFit or EvirFit",
            got=type(fit).__name__,
        )
    excesses = _plain_excesses(fit)
    if excesses is not None or isinstance(fit, EvirFit):
        native = generalized_pareto(
            excesses, threshold=0.0, engine="native", level=fit.request.level
        )
        return crosscheck_tail(native)
    found, unavailable = _answers(fit)
    exact = _exact(fit, found)
    return FitCrosscheck(
        subject=f"{fit.request.summary()}: {fit.n_exceedances} exceedances",
        answers=tuple(
            EngineAnswer(
                producer=name,
                status=one.status,
                numbers=_numbers(one),
                criterion=one.log_likelihood,
                conditions=one.conditions,
            )
            for name, one in found.items()
        ),
        table=_table(found, exact),
        criterion_name="log-likelihood",
        unavailable=unavailable,
    )


def _plain_excesses(fit: ExceedanceFit) -> np.ndarray | None:
    """The excesses of a generalised Pareto fit that every engine has; None for other models."""
    if isinstance(fit, EvirFit):
        values = fit.inputs["data"]
        return np.asarray(values[values > fit.threshold] - fit.threshold)
    if isinstance(fit, IsmevFit):
        if fit.request.function != "gpd.fit" or fit.with_covariates:
            return None
        values = fit.inputs["xdat"]
        return np.asarray(values[values > fit.inputs["threshold"]] - fit.inputs["threshold"])
    held = len(fit.param) != len(fit.names)
    if held or fit.request.arguments.get("model") == "pp" or "exceedances" not in fit.value:
        return None
    return np.asarray(fit.value["exceedances"]) - fit.inputs["threshold"]


def _answers(fit: EvdFit | IsmevFit) -> tuple[dict[str, EvdFit | IsmevFit], dict[str, str]]:
    found: dict[str, EvdFit | IsmevFit] = {}
    unavailable: dict[str, str] = {}
    for engine, ask in _engines(fit).items():
        try:
            for mode in ("guarded", "raw"):
                with warnings.catch_warnings():
                    # What R says is kept in the record's conditions.
                    warnings.simplefilter("ignore", EngineWarning)
                    found[f"{engine} {mode}"] = ask(mode)
        except (EngineUnavailable, EngineError) as error:
            unavailable[engine] = why(error)
    return found, unavailable


def _engines(fit: EvdFit | IsmevFit) -> dict[str, Callable[[str], Any]]:
    """Who can fit the model, each as a function of the mode."""
    level = fit.request.level
    if isinstance(fit, EvdFit):
        x, words = fit.inputs["x"], _words_of_fpot(fit.request.arguments)
        own = {"evd": lambda mode: evd.fpot(x, mode=mode, level=level, **words)}
        limit, npp = fit.inputs["threshold"], words.get("npp", len(x))
        if words.get("model") != "pp" or words.get("cmax") or len(fit.names) < 3:
            return own
        other = {"ismev": lambda mode: ismev.pp_fit(x, limit, npy=npp, mode=mode, level=level)}
        return {**own, **other}
    x, limit = fit.inputs["xdat"], fit.inputs["threshold"]
    if fit.request.function == "pp.fit" and not fit.with_covariates:
        npy = fit.request.arguments["npy"]
        return {
            "ismev": lambda mode: ismev.pp_fit(x, limit, npy=npy, mode=mode, level=level),
            "evd": lambda mode: evd.fpot(x, limit, model="pp", npp=npy, mode=mode, level=level),
        }
    known = all(item.link in LINKS for item in fit.blocks)
    if not known or not (fit.exact or fit.request.raw) or fit.request.function != "gpd.fit":
        raise InputError(
            "there is no exact optimum to hold the engines against",
            code="no_optimum",
            field="siglink, shlink",
            expected="a gpd.fit with the links identity and exp",
            got=fit.request.summary(),
        )
    linear = _linear(fit)
    # Raw, ismev has no fit from its own start where the link is exp: it needs the user's.
    starts = {n: v for n, v in fit.request.arguments.items() if n in ("siginit", "shinit")}

    def ask(mode: str) -> IsmevFit:
        own = starts if mode == "raw" else {}
        return ismev.gpd_fit(x, limit, mode=mode, level=level, **linear, **own)

    return {"ismev": ask}


def _words_of_fpot(arguments: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("threshold", "model", "npp", "cmax", "r", "ulow", "rlow", "mper")
    held = ("loc", "scale", "shape", "rlevel")
    return {name: arguments[name] for name in (*kept, *held) if name in arguments}


def _linear(fit: IsmevFit) -> dict[str, Any]:
    """Covariates as they were before they were standardised, and links."""
    covariates = fit.inputs["covariates"]
    words: dict[str, Any] = {}
    if covariates is not None:
        table = pd.DataFrame()
        for item in fit.blocks:
            places = zip(item.labels, item.columns, item.centre, item.spread)
            for name, column, centre, spread in places:
                table[name] = covariates[:, column - 1] * spread + centre
        words["ydat"] = table
    for item in fit.blocks:
        words[f"{item.name}link"] = item.link
        if item.columns:
            words[f"{item.name}l"] = list(item.labels)
    return words


def _numbers(fit: EvdFit | IsmevFit) -> dict[str, float]:
    """The parameters, by names that evd and ismev share."""
    if isinstance(fit, IsmevFit):
        return dict(zip(fit.terms, fit.estimate.tolist()))
    names = {"loc": "location"}
    order = sorted(fit.param, key=("loc", "rlevel", "scale", "shape").index)
    return {names.get(name, name): fit.param[name] for name in order}


def _exact(
    fit: EvdFit | IsmevFit, found: Mapping[str, EvdFit | IsmevFit]
) -> tuple[dict[str, float], float, dict[str, float]]:
    """The optimum, its log-likelihood, and standard errors, of the first guarded answer."""
    for one in [*found.values(), fit]:
        numbers = _numbers(one)
        if "shortfall" not in one.exact or not numbers:
            continue
        known = {name.replace("loc", "location"): v for name, v in one.exact.items()}
        if isinstance(one, IsmevFit):
            known = dict(one.exact)
            errors = dict(zip(one.terms, one.standard_errors.tolist()))
        else:
            errors = {
                {"loc": "location"}.get(name, name): e for name, e in one.standard_errors.items()
            }
        best = {name: known[name] for name in numbers}
        return best, float(one.exact["log_likelihood"]), errors
    return {}, math.nan, {}


def _table(
    found: Mapping[str, EvdFit | IsmevFit],
    exact: tuple[dict[str, float], float, dict[str, float]],
) -> AgreementTable:
    best, top, errors = exact
    values = {(_CASE, "parameters"): np.array(list(best.values()))}
    values[_CASE, "log-likelihood"] = np.array(top)
    answers, pairs = [Answers("exact", values if best else {})], []
    for name, one in found.items():
        numbers = _numbers(one)
        if best and numbers and np.isfinite(list(numbers.values())).all():
            theirs = {(_CASE, "parameters"): np.array([numbers[word] for word in best])}
            theirs[_CASE, "log-likelihood"] = np.array(one.log_likelihood)
            answers.append(Answers(name, theirs))
        else:
            answers.append(Answers(name, {}, {_CASE: f"{name} is {one.status}"}))
        pairs.append(Pairing(name, "exact", _TOLERANCES[name.split()[1]]))
    units = [errors.get(name, math.nan) for name in best]
    stand_in = [e if math.isfinite(e) else 0.1 * abs(best[n]) for n, e in zip(best, units)]
    return compare_producers(
        answers,
        pairs,
        units={(_CASE, "parameters"): np.array(stand_in)},
        keys={_CASE: tuple(best)},
    )
