"""Scans over thresholds, mean residual life, and the automatic choice, with R's plots beside."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pybridge.errors import InputError
from pybridge.tails._distribution import draw
from pybridge.tails.generalized_pareto import generalized_pareto
from pybridge.tails.mean_residual_life import mean_residual_life
from pybridge.tails.scan import QUANTILES, tail_scan
from pybridge.tails.threshold_choice import choose_threshold
from validation.cases.gpd import GOLDEN, scores


def sample(shape: float, n: int, seed: int = 1) -> np.ndarray:
    return draw(rng=np.random.default_rng(seed), size=(n,), shape=shape, scale=1.0)


def long_table() -> pd.DataFrame:
    parts = [
        pd.DataFrame({"model": name, "item": np.arange(2000), "score": sample(0.1, 2000, seed)})
        for seed, name in enumerate(("a", "b"))
    ]
    return pd.concat(parts, ignore_index=True)


def test_a_row_is_the_fit_at_its_threshold() -> None:
    x = sample(0.2, 2000)
    scan = tail_scan(x, quantiles=[0.9, 0.95], engine="native")
    for k, q in enumerate((0.9, 0.95)):
        fit = generalized_pareto(x, quantile=q, engine="native")
        profile = fit.interval()
        assert scan.threshold[k] == fit.threshold and scan.shape[k] == fit.shape
        assert (scan.lower[k], scan.upper[k]) == (profile.lower, profile.upper)
        assert scan.n_exceedances[k] == fit.n_exceedances
        table_p = fit.goodness_of_fit(method="table").anderson_darling_p
        assert scan.anderson_darling_p[k] == table_p
        assert scan.modified_scale[k] == pytest.approx(fit.scale - fit.shape * fit.threshold)


def test_all_models_of_a_table_or_a_mapping() -> None:
    table = long_table()
    scan = tail_scan(table, engine="native", interval="delta")
    assert scan.models == ("a", "b") and len(scan.to_frame()) == 2 * len(QUANTILES)
    samples = {name: part["score"] for name, part in table.groupby("model")}
    same = tail_scan(samples, engine="native", interval="delta")
    pd.testing.assert_frame_equal(scan.to_frame(), same.to_frame())
    assert "delta intervals" in scan.summary()


def test_bootstrap_intervals_follow_the_model_not_the_company() -> None:
    samples = {"a": sample(0.1, 1500), "b": sample(0.1, 1500, 2)}
    words = {"engine": "native", "interval": "bootstrap", "replicates": 100, "quantiles": [0.9]}
    both, alone = tail_scan(samples, **words), tail_scan({"b": samples["b"]}, **words)
    assert (both.lower[1], both.upper[1]) == (alone.lower[0], alone.upper[0])
    assert both.lower[1] < both.shape[1] < both.upper[1]


def test_a_threshold_without_a_fit_has_its_status() -> None:
    scan = tail_scan(np.linspace(0, 1, 500), quantiles=[0.9, 0.995], engine="native")
    assert scan.status.tolist() == ["infeasible", "too_few"]
    assert np.isnan(scan.lower).all() and np.isnan(scan.anderson_darling_p).all()


def test_the_stability_of_the_rain_is_evd_s() -> None:
    golden = pd.read_csv(GOLDEN / "gpd_rain_plots__evd.csv")
    shapes = golden[(golden["plot"] == "shapes") & (golden["column"] == "estimate")]
    scales = golden[(golden["plot"] == "scales") & (golden["column"] == "estimate")]
    x = scores("rain")
    for u, shape, scale in zip(shapes["x"], shapes["value"], scales["value"]):
        fit = generalized_pareto(x, threshold=u, engine="native")
        # evd's default optimiser, on data in units near 10: 2e-3 in shape.
        assert fit.shape == pytest.approx(shape, abs=2e-3)
        assert fit.scale - fit.shape * u == pytest.approx(scale, abs=5e-2)


def test_mean_residual_life_is_evd_s() -> None:
    golden = pd.read_csv(GOLDEN / "gpd_rain_plots__evd.csv", float_precision="round_trip")
    golden = golden[golden["plot"] == "mean_residual_life"].pivot(
        index="x", columns="column", values="value"
    )
    x = scores("rain")
    life = mean_residual_life(x, thresholds=golden.index.to_numpy())
    np.testing.assert_allclose(life.mean_excess, golden["estimate"], rtol=1e-12)
    np.testing.assert_allclose(life.lower, golden["lower"], rtol=1e-9)
    np.testing.assert_allclose(life.upper, golden["upper"], rtol=1e-9)
    direct = x[x > 20.0] - 20.0
    one = mean_residual_life(x, thresholds=[20.0])
    assert one.standard_error[0] == pytest.approx(direct.std(ddof=1) / np.sqrt(direct.size))
    assert len(mean_residual_life(x).to_frame()) == 100


def test_the_choice_takes_the_lowest_threshold_that_fits() -> None:
    # Uniform below, generalised Pareto above 1: thresholds below the 60 % quantile do not fit.
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.random(6000), 1.0 + sample(0.1, 4000, 6)])
    grid = [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    choice = choose_threshold(x, quantiles=grid)
    assert choice.quantile == 0.6 and choice.n_rejected == 3
    assert "3 lower candidates are rejected" in choice.reason
    assert choice.to_frame()["rejected"].tolist() == [True] * 3 + [False] * 4


def test_no_candidate_fits_is_an_answer_too() -> None:
    choice = choose_threshold(np.linspace(0, 1, 3000), quantiles=[0.8, 0.9])
    assert np.isnan(choice.quantile) and "no threshold fits" in choice.summary()
    good = choose_threshold(sample(0.0, 3000, 3), quantiles=[0.8, 0.9])
    assert good.quantile == 0.8 and "none lies lower" in good.reason


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: tail_scan([1.0, 2.0], quantiles=[0.9, 0.5], engine="native"), "bad_quantile"),
        (lambda: tail_scan([1.0, 2.0], quantiles=[], engine="native"), "bad_quantile"),
        (lambda: tail_scan([1.0, 2.0], interval="wald", engine="native"), "unknown_option"),
        (lambda: tail_scan({"a": [1.0, np.nan]}, engine="native"), "missing_values"),
        (lambda: mean_residual_life([1.0, 2.0], thresholds=[2.0]), "no_exceedances"),
    ],
)
def test_bad_requests_are_refused(call, code: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.code == code
