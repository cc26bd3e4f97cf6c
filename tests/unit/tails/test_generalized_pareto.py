"""The public fit: thresholds, statuses, intervals, small-sample methods, refusals of bad input."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

from pybridge.errors import InputError
from pybridge.tails._distribution import draw
from pybridge.tails.generalized_pareto import generalized_pareto
from validation.reimplementations import generalized_pareto as slow


def sample(shape: float, n: int, seed: int = 1) -> np.ndarray:
    return draw(rng=np.random.default_rng(seed), size=(n,), shape=shape, scale=1.0)


def fit(scores, **words):
    words = {"engine": "native", **words}
    if not {"threshold", "quantile", "n_exceedances"} & set(words):
        words["threshold"] = 0.0
    return generalized_pareto(scores, **words)


# --- thresholds --------------------------------------------------------------------------------


def test_three_ways_to_the_same_tail() -> None:
    x = sample(0.1, 1000)
    by_count = fit(x, n_exceedances=50)
    by_value = fit(x, threshold=by_count.threshold)
    by_quantile = fit(x, quantile=0.95)
    assert by_count.n_exceedances == by_value.n_exceedances == by_quantile.n_exceedances == 50
    assert by_value.shape == by_count.shape
    assert by_quantile.threshold == np.quantile(x, 0.95)
    assert by_count.exceedance_rate == 0.05
    assert (by_count.threshold_rule, by_quantile.threshold_rule) == ("count", "quantile")


def test_a_threshold_at_a_tie_is_named_and_only_larger_scores_count() -> None:
    x = np.concatenate([np.full(7, 2.0), 2.0 + sample(0.0, 93)])
    found = fit(x, threshold=2.0)
    assert found.n_exceedances == 93
    assert "7 scores equal the threshold" in found.conditions[0]
    few = fit(np.concatenate([[0.0], np.full(10, 1.0), sample(0.0, 30) + 1]), n_exceedances=35)
    assert few.n_exceedances == 30
    assert "ties at the threshold leave 30 exceedances, not 35" in few.conditions


@pytest.mark.parametrize(
    ("scores", "words", "code", "field"),
    [
        ([1.0, np.nan, 2.0], {}, "missing_values", "scores"),
        ([1.0, np.inf, 2.0], {}, "infinite_values", "scores"),
        ([], {}, "empty", "scores"),
        (["a", "b"], {}, "not_numeric", "scores"),
        ([[1.0, 2.0]], {}, "not_a_vector", "scores"),
        ([1.0, 2.0], {"threshold": 2.0}, "no_exceedances", "threshold"),
        ([1.0, 1.0, 1.0], {"quantile": 0.5}, "no_exceedances", "quantile"),
        ([1.0, 2.0], {"threshold": None}, "threshold_choice", "threshold"),
        ([1.0, 2.0], {"threshold": 0.0, "quantile": 0.5}, "threshold_choice", "threshold"),
        ([1.0, 2.0], {"threshold": "high"}, "not_a_number", "threshold"),
        ([1.0, 2.0], {"quantile": 95}, "bad_quantile", "quantile"),
        ([1.0, 2.0], {"n_exceedances": 2}, "too_few_scores", "n_exceedances"),
        ([1.0, 2.0], {"n_exceedances": 0}, "bad_count", "n_exceedances"),
        ([1.0, 2.0], {"engine": "mev"}, "unknown_option", "engine"),
        ([1.0, 2.0], {"method": "MLE"}, "unknown_option", "method"),
        ([1.0, 2.0], {"level": 95}, "bad_level", "level"),
        ([1.0, 2.0], {"mode": "raw"}, "unsupported_combination", "mode"),
        ([1.0, 2.0], {"maxit": 3}, "unknown_option", "maxit"),
        ([1.0, 2.0], {"engine": "evd", "method": "PWM"}, "unsupported_combination", "method"),
        ([1.0, 2.0], {"transform": "logit"}, "score_out_of_range", "scores"),
        ([-1.0, 2.0], {"transform": "log"}, "score_out_of_range", "scores"),
        ([0.5, 1.0], {"transform": "logit"}, "score_at_bound", "scores"),
        ([0.0, 2.0], {"transform": "log"}, "score_at_bound", "scores"),
        ([0.5, 1.0], {"transform": "complementary_log"}, "score_at_bound", "scores"),
        ([0.5, 0.6], {"transform": "probit"}, "unknown_option", "transform"),
    ],
)
def test_bad_input_is_refused(scores, words, code, field) -> None:
    with pytest.raises(InputError) as caught:
        fit(scores, **words)
    assert (caught.value.code, caught.value.field) == (code, field)


@pytest.mark.parametrize(
    "scores",
    [
        pd.Series(np.arange(1.0, 40.0)),
        pd.Series(np.arange(1, 40), dtype="Int64"),
        np.arange(1, 40),
        list(range(1, 40)),
        np.arange(1.0, 40.0, dtype=np.float32),
    ],
)
def test_any_sequence_of_numbers_will_do(scores) -> None:
    assert fit(scores).n_exceedances == 39


def test_a_missing_nullable_integer_is_a_missing_value() -> None:
    with pytest.raises(InputError) as caught:
        fit(pd.Series([1, None, 3], dtype="Int64"))
    assert caught.value.code == "missing_values"


# --- statuses ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "status"),
    [
        (sample(0.2, 200), "converged"),
        (sample(-0.7, 2000), "nonregular"),
        (np.linspace(0.5, 1.0, 100), "infeasible"),
        (sample(-1.5, 500), "infeasible"),
        (np.full(30, 2.0), "degenerate"),
        (np.repeat([1.0, 2.0], 20), "degenerate"),
        (np.repeat([1.0, 2.0, 3.0, 4.0], [50, 20, 10, 5]), "degenerate"),
        ([1.0, 2.0, 3.0, 4.0], "too_few"),
        ([1.0], "too_few"),
        ([0.1, 0.4, 0.5, 0.9, 1.4, 2.2, 9.0], "weak_identification"),
        (np.round(sample(0.2, 500), 1) + 0.05, "converged"),  # rounded, as the rain is
    ],
)
def test_statuses(scores, status) -> None:
    found = fit(scores)
    assert found.status == status
    regular = status in ("converged", "weak_identification")
    assert np.isfinite(found.shape_standard_error) == regular
    assert np.isfinite(found.covariance).all() == regular
    assert found.usable == (status in ("converged", "weak_identification", "nonregular"))
    if status == "too_few":
        assert np.isnan([found.shape, found.scale, found.log_likelihood]).all()
    if not regular:
        assert found.conditions
        interval = found.interval()
        assert np.isnan([interval.lower, interval.upper]).all()


def test_an_infeasible_fit_has_no_return_level() -> None:
    levels = fit(np.linspace(0.5, 1.0, 100), threshold=0.0).return_level([1000])
    assert np.isnan(levels.estimate).all() and np.isnan(levels.upper).all()


# --- intervals and levels ----------------------------------------------------------------------


@pytest.mark.parametrize("shape", [-0.3, 0.0, 0.4])
def test_profile_intervals_are_those_of_the_slow_twin(shape: float) -> None:
    x = sample(shape, 150, seed=3)
    found = fit(x)
    for level in (0.5, 0.95):
        ours = found.interval("shape", level=level)
        np.testing.assert_allclose(
            [ours.lower, ours.upper], slow.profile_interval(x, level), atol=1e-6
        )
    level = found.quantile(0.999, interval="profile")
    np.testing.assert_allclose(
        [level.lower[0], level.upper[0]], slow.quantile_profile_interval(x, 0.001), rtol=1e-5
    )


def test_the_profile_of_the_scale_drops_by_half_the_chi_squared_quantile() -> None:
    x = sample(0.2, 120, seed=4)
    found = fit(x)
    interval = found.interval("scale")
    assert interval.lower < found.scale < interval.upper
    for end in (interval.lower, interval.upper):
        shapes = np.linspace(-0.9, 1.5, 4801)
        best = min(slow.negative_log_likelihood(x, s, end) for s in shapes)
        assert best + found.log_likelihood == pytest.approx(0.5 * 1.959964**2, abs=1e-3)


def test_return_levels_agree_with_their_definition() -> None:
    found = fit(sample(0.2, 400), quantile=0.8)
    levels = found.return_level([10, 1000])
    for period, level in zip(levels.period, levels.estimate):
        survival = 1 - slow.distribution(level - found.threshold, found.shape, found.scale)
        assert found.exceedance_rate * survival == pytest.approx(1 / period)
    assert found.quantile(0.999).estimate[0] == pytest.approx(levels.estimate[1])
    years = found.return_level(10, observations_per_period=100)
    assert years.estimate[0] == pytest.approx(levels.estimate[1])
    assert (levels.to_frame()["lower"] < levels.to_frame()["estimate"]).all()


def test_the_delta_error_is_that_of_numerical_derivatives() -> None:
    found = fit(sample(0.1, 300), quantile=0.7)
    rate, period = found.exceedance_rate, 500.0

    def level(zeta: float, scale: float, shape: float) -> float:
        return found.threshold + scale / shape * ((period * zeta) ** shape - 1)

    at = np.array([rate, found.scale, found.shape])
    gradient = []
    for k in range(3):
        step = np.zeros(3)
        step[k] = 1e-6 * at[k]
        gradient.append((level(*(at + step)) - level(*(at - step))) / (2e-6 * at[k]))
    covariance = np.zeros((3, 3))
    covariance[0, 0] = rate * (1 - rate) / found.n_scores
    covariance[1:, 1:] = found.covariance
    expected = np.sqrt(gradient @ covariance @ gradient)
    assert found.return_level(period).standard_error[0] == pytest.approx(expected, rel=1e-6)


def test_levels_below_the_threshold_are_refused() -> None:
    found = fit(sample(0.2, 400), quantile=0.9)
    with pytest.raises(InputError) as caught:
        found.return_level([5.0])
    assert caught.value.code == "below_threshold"
    with pytest.raises(InputError) as caught:
        found.quantile(1.0)
    assert caught.value.code == "bad_probability"


# --- other methods -----------------------------------------------------------------------------


def test_weighted_moments_are_the_explicit_sums() -> None:
    x = sample(0.1, 60)
    found = fit(x, method="PWM")
    assert (found.shape, found.scale) == pytest.approx(slow.weighted_moments(x), rel=1e-12)
    assert found.exact_shape != found.shape
    with pytest.raises(InputError, match="profile"):
        found.interval("shape", kind="profile")


def test_weighted_moments_against_the_largest_score_are_infeasible() -> None:
    x = np.concatenate([np.linspace(0.9, 1.0, 30), [1.02]])
    assert fit(x, method="PWM").status == "infeasible"


def test_the_penalised_shape_maximises_the_penalised_likelihood() -> None:
    x = sample(0.6, 25, seed=8)
    for strength, power in ((1.0, 1.0), (2.0, 2.0)):
        found = fit(x, method="penalised", penalty=(strength, power))
        assert 0 < found.shape < found.exact_shape

        def value(s: float) -> float:
            return -slow.best_scale(x, s)[1] - strength * (1 / (1 - s) - 1) ** power

        best = value(found.shape)
        for other in np.linspace(0.01, 0.95, 95):
            assert value(other) <= best + 1e-9


def test_the_penalty_leaves_negative_shapes_alone_and_may_end_at_zero() -> None:
    x = sample(-0.2, 80)
    assert fit(x, method="penalised").shape == fit(x).shape < 0
    y = sample(0.4, 40, seed=5)
    strong = fit(y, method="penalised", penalty=(500.0, 1.0))
    assert fit(y).shape > 0 and strong.shape == 0.0
    assert strong.scale == pytest.approx(y.mean())


# --- transforms --------------------------------------------------------------------------------


def test_a_transform_comes_before_the_threshold() -> None:
    logits = sample(0.0, 2000) - 2.0
    s = 1 / (1 + np.exp(-logits))
    direct, through = fit(logits, quantile=0.9), fit(s, quantile=0.9, transform="logit")
    assert through.shape == pytest.approx(direct.shape, abs=1e-9)
    assert through.threshold == pytest.approx(direct.threshold)


# --- the record --------------------------------------------------------------------------------


def test_the_record_is_frozen_pickles_and_describes_itself() -> None:
    found = fit(sample(0.2, 200), quantile=0.5)
    copy = pickle.loads(pickle.dumps(found))
    assert copy == found and not copy.excesses.flags.writeable
    assert "shape" in found.summary() and "100 of 200 scores" in found.summary()
    table = found.to_frame()
    assert table["parameter"].tolist() == ["shape", "scale"]
    assert found.provenance.engine == "native"
    assert found.to_dict()["status"] == "converged"
