"""The public entry: a generalised Pareto fit by evd, ismev or the native engine."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pybridge._checks import number_vector
from pybridge._options import MODES, check_level, choose, real_number
from pybridge.errors import InputError
from pybridge.tails._assemble import make_fit
from pybridge.tails._native import METHODS, NO_COVARIANCE, EngineAnswer, fit_excesses
from pybridge.tails._status import FEWEST
from pybridge.tails.records import ParetoFit
from pybridge.tails.thresholds import Exceedances, find_exceedances
from pybridge.tails.transforms import Transform, as_transform

ENGINES = ("evd", "ismev", "native")
NO_ANSWER = EngineAnswer(math.nan, math.nan, NO_COVARIANCE, math.nan, True, "not called")
# Beyond it the squares of scales overflow.
_MOST = 1e150


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
    words = {"threshold": threshold, "quantile": quantile, "n_exceedances": n_exceedances}
    (fit,) = fit_many(
        [(scores, words)],
        engine=engine,
        method=method,
        transform=transform,
        level=level,
        mode=mode,
        penalty=penalty,
        options=engine_options,
    )
    return fit


def fit_many(
    tasks: Sequence[tuple[Any, Mapping[str, Any]]],
    *,
    engine: str,
    method: str = "ML",
    transform: Transform | str | None = None,
    level: float = 0.95,
    mode: str = "guarded",
    penalty: tuple[float, float] = (1.0, 1.0),
    options: Mapping[str, Any],
) -> list[ParetoFit]:
    """Fits of several tails, in one round trip where R computes.

    Parameters
    ----------
    tasks : sequence of (scores, threshold)
        The threshold as keyword arguments of :func:`find_exceedances`; with ``allow_none`` a tail
        without any exceedance has the status "too_few". Scores that are the same object are
        checked and transformed once.
    options : mapping
        Engine options; everything else as in :func:`generalized_pareto`.
    """
    choose("engine", engine, ENGINES)
    choose("method", method, METHODS)
    choose("mode", mode, MODES)
    _check_method(engine, method, mode, options)
    level = check_level(level)
    penalty = _pair(penalty)
    change = as_transform(transform)
    ready: dict[int, np.ndarray] = {}
    tails, samples = [], []
    for scores, words in tasks:
        if id(scores) not in ready:
            ready[id(scores)] = _squarable(change.apply(number_vector("scores", scores)))
        samples.append(ready[id(scores)])
        tails.append(find_exceedances(samples[-1], **words))
    if engine == "native":
        answers = [_native_answer(tail.excesses, method, penalty) for tail in tails]
    else:
        answers = _r_answers(engine, samples, tails, mode, options)
    kept = {**options, **({"penalty": penalty} if method == "penalised" else {})}
    return [
        make_fit(
            tail,
            answer,
            engine=engine,
            method=method,
            mode=mode,
            level=level,
            transform=change,
            options=kept,
        )
        for tail, answer in zip(tails, answers)
    ]


def _r_answers(
    engine: str,
    samples: Sequence[np.ndarray],
    tails: Sequence[Exceedances],
    mode: str,
    options: Mapping[str, Any],
) -> list[EngineAnswer]:
    # In guarded mode R is not asked about fewer than five numbers: it would report success.
    asked = [k for k, tail in enumerate(tails) if mode == "raw" or tail.excesses.size >= FEWEST]
    adapter = importlib.import_module(f"pybridge.tails._{engine}")
    found = adapter.answers(
        [samples[k] for k in asked], [tails[k] for k in asked], mode=mode, options=options
    )
    out = [NO_ANSWER] * len(tails)
    for k, answer in zip(asked, found):
        out[k] = answer
    return out


def _pair(penalty: Any) -> tuple[float, float]:
    if isinstance(penalty, (tuple, list, np.ndarray)) and len(penalty) == 2:
        return real_number("penalty", penalty[0]), real_number("penalty", penalty[1])
    raise InputError(
        "penalty must be two numbers",
        code="not_a_pair",
        field="penalty",
        expected="(strength, power), for example (1.0, 1.0)",
        got=penalty,
    )


def _squarable(scores: np.ndarray) -> np.ndarray:
    """The scores (n,), refused where the square of a scale would overflow or vanish."""
    low, high = float(scores.min()), float(scores.max())
    if max(-low, high) < _MOST and not 0 < high - low < 1 / _MOST:
        return scores
    raise InputError(
        "the scores are out of the range that can be computed with",
        code="out_of_range",
        field="scores",
        expected=f"less than {_MOST:g} in size, and not closer together than {1 / _MOST:g}",
        got=f"{low:g} to {high:g}",
        hint="Choose another unit of measurement.",
    )


def _native_answer(excesses: np.ndarray, method: str, penalty: tuple[float, float]) -> EngineAnswer:
    if excesses.size < FEWEST:
        return NO_ANSWER
    return fit_excesses(excesses=excesses, method=method, penalty=penalty)


def _check_method(engine: str, method: str, mode: str, options: Mapping[str, Any]) -> None:
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
