"""Leave-one-domain-out predictions of the Fay-Herriot model by REML, ML and moments, by algebra.

With P = V⁻¹ − V⁻¹X(X'V⁻¹X)⁻¹X'V⁻¹ of all domains at the model variance A, the profile without
domain i follows from its own elements:

    Q_(−i) = Q − (Pz)_i²/P_ii,    l_(−i) = l − ½ log P_ii + ½ (Pz)_i²/P_ii   (restricted),
    P_ii' = −(P²)_ii,  (Pz)_i' = −(P²z)_i   (derivatives in A),

so one set of sums over the domains at a value of A gives the estimating functions of all n
problems there. A grid in log A brackets their roots; inside a bracket, which many problems share,
the functions are interpolated at Chebyshev points (their poles lie at imaginary part π in log A:
twelve points leave nothing), and everything that follows from A is read off the same points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pybridge.smoothing._bayes_quadrature import AreaData, least_squares, weighted_sums
from pybridge.smoothing._bayes_units import unit_of, weighted_fit
from pybridge.smoothing._leave_out_arrays import (
    LeftOut,
    filled,
    normal_predictions,
    without_leverage,
)

METHODS = ("REML", "ML", "FH", "PR")

_STEP = 0.35
_POINTS = 12
_BLOCK = 1 << 20


def leave_out_likelihood(
    *,
    estimate: np.ndarray,
    variance: np.ndarray,
    covariates: np.ndarray,
    method: str,
    level: float,
) -> LeftOut:
    """Predictions of every domain by the Fay-Herriot model of the others.

    Parameters
    ----------
    estimate, variance : (n,)
        Direct estimates and sampling variances above 0 of the labelled domains.
    covariates : (n, p)
    method : {"REML", "ML", "FH", "PR"}
    level : float
        Confidence level of the normal intervals.

    Returns
    -------
    LeftOut
        Equal to a fit without the domain's label, to about 1e-9.
    """
    n = estimate.size
    usable = without_leverage(covariates)
    offset, turn, residual = weighted_fit(estimate, covariates, np.ones(n))
    scale = unit_of(residual, variance)
    data = AreaData.of(z=residual / scale, d=variance / scale / scale, x=covariates @ turn)
    pick = np.flatnonzero(usable)
    nodes = _grid(data)
    if method == "PR":
        chosen = _moments_without(data)[pick]
        top = 1.1 * float(chosen.max())
        nodes = np.append(nodes, top) if top > nodes[-1] else nodes
        best = _read_off(data, nodes, pick, chosen)
    else:
        best = _search(data, nodes, pick, method)
    d = data.d[pick]
    mse = best.spread - d - best.bias
    prediction = (covariates @ offset)[pick] + scale * (data.z[pick] - best.residual)
    found = normal_predictions(
        estimate=estimate[pick],
        variance=variance[pick],
        prediction=prediction,
        mse=mse * scale * scale,
        level=level,
    )
    return filled(usable, found)


def _grid(data: AreaData) -> np.ndarray:
    """0, then steps of a third in log A up to where every score is certainly negative."""
    n, p = data.x.shape
    mean_square = float(data.z @ data.z) / (n - 1 - p)
    high = 2.0 * (mean_square + math.sqrt(mean_square * float(data.d.max())))
    low = 0.1 * float(data.d.min())
    high = max(high, 10.0 * low)
    steps = math.ceil(math.log(high / low) / _STEP)
    return np.concatenate([[0.0], np.geomspace(low, high, steps + 1)])


def _search(data: AreaData, nodes: np.ndarray, pick: np.ndarray, method: str) -> _Best:
    """The highest maximum over A >= 0 (the root, for the moment equation) of every problem."""
    best = _Best.nothing(pick.size)
    score = _profile(data, nodes, pick, method).score
    zero = np.flatnonzero(score[0] <= 0.0)
    if zero.size:
        best.offer(zero, _profile(data, nodes[:1], pick[zero], method).row(0))
    for cell in range(nodes.size - 1):
        inside = np.flatnonzero((score[cell] > 0.0) & (score[cell + 1] <= 0.0))
        if not inside.size:
            continue
        here = _profile(data, _points(nodes, cell), pick[inside], method)
        low, high = -np.ones(inside.size), np.ones(inside.size)
        terms = _MATRIX @ here.score
        for _ in range(54):
            middle = 0.5 * (low + high)
            rises = _at(terms, middle) > 0.0
            low, high = np.where(rises, middle, low), np.where(rises, high, middle)
        best.offer(inside, here.at(0.5 * (low + high)))
    return best


def _read_off(data: AreaData, nodes: np.ndarray, pick: np.ndarray, a: np.ndarray) -> _Best:
    """Everything at given values of A, one a problem."""
    best = _Best.nothing(pick.size)
    zero = np.flatnonzero(a == 0.0)
    if zero.size:
        best.offer(zero, _profile(data, nodes[:1], pick[zero], "PR").row(0))
    cells = np.clip(np.searchsorted(nodes, a) - 1, 0, nodes.size - 2)
    for cell in np.unique(cells[a > 0.0]):
        inside = np.flatnonzero((cells == cell) & (a > 0.0))
        low, high = nodes[cell], nodes[cell + 1]
        share = (a[inside] - low) / (high - low)
        if cell > 0:
            share = np.log(a[inside] / low) / math.log(high / low)
        here = _profile(data, _points(nodes, int(cell)), pick[inside], "PR")
        best.offer(inside, here.at(2.0 * share - 1.0))
    return best


# Chebyshev points of the second kind on [-1, 1], and values there to coefficients.
_ANGLE = np.pi * np.arange(_POINTS) / (_POINTS - 1.0)
_MATRIX = np.linalg.inv(np.cos(_ANGLE[:, None] * np.arange(_POINTS)))


def _points(nodes: np.ndarray, cell: int) -> np.ndarray:
    """The Chebyshev points of a cell: in A for the first one, else in log A."""
    low, high = nodes[cell], nodes[cell + 1]
    share = 0.5 * (1.0 + np.cos(_ANGLE))
    if cell == 0:
        return np.asarray(low + share * (high - low))
    return np.asarray(low * (high / low) ** share)


def _at(terms: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Chebyshev sums with coefficients (N, n) at t (n,)."""
    order = np.arange(_POINTS)[:, None]
    return np.asarray((terms * np.cos(order * np.arccos(np.clip(t, -1.0, 1.0)))).sum(axis=0))


