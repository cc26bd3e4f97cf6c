"""Cross-validation scores of domain estimators, by refitting on re-weighted units.

A twin to test against: every fit is made anew from the units, one fold after the other. numpy and
scipy.optimize only. A candidate is a callable f(sample) -> estimates (m,), with sample a
direct.Sample; whatever it needs of the population it holds itself.

Notation: R the reference (a direct estimator), M the candidate, (k) fitted on fold k alone, (-k)
on all other folds, K folds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import optimize

from validation.reimplementations import direct, smoothed_variances

# ---------------------------------------------------------------------------------------- folds


def fold_strata(sample, n_folds, strata="pooled"):
    """Labels of strata for folds and weights, and their n_population (None without correction).

    "pooled": strata with fewer primary units than folds are one. "own": as designed; a stratum of
    n_h < K primary units then has them in n_h different folds.
    """
    count = {h: len(set(sample.psu[sample.stratum == h])) for h in set(sample.stratum)}
    small = {h for h in count if strata == "pooled" and count[h] < n_folds}
    labels = np.array(["pooled" if h in small else f"stratum {h}" for h in sample.stratum])
    if sample.n_population is None:
        return labels, None
    N = np.asarray(sample.n_population, dtype=float)
    total = {}
    for label in set(labels):
        inside = labels == label
        total[label] = sum(N[sample.stratum == h][0] for h in set(sample.stratum[inside]))
    return labels, np.array([total[label] for label in labels])


def draw_folds(sample, n_folds, rng, strata="pooled"):
    """Random folds 0..K-1, a unit: whole primary units, as equal as can be inside each stratum."""
    labels, _ = fold_strata(sample, n_folds, strata)
    folds = np.empty(len(sample.y), dtype=int)
    for h in dict.fromkeys(labels):
        inside = np.flatnonzero(labels == h)
        psus = np.array(list(dict.fromkeys(sample.psu[inside])))
        place = rng.permutation(n_folds)[np.arange(len(psus)) % n_folds]
        fold_of = dict(zip(psus, rng.permutation(place)))
        folds[inside] = [fold_of[p] for p in sample.psu[inside]]
    return folds


def balanced_folds(sample, n_folds, rng):
    """What not to do where domains cut across strata: folds of equal size inside each domain."""
    folds = np.empty(len(sample.y), dtype=int)
    start = 0
    for pair in sorted(set(zip(sample.stratum, sample.domain))):
        inside = np.flatnonzero((sample.stratum == pair[0]) & (sample.domain == pair[1]))
        folds[rng.permutation(inside)] = (start + np.arange(len(inside))) % n_folds
        start += len(inside)
    return folds


def part(sample, keep, n_folds, strata="pooled"):
    """The units in ``keep`` as a sample of their own: w n_h / (n_h in the part), primary units."""
    labels, N = fold_strata(sample, n_folds, strata)
    factor = np.zeros(len(sample.y))
    for h in set(labels):
        n_h = len(set(sample.psu[labels == h]))
        taken = len(set(sample.psu[(labels == h) & keep]))
        if taken:
            factor[labels == h] = n_h / taken
    changes = {"w": (sample.w * factor)[keep], "stratum": labels[keep]}
    if N is not None:
        changes["n_population"] = N[keep]
    return sample.rows(keep, **changes)


@dataclass
class Refits:
    """Estimates on the folds (K, m), on their complements (K, m) and on the whole sample (m,)."""

    held: np.ndarray | None
    kept: np.ndarray
    full: np.ndarray


def refit(candidate, sample, folds, hold_outs=True, strata="pooled"):
    """All fits of one candidate. ``strata`` is for the complements; hold-outs need the pooling."""
    K = int(folds.max()) + 1
    kept = np.array([candidate(part(sample, folds != k, K, strata)) for k in range(K)])
    held = None
    if hold_outs:
        held = np.array([candidate(part(sample, folds == k, K)) for k in range(K)])
    return Refits(held, kept, candidate(sample))


# --------------------------------------------------------------------------------------- scores


def naive(M, ht):
    """(1/K) sum_k (M(-k) - HT(k))^2, a domain; NaN where a hold-out lacks."""
    return np.mean((M.kept - ht.held) ** 2, axis=0)


def adjusted(M, ht):
    """Dong and Li: naive minus (1/K) sum h_k^2 - (2/K) sum (m_k - mbar) h_k."""
    h = ht.held - ht.held.mean(axis=0)
    m = M.kept - M.kept.mean(axis=0)
    return naive(M, ht) - np.mean(h**2, axis=0) + 2 * np.mean(m * h, axis=0)


def db_cv(M, R, variance, covariance, centre="full"):
    """(1/K) sum_k (M(-k) - Rbar)^2 - Var(R) + 2 Cov(R, M), a domain.

    centre: Rbar is the full sample's R ("full"), the mean over hold-outs R(k) ("held") or the mean
    over the complements R(-k) ("kept").
    """
    Rbar = {"full": lambda: R.full, "held": lambda: R.held.mean(axis=0)}.get(
        centre, lambda: R.kept.mean(axis=0)
    )()
    return np.mean((M.kept - Rbar) ** 2, axis=0) - variance + 2 * covariance


def sure(M, R, variance, covariance):
    """(M - R)^2 - Var(R) + 2 Cov(R, M) at the full sample."""
    return (M.full - R.full) ** 2 - variance + 2 * covariance


def split(M_train, ht_test):
    """(M(train) - HT(test))^2, a domain; the two parts come from ``part``."""
    return (M_train - ht_test) ** 2


def jackknife_covariance(R, M, phi):
    """phi (K-1)/K sum_k (R(-k) - mean) (M(-k) - mean), delete-a-group over the folds."""
    K = len(R.kept)
    r = R.kept - R.kept.mean(axis=0)
    m = M.kept - M.kept.mean(axis=0)
    return phi * (K - 1) / K * np.sum(r * m, axis=0)


def phi(R_direct, sample, strata="design", n_folds=None):
    """Var(R) over Var(R) without the finite population correction, a domain.

    strata="folds" takes the denominator over the strata pooled for folds, which is what the
    jackknife over those folds estimates.
    """
    m = R_direct.scores.shape[1]
    V = np.diag(direct.covariance(R_direct.scores, sample))
    other = sample
    if strata == "folds":
        labels, _ = fold_strata(sample, n_folds)
        other = sample.rows(np.ones(len(sample.y), dtype=bool), stratum=labels)
    W = np.diag(direct.covariance(R_direct.scores, other, correction=False))
    return np.divide(V, W, out=np.full(m, np.nan), where=W > 0)


def fold_factors(sample, folds):
    """c_h a unit: (K-1)/K sum_k n_hk / (n_h - n_hk), in primary units of its design stratum."""
    K = int(folds.max()) + 1
    factor = np.ones(len(sample.y))
    for h in set(sample.stratum):
        inside = sample.stratum == h
        n_h = len(set(sample.psu[inside]))
        n_hk = [len(set(sample.psu[inside & (folds == k)])) for k in range(K)]
        if max(n_hk) < n_h:
            factor[inside] = (K - 1) / K * sum(n / (n_h - n) for n in n_hk)
    return factor


def jackknife_phi(R_direct, sample, folds):
    """Var(R) over what deleting these folds one by one estimates without correction, a domain."""
    m = R_direct.scores.shape[1]
    V = np.diag(direct.covariance(R_direct.scores, sample))
    scaled = R_direct.scores * np.sqrt(fold_factors(sample, folds))[:, None]
    W = np.diag(direct.covariance(scaled, sample, correction=False))
    return np.divide(V, W, out=np.full(m, np.nan), where=W > 0)


def size_corrected(score, n_folds, phi=1.0):
    """A direct estimator's variance on n units over that on n (K-1)/K, (1/n - 1/N) each."""
    fraction = 1 - np.asarray(phi)
    return score * (1 - fraction) / (n_folds / (n_folds - 1) - fraction)


