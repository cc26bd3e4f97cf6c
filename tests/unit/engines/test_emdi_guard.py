"""Guards of emdi without R: optima, units, statuses, scripts, records."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pandas as pd
import pytest

from pybridge.engines import _emdi_units as units
from pybridge.engines._emdi_answer import quiet, record
from pybridge.engines._emdi_exact import (
    LIKELIHOODS,
    evaluate,
    mean_squared_errors,
    optimum,
    sampled,
)
from pybridge.engines._emdi_measurement import measurement_error_fit
from pybridge.engines._emdi_script import fh_script, functions
from pybridge.errors import EngineError
from pybridge.r import Reply
from pybridge.r.wire import NA_REAL
from pybridge.smoothing import _emdi as adapter
from pybridge.smoothing._area_model import area_model_at, fit_area_model
from pybridge.smoothing._spec import FayHerriotSpec
from pybridge.tables.area import area_table


def problem(seed=0, m=30, noise=1.0, unit=1.0):
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(m), rng.normal(size=m)])
    d = rng.uniform(0.5, 2.0, m)
    y = x.sum(axis=1) + noise * np.sqrt(d) * rng.normal(size=m)
    return {"estimate": unit * y, "variance": unit**2 * d, "covariates": x}


def request(method="reml", mode="guarded", outside=(), unit=1.0, options=None, **more):
    given = problem(unit=unit, **more)
    frame = pd.DataFrame({"y": given["estimate"], "v": given["variance"]})
    frame["x"], frame["n"] = given["covariates"][:, 1], 40.0
    frame["domain"] = [f"d{i}" for i in range(len(frame))]
    frame.loc[list(outside), ["y", "v"]] = np.nan
    table = area_table("y ~ x", frame, variance="v", domain="domain")
    spec = FayHerriotSpec(
        engine="emdi", method=method, mode=mode, options=adapter.complete_options(options or {})
    )
    return adapter.request_of(table, spec)


# ------------------------------------------------------------------------------------- optima


@pytest.mark.parametrize("method", LIKELIHOODS)
@pytest.mark.parametrize("noise", [1.0, 2.0])
def test_the_slope_is_that_of_the_objective_and_0_at_the_optimum(method, noise):
    given = sampled(**problem(noise=noise))
    for a in (0.05, 0.7, 4.0):
        _, slope = evaluate(given, a, method)
        step = 1e-5 * a
        ends = [evaluate(given, a + k * step, method)[0].objective for k in (1, -1)]
        assert slope == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-5, abs=1e-6)
    best = optimum(given, method)
    if best.model_variance > 0:
        assert abs(evaluate(given, best.model_variance, method)[1]) < 1e-9
    grid = np.geomspace(1e-6, 1e3, 400)
    highest = max(evaluate(given, a, method)[0].objective for a in grid)
    assert best.objective >= highest - 1e-12


@pytest.mark.parametrize("method", ["reml", "ml"])
@pytest.mark.parametrize("seed", range(8))
def test_reml_and_ml_are_those_of_the_native_engine(method, seed):
    given = problem(seed=seed, noise=0.6 + 0.2 * seed)
    native = fit_area_model(**given, method=method.upper())
    found = optimum(sampled(**given), method)
    assert found.model_variance == pytest.approx(native.model_variance, rel=1e-9, abs=1e-12)
    assert found.log_likelihood == pytest.approx(native.log_likelihood, rel=1e-12)
    assert found.restricted_log_likelihood == pytest.approx(
        native.restricted_log_likelihood, rel=1e-12
    )


@pytest.mark.parametrize("method", ["amrl", "ampl", "amrl_yl", "ampl_yl"])
def test_adjusted_likelihoods_are_never_at_0_and_equivariant(method):
    small, large = (
        optimum(sampled(**problem(noise=0.5, unit=unit)), method) for unit in (1.0, 1e4)
    )
    assert small.model_variance > 0
    assert large.model_variance == pytest.approx(1e8 * small.model_variance, rel=1e-9)


def test_a_domain_observed_in_full():
    given = problem(noise=2.0)
    given["variance"][0] = 0.0
    native = fit_area_model(**given, method="REML")
    assert optimum(sampled(**given), "reml").model_variance == pytest.approx(
        native.model_variance, rel=1e-9
    )


@pytest.mark.parametrize("method", ["REML", "ML"])
def test_the_analytic_mse_is_that_of_the_native_engine(method):
    given = problem(noise=2.0)
    given["estimate"][[2, 5]] = np.nan
    native = area_model_at(0.8, **given, method=method)
    found = mean_squared_errors(
        model_variance=0.8,
        variance=given["variance"],
        covariates=given["covariates"],
        sampled=~np.isnan(given["estimate"]),
        method=method.lower(),
    )
    np.testing.assert_allclose(found, native.mse, rtol=1e-12)


def test_without_errors_the_measurement_model_is_weighted_least_squares():
    given = problem(noise=2.0)
    found = measurement_error_fit(**given, errors=np.zeros((2, 2, 30)))
    assert found.converged and found.model_variance > 0
    weight = 1 / (found.model_variance + given["variance"])
    x = given["covariates"]
    beta = np.linalg.solve(x.T @ (x * weight[:, None]), x.T @ (weight * given["estimate"]))
    np.testing.assert_allclose(found.coefficients, beta, rtol=1e-9)
    square = ((given["estimate"] - x @ beta) ** 2 - given["variance"]).sum() / 28
    assert found.model_variance == pytest.approx(square, rel=1e-9)


# -------------------------------------------------------------------------------------- units


@pytest.mark.parametrize("method", ["reml", "amrl", "reblup", "me"])
@pytest.mark.parametrize("unit", [1e-5, 1.0, 3e4])
def test_units_are_powers_of_2_that_bring_variances_to_where_tolerances_are_harmless(method, unit):
    options = {"Ci": np.zeros((2, 2, 30))} if method == "me" else {}
    found = units.rescaled(request(method, unit=unit, options=options))
    exponent = np.log2(found.unit)
    assert exponent == round(exponent)
    median = np.median(found.variance) / found.unit**2
    low, high = (2e-5, 5e-4) if method == "me" else (40, 250)
    assert low < median < high
    if method == "me":
        size = np.sqrt((found.covariates**2).mean(axis=0)) / found.covariates_unit
        assert (np.abs(np.log2(size)) < 0.51).all()


def test_nothing_is_rescaled_raw_or_where_the_scale_is_fixed():
    assert units.rescaled(request(mode="raw")).unit == 1.0
    asked = request()
    words = {"transformation": "log", "backtransformation": "bc_crude"}
    arguments = {**asked.arguments, **words}
    asked = dataclasses.replace(asked, estimate=np.exp(asked.estimate), arguments=arguments)
    assert units.rescaled(asked).unit == 1.0 and units.rescaled(request()).unit != 1.0


@pytest.mark.parametrize("method", ["amrl_yl", "ampl_yl"])
@pytest.mark.parametrize("m", [30, 200, 900])
def test_products_of_densities_stay_numbers(method, m):
    asked = units.rescaled(request(method, m=m, noise=3.0))
    given = sampled(
        estimate=asked.estimate / asked.unit,
        variance=asked.variance / asked.unit**2,
        covariates=asked.covariates,
    )
    best = optimum(given, method)
    upper = np.var(asked.estimate / asked.unit, ddof=1)
    heights = [
        evaluate(given, a, method)[0].objective
        for a in (best.model_variance, 0.382 * upper, 0.618 * upper)
    ]
    # The basis of the restricted likelihood is another one than R's: a few units of difference.
    assert min(heights) > -720 and max(heights) < 700
    if m == 30:
        assert asked.unit == units.rescaled(request("reml", m=m, noise=3.0)).unit


def test_expected_seconds_grow_with_refits():
    plain = units.expected_seconds(request())
    assert units.expected_seconds(request(options={"B": (50, 20)})) > 10 * plain
    assert units.time_limit(request(mode="raw")) is None
    assert units.time_limit(request()) >= 600
    assert units.time_limit(request(options={"time_limit": 7.0})) == 7.0


# ----------------------------------------------------------------------------------- verdicts


def answer(asked, variance=None, **changed):
    """What R's shim would return for this request."""
    inside = asked.sampled
    n, p = int(inside.sum()), asked.covariates.shape[1]
    a = fit_area_model(
        estimate=asked.estimate,
        variance=asked.variance,
        covariates=asked.covariates,
        method="ML" if asked.method == "ml" else "REML",
    )
    found = a.model_variance if variance is None else variance
    at = area_model_at(
        found,
        estimate=asked.estimate,
        variance=asked.variance,
        covariates=asked.covariates,
        method="REML",
    )
    value = {
        "domain": [str(label) for label in asked.domains],
        "direct": asked.estimate,
        "estimate": at.estimate,
        "out": (~inside).astype(float),
        "direct_variance": asked.variance,
        "mse": at.mse,
        "coefficients": at.coefficients,
        "std_error": np.ones(p),
        "t_value": np.ones(p),
        "p_value": np.ones(p),
        "coefficient_names": ["(Intercept)", "x"],
        "beta_vcov": at.coefficient_covariance,
        "variance": np.array([found]),
        "correlation": None,
        "convergence": None,
        "gamma": np.where(inside, at.shrinkage, NA_REAL),
        "random_effects": (at.shrinkage * (asked.estimate - at.synthetic))[inside],
        "fitted": at.synthetic[inside],
        "real_residuals": np.zeros(n),
        "std_real_residuals": np.zeros(n),
        "criteria": np.array([at.log_likelihood]),
        "criteria_names": ["loglike"],
        "mse_method": ["prasad-rao"],
        "successful_bootstraps": None,
        "sampling_variance": asked.variance[inside],
        "transformed": asked.estimate[inside],
        "replaced": {"estimate": at.estimate, "mse": at.mse},
    }
    return Reply(value={**value, **changed}, versions={"R": "4.2.2", "emdi": "2.2.3"})


