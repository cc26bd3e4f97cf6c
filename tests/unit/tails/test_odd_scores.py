"""Scores too large or too close together to be squared, and odd penalties, are refused by name."""

from __future__ import annotations

import numpy as np
import pytest

from pybridge import generalized_pareto
from pybridge.errors import InputError

SCORES = np.random.default_rng(1).exponential(size=200)


@pytest.mark.parametrize("unit", [1e300, 1e-300])
def test_scores_whose_squares_do_not_exist(unit):
    with pytest.raises(InputError) as caught:
        generalized_pareto(SCORES * unit, quantile=0.8, engine="native")
    assert (caught.value.code, caught.value.field) == ("out_of_range", "scores")


@pytest.mark.parametrize("unit", [1e100, 1e-100])
def test_other_units_are_only_units(unit):
    here, there = (
        generalized_pareto(SCORES * by, quantile=0.8, engine="native") for by in (1.0, unit)
    )
    assert there.shape == pytest.approx(here.shape, abs=1e-9)
    assert there.scale == pytest.approx(unit * here.scale, rel=1e-9)


@pytest.mark.parametrize("odd", [None, 1.0, "", {}, (1.0,), (1.0, 2.0, 3.0), print], ids=repr)
def test_a_penalty_is_two_numbers(odd):
    with pytest.raises(InputError) as caught:
        generalized_pareto(SCORES, quantile=0.8, engine="native", penalty=odd)
    assert caught.value.field == "penalty"
