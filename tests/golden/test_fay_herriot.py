"""The native Fay-Herriot engine gives R's exact optimum, and sae's answer where sae converges."""

from __future__ import annotations

import numpy as np
import pytest

from pybridge.smoothing._area_model import NATIVE_METHODS, fit_area_model
from validation.cases.fay_herriot import NAMES, load

# Both routes find the optimum to the rounding of its score; measured: 2e-14 at worst.
EXACT = 1e-10
# sae stops at a relative change of 1e-12 (tight) or 1e-4, and its error is of that order.
TIGHT = 1e-9
DEFAULT = 1e-4


def native(case, method):
    return fit_area_model(
        estimate=case.estimate, variance=case.variance, covariates=case.covariates, method=method
    )


def close(mine, answer, rtol):
    np.testing.assert_allclose(mine, answer, rtol=rtol, atol=rtol * np.abs(answer).max())


@pytest.mark.parametrize("method", NATIVE_METHODS)
@pytest.mark.parametrize("name", NAMES)
def test_native_is_the_exact_optimum_of_plain_r(name, method):
    case = load(name)
    fit = native(case, method)
    known = {
        what: case.answer(method, "exact", what)
        for what in ("model_variance", "loglike", "restricted", "coefficient", "coefficient_se")
    }
    close([fit.model_variance], known["model_variance"], EXACT)
    assert (fit.model_variance == 0) == (known["model_variance"][0] == 0)
    close([fit.log_likelihood], known["loglike"], EXACT)
    close([fit.restricted_log_likelihood], known["restricted"], EXACT)
    close(fit.coefficients, known["coefficient"], EXACT)
    close(np.sqrt(np.diag(fit.coefficient_covariance)), known["coefficient_se"], EXACT)
    close(fit.estimate, case.answer(method, "exact", "estimate"), EXACT)
    close(fit.mse, case.answer(method, "exact", "mse"), EXACT)


# sae ends at the global optimum in these; elsewhere test_sae_stops_short says where it ends.
SOUND = [
    (name, method)
    for name in NAMES
    for method in ("REML", "ML", "FH")
    if len(load(name).answer(method, "tight", "model_variance"))
    and (name, method) not in {("reml_short", "REML"), ("ml_local", "ML")}
]


@pytest.mark.parametrize(("name", "method"), SOUND)
def test_native_is_the_limit_of_sae(name, method):
    case = load(name)
    fit = native(case, method)
    for setting, rtol in (("tight", TIGHT), ("default", DEFAULT)):
        variance = case.answer(method, setting, "model_variance")
        if not len(variance):
            continue
        close([fit.model_variance], variance, rtol)
        close(fit.estimate, case.answer(method, setting, "estimate"), rtol)
        close(fit.mse, case.answer(method, setting, "mse"), rtol)
        close([fit.log_likelihood], case.answer(method, setting, "loglike"), rtol)


@pytest.mark.parametrize(
    ("method", "variance"),
    [("REML", 0.0185503347627667), ("ML", 0.0155175087124194), ("FH", 0.0164202636541286)],
)
def test_milk_has_the_known_optimum(method, variance):
    assert native(load("milk"), method).model_variance == pytest.approx(variance, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "method", "which"),
    [
        ("reml_short", "REML", "restricted_log_likelihood"),
        ("ml_short", "ML", "log_likelihood"),
        ("ml_local", "ML", "log_likelihood"),
    ],
)
def test_sae_stops_short_of_the_native_optimum(name, method, which):
    from pybridge.smoothing._area_model import area_model_at

    case = load(name)
    (found,) = case.answer(method, "default", "model_variance")
    there = area_model_at(
        found,
        estimate=case.estimate,
        variance=case.variance,
        covariates=case.covariates,
        method=method,
    )
    # The three are known to be short by 0.36, 2.0 and 0.03.
    assert getattr(native(case, method), which) > getattr(there, which) + 0.02
    close(there.estimate, case.answer(method, "default", "estimate"), 1e-12)
    close(there.mse, case.answer(method, "default", "mse"), 1e-12)
