"""Optima of sae's likelihoods, found without R, against sae asked with a tight precision."""

from __future__ import annotations

import numpy as np
import pytest

from pybridge.engines._sae_likelihood import (
    AreaData,
    fay_herriot_likelihoods,
    proximity,
    spatial_likelihoods,
)
from pybridge.engines._sae_nested import nested_log_likelihood, nested_optimum
from pybridge.engines._sae_optimum import (
    fay_herriot_optimum,
    space_time_optimum,
    space_time_restricted,
    spatial_optimum,
)
from validation.cases import fay_herriot as area_cases
from validation.cases.sae import answers, inputs
from validation.cases.sae import proximity as matrix_of

SPATIAL = {"grapes": (274, ["x1", "x2"]), "ring": (25, [None, "x"]), "negative": (40, [None, "x"])}


def area_data(table, columns):
    x = [np.ones(len(table)) if name is None else table[name] for name in columns]
    return AreaData(table["y"].to_numpy(), table["d"].to_numpy(), np.column_stack(x).astype(float))


@pytest.mark.parametrize("method", ["REML", "ML"])
@pytest.mark.parametrize("name", SPATIAL)
def test_the_spatial_optimum_is_where_sae_goes_when_asked_tightly(name, method):
    size, columns = SPATIAL[name]
    data = area_data(inputs(f"spatial_{name}"), columns)
    w = proximity(matrix_of(f"spatial_{name}", size))
    kept = answers(f"spatial_{name}")

    def theirs(call, setting, quantity):
        return kept.of(call, setting, quantity)[0]

    default = [theirs("mseSFH", method, q) for q in ("model_variance", "spatial_correlation")]
    tight = [
        theirs("eblupSFH", f"{method} tight", q) for q in ("model_variance", "spatial_correlation")
    ]
    # From sae's own end as in a fit, and, where that is quick, from nowhere.
    starts = [np.array(default)] if size > 100 else [np.array(default), None]
    for start in starts:
        found = spatial_optimum(data, w, method, start=start)
        np.testing.assert_allclose(found.theta, tight, rtol=1e-6)
    at = spatial_likelihoods(data, w, *tight)
    assert at.ordinary == pytest.approx(theirs("eblupSFH", f"{method} tight", "loglike"), rel=1e-12)
    beta = kept.of("eblupSFH", f"{method} tight", "coefficient")
    np.testing.assert_allclose(at.coefficients, beta, rtol=1e-9)
    error = kept.of("eblupSFH", f"{method} tight", "coefficient_se")
    np.testing.assert_allclose(np.sqrt(at.covariance.diagonal()), error, rtol=1e-9)


@pytest.mark.parametrize("model", ["S", "ST"])
def test_the_optimum_over_space_and_time(model):
    table = inputs("spatial_spacetime")
    data = area_data(table, [None, "x1", "x2"])
    w = proximity(matrix_of("spatial_spacetime", 11))
    half = 0.5 * np.median(data.d)
    start = np.array([half, 0.5, half, 0.5])[: 3 if model == "S" else 4]
    found = space_time_optimum(data, w, [start], 3)
    kept = answers("spatial_spacetime").keyed("eblupSTFH", f"{model} tight", "component")
    np.testing.assert_allclose(found.theta, list(kept.values()), rtol=2e-6)
    tight = np.array(list(kept.values()))
    assert found.at.restricted >= space_time_restricted(data, w, tight, 3) - 1e-11
    loglike = answers("spatial_spacetime").of("eblupSTFH", f"{model} tight", "loglike")[0]
    assert found.at.ordinary == pytest.approx(loglike, abs=1e-5)


@pytest.mark.parametrize("method", ["REML", "ML", "FH"])
@pytest.mark.parametrize("name", area_cases.NAMES)
def test_the_variance_without_correlation(name, method):
    case = area_cases.load(name)
    data = AreaData(case.estimate, case.variance, case.covariates)
    found = fay_herriot_optimum(data, method)
    (exact,) = case.answer(method, "exact", "model_variance")
    assert found.theta[0] == pytest.approx(exact, rel=1e-6, abs=1e-12)
    (restricted,) = case.answer(method, "exact", "restricted")
    at = fay_herriot_likelihoods(data, exact)
    assert at.restricted == pytest.approx(restricted, rel=1e-10)
    if exact > 0:  # without correlation the spatial likelihood is this one
        size = len(case.estimate)
        w = proximity(np.roll(np.eye(size), 1, axis=1))
        assert spatial_likelihoods(data, w, exact, 0.0).ordinary == pytest.approx(at.ordinary)


@pytest.mark.parametrize(
    ("setting", "method", "outcome", "drop"),
    [
        ("corn REML", "REML", "corn", [32]),
        ("corn ML", "ML", "corn", [32]),
        ("soybeans ML", "ML", "soybeans", []),
    ],
)
def test_the_nested_error_model(setting, method, outcome, drop):
    table = inputs("unit_segments").drop(index=drop)
    x = np.column_stack([np.ones(len(table)), table["corn_pixels"], table["soybean_pixels"]])
    codes = table["county"].to_numpy() - 1
    found = nested_optimum(table[outcome].to_numpy(), x, codes, method)
    kept = answers("unit_cornsoybean")
    (refvar,) = kept.of("eblupBHF", setting, "refvar")
    (errorvar,) = kept.of("eblupBHF", setting, "errorvar")
    (loglike,) = kept.of("eblupBHF", setting, "loglike")
    at = nested_log_likelihood(table[outcome].to_numpy(), x, codes, method, refvar / errorvar)
    assert at == pytest.approx(loglike, rel=1e-12)
    assert 0 <= found.log_likelihood - at < 1e-8
    assert found.refvar == pytest.approx(refvar, rel=1e-4)
    assert found.errorvar == pytest.approx(errorvar, rel=1e-4)
