"""The public entry: a generalised Pareto fit by evd, ismev or the native engine."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np

from pybridge._checks import number_vector
from pybridge._options import MODES, check_level, choose, real_number
from pybridge.errors import InputError
from pybridge.tails._maximum import profile_maximum
from pybridge.tails._native import METHODS, NO_COVARIANCE, EngineAnswer, fit_excesses
from pybridge.tails._provenance import provenance
from pybridge.tails._status import FEWEST, is_tied, largest_tie, tail_status
from pybridge.tails.records import ParetoFit
from pybridge.tails.thresholds import Exceedances, find_exceedances
from pybridge.tails.transforms import Transform, as_transform

ENGINES = ("evd", "ismev", "native")


def generalized_pareto(
    scores: Any,
    *,
    threshold: float | None = None,
    quantile: float | None = None,
    n_exceedances: int | None = None,
    engine: str = "evd",
    method: str = "ML",
    transform: Transform | str | None = None,
    level: float = 0.95,
    mode: str = "guarded",
    penalty: tuple[float, float] = (1.0, 1.0),
    **engine_options: Any,
) -> ParetoFit:
    """Fit a generalised Pareto distribution to the scores above a threshold.

    Parameters
    ----------
    scores : sequence of float, (n,)
        Severities: the larger, the worse. Finite.
    threshold, quantile, n_exceedances : float, float, int
        Exactly one: the threshold itself, the sample quantile it is (type 7), or the number of
        scores above it. Only scores strictly above the threshold are exceedances.
    engine : {"evd", "ismev", "native"}
        Who computes. Never changed silently.
    method : {"ML", "PWM", "penalised"}
        Maximum likelihood; with the native engine also probability-weighted moments (Hosking and
        Wallis, 1987) and the penalised likelihood of Coles and Dixon (1999).
    transform : Transform or {"none", "logit", "log", "complementary_log"}, optional
        Applied first; the threshold is then on the transformed scale.
    level : float
        Confidence level of the intervals.
    mode : {"guarded", "raw"}
        ``guarded`` hands R the excesses divided by their mean (its optimisers depend on the
        units) with tight tolerances and compares the answer with the exact maximum; ``raw`` calls
        R's function on the scores as it is.
    penalty : (float, float)
        Strength and power of the penalty of method "penalised".
    **engine_options
        Arguments of ``evd::fpot`` or ``ismev::gpd.fit``, by R's names.

    Returns
    -------
    ParetoFit
        With a status; a fit that failed has NaN and says why, it does not raise.

    Raises
    ------
    InputError
        Scores that are not finite numbers, a threshold without exceedances, unknown options.
    EngineUnavailable
        Without R or the package.

    References
    ----------
    Pickands (1975), Annals of Statistics 3; Davison and Smith (1990), JRSS B 52; Grimshaw (1993),
    Technometrics 35; Smith (1985), Biometrika 72 (shapes of at most -1/2).
    """
    choose("engine", engine, ENGINES)
    choose("method", method, METHODS)
    choose("mode", mode, MODES)
    _check_method(engine, method, mode, engine_options)
    level = check_level(level)
    penalty = (real_number("penalty", penalty[0]), real_number("penalty", penalty[1]))
    change = as_transform(transform)
    values = change.apply(number_vector("scores", scores))
    tail = find_exceedances(
        values, threshold=threshold, quantile=quantile, n_exceedances=n_exceedances
    )
    if engine == "native":
        answer = _native_answer(tail.excesses, method, penalty)
    elif mode == "guarded" and tail.excesses.size < FEWEST:
        answer = NO_ANSWER  # R would report success on any two numbers
    else:
        adapter = importlib.import_module(f"pybridge.tails._{engine}")
        answer = adapter.fit(scores=values, tail=tail, mode=mode, options=engine_options)
    return make_fit(
        tail,
        answer,
        engine=engine,
        method=method,
        mode=mode,
        level=level,
        transform=change,
        options={**engine_options, **({"penalty": penalty} if method == "penalised" else {})},
    )


NO_ANSWER = EngineAnswer(math.nan, math.nan, NO_COVARIANCE, math.nan, True, "not called")


def _native_answer(excesses: np.ndarray, method: str, penalty: tuple[float, float]) -> EngineAnswer:
    if excesses.size < FEWEST:
        return NO_ANSWER
    return fit_excesses(excesses=excesses, method=method, penalty=penalty)


def make_fit(
    tail: Exceedances,
    answer: EngineAnswer,
    *,
    engine: str,
    method: str,
    mode: str,
    level: float,
    transform: Transform,
    options: dict[str, Any],
) -> ParetoFit:
    """The record, with its status, from an engine's answer and the excesses it saw."""
    n = tail.excesses.size
    share, value = largest_tie(tail.excesses)
    tied = is_tied(tail.excesses, share)
    if engine == "native" and method == "ML" and n >= FEWEST:
        exact = (answer.shape, answer.scale, answer.log_likelihood)
        boundary = answer.engine_status == "boundary"
    else:
        best = profile_maximum(excesses=tail.excesses)
        exact, boundary = (best.shape, best.scale, best.log_likelihood), best.at_boundary
    covariance = np.asarray(answer.covariance, dtype=np.float64)
    estimates = np.array([answer.scale, answer.shape])
    with np.errstate(invalid="ignore"):
        errors = np.sqrt(np.diag(covariance))
    gap = exact[2] - answer.log_likelihood
    status = tail_status(
        n=n,
        tied=tied,
        shape=answer.shape,
        boundary=boundary if method == "ML" else not math.isfinite(answer.log_likelihood),
        converged=answer.converged,
        gap=gap if method == "ML" else 0.0,
        errors=errors,
        estimates=estimates,
    )
    if status not in ("converged", "weak_identification"):
        covariance = NO_COVARIANCE
    said = [
        *answer.said,
        *_findings(tail, status, share, value, tied, gap if method == "ML" else 0),
    ]
    return ParetoFit(
        shape=answer.shape,
        scale=answer.scale,
        covariance=covariance,
        threshold=tail.threshold,
        threshold_rule=tail.rule,
        threshold_asked=tail.asked,
        n_scores=tail.n_scores,
        n_exceedances=n,
        exceedance_rate=tail.exceedance_rate,
        log_likelihood=answer.log_likelihood,
        status=status,
        engine=engine,
        method=method,
        mode=mode,
        engine_status=answer.engine_status,
        level=level,
        transform=transform,
        excesses=tail.excesses,
        exact_shape=exact[0],
        exact_scale=exact[1],
        exact_log_likelihood=exact[2],
        conditions=tuple(said),
        provenance=provenance(
            engine=engine, method=method, mode=mode, versions=answer.versions, options=options
        ),
    )


