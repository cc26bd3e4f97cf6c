"""The taxonomy model on arrays: nested algebra, unlabelled groups, edges, samplers, bad input."""

from __future__ import annotations

import numpy as np
import pytest

from pybridge.errors import InputError
from pybridge.smoothing import _taxonomy_algebra as algebra
from pybridge.smoothing._taxonomy import fit_taxonomy_bayes
from pybridge.smoothing._taxonomy_gibbs import convergence
from pybridge.smoothing._taxonomy_likelihood import log_likelihoods, scores
from pybridge.smoothing._taxonomy_moments import posterior_moments
from pybridge.smoothing._taxonomy_prior import TaxonomyPrior
from pybridge.smoothing._taxonomy_problem import Problem
from pybridge.smoothing._taxonomy_reml import fit_taxonomy_likelihood
from pybridge.smoothing._taxonomy_tree import build_tree
from validation.reimplementations import taxonomy as slow


def problem(m=36, seed=5, missing=True):
    """Three unbalanced levels; unlabelled domains, one unlabelled county, one unlabelled region."""
    rng = np.random.default_rng(seed)
    county = rng.integers(0, 12, m)
    region = np.array([0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3, 3])[county]
    d = rng.uniform(0.2, 2.0, m)
    x = np.column_stack([np.ones(m), rng.normal(size=m)])
    z = 5.0 + x @ [1.0, 2.0] + rng.normal(size=12)[county] + rng.normal(size=m) * np.sqrt(0.5 + d)
    if missing:
        z[[3, 8]] = np.nan
        z[county == 5] = np.nan
        z[region == 3] = np.nan
    levels = [region, county, rng.permutation(m)]
    return {"estimate": z, "variance": d, "covariates": x, "levels": levels}


def in_units(arrays):
    tree = build_tree(arrays["levels"])
    return Problem.of(
        z=arrays["estimate"],
        d=arrays["variance"],
        x=arrays["covariates"],
        tree=tree,
        prior=None,
    )


NODES = np.array([[0.7, 0.4, 0.3], [0.1, 0.4, 0.3], [2.0, 1.0, 0.01], [1e-6, 5.0, 0.3]])


def test_algebra_is_that_of_dense_matrices():
    arrays = problem()
    mine = in_units(arrays)
    same = slow.incidence(arrays["levels"])
    data = (arrays["estimate"], arrays["variance"], arrays["covariates"])
    dense = slow.moments(NODES, *data, same)
    unit = mine.scale**2
    known = -0.5 * (dense["log_determinant"] + dense["log_information"] + dense["rest"])
    found = algebra.sweep_up(NODES / unit, mine.data).log_likelihood
    np.testing.assert_allclose(np.diff(found), np.diff(known), rtol=1e-10)

    weight = np.array([0.4, 0.3, 0.2, 0.1])
    moments = posterior_moments(NODES / unit, weight, mine.data)
    back = np.argsort(mine.data.tree.order)
    mean = weight @ dense["mean"]
    variance = weight @ dense["variance"] + weight @ (dense["mean"] - mean) ** 2
    estimate = mine.regression + mine.scale * moments.mean[back]
    np.testing.assert_allclose(estimate, mean, rtol=1e-11)
    np.testing.assert_allclose(unit * moments.variance[back], variance, rtol=1e-10)
    beta = weight @ dense["beta"]
    away = dense["beta"] - beta
    covariance = np.einsum("k,kpq->pq", weight, dense["covariance"])
    covariance += (weight[:, None] * away).T @ away
    np.testing.assert_allclose(
        mine.turn @ moments.covariance @ mine.turn.T * unit, covariance, rtol=1e-9
    )


@pytest.mark.parametrize("restricted", [True, False])
def test_score_is_the_slope_of_the_likelihood(restricted):
    data = in_units(problem()).data
    point, step = NODES[0], 1e-5
    score = scores(point[None], data, restricted=restricted)[0][0]
    for level in range(3):
        move = np.zeros(3)
        move[level] = step
        ends = log_likelihoods(np.array([point + move, point - move]), data, restricted=restricted)
        assert score[level] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-7)


@pytest.mark.parametrize("block", [64, 4096])
def test_blocks_do_not_change_the_numbers(monkeypatch, block):
    arrays = problem()
    base = fit_taxonomy_bayes(**arrays)
    from pybridge.smoothing import _taxonomy_quantiles as quantiles

    monkeypatch.setattr(algebra, "BLOCK_ELEMENTS", block * 16)
    monkeypatch.setattr(quantiles, "_KEPT_ELEMENTS", block)
    fit = fit_taxonomy_bayes(**arrays)
    for name in ("estimate", "mse", "lower", "upper", "shrinkage"):
        np.testing.assert_allclose(getattr(fit, name), getattr(base, name), rtol=1e-9)


