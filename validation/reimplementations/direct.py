"""Direct domain estimators and their design-based variances, the slow and obvious way.

A twin to test against, not to use: one dense matrix of scores (units by domains), dense membership
matrices, loops over strata and domains. numpy only. R's survey package is the reference of both.

Estimators (w = weights, U_i = domain i of known size N_i):

==============  ===========================================================================
Horvitz-Thompson  (1/N_i) sum_{s_i} w y
Hajek             sum_{s_i} w y / sum_{s_i} w
PPI               mean of f over U_i + (1/N_i) sum_{s_i} w (y - f)
GREG              xbar_i'b + (1/N_i) sum_{s_i} w (y - x'b), x = (1, f)
==============  ===========================================================================

Each one is an estimate and a matrix of linearised scores u_ij; every variance and covariance is
the ultimate-cluster covariance of the columns of such matrices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np


@dataclass
class Sample:
    """The units: outcome y (n,), auxiliaries F (n, q), domain codes 0..m-1 (n,), and the design.

    ``stratum`` and ``psu`` are any labels, one a unit (all in one stratum, every unit its own
    primary unit, if None). ``n_population`` is each unit's stratum's number of primary units in the
    population (None or infinite: no finite population correction).
    """

    y: np.ndarray
    w: np.ndarray
    domain: np.ndarray
    F: np.ndarray | None = None
    stratum: np.ndarray | None = None
    psu: np.ndarray | None = None
    n_population: np.ndarray | None = None
    poisson: bool = False
    lonely: str = "fail"

    def __post_init__(self):
        n = len(self.y)
        self.y = np.asarray(self.y, dtype=float)
        self.w = np.asarray(self.w, dtype=float)
        self.domain = np.asarray(self.domain, dtype=int)
        self.F = np.empty((n, 0)) if self.F is None else np.asarray(self.F, float).reshape(n, -1)
        self.stratum = np.zeros(n, dtype=int) if self.stratum is None else np.asarray(self.stratum)
        self.psu = np.arange(n) if self.psu is None else np.asarray(self.psu)

    def rows(self, keep, **changes):
        """The units where ``keep`` is true, with some columns replaced (already cut to them)."""
        cut = {
            name: getattr(self, name)[keep] for name in ("y", "w", "domain", "F", "stratum", "psu")
        }
        if self.n_population is not None:
            cut["n_population"] = np.asarray(self.n_population)[keep]
        return replace(self, **{**cut, **changes})


@dataclass
class Population:
    """Domain sizes N (m,) and domain means of the auxiliaries (m, q)."""

    N: np.ndarray
    F: np.ndarray | None = None

    def __post_init__(self):
        self.N = np.asarray(self.N, dtype=float)
        m = len(self.N)
        self.F = np.empty((m, 0)) if self.F is None else np.asarray(self.F, float).reshape(m, -1)


@dataclass
class Direct:
    """Estimates (m,), scores (n, m), the residuals e (n,) behind them and the coefficients."""

    estimate: np.ndarray
    scores: np.ndarray
    residual: np.ndarray
    coefficients: np.ndarray | None = None
    is_difference: bool = False


def n_population_from_fpc(fpc, stratum, psu):
    """Primary units in the population of each unit's stratum; fractions (all <= 1) are resolved."""
    fpc = np.asarray(fpc, dtype=float)
    if np.all(fpc >= 1):
        return fpc
    count = {h: len(set(psu[stratum == h])) for h in set(stratum)}
    return np.array([count[h] for h in stratum]) / fpc


def membership(domain, m):
    """Dense 0/1 matrix, units by domains."""
    return (np.asarray(domain)[:, None] == np.arange(m)[None, :]).astype(float)


# ------------------------------------------------------------------------------------- variance


def covariance(scores, sample, correction=True):
    """Ultimate-cluster covariance (m, m) of the totals of the columns of ``scores`` (n, m).

    ``correction=False`` leaves the finite population correction out; for Poisson sampling it is
    then the with-replacement formula of one stratum.
    """
    u = np.asarray(scores, dtype=float)
    if sample.poisson and correction:
        return u.T @ ((1 - 1 / sample.w)[:, None] * u)
    total = np.zeros((u.shape[1], u.shape[1]))
    strata = list(dict.fromkeys(sample.stratum))
    n_missing = 0
    for h in strata:
        inside = sample.stratum == h
        psus = list(dict.fromkeys(sample.psu[inside]))
        n_h = len(psus)
        f = 1.0
        if correction and sample.n_population is not None:
            N_h = np.asarray(sample.n_population)[inside][0]
            f = 1.0 if np.isinf(N_h) else (N_h - n_h) / N_h
        sums = (sample.psu[inside][None, :] == np.array(psus)[:, None]).astype(float) @ u[inside]
        if n_h > 1:
            centred = sums - sums.mean(axis=0)
            total += f * n_h / (n_h - 1) * centred.T @ centred
        elif f < 1e-7 or sample.lonely in ("certainty", "remove"):
            continue
        elif sample.lonely == "adjust":
            total += f * sums.T @ sums
        elif sample.lonely == "average":
            n_missing += 1
        else:
            raise ValueError(f"stratum {h} has one primary unit")
    return total * len(strata) / (len(strata) - n_missing)


