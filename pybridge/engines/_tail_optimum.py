"""The exact optimum beside evd's and ismev's answers: scanned, then climbed by Newton's method."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Union

import numpy as np

from pybridge.engines._tail_likelihood import (
    Function,
    Peak,
    climb,
    plain_excesses,
    point_process,
    regression,
)

Vector = Union[Sequence[float], np.ndarray]

# Shapes below -1 have an unbounded likelihood; the search stays above.
LEAST_SHAPE = -1.0
_SCANNED = 4000
_NODES = 400


class Model(NamedTuple):
    """What is maximised, in the excesses' own units.

    Parameters
    ----------
    kind : "gpd", "rlevel" (gpd by the level exceeded once in ``rate`` exceedances) or "pp"
    excesses : (n,) over the threshold, positive
    threshold : float
    periods : for pp, how many periods were observed
    rate : for rlevel, the number of exceedances (or clusters) to the level's return period
    """

    kind: str
    excesses: np.ndarray
    threshold: float = 0.0
    periods: float = 1.0
    rate: float = math.inf

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names, in evd's order."""
        return {
            "gpd": ("scale", "shape"),
            "rlevel": ("rlevel", "shape"),
            "pp": ("loc", "scale", "shape"),
        }[self.kind]

    def function(self) -> Function:
        """Value, gradient and Hessian in these parameters (of rlevel: of scale and shape)."""
        if self.kind == "pp":
            return point_process(
                exceedances=self.threshold + self.excesses,
                threshold=self.threshold,
                periods=self.periods,
            )
        return plain_excesses(self.excesses)

    def to_internal(self, theta: Vector) -> np.ndarray:
        """The parameters that `function` takes."""
        found = np.array(theta, dtype=np.float64)
        if self.kind == "rlevel":
            found[0] = (found[0] - self.threshold) / gain(found[1], self.rate)
        return found

    def log_likelihood(self, theta: Vector) -> float:
        """At these parameters; -inf where they are impossible."""
        if not np.all(np.isfinite(theta)):
            return math.nan
        return self.function()(self.to_internal(theta))[0]


def gain(shape: float, rate: float) -> float:
    """The excess exceeded once in ``rate`` exceedances, over the scale: (rate^shape - 1)/shape."""
    log = math.log(rate) if math.isfinite(rate) else math.inf
    if math.isinf(log):
        return -1.0 / shape if shape < 0 else math.inf
    if abs(shape * log) < 1e-8:
        return log * (1.0 + 0.5 * shape * log)
    return math.expm1(min(shape * log, 700.0)) / shape


def pareto_peak(excesses: np.ndarray) -> Peak:
    """The peak of the likelihood of (n,) positive excesses: (scale, shape).

    Not settled, with shape -1, where no peak above that shape beats the border's value.
    """
    unit, n = math.ldexp(1.0, math.frexp(float(excesses.max()))[1]), excesses.size
    scaled = excesses / unit  # by a power of two: nothing is rounded, nothing overflows
    largest = float(scaled.max())
    function = plain_excesses(scaled)
    best = Peak(np.array([largest, LEAST_SHAPE]), -n * math.log(largest), False)
    for start in _scan(scaled / largest):
        peak = climb(function, start * np.array([largest, 1.0]))
        if peak.settled and peak.theta[1] > LEAST_SHAPE and peak.value >= best.value:
            best = peak
    theta = best.theta * np.array([unit, 1.0])
    return Peak(theta, best.value - n * math.log(unit), best.settled)


def _scan(ratio: np.ndarray) -> list[np.ndarray]:
    """Starts (scale, shape) near each peak of the profile in shape/scale, of x / max x."""
    if ratio.size > _SCANNED:
        # Means of neighbours in order; only where the peaks are is asked for.
        ordered = np.sort(ratio)
        edges = np.linspace(0, ratio.size - 64, _SCANNED + 1).astype(np.int64)
        middle = np.add.reduceat(ordered[: edges[-1]], edges[:-1]) / np.diff(edges)
        weights = np.concatenate([np.diff(edges), np.ones(64)]) / ratio.size
        ratio = np.concatenate([middle, ordered[-64:]])
    else:
        weights = np.full(ratio.size, 1.0 / ratio.size)
    least = max(float(ratio.min()), 1e-12)
    upper = min(max(math.log1p(2.0 / least**2), 3.0), 60.0)
    v = np.linspace(-(math.log(ratio.size) + 6.0), upper, _NODES)
    v[np.abs(v) < 1e-4] = 1e-4
    theta = np.expm1(v)
    shape = weights @ np.log1p(np.multiply.outer(ratio, theta))
    profile = -np.log(shape / theta) - shape
    inside = np.flatnonzero((profile[1:-1] > profile[:-2]) & (profile[1:-1] >= profile[2:])) + 1
    return [
        np.array([shape[k] / theta[k], shape[k]]) for k in inside if shape[k] > LEAST_SHAPE - 0.1
    ]


