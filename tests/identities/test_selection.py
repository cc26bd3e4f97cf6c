"""What must hold of cross-validation scores whatever the data, and of functions as candidates."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.design.folds import make_folds
from pybridge.selection.scores import (
    adjusted_score,
    debiased_score,
    jackknife_covariance,
    naive_score,
    size_factor,
    sure_score,
)
from tests.identities.selection_samples import (
    DIRECT,
    K,
    KINDS,
    Setting,
    built_in,
    close,
    smoothed,
    tables,
)


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
