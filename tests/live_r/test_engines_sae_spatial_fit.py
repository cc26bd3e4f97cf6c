"""fay_herriot with neighbours by sae: the same fit, weights, refusals and statuses."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import pybridge as pb
from pybridge.engines import sae
from pybridge.errors import EngineError, InputError
from tests.live_r.sae_rings import area, ring


pytestmark = pytest.mark.r("sae")


def spatial(table, w, **words):
    words = {"variance": "d", "domain": "name", "correlation": "spatial", "proximity": w, **words}
    return pb.fay_herriot("y ~ x", table, **words)


@pytest.mark.parametrize("method", ["REML", "ML"])
def test_fay_herriot_with_neighbours_is_the_same_fit(method, plain_r, tmp_path):
    kept = area()
    w = ring(kept["name"])
    fit = spatial(kept, w.sample(frac=1, random_state=3), method=method)
    own = sae.mseSFH(kept, "y ~ x", "d", w, method=method, domain="name")
    np.testing.assert_array_equal(fit.fit.estimate, own.estimate)
    np.testing.assert_array_equal(fit.fit.mse, own.mse)
    assert fit.spatial_correlation == own.spatial_correlation
    assert fit.log_likelihood == own.log_likelihood
    assert fit.aic == pytest.approx(own.criteria["AIC"], rel=1e-12)
    assert fit.bic == pytest.approx(own.criteria["BIC"], rel=1e-12)
    np.testing.assert_allclose(
        fit.coefficients["standard_error"], own.coefficients["standard_error"], rtol=1e-9
    )
    if method == "ML":
        return
    shown = plain_r(
        fit.r_script() + 'show("estimate", fit$est$eblup); show("mse", fit$mse)\n'
        f'x <- readRDS("{fit.to_rds(tmp_path / "x.rds")}"); show("saved", x$mse)\n'
    )
    np.testing.assert_array_equal(shown["estimate"], fit.fit.estimate)
    np.testing.assert_array_equal(shown["mse"], fit.fit.mse)
    np.testing.assert_array_equal(shown["saved"], fit.fit.mse)


def test_weights_and_residuals_of_the_spatial_fit_against_dense_algebra():
    kept = area()
    fit = spatial(kept, ring(kept["name"]))
    y, d = kept["y"].to_numpy(), kept["d"].to_numpy()
    x = np.column_stack([np.ones(12), kept["x"]])
    root = np.eye(12) - fit.spatial_correlation * ring(kept["name"]).to_numpy()
    g = fit.model_variance * np.linalg.inv(root.T @ root)
    v = g + np.diag(d)
    inverse = np.linalg.inv(v)
    q = np.linalg.inv(x.T @ inverse @ x)
    weights = g @ inverse
    linear = weights + (np.eye(12) - weights) @ x @ q @ x.T @ inverse
    np.testing.assert_allclose(linear @ y, fit.fit.estimate, rtol=1e-9)
    np.testing.assert_allclose(linear.diagonal(), fit.fit.derivative, rtol=1e-9)
    np.testing.assert_allclose(weights.diagonal(), fit.fit.shrinkage, rtol=1e-9)
    np.testing.assert_allclose(q, fit.fit.coefficient_covariance, rtol=1e-9)
    found = fit.diagnostics().to_frame()
    beta = q @ x.T @ inverse @ y
    np.testing.assert_allclose(
        found["standardised_residual"], (y - x @ beta) / np.sqrt(v.diagonal()), rtol=1e-7
    )
    np.testing.assert_allclose(found["random_effect"], weights @ (y - x @ beta), atol=1e-9)
    assert fit == pickle.loads(pickle.dumps(fit))


def test_what_fay_herriot_refuses_with_neighbours():
    kept = area()
    w = ring(kept["name"])
    missing = kept.assign(y=kept["y"].where(kept["name"] != "c"))
    for code, table, words in (
        ("missing_argument", kept, {"proximity": None}),
        ("missing_argument", kept, {"correlation": None}),
        ("missing_argument", kept, {"domain": None}),
        ("unlabelled_proximity", kept, {"proximity": w.to_numpy()}),
        ("unknown_domain", kept, {"proximity": w.iloc[:5, :5]}),
        ("not_available", kept, {"engine": "native"}),
        ("unknown_option", kept, {"method": "FH"}),
        ("unknown_option", kept, {"correlation": "temporal"}),
        ("unknown_option", kept, {"B": 10}),
        ("out_of_sample", missing, {}),
    ):
        with pytest.raises(InputError) as caught:
            spatial(table, **{"w": w, **words})
        assert caught.value.code == code, words
    by_position = spatial(kept, w.to_numpy(), mode="raw")
    # Not to the last bit: rho is negative here, and guarded it is asked for more tightly.
    np.testing.assert_allclose(by_position.fit.estimate, spatial(kept, w).fit.estimate, rtol=1e-3)


def test_the_limits_of_fay_herriot_with_neighbours_are_statuses():
    kept = area()
    w = ring(kept["name"])
    fit = spatial(kept, w, MAXITER=1)
    assert fit.status == "not_converged" and np.isnan(fit.fit.estimate).all()
    assert np.isfinite(fit.exact["model_variance"]) and "not_converged" in fit.summary()
    with pytest.raises(EngineError):
        spatial(kept, w, MAXITER=1, mode="raw")
