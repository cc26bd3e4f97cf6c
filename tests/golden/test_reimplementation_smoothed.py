"""pybridge's smoothed and pooled variances are those of the slow twin, in every kind of design."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from tests.simulation import populations
from validation.reimplementations import direct, smoothed_variances

RTOL = 1e-10
ESTIMATORS = {
    "ht": pb.horvitz_thompson,
    "hajek": pb.hajek,
    "ppi": lambda *a, **k: pb.prediction_powered(*a, prediction="f", **k),
    "greg": lambda *a, **k: pb.generalized_regression(*a, auxiliary=["f"], **k),
}
# What the population is, how it is sampled, how the sample is described.
DESIGNS = {
    "domains are strata": (dict(domain_is_stratum=True), "strata", dict(strata="h", fpc="fpc")),
    "strata across": (dict(n_strata=3), "strata", dict(strata="h", fpc="fpc")),
    "clusters": (
        dict(n_strata=2, cluster_size=5, cluster_sd=0.4),
        "clusters",
        dict(strata="h", fpc="fpc", ids="psu"),
    ),
    "poisson": (dict(), "poisson", dict(pps="poisson")),
}
OUTCOMES = ("normal", "binary", "skewed")


def setting(kind, outcome):
    """The twin's sample and population, and pybridge's design and population."""
    options, how, words = DESIGNS[kind]
    options = {"level_sd": 1.0, "spread": 1.0, **options}
    pop = populations.population(10, 2500, seed=5, binary=outcome == "binary", **options)
    many = outcome == "skewed"  # tails are seen in many units only
    if many:
        pop["y"] = np.exp(pop["y"])
    rng = np.random.default_rng(4)
    given = {"lonely": "remove"}
    if how == "poisson":
        rows, w = populations.poisson_sample(pop, 400 if many else 120, rng, np.exp(0.4 * pop["f"]))
        given, fpc = {"poisson": True}, np.nan
    else:
        unit = "cluster" if how == "clusters" else None
        part = 0.16 if many else 0.03 if kind == "domains are strata" else 0.06
        rows, w, fpc = populations.stratified_sample(pop, part, rng, least=1, unit=unit)
        given.update(stratum=pop["stratum"][rows], n_population=fpc)
        given.update({} if unit is None else {"psu": pop["cluster"][rows]})
        words = {**words, "lonely_psu": "remove"}
    _, F, N = populations.truth(pop)
    domain, f = pop["domain"][rows], pop["f"][rows]
    sample = direct.Sample(y=pop["y"][rows], w=w, domain=domain, F=f, **given)
    names = np.array([f"d{i}" for i in range(len(N))])
    units = {"y": sample.y, "f": f, "w": w, "fpc": fpc, "d": names[domain]}
    units.update(h=pop["stratum"][rows], psu=pop["cluster"][rows])
    design = pb.survey_design(pd.DataFrame(units), weights="w", **words)
    totals = pb.population(
        pd.DataFrame({"d": names, "N": N, "f": F}), domain="d", size="N", auxiliary_means=["f"]
    )
    return sample, direct.Population(N, F), design, totals


def twin(name, sample, population, method):
    """The slow computation of one estimator's variances."""
    size = population.N
    if name == "hajek":
        size = np.bincount(sample.domain, sample.w, minlength=len(size))
    estimator = direct.ESTIMATORS[name](sample, population)
    ht = direct.horvitz_thompson(sample, population)
    return smoothed_variances.smoothed_variances(
        estimator, ht, sample, population, size=size, method=method
    )


@pytest.mark.parametrize("method", ["smoothed", "pooled"])
@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("kind", DESIGNS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_variances_are_the_twins(name, kind, outcome, method):
    sample, population, design, totals = setting(kind, outcome)
    expected = twin(name, sample, population, method)
    result = ESTIMATORS[name](design, totals, outcome="y", domain="d", variance=method)
    np.testing.assert_allclose(result.variance_weight, expected.B, rtol=RTOL, atol=1e-13)
    np.testing.assert_allclose(result.variance, expected.d, rtol=RTOL)
    seen = result.n_labelled > 0
    square = (expected.d * expected.d_ht)[seen]
    off = (result.covariance_ht - expected.covariance_ht)[seen]
    assert np.all(np.abs(off) <= RTOL * np.sqrt(square))
    assert np.all(result.covariance_ht[seen] ** 2 <= square * (1 + 1e-12))
    plain = ESTIMATORS[name](design, totals, outcome="y", domain="d")
    np.testing.assert_array_equal(result.estimate, plain.estimate)


def test_the_settings_show_what_they_are_there_for():
    # Tails that count, and a number of units that is free but where domains are strata.
    for kind in DESIGNS:
        found = {}
        for outcome in OUTCOMES:
            sample, population, _, _ = setting(kind, outcome)
            found[outcome] = twin("greg", sample, population, "smoothed")
        assert found["binary"].tails == 0.0 and found["skewed"].tails > 0.3
        free = found["skewed"].free
        assert np.all(free == 0) if kind == "domains are strata" else np.all(free > 0.5)
    assert found["skewed"].kurtosis > found["normal"].kurtosis


def test_a_domain_of_one_unit_takes_the_pooled_variance():
    sample, population, design, totals = setting("domains are strata", "binary")
    single = np.bincount(sample.domain, minlength=10) == 1
    assert single.any()
    smoothed = pb.horvitz_thompson(design, totals, outcome="y", domain="d", variance="smoothed")
    pooled = pb.horvitz_thompson(design, totals, outcome="y", domain="d", variance="pooled")
    np.testing.assert_allclose(smoothed.variance[single], pooled.variance[single], rtol=1e-12)
    assert np.all(smoothed.variance[single] > 0)
