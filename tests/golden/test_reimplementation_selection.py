"""pybridge's cross-validation scores are those of refitting from the re-weighted units."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from tests.simulation import populations
from validation.reimplementations import direct, selection

K = 5
# The route through cells against that through units: differences of squares, of the largest score.
RTOL = 1e-10
# The predictor's slope is a central difference there.
RTOL_SLOPE = 1e-8

POPULATIONS = {
    "one stratum": (dict(total=2000), 0.12, None),
    "strata across": (dict(total=2000, n_strata=3), [0.08, 0.2, 0.6], None),
    "domains are strata": (dict(total=2000, domain_is_stratum=True), 0.12, None),
    "clusters": (dict(total=3000, n_strata=3, cluster_size=6, cluster_sd=0.4), 0.15, "cluster"),
    "small strata": (dict(total=2000, domain_is_stratum=True, spread=0.9), 0.025, None),
    "few units": (dict(total=2000, spread=1.2), 0.02, None),
    "binary": (dict(total=2000, binary=True), 0.12, None),
    "skewed": (dict(total=3000, n_strata=3), 0.15, None),
}
DIRECT = ("ht", "hajek", "ppi", "greg")


class Setting:
    """One sample, for both sides."""

    def __init__(self, kind, seed=2):
        options, fraction, unit = POPULATIONS[kind]
        options = {"spread": 0.3, "mean": 3.0, **options}
        pop = populations.population(8, seed=7, **options)
        if kind == "skewed":
            pop["y"] = np.exp(0.6 * pop["y"])
        rng = np.random.default_rng(seed)
        rows, w, N_h = populations.stratified_sample(pop, fraction, rng, unit=unit)
        _, F, N = populations.truth(pop)
        labels = np.array([f"d{i}" for i in range(len(N))])
        self.population = direct.Population(N, F)
        self.X = np.column_stack([np.ones(len(N)), F])
        self.sample = direct.Sample(
            y=pop["y"][rows],
            w=w,
            domain=pop["domain"][rows],
            F=pop["f"][rows],
            stratum=pop["stratum"][rows],
            psu=None if unit is None else pop[unit][rows],
            n_population=N_h,
        )
        self.units = pd.DataFrame(
            {
                "y": pop["y"][rows],
                "f": pop["f"][rows],
                "w": w,
                "h": pop["stratum"][rows],
                "psu": pop["cluster"][rows],
                "fpc": N_h,
                "d": labels[pop["domain"][rows]],
            }
        )
        self.design = pb.survey_design(
            self.units, weights="w", strata="h", ids=unit and "psu", fpc="fpc"
        )
        totals = pd.DataFrame({"d": labels, "N": N, "f": F})
        self.totals = pb.population(totals, domain="d", size="N", auxiliary_means=["f"])
        self.folds = selection.draw_folds(self.sample, K, rng, strata="own")

    def select(self, candidates, **options):
        options = {"folds": self.folds, **options}
        return pb.select(self.design, self.totals, candidates, outcome="y", domain="d", **options)

    def refit(self, name):
        candidate = selection.direct_candidate(name, self.population)
        return selection.refit(candidate, self.sample, self.folds, strata="own")

    def refit_fay_herriot(self, name):
        candidate = selection.fay_herriot_candidate(
            name, self.population, self.X, whole=self.sample
        )
        return selection.refit(candidate, self.sample, self.folds, strata="own")

    def reference(self, name):
        """The reference's fits, its direct variances, and the estimator itself."""
        estimator = direct.ESTIMATORS[name](self.sample, self.population)
        fits = self.refit(name)
        lacks = ~np.isfinite(fits.kept).all(axis=0) | self.never_kept
        fits.kept[:, lacks] = np.nan
        return fits, direct.variances(estimator, self.sample), estimator

    @property
    def never_kept(self):
        """Domains that some complement has no unit of: no direct estimate there."""
        m = len(self.population.N)
        counts = [np.bincount(self.sample.domain[self.folds != k], minlength=m) for k in range(K)]
        return np.min(counts, axis=0) == 0

    @property
    def never_held(self):
        """Domains that some fold has no unit of."""
        m = len(self.population.N)
        counts = [np.bincount(self.sample.domain[self.folds == k], minlength=m) for k in range(K)]
        return np.min(counts, axis=0) == 0


def described(name):
    auxiliary = {"ppi": "f", "greg": "f"}.get(name)
    return pb.candidate(name, direct=name, unit_auxiliary=auxiliary)


def smoothed(name, **options):
    options = {"smoothing": "fay_herriot", "area_formula": "~ f", "method": "REML", **options}
    return pb.candidate(
        f"FH {name}", direct=name, unit_auxiliary="f" if name == "greg" else None, **options
    )


