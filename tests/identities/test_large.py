"""Sizes that R's packages refuse or take hours for: 10^5 domains and 10^6 scores, natively."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import pybridge as pb

M = 100_000


@pytest.fixture(scope="module")
def domains() -> pd.DataFrame:
    """θ = 1 + 2x + v with Var(v) = 0.5, and estimates of known variances around 1."""
    rng = np.random.default_rng(20)
    x = rng.standard_normal(M)
    variance = rng.uniform(0.5, 1.5, M)
    theta = 1.0 + 2.0 * x + np.sqrt(0.5) * rng.standard_normal(M)
    estimate = theta + np.sqrt(variance) * rng.standard_normal(M)
    return pd.DataFrame(
        {"domain": np.arange(M), "y": estimate, "x": x, "variance": variance, "theta": theta}
    )


@pytest.mark.parametrize("method", ["REML", "ML", "FH", "bayes"])
def test_a_hundred_thousand_domains(domains: pd.DataFrame, method: str) -> None:
    fit = pb.fay_herriot("y ~ x", domains, domain="domain", engine="native", method=method)
    # The information on σ² of m domains is Σ 1 / 2(σ² + d)², on a coefficient Σ 1 / (σ² + d).
    total = 0.5 + domains["variance"].to_numpy()
    assert abs(fit.model_variance - 0.5) < 5 / np.sqrt((0.5 / total**2).sum())
    beta, error = fit.coefficients["estimate"], 5 / np.sqrt((1 / total).sum())
    np.testing.assert_allclose(beta, [1.0, 2.0], atol=error)
    frame = fit.to_frame()
    inside = (frame["lower"] <= domains["theta"]) & (domains["theta"] <= frame["upper"])
    assert abs(inside.mean() - 0.95) < 5 * np.sqrt(0.95 * 0.05 / M)


def test_a_million_scores() -> None:
    rng = np.random.default_rng(21)
    scores = (rng.random(1_000_000) ** -0.2 - 1.0) / 0.2  # generalised Pareto, shape 0.2, scale 1
    fit = pb.generalized_pareto(scores, threshold=0.0, engine="native")
    # Var of the shape's estimate is (1 + shape)² / n.
    assert fit.n_exceedances == 1_000_000
    assert abs(fit.shape - 0.2) < 5 * 1.2 / 1_000
    assert fit.shape_standard_error == pytest.approx(1.2 / 1_000, rel=0.01)
