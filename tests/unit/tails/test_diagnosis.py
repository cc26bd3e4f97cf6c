"""Oddities of scores are found and named: bounds, saturation, caps, ties, dependence."""

from __future__ import annotations

import numpy as np
import pytest

from pybridge.errors import InputError
from pybridge.tails._distribution import draw
from pybridge.tails.diagnosis import diagnose_scores

RNG = np.random.default_rng(1)
LOGITS = 3.0 * RNG.standard_normal(5000)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def tail(shape: float = 0.1, n: int = 4000) -> np.ndarray:
    return draw(rng=np.random.default_rng(2), size=(n,), shape=shape, scale=1.0)


@pytest.mark.parametrize(
    ("scores", "words", "codes"),
    [
        (tail(), {}, ()),
        (LOGITS, {}, ()),
        (sigmoid(LOGITS), {}, ("bounded", "saturated", "end_point_at_bound")),
        # Few saturate: the bulk is near 0 and the tail runs all the way up.
        (sigmoid(2.0 * LOGITS - 14.0), {"quantile": 0.8}, ("bounded", "false_heavy_tail")),
        (np.minimum(tail(), 4.0), {}, ("hard_cap", "ties")),
        (np.floor(200 * tail()), {}, ("integer",)),
        (np.round(tail(), 1), {}, ("ties",)),
    ],
)
def test_what_is_found(scores: np.ndarray, words: dict, codes: tuple[str, ...]) -> None:
    found = diagnose_scores(scores, **words)
    assert found.codes[: len(codes)] == codes
    assert len(found.to_frame()) == len(found.codes)
    assert bool(found.codes) == bool(codes)
    if "bounded" in codes:
        assert "logit" in found.summary()


def test_serial_dependence_is_looked_for_in_ordered_scores_only() -> None:
    # A moving maximum of two: extremal index 1/2.
    z = 1 / RNG.exponential(size=6001)
    x = np.maximum(z[1:], z[:-1])
    assert "serial_dependence" in diagnose_scores(x, ordered=True).codes
    assert "serial_dependence" not in diagnose_scores(x).codes
    independent = diagnose_scores(tail(), ordered=True)
    assert independent.extremal_index > 0.85 and independent.codes == ()


def test_bounds_may_be_given_or_left_out() -> None:
    assert diagnose_scores(100 * sigmoid(LOGITS), bounds=(0, 100)).upper_bound == 100
    assert not diagnose_scores(sigmoid(LOGITS), bounds=None).bounded
    with pytest.raises(InputError) as caught:
        diagnose_scores([0.5, 2.0], bounds=(0, 1), threshold=0.0)
    assert caught.value.code == "bad_bounds"
