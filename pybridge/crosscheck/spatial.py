"""A Fay-Herriot fit with spatially correlated effects, beside the highest point of its likelihood.

R's sae and emdi share one algorithm here, so that they agree even where both are wrong: what
decides is the likelihood, climbed from a grid by pybridge itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from pybridge.crosscheck.agreement import AgreementTable
from pybridge.crosscheck.asking import ask_all
from pybridge.crosscheck.comparer import Answers, Pairing, compare_producers
from pybridge.crosscheck.fits import EngineAnswer, FitCrosscheck
from pybridge.crosscheck.tolerances import SPATIAL, SPATIAL_SHORTFALL
from pybridge.engines._sae_likelihood import AreaData, Proximity, proximity, spatial_likelihoods
from pybridge.engines._sae_optimum import spatial_optimum
from pybridge.smoothing._area_fit import AreaFit
from pybridge.smoothing.fay_herriot import CORRELATED
from pybridge.smoothing.fay_herriot_fit import FayHerriotFit

_CASE = "this fit"
# Each point of the search decomposes a matrix of domains by domains.
_MOST_DOMAINS = 600
_STEP = 1e-3


def crosscheck_spatial(fit: FayHerriotFit) -> FitCrosscheck:
    """As `crosscheck_area`, for a fit with ``correlation="spatial"``."""
    adapters = [adapter for name, adapter in CORRELATED if name == fit.spec.correlation]
    found, unavailable = ask_all(adapters, fit.area, fit.spec)
    data = AreaData(fit.area.estimate, fit.area.variance, fit.area.covariates)
    points = {
        name: (float(answer.model_variance), float(answer.correlation))
        for name, answer in found.items()
        if answer.correlation is not None and math.isfinite(answer.correlation)
    }
    errors = (math.nan, math.nan)
    heights = dict.fromkeys(found, math.nan)
    statuses = {name: answer.status for name, answer in found.items()}
    method = fit.spec.method.upper()
    missing = _without_optimum(fit)
    if missing is None:
        w = proximity(np.asarray(fit.spec.proximity))
        best = spatial_optimum(data, w, method).theta
        points["exact"], statuses["exact"] = (float(best[0]), float(best[1])), "converged"
        heights.update({n: _height(data, w, p, method) for n, p in points.items()})
        errors = _errors(data, w, points["exact"], method)
    else:
        unavailable["the exact optimum"] = missing
    answers = [
        EngineAnswer(
            producer=name,
            status=statuses[name],
            numbers=dict(zip(("model_variance", "correlation"), points.get(name, (math.nan,) * 2))),
            criterion=heights.get(name, math.nan),
            conditions=found[name].conditions if name in found else (),
        )
        for name in statuses
    ]
    return FitCrosscheck(
        subject=f"Fay-Herriot model {fit.area.formula}, method {fit.spec.method}, spatial "
        f"correlation, {len(data.y)} domains",
        answers=tuple(answers),
        table=_table(points, heights, errors, found),
        criterion_name="log-likelihood" if method == "ML" else "restricted log-likelihood",
        unavailable=unavailable,
    )


def _without_optimum(fit: FayHerriotFit) -> str | None:
    """Why the likelihood is not climbed; None where it is."""
    if fit.spec.method.upper() not in ("REML", "ML"):
        return f"method {fit.spec.method} maximises no likelihood"
    if not fit.area.sampled.all():
        return "it is looked for where every domain has a direct estimate"
    if len(fit.area.domains) > _MOST_DOMAINS:
        return f"it is looked for up to {_MOST_DOMAINS} domains"
    return None


def _height(data: AreaData, w: Proximity, point: tuple[float, float], method: str) -> float:
    """The likelihood that the method maximises; NaN where it does not exist."""
    try:
        return float(spatial_likelihoods(data, w, *point).of(method))
    except np.linalg.LinAlgError:
        return math.nan


def _errors(
    data: AreaData, w: Proximity, point: tuple[float, float], method: str
) -> tuple[float, float]:
    """Standard errors of (σ², ρ) from the curvature at an inner maximum; NaN elsewhere."""
    variance, rho = point
    steps = (_STEP * variance, _STEP)
    if variance <= 0 or abs(rho) + _STEP >= 1:
        return math.nan, math.nan

    def at(i: int, j: int) -> float:
        return _height(data, w, (variance + i * steps[0], rho + j * steps[1]), method)

    mixed = (at(1, 1) - at(1, -1) - at(-1, 1) + at(-1, -1)) / 4
    both = [at(1, 0) - 2 * at(0, 0) + at(-1, 0), at(0, 1) - 2 * at(0, 0) + at(0, -1)]
    information = -np.array([[both[0], mixed], [mixed, both[1]]]) / np.outer(steps, steps)
    if not np.isfinite(information).all() or np.linalg.eigvalsh(information)[0] <= 0:
        return math.nan, math.nan
    covariance = np.linalg.inv(information)
    return math.sqrt(covariance[0, 0]), math.sqrt(covariance[1, 1])


def _table(
    points: Mapping[str, tuple[float, float]],
    heights: Mapping[str, float],
    errors: tuple[float, float],
    found: Mapping[str, AreaFit],
) -> AgreementTable:
    if "exact" not in points:
        return AgreementTable(())
    inner = all(map(math.isfinite, errors))
    answers = []
    for name in [*found, "exact"]:
        if name not in points:
            answers.append(Answers(name, {}, {_CASE: f"{name} is {found[name].status}"}))
            continue
        values = {(_CASE, "maximum attained"): heights[name]}
        if inner:
            values[_CASE, "model variance"], values[_CASE, "correlation"] = points[name]
        answers.append(Answers(name, values))
    units = {(_CASE, "model variance"): errors[0], (_CASE, "correlation"): errors[1]}
    tolerances = {"maximum attained": SPATIAL_SHORTFALL}
    if inner:
        tolerances.update({"model variance": SPATIAL, "correlation": SPATIAL})
    pairs = [Pairing(name, "exact", tolerances) for name in found]
    return compare_producers(answers, pairs, units=units)
