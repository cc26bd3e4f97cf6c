"""Seeded finite populations and samples of them, for simulations of design-based claims.

A population is a dict of arrays: y, f (n,), domain codes 0..m-1, stratum codes, cluster codes; a
sample is the row numbers drawn and their weights. Nothing here estimates anything.
"""

from __future__ import annotations

import numpy as np


def domain_sizes(n_domains, total, rng, spread=0.8):
    """Log-normal sizes that add up to about ``total``, each at least 20."""
    share = np.exp(spread * rng.standard_normal(n_domains))
    return np.maximum(20, np.round(total * share / share.sum()).astype(int))


def population(
    n_domains=12,
    total=3000,
    *,
    seed,
    binary=False,
    correlation=0.6,
    level_sd=0.6,
    n_strata=1,
    domain_is_stratum=False,
    cluster_size=None,
    cluster_sd=0.0,
    mean=1.0,
    spread=0.8,
):
    """Units in domains: y = level of the domain + auxiliary + noise, strata across or the domains.

    binary: y is 0 or 1 with that expectation squeezed into (0.1, 0.9). cluster_size: mean size of
    clusters that cut across domains; cluster_sd their effect on y.
    """
    rng = np.random.default_rng(seed)
    sizes = domain_sizes(n_domains, total, rng, spread)
    domain = np.repeat(np.arange(n_domains), sizes)
    n = len(domain)
    f = rng.standard_normal(n) + 0.5 * rng.standard_normal(n_domains)[domain]
    stratum = domain.copy() if domain_is_stratum else rng.integers(n_strata, size=n)
    cluster = np.arange(n)
    if cluster_size:
        cluster = rng.integers(max(1, n // cluster_size), size=n)
        # Half of the units move with their domain, so that clusters hold domains unevenly.
        cluster = np.where(rng.random(n) < 0.5, cluster, (cluster + domain) % (n // cluster_size))
        stratum = cluster % n_strata
    noise = rng.standard_normal(n) * np.sqrt(1 - correlation**2)
    level = mean + level_sd * rng.standard_normal(n_domains)
    y = level[domain] + correlation * f + noise
    if not domain_is_stratum and n_strata > 1:
        y = y + 0.5 * (stratum - stratum.mean())
    y = y + cluster_sd * rng.standard_normal(cluster.max() + 1)[cluster]
    if binary:
        chance = 0.1 + 0.8 / (1 + np.exp(-(y - y.mean())))
        y = (rng.random(n) < chance).astype(float)
    return {"y": y, "f": f, "domain": domain, "stratum": stratum, "cluster": cluster}


def truth(pop):
    """Domain means of y and f, and sizes."""
    N = np.bincount(pop["domain"]).astype(float)
    return (
        np.bincount(pop["domain"], pop["y"]) / N,
        np.bincount(pop["domain"], pop["f"]) / N,
        N,
    )


def stratified_sample(pop, fraction, rng, by="stratum", unit=None, least=2):
    """Rows and weights of a stratified simple random sample of units or of whole ``unit`` clusters.

    fraction : one number, or one a stratum. Returns (rows, weights, N_h a row).
    """
    stratum = pop[by]
    fraction = np.broadcast_to(fraction, (stratum.max() + 1,))
    rows, weights, known = [], [], []
    for h in np.unique(stratum):
        inside = np.flatnonzero(stratum == h)
        labels = inside if unit is None else np.unique(pop[unit][inside])
        n_h = min(len(labels), max(least, int(round(fraction[h] * len(labels)))))
        drawn = rng.choice(labels, n_h, replace=False)
        chosen = drawn if unit is None else inside[np.isin(pop[unit][inside], drawn)]
        rows.append(chosen)
        weights.append(np.full(len(chosen), len(labels) / n_h))
        known.append(np.full(len(chosen), float(len(labels))))
    return np.concatenate(rows), np.concatenate(weights), np.concatenate(known)


def poisson_sample(pop, expected, rng, size):
    """Rows and weights of a Poisson sample with probabilities in proportion to ``size``."""
    p = np.minimum(1.0, expected * size / size.sum())
    rows = np.flatnonzero(rng.random(len(p)) < p)
    return rows, 1 / p[rows]
