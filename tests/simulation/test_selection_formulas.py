"""The formulas of cross-validation and smoothed variances hold over repeated samples.

They are simulated with the slow twin, which refits from units; that pybridge computes the same
numbers is tested elsewhere. Every claim has its Monte Carlo error.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulation import populations
from validation.reimplementations import direct, selection, smoothed_variances

K = 5


def sample_from(pop, fraction, rng, **options):
    rows, w, N_h = populations.stratified_sample(pop, fraction, rng, **options)
    return direct.Sample(
        y=pop["y"][rows],
        w=w,
        domain=pop["domain"][rows],
        F=pop["f"][rows],
        stratum=pop["stratum"][rows],
        n_population=N_h,
    )


def exact_variance_of_ht(pop, fraction):
    """Design variance of HT of each domain mean under stratified sampling, from the population."""
    _, _, N = populations.truth(pop)
    U = pop["y"][:, None] * direct.membership(pop["domain"], len(N)) / N
    stratum = pop["stratum"]
    fraction = np.broadcast_to(fraction, (stratum.max() + 1,))
    total = np.zeros(len(N))
    for h in np.unique(stratum):
        u = U[stratum == h]
        N_h = len(u)
        n_h = max(2, int(round(fraction[h] * N_h)))
        total += N_h**2 * (1 - n_h / N_h) * u.var(axis=0, ddof=1) / n_h
    return total


def repeat(pop, fraction, *, folds, repetitions, seed=1, reference="ht", strata="pooled"):
    """Per repetition, means over domains: direct variance, jackknife with and without phi, DB-CV.

    Candidate and reference are the same estimator. Also returns its errors (repetitions, m).
    """
    theta, F, N = populations.truth(pop)
    population = direct.Population(N, F)
    rng = np.random.default_rng(seed)
    candidate = selection.direct_candidate(reference, population)
    out, errors = [], []
    for _ in range(repetitions):
        sample = sample_from(pop, fraction, rng)
        label = folds(sample, K, rng)
        fits = selection.refit(candidate, sample, label, hold_outs=False, strata=strata)
        estimator = direct.ESTIMATORS[reference](sample, population)
        variance = direct.variances(estimator, sample)
        plain = selection.jackknife_covariance(fits, fits, 1.0)
        corrected = plain * selection.phi(estimator, sample)
        score = selection.db_cv(fits, fits, variance, corrected)
        out.append([np.nanmean(v) for v in (variance, corrected, plain, score)])
        errors.append(fits.full - theta)
    return np.array(out), np.array(errors)


def ratio(values, truth):
    """Mean ratio and its Monte Carlo error."""
    values = values / truth
    return values.mean(), values.std(ddof=1) / np.sqrt(len(values))


@pytest.fixture(scope="module")
def across():
    return populations.population(8, 2000, seed=3, spread=0.3, mean=4.0)


def test_for_the_reference_itself_the_score_is_its_variance_not_zero(across):
    truth = exact_variance_of_ht(across, 0.12).mean()
    out, _ = repeat(across, 0.12, folds=selection.draw_folds, repetitions=200)
    score, error = ratio(out[:, 3], truth)
    # Training on 4/5 of the sample: 1 + 1 / ((K - 1)(1 - n/N)) = 1.284.
    expected = 1 + 1 / ((K - 1) * (1 - 0.12))
    assert error < 0.06
    assert abs(score - expected) < 3 * error
    jackknife, error = ratio(out[:, 1], truth)
    assert abs(jackknife - 1) < 3 * error


def test_folds_balanced_in_domains_that_are_not_strata_make_it_negative(across):
    truth = exact_variance_of_ht(across, 0.12).mean()
    out, _ = repeat(across, 0.12, folds=selection.balanced_folds, repetitions=100)
    score, error = ratio(out[:, 3], truth)
    assert score + 3 * error < 0
    # The jackknife then misses the variation of n_i, most of HT's variance here.
    jackknife, _ = ratio(out[:, 1], truth)
    assert jackknife < 0.3


def test_phi_is_the_right_mixture_of_sampling_fractions():
    fraction = np.array([0.05, 0.2, 0.6])
    pop = populations.population(8, 2000, seed=3, spread=0.3, mean=4.0, n_strata=3)
    truth = exact_variance_of_ht(pop, fraction).mean()
    out, _ = repeat(pop, fraction, folds=selection.draw_folds, repetitions=250)
    with_phi, error = ratio(out[:, 1], truth)
    assert error < 0.04
    assert abs(with_phi - 1) < 3 * error
    # Paired over the same samples, leaving phi out is too large; a single 1 - n/N too small.
    gap, error = ratio(out[:, 2] - out[:, 1], truth)
    assert gap > 3 * error and gap > 0.05
    overall = 1 - np.mean(fraction)
    single, error = ratio(out[:, 2] * overall, truth)
    assert single + 3 * error < 1


def test_with_the_covariance_subtracted_the_score_would_be_negative(across):
    # Var + 2 Cov subtracted has mean -3 Var + Var/(K-1) for the reference itself, not Var.
    truth = exact_variance_of_ht(across, 0.12).mean()
    out, _ = repeat(across, 0.12, folds=selection.draw_folds, repetitions=60)
    wrong, error = ratio(out[:, 3] - 4 * out[:, 1], truth)
    assert wrong + 3 * error < -2


def mixed_sizes(mean, seed=4):
    """Eight domains that are strata; a 10 % sample takes 3 to 4 units of the first four."""
    rng = np.random.default_rng(seed)
    domain = np.repeat(np.arange(8), [30, 30, 40, 40, 300, 400, 200, 300])
    f = rng.standard_normal(len(domain))
    y = mean + 0.6 * f + 0.8 * rng.standard_normal(len(domain))
    y += 0.5 * rng.standard_normal(8)[domain]
    return {"y": y, "f": f, "domain": domain, "stratum": domain}


@pytest.mark.parametrize("mean", [1.0, 5.0])
def test_strata_smaller_than_the_folds_need_no_pooling_of_the_complements(mean):
    # With primary units in different folds of their own stratum, the score of HT is near the
    # truth whatever the level of y. (Pooled, other strata's units enter and the level with them.)
    pop = mixed_sizes(mean)
    truth = exact_variance_of_ht(pop, 0.1).mean()

    def own(sample, n_folds, rng):
        return selection.draw_folds(sample, n_folds, rng, strata="own")

    out, _ = repeat(pop, 0.1, folds=own, strata="own", repetitions=100)
    score, error = ratio(out[:, 3], truth)
    assert abs(score - 1.35) < 0.15 + 3 * error
    pooled, _ = repeat(pop, 0.1, folds=selection.draw_folds, repetitions=100)
    worse, error = ratio(pooled[:, 3], truth)
    assert worse - 3 * error > score


def covered(pop, fraction, repetitions, name="ht", seed=1):
    """Shares of |estimate - theta| <= 1.96 sqrt(d): smoothed, direct floored at s0^2 / 10."""
    theta, F, N = populations.truth(pop)
    population = direct.Population(N, F)
    rng = np.random.default_rng(seed)
    shares = []
    for _ in range(repetitions):
        sample = sample_from(pop, fraction, rng)
        estimator = direct.ESTIMATORS[name](sample, population)
        ht = direct.horvitz_thompson(sample, population)
        d = direct.variances(estimator, sample)
        smooth = smoothed_variances.smoothed_variances(estimator, ht, sample, population)
        error = np.abs(estimator.estimate - theta)
        floor = 0.1 * smooth.d * smooth.s0 / smooth.smoothed_element
        shares.append(
            [
                np.mean(error <= 1.96 * np.sqrt(smooth.d)),
                np.mean(error <= 1.96 * np.sqrt(np.maximum(d, floor))),
            ]
        )
    shares = np.array(shares)
    return shares.mean(axis=0), shares.std(axis=0, ddof=1) / np.sqrt(repetitions)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_smoothed_variances_cover_where_domains_are_strata(seed):
    pop = populations.population(
        20, 3000, seed=seed, binary=True, domain_is_stratum=True, level_sd=1.0
    )
    (smoothed, floored), (error, _) = covered(pop, 0.06, 150)
    assert error < 0.006
    assert 0.93 < smoothed + 2 * error and smoothed - 2 * error < 0.97
    assert floored < smoothed - 3 * error
