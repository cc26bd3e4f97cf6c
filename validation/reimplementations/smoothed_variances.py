"""Smoothed element variances of small domains, the slow and obvious way; a twin to test against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from validation.reimplementations.direct import membership, variances


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
    B: np.ndarray
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


def smoothed_variances(direct, ht, sample, population, whole=None):
    """Linear empirical Bayes on the within-domain element variances, then back to the design.

    The weights B_i come from the estimator's own residuals and act on the whole 2 x 2 matrix of
    (HT, estimator) elements. A_i = sum w (w - 1) / N_i^2 turns an element variance into that of an
    estimate; the pooled design effect is sum d_i / sum A_i s_i^2 over the domains with two units or
    more. The covariance takes the geometric mean of the two design effects, so that the pair stays
    positive semidefinite.

    whole : the sample that this one is part of, to take the kurtosis from: the pass over the units
    keeps fourth moments of the whole sample, not of every fold. The coefficients stay this part's.
    """
    m = len(population.N)
    n = membership(sample.domain, m).sum(axis=0)
    use = n >= 2
    A = (sample.w * (sample.w - 1)) @ membership(sample.domain, m) / population.N**2
    kinds = {"z": (direct.residual, direct), "h": (ht.residual, ht)}
    s = {
        a + b: element_moments(kinds[a][0], kinds[b][0], sample, m)
        for a, b in (("z", "z"), ("h", "h"), ("h", "z"))
    }
    pooled = {key: np.sum((n[use] - 1) * v[use]) / np.sum(n[use] - 1) for key, v in s.items()}
    s0 = pooled["zz"]
    if whole is None:
        kappa = pooled_kurtosis(direct.residual, sample, m)
    else:
        kappa = pooled_kurtosis(residual_of(direct, whole), whole, m)
    V = s0**2 * (2 / (n[use] - 1) + (kappa - 3) / n[use])
    excess = (s["zz"][use] - s0) ** 2 - V
    tau2 = max(0.0, np.sum((n[use] - 1) * excess) / np.sum(n[use] - 1))
    B = np.zeros(m)
    B[use] = tau2 / (tau2 + V) if s0 > 0 else 0.0
    smooth = {key: B * np.where(use, v, 0) + (1 - B) * pooled[key] for key, v in s.items()}
    effect = {}
    for a in ("z", "h"):
        d = variances(kinds[a][1], sample)
        effect[a] = np.sum(d[use]) / np.sum(A[use] * s[a + a][use])
    seen = n > 0
    blank = np.where(seen, 1.0, np.nan)
    return Smoothed(
        d=blank * smooth["zz"] * A * effect["z"],
        covariance_ht=blank * smooth["hz"] * A * np.sqrt(effect["z"] * effect["h"]),
        d_ht=blank * smooth["hh"] * A * effect["h"],
        element=s["zz"],
        smoothed_element=smooth["zz"],
        s0=s0,
        kurtosis=kappa,
        tau2=tau2,
        B=B,
        design_effect=effect["z"],
    )