def test_at_the_optimum_it_converged():
    asked = units.rescaled(request(outside=[3]))
    fit = record(asked, answer(asked))
    assert fit.status == "converged" and fit.engine_status == "no flag"
    assert fit.exact["shortfall"] < 1e-12 and not fit.replaced
    assert fit.shrinkage[3] == 0 and fit.domain_status[3] == "out_of_sample"
    assert fit.provenance.packages["emdi"] == "2.2.3" and fit.provenance.seed == 123
    table = fit.to_frame()
    assert list(table["domain"]) == list(asked.domains)
    assert (table["lower"] < table["estimate"]).all() and (table["estimate"] < table["upper"]).all()
    assert pickle.loads(pickle.dumps(fit)) == fit
    assert "status converged" in fit.summary()


def test_far_from_the_optimum_it_did_not():
    asked = units.rescaled(request(noise=2.5))
    fit = record(asked, answer(asked, variance=40.0))
    assert fit.status == "not_converged"
    assert any("below the maximum" in line for line in fit.conditions)
    assert fit.exact["shortfall"] > 1


def test_near_zero_where_the_maximum_is_0():
    asked = units.rescaled(request("ml", noise=0.3))
    floor = 5e-5 * asked.unit**2
    fit = record(asked, answer(asked, variance=floor))
    assert fit.status == "boundary" and fit.exact["model_variance"] == 0
    assert record(dataclasses.replace(asked, mode="raw"), answer(asked, variance=floor)).exact == {}


