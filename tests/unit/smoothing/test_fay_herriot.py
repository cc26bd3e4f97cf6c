"""The public entry and its record: words, options, columns, refusals; no R."""

from __future__ import annotations

import inspect
import json
import pickle

import numpy as np
import pandas as pd
import pytest

from pybridge.errors import InputError
from pybridge.smoothing.fay_herriot import ADAPTERS, fay_herriot


def area(m=20, outside=()):
    rng = np.random.default_rng(9)
    frame = pd.DataFrame({"county": [f"c{i}" for i in range(m)], "f": rng.normal(size=m)})
    frame["v"] = rng.uniform(0.1, 0.4, m)
    frame["z"] = 3 + frame["f"] + np.sqrt(0.5 + frame["v"]) * rng.normal(size=m)
    frame.loc[list(outside), ["z", "v"]] = np.nan
    return frame


def native(frame=None, **words):
    words = {"variance": "v", "domain": "county", "engine": "native", **words}
    return fay_herriot("z ~ f", area() if frame is None else frame, **words)


def refused(code, **words):
    with pytest.raises(InputError) as caught:
        native(**words)
    error = caught.value
    assert error.code == code, str(error)
    assert error.field and error.expected is not None and error.got is not None
    return error


def test_columns_of_the_table():
    frame = area(outside=[3])
    fit = native(frame)
    table = fit.to_frame()
    assert (
        list(table.columns)
        == (
            "domain direct direct_variance cv level estimate mse standard_error lower upper "
            "shrinkage synthetic status"
        ).split()
    )
    assert list(table["domain"]) == list(frame["county"])
    pd.testing.assert_series_equal(table["direct"], frame["z"], check_names=False)
    assert table["status"].tolist() == ["ok"] * 3 + ["out_of_sample"] + ["ok"] * 16
    np.testing.assert_allclose(table["cv"], table["standard_error"] / table["estimate"].abs())
    np.testing.assert_allclose(table["standard_error"] ** 2, table["mse"])
    table.loc[0, "estimate"] = 99.0  # a copy: the record stays
    assert fit.to_frame()["estimate"][0] != 99.0
    assert "n_labelled" in native(area().assign(n_labelled=5)).to_frame()


def test_attributes():
    fit = native(method="ML", level=0.8)
    assert fit.status == "converged" and fit.engine_status == "converged"
    assert fit.model_variance > 0 and fit.conditions == ()
    assert fit.spec.method == "ML" and fit.spec.level == 0.8
    assert list(fit.coefficients["term"]) == ["Intercept", "f"]
    t = fit.coefficients["estimate"] / fit.coefficients["standard_error"]
    np.testing.assert_allclose(fit.coefficients["statistic"], t)
    assert fit.aic == pytest.approx(-2 * fit.log_likelihood + 6)
    assert fit.bic == pytest.approx(-2 * fit.log_likelihood + 3 * np.log(20))
    assert fit.kic == pytest.approx(-2 * fit.log_likelihood + 9)


def test_p_values_do_not_vanish_in_the_tail():
    frame = area()
    frame["z"] = frame["z"] + 2 * frame["f"]
    coefficients = native(frame).coefficients
    assert (coefficients["statistic"] > 12).any()
    assert (coefficients["p_value"] > 0).all()


def test_the_record_compares_pickles_and_is_json():
    fit = native(area(outside=[3]))
    assert pickle.loads(pickle.dumps(fit)) == fit
    assert fit == native(area(outside=[3])) and fit != native(method="ML")
    answer = json.loads(json.dumps(fit.to_dict(), allow_nan=False))
    assert answer["status"] == "converged" and answer["domains"]["direct"][3] is None
    with pytest.raises(AttributeError):
        fit.fit = None
    assert not fit.fit.estimate.flags.writeable
    assert not fit.domain_status.flags.writeable


def test_the_summary_says_what_matters():
    frame = area(outside=[3])
    frame.loc[5, "v"] = 0.0
    text = native(frame).summary()
    for word in ("z ~ f", "native", "REML", "converged", "1 of them without", "census: c5"):
        assert word in text
    assert repr(native(frame)) == text


def test_diagnostics():
    frame = area(outside=[3])
    fit = native(frame)
    table = fit.diagnostics().to_frame()
    scale = np.sqrt(fit.model_variance + frame["v"])
    np.testing.assert_allclose(
        table["standardised_residual"], (frame["z"] - fit.fit.synthetic) / scale
    )
    assert table["leverage"].sum() == pytest.approx(2.0)  # the number of coefficients
    own = ["residual", "standardised_residual", "realised_residual", "random_effect", "leverage"]
    assert (table[own].isna().sum() == 1).all()


