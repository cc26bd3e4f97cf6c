"""The taxonomy model once more, the slow way: dense matrices, tensor grids, numerical derivatives.

z_i ~ N(theta_i, d_i), theta = X beta + sum over levels of Z_r v_r, v_r ~ N(0, s_r I). The posterior
takes inverse-gamma priors on the s_r and a flat one on beta, and a tensor product of Gauss-Legendre
rules in the log s_r. REML and ML search a likelihood with dense matrices; the mean squared error
differentiates the predictor's weights numerically.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import ndtr

_TWO_PI = 2.0 * np.pi


def incidence(codes: Sequence[np.ndarray]) -> np.ndarray:
    """(R, m, m): 1 where two domains share a group of the level."""
    return np.array([(np.asarray(c)[:, None] == np.asarray(c)[None, :]) * 1.0 for c in codes])


def moments(
    s: np.ndarray, z: np.ndarray, d: np.ndarray, x: np.ndarray, same: np.ndarray
) -> dict[str, np.ndarray]:
    """For K sets of variances (K, R): likelihood parts, beta, theta's means and variances."""
    seen = ~np.isnan(z)
    effects = np.einsum("kr,rij->kij", s, same)
    marginal = effects[:, seen][:, :, seen] + np.diag(d[seen])
    inverse = np.linalg.inv(marginal)
    design = x[seen]
    information = np.einsum("ip,kij,jq->kpq", design, inverse, design)
    covariance = np.linalg.inv(information)
    beta = np.einsum("kpq,iq,kij,j->kp", covariance, design, inverse, z[seen], optimize=True)
    rest = z[seen] - beta @ design.T
    gain = effects[:, :, seen] @ inverse
    left = x - gain @ design
    mean = beta @ x.T + np.einsum("kij,kj->ki", gain, rest)
    variance = (
        np.einsum("kii->ki", effects)
        - np.einsum("kij,kji->ki", gain, effects[:, seen])
        + np.einsum("kip,kpq,kiq->ki", left, covariance, left, optimize=True)
    )
    return {
        "log_determinant": np.linalg.slogdet(marginal)[1],
        "log_information": np.linalg.slogdet(information)[1],
        "rest": np.einsum("ki,kij,kj->k", rest, inverse, rest, optimize=True),
        "beta": beta,
        "covariance": covariance,
        "mean": mean,
        "variance": variance,
    }


def log_likelihood(
    s: np.ndarray, z: np.ndarray, d: np.ndarray, x: np.ndarray, same: np.ndarray, *, reml: bool
) -> np.ndarray:
    """(K,), with its constants; the restricted one holds +1/2 log|X'X|."""
    found = moments(s, z, d, x, same)
    seen = ~np.isnan(z)
    n = seen.sum() - (x.shape[1] if reml else 0)
    out = -0.5 * (n * np.log(_TWO_PI) + found["log_determinant"] + found["rest"])
    if reml:
        design = x[seen]
        out = out - 0.5 * (found["log_information"] - np.linalg.slogdet(design.T @ design)[1])
    return out