def test_half_the_nodes_are_enough_for_quantiles(monkeypatch):
    from pybridge.smoothing import _taxonomy as module

    arrays = problem()
    base = fit_taxonomy_bayes(**arrays)
    monkeypatch.setattr(module, "_MANY_COMPONENTS", 0)
    fit = fit_taxonomy_bayes(**arrays)
    spread = np.sqrt(base.mse)
    # Of few domains, whose posterior has long tails; they are taken for many domains only.
    assert (np.abs(fit.lower - base.lower) / spread).max() < 1e-3
    assert (np.abs(fit.upper - base.upper) / spread).max() < 1e-3
    np.testing.assert_array_equal(fit.estimate, base.estimate)


def test_unlabelled_domains_use_the_coarser_levels():
    arrays = problem()
    fit = fit_taxonomy_bayes(**arrays)
    z, (region, county, _) = arrays["estimate"], arrays["levels"]
    plain = arrays["covariates"] @ fit.coefficients
    inside = np.isnan(z) & (county != 5) & (region != 3)
    assert inside.any() and (np.abs(fit.estimate[inside] - plain[inside]) > 0.05).any()
    np.testing.assert_allclose(fit.estimate[np.isnan(z)], fit.synthetic[np.isnan(z)], rtol=1e-12)
    # The less of the tree is labelled, the wider.
    far = fit.mse[region == 3].mean()
    assert far > fit.mse[(county == 5)].mean() > fit.mse[inside].mean() > 0.0
    np.testing.assert_allclose(fit.estimate[region == 3], plain[region == 3], atol=1e-9)
    np.testing.assert_array_equal(fit.derivative[np.isnan(z)], 0.0)


def test_census_domains():
    arrays = problem(missing=False)
    arrays["variance"][:4] = 0.0
    fit = fit_taxonomy_bayes(**arrays)
    np.testing.assert_array_equal(fit.estimate[:4], arrays["estimate"][:4])
    np.testing.assert_array_equal(fit.mse[:4], 0.0)
    np.testing.assert_array_equal(fit.derivative[:4], 1.0)
    for method in ("REML", "ML"):
        found = fit_taxonomy_likelihood(**arrays, method=method)
        np.testing.assert_array_equal(found.estimate[:4], arrays["estimate"][:4])
        np.testing.assert_array_equal(found.mse[:4], 0.0)
        assert found.model_variance > 0.0


def test_variance_of_an_unlabelled_group_that_has_none():
    """Two labelled regions and two coefficients of regions: E[s | z] of the region is infinite."""
    rng = np.random.default_rng(2)
    m = 24
    region = np.arange(m) // 8
    x = np.column_stack([np.ones(m), (region == 1) * 1.0])
    z = rng.normal(size=m)
    z[region == 2] = np.nan
    fit = fit_taxonomy_bayes(
        estimate=z, variance=np.ones(m), covariates=x, levels=[region, np.arange(m)]
    )
    assert np.isnan(fit.model_variance_means[0]) and np.isfinite(fit.model_variance_means[1])
    assert np.isnan(fit.mse[region == 2]).all() and np.isfinite(fit.mse[region < 2]).all()


def test_the_prior_scales_with_the_data():
    arrays = problem()
    fit = fit_taxonomy_bayes(**arrays, quantiles=False)
    seen = ~np.isnan(arrays["estimate"])
    assert fit.prior.shape == (1.0, 1.0, 0.1)
    assert fit.prior.scale == (0.1 * np.median(arrays["variance"][seen]),) * 3
    assert "inverse-gamma(1, " in fit.prior.summary()


@pytest.mark.parametrize("bad", [0.0, -1.0, np.inf, "a", (1.0, 2.0)])
def test_bad_priors(bad):
    with pytest.raises(InputError) as caught:
        fit_taxonomy_bayes(**problem(), prior=TaxonomyPrior(shape=1.0, scale=bad))
    assert caught.value.code == "bad_prior"


def test_a_strong_prior_wins():
    arrays = problem()
    prior = TaxonomyPrior(shape=4000.0, scale=tuple(4000.0 * v for v in (0.5, 0.2, 0.9)))
    fit = fit_taxonomy_bayes(**arrays, prior=prior)
    np.testing.assert_allclose(fit.model_variances, [0.5, 0.2, 0.9], rtol=2e-3)