def _check_method(engine: str, method: str, mode: str, options: dict[str, Any]) -> None:
    if engine != "native" and method != "ML":
        raise InputError(
            f"{engine} has no method {method}",
            code="unsupported_combination",
            field="method",
            expected="ML (PWM and penalised are native)",
            got=method,
            hint="Use engine='native'.",
        )
    if engine == "native" and options:
        raise InputError(
            "the native engine takes no such option",
            code="unknown_option",
            field=sorted(options)[0],
            expected="penalty, for method 'penalised'",
            got=", ".join(sorted(options)),
        )
    if engine == "native" and mode == "raw":
        raise InputError(
            "raw mode is a plain call of R's function",
            code="unsupported_combination",
            field="mode",
            expected="guarded, for the native engine",
            got="raw",
        )


def _findings(
    tail: Exceedances, status: str, share: float, value: float, tied: bool, gap: float
) -> list[str]:
    """What was found about the data and the fit, one sentence each."""
    found = []
    n = tail.excesses.size
    if tail.rule == "count" and n != int(tail.asked):
        found.append(f"ties at the threshold leave {n} exceedances, not {int(tail.asked)}")
    if tail.n_at_threshold > 1:
        found.append(f"{tail.n_at_threshold} scores equal the threshold and are not exceedances")
    if tied:
        found.append(
            f"{share:.0%} of the exceedances share the value {value + tail.threshold:g}: "
            "no density fits such a sample"
        )
    if status == "too_few":
        found.append(f"{n} exceedances are fewer than the {FEWEST} that two parameters need")
    elif status == "infeasible":
        found.append("the likelihood has no maximum at shapes above -1: there is no estimate")
    elif status == "nonregular":
        found.append("no standard errors: the usual asymptotics fail at shapes of at most -1/2")
    elif status == "not_converged":
        found.append(f"the log-likelihood lies {gap:.3g} below its exact maximum")
    return found
