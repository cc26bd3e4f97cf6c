"""Extremal index and declustering as R's evd has them; block resamples."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pybridge.errors import InputError
from pybridge.tails.dependence import block_bootstrap, block_counts, decluster, extremal_index
from pybridge.tails.generalized_pareto import generalized_pareto
from validation.cases.gpd import GOLDEN, scores


def test_extremal_indices_of_the_rain_are_evd_s() -> None:
    golden = pd.read_csv(GOLDEN / "gpd_rain_extremal_index__evd.csv", float_precision="round_trip")
    x = scores("rain")
    for row in golden.itertuples():
        if row.run == 0:
            found = extremal_index(x, threshold=row.threshold)
        else:
            found = decluster(x, threshold=row.threshold, run=int(row.run)).extremal_index
        assert found == pytest.approx(row.extremal_index, rel=1e-12)


def test_declustered_scores_keep_one_excess_a_cluster() -> None:
    x = np.array([0, 5, 7, 0, 6, 0, 0, 0, 9, 9, 0.0])
    found = decluster(x, threshold=1.0, run=2)
    assert found.scores.tolist() == [0, 1, 7, 0, 1, 0, 0, 0, 9, 1, 0]
    assert (found.n_exceedances, found.n_clusters) == (5, 2)
    one = decluster(x, threshold=1.0, run=1)
    assert one.scores.tolist() == [0, 1, 7, 0, 6, 0, 0, 0, 9, 1, 0]
    assert "extremal index 0.400" in found.summary()


def test_a_fit_of_declustered_scores_sees_the_clusters() -> None:
    x = scores("rain")
    found = decluster(x, threshold=20.0, run=3)
    fit = generalized_pareto(found.scores, threshold=20.0, engine="native")
    assert fit.n_exceedances == found.n_clusters and fit.n_scores == x.size


def test_block_counts_are_whole_samples_of_blocks() -> None:
    counts = block_counts(10, 4, 3000, np.random.default_rng(1))
    assert (counts.sum(axis=1) == 10).all() and (counts >= 0).all()
    assert np.abs(counts.mean(axis=0) - 1).max() < 4.5 * counts.std() / np.sqrt(3000)
    single = block_counts(6, 6, 5, np.random.default_rng(1))
    assert (single == 1).all()


def test_blocks_widen_the_interval_of_clustered_scores() -> None:
    z = 1 / np.random.default_rng(3).exponential(size=4001)
    x = np.log(np.maximum.reduce([z[1:], z[:-1]]))  # pairs of equal exceedances
    words = {"quantile": 0.9, "replicates": 400, "seed": 2}
    alone = block_bootstrap(x, block_length=1, **words)
    blocks = block_bootstrap(x, block_length=20, **words)
    # Pairs count half: the variance doubles, the standard error grows by about 1.4.
    assert blocks.standard_error() > 1.2 * alone.standard_error()
    assert alone.kind == "block" and alone.n_replicates == 400


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: decluster([1.0, 2.0], threshold=0.0, run=0), "bad_count"),
        (lambda: decluster([1.0, 2.0], run=1), "threshold_choice"),
        (lambda: block_bootstrap([1.0, 2.0], threshold=0.0, block_length=3), "bad_count"),
        (lambda: block_bootstrap([1.0, 2.0], threshold=0.0, block_length=1), "no_fit"),
    ],
)
def test_bad_requests_are_refused(call, code: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.code == code
