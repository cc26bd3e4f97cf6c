"""Refits of the taxonomy model for cross-validation: means alone, from a start, are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pybridge.smoothing._taxonomy import fit_taxonomy_bayes

DEPTHS = {"one level": (), "two levels": (6,), "three levels": (9, 3)}


def problem(depth: str, seed: int = 1) -> dict[str, Any]:
    """36 domains, one known exactly and one without labels."""
    rng = np.random.default_rng(seed)
    m = 36
    levels = [np.arange(m) // size for size in DEPTHS[depth]] + [np.arange(m)]
    x = np.column_stack([np.ones(m), rng.normal(size=m)])
    d = 0.05 * rng.gamma(3.0, 1 / 3, size=m)
    d[3] = 0.0
    effects = sum(0.3 * rng.normal(size=int(code.max()) + 1)[code] for code in levels)
    z = x @ [1.0, 0.5] + effects + np.sqrt(d) * rng.normal(size=m)
    z[5] = np.nan
    return {"estimate": z, "variance": d, "covariates": x, "levels": levels}


@pytest.mark.parametrize("depth", DEPTHS)
def test_the_means_alone_are_the_posterior_means(depth: str) -> None:
    words = problem(depth)
    full, alone = fit_taxonomy_bayes(**words), fit_taxonomy_bayes(**words, means_only=True)
    np.testing.assert_allclose(alone.estimate, full.estimate, rtol=1e-12, atol=1e-13)
    assert np.isnan(alone.mse[0]) and np.isnan(alone.model_variances).all()
    assert alone.n_nodes == full.n_nodes and alone.status == full.status


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_start_near_the_mode_changes_nothing_that_matters(depth: str) -> None:
    words, other = problem(depth), problem(depth, seed=2)
    full = fit_taxonomy_bayes(**words, quantiles=False)
    spread = np.sqrt(np.median(full.mse))
    near = {**words, "variance": 1.2 * words["variance"]}
    for start in (
        fit_taxonomy_bayes(**near, quantiles=False).model_variances,
        fit_taxonomy_bayes(**other, quantiles=False).model_variances,
        30.0 * full.model_variances,
        full.model_variances / 30.0,
    ):
        warm = fit_taxonomy_bayes(**words, start=start, means_only=True)
        gap = np.abs(warm.estimate - full.estimate).max() / spread
        # The quadrature's own error, which each fit reports.
        assert gap < 1e-8 + 2.0 * max(full.accuracy, warm.accuracy)
