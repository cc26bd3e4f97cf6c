"""What must agree by derivation: derivatives, units, order, names, one level as area model."""

from __future__ import annotations

import numpy as np
import pytest

from pybridge.smoothing._area_model import fit_area_model
from pybridge.smoothing._bayes import fit_area_model_bayes
from pybridge.smoothing._taxonomy import fit_taxonomy_bayes
from pybridge.smoothing._taxonomy_prior import TaxonomyPrior
from pybridge.smoothing._taxonomy_reml import fit_taxonomy_likelihood
from validation.reimplementations import bayes_fay_herriot as slow_area


def problem(seed=3, m=40, groups=6):
    rng = np.random.default_rng(seed)
    group = np.sort(rng.integers(0, groups, m))
    d = rng.uniform(0.3, 2.0, m)
    x = np.column_stack([np.ones(m), rng.normal(size=m)])
    z = x @ [1.0, 0.5] + rng.normal(size=groups)[group] + rng.normal(size=m) * np.sqrt(0.4 + d)
    return {
        "estimate": z,
        "variance": d,
        "covariates": x,
        "levels": [group // 3, group, np.arange(m)],
    }


def area_only(arrays):
    return {name: arrays[name] for name in ("estimate", "variance", "covariates")}


FITS = {
    "area": lambda a, **k: fit_area_model_bayes(**area_only(a), **k),
    "two": lambda a, **k: fit_taxonomy_bayes(**{**a, "levels": a["levels"][1:]}, **k),
    "three": lambda a, **k: fit_taxonomy_bayes(**a, **k),
}


@pytest.mark.parametrize("which", sorted(FITS))
def test_derivative_is_that_of_the_posterior_mean(which):
    arrays, step, i = problem(), 1e-3, 4
    # The default prior depends on the variances only, so the derivative in z is at a fixed prior.
    ends = []
    for sign in (1, -1):
        moved = arrays["estimate"].copy()
        moved[i] += sign * step
        ends.append(FITS[which]({**arrays, "estimate": moved}, quantiles=False).estimate[i])
    derivative = FITS[which](arrays, quantiles=False).derivative[i]
    assert derivative == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=2e-6)


@pytest.mark.parametrize("which", sorted(FITS))
@pytest.mark.parametrize("unit", [1e-6, 1e5, 1e80])
def test_units_do_not_matter(which, unit):
    arrays = problem()
    base = FITS[which](arrays)
    moved = {
        **arrays,
        "estimate": unit * arrays["estimate"],
        "variance": unit**2 * arrays["variance"],
    }
    fit = FITS[which](moved)
    for name, power in (("estimate", 1), ("lower", 1), ("mse", 2), ("shrinkage", 0)):
        mine, known = getattr(fit, name) / unit**power, getattr(base, name)
        np.testing.assert_allclose(mine, known, rtol=1e-9, atol=1e-9)
    assert fit.model_variance / unit**2 == pytest.approx(base.model_variance, rel=1e-9)


@pytest.mark.parametrize("which", sorted(FITS))
def test_order_and_names_do_not_matter(which):
    arrays = problem()
    base = FITS[which](arrays)
    rng = np.random.default_rng(1)
    order = rng.permutation(40)
    renamed = [rng.permutation(40)[code] for code in arrays["levels"]]
    moved = {name: value[order] for name, value in area_only(arrays).items()}
    moved["levels"] = [code[order] for code in renamed]
    fit = FITS[which](moved)
    for name in ("estimate", "mse", "lower", "upper", "synthetic"):
        np.testing.assert_allclose(getattr(fit, name), getattr(base, name)[order], rtol=1e-8)