def degrees_of_freedom(sample, m):
    """Primary units minus strata among the units of each domain, at least 1 (NaN if no unit)."""
    df = np.full(m, np.nan)
    for i in range(m):
        inside = sample.domain == i
        if inside.any():
            df[i] = max(1, len(set(sample.psu[inside])) - len(set(sample.stratum[inside])))
    return df


def variances(direct, sample, correction=True):
    """Var of each domain's estimate; NaN where the domain has no unit."""
    d = np.diag(covariance(direct.scores, sample, correction)).copy()
    d[membership(sample.domain, len(d)).sum(axis=0) == 0] = np.nan
    return d


def covariance_between(a, b, sample, correction=True):
    """Cov(a_i, b_j), an (m, m) matrix."""
    m = a.scores.shape[1]
    both = covariance(np.hstack([a.scores, b.scores]), sample, correction)
    return both[:m, m:]


# ----------------------------------------------------------------------------------- estimators


def horvitz_thompson(sample, population):
    D = membership(sample.domain, len(population.N))
    u = sample.w[:, None] * sample.y[:, None] * D / population.N
    estimate = u.sum(axis=0)
    estimate[D.sum(axis=0) == 0] = np.nan
    return Direct(estimate, u, sample.y.copy())


def hajek(sample, population):
    D = membership(sample.domain, len(population.N))
    size = sample.w @ D
    with np.errstate(invalid="ignore", divide="ignore"):
        estimate = (sample.w * sample.y) @ D / size
    residual = sample.y - estimate[sample.domain]
    u = sample.w[:, None] * residual[:, None] * D / np.where(size > 0, size, 1)
    return Direct(estimate, u, residual)


def prediction_powered(sample, population, column=0):
    D = membership(sample.domain, len(population.N))
    residual = sample.y - sample.F[:, column]
    u = sample.w[:, None] * residual[:, None] * D / population.N
    return Direct(population.F[:, column] + u.sum(axis=0), u, residual, is_difference=True)


def weighted_least_squares(X, y, w):
    """Coefficients by the normal equations' square root (lstsq on the scaled rows)."""
    root = np.sqrt(w)
    return np.linalg.lstsq(root[:, None] * X, root * y, rcond=None)[0]


def generalized_regression(sample, population, slope="pooled", intercept=True):
    """GREG with x = (1, F), or x = F without the intercept.

    slope: "pooled", "within" (slopes of a fit with one intercept a domain; the common intercept is
    then the weighted mean of y - F'b), "domain" (one fit a domain) or numbers (the same rule for
    the intercept).
    """
    m = len(population.N)
    D = membership(sample.domain, m)
    n, q = sample.F.shape
    one = np.ones((n, 1))
    X = np.hstack([one, sample.F]) if intercept else sample.F
    Xbar = np.hstack([np.ones((m, 1)), population.F]) if intercept else population.F
    if isinstance(slope, str) and slope == "domain":
        B = np.full((m, X.shape[1]), np.nan)
        for i in range(m):
            inside = sample.domain == i
            if inside.sum() >= X.shape[1]:
                B[i] = weighted_least_squares(X[inside], sample.y[inside], sample.w[inside])
    else:
        if isinstance(slope, str) and slope == "pooled":
            b = weighted_least_squares(X, sample.y, sample.w)
        else:
            if isinstance(slope, str):
                seen = D[:, D.sum(axis=0) > 0]
                both = np.hstack([seen, sample.F])
                b = weighted_least_squares(both, sample.y, sample.w)[seen.shape[1] :]
            else:
                b = np.broadcast_to(np.asarray(slope, dtype=float), (q,)).copy()
            if intercept:
                level = np.average(sample.y - sample.F @ b, weights=sample.w)
                b = np.concatenate([[level], b])
        B = np.tile(b, (m, 1))
    residual = sample.y - np.sum(X * B[sample.domain], axis=1)
    u = sample.w[:, None] * residual[:, None] * D / population.N
    return Direct(np.sum(Xbar * B, axis=1) + u.sum(axis=0), u, residual, B)


def g_weighted_scores_of_the_whole(direct, sample, population):
    """Scores (n, 1) of the whole population's GREG, each residual times its calibration weight."""
    N = population.N.sum()
    X = np.hstack([np.ones((len(sample.y), 1)), sample.F])
    target = np.concatenate([[N], population.N @ population.F])
    lagrange = np.linalg.solve(X.T @ (sample.w[:, None] * X), target - sample.w @ X)
    g = 1 + X @ lagrange
    return (sample.w * g * direct.residual / N)[:, None]


ESTIMATORS = {
    "ht": horvitz_thompson,
    "hajek": hajek,
    "ppi": prediction_powered,
    "greg": generalized_regression,
}


def aggregate(direct, sample, population, groups):
    """Means of groups of domains and their covariance: N_i-weighted means of the estimates.

    groups : labels (m,). Returns (labels, estimates, covariance).
    """
    groups = np.asarray(groups)
    labels = list(dict.fromkeys(groups))
    A = np.array([np.where(groups == label, population.N, 0.0) for label in labels])
    A /= A.sum(axis=1, keepdims=True)
    return labels, A @ direct.estimate, A @ covariance(direct.scores, sample) @ A.T
