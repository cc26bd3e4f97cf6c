"""The native fit is the maximum that base R finds, and that the slow reimplementation finds."""

from __future__ import annotations

import numpy as np
import pytest

from pybridge.tails.generalized_pareto import generalized_pareto
from validation.cases.gpd import answers, cases, scores
from validation.reimplementations import generalized_pareto as slow

# Base R polishes with Newton's method on closed forms: rounding is all that is left.
EXACT = 1e-11
# Golden section stops at the square root of rounding; differences of the likelihood likewise.
SLOW = 2e-6


@pytest.mark.parametrize(("name", "threshold"), cases())
def test_estimates_and_errors_are_base_r_s(name: str, threshold: float) -> None:
    fit = generalized_pareto(scores(name), threshold=threshold, engine="native")
    exact = answers(name, "R")[threshold, "exact"]
    assert fit.status == "converged"
    assert fit.n_exceedances == exact["n_exceedances"]
    assert fit.shape == pytest.approx(exact["shape"], rel=EXACT)
    assert fit.scale == pytest.approx(exact["scale"], rel=EXACT)
    assert -fit.log_likelihood == pytest.approx(exact["nllh"], rel=1e-13)
    assert fit.shape_standard_error == pytest.approx(exact["shape_se"], rel=1e-9)
    assert fit.scale_standard_error == pytest.approx(exact["scale_se"], rel=1e-9)
    assert fit.covariance[0, 1] == pytest.approx(exact["covariance"], rel=1e-9)


@pytest.mark.parametrize(("name", "threshold"), cases())
def test_no_r_fit_has_a_higher_likelihood(name: str, threshold: float) -> None:
    fit = generalized_pareto(scores(name), threshold=threshold, engine="native")
    for engine in ("evd", "ismev"):
        for variant in ("default", "tight"):
            answer = answers(name, engine)[threshold, variant]
            if "nllh" in answer:
                assert -fit.log_likelihood <= answer["nllh"] + 1e-9 * abs(answer["nllh"])


@pytest.mark.parametrize("engine", ["evd", "ismev"])
@pytest.mark.parametrize(("name", "threshold"), cases())
def test_r_with_tight_tolerances_is_near_the_exact_maximum(
    name: str, threshold: float, engine: str
) -> None:
    fit = generalized_pareto(scores(name), threshold=threshold, engine="native")
    tight = answers(name, engine)[threshold, "tight"]
    assert tight["shape"] == pytest.approx(fit.shape, abs=1e-5)
    assert tight["scale"] == pytest.approx(fit.scale, rel=1e-5)
    assert tight["shape_se"] == pytest.approx(fit.shape_standard_error, rel=1e-2)


@pytest.mark.parametrize(
    ("name", "threshold"), [("rain", 30), ("danish", 20), ("light", 0), ("heavy", 0)]
)
def test_the_slow_reimplementation_agrees(name: str, threshold: float) -> None:
    values = scores(name)
    fit = generalized_pareto(values, threshold=threshold, engine="native")
    excesses = values[values > threshold] - threshold
    shape, scale, value = slow.fit(excesses)
    assert fit.shape == pytest.approx(shape, abs=SLOW)
    assert fit.scale == pytest.approx(scale, rel=SLOW)
    assert fit.log_likelihood == pytest.approx(value, rel=1e-12)
    covariance = np.linalg.inv(slow.information(excesses, fit.shape, fit.scale))
    np.testing.assert_allclose(fit.covariance, covariance, rtol=1e-4)
    np.testing.assert_allclose(
        [fit.interval().lower, fit.interval().upper], slow.profile_interval(excesses), atol=1e-6
    )


def test_published_values_of_the_rain() -> None:
    """Coles (2001, section 4.4.1): 0.184 and 7.44, and his profile intervals."""
    fit = generalized_pareto(scores("rain"), threshold=30, engine="native")
    assert fit.shape == pytest.approx(0.18449903648, abs=2e-8)
    assert fit.scale == pytest.approx(7.44026906528, abs=4e-8)
    assert -fit.log_likelihood == pytest.approx(485.0937213139, abs=1e-9)
    profile = fit.interval("shape", kind="profile")
    assert (profile.lower, profile.upper) == pytest.approx((0.013562, 0.415440), abs=1e-6)
    levels = fit.return_level(100, observations_per_period=365, interval="profile")
    assert levels.estimate[0] == pytest.approx(106.328028, abs=1e-5)
    assert (levels.lower[0], levels.upper[0]) == pytest.approx((80.857464225, 184.98774715))
    delta = fit.return_level(100, observations_per_period=365)
    assert (delta.lower[0], delta.upper[0]) == pytest.approx((65.4802, 147.1759), abs=1e-3)
    assert delta.standard_error[0] ** 2 == pytest.approx(434.3357, abs=2e-3)


def test_published_values_of_the_danish_fires() -> None:
    """McNeil (1997): 0.50 and 6.98 over 10 (109 losses), 0.68 and 9.63 over 20 (36)."""
    ten = generalized_pareto(scores("danish"), threshold=10, engine="native")
    twenty = generalized_pareto(scores("danish"), threshold=20, engine="native")
    assert (ten.n_exceedances, twenty.n_exceedances) == (109, 36)
    assert (ten.shape, ten.scale) == pytest.approx((0.496985808, 6.975467844), abs=3e-7)
    assert (twenty.shape, twenty.scale) == pytest.approx((0.684152175, 9.635132778), abs=3e-7)
