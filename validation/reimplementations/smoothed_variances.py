"""Smoothed element variances of small domains, the slow and obvious way; a twin to test against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from validation.reimplementations.direct import Direct, membership, variances


@dataclass
class Smoothed:
    """Smoothed d (m,), covariance with HT (m,), HT's d (m,), and what went into them."""

    d: np.ndarray
    covariance_ht: np.ndarray
    d_ht: np.ndarray
    element: np.ndarray
    smoothed_element: np.ndarray
    s0: float
    kurtosis: float
    tau2: float
    tails: float
    B: np.ndarray
    free: np.ndarray
    design_effect: float


def residual_of(direct, sample):
    """y - x'b in another sample, by the working model of ``direct`` (b = 0 where it has none)."""
    B = direct.coefficients
    if B is None:
        return sample.y - sample.F[:, 0] if direct.is_difference else sample.y
    X = np.hstack([np.ones((len(sample.y), B.shape[1] - sample.F.shape[1])), sample.F])
    return sample.y - np.sum(X * B[sample.domain], axis=1)


def element_moments(a, b, sample, m):
    """Within-domain element covariances n/(n-1) sum w (a - abar)(b - bbar) / sum w; NaN if n<2."""
    s = np.full(m, np.nan)
    for i in range(m):
        inside = sample.domain == i
        n = inside.sum()
        if n >= 2:
            w = sample.w[inside] / sample.w[inside].sum()
            da = a[inside] - w @ a[inside]
            db = b[inside] - w @ b[inside]
            s[i] = n / (n - 1) * np.sum(w * da * db)
    return s


def pooled_kurtosis(e, sample, m):
    """Kurtosis of the residuals about their weighted domain means, all domains with n >= 2."""
    second = fourth = total = 0.0
    for i in range(m):
        inside = sample.domain == i
        if inside.sum() >= 2:
            w = sample.w[inside]
            r = e[inside] - np.average(e[inside], weights=w)
            total += w.sum()
            second += np.sum(w * r**2)
            fourth += np.sum(w * r**4)
    return (fourth / total) / (second / total) ** 2 if second > 0 else np.nan


def tail_share(e, sample, m):
    """(kappa - 3) / (kappa - 1) of the residuals within domains, in [0, 1].

    The mean fourth moment and the mean squared variance of domains of n independent draws are two
    linear equations in sigma^4 kappa and sigma^4, which the weighted averages over domains share.
    """
    rows, right, total = np.zeros((2, 2)), np.zeros(2), 0.0
    for i in range(m):
        inside = sample.domain == i
        n = int(inside.sum())
        if n < 2:
            continue
        w = sample.w[inside]
        r = e[inside] - np.average(e[inside], weights=w)
        s2 = n / (n - 1) * np.average(r**2, weights=w)
        fourth = [(n - 1) * (n * n - 3 * n + 3) / n**3, 3 * (n - 1) * (2 * n - 3) / n**3]
        square = [1 / n, 1 + 2 / (n - 1) - 3 / n]
        rows += w.sum() * np.array([fourth, square])
        right += w.sum() * np.array([np.average(r**4, weights=w), s2**2])
        total += w.sum()
    if total == 0 or right[0] == 0 or abs(np.linalg.det(rows / total)) < 1e-12:
        return 0.0
    with_kurtosis, plain = np.linalg.solve(rows, right)
    if with_kurtosis <= 3 * plain:
        return 0.0
    return 1.0 if plain <= 0 else (with_kurtosis - 3 * plain) / (with_kurtosis - plain)


def squared_means(b, noise, n, tails):
    """E b b' (m, 2, 2) of two domain means b (m, 2) that are noisy with covariances (m, 2, 2).

    Each one is shrunk to the mean over domains (weights n) by itself; the part ``tails`` of the
    square is the expectation that all domains share.
    """
    seen = np.flatnonzero(n > 0)
    share = n[seen] / n[seen].sum()
    centre = share @ b[seen]
    between = sum(
        p * (np.outer(b[i] - centre, b[i] - centre) - noise[i]) for p, i in zip(share, seen)
    )
    values, vectors = np.linalg.eigh(between)
    between = sum(max(v, 0) * np.outer(x, x) for v, x in zip(values, vectors.T))
    out = np.full((len(n), 2, 2), np.nan)
    for i in seen:
        top, low = np.diag(between), np.diag(noise[i])
        keep = np.array([t / (t + v) if t > 0 else 0.0 for t, v in zip(top, low)])
        best = centre + keep * (b[i] - centre)
        own = np.outer(best, best) + between * np.sqrt(np.outer(1 - keep, 1 - keep))
        out[i] = (1 - tails) * own + tails * (np.outer(centre, centre) + between)
    return out


