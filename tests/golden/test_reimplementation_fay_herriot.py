"""The slow reimplementation of the Fay-Herriot model gives what R gives, and what native gives."""

from __future__ import annotations

import numpy as np
import pytest

from pybridge.smoothing._area_model import NATIVE_METHODS, fit_area_model
from validation.cases.fay_herriot import NAMES, load
from validation.reimplementations import fay_herriot as slow

RTOL = 1e-10
# Dense matrices and a likelihood a grid point: the larger cases are left to `make validate`.
SMALL = [name for name in NAMES if len(load(name).domains) <= 60]


def close(mine, answer):
    np.testing.assert_allclose(mine, answer, rtol=RTOL, atol=RTOL * np.abs(answer).max())


@pytest.mark.parametrize("method", NATIVE_METHODS)
@pytest.mark.parametrize("name", SMALL)
def test_the_twin_agrees_with_r_and_with_the_native_engine(name, method):
    case = load(name)
    twin = slow.fit(case.estimate, case.variance, case.covariates, method)
    close([twin.model_variance], case.answer(method, "exact", "model_variance"))
    close(twin.estimate, case.answer(method, "exact", "estimate"))
    close(twin.mse, case.answer(method, "exact", "mse"))

    fit = fit_area_model(
        estimate=case.estimate, variance=case.variance, covariates=case.covariates, method=method
    )
    for name in (
        "model_variance",
        "coefficients",
        "coefficient_covariance",
        "estimate",
        "mse",
        "derivative",
        "log_likelihood",
        "restricted_log_likelihood",
    ):
        close(getattr(fit, name), getattr(twin, name))
