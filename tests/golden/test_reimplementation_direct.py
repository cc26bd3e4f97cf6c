"""The slow reimplementation of the direct estimators gives what R's survey gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from validation.cases.survey import CASES, load
from validation.reimplementations import direct

# Two float64 routes through sums of at most 200 terms; covariances relative to the two variances.
RTOL = 1e-10
NOISE = 1e-25  # of a variance that is 0 but for rounding


def sample_of(case, auxiliary):
    sample = direct.Sample(
        y=case.units["y"],
        w=case.units["w"],
        domain=pd.Index(case.totals["domain"]).get_indexer(case.column("domain")),
        F=case.units[auxiliary],
        stratum=case.column("strata"),
        psu=case.column("ids"),
        poisson=case.columns["pps"] == "poisson",
        lonely=case.columns["lonely_psu"],
    )
    fpc = case.column("fpc")
    if fpc is not None:
        sample.n_population = direct.n_population_from_fpc(fpc, sample.stratum, sample.psu)
    return sample, direct.Population(case.totals["N"], case.totals[auxiliary])


OPTIONS = {
    "greg": {},
    "greg2": {},
    "greg_within": {"slope": "within"},
    "greg_fixed": {"slope": 0.5},
    "greg_domain": {"slope": "domain"},
}


def estimate(name, sample, population):
    if name in OPTIONS:
        return direct.generalized_regression(sample, population, **OPTIONS[name])
    return direct.ESTIMATORS[name](sample, population)


def every_estimate():
    return [(name, estimator) for name in CASES.index for estimator in load(name).estimators]


@pytest.mark.parametrize(("name", "estimator"), every_estimate())
def test_one_estimator_of_one_case(name, estimator):
    case = load(name)
    sample, population = sample_of(case, ["f", "g"] if estimator == "greg2" else ["f"])
    mine = estimate(estimator, sample, population)
    expected = case.answer(estimator, "estimate", case.domains)
    np.testing.assert_allclose(mine.estimate, expected, rtol=RTOL)

    V = direct.covariance(mine.scores, sample)
    scale = np.sqrt(np.outer(np.diag(V), np.diag(V)))
    assert np.all(np.abs(V - case.covariance(estimator)) <= RTOL * scale + NOISE)

    if estimator != "ht":
        ht = direct.horvitz_thompson(sample, population)
        mixed = np.diag(direct.covariance_between(mine, ht, sample))
        scale = np.sqrt(np.diag(V) * direct.variances(ht, sample))
        error = np.abs(mixed - case.answer(estimator, "covariance_ht", case.domains))
        assert np.all(error <= RTOL * scale + NOISE)

    for groups in (["all"] * len(case.domains), list(case.totals["group"])):
        labels, value, matrix = direct.aggregate(mine, sample, population, groups)
        keys = [f"@{label}" for label in labels]
        np.testing.assert_allclose(value, case.answer(estimator, "estimate", keys), rtol=RTOL)
        se = np.sqrt(np.diag(matrix))
        np.testing.assert_allclose(se, case.answer(estimator, "se", keys), rtol=RTOL)

    slopes = case.coefficients(estimator)
    if len(slopes):
        np.testing.assert_allclose(mine.coefficients[0], slopes, rtol=RTOL)


@pytest.mark.parametrize("name", CASES.index)
def test_counts_and_degrees_of_freedom(name):
    case = load(name)
    sample, _ = sample_of(case, ["f"])
    m = len(case.domains)
    counts = direct.membership(sample.domain, m).sum(axis=0)
    np.testing.assert_array_equal(counts, case.answer("", "n_labelled", case.domains))
    df = np.maximum(case.answer("", "df", case.domains), 1)
    np.testing.assert_array_equal(direct.degrees_of_freedom(sample, m), df)


@pytest.mark.parametrize("name", [n for n in CASES.index if CASES.loc[n, "pps"] == ""])
@pytest.mark.parametrize(
    ("estimator", "auxiliary"), [("calibrate", ["f"]), ("calibrate2", ["f", "g"])]
)
def test_the_whole_population_is_calibrate_with_g_weights(name, estimator, auxiliary):
    case = load(name)
    sample, population = sample_of(case, auxiliary)
    mine = direct.generalized_regression(sample, population)
    _, value, _ = direct.aggregate(mine, sample, population, ["all"] * len(case.domains))
    np.testing.assert_allclose(value, case.answer(estimator, "estimate", ["@all"]), rtol=RTOL)
    scores = direct.g_weighted_scores_of_the_whole(mine, sample, population)
    se = np.sqrt(direct.covariance(scores, sample)[0])
    np.testing.assert_allclose(se, case.answer(estimator, "se", ["@all"]), rtol=RTOL)


def test_a_stratum_of_one_unit_is_refused_by_default():
    sample, population = sample_of(load("lonely_remove"), ["f"])
    ht = direct.horvitz_thompson(sample, population)
    with pytest.raises(ValueError, match="one primary unit"):
        direct.covariance(ht.scores, replace(sample, lonely="fail"))


def test_fpc_as_size_and_as_fraction_say_the_same():
    size, _ = sample_of(load("stratified_size"), ["f"])
    fraction, _ = sample_of(load("stratified_fraction"), ["f"])
    np.testing.assert_allclose(fraction.n_population, size.n_population, rtol=1e-14)