def same(mine, theirs, rtol=RTOL):
    """Equal where both exist, missing at the same places; relative to the largest score."""
    np.testing.assert_array_equal(np.isnan(mine), np.isnan(theirs))
    scale = np.nanmax(np.abs(theirs))
    assert np.nanmax(np.abs(mine - theirs)) <= rtol * scale


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


def test_the_reference_is_the_one_of_the_smallest_variances():
    for kind in ("one stratum", "strata across", "clusters"):
        setting = Setting(kind)
        chosen = setting.select([described(name) for name in DIRECT])
        variances = {name: setting.reference(name)[1] for name in DIRECT}
        expected = selection.choose_reference(variances)
        assert chosen.reference.lower().replace("á", "a") == expected


@pytest.mark.parametrize("kind", ["one stratum", "strata across"])
def test_size_correction(kind):
    setting = Setting(kind)
    candidates = [described(name) for name in DIRECT]
    plain = setting.select(candidates, reference="ht").domain_scores["db_cv"]
    corrected = setting.select(candidates, reference="ht", size_corrected=True)
    ht = direct.ESTIMATORS["ht"](setting.sample, setting.population)
    phi = selection.jackknife_phi(ht, setting.sample, setting.folds)
    expected = selection.size_corrected(plain, K, phi)
    np.testing.assert_allclose(corrected.domain_scores["db_cv"], expected, rtol=1e-10)


@pytest.mark.parametrize("split", [0.5, 0.8])
def test_splits_of_strata_average_to_what_sampling_theory_says(split):
    # In a stratum of n units, HT on n1 of them against HT on the n2 others: the mean over all
    # splits of the squared difference is s^2 (1/n1 + 1/n2). Domains are the strata, n = 20.
    rng = np.random.default_rng(11)
    domain = np.repeat(np.arange(6), 20)
    y = rng.normal(domain, 1 + domain / 5)
    units = pd.DataFrame({"y": y, "h": domain, "d": [f"d{i}" for i in domain], "f": 0.0})
    totals = pd.DataFrame({"d": [f"d{i}" for i in range(6)], "N": 200.0, "f": 0.0})
    units["w"] = 10.0
    design = pb.survey_design(units, weights="w", strata="h")
    population = pb.population(totals, domain="d", size="N", auxiliary_means=["f"])
    n_seeds = 60
    scores = [
        pb.select(
            design,
            population,
            [pb.candidate("HT", direct="ht")],
            outcome="y",
            domain="d",
            score="split",
            reference="ht",
            split=split,
            seed=seed,
        ).domain_scores["split"][0]
        for seed in range(n_seeds)
    ]
    n1 = round(20 * split)
    s2 = np.array([y[domain == i].var(ddof=1) for i in range(6)])
    ratio = np.array(scores) / (s2 * (1 / n1 + 1 / (20 - n1)))
    # A squared, nearly normal difference has relative sd sqrt(2); seeds and domains independent.
    assert abs(ratio.mean() - 1) < 4 * np.sqrt(2 / ratio.size)
    assert ratio.std() > 1  # they are random splits, one a seed


def test_dong_li_is_the_distance_to_the_mean_of_the_hold_outs():
    setting = Setting("strata across")
    ht = setting.refit("ht")
    candidates = [described("greg"), smoothed("greg")]
    chosen = setting.select(candidates).domain_scores["adjusted"]
    for i, M in enumerate([setting.refit("greg")]):
        expected = np.mean((M.kept - ht.held.mean(axis=0)) ** 2, axis=0)
        np.testing.assert_allclose(selection.adjusted(M, ht), expected, rtol=1e-12, atol=1e-14)
        same(chosen[i], expected)


@pytest.mark.parametrize("kind", POPULATIONS)
def test_weights_of_folds_add_up_to_those_of_their_strata(kind):
    # For equal weights inside strata, each fold and each complement stands for all of it.
    setting = Setting(kind)
    labels, _ = selection.fold_strata(setting.sample, K)
    one = direct.Sample(**{**vars(setting.sample), "w": np.ones(len(setting.sample.y))})
    if len(set(one.psu)) < len(one.y):
        _, first = np.unique(one.psu, return_index=True)
        one, labels, folds = one.rows(first), labels[first], setting.folds[first]
    else:
        folds = setting.folds
    for k in range(K):
        for keep in (folds == k, folds != k):
            piece = selection.part(one, keep, K)
            for h in set(labels[keep]):
                total = piece.w[piece.stratum == h].sum()
                np.testing.assert_allclose(total, np.sum(labels == h), rtol=1e-12)
