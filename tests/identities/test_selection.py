"""What must hold of cross-validation scores whatever the data, and of functions as candidates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.design.folds import make_folds
from pybridge.selection.record import Selection
from pybridge.selection.scores import (
    adjusted_score,
    debiased_score,
    jackknife_covariance,
    naive_score,
    size_factor,
    sure_score,
)
from tests.simulation import populations

K = 5
KINDS = {
    "simple random": (dict(total=1500), 0.15, None),
    "strata across": (dict(total=1500, n_strata=3), [0.1, 0.2, 0.5], None),
    "domains are strata": (dict(total=1500, domain_is_stratum=True), 0.15, None),
    "strata smaller than K": (dict(total=1500, domain_is_stratum=True, spread=1.0), 0.03, None),
    "clusters": (dict(total=2500, n_strata=2, cluster_size=5, cluster_sd=0.4), 0.2, "cluster"),
}
DIRECT = ("ht", "hajek", "ppi", "greg")


class Setting:
    """A sample of a seeded population, its design, and what is known of the population."""

    def __init__(self, kind: str, *, fpc: bool = True, scale: float = 1.0) -> None:
        options, fraction, unit = KINDS[kind]
        pop = populations.population(8, seed=5, **{"spread": 0.3, "mean": 3.0, **options})
        rng = np.random.default_rng(9)
        rows, w, known = populations.stratified_sample(pop, fraction, rng, unit=unit)
        _, F, N = populations.truth(pop)
        names = np.array([f"d{i}" for i in range(8)], dtype=object)
        self.units = pd.DataFrame(
            {
                "y": scale * pop["y"][rows],
                "f": scale * pop["f"][rows],
                "d": names[pop["domain"][rows]],
                "w": w,
                "h": pop["stratum"][rows],
                "psu": pop["cluster"][rows],
                "known": known,
            }
        )
        self.words: dict[str, Any] = dict(weights="w", strata="h", ids=unit and "psu")
        self.words["fpc"] = "known" if fpc else None
        self.design = pb.survey_design(self.units, **self.words)
        totals = pd.DataFrame(
            {"d": names, "N": N, "f": scale * F, "r": [f"r{i % 2}" for i in range(8)]}
        )
        self.population = pb.population(
            totals, domain="d", size="N", auxiliary_means=["f"], taxonomy=["r"]
        )

    def select(self, candidates: Any, **options: Any) -> Selection:
        words = {"outcome": "y", "domain": "d", **options}
        return pb.select(self.design, self.population, candidates, **words)

    def without(self, fold: int, unit_fold: np.ndarray) -> pd.DataFrame:
        """The sample without a fold, re-weighted by primary units inside design strata."""
        unit = "psu" if self.words["ids"] else None
        keep = unit_fold != fold
        table = self.units.reset_index(names="row") if unit is None else self.units
        psu = table["row" if unit is None else unit]
        all_of = psu.groupby(self.units["h"]).nunique()
        left = psu[keep].groupby(self.units["h"][keep]).nunique()
        factor = (all_of / left).reindex(self.units["h"][keep]).to_numpy()
        return self.units[keep].assign(w=lambda t: t["w"] * factor)

    def deleted(self, record: Any, unit_fold: np.ndarray) -> np.ndarray:
        """What deleting the folds one by one estimates of a record's variances, (m,).

        Σ_h c_h n_h/(n_h − 1) Σ (t − mean)² over primary units' totals t of w e/N_i, with
        c_h = (K−1)/K Σ_k n_hk/(n_h − n_hk).
        """
        table = self.units.assign(fold=unit_fold)
        table["unit"] = table["psu"] if self.words["ids"] else np.arange(len(table))
        beta = np.zeros(2)
        beta[: record.coefficients.shape[1]] = record.coefficients[0]
        table["e"] = table["w"] * (table["y"] - beta[0] - beta[1] * table["f"])
        parts = np.zeros(self.population.n_domains)
        for _, own in table.groupby("h"):
            units = own.drop_duplicates("unit")
            n, n_k = len(units), np.bincount(units["fold"], minlength=K)
            if n < 2:
                continue
            factor = (K - 1) / K * (n_k / (n - n_k)).sum() if n_k.max() < n else 1.0
            totals = own.pivot_table(index="unit", columns="d", values="e", aggfunc="sum")
            t = totals.reindex(columns=self.population.domains).fillna(0.0) / self.population.size
            parts += factor * n * t.var(ddof=1).to_numpy()
        return parts


def built_in(method: str) -> Any:
    auxiliary = "f" if method in ("ppi", "greg") else None
    return pb.candidate(method, direct=method, unit_auxiliary=auxiliary)


def smoothed(name: str, **options: Any) -> Any:
    return pb.candidate(
        name,
        direct="greg",
        unit_auxiliary="f",
        smoothing="fay_herriot",
        area_formula="~ f",
        **options,
    )


def close(mine: np.ndarray, theirs: np.ndarray, rtol: float) -> None:
    """Equal where both exist, missing at the same places; relative to the largest."""
    np.testing.assert_array_equal(np.isnan(mine), np.isnan(theirs))
    assert np.nanmax(np.abs(mine - theirs)) <= rtol * np.nanmax(np.abs(theirs))


# --- the formulas ------------------------------------------------------------------------------


def test_dong_and_li_is_the_distance_to_the_mean_hold_out() -> None:
    rng = np.random.default_rng(1)
    M, H = 5 + rng.normal(size=(K, 30)), 5 + 2 * rng.normal(size=(K, 30))
    m, h = M - M.mean(axis=0), H - H.mean(axis=0)
    as_published = naive_score(rest=M, ht_fold=H) - (h**2).mean(axis=0) + 2 * (m * h).mean(axis=0)
    np.testing.assert_allclose(adjusted_score(rest=M, ht_fold=H), as_published, rtol=1e-12)


def test_the_score_of_the_reference_is_made_of_its_variance() -> None:
    rng = np.random.default_rng(2)
    R, whole, V = rng.normal(size=(K, 30)), rng.normal(size=30), rng.gamma(2.0, size=30)
    phi = rng.uniform(0.2, 1.0, size=30)
    covariance = jackknife_covariance(reference_rest=R, rest=R, fpc_factor=phi)
    spread = R.var(axis=0)
    np.testing.assert_allclose(covariance, phi * (K - 1) * spread, rtol=1e-12)
    score = debiased_score(rest=R, reference=whole, variance=V, covariance=covariance)
    distance = (R.mean(axis=0) - whole) ** 2
    expected = distance + spread - V + 2 * phi * (K - 1) * spread
    np.testing.assert_allclose(score, expected, rtol=1e-12)
    sure = sure_score(whole=whole, reference=whole, variance=V, covariance=V)
    np.testing.assert_allclose(sure, V, rtol=1e-12)


@pytest.mark.parametrize("n_folds", [2, 5, 20])
def test_the_size_factor(n_folds: int) -> None:
    phi = np.array([1.0, 0.9, 0.5, 0.1])
    factor = size_factor(n_folds, phi)
    assert factor[0] == pytest.approx((n_folds - 1) / n_folds, rel=1e-15)
    # Variance of a mean of n and of (K−1)/K n of N units, n/N = 1 − φ.
    larger = (n_folds / (n_folds - 1) - (1 - phi)) / phi
    np.testing.assert_allclose(factor, 1 / larger, rtol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["ht", "greg"])
def test_the_score_of_the_reference_from_the_public_estimators(kind: str, method: str) -> None:
    # R(−k) by calling the estimator on the re-weighted rows: the cells are not used here.
    setting = Setting(kind)
    folds = make_folds(setting.design, K, seed=3)
    function = pb.horvitz_thompson if method == "ht" else pb.generalized_regression
    words = dict(outcome="y", domain="d")
    whole = function(setting.design, setting.population, **words)
    rest = []
    for k in range(K):
        design = pb.survey_design(setting.without(k, folds.unit_fold), weights="w")
        rest.append(function(design, setting.population, **words).to_frame()["estimate"])
    R = np.array(rest)
    phi = whole.variance / setting.deleted(whole, folds.unit_fold)
    R[:, whole.n_labelled == 0] = np.nan
    alone = whole.n_labelled == 1
    expected = (
        ((R - whole.estimate) ** 2).mean(axis=0)
        - whole.variance
        + 2 * phi * (K - 1) / K * ((R - R.mean(axis=0)) ** 2).sum(axis=0)
    )
    # GREG is synthetic where a complement has no unit: there is no reference there.
    kept = np.array(
        [
            np.isin(whole.to_frame()["domain"], setting.without(k, folds.unit_fold)["d"])
            for k in range(K)
        ]
    )
    expected[~kept.all(axis=0) | alone] = np.nan
    chosen = setting.select([built_in(method)], reference=method, folds=folds.unit_fold)
    mine = chosen.domain_scores["db_cv"][0].copy()
    mine[alone] = np.nan
    close(mine, expected, 1e-10)


# --- what must not matter ----------------------------------------------------------------------


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def tables(selection: Selection) -> dict[str, np.ndarray]:
    return {key: np.asarray(values) for key, values in selection.domain_scores.items()}


def test_the_order_of_candidates(kind: str) -> None:
    setting = Setting(kind)
    candidates = [*map(built_in, DIRECT), smoothed("FH"), smoothed("PP-S", method="bayes")]
    order = [3, 5, 0, 4, 2, 1]
    one = setting.select(candidates)
    other = setting.select([candidates[i] for i in order])
    assert (one.selected, one.reference) == (other.selected, other.reference)
    for key, values in tables(one).items():
        np.testing.assert_array_equal(values[order], other.domain_scores[key])
    pd.testing.assert_frame_equal(one.to_frame(), other.to_frame())


def test_the_order_of_rows_with_the_same_folds(kind: str) -> None:
    setting = Setting(kind)
    folds = make_folds(setting.design, K).unit_fold
    order = np.random.default_rng(3).permutation(len(folds))
    candidates = [*map(built_in, DIRECT), smoothed("FH")]
    one = setting.select(candidates, folds=folds)
    setting.design = pb.survey_design(setting.units.iloc[order], **setting.words)
    other = setting.select(candidates, folds=folds[order])
    for key, values in tables(one).items():
        close(other.domain_scores[key], values, 1e-9)


def test_folds_by_number_are_folds_by_name(kind: str) -> None:
    setting = Setting(kind)
    folds = make_folds(setting.design, K, seed=7).unit_fold
    candidates = list(map(built_in, DIRECT))
    one = setting.select(candidates, seed=7)
    names = np.array(list("edcba"))[folds]
    for other in (folds, folds.astype(float) * 3, names, pd.Series(names, dtype="category")):
        for key, values in tables(setting.select(candidates, folds=other)).items():
            close(values, tables(one)[key], 1e-12)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_units_of_measurement(kind: str, scale: float) -> None:
    candidates = [*map(built_in, DIRECT), smoothed("FH"), smoothed("PP-S", method="bayes")]
    one = Setting(kind).select(candidates, covariance="linearised")
    other = Setting(kind, scale=scale).select(candidates, covariance="linearised")
    assert one.selected == other.selected
    for key, values in tables(one).items():
        close(other.domain_scores[key] / scale**2, values, 1e-7)
    jack, scaled = (Setting(kind, scale=s).select(candidates) for s in (1.0, scale))
    close(scaled.domain_scores["db_cv"] / scale**2, jack.domain_scores["db_cv"], 1e-7)


# --- options -----------------------------------------------------------------------------------


def test_size_correction_without_a_finite_population() -> None:
    setting = Setting("simple random", fpc=False)
    plain = setting.select([built_in("ht"), built_in("greg")])
    corrected = setting.select([built_in("ht"), built_in("greg")], size_corrected=True)
    for key in ("db_cv", "db_cv_ht"):
        expected = plain.domain_scores[key] * (K - 1) / K
        np.testing.assert_allclose(corrected.domain_scores[key], expected, rtol=1e-12)
    for key in ("naive", "adjusted", "sure"):
        np.testing.assert_array_equal(corrected.domain_scores[key], plain.domain_scores[key])


def test_size_correction_where_much_was_sampled() -> None:
    setting = Setting("domains are strata")
    plain = setting.select([built_in("ht")], reference="ht").domain_scores["db_cv"][0]
    corrected = setting.select([built_in("ht")], reference="ht", size_corrected=True)
    fraction = setting.units.groupby("d")["w"].agg(lambda w: (1 / w).mean()).to_numpy()
    n = setting.units.groupby("d")["w"].size().to_numpy()
    n_k = np.array([n // K + (k < n % K) for k in range(K)])  # folds as equal as can be
    phi = (1 - fraction) / ((K - 1) / K * (n_k / (n - n_k)).sum(axis=0))
    expected = plain * ((K - 1) * phi) / ((K - 1) * phi + 1)
    np.testing.assert_allclose(corrected.domain_scores["db_cv"][0], expected, rtol=1e-12)


def test_repetitions_are_averaged(kind: str) -> None:
    setting = Setting(kind)
    candidates = [built_in("ht"), built_in("greg"), smoothed("FH")]
    together = setting.select(candidates, repetitions=3, seed=11)
    apart = [setting.select(candidates, seed=11 + i) for i in range(3)]
    assert together.repetitions == 3
    for key in ("db_cv", "db_cv_ht", "naive", "adjusted", "sure"):
        mean = np.mean([tables(one)[key] for one in apart], axis=0)
        close(tables(together)[key], mean, 1e-12)
        np.testing.assert_allclose(
            together.scores[key], np.nanmean(tables(together)[key], axis=1), rtol=1e-12
        )


@pytest.mark.parametrize(
    ("kind", "fpc"),
    [("simple random", False), ("strata across", True), ("clusters", True)],
)
def test_jackknife_and_linearised_covariance_agree(kind: str, fpc: bool) -> None:
    # Over many splits of one sample the jackknife's mean is the linearised covariance, summed over
    # domains and up to terms of higher order; each split is one draw of it.
    setting = Setting(kind, fpc=fpc)
    candidates = list(map(built_in, DIRECT))
    gaps = []
    for seed in range(40):
        words = dict(seed=seed, reference="ht")
        jack = setting.select(candidates, **words).domain_scores["db_cv"]
        line = setting.select(candidates, covariance="linearised", **words).domain_scores["db_cv"]
        gaps.append((jack - line).sum(axis=1) / 2)
    data = setting.design, setting.population
    words = dict(outcome="y", domain="d")
    records = (
        pb.horvitz_thompson(*data, **words),
        pb.hajek(*data, **words),
        pb.prediction_powered(*data, **words),
        pb.generalized_regression(*data, **words),
    )
    size = np.array([np.sqrt(r.variance * records[0].variance).sum() for r in records])
    mean, error = np.mean(gaps, axis=0) / size, np.std(gaps, axis=0, ddof=1) / size / np.sqrt(40)
    assert error.max() < 0.06
    assert np.all(np.abs(mean) < 4 * error + 0.03)


# --- functions ---------------------------------------------------------------------------------


def hajek_by_hand(sample: pd.DataFrame, population: Any) -> np.ndarray:
    sums = sample.assign(wy=sample["weight"] * sample["y"]).groupby("d")[["wy", "weight"]].sum()
    return (sums["wy"] / sums["weight"]).reindex(population.domains).to_numpy()


def ht_by_hand(sample: pd.DataFrame, population: Any) -> pd.Series:
    total = (sample["weight"] * sample["y"]).groupby(sample["d"]).sum()
    size = pd.Series(population.size, index=pd.Index(population.domains, dtype=object))
    return (total / size.reindex(total.index)).sample(frac=1.0, random_state=1)


@pytest.mark.parametrize(("method", "function"), [("hajek", hajek_by_hand), ("ht", ht_by_hand)])
def test_a_function_of_the_weights_is_the_built_in(kind: str, method: str, function: Any) -> None:
    setting = Setting(kind)
    found = pb.evaluate(
        setting.units,
        population=setting.population,
        outcome="y",
        domain="d",
        auxiliary=["f"],
        candidates=[built_in(method), pb.candidate("by hand", function=function)],
        reference="greg",
        **setting.words,
    )
    assert not found.selection.failed
    mine, theirs = found.fit("by hand"), found.fit(method)
    close(mine.estimate, theirs.estimate, 1e-12)
    close(mine.rest, theirs.rest, 1e-12)
    for key in ("db_cv", "db_cv_ht", "naive", "adjusted"):
        by_hand, direct = found.selection.domain_scores[key][[1, 0]]
        close(by_hand, direct, 1e-10)


def test_a_stratum_in_one_fold_only_is_pooled_for_the_rest() -> None:
    # The function's weights and the cells' must follow the same pool.
    setting = Setting("domains are strata")
    folds = make_folds(setting.design, K).unit_fold.copy()
    folds[setting.units["h"] == 0] = 2
    seen = []

    def watched(sample: pd.DataFrame, population: Any) -> np.ndarray:
        seen.append(sample["weight"].sum())
        return hajek_by_hand(sample, population)

    chosen = setting.select(
        [built_in("hajek"), pb.candidate("by hand", function=watched)],
        folds=folds,
        reference="greg",
    )
    assert not chosen.failed and len(seen) == 1 + K
    total = setting.units["w"].sum()
    np.testing.assert_allclose(seen, total, rtol=0.02)
    one, other = chosen.domain_scores["db_cv"]
    assert np.isnan(one[0]) and np.isfinite(one[1:]).all()
    close(one, other, 1e-10)