@pytest.mark.parametrize("which", sorted(FITS))
def test_the_coding_of_the_covariates_does_not_matter(which):
    arrays = problem()
    base = FITS[which](arrays)
    turn = np.array([[1.0, 300.0], [0.0, 1e-4]])
    fit = FITS[which]({**arrays, "covariates": arrays["covariates"] @ turn})
    np.testing.assert_allclose(fit.estimate, base.estimate, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(fit.mse, base.mse, rtol=1e-8)
    np.testing.assert_allclose(turn @ fit.coefficients, base.coefficients, rtol=1e-8)


def test_adding_a_multiple_of_the_covariates_shifts_everything():
    arrays = problem()
    base = fit_taxonomy_bayes(**arrays)
    move = arrays["covariates"] @ [100.0, -7.0]
    fit = fit_taxonomy_bayes(**{**arrays, "estimate": arrays["estimate"] + move})
    np.testing.assert_allclose(fit.estimate - move, base.estimate, atol=1e-9)
    np.testing.assert_allclose(fit.mse, base.mse, rtol=1e-9)
    np.testing.assert_allclose(fit.coefficients - [100.0, -7.0], base.coefficients, atol=1e-9)


def test_one_level_is_the_area_model_under_the_same_prior():
    arrays = problem()
    arrays["levels"] = arrays["levels"][-1:]
    prior = TaxonomyPrior(shape=1.5, scale=0.2)
    fit = fit_taxonomy_bayes(**arrays, prior=prior)
    twin = slow_area.posterior(
        *area_only(arrays).values(),
        low=-8.0,
        high=6.0,
        log_prior=lambda s: -2.5 * np.log(s) - 0.2 / s,
        domains=(2,),
    )
    np.testing.assert_allclose(fit.estimate, twin["estimate"], rtol=1e-7)
    np.testing.assert_allclose(fit.mse, twin["mse"], rtol=1e-7)
    assert fit.model_variance == pytest.approx(twin["variance_median"], rel=1e-6)
    np.testing.assert_allclose([fit.lower[2], fit.upper[2]], twin["quantiles"][2], rtol=1e-6)


@pytest.mark.parametrize("method", ["REML", "ML"])
def test_one_level_by_likelihood_is_fay_herriot(method):
    arrays = problem()
    arrays["levels"] = arrays["levels"][-1:]
    arrays["estimate"][[3, 9]] = np.nan
    fit = fit_taxonomy_likelihood(**arrays, method=method)
    known = fit_area_model(**area_only(arrays), method=method)
    assert fit.model_variance == pytest.approx(known.model_variance, rel=1e-10)
    for name in ("estimate", "mse", "synthetic", "shrinkage"):
        np.testing.assert_allclose(getattr(fit, name), getattr(known, name), rtol=1e-8, atol=1e-12)
    assert fit.log_likelihood == pytest.approx(known.log_likelihood, abs=1e-9)
    assert fit.restricted_log_likelihood == pytest.approx(known.restricted_log_likelihood, abs=1e-9)


def test_the_sampler_agrees_with_quadrature():
    arrays = problem()
    known = fit_taxonomy_bayes(**arrays)
    fit = fit_taxonomy_bayes(**arrays, integration="gibbs", seed=8)
    # Moments are mixed exactly over the drawn variances, so a few hundred effective draws do.
    assert (fit.r_hat < 1.05).all() and (fit.effective_size > 200).all()
    assert np.abs((fit.estimate - known.estimate) / np.sqrt(known.mse)).max() < 0.05
    np.testing.assert_allclose(fit.mse, known.mse, rtol=0.06)
    np.testing.assert_allclose(fit.model_variances, known.model_variances, rtol=0.15)
    assert np.abs((fit.upper - known.upper) / np.sqrt(known.mse)).max() < 0.1


def test_a_finer_lattice_changes_nothing(monkeypatch):
    from pybridge.smoothing import _taxonomy_lattice as lattice

    arrays = problem()
    base = fit_taxonomy_bayes(**arrays)
    for name in ("_STEP", "_LONGEST_STEP"):
        steps = {depth: 0.7 * step for depth, step in getattr(lattice, name).items()}
        monkeypatch.setattr(lattice, name, steps)
    monkeypatch.setattr(lattice, "CUT", 28.0)
    monkeypatch.setattr(lattice, "MEAN_CUT", 22.0)
    fine = fit_taxonomy_bayes(**arrays)
    assert fine.n_nodes > 2 * base.n_nodes
    spread = np.sqrt(fine.mse)
    assert np.abs((base.estimate - fine.estimate) / spread).max() < 1e-6
    np.testing.assert_allclose(base.mse, fine.mse, rtol=1e-6)
    assert np.abs((base.lower - fine.lower) / spread).max() < 1e-6
    np.testing.assert_allclose(base.model_variances, fine.model_variances, rtol=2e-5)


def test_many_groups_of_one_add_up_to_the_leaf_level():
    """One child each: only the sum of the two levels' variances is in the likelihood."""
    arrays = problem()
    arrays["levels"] = [np.arange(40), np.arange(40)]
    fit = fit_taxonomy_likelihood(**arrays)
    known = fit_area_model(**area_only(arrays), method="REML")
    assert fit.model_variances.sum() == pytest.approx(known.model_variance, rel=1e-8)
    assert fit.restricted_log_likelihood == pytest.approx(known.restricted_log_likelihood, abs=1e-9)