@dataclass(frozen=True)
class _Profile:
    """At K values of A, of n problems without one domain each: arrays (K, n).

    ``score`` the estimating function, ``height`` what is maximised, ``residual`` z_i minus its
    prediction, ``spread`` the variance of z_i about it, ``bias`` of the estimator of A.
    """

    score: np.ndarray
    height: np.ndarray
    residual: np.ndarray
    spread: np.ndarray
    bias: np.ndarray

    def row(self, k: int) -> dict[str, np.ndarray]:
        """All at the k-th value."""
        return {name: getattr(self, name)[k] for name in _KEPT}

    def at(self, t: np.ndarray) -> dict[str, np.ndarray]:
        """All interpolated between the points, at t (n,) in [-1, 1]."""
        return {name: _at(_MATRIX @ getattr(self, name), t) for name in _KEPT}


_KEPT = ("height", "residual", "spread", "bias")


@dataclass(frozen=True)
class _Best:
    """The best of what was offered to each of n problems: arrays (n,)."""

    height: np.ndarray
    residual: np.ndarray
    spread: np.ndarray
    bias: np.ndarray

    @classmethod
    def nothing(cls, n: int) -> _Best:
        """Before anything was offered."""
        return cls(np.full(n, -np.inf), *(np.full(n, np.nan) for _ in range(3)))

    def offer(self, which: np.ndarray, values: dict[str, np.ndarray]) -> None:
        """Take the values where they are higher."""
        better = values["height"] > self.height[which]
        for name in _KEPT:
            getattr(self, name)[which[better]] = values[name][better]


