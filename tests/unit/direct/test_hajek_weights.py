"""Hájek's variances, modelled ones too, do not know by what number all weights were multiplied."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import pybridge as pb


@pytest.mark.parametrize("variance", ["direct", "smoothed", "pooled", "gvf"])
@pytest.mark.parametrize("unequal", [False, True])
def test_a_multiple_of_the_weights_changes_nothing(variance: str, unequal: bool) -> None:
    rng = np.random.default_rng(5)
    domain = np.repeat(np.arange(12), 20)
    size = pd.DataFrame({"domain": np.arange(12), "size": 200.0})
    known = pb.population(size, domain="domain", size="size")
    weight = rng.uniform(5.0, 15.0, domain.size) if unequal else np.full(domain.size, 10.0)
    y = 3.0 + domain / 4 + rng.standard_normal(domain.size)
    found = []
    for factor in (0.1, 1.0, 7.0):
        table = pd.DataFrame({"domain": domain, "y": y, "w": factor * weight})
        design = pb.survey_design(table, weights="w")
        fit = pb.hajek(design, known, variance=variance)
        found.append(fit.to_frame()["variance"].to_numpy())
    assert (found[1] > 0.01).all() and (found[1] < 0.2).all()
    for other in (found[0], found[2]):
        np.testing.assert_allclose(other, found[1], rtol=1e-9)
