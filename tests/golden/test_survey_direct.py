"""pybridge's direct estimates, covariances and aggregates are those of R's survey."""

from __future__ import annotations

import numpy as np
import pytest

import pybridge as pb
from validation.cases.survey import CASES, load

# Two float64 routes through sums of at most 200 terms; covariances relative to the two variances.
RTOL = 1e-10
NOISE = 1e-25  # of a variance that is 0 but for rounding

ESTIMATORS = {
    "ht": pb.horvitz_thompson,
    "hajek": pb.hajek,
    "ppi": lambda *a, **k: pb.prediction_powered(*a, prediction="f", **k),
    "greg": lambda *a, **k: pb.generalized_regression(*a, auxiliary=["f"], **k),
    "greg2": lambda *a, **k: pb.generalized_regression(*a, auxiliary=["f", "g"], **k),
    "greg_within": lambda *a, **k: pb.generalized_regression(
        *a, auxiliary=["f"], slope="within", **k
    ),
    "greg_fixed": lambda *a, **k: pb.generalized_regression(*a, auxiliary=["f"], slope=0.5, **k),
    "greg_domain": lambda *a, **k: pb.generalized_regression(
        *a, auxiliary=["f"], slope="domain", **k
    ),
}


def described(case):
    """The case in pybridge's words."""
    columns = case.columns
    options = {key: columns[key] or None for key in ("strata", "ids", "fpc", "pps")}
    design = pb.survey_design(case.units, weights="w", lonely_psu=columns["lonely_psu"], **options)
    population = pb.population(
        case.totals,
        domain="domain",
        size="N",
        auxiliary_means=["f", "g"],
        taxonomy=["group", "domain"],
    )
    return design, population


def estimates(case, estimator):
    design, population = described(case)
    result = ESTIMATORS[estimator](design, population, outcome="y", domain=case.columns["domain"])
    frame = result.to_frame()
    assert list(frame["domain"]) == case.domains
    return result, frame


def every_estimate():
    return [(name, estimator) for name in CASES.index for estimator in load(name).estimators]


@pytest.mark.parametrize(("name", "estimator"), every_estimate())
def test_estimates_and_their_covariance(name, estimator):
    case = load(name)
    result, frame = estimates(case, estimator)
    expected = case.answer(estimator, "estimate", case.domains)
    np.testing.assert_allclose(frame["estimate"], expected, rtol=RTOL)

    V = case.covariance(estimator)
    scale = np.sqrt(np.outer(np.diag(V), np.diag(V)))
    mine = np.array(result.covariance())
    # R calls the variance of a ratio of one unit 0; here it does not exist.
    exists = np.ones(len(V), dtype=bool)
    if estimator == "hajek":
        exists = case.answer("", "n_labelled", case.domains) > 1
        assert frame["standard_error"][~exists].isna().all()
    error = np.abs(mine - V)[np.ix_(exists, exists)]
    assert np.all(error <= (RTOL * scale + NOISE)[np.ix_(exists, exists)])
    np.testing.assert_allclose(
        frame["standard_error"][exists], np.sqrt(np.diag(V))[exists], rtol=RTOL
    )

    ht_variance = case.answer("ht", "se", case.domains) ** 2
    expected = ht_variance
    if estimator != "ht":
        expected = case.answer(estimator, "covariance_ht", case.domains)
    error = np.abs(frame["covariance_ht"] - expected)[exists]
    assert np.all(error <= (RTOL * np.sqrt(np.diag(V) * ht_variance) + NOISE)[exists])


@pytest.mark.parametrize(("name", "estimator"), every_estimate())
def test_aggregates(name, estimator):
    case = load(name)
    result, _ = estimates(case, estimator)
    # A group's Hajek mean is the ratio mean of the group, not the mean of its domains' means.
    estimator = "hajek_of_group" if estimator == "hajek" else estimator
    for level in (None, "group"):
        frame = result.aggregate(level).to_frame()
        keys = [f"@{label}" for label in frame["group"]]
        assert len(keys) == (1 if level is None else case.totals["group"].nunique())
        expected = case.answer(estimator, "estimate", keys)
        np.testing.assert_allclose(frame["estimate"], expected, rtol=RTOL)
        expected = case.answer(estimator, "se", keys)
        np.testing.assert_allclose(frame["standard_error"], expected, rtol=RTOL)


@pytest.mark.parametrize("name", CASES.index)
def test_counts_and_degrees_of_freedom(name):
    case = load(name)
    _, frame = estimates(case, "ht")
    expected = case.answer("", "n_labelled", case.domains)
    np.testing.assert_array_equal(frame["n_labelled"], expected)
    expected = np.maximum(case.answer("", "df", case.domains), 1)
    np.testing.assert_array_equal(frame["degrees_of_freedom"], expected)


@pytest.mark.parametrize("name", CASES.index)
@pytest.mark.parametrize("estimator", ["greg", "greg2", "greg_within", "greg_fixed"])
def test_coefficients(name, estimator):
    case = load(name)
    result, _ = estimates(case, estimator)
    expected = case.coefficients(estimator)
    assert len(expected) == (3 if estimator == "greg2" else 2)
    for row in np.asarray(result.coefficients).reshape(-1, len(expected)):
        np.testing.assert_allclose(row, expected, rtol=RTOL)


@pytest.mark.parametrize("name", [n for n in CASES.index if CASES.loc[n, "pps"] == ""])
@pytest.mark.parametrize(("estimator", "like"), [("greg", "calibrate"), ("greg2", "calibrate2")])
def test_the_whole_population_is_that_of_calibrate(name, estimator, like):
    case = load(name)
    result, _ = estimates(case, estimator)
    value = result.aggregate().to_frame()["estimate"]
    np.testing.assert_allclose(value, case.answer(like, "estimate", ["@all"]), rtol=RTOL)


def test_a_lonely_stratum_is_refused_by_default():
    case = load("lonely_remove")
    with pytest.raises(pb.InputError) as caught:
        pb.survey_design(case.units, weights="w", strata="stratum", ids="psu")
    assert caught.value.field is not None and caught.value.hint


def test_a_stratum_of_one_unit_taken_whole_is_not_lonely():
    # As in R: its variance is 0 whatever the rule.
    result, frame = estimates(load("census"), "ht")
    assert np.isfinite(frame["standard_error"]).all()


def test_order_of_rows_does_not_matter():
    case = load("clusters")
    before, _ = estimates(case, "greg2")
    case.units = case.units.sample(frac=1.0, random_state=5)
    after, _ = estimates(case, "greg2")
    np.testing.assert_allclose(after.estimate, before.estimate, rtol=1e-12)
    np.testing.assert_allclose(after.variance, before.variance, rtol=1e-12)
