"""fay_herriot with engine 'emdi': every kind of model in the form of every other fit."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

from pybridge.engines import emdi
from pybridge.errors import EngineError, EngineUnavailable, EngineWarning, InputError
from pybridge.smoothing._area_fit import AreaProblem
from pybridge.smoothing._emdi import fit_many
from pybridge.smoothing.fay_herriot import fay_herriot
from validation.cases.emdi import load

pytestmark = pytest.mark.r("emdi", "sae")

CASE = load()
WORDS = {"variance": "spread", "domain": "domain", "engine": "emdi"}
SHARE = {**WORDS, "variance": "share_variance"}
LABELS = list(CASE.frame["domain"])


def whole_matrix():
    """A ring of all sixteen domains, rows in another order."""
    w = np.zeros((16, 16))
    for i in range(16):
        w[i, (i + 1) % 16] = w[i, (i - 1) % 16] = 0.5
    return pd.DataFrame(w, index=LABELS, columns=LABELS).sample(frac=1, random_state=1)


MODELS = {
    "REML": ("level ~ x + z", {**WORDS}),
    "ML": ("level ~ x + z", {**WORDS}),
    "AMRL": ("level ~ x + z", {**WORDS}),
    "AMPL_YL": ("level ~ x + z", {**WORDS}),
    "reblupbc": ("level ~ x + z", {**WORDS, "k": 2.0}),
    "me": ("level ~ x", {**WORDS, "Ci": CASE.errors}),
    "ml spatial": (
        "level ~ x + z",
        {**WORDS, "correlation": "spatial", "proximity": whole_matrix()},
    ),
    "reml log": (
        "share ~ x",
        {**SHARE, "transformation": "log", "backtransformation": "bc_crude"},
    ),
    "ml arcsin": (
        "share ~ x",
        {
            **SHARE,
            "transformation": "arcsin",
            "backtransformation": "bc",
            "eff_smpsize": "n",
            "B": 3,
        },
    ),
    "reml logit": (
        "share ~ x",
        {**SHARE, "transformation": "logit", "backtransformation": "naive", "B": 3},
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_has_everything(name):
    formula, words = MODELS[name]
    fit = fay_herriot(formula, CASE.frame, method=name.split()[0], **words)
    table = fit.to_frame()
    assert list(table["domain"]) == LABELS
    assert list(table.loc[[4, 10], "status"]) == ["out_of_sample"] * 2
    numbers = ["estimate", "mse", "standard_error", "lower", "upper"]
    assert np.isfinite(table[numbers]).all(axis=None)
    assert (table["lower"] <= table["estimate"]).all()
    assert fit.status in ("converged", "boundary") and fit.provenance.packages["emdi"]
    assert fit.spec.options["mse_type"] and fit.provenance.options["mse_type"]
    assert pickle.loads(pickle.dumps(fit)) == fit
    shown = fit.diagnostics().to_frame()
    inside = table["status"] == "ok"
    assert np.isfinite(shown.loc[inside, ["residual", "standardised_residual"]]).all(axis=None)
    assert shown.loc[~inside, "residual"].isna().all()
    standardised = shown.loc[inside, "standardised_residual"]
    assert 0.4 < np.sqrt((standardised**2).mean()) < 1.6
    if "transformation" not in words and name not in ("reblupbc", "me"):
        assert np.isfinite(fit.log_likelihood) and np.isfinite(fit.restricted_log_likelihood)
        assert np.isfinite(fit.fit.derivative[inside]).all()
        assert np.isfinite(fit.aic) and fit.fit.criteria["AIC"] == pytest.approx(fit.aic)
    assert "emdi" in fit.summary() and isinstance(fit.to_dict(), dict)


@pytest.mark.parametrize("method", ["REML", "ML"])
def test_it_is_the_native_fit_to_the_precision_of_optimize(method):
    formula, words = MODELS["REML"]
    ours = fay_herriot(formula, CASE.frame, method=method, **words)
    native = fay_herriot(formula, CASE.frame, method=method, **{**words, "engine": "native"})
    for what in ("estimate", "mse", "shrinkage", "derivative", "synthetic"):
        np.testing.assert_allclose(
            getattr(ours.fit, what), getattr(native.fit, what), rtol=1e-5, err_msg=what
        )
    assert ours.log_likelihood == pytest.approx(native.log_likelihood, abs=1e-5)
    assert ours.restricted_log_likelihood == pytest.approx(
        native.restricted_log_likelihood, abs=1e-6
    )
    np.testing.assert_allclose(
        ours.diagnostics().standardised_residual,
        native.diagnostics().standardised_residual,
        rtol=1e-5,
    )


@pytest.mark.parametrize("method", ["REML", "ML"])
def test_spatial_is_that_of_sae(method):
    table = CASE.frame[CASE.frame["level"].notna()]
    words = {**WORDS, "correlation": "spatial", "proximity": CASE.proximity, "mode": "raw"}
    fits = [
        fay_herriot("level ~ x + z", table, method=method, **{**words, "engine": engine})
        for engine in ("sae", "emdi")
    ]
    for what in ("estimate", "mse", "shrinkage", "derivative"):
        first, second = (getattr(fit.fit, what) for fit in fits)
        np.testing.assert_allclose(first, second, rtol=1e-9, err_msg=what)
    assert fits[0].spatial_correlation == pytest.approx(fits[1].spatial_correlation, rel=1e-10)


def test_the_engine_says_the_same_under_its_own_name():
    formula, words = MODELS["ml arcsin"]
    fit = fay_herriot(formula, CASE.frame, method="ml", seed=5, **words)
    own = emdi.fh(
        formula,
        "share_variance",
        CASE.frame,
        "domain",
        "ml",
        transformation="arcsin",
        backtransformation="bc",
        eff_smpsize="n",
        MSE=True,
        mse_type="boot",
        B=3,
        seed=5,
    )
    np.testing.assert_array_equal(fit.fit.estimate, own.estimate)
    np.testing.assert_array_equal(fit.fit.mse, own.mse)
    np.testing.assert_array_equal(fit.fit.lower, own.intervals[:, 0])
    found = emdi.estimators(fit, MSE=True)
    np.testing.assert_array_equal(found.to_frame()["FH_MSE"], own.mse)


def test_many_problems_go_in_one_round_trip_and_are_the_single_fits():
    table = CASE.frame
    x = np.column_stack([np.ones(16), table["x"], table["z"]])
    problems = [
        AreaProblem(table["level"].to_numpy() * scale, table["spread"].to_numpy() * scale**2, x)
        for scale in (1.0, 64.0)
    ]
    fits = fit_many(problems, method="ml")
    alone = fay_herriot("level ~ x + z", table, method="ml", **WORDS)
    np.testing.assert_array_equal(fits[0].estimate, alone.fit.estimate)
    np.testing.assert_array_equal(fits[1].estimate, 64.0 * fits[0].estimate)
    np.testing.assert_array_equal(fits[1].mse, 64.0**2 * fits[0].mse)
    assert fit_many([]) == []


def test_cross_checks():
    fit = fay_herriot("level ~ x + z", CASE.frame, method="REML", **WORDS)
    found = fit.crosscheck()
    assert {"native", "emdi guarded", "emdi raw", "sae guarded"} <= {
        answer.producer for answer in found.answers
    }
    formula, words = MODELS["reml log"]
    with pytest.raises(InputError) as caught:
        fay_herriot(formula, CASE.frame, method="reml", **words).crosscheck()
    assert caught.value.code == "not_available"


def test_warnings_point_at_the_caller_and_errors_are_a_status():
    table = CASE.frame
    with pytest.warns(EngineWarning, match="interval limit") as caught:
        fit = fay_herriot("level ~ x", table, method="reml", interval=(0.0, 0.5), **WORDS)
    assert [warning.filename for warning in caught] == [__file__]
    assert fit.status == "not_converged"
    zero = table.assign(share_variance=0.004)
    zero.loc[0, ["share", "share_variance"]] = [0.0, 0.0]
    words = {**SHARE, "transformation": "logit", "backtransformation": "bc"}
    with pytest.raises(EngineError, match="non-finite"):
        fay_herriot("share ~ x", zero, method="reml", mode="raw", MSE=False, **words)
    assert fay_herriot("share ~ x", zero, method="reml", MSE=False, **words).status == "converged"


def test_an_old_emdi_is_refused_where_it_ignores_an_option(monkeypatch):
    import pybridge.engines._emdi_fit as fits

    monkeypatch.setattr(fits, "_K_SINCE", (99, 0))
    words = {**WORDS, "method": "reblup"}
    with pytest.raises(EngineUnavailable) as caught:
        fay_herriot("level ~ x", CASE.frame, k=2.0, **words)
    assert caught.value.code == "package_too_old" and caught.value.field == "k"
    assert fay_herriot("level ~ x", CASE.frame, **words).status == "converged"