@pytest.mark.parametrize("method", ["REML", "reml", "Reml", "ml", "FH", "fh", "pr"])
def test_methods_in_any_case(method):
    assert native(method=method).spec.method == method.upper()


def test_the_default_engine_is_sae():
    assert inspect.signature(fay_herriot).parameters["engine"].default == "sae"


def test_words_that_are_not_there_are_refused_with_what_is():
    assert refused("unknown_option", engine="lme4").expected == "sae | emdi | hbsae | native"
    error = refused("unknown_option", engine="sae", method="PR")
    assert error.expected == "REML | ML | FH" and "native" in error.hint
    refused("unknown_option", method="EM")
    refused("unknown_option", mode="fast")
    assert refused("unknown_option", mode="raw").expected == "guarded"
    refused("not_available", correlation="spatial")
    refused("missing_argument", proximity=np.eye(20))
    refused("bad_level", level=95)
    refused("bad_count", seed=-1)
    refused("bad_count", seed=1.5)


def test_options_that_an_engine_does_not_have():
    assert refused("unknown_option", MAXITER=10).field == "MAXITER"
    error = refused("unknown_option", engine="sae", maxit=10)
    assert error.expected == "MAXITER, PRECISION, B, time_limit"
    refused("bad_count", engine="sae", MAXITER=-1)
    refused("bad_count", engine="sae", B=2.5)
    refused("bad_precision", engine="sae", PRECISION=0.0)
    refused("not_a_number", engine="sae", PRECISION="small")


def test_bad_tables_are_refused_before_any_engine():
    for engine in ("native", "sae"):
        refused("missing_column", engine=engine, variance="w")
        refused("negative_variance", engine=engine, frame=area().assign(v=-1.0))
        refused("too_few_domains", engine=engine, frame=area(m=2))


def test_sae_refuses_what_would_take_hours():
    error = refused("too_many_domains", engine="sae", frame=area(m=9000))
    assert "native" in error.hint


def test_sae_as_it_is_has_no_prediction_without_estimates():
    error = refused("out_of_sample", engine="sae", mode="raw", frame=area(outside=[3]))
    assert "guarded" in error.hint and "native" in error.hint


def test_the_bayesian_method_gives_quantile_intervals():
    frame = area(outside=[3])
    fit = native(frame, method="Bayes", level=0.9)
    assert fit.spec.method == "bayes" and fit.status == "converged"
    table = fit.to_frame()
    assert table.loc[3, "status"] == "out_of_sample"
    assert ((table["lower"] < table["estimate"]) & (table["estimate"] < table["upper"])).all()
    # Not the normal interval: the posterior of a domain is a mixture, wider in its tails.
    half = (table["upper"] - table["lower"]) / 2 / table["standard_error"]
    assert (abs(half / 1.6448536269514722 - 1) > 1e-4).any()
    assert np.isnan(fit.log_likelihood) and fit.fit.criteria["model_variance_mean"] > 0
    narrow = native(frame, method="bayes", level=0.5).to_frame()
    assert (narrow["upper"] - narrow["lower"] < table["upper"] - table["lower"]).all()


def test_a_record_with_a_table_will_do():
    from pybridge.tables.area import area_table

    frame = area().rename(columns={"county": "domain"})
    record = area_table("z ~ f", frame, variance="v")
    fit = fay_herriot("z ~ f", record, variance="v", engine="native")
    assert fit.model_variance == native().model_variance


def test_adapters_name_modules_with_the_two_functions():
    import importlib

    for adapter in ADAPTERS:
        module = importlib.import_module(adapter.module)
        assert callable(module.fit) and callable(module.complete_options)


def test_a_batch_says_which_problem_is_wrong():
    from pybridge.smoothing._area_fit import AreaProblem
    from pybridge.smoothing._sae import fit_many

    few = AreaProblem(np.arange(2.0), np.ones(2), np.ones((2, 2)))
    with pytest.raises(InputError, match="problem 0") as caught:
        fit_many([few, few])
    assert caught.value.code == "too_few_domains"
    errors = fit_many([few, few], return_errors=True)
    assert [error.code for error in errors] == ["too_few_domains"] * 2
    assert "problem 1" in str(errors[1])