def _profile(data: AreaData, a: np.ndarray, pick: np.ndarray, method: str) -> _Profile:
    """The problems without one domain each, those in ``pick``, at K values of A, in blocks."""
    count = max(1, _BLOCK // (data.d.size * data.x.shape[1]))
    parts = [
        _profile_block(data, a[start : start + count], pick, method)
        for start in range(0, a.size, count)
    ]
    return _Profile(*(np.concatenate([getattr(part, f) for part in parts]) for f in _ALL))


_ALL = ("score", *_KEPT)


def _profile_block(data: AreaData, a: np.ndarray, pick: np.ndarray, method: str) -> _Profile:
    n, p = data.x.shape
    w = 1.0 / (a[:, None] + data.d)
    beta, root, half_log, quadratic = least_squares(weighted_sums(w, data))
    half = np.matmul(root, data.x.T)  # (K, p, n): columns c with c'c = x'(X'WX)^-1 x
    u = w * (data.z - beta @ data.x.T)
    leverage = np.square(half).sum(axis=1)
    inner = np.matmul(half * (w * w)[:, None, :], np.swapaxes(half, 1, 2))
    across = np.matmul(half, (w * u)[:, :, None])
    u_slope = -w * (u - np.matmul(np.swapaxes(half, 1, 2), across)[:, :, 0])
    bent = (np.matmul(inner, half) * half).sum(axis=1)
    own = w * (1.0 - w * leverage)
    own_slope = -w * w * (1.0 - 2.0 * w * leverage + bent)
    norm = np.square(u).sum(axis=1)[:, None]
    whole = w.sum(axis=1)[:, None], np.square(w).sum(axis=1)[:, None]
    trace = (w * w * leverage).sum(axis=1)[:, None]
    log_total = np.log(w).sum(axis=1)[:, None]
    w, u, leverage, bent, own, own_slope, u_slope = (
        array[:, pick] for array in (w, u, leverage, bent, own, own_slope, u_slope)
    )
    # Of Q without i: -u^2 / P_ii, and its slope.
    part = u * u / own
    part_slope = 2.0 * u * u_slope / own - part * own_slope / own
    first, second = whole[0] - w, whole[1] - w * w
    if method == "FH":
        score = quadratic[:, None] - part - (n - 1 - p)
        height = np.zeros_like(score)
        bias = 2.0 * ((n - 1) * second - first**2) / first**3
    elif method == "ML":
        score = 0.5 * (norm + part_slope - first)
        height = 0.5 * (log_total - np.log(w) - quadratic[:, None] + part)
        moved = trace - w * w * leverage + (bent - (w * leverage) ** 2) * w / (1.0 - w * leverage)
        bias = -moved / second
    else:
        score = 0.5 * (norm - whole[0] + trace + part_slope - own_slope / own)
        height = 0.5 * (log_total - quadratic[:, None] + part - np.log(own)) - half_log[:, None]
        bias = np.zeros_like(score)
    return _Profile(score=score, height=height, residual=u / own, spread=1.0 / own, bias=bias)


def _moments_without(data: AreaData) -> np.ndarray:
    """The Prasad-Rao moments (n,) without each domain, from one least-squares fit."""
    n, p = data.x.shape
    z, d, x = data.z, data.d, data.x
    leverage = np.minimum(np.square(x).sum(axis=1), 1.0 - 1e-12)
    squares = float(z @ z) - z * z / (1.0 - leverage)
    around = np.einsum("ij,jk,ik->i", x, (x * d[:, None]).T @ x, x) - d * leverage**2
    noise = float(d @ (1.0 - leverage)) - d * (1.0 - leverage) - around / (1.0 - leverage)
    return np.asarray(np.maximum((squares - noise) / (n - 1 - p), 0.0))