def mean_and_error(per_domain):
    """Mean over the domains that have a score, sd / sqrt(their number), that number."""
    seen = per_domain[np.isfinite(per_domain)]
    n = len(seen)
    return seen.mean(), (seen.std(ddof=1) / np.sqrt(n) if n > 1 else np.nan), n


def paired_difference(a, b):
    """The same of the differences, over the domains that both have."""
    return mean_and_error(a - b)


def choose_reference(variances):
    """The name with the smallest sum of variances over the domains where all exist."""
    names = list(variances)
    table = np.array([variances[name] for name in names])
    both = np.isfinite(table).all(axis=0)
    return names[int(np.argmin(table[:, both].sum(axis=1)))]


def dong_li_bounds(A, B, ht, variance, z=1.959963984540054):
    """Delta = adjusted_A - adjusted_B averaged, and the half width within which it is undecided."""
    delta = adjusted(A, ht) - adjusted(B, ht)
    mean, error, _ = mean_and_error(delta)
    K = len(A.kept)
    gap = A.kept - B.kept
    jack = (K - 1) / K * np.sum((gap - gap.mean(axis=0)) ** 2, axis=0)
    worst = np.mean((2 * np.sqrt(variance * jack))[np.isfinite(delta)])
    return mean, worst + z * error


# ----------------------------------------------------------------------------------- candidates


