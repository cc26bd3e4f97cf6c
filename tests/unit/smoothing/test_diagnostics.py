"""Diagnostics at their edges: posteriors, taxonomies, unlabelled domains, nothing left over."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import pytest

from pybridge.smoothing.diagnostics import brown_test, explained_shares, normality
from pybridge.smoothing.fay_herriot import fay_herriot
from pybridge.smoothing.taxonomy import taxonomy_model
from tests.unit.smoothing.test_leave_domain_out import M, table


def fits(frame, **words):
    yield fay_herriot("estimate ~ x", frame, engine="native", **words)
    yield fay_herriot("estimate ~ x", frame, engine="native", method="bayes")
    for method in ("bayes", "REML"):
        yield taxonomy_model("estimate ~ x", frame, levels=["group", "domain"], method=method)


def test_every_fit_has_them():
    frame = table(outside=[2, 9], census=[4])
    for fit in fits(frame):
        found = fit.diagnostics()
        assert pickle.loads(pickle.dumps(found)) == found
        json.dumps(found.to_dict(), allow_nan=False)
        rows = found.to_frame()
        assert list(rows["domain"]) == list(frame["domain"])
        absent = frame["estimate"].isna().to_numpy()
        assert (rows["standardised_residual"].isna().to_numpy() == absent).all()
        assert rows["realised_residual"].isna().to_numpy()[4]  # observed in full: nothing to err
        assert found.brown_degrees_of_freedom == M - 2
        assert 0.0 <= found.brown_p_value <= 1.0
        assert np.isfinite(found.marginal_r2) and np.isfinite(found.residual_normality.shapiro_p)
        posterior = fit.spec.method == "bayes"
        assert np.isnan(found.aic) == posterior
        assert ("AIC" in found.summary()) != posterior
        assert "Brown" in found.summary()


def test_effects_and_residuals_of_the_taxonomy_add_up():
    fit = taxonomy_model("estimate ~ x", table(), levels=["group", "domain"], method="REML")
    found = fit.diagnostics()
    np.testing.assert_allclose(
        fit.numbers.synthetic + found.random_effect, fit.numbers.estimate, rtol=1e-9
    )
    np.testing.assert_allclose(found.residual, found.direct - fit.numbers.synthetic, rtol=1e-12)
    assert found.aic == pytest.approx(-2 * fit.log_likelihood + 2 * 4)
    assert found.kic == pytest.approx(-2 * fit.log_likelihood + 3 * 4)


def test_standardised_residuals_are_standard_normal_where_the_model_holds():
    size = []
    for seed in range(60):
        frame = table(seed=seed)
        fit = fay_herriot("estimate ~ x + C(group)", frame, engine="native")
        size.append(np.mean(fit.diagnostics().standardised_residual ** 2))
    # Four coefficients of sixteen domains: their mean square is about 12/16.
    error = np.std(size, ddof=1) / np.sqrt(60)
    assert abs(np.mean(size) - 12 / M) < 3 * error + 0.02


def test_browns_test_by_hand():
    w, degrees, p = brown_test(
        direct=np.array([1.0, 2.0, 5.0]),
        variance=np.array([1.0, 2.0, 0.0]),
        estimate=np.array([2.0, 2.0, 5.0]),
        mse=np.array([1.0, 1.0, 0.0]),
    )
    assert (w, degrees) == (0.5, 3)
    assert p == pytest.approx(0.9188914116546758, rel=1e-12)  # R: 1 - pchisq(0.5, 3)


def test_r2_without_sampling_errors_and_without_anything_to_explain():
    x = np.column_stack([np.ones(30), np.arange(30.0)])
    y = x @ [1.0, 2.0] + np.tile([1.0, -1.0], 15)
    adjusted, marginal = explained_shares(direct=y, variance=np.zeros(30), covariates=x)
    assert marginal == pytest.approx(adjusted, rel=1e-12)
    more = explained_shares(direct=y, variance=np.full(30, 0.9), covariates=x)
    assert more[0] == adjusted and more[1] > marginal
    huge = explained_shares(direct=1e9 * y, variance=np.full(30, 9e17), covariates=x)
    assert huge[1] == pytest.approx(more[1], rel=1e-6)
    assert np.isnan(explained_shares(direct=np.ones(30), variance=np.ones(30), covariates=x)).all()
    assert np.isnan(explained_shares(direct=y[:2], variance=y[:2], covariates=x[:2])).all()


def test_normality_of_nothing():
    for values in (np.ones(10), np.array([1.0, 2.0]), np.full(5, np.nan)):
        assert np.isnan(normality(values).kurtosis)
    many = np.random.default_rng(1).normal(size=6000)
    found = normality(many)
    assert np.isnan(found.shapiro_p) and abs(found.kurtosis - 3) < 0.2


def test_the_frame_is_the_callers_own():
    found = fay_herriot("estimate ~ x", table(), engine="native").diagnostics()
    rows = found.to_frame()
    rows.loc[0, "residual"] = 1e9
    assert found.residual[0] != 1e9 and isinstance(rows, pd.DataFrame)