def test_few_domains_identify_little():
    asked = units.rescaled(request(m=7, noise=3.0))
    assert record(asked, answer(asked)).status == "weak_identification"


def test_an_error_of_r_is_a_status_guarded_and_raised_raw():
    failed = Reply(
        value={},
        warnings=("falls",),
        versions={"R": "4.2.2", "emdi": "2.2.3"},
        error={"message": "non-finite\n  value", "call": "f()", "class": ("simpleError",)},
    )
    fit = record(request(), failed)
    assert fit.status == "failed" and np.isnan(fit.estimate).all() and np.isnan(fit.model_variance)
    assert "R error: non-finite value" in fit.conditions
    with pytest.raises(EngineError, match="non-finite value"):
        record(request(mode="raw"), failed)


def test_domains_in_another_order_are_noticed():
    asked = request()
    swapped = answer(asked).value["domain"][::-1]
    with pytest.raises(EngineError, match="another order"):
        record(asked, answer(asked, domain=swapped))


def test_negative_errors_replicates_and_words_of_r():
    asked = units.rescaled(request())
    mse = np.full(30, 0.1)
    mse[4] = -0.2
    reply = answer(asked, mse=mse, successful_bootstraps=["47 out of 50"])
    reply = dataclasses.replace(
        reply, messages=("b =1\n", "domain =3", "Please  note\n this"), printed=("", "shown")
    )
    fit = record(asked, reply)
    assert fit.domain_status[4] == "negative_mse" and np.isnan(fit.standard_error[4])
    assert fit.replicates == (47, 50)
    said = list(fit.conditions)
    assert "R message: Please note this" in said and "R printed: shown" in said
    assert not any("b =1" in line or "domain =3" in line for line in said)
    assert any("dropped 3 of 50" in line for line in said)
    assert any("negative mean squared errors: d4" in line for line in said)
    assert "mse" in fit.replaced


