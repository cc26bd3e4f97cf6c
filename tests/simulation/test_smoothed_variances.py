"""pybridge's smoothed variances in designs whose domains cut across strata and clusters."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from tests.simulation import populations

REPETITIONS = 150
ESTIMATORS = {
    "ht": pb.horvitz_thompson,
    "hajek": pb.hajek,
    "greg": lambda *a, **k: pb.generalized_regression(*a, auxiliary=["f"], **k),
}


def stratified(fraction, **options):
    def draw(pop, rng):
        rows, w, N_h = populations.stratified_sample(pop, fraction, rng, **options)
        columns = {"w": w, "h": pop["stratum"][rows], "psu": pop["cluster"][rows], "fpc": N_h}
        words = {"strata": "h", "fpc": "fpc", "ids": "psu" if options else None}
        return rows, columns, words

    return draw


def poisson(pop, rng):
    rows, w = populations.poisson_sample(pop, 400, rng, np.exp(0.4 * pop["f"]))
    return rows, {"w": w}, {"pps": "poisson"}


DESIGNS = {
    "simple random": (dict(total=4000), stratified(0.1)),
    "binary": (dict(total=4000, binary=True, mean=0.0), stratified(0.1)),
    "strata across": (dict(total=4000, n_strata=3), stratified([0.06, 0.1, 0.2])),
    "clusters": (
        dict(total=5000, n_strata=2, cluster_size=5, cluster_sd=0.4),
        stratified(0.1, unit="cluster"),
    ),
    "poisson": (dict(total=4000), poisson),
}


def simulate(kind, seed=1):
    """Errors, smoothed variances (repetitions, m) of every estimator."""
    options, draw = DESIGNS[kind]
    pop = populations.population(16, seed=3, **{"spread": 0.5, "mean": 2.0, **options})
    theta, F, N = populations.truth(pop)
    names = np.array([f"d{i:02d}" for i in range(len(N))])
    totals = pd.DataFrame({"d": names, "N": N, "f": F})
    population = pb.population(totals, domain="d", size="N", auxiliary_means=["f"])
    rng = np.random.default_rng(seed)
    found = {name: ([], []) for name in ESTIMATORS}
    for _ in range(REPETITIONS):
        rows, columns, words = draw(pop, rng)
        units = {"y": pop["y"][rows], "f": pop["f"][rows], "d": names[pop["domain"][rows]]}
        design = pb.survey_design(pd.DataFrame({**units, **columns}), weights="w", **words)
        for name, function in ESTIMATORS.items():
            result = function(design, population, outcome="y", domain="d", variance="smoothed")
            seen = result.n_labelled > 0
            assert np.all(result.variance[seen] > 0)
            found[name][0].append(np.where(seen, result.estimate - theta, np.nan))
            found[name][1].append(result.variance)
    return {name: (np.array(e), np.array(d)) for name, (e, d) in found.items()}


@pytest.mark.parametrize("kind", DESIGNS)
def test_intervals_from_smoothed_variances_cover(kind):
    # Normal intervals over 16 domains of about 10 to 60 labels.
    for name, (error, d) in simulate(kind).items():
        missing = np.isnan(error)
        inside = np.where(missing, np.nan, np.abs(error) <= 1.96 * np.sqrt(d))
        share = np.nanmean(inside, axis=1)
        monte_carlo = share.std(ddof=1) / np.sqrt(REPETITIONS)
        assert monte_carlo < 0.007
        assert share.mean() + 2 * monte_carlo > 0.93, name
        assert share.mean() - 2 * monte_carlo < 0.97, name
        # No domain is told a variance that is far from its own.
        ratio = np.nanmean(d, axis=0) / np.nanmean(error**2, axis=0)
        assert 0.8 < ratio.mean() < 1.4, name
        assert 0.5 < ratio.min() and ratio.max() < 2.5, name
