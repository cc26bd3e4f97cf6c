"""What the adapter makes of sae's answers, failures among them; the answers are made up, no R."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from pybridge.smoothing._area_fit import AreaProblem
from pybridge.smoothing._area_model import fit_area_model
from pybridge.smoothing._sae import complete_options
from pybridge.smoothing._sae_reply import area_fit
from pybridge.smoothing._spec import FayHerriotSpec


@dataclass
class Reply:
    """The attributes of a reply of the door."""

    value: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    printed: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=lambda: {"R": "4.2.2", "sae": "1.3"})
    error: Any = None


def problem(m=20, outside=()):
    rng = np.random.default_rng(9)
    x = rng.normal(size=m)
    d = rng.uniform(0.1, 0.4, m)
    z = 3 + x + np.sqrt(0.5 + d) * rng.normal(size=m)
    z[list(outside)] = np.nan
    return AreaProblem(z, d, np.column_stack([np.ones(m), x]))


def spec(method="REML", mode="guarded"):
    return FayHerriotSpec(engine="sae", method=method, mode=mode, options=complete_options({}))


def answer(given, fit, **changes):
    """A reply that holds the numbers of a native fit."""
    sampled = ~np.isnan(given.estimate)
    value = {
        "convergence": np.array([True]),
        "iterations": np.array([4.0]),
        "at_zero": np.array([False]),
        "eblup": fit.estimate[sampled],
        "mse": fit.mse[sampled],
        "beta": fit.coefficients,
        "refvar": np.array([fit.model_variance]),
        "goodness": np.array([fit.log_likelihood, 1.0]),
        "goodness_names": ["loglike", "AIC"],
    }
    return Reply({**value, **changes})


def native(given, method="REML"):
    return fit_area_model(
        estimate=given.estimate,
        variance=given.variance,
        covariates=given.covariates,
        method=method,
    )


def test_an_ordinary_answer():
    given = problem()
    exact = native(given)
    fit = area_fit(given, spec(), answer(given, exact))
    assert (fit.engine, fit.status, fit.engine_status) == ("sae", "converged", "converged")
    np.testing.assert_array_equal(fit.estimate, exact.estimate)
    np.testing.assert_array_equal(fit.mse, exact.mse)
    np.testing.assert_allclose(fit.derivative, exact.derivative, rtol=1e-12)
    assert fit.exact["model_variance"] == exact.model_variance
    assert fit.exact["shortfall"] == pytest.approx(0.0, abs=1e-12)
    assert fit.criteria == {"loglike": exact.log_likelihood, "AIC": 1.0}
    assert fit.versions == {"R": "4.2.2", "sae": "1.3"}
    assert fit.iterations == 4 and fit.conditions == ()


def test_raw_adds_nothing():
    given = problem()
    fit = area_fit(given, spec(mode="raw"), answer(given, native(given)))
    assert fit.exact == {} and fit.status == "converged"


def test_its_iteration_limit_is_nan_with_its_words():
    given = problem()
    value = {
        "convergence": np.array([False]),
        "iterations": np.array([100.0]),
        "at_zero": np.array([False]),
    }
    words = "The fitting method does not converge.\n"
    fit = area_fit(given, spec(), Reply(value, warnings=(words,)))
    assert fit.status == fit.engine_status == "not_converged"
    assert np.isnan(fit.estimate).all() and np.isnan(fit.model_variance)
    assert fit.conditions[0] == "R warning: The fitting method does not converge."
    assert "100 iterations" in fit.conditions[1]
    assert fit.exact["model_variance"] > 0


@pytest.mark.parametrize(
    ("method", "found", "status"),
    [
        ("REML", 0.0, "not_converged"),
        ("ML", 0.0, "not_converged"),
        ("FH", 0.0, "not_converged"),
        ("REML", 1.00001, "converged"),
        ("FH", 1.00001, "converged"),
    ],
)
def test_an_answer_beside_the_optimum_is_found(method, found, status):
    given = problem()
    exact = native(given, method)
    there = np.array([found * exact.model_variance])
    fit = area_fit(given, spec(method), answer(given, exact, refvar=there))
    assert fit.status == status and fit.engine_status == "converged"
    assert fit.model_variance == there[0]
    assert fit.exact["model_variance"] == exact.model_variance
    assert any("optimum" in line for line in fit.conditions) == (status == "not_converged")


def test_a_boundary_that_is_one():
    given = problem()
    flat = AreaProblem(given.covariates @ [1.0, 2.0], given.variance, given.covariates)
    assert area_fit(flat, spec(), answer(flat, native(flat))).status == "boundary"


def test_a_moment_solution_at_zero_is_said():
    given = problem()
    flat = AreaProblem(given.covariates @ [1.0, 2.0], given.variance, given.covariates)
    reply = answer(
        flat, native(flat, "FH"), convergence=np.array([False]), at_zero=np.array([True])
    )
    fit = area_fit(flat, spec("FH"), reply)
    assert (fit.status, fit.engine_status) == ("boundary", "not_converged")
    assert "solution at 0" in fit.conditions[0]


def test_an_error_of_r_is_a_failed_fit_with_its_words():
    reply = Reply(error={"message": "system is computationally singular", "call": None})
    fit = area_fit(problem(), spec(), reply)
    assert (fit.status, fit.engine_status) == ("failed", "error")
    assert "computationally singular" in fit.conditions[-1]
    assert np.isnan(fit.mse).all()


def test_a_variance_that_is_no_number_is_a_failed_fit():
    given = problem()
    reply = answer(given, native(given), refvar=np.array([np.nan]))
    assert area_fit(given, spec(), reply).status == "failed"


def test_domains_without_estimates_take_the_prediction_of_the_shim():
    given = problem(outside=[3, 7])
    exact = native(given)
    more = {"synthetic_outside": np.array([1.5, 2.5]), "mse_outside": np.array([0.7, 0.8])}
    fit = area_fit(given, spec(), answer(given, exact, **more))
    np.testing.assert_array_equal(fit.estimate[[3, 7]], [1.5, 2.5])
    np.testing.assert_array_equal(fit.synthetic[[3, 7]], [1.5, 2.5])
    np.testing.assert_array_equal(fit.mse[[3, 7]], [0.7, 0.8])
    rest = np.delete(np.arange(20), [3, 7])
    np.testing.assert_array_equal(fit.estimate[rest], exact.estimate[rest])
