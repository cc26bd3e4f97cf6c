"""The slow twins of the Bayesian models give what R gives, and what the native engines give."""

from __future__ import annotations

import numpy as np
import pytest

from pybridge.smoothing._bayes import fit_area_model_bayes
from pybridge.smoothing._taxonomy import fit_taxonomy_bayes
from pybridge.smoothing._taxonomy_reml import fit_taxonomy_likelihood
from validation.cases.taxonomy import TAXONOMY_NAMES, load_area, load_taxonomy
from validation.reimplementations import bayes_fay_herriot as slow_area
from validation.reimplementations import taxonomy as slow

# Log variances: a range that holds the posterior to 1e-12, found by widening it.
AREA = {"milk_areas": (-20.0, 6.0), "few7": (-40.0, 60.0), "few5": (-40.0, 90.0)}


@pytest.mark.parametrize("name", sorted(AREA))
def test_area_twin(name):
    case = load_area(name)
    arrays = case.area_arrays()
    low, high = AREA[name]
    twin = slow_area.posterior(*arrays.values(), low=low, high=high, domains=(0,))
    exact = case.answer("stats", "exact", "variance_median")
    assert twin["variance_median"] == pytest.approx(exact.iloc[0], rel=1e-8)

    fit = fit_area_model_bayes(**arrays)
    assert fit.model_variance == pytest.approx(twin["variance_median"], rel=1e-8)
    np.testing.assert_allclose(fit.estimate, twin["estimate"], rtol=1e-8)
    np.testing.assert_allclose(fit.mse, twin["mse"], rtol=1e-8)
    np.testing.assert_allclose([fit.lower[0], fit.upper[0]], twin["quantiles"][0], rtol=1e-8)


# name, rows that are kept, nodes a level, box of the log variances, what the twin is good for.
TAXONOMY = [
    ("groups34", slice(None), 80, [(-6.0, 7.0), (-6.0, 3.5)], 1e-6),
    ("three60", slice(0, 18), 24, [(-5.0, 6.0), (-5.0, 5.0), (-5.0, 3.5)], 2e-3),
]


@pytest.mark.parametrize(("name", "rows", "nodes", "box", "rtol"), TAXONOMY)
def test_taxonomy_twin(name, rows, nodes, box, rtol):
    arrays = load_taxonomy(name).arrays()
    arrays = {k: [c[rows] for c in v] if k == "levels" else v[rows] for k, v in arrays.items()}
    fit = fit_taxonomy_bayes(**arrays)
    shape, scale = fit.prior.arrays(len(box))
    twin = slow.posterior(
        *arrays.values(), shape=shape, scale=scale, box=box, nodes=nodes, domains=(0, 7)
    )
    spread = np.sqrt(fit.mse)
    assert np.abs((fit.estimate - twin["estimate"]) / spread).max() < rtol
    np.testing.assert_allclose(fit.mse, twin["mse"], rtol=2 * rtol)
    np.testing.assert_allclose(fit.model_variances, twin["variance_medians"], rtol=20 * rtol)
    for i, ends in twin["quantiles"].items():
        assert np.abs(np.array([fit.lower[i], fit.upper[i]]) - ends).max() < 3 * rtol * spread[i]


@pytest.mark.parametrize("method", ["REML", "ML"])
@pytest.mark.parametrize("name", [n for n in TAXONOMY_NAMES if n not in ("gaps60", "three60")])
def test_likelihood_twin(name, method):
    arrays = load_taxonomy(name).arrays()
    data = tuple(arrays.values())
    fit = fit_taxonomy_likelihood(**arrays, method=method)
    twin = slow.likelihood_fit(*data, reml=method == "REML")
    size = twin.max()
    np.testing.assert_allclose(fit.model_variances, twin, rtol=1e-4, atol=1e-6 * size)
    same = slow.incidence(arrays["levels"])
    value = slow.log_likelihood(twin[None], *data[:3], same, reml=method == "REML")[0]
    own = fit.restricted_log_likelihood if method == "REML" else fit.log_likelihood
    assert own >= value - 1e-9
    assert own - value < 1e-7


@pytest.mark.parametrize("method", ["REML", "ML"])
@pytest.mark.parametrize("name", ["groups34", "three60", "gaps60"])
def test_mean_squared_error_twin(name, method):
    """The recursions for g3 and the ML bias against m by m matrices, unlabelled domains too."""
    arrays = load_taxonomy(name).arrays()
    fit = fit_taxonomy_likelihood(**arrays, method=method)
    if (fit.model_variances == 0.0).any():
        # Differences across 0 would leave the parameter space.
        fit = _away_from_zero(arrays, method)
    twin = slow.mean_squared_error(fit.model_variances, *arrays.values(), reml=method == "REML")
    np.testing.assert_allclose(fit.mse, twin, rtol=1e-6)


def _away_from_zero(arrays, method):
    from pybridge.smoothing._taxonomy_reml import taxonomy_at

    return taxonomy_at(np.array([0.3, 0.6, 0.5]), **arrays, method=method)
