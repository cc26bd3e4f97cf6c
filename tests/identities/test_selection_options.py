"""Options of a selection, and functions that are built-in estimators by other means."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.design.folds import make_folds
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


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


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
