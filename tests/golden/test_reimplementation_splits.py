"""Hold-outs, references and folds against an independent reimplementation."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from validation.reimplementations import direct, selection
from tests.golden.selection_settings import (
    DIRECT,
    K,
    POPULATIONS,
    Setting,
    described,
    same,
    smoothed,
)


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
