"""pybridge's smoothed and pooled variances are those of the slow twin where domains are strata."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from tests.simulation import populations
from validation.reimplementations import direct, smoothed_variances

RTOL = 1e-10
ESTIMATORS = {
    "ht": pb.horvitz_thompson,
    "hajek": pb.hajek,
    "ppi": lambda *a, **k: pb.prediction_powered(*a, prediction="f", **k),
    "greg": lambda *a, **k: pb.generalized_regression(*a, auxiliary=["f"], **k),
}


def setting(binary):
    pop = populations.population(
        10, 2500, seed=5, binary=binary, domain_is_stratum=True, level_sd=1.0, spread=1.0
    )
    rng = np.random.default_rng(4)
    rows, w, N_h = populations.stratified_sample(pop, 0.03, rng, least=1)
    _, F, N = populations.truth(pop)
    sample = direct.Sample(
        y=pop["y"][rows],
        w=w,
        domain=pop["domain"][rows],
        F=pop["f"][rows],
        stratum=pop["stratum"][rows],
        n_population=N_h,
        lonely="remove",
    )
    names = np.array([f"d{i}" for i in range(len(N))])
    units = pd.DataFrame(
        {
            "y": sample.y,
            "f": sample.F[:, 0],
            "w": w,
            "h": sample.stratum,
            "fpc": N_h,
            "d": names[sample.domain],
        }
    )
    design = pb.survey_design(units, weights="w", strata="h", fpc="fpc", lonely_psu="remove")
    totals = pb.population(
        pd.DataFrame({"d": names, "N": N, "f": F}), domain="d", size="N", auxiliary_means=["f"]
    )
    return sample, direct.Population(N, F), design, totals


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_smoothed_variances(name, binary):
    sample, population, design, totals = setting(binary)
    estimator = direct.ESTIMATORS[name](sample, population)
    ht = direct.horvitz_thompson(sample, population)
    expected = smoothed_variances.smoothed_variances(estimator, ht, sample, population)
    result = ESTIMATORS[name](design, totals, outcome="y", domain="d", variance="smoothed")
    np.testing.assert_allclose(result.variance_weight, expected.B, rtol=RTOL, atol=1e-14)
    np.testing.assert_allclose(result.variance, expected.d, rtol=RTOL)
    scale = np.sqrt(expected.d * expected.d_ht)
    assert np.all(np.abs(result.covariance_ht - expected.covariance_ht) <= RTOL * scale)
    assert np.all(expected.covariance_ht**2 <= expected.d * expected.d_ht * (1 + 1e-12))
    plain = ESTIMATORS[name](design, totals, outcome="y", domain="d")
    np.testing.assert_array_equal(result.estimate, plain.estimate)


def test_a_domain_of_one_unit_takes_the_pooled_variance():
    sample, population, design, totals = setting(True)
    single = np.bincount(sample.domain, minlength=10) == 1
    assert single.any()
    smoothed = pb.horvitz_thompson(design, totals, outcome="y", domain="d", variance="smoothed")
    pooled = pb.horvitz_thompson(design, totals, outcome="y", domain="d", variance="pooled")
    np.testing.assert_allclose(smoothed.variance[single], pooled.variance[single], rtol=1e-12)
    assert np.all(smoothed.variance[single] > 0)