def test_four_levels_go_to_the_sampler():
    arrays = problem(missing=False)
    region, county, domain = arrays["levels"]
    arrays["levels"] = [region // 2, region, county, domain]
    fit = fit_taxonomy_bayes(**arrays, seed=1, n_draws=300)
    again = fit_taxonomy_bayes(**arrays, seed=1, n_draws=300)
    assert fit.integration == "gibbs" and fit.n_nodes == 2400
    assert fit == again
    assert fit.r_hat.shape == fit.effective_size.shape == (6,)
    with pytest.raises(InputError) as caught:
        fit_taxonomy_bayes(**arrays, integration="quadrature")
    assert caught.value.code == "too_many_levels"


def test_convergence_sees_chains_apart_and_slow_mixing():
    rng = np.random.default_rng(3)
    white = rng.normal(size=(4, 1000))
    r_hat, size = convergence(white)
    assert r_hat < 1.01 and 3000 < size < 5500
    assert convergence(white + np.arange(4.0)[:, None])[0] > 1.3
    walk = np.empty((4, 1000))
    walk[:, 0] = 0.0
    for t in range(1, 1000):
        walk[:, t] = 0.9 * walk[:, t - 1] + white[:, t]
    # A first-order autoregression with 0.9 is worth (1 - 0.9) / (1 + 0.9) of its length.
    assert convergence(walk)[1] == pytest.approx(4000 / 19.0, rel=0.5)


@pytest.mark.parametrize(
    ("levels", "code"),
    [
        (lambda r, c, d: [c, r, d], "taxonomy_not_nested"),
        (lambda r, c, d: [r, c, d // 2], "taxonomy_not_nested"),
        (lambda r, c, d: [r, c], "duplicate_domain"),
        (lambda r, c, d: [r, c, d[:-1]], "bad_shape"),
        (lambda r, c, d: [], "bad_shape"),
    ],
)
def test_bad_taxonomies(levels, code):
    arrays = problem(missing=False)
    arrays["levels"] = levels(*arrays["levels"])
    with pytest.raises(InputError) as caught:
        fit_taxonomy_bayes(**arrays)
    assert caught.value.code == code


def test_boundary_of_the_likelihood():
    rng = np.random.default_rng(7)
    m = 30
    group = np.arange(m) // 5
    z = rng.normal(size=m)
    z -= np.array([z[group == g].mean() for g in range(6)])[group]
    fit = fit_taxonomy_likelihood(
        estimate=z,
        variance=np.full(m, 0.1),
        covariates=np.ones((m, 1)),
        levels=[group, np.arange(m)],
    )
    assert fit.status == "boundary" and fit.model_variances[0] == 0.0
    assert fit.model_variances[1] > 0.0 and np.isfinite(fit.mse).all()


def test_sampling_variances_over_many_orders_of_magnitude():
    rng = np.random.default_rng(12)
    m = 60
    group = np.arange(m) // 10
    d = 10.0 ** rng.uniform(-8, 4, m)
    z = rng.normal(size=6)[group] + rng.normal(size=m) * np.sqrt(d + 0.01)
    arrays = {"estimate": z, "variance": d, "covariates": np.ones((m, 1))}
    arrays["levels"] = [group, np.arange(m)]
    for method in ("REML", "ML"):
        fit = fit_taxonomy_likelihood(**arrays, method=method)
        assert fit.status == "converged"
        assert 0.002 < fit.model_variance < 0.05
    posterior = fit_taxonomy_bayes(**arrays)
    assert np.isfinite(posterior.mse).all() and (posterior.lower < posterior.upper).all()


def test_a_likelihood_without_a_maximum_is_said_to_have_none():
    """Two census domains and three coefficients: under ML the likelihood grows without end."""
    rng = np.random.default_rng(13)
    d = np.array([0.0, 0.0, 0.3, 0.5, 4.0, 5.0, 1.0])
    x = np.column_stack([np.ones(7), rng.normal(size=(7, 2))])
    z = x @ [1.0, 2.0, 3.0] + rng.normal(size=7)
    arrays = {"estimate": z, "variance": d, "covariates": x, "levels": [np.arange(7)]}
    assert fit_taxonomy_likelihood(**arrays, method="ML").status == "not_converged"
    assert fit_taxonomy_likelihood(**arrays, method="REML").status == "weak_identification"
