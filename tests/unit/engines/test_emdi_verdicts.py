"""What is made of emdi's answers: statuses, false warnings, plain numbers, scripts."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pandas as pd
import pytest

from pybridge.engines import _emdi_units as units
from pybridge.engines._emdi_answer import quiet, record
from pybridge.engines._emdi_script import fh_script, functions
from pybridge.errors import EngineError
from pybridge.r import Reply
from pybridge.r.wire import NA_REAL
from pybridge.smoothing import _emdi as adapter
from pybridge.smoothing._area_model import area_model_at, fit_area_model
from pybridge.smoothing._spec import FayHerriotSpec
from pybridge.tables.area import area_table
from tests.unit.engines.emdi_problems import problem, request


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