def test_a_false_warning_is_marked():
    asked = units.rescaled(request(noise=2.5))
    reply = dataclasses.replace(answer(asked), warnings=("x falls at the interval limit.",))
    fit = record(asked, reply)
    assert any(line.endswith("(not so: the maximum lies inside)") for line in fit.conditions)


def test_na_of_r_becomes_a_plain_nan():
    given = np.array([1.0, NA_REAL])
    with np.errstate(invalid="raise"):
        assert np.isnan((quiet(given) - 1.0)[1])


# ------------------------------------------------------------------------------------ scripts


def test_a_script_is_ascii_and_holds_what_it_calls():
    plain, guarded = (fh_script(units.rescaled(request(mode=mode))) for mode in ("raw", "guarded"))
    for text in (plain, guarded):
        assert text.isascii() and "emdi::fh" in text and "result" in text
    assert "emdi_object <- function" in guarded and "emdi_object" not in plain
    assert "unit = " in guarded and "seed = 123L" in plain
    text = functions("emdi_object")
    for name in ("emdi_plain", "emdi_divided", "emdi_scaled_me", "shared_frame", "emdi_bias"):
        assert f"\n{name} <- function" in "\n" + text
    assert "emdi_direct" not in text and "shared_formula" not in text


def test_the_adapter_gives_the_design_matrix_back():
    asked = request()
    assert asked.code == "y ~ 1 + x"
    np.testing.assert_array_equal(asked.columns["x"], asked.covariates[:, 1])
    frame = pd.DataFrame(problem()["covariates"], columns=["one", "f"])
    frame["y"], frame["v"] = problem()["estimate"], problem()["variance"]
    frame["domain"] = np.arange(30)
    table = area_table("y ~ 0 + one + np.log(v)", frame, variance="v", domain="domain")
    spec = FayHerriotSpec(engine="emdi", method="reml", options=adapter.complete_options({}))
    asked = adapter.request_of(table, spec)
    assert asked.code.startswith("y ~ 0 + one + ") and asked.fixed == table.formula
    assert len(asked.columns) == 5
