"""The Bayesian area-level model once more, the slow way.

z_i ~ N(theta_i, d_i), theta_i = x_i'beta + v_i, v_i ~ N(0, s), flat priors on beta and s. Dense
matrices, composite Gauss-Legendre panels in log s over a range that holds everything, quantiles by
bracketing; nothing is shared with the engine that it checks.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

_PANELS = 160
_NODES = 12


def panels(low: float, high: float, count: int, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of a composite Gauss-Legendre rule."""
    point, weight = np.polynomial.legendre.leggauss(nodes)
    edges = np.linspace(low, high, count + 1)
    half = 0.5 * np.diff(edges)[:, None]
    centre = 0.5 * (edges[1:] + edges[:-1])[:, None]
    return (centre + half * point).ravel(), (half * weight).ravel()


def given_variance(
    s: float, z: np.ndarray, d: np.ndarray, x: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """Log marginal density, theta's mean and variance (m,), beta (p,), given s.

    Domains with NaN in ``z`` are predicted.
    """
    seen = ~np.isnan(z)
    noise = np.diag(d[seen])
    inverse = np.linalg.inv(s * np.eye(int(seen.sum())) + noise)
    design = x[seen]
    information = design.T @ inverse @ design
    beta = np.linalg.solve(information, design.T @ inverse @ z[seen])
    project = inverse - inverse @ design @ np.linalg.solve(information, design.T @ inverse)
    # theta = z - e for the labelled domains, exact for any s; x'beta + v for the others.
    mean, variance = x @ beta, s + np.einsum("ip,pi->i", x, np.linalg.solve(information, x.T))
    mean[seen] = z[seen] - noise @ project @ z[seen]
    variance[seen] = np.diag(noise - noise @ project @ noise)
    rest = z[seen] - design @ beta
    log = (
        0.5 * np.linalg.slogdet(inverse)[1]
        - 0.5 * np.linalg.slogdet(information)[1]
        - 0.5 * rest @ inverse @ rest
    )
    return float(log), mean, variance, beta


def posterior(
    z: np.ndarray,
    d: np.ndarray,
    x: np.ndarray,
    *,
    low: float,
    high: float,
    log_prior: object = None,
    level: float = 0.95,
    domains: tuple[int, ...] = (),
) -> dict[str, object]:
    """Posterior summaries by panels in log s between ``low`` and ``high``.

    Parameters
    ----------
    z, d : (m,)
    x : (m, p)
    low, high : float
        Range of log s.
    log_prior : callable, optional
        Log density of s; flat by default.
    level : float
    domains : tuple of int
        Domains whose quantiles are wanted.
    """
    t, width = panels(low, high, _PANELS, _NODES)
    found = [given_variance(float(np.exp(one)), z, d, x) for one in t]
    log = np.array([item[0] for item in found]) + t
    if log_prior is not None:
        log = log + np.array([log_prior(np.exp(one)) for one in t])  # type: ignore[operator]
    weight = width * np.exp(log - log.max())
    weight /= weight.sum()
    means = np.array([item[1] for item in found])
    variances = np.array([item[2] for item in found])
    beta = weight @ np.array([item[3] for item in found])
    estimate = weight @ means
    mse = weight @ variances + weight @ (means - estimate) ** 2
    quantiles = {
        i: tuple(
            _quantile(weight, means[:, i], variances[:, i], tail)
            for tail in (0.5 - level / 2.0, 0.5 + level / 2.0)
        )
        for i in domains
    }
    return {
        "variance_mean": float(weight @ np.exp(t)),
        "variance_median": _median(t, weight),
        "coefficients": beta,
        "estimate": estimate,
        "mse": mse,
        "quantiles": quantiles,
    }


def _quantile(weight: np.ndarray, mean: np.ndarray, variance: np.ndarray, tail: float) -> float:
    deviation = np.sqrt(np.maximum(variance, 1e-30))  # where s underflows beside d

    def excess(q: float) -> float:
        return float(weight @ ndtr((q - mean) / deviation)) - tail

    reach = 1.0
    centre = float(weight @ mean)
    while excess(centre - reach) > 0.0 or excess(centre + reach) < 0.0:
        reach *= 2.0
    return float(brentq(excess, centre - reach, centre + reach, xtol=1e-13, rtol=1e-14))


def _median(t: np.ndarray, weight: np.ndarray) -> float:
    """By the interpolating polynomial of each panel's density, integrated up to the median."""
    per_panel = weight.reshape(_PANELS, _NODES)
    running = np.concatenate([[0.0], np.cumsum(per_panel.sum(axis=1))])
    place = int(np.searchsorted(running, 0.5) - 1)
    point, rule = np.polynomial.legendre.leggauss(_NODES)
    density = np.polynomial.legendre.Legendre.fit(
        point, per_panel[place] / rule, _NODES - 1, domain=[-1, 1]
    )
    area = density.integ(lbnd=-1)
    local = brentq(lambda u: running[place] + area(u) - 0.5, -1.0, 1.0, xtol=1e-15)
    inside = t.reshape(_PANELS, _NODES)[place]
    half = (inside[-1] - inside[0]) / (point[-1] - point[0])
    return float(np.exp(inside[0] + half * (local - point[0])))
