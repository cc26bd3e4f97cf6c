"""Accuracy measures and choices, against plain loops and closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from pybridge.errors import InputError
from pybridge.simulate.choices import chosen_measures, rank_correlation, score_quality
from pybridge.simulate.measures import accuracy, interval_score, mean_with_error, ratio_with_error
from pybridge.simulate.repeated import RepeatedSampling

R, C, M = 40, 3, 9


def sampling(**more: np.ndarray) -> RepeatedSampling:
    rng = np.random.default_rng(8)
    truth = rng.normal(size=M)
    scale = np.array([1.0, 0.6, 0.5])[:, None]
    estimate = truth + scale * rng.normal(size=(R, C, M))
    estimate[3, 0, 2] = np.nan
    half = 1.5 * scale * np.linspace(1.2, 0.8, M)
    values = {"estimate": estimate, "lower": estimate - half, "upper": estimate + half, **more}
    return RepeatedSampling(
        values=values,
        repetitions=np.arange(R),
        failed={},
        truth=truth,
        size=np.arange(10.0, 10 + M),
        domains=np.array([f"d{i}" for i in range(M)], dtype=object),
        seed=1,
    )


def test_measures_are_what_plain_loops_give() -> None:
    runs = sampling()
    found = accuracy(runs, ["a", "b", "c"])
    for c in range(C):
        square, inside, score, narrow = [], [], [], []
        for r in range(R):
            e = [runs["estimate"][r, c, i] - runs.truth[i] for i in range(M)]
            square.append(np.nanmean(np.square(e)))
            low, up = runs["lower"][r, c], runs["upper"][r, c]
            cover, points = [], []
            for i in range(M):
                if np.isnan(low[i]):
                    continue
                cover.append(low[i] <= runs.truth[i] <= up[i])
                miss = max(low[i] - runs.truth[i], 0) + max(runs.truth[i] - up[i], 0)
                points.append(up[i] - low[i] + 40 * miss)
            inside.append(np.mean(cover))
            score.append(np.mean(points))
            narrow.append(np.nanmean((up - low)[7:]))
        root = np.sqrt(np.mean(square))
        spread = np.std(square, ddof=1) / np.sqrt(R)
        assert found.values["rmse"][c] == pytest.approx(root, rel=1e-12)
        assert found.errors["rmse"][c] == pytest.approx(spread / (2 * root), rel=1e-12)
        for name, rows in (("coverage", inside), ("interval_score", score), ("width_q4", narrow)):
            assert found.values[name][c] == pytest.approx(np.mean(rows), rel=1e-12)
            assert found.errors[name][c] == pytest.approx(
                np.std(rows, ddof=1) / np.sqrt(R), rel=1e-12
            )
    assert found.values["missing"] == pytest.approx([1 / (R * M), 0.0, 0.0])
    assert found.values["width_q1"][0] > found.values["width_q4"][0]
    table = found.to_frame()
    assert {"rmse", "rmse_error", "coverage_error"} <= set(table.columns)
    assert "Monte Carlo" in found.summary()


def test_some_domains_only() -> None:
    runs = sampling()
    some = np.arange(M) < 4
    found = accuracy(runs, ["a", "b", "c"], domains=some)
    square = np.nanmean((runs["estimate"][:, :, :4] - runs.truth[:4]) ** 2, axis=-1)
    np.testing.assert_allclose(found.values["rmse"], np.sqrt(square.mean(axis=0)), rtol=1e-12)
    assert found.n_domains == 4


def test_the_interval_score_by_hand() -> None:
    ends = dict(lower=np.array([0.0, 0.0, 0.0]), upper=np.array([1.0, 1.0, 1.0]))
    found = interval_score(**ends, truth=np.array([0.5, 1.1, -0.2]), level=0.95)
    np.testing.assert_allclose(found, [1.0, 5.0, 9.0], rtol=1e-12)


def test_a_single_repetition_has_no_error_and_a_ratio_has_one() -> None:
    mean, error = mean_with_error(np.array([[2.0, np.nan]]))
    assert mean[0] == 2.0 and np.isnan(error[0]) and np.isnan(mean[1])
    rng = np.random.default_rng(3)
    bottom = rng.uniform(1, 2, size=4000)
    top = 1.3 * bottom + rng.normal(size=4000)
    ratio, spread = ratio_with_error(top, bottom)
    assert ratio == pytest.approx(top.mean() / bottom.mean(), rel=1e-12)
    halves = [ratio_with_error(top[k::40], bottom[k::40])[0] for k in range(40)]
    assert spread == pytest.approx(np.std(halves, ddof=1) / np.sqrt(40), rel=0.3)


def test_choices_by_hand() -> None:
    score = np.array([[1.0, 2.0, 3.0], [3.0, -1.0, 2.0], [np.nan, 5.0, 4.0]])
    found = chosen_measures(score=score, true=np.array([2.0, 1.0, 4.0]))
    assert found["reported"].tolist() == [1.0, -1.0, 4.0]
    assert found["its_true"].tolist() == [2.0, 1.0, 4.0]
    assert found["best_chosen"].tolist() == [0.0, 1.0, 0.0]
    assert found["chosen_mse"].tolist() == [2.0, 1.0, 4.0]
    assert found["negative"].tolist() == [0.0, 1.0, 0.0]
    np.testing.assert_allclose(found["rank_correlation"], [0.5, 0.5, -0.5], rtol=1e-12)
    perfect = chosen_measures(score=score[:2], true=np.array([0.0, 1.0, 4.0]))
    assert perfect["chosen_mse"][0] == 1.0 and np.isnan(perfect["chosen_mse"][1])


def test_rank_correlation_is_spearmans() -> None:
    rng = np.random.default_rng(2)
    rows, other = rng.normal(size=(5, 8)), rng.normal(size=8)
    for row, value in zip(rows, rank_correlation(rows, other)):
        ranks = [np.searchsorted(np.sort(x), x) for x in (row, other)]
        assert value == pytest.approx(np.corrcoef(*ranks)[0, 1], rel=1e-12)


def test_scores_are_held_against_the_domains_that_were_scored() -> None:
    scored = np.ones((R, M), dtype=bool)
    scored[:, :2] = False
    runs = sampling(scored=scored)
    square = (runs["estimate"][:, :, 2:] - runs.truth[2:]) ** 2
    error = np.nanmean(square, axis=-1)
    found = score_quality(runs, ["a", "b", "c"], {"exact": error, "twice": 2 * error})
    np.testing.assert_allclose(found.true_mse, error.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.ratio, [[1.0] * 3, [2.0] * 3], rtol=1e-12)
    np.testing.assert_allclose(found.ratio_error, 0.0, atol=1e-12)
    assert found.values["rank_correlation"][0] == found.values["rank_correlation"][1]
    assert found.values["reported"][1] == pytest.approx(2 * found.values["reported"][0])
    assert found.to_frame().shape[0] == 2 and found.ratios().shape[0] == 3
    assert "twice" in found.summary()


def test_names_and_scores_must_be_as_many() -> None:
    runs = sampling(scored=np.ones((R, M), dtype=bool))
    for make in (
        lambda: accuracy(runs, ["a"]),
        lambda: score_quality(runs, ["a"], {"x": np.ones((R, C))}),
        lambda: score_quality(runs, ["a", "b", "c"], {"x": np.ones((R, 2))}),
    ):
        with pytest.raises(InputError) as raised:
            make()
        assert raised.value.code == "wrong_length"