def smoothed_variances(direct, ht, sample, population, whole=None, *, size=None, method="smoothed"):
    """Linear empirical Bayes on the within-domain element variances, then back to the design.

    The weights B_i come from the estimator's own residuals and act on the whole 2 x 2 matrix of
    (HT, estimator) elements. A_i = sum w (w - 1) / N_i^2 (for Hajek of the weights w N_i / Nhat_i,
    so that no multiple of them matters) turns an element variance into that of an estimate where
    the domain's number of units is fixed; where it is not, the squared mean residual b_i^2 comes
    in, free_i times. The pooled design effect is sum d_i over what independent draws
    would have, over the domains with two units or more. The covariance takes the geometric mean of
    the two design effects, so that the pair stays positive semidefinite.

    The domain's own parts of s_i^2 and b_i^2 count less the heavier the tails are, see tail_share;
    method="pooled" has one element variance for all and takes no notice of tails.

    whole : the sample that this one is part of, to take the kurtosis from: the pass over the units
    keeps fourth moments of the whole sample, not of every fold. The coefficients stay this part's.
    size : what turns scores into residuals, N_i (the estimated ones for Hajek).
    """
    m = len(population.N)
    D = membership(sample.domain, m)
    n = D.sum(axis=0)
    use = n >= 2
    N = np.where(n > 0, population.N if size is None else size, 1.0)
    A = sample.w**2 @ D / N**2 - sample.w @ D / (N * population.N)
    one = Direct(n, sample.w[:, None] * D / N, np.ones_like(sample.y))
    free = np.where(n > 0, variances(one, sample), 0) / np.where(A > 0, A, 1)
    free = np.where((A > 0) & (np.abs(free) > 1e-12), free, 0)
    kinds = {"z": (direct.residual, direct), "h": (ht.residual, ht)}
    s = {
        a + b: element_moments(kinds[a][0], kinds[b][0], sample, m)
        for a, b in (("z", "z"), ("h", "h"), ("h", "z"))
    }
    pooled = {key: np.sum((n[use] - 1) * v[use]) / np.sum(n[use] - 1) for key, v in s.items()}
    s0 = pooled["zz"]
    e, units = (direct.residual, sample) if whole is None else (residual_of(direct, whole), whole)
    kappa, tails = pooled_kurtosis(e, units, m), tail_share(e, units, m)
    V = s0**2 * (2 / (n[use] - 1) + (kappa - 3) / n[use])
    excess = (s["zz"][use] - s0) ** 2 - V
    tau2 = max(0.0, np.sum((n[use] - 1) * excess) / np.sum(n[use] - 1))
    B = np.zeros(m)
    if method == "pooled":
        tails = 0.0
    elif s0 > 0:
        B[use] = (1 - tails) * tau2 / (tau2 + V)
    smooth = {key: B * np.where(use, v, 0) + (1 - B) * pooled[key] for key, v in s.items()}
    spread = np.array([[smooth["hh"], smooth["hz"]], [smooth["hz"], smooth["zz"]]]).T
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.array([(sample.w * kinds[a][0]) @ D / (sample.w @ D) for a in "hz"]).T
    noise = spread / np.where(n > 0, n, 1)[:, None, None]
    squares = spread + free[:, None, None] * squared_means(mean, noise, n, tails)
    effect = []
    for k, a in enumerate("hz"):
        d = variances(kinds[a][1], sample)
        inside = np.maximum(1 - free[use] / n[use], 0) * s[a + a][use]
        simple = A[use] * (inside + free[use] * mean[use, k] ** 2)
        effect.append(np.sum(d[use]) / np.sum(simple))
    matrix = squares * A[:, None, None] * np.sqrt(np.outer(effect, effect))
    matrix[n == 0] = np.nan
    return Smoothed(
        d=matrix[:, 1, 1],
        covariance_ht=matrix[:, 0, 1],
        d_ht=matrix[:, 0, 0],
        element=s["zz"],
        smoothed_element=smooth["zz"],
        s0=s0,
        kurtosis=kappa,
        tau2=tau2,
        tails=tails,
        B=B,
        free=free,
        design_effect=effect[1],
    )
