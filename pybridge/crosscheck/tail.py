"""A generalised Pareto fit by every engine, beside the exact maximum."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np

from pybridge._options import choose
from pybridge.crosscheck.agreement import AgreementTable
from pybridge.crosscheck.asking import why
from pybridge.crosscheck.comparer import Answers, Pairing, compare_producers
from pybridge.crosscheck.fits import EngineAnswer, FitCrosscheck
from pybridge.crosscheck.tolerances import (
    TAIL_GUARDED,
    TAIL_RAW,
    TAIL_SHORTFALL,
    TAIL_SHORTFALL_RAW,
    TAIL_STANDARD_ERROR,
    Tolerance,
)
from pybridge.errors import EngineError, EngineUnavailable, EngineWarning
from pybridge.tails.generalized_pareto import ENGINES, generalized_pareto
from pybridge.tails.records import ParetoFit

_CASE = "this tail"

TAIL: dict[str, dict[str, Tolerance]] = {
    "guarded": {
        "shape": TAIL_GUARDED,
        "scale": TAIL_GUARDED,
        "log-likelihood": TAIL_SHORTFALL,
        "standard errors": TAIL_STANDARD_ERROR,
    },
    "raw": {
        "shape": TAIL_RAW,
        "scale": TAIL_RAW,
        "log-likelihood": TAIL_SHORTFALL_RAW,
    },
}


def crosscheck_tail(
    fit: ParetoFit, *, engines: Sequence[str] = ("native", "evd", "ismev")
) -> FitCrosscheck:
    """Fit the excesses of ``fit`` again by every engine, guarded and (in R) raw.

    Parameters
    ----------
    fit : ParetoFit
    engines : sequence of str
        Those to ask; each is compared with the exact (native) maximum, asked or not.

    Returns
    -------
    FitCrosscheck
        An engine that is missing is in ``unavailable``.
    """
    found: dict[str, ParetoFit] = {}
    unavailable: dict[str, str] = {}
    for engine in dict.fromkeys(["native", *(choose("engines", e, ENGINES) for e in engines)]):
        if engine != "native" and fit.method != "ML":
            unavailable[engine] = f"it has no method {fit.method}"
            continue
        try:
            for mode in ("guarded",) if engine == "native" else ("guarded", "raw"):
                name = engine if engine == "native" else f"{engine} {mode}"
                found[name] = _fit(fit, engine, mode)
        except (EngineUnavailable, EngineError) as error:
            unavailable[engine] = why(error)
    answers = tuple(
        EngineAnswer(
            producer=name,
            status=other.status,
            numbers={"shape": other.shape, "scale": other.scale},
            criterion=other.log_likelihood,
            conditions=other.conditions,
        )
        for name, other in found.items()
    )
    return FitCrosscheck(
        subject=f"generalised Pareto fit ({fit.method}) of {fit.n_exceedances} excesses over "
        f"{fit.threshold:g}",
        answers=answers,
        table=_table(found),
        criterion_name="log-likelihood" if fit.method == "ML" else "",
        unavailable=unavailable,
    )


def _fit(fit: ParetoFit, engine: str, mode: str) -> ParetoFit:
    with warnings.catch_warnings():
        # What R says is kept in the fit's conditions.
        warnings.simplefilter("ignore", EngineWarning)
        return generalized_pareto(
            fit.excesses,
            threshold=0.0,
            engine=engine,
            method=fit.method,
            mode=mode,
            level=fit.level,
        )


def _table(found: dict[str, ParetoFit]) -> AgreementTable:
    answers, pairs = [], []
    for name, other in found.items():
        # A fit that R calls done and the record does not is compared: there it shows.
        if math.isfinite(other.shape) and (other.usable or name != "native"):
            values = {(_CASE, what): value for what, value in quantities(other).items()}
            answers.append(Answers(name, values))
        else:
            answers.append(Answers(name, {}, {_CASE: f"{name} is {other.status}"}))
        if name != "native":
            pairs.append(Pairing(name, "native", TAIL[name.split()[1]]))
    units = {(_CASE, name): value for name, value in units_of(found["native"]).items()}
    return compare_producers(answers, pairs, units=units)


def quantities(fit: ParetoFit) -> dict[str, np.ndarray]:
    """The numbers of a tail fit that engines are compared by, by name."""
    errors = np.array([fit.scale_standard_error, fit.shape_standard_error])
    found = {
        "shape": np.array(fit.shape),
        "scale": np.array(fit.scale),
        "log-likelihood": np.array(fit.log_likelihood),
    }
    return {**found, "standard errors": errors} if np.isfinite(errors).all() else found


def units_of(exact: ParetoFit) -> dict[str, float]:
    """Standard errors at the exact maximum; what they would be at -1/2 where there are none."""
    n = max(exact.n_exceedances, 1)
    least = max(1.0 + exact.shape, 0.5) / math.sqrt(n)
    errors = {
        "shape": exact.shape_standard_error,
        "scale": exact.scale_standard_error,
    }
    stand_in = {"shape": least, "scale": least * exact.scale}
    return {name: e if math.isfinite(e) else stand_in[name] for name, e in errors.items()}