def optimum(model: Model, fixed: Mapping[str, float], near: Vector | None = None) -> Peak:
    """The peak of a model, some of its parameters held.

    Parameters
    ----------
    fixed : parameters that do not move
    near : the engine's answer, one more place to start from

    Returns
    -------
    Peak
        In the model's own parameters; not settled where there is no peak above shape -1.
    """
    names = model.parameters
    whole = pareto_peak(model.excesses)
    if not fixed:
        theta = _from_pareto(model, whole.theta)
        value = model.log_likelihood(theta) if whole.settled else whole.value
        return Peak(theta, value, whole.settled)
    if model.kind == "rlevel":
        return _rlevel_held(model, fixed, whole)
    held = np.array([fixed.get(name, math.nan) for name in names])
    free = np.isnan(held)
    function = model.function()
    peaks = []
    for start in _starts(model, whole.theta, near):
        theta = np.where(free, start, held)
        if math.isfinite(function(theta)[0]):
            peaks.append(climb(function, theta, free=free))
    good = [peak for peak in peaks if peak.settled and peak.theta[-1] > LEAST_SHAPE]
    nothing = Peak(np.where(free, math.nan, held), math.nan, False)
    return max(good, key=lambda peak: peak.value, default=nothing)


def _from_pareto(model: Model, theta: np.ndarray) -> np.ndarray:
    """The same fit in the model's parameters; a process has as many exceedances as there are."""
    scale, shape = theta.tolist()
    if model.kind == "rlevel":
        return np.array([model.threshold + scale * gain(shape, model.rate), shape])
    if model.kind == "pp":
        log_rate = math.log(model.excesses.size / model.periods)
        # scale - sigma = sigma (rate^shape - 1), and loc is that over the shape from the threshold.
        moved = scale * (gain(shape, math.exp(log_rate)) if log_rate else 0.0)
        return np.array([model.threshold + moved, scale + shape * moved, shape])
    return np.array([scale, shape])


def _starts(model: Model, whole: np.ndarray, near: Vector | None) -> list[np.ndarray]:
    largest = float(model.excesses.max())
    mean = float(model.excesses.mean())
    found = [] if near is None else [np.array(near, dtype=np.float64)]
    bases = [whole] if whole[1] > LEAST_SHAPE else []
    bases += [np.array([mean, 1e-3]), np.array([1.05 * largest, -0.5])]
    bases += [np.array([3.0 * mean, 0.5]), np.array([3.0 * largest, -0.9])]
    return found + [_from_pareto(model, base) for base in bases]


def _rlevel_held(model: Model, fixed: Mapping[str, float], whole: Peak) -> Peak:
    if "shape" in fixed:
        plain = model._replace(kind="gpd")
        peak = optimum(plain, {"shape": fixed["shape"]})
        return Peak(_from_pareto(model, peak.theta), peak.value, peak.settled)
    width = 2.0 / math.sqrt(model.excesses.size)
    shape, value = best_shape(model, fixed["rlevel"], float(whole.theta[1]), width)
    return Peak(np.array([fixed["rlevel"], shape]), value, math.isfinite(value))


def best_shape(model: Model, rlevel: float, start: float, width: float) -> tuple[float, float]:
    """The best shape with this return level, and its log-likelihood; searched from ``start``."""
    from scipy.optimize import minimize_scalar

    function = plain_excesses(model.excesses)

    def loss(shape: float) -> float:
        scale = (rlevel - model.threshold) / gain(shape, model.rate)
        value = function(np.array([scale, shape]))[0]
        return -value if math.isfinite(value) else 1e300

    best = (math.nan, math.inf)
    grid = np.unique(np.concatenate([start + width * np.linspace(-4, 4, 33), [-0.5, -0.1, 0.5]]))
    grid = grid[grid > LEAST_SHAPE]
    losses = np.array([loss(shape) for shape in grid])
    k = int(losses.argmin())
    if losses[k] < 1e300:
        low = grid[k - 1] if k else LEAST_SHAPE + 1e-9
        high = grid[k + 1] if k + 1 < grid.size else grid[k] + 8.0 * width
        found = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-9})
        best = (float(found.x), float(found.fun))
    return best[0], -best[1]


def regression_peak(
    *,
    excesses: np.ndarray,
    scale_design: np.ndarray,
    shape_design: np.ndarray,
    links: tuple,
    near: Vector | None = None,
) -> Peak:
    """The peak with covariates: p parameters of the scale, then q of the shape."""
    function = regression(
        excesses=excesses, scale_design=scale_design, shape_design=shape_design, links=links
    )
    p, q = scale_design.shape[1], shape_design.shape[1]
    whole = pareto_peak(excesses).theta
    mean = float(excesses.mean())
    starts = [] if near is None else [np.array(near, dtype=np.float64)]
    largest = float(excesses.max())
    bases = [(mean, 1e-2), (2.0 * mean, 0.3), (1.05 * largest, -0.2)]
    for scale, shape in [(float(whole[0]), float(whole[1])), *bases]:
        theta = np.zeros(p + q)
        theta[0] = math.log(scale) if links[0] == "exp" else scale
        theta[p] = math.log(max(shape, 1e-2)) if links[1] == "exp" else shape
        starts.append(theta)
    peaks = [climb(function, start) for start in starts if math.isfinite(function(start)[0])]
    good = [peak for peak in peaks if peak.settled and _above(peak, shape_design, links[1], p)]
    nothing = Peak(np.full(p + q, math.nan), math.nan, False)
    return max(good, key=lambda peak: peak.value, default=nothing)


def _above(peak: Peak, design: np.ndarray, link: str, p: int) -> bool:
    """Whether every shape lies where the likelihood is bounded."""
    return link == "exp" or bool(np.min(design @ peak.theta[p:]) > LEAST_SHAPE)
