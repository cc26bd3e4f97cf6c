"""GREG with a fixed slope is HT at 0 and PPI at 1; with an intercept it differs by a known term."""

from __future__ import annotations

import numpy as np
import pytest

import pybridge as pb
from validation.cases.survey import CASES, load

RTOL = 1e-12


def described(name):
    case = load(name)
    columns = case.columns
    options = {key: columns[key] or None for key in ("strata", "ids", "fpc", "pps")}
    design = pb.survey_design(case.units, weights="w", lonely_psu=columns["lonely_psu"], **options)
    population = pb.population(case.totals, domain="domain", size="N", auxiliary_means=["f"])
    return case, (design, population), {"outcome": "y", "domain": columns["domain"]}


def like(slope, data, words):
    if slope == 0.0:
        return pb.horvitz_thompson(*data, **words)
    return pb.prediction_powered(*data, prediction="f", **words)


@pytest.mark.parametrize("name", CASES.index)
@pytest.mark.parametrize("slope", [0.0, 1.0])
def test_without_intercept(name, slope):
    _, data, words = described(name)
    greg = pb.generalized_regression(*data, auxiliary=["f"], slope=slope, intercept=False, **words)
    other = like(slope, data, words)
    np.testing.assert_allclose(greg.estimate, other.estimate, rtol=RTOL)
    np.testing.assert_allclose(greg.variance, other.variance, rtol=RTOL)
    np.testing.assert_allclose(greg.covariance_ht, other.covariance_ht, rtol=RTOL)


@pytest.mark.parametrize("name", CASES.index)
@pytest.mark.parametrize("slope", [0.0, 1.0])
def test_with_intercept(name, slope):
    case, data, words = described(name)
    greg = pb.generalized_regression(*data, auxiliary=["f"], slope=slope, **words)
    other = like(slope, data, words)
    weights = case.units["w"].groupby(case.column("domain")).sum().loc[case.domains].to_numpy()
    missing = 1 - weights / case.totals["N"].to_numpy()
    expected = other.estimate + greg.coefficients[:, 0] * missing
    np.testing.assert_allclose(greg.estimate, expected, rtol=RTOL)
