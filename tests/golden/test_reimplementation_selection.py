"""pybridge's cross-validation scores are those of refitting from the re-weighted units."""

from __future__ import annotations

import numpy as np
import pytest

import pybridge as pb
from validation.reimplementations import direct, selection
from tests.golden.selection_settings import DIRECT, POPULATIONS, Setting, described, same, smoothed


# The predictor's slope is a central difference there.
RTOL_SLOPE = 1e-8


@pytest.mark.parametrize("kind", POPULATIONS)
@pytest.mark.parametrize("reference", DIRECT)
def test_direct_candidates(kind, reference):
    setting = Setting(kind)
    chosen = setting.select([described(name) for name in DIRECT], reference=reference)
    assert chosen.reference.lower().replace("á", "a") == reference
    R, variance, estimator = setting.reference(reference)
    phi = selection.jackknife_phi(estimator, setting.sample, setting.folds)
    ht = setting.refit("ht")
    ht.held[:, setting.never_held] = np.nan
    for i, name in enumerate(DIRECT):
        M = setting.refit(name)
        scores = chosen.domain_scores
        same(scores["naive"][i], selection.naive(M, ht))
        same(scores["adjusted"][i], selection.adjusted(M, ht))
        covariance = selection.jackknife_covariance(R, M, phi)
        same(scores["db_cv"][i], selection.db_cv(M, R, variance, covariance))


@pytest.mark.parametrize("kind", ["one stratum", "strata across", "domains are strata", "clusters"])
@pytest.mark.parametrize("reference", ["ht", "greg"])
def test_direct_candidates_linearised(kind, reference):
    setting = Setting(kind)
    chosen = setting.select(
        [described(name) for name in DIRECT], reference=reference, covariance="linearised"
    )
    R, variance, estimator = setting.reference(reference)
    for i, name in enumerate(DIRECT):
        M = setting.refit(name)
        other = direct.ESTIMATORS[name](setting.sample, setting.population)
        mixed = np.diag(direct.covariance_between(estimator, other, setting.sample))
        same(chosen.domain_scores["db_cv"][i], selection.db_cv(M, R, variance, mixed))
        same(chosen.domain_scores["sure"][i], selection.sure(M, R, variance, mixed))


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        ("domains are strata", 2),
        ("domains are strata", 3),
        ("one stratum", 2),
        ("strata across", 2),
        ("clusters", 2),
        ("skewed", 2),
    ],
)
@pytest.mark.parametrize("reference", ["ht", "greg"])
def test_fay_herriot_candidates(kind, seed, reference):
    setting = Setting(kind, seed)
    names = ("ht", "greg")
    R, variance, estimator = setting.reference(reference)
    phi = selection.jackknife_phi(estimator, setting.sample, setting.folds)
    ht = setting.refit("ht")
    fits = {name: setting.refit_fay_herriot(name) for name in names}
    candidates = [smoothed(name) for name in names]
    chosen = setting.select(candidates, reference=reference).domain_scores
    for i, name in enumerate(names):
        same(chosen["naive"][i], selection.naive(fits[name], ht))
        same(chosen["adjusted"][i], selection.adjusted(fits[name], ht))
        covariance = selection.jackknife_covariance(R, fits[name], phi)
        same(chosen["db_cv"][i], selection.db_cv(fits[name], R, variance, covariance))

    chosen = setting.select(candidates, reference=reference, covariance="linearised").domain_scores
    for i, name in enumerate(names):
        z, smooth = selection.fay_herriot_inputs(name, setting.sample, setting.population)
        slope = selection.predictor_slope(z, smooth.d, setting.X, fixed_variance=True)
        other = direct.ESTIMATORS[name](setting.sample, setting.population)
        covariance = slope * np.diag(direct.covariance_between(estimator, other, setting.sample))
        expected = selection.db_cv(fits[name], R, variance, covariance)
        same(chosen["db_cv"][i], expected, RTOL_SLOPE)
        expected = selection.sure(fits[name], R, variance, covariance)
        same(chosen["sure"][i], expected, RTOL_SLOPE)


@pytest.mark.parametrize("kind", ["one stratum", "strata across", "clusters"])
@pytest.mark.parametrize("name", ["ht", "greg"])
def test_a_described_candidate_is_the_public_functions_on_the_fold(kind, name):
    # variance="pooled" has no fourth moments, which the cells keep for the whole sample only.
    setting = Setting(kind)

    def by_hand(sample, population):
        ids = "psu" if kind == "clusters" else None
        design = pb.survey_design(sample, weights="weight", strata="h", ids=ids, fpc="fpc")
        function = pb.horvitz_thompson if name == "ht" else pb.generalized_regression
        area = function(design, population, outcome="y", domain="d", variance="pooled").to_frame()
        area["f"] = setting.population.F[:, 0]
        fit = pb.fay_herriot(
            "estimate ~ f",
            area,
            variance="variance",
            domain="domain",
            engine="native",
            method="REML",
        )
        return fit.to_frame().set_index("domain")["estimate"].loc[area["domain"]].to_numpy()

    candidates = [smoothed(name, variance="pooled"), pb.candidate("by hand", function=by_hand)]
    chosen = setting.select(candidates, reference="greg")
    assert not chosen.failed
    for score in ("naive", "adjusted", "db_cv"):
        described_one, by_hand_one = chosen.domain_scores[score]
        same(described_one, by_hand_one, 1e-9)


def test_means_errors_and_differences():
    setting = Setting("few units")
    candidates = [described(name) for name in DIRECT]
    chosen = setting.select(candidates)
    per_domain = chosen.domain_scores["db_cv"]
    assert np.isnan(per_domain).any() and chosen.n_domains_scored["db_cv"] < per_domain.shape[1]
    best = int(np.argmin(chosen.scores["db_cv"]))
    assert chosen.selected == DIRECT[best]
    frame = chosen.to_frame().set_index("candidate").loc[list(DIRECT)]
    for i, name in enumerate(DIRECT):
        mean, error, n = selection.mean_and_error(per_domain[i])
        assert n == frame.loc[name, "n_domains_scored"] == chosen.n_domains_scored["db_cv"]
        np.testing.assert_allclose(frame.loc[name, ["score", "db_cv"]].astype(float), mean)
        np.testing.assert_allclose(frame.loc[name, "score_standard_error"], error)
        expected = np.sqrt(mean) if mean >= 0 else np.nan
        np.testing.assert_allclose(frame.loc[name, "reported_rmse"], expected)
        mean, error, _ = selection.paired_difference(per_domain[i], per_domain[best])
        np.testing.assert_allclose(frame.loc[name, "difference_to_best"], mean, atol=1e-15)
        np.testing.assert_allclose(frame.loc[name, "difference_standard_error"], error, atol=1e-15)


@pytest.mark.parametrize("kind", ["one stratum", "strata across", "clusters", "binary"])
def test_dong_li_bounds_of_pairs(kind):
    setting = Setting(kind)
    chosen = setting.select([described(name) for name in DIRECT], reference="greg", level=0.9)
    ht = setting.refit("ht")
    variance = setting.reference("ht")[1]
    fits = {name: setting.refit(name) for name in DIRECT}
    table = chosen.pairwise
    assert len(table) == 6
    for row in table.itertuples():
        pair = fits[row.candidate], fits[row.other]
        delta, bound = selection.dong_li_bounds(*pair, ht, variance, z=1.6448536269514722)
        assert row.difference == pytest.approx(delta, rel=1e-9)
        assert row.bound == pytest.approx(bound, rel=1e-9)
        better = row.candidate if delta < 0 else row.other
        assert row.better == ("undecided" if abs(delta) <= bound else better)
