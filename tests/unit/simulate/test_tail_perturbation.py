"""The perturbation pilot: what noise alone seems to do, and how it shrinks with the items."""

from __future__ import annotations

import numpy as np
import pytest

from pybridge.errors import InputError
from pybridge.simulate.tail_perturbation import perturbation_pilot
from pybridge.simulate.tail_scores import perturbed_model
from pybridge.tails.generalized_pareto import generalized_pareto


def test_the_apparent_difference_of_a_small_pilot_is_noise_and_shrinks() -> None:
    found = perturbation_pilot(repetitions=30)
    table = found.to_frame()
    assert table["n_exceedances"].tolist() == [100, 1500]
    assert table["G3"].tolist() == ["fail", "fail"]
    # The range of four normal estimates is 2.06 standard errors, 1/sqrt(n) each, in the mean; its
    # standard deviation is 0.88 of them, and items that are shared take some of it away.
    assert 0.10 < table["apparent_median"][0] < 0.25
    ratio = np.median(found.largest[0]) / np.median(found.largest[1])
    assert 2.5 < ratio < 6.0  # 3.9 = sqrt(15), with the error of 30 repetitions
    assert table["share_above_0.10"][0] > 0.5 > table["share_above_0.10"][1]
    assert "shrinks" in found.summary() and found.shrinkage().shape == (30,)


def test_each_repetition_is_the_fits_of_its_first_items() -> None:
    found = perturbation_pilot((0.2, 0.9), n_items=(500, 1000), repetitions=2, seed=5)
    for r in range(2):
        table = perturbed_model((0.2, 0.9), n_items=1000, seed=5 + r)
        for k, n in enumerate((500, 1000)):
            shapes = [
                generalized_pareto(part["score"].iloc[:n], quantile=0.95, engine="native").shape
                for _, part in table.groupby("model")
            ]
            assert found.largest[k, r] == pytest.approx(np.ptp(shapes))
    assert perturbation_pilot((0.2, 0.9), n_items=(500, 1000), repetitions=2, seed=5) == found


def test_bad_requests_are_refused() -> None:
    for words in ({"n_items": (5,)}, {"repetitions": 0}, {"quantile": 95}):
        with pytest.raises(InputError):
            perturbation_pilot(**words)
    with pytest.raises(InputError):
        perturbation_pilot((0.0, 0.5), repetitions=1)