def posterior(
    z: np.ndarray,
    d: np.ndarray,
    x: np.ndarray,
    codes: Sequence[np.ndarray],
    *,
    shape: np.ndarray,
    scale: np.ndarray,
    box: Sequence[tuple[float, float]],
    nodes: int,
    level: float = 0.95,
    domains: tuple[int, ...] = (),
) -> dict[str, object]:
    """Posterior by a tensor product of Gauss-Legendre rules over a box of log variances."""
    point, rule = np.polynomial.legendre.leggauss(nodes)
    axes = [0.5 * (b - a) * point + 0.5 * (a + b) for a, b in box]
    widths = [0.5 * (b - a) * rule for a, b in box]
    t = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(box))
    area = np.ones(t.shape[0])
    for column in np.stack(np.meshgrid(*widths, indexing="ij"), axis=-1).reshape(t.shape).T:
        area = area * column
    same = incidence(codes)
    parts = [
        moments(np.exp(chunk), z, d, x, same) for chunk in np.array_split(t, len(t) // 2000 + 1)
    ]
    found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    log = -0.5 * (found["log_determinant"] + found["log_information"] + found["rest"])
    log = log - t @ shape - np.exp(-t) @ scale
    weight = area * np.exp(log - log.max())
    weight /= weight.sum()
    mean = weight @ found["mean"]
    beta = weight @ found["beta"]
    away = found["beta"] - beta
    quantiles = {
        i: tuple(
            _quantile(weight, found["mean"][:, i], found["variance"][:, i], tail)
            for tail in (0.5 - level / 2.0, 0.5 + level / 2.0)
        )
        for i in domains
    }
    return {
        "estimate": mean,
        "mse": weight @ found["variance"] + weight @ (found["mean"] - mean) ** 2,
        "coefficients": beta,
        "coefficient_covariance": np.einsum("k,kpq->pq", weight, found["covariance"])
        + (weight[:, None] * away).T @ away,
        "variance_means": weight @ np.exp(t),
        "variance_medians": np.array(
            [_median(weight, nodes, axes, r, box[r]) for r in range(len(box))]
        ),
        "quantiles": quantiles,
    }


def _median(
    weight: np.ndarray, nodes: int, axes: list[np.ndarray], level: int, ends: tuple[float, float]
) -> float:
    """Median of one variance: the marginal at the nodes, its polynomial, integrated."""
    cube = weight.reshape((nodes,) * len(axes))
    marginal = cube.sum(axis=tuple(r for r in range(len(axes)) if r != level))
    _, rule = np.polynomial.legendre.leggauss(nodes)
    half = 0.5 * (ends[1] - ends[0])
    density = marginal / (half * rule)
    # Barycentric-free: Legendre coefficients by the same Gauss rule that gave the nodes.
    unit = (axes[level] - 0.5 * (ends[0] + ends[1])) / half
    table = np.polynomial.legendre.legvander(unit, nodes - 1)
    coefficients = (2.0 * np.arange(nodes) + 1.0) / 2.0 * (table.T @ (rule * density))
    running = np.polynomial.legendre.legint(coefficients, lbnd=-1)
    place = brentq(
        lambda u: half * np.polynomial.legendre.legval(u, running) - 0.5, -1.0, 1.0, xtol=1e-14
    )
    return float(np.exp(half * place + 0.5 * (ends[0] + ends[1])))


def _quantile(weight: np.ndarray, mean: np.ndarray, variance: np.ndarray, tail: float) -> float:
    deviation = np.sqrt(variance)

    def excess(q: float) -> float:
        return float(weight @ ndtr((q - mean) / deviation)) - tail

    reach, centre = 1.0, float(weight @ mean)
    while excess(centre - reach) > 0.0 or excess(centre + reach) < 0.0:
        reach *= 2.0
    return float(brentq(excess, centre - reach, centre + reach, xtol=1e-13))


def likelihood_fit(
    z: np.ndarray, d: np.ndarray, x: np.ndarray, codes: Sequence[np.ndarray], *, reml: bool
) -> np.ndarray:
    """Variances (R,) by a simplex search in their roots, from a grid of starts."""
    same = incidence(codes)
    seen = ~np.isnan(z)
    rest = z[seen] - x[seen] @ np.linalg.lstsq(x[seen], z[seen], rcond=None)[0]
    unit = float(np.mean(rest**2))

    def loss(root: np.ndarray) -> float:
        return -float(log_likelihood(unit * root[None] ** 2, z, d, x, same, reml=reml)[0])

    axis = [0.05, 0.4, 0.9]
    starts = np.stack(np.meshgrid(*[axis] * len(codes), indexing="ij"), axis=-1)
    best = None
    for start in starts.reshape(-1, len(codes)):
        found = minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13})
        if best is None or found.fun < best.fun:
            best = found
    assert best is not None
    return np.asarray(unit * best.x**2)


def mean_squared_error(
    s: np.ndarray,
    z: np.ndarray,
    d: np.ndarray,
    x: np.ndarray,
    codes: Sequence[np.ndarray],
    *,
    reml: bool,
) -> np.ndarray:
    """g1 + g2 + 2 g3, under ML minus the bias term (m,), with m by m matrices throughout."""
    same = incidence(codes)
    seen = ~np.isnan(z)
    parts = same[:, seen][:, :, seen]
    marginal = np.einsum("r,rij->ij", s, parts) + np.diag(d[seen])
    inverse = np.linalg.inv(marginal)
    information = 0.5 * np.einsum(
        "ij,ajk,kl,bli->ab", inverse, parts, inverse, parts, optimize=True
    )
    spread = np.linalg.pinv(information)
    step = 1e-4 * (s + 1e-2 * float(np.median(d[seen])))

    def weights(variances: np.ndarray) -> np.ndarray:
        effects = np.einsum("r,rij->ij", variances, same)
        now = effects[np.ix_(seen, seen)] + np.diag(d[seen])
        return np.asarray(effects[:, seen] @ np.linalg.inv(now))

    def first(variances: np.ndarray) -> np.ndarray:
        effects = np.einsum("r,rij->ij", variances, same)
        return np.asarray(
            np.diag(effects) - np.einsum("ij,ji->i", weights(variances), effects[seen])
        )

    def log_information(variances: np.ndarray) -> float:
        return float(moments(variances[None], z, d, x, same)["log_information"][0])

    moves = np.diag(step)
    slopes = np.array([(weights(s + e) - weights(s - e)) / (2 * e.sum()) for e in moves])
    third = np.einsum("ab,aij,jk,bik->i", spread, slopes, marginal, slopes, optimize=True)
    out = moments(s[None], z, d, x, same)["variance"][0] + 2.0 * third
    if not reml:
        slope = np.array([(first(s + e) - first(s - e)) / (2 * e.sum()) for e in moves])
        change = np.array(
            [(log_information(s + e) - log_information(s - e)) / (2 * e.sum()) for e in moves]
        )
        out = out - (0.5 * spread @ change) @ slope
    return np.asarray(out)
