"""Design-based estimates written anew from their definitions: loops over strata, units and stages.

Every estimate is a total of influence values h_k of the units, so that its covariance is that of
Σ w h: by stages for clusters, Σ (1 − π)(h/π)² for Poisson sampling. After a calibration h is
replaced by what the auxiliary variables leave of it, times the ratio g of new and old weights.

Särndal, Swensson and Wretman (1992), ch. 4, 6; Deville and Särndal (1992), JASA 87, 376; Binder
(1983), Int. Stat. Rev. 51, 279.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import root


@dataclass
class Design:
    """A sample: initial weights, and per stage the strata, clusters and population counts.

    Attributes
    ----------
    weights : numpy.ndarray
        Shape (n,).
    stages : list of (strata, clusters, sizes)
        Each (n,); sizes NaN where there is no correction.
    poisson : bool
    ratio : numpy.ndarray
        Shape (n,), g.
    auxiliary : numpy.ndarray or None
        Shape (n, q), what was calibrated to.
    """

    weights: np.ndarray
    stages: list = field(default_factory=list)
    poisson: bool = False
    ratio: np.ndarray | None = None
    auxiliary: np.ndarray | None = None

    @property
    def final(self) -> np.ndarray:
        return self.weights if self.ratio is None else self.weights * self.ratio


def total_covariance(h: np.ndarray, design: Design) -> np.ndarray:
    """Covariance (k, k) of Σ w h, h (n, k)."""
    h = np.asarray(h, dtype=float).reshape(len(design.weights), -1)
    if design.auxiliary is not None:
        X, root_w = design.auxiliary, np.sqrt(design.weights)[:, None]
        h = h - X @ np.linalg.lstsq(root_w * X, root_w * h, rcond=None)[0]
    z = design.final[:, None] * h
    if design.poisson:
        return (z * (1.0 - 1.0 / design.weights)[:, None]).T @ z
    return _by_stages(z, design.stages, np.arange(len(z)))


def _by_stages(z: np.ndarray, stages: list, rows: np.ndarray) -> np.ndarray:
    out = np.zeros((z.shape[1], z.shape[1]))
    if not stages:
        return out
    strata, clusters, sizes = stages[0]
    for stratum in sorted(set(strata[rows])):
        inside = rows[strata[rows] == stratum]
        units = sorted(set(clusters[inside]))
        n = len(units)
        totals = np.array([z[inside[clusters[inside] == unit]].sum(axis=0) for unit in units])
        size = sizes[inside[0]]
        fraction = 0.0 if np.isnan(size) else n / size
        if n > 1:
            away = totals - totals.mean(axis=0)
            out += (1.0 - fraction) * n / (n - 1) * away.T @ away
        for unit in units:
            below = inside[clusters[inside] == unit]
            out += fraction * _by_stages(z, stages[1:], below)
    return out


def calibrated(design: Design, X: np.ndarray, totals: np.ndarray, *, raking: bool) -> Design:
    """The design with weights w g(x'λ) that meet the totals, g = 1 + u or exp(u)."""
    X, totals = np.asarray(X, dtype=float), np.asarray(totals, dtype=float)
    unit = np.abs(X).max(axis=0)
    scaled = X / unit

    def ratio(multipliers: np.ndarray) -> np.ndarray:
        u = scaled @ multipliers
        return np.exp(u) if raking else 1.0 + u

    def gap(multipliers: np.ndarray) -> np.ndarray:
        return scaled.T @ (design.weights * ratio(multipliers)) / (totals / unit) - 1.0

    found = root(gap, np.zeros(X.shape[1]), method="hybr", options={"xtol": 1e-14})
    return Design(design.weights, design.stages, design.poisson, ratio(found.x), X)


def total(y: np.ndarray, design: Design) -> tuple[np.ndarray, np.ndarray]:
    """Totals of the columns of y (n, k) and their covariance."""
    y = np.asarray(y, dtype=float).reshape(len(design.weights), -1)
    return design.final @ y, total_covariance(y, design)


def ratio(y: np.ndarray, x: np.ndarray, design: Design) -> tuple[np.ndarray, np.ndarray]:
    """Ratios Σ w y / Σ w x of the columns of y (n, k) and x (n, k), and their covariance."""
    y, x = (np.asarray(v, dtype=float).reshape(len(design.weights), -1) for v in (y, x))
    bottom = design.final @ x
    value = (design.final @ y) / bottom
    return value, total_covariance((y - value * x) / bottom, design)


def regression(
    y: np.ndarray, X: np.ndarray, design: Design, *, logit: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Solutions of Σ w x (y − μ(x'β)) = 0 and their sandwich covariance."""
    w = design.final
    unit = np.abs(X).max(axis=0)
    scaled = X / unit

    def mean(beta: np.ndarray) -> np.ndarray:
        eta = scaled @ beta
        return 1.0 / (1.0 + np.exp(-eta)) if logit else eta

    start = np.zeros(X.shape[1])
    if not logit:
        start = np.linalg.solve((scaled * w[:, None]).T @ scaled, scaled.T @ (w * y))
    size = float(w @ np.abs(y))
    beta = root(lambda b: scaled.T @ (w * (y - mean(b))) / size, start, options={"xtol": 1e-14}).x
    mu = mean(beta)
    slope = mu * (1.0 - mu) if logit else np.ones(len(y))
    bread = np.linalg.inv((scaled * (w * slope)[:, None]).T @ scaled)
    influence = (scaled * (y - mu)[:, None]) @ bread
    return beta / unit, total_covariance(influence, design) / np.outer(unit, unit)