def direct_candidate(name, population, **options):
    """A direct estimator as a callable; NaN in domains without a unit for those with no model."""

    def fit(sample):
        return direct.ESTIMATORS[name](sample, population, **options).estimate

    return fit


def restricted_score(sigma2, z, d, X):
    """Derivative in sigma2 of the restricted log-likelihood, dense: -tr(P)/2 + z'PPz/2."""
    Vi = np.diag(1 / (d + sigma2))
    P = Vi - Vi @ X @ np.linalg.solve(X.T @ Vi @ X, X.T @ Vi)
    Pz = P @ z
    return -np.trace(P) / 2 + Pz @ Pz / 2


def restricted_log_likelihood(sigma2, z, d, X):
    V = np.diag(d + sigma2)
    Vi = np.linalg.inv(V)
    XVX = X.T @ Vi @ X
    r = z - X @ np.linalg.solve(XVX, X.T @ Vi @ z)
    return -0.5 * (np.linalg.slogdet(V)[1] + np.linalg.slogdet(XVX)[1] + r @ Vi @ r)


def reml_variance(z, d, X):
    """The global restricted optimum: sign changes of the score on a grid, then brackets."""
    top = 20 * max(np.var(z), np.median(d))
    grid = np.concatenate([[0.0], np.geomspace(1e-8 * top, top, 200)])
    score = np.array([restricted_score(s, z, d, X) for s in grid])
    roots = [0.0]
    for a, b, fa, fb in zip(grid[:-1], grid[1:], score[:-1], score[1:]):
        if fa > 0 >= fb:
            roots.append(optimize.brentq(restricted_score, a, b, (z, d, X), xtol=1e-14 * top))
    values = [restricted_log_likelihood(s, z, d, X) for s in roots]
    return roots[int(np.argmax(values))]


def fay_herriot(z, d, X, sigma2=None):
    """EBLUP under REML for all rows of X; rows with z or d missing get the synthetic value.

    Returns (estimates, sigma2, gamma) with gamma 0 where out of sample.
    """
    seen = np.isfinite(z) & np.isfinite(d)
    zs, ds, Xs = z[seen], d[seen], X[seen]
    if sigma2 is None:
        sigma2 = reml_variance(zs, ds, Xs)
    Vi = np.diag(1 / (ds + sigma2))
    beta = np.linalg.solve(Xs.T @ Vi @ Xs, Xs.T @ Vi @ zs)
    gamma = np.zeros(len(z))
    gamma[seen] = sigma2 / (sigma2 + ds)
    synthetic = X @ beta
    return synthetic + gamma * np.where(seen, z - synthetic, 0.0), sigma2, gamma


def fay_herriot_inputs(name, sample, population, whole=None):
    """z, smoothed d and the smoothed covariance with HT of a direct estimator."""
    z = direct.ESTIMATORS[name](sample, population)
    ht = direct.horvitz_thompson(sample, population)
    smooth = smoothed_variances.smoothed_variances(z, ht, sample, population, whole)
    estimate = np.where(np.isfinite(smooth.d), z.estimate, np.nan)
    return estimate, smooth


def fay_herriot_candidate(name, population, X, whole=None):
    """REML Fay-Herriot on a direct estimator with smoothed variances, as a callable.

    whole : where the kurtosis comes from, see smoothed_variances.smoothed_variances.
    """

    def fit(sample):
        z, smooth = fay_herriot_inputs(name, sample, population, whole)
        return fay_herriot(z, smooth.d, X)[0]

    return fit


def predictor_slope(z, d, X, fixed_variance=False, step=1e-4):
    """dM_i/dz_i of the Fay-Herriot predictor by central differences, the d_i held.

    fixed_variance=True holds sigma2 too (gamma_i plus the part through beta); otherwise REML is
    solved again.
    """
    sigma2 = reml_variance(*(a[np.isfinite(z)] for a in (z, d, X)))
    slope = np.full(len(z), np.nan)
    for i in np.flatnonzero(np.isfinite(z)):
        h = step * np.sqrt(d[i])
        up, down = z.copy(), z.copy()
        up[i] += h
        down[i] -= h
        s = sigma2 if fixed_variance else None
        slope[i] = (fay_herriot(up, d, X, s)[0][i] - fay_herriot(down, d, X, s)[0][i]) / (2 * h)
    return slope
