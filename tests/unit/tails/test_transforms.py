"""Transforms of scores: their values, their inverses, and the rule for exact 0 and 1."""

from __future__ import annotations

import numpy as np
import pytest

from pybridge.errors import InputError
from pybridge.tails.transforms import Transform, as_transform

S = np.array([0.0, 0.1, 0.5, 0.999, 1.0])


@pytest.mark.parametrize("kind", ["none", "logit", "log", "complementary_log"])
def test_inside_the_bounds_the_inverse_goes_back(kind: str) -> None:
    change = Transform(kind, scale=2.0, shift=-1.0)
    values = change.apply(S[1:-1])
    np.testing.assert_allclose(change.invert(values), S[1:-1], rtol=1e-12)
    assert (np.diff(values) > 0).all()


def test_values() -> None:
    inner = S[1:-1]
    np.testing.assert_allclose(Transform("logit").apply(inner), np.log(inner / (1 - inner)))
    np.testing.assert_allclose(Transform("log").apply(S[1:]), np.log(S[1:]))
    np.testing.assert_allclose(Transform("complementary_log").apply(S[:-1]), -np.log1p(-S[:-1]))


def test_scores_at_a_bound_are_refused_clipped_or_squeezed() -> None:
    with pytest.raises(InputError) as caught:
        Transform("logit").apply(S)
    assert caught.value.code == "score_at_bound" and "clip" in str(caught.value)
    clipped = Transform("logit", edge="clip", epsilon=1e-3).apply(S)
    np.testing.assert_allclose(clipped[[0, -1]], [-np.log(999), np.log(999)])
    squeezed = Transform("logit", edge="squeeze").apply(S)
    np.testing.assert_allclose(1 / (1 + np.exp(-squeezed)), (S * 4 + 0.5) / 5)
    assert Transform("logit").n_at_bound(S) == 2
    assert Transform("log").n_at_bound(S) == 1
    assert Transform("complementary_log").n_at_bound(S) == 1


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ({"kind": "probit"}, "unknown_option"),
        ({"edge": "drop"}, "unknown_option"),
        ({"epsilon": 0.5}, "bad_epsilon"),
        ({"epsilon": 0.0}, "bad_epsilon"),
        ({"scale": 0.0}, "bad_scale"),
        ({"scale": -1.0}, "bad_scale"),
        ({"shift": "a"}, "not_a_number"),
    ],
)
def test_bad_transforms_are_refused(words: dict, code: str) -> None:
    with pytest.raises(InputError) as caught:
        Transform(**words)
    assert caught.value.code == code


def test_summaries_say_the_rule() -> None:
    assert as_transform(None).summary() == "the score itself"
    text = Transform("logit", edge="clip", epsilon=1e-4, scale=2.0, shift=1.0).summary()
    assert "log(s / (1 - s))" in text and "0.0001" in text and text.startswith("2 *")
