"""The native taxonomy model gives metafor's optimum or better, and rjags's posterior."""

from __future__ import annotations

import numpy as np
import pytest

from pybridge.smoothing._taxonomy import fit_taxonomy_bayes
from pybridge.smoothing._taxonomy_reml import fit_taxonomy_likelihood
from validation.cases.taxonomy import TAXONOMY_NAMES, load_taxonomy

METHODS = ("REML", "ML")
WITH_RJAGS = [n for n in TAXONOMY_NAMES if "rjags" in set(load_taxonomy(n).answers["engine"])]


def own(fit, method):
    return fit.restricted_log_likelihood if method == "REML" else fit.log_likelihood


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", TAXONOMY_NAMES)
def test_native_is_the_exact_optimum_of_plain_r(name, method):
    case = load_taxonomy(name)
    fit = fit_taxonomy_likelihood(**case.arrays(), method=method)
    known = {
        what: case.answer("stats", method, what).to_numpy()
        for what in ("variance", "log_likelihood", "other_log_likelihood", "coefficient", "eblup")
    }
    largest = known["variance"].max()
    np.testing.assert_allclose(
        fit.model_variances, known["variance"], rtol=1e-5, atol=1e-7 * largest
    )
    assert abs(own(fit, method) - known["log_likelihood"][0]) < 1e-9
    other = fit.log_likelihood if method == "REML" else fit.restricted_log_likelihood
    assert abs(other - known["other_log_likelihood"][0]) < 1e-4
    size = np.abs(known["eblup"]).max()
    np.testing.assert_allclose(fit.estimate, known["eblup"], rtol=0, atol=1e-5 * size)
    np.testing.assert_allclose(fit.coefficients, known["coefficient"], rtol=1e-5, atol=1e-6 * size)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", TAXONOMY_NAMES)
def test_metafor_is_met_and_never_undercut(name, method):
    case = load_taxonomy(name)
    fit = fit_taxonomy_likelihood(**case.arrays(), method=method)
    reached = {
        setting: case.answer("metafor", f"{method} {setting}", "log_likelihood").iloc[0]
        for setting in ("default", "tight")
    }
    best = max(reached, key=reached.get)
    assert own(fit, method) >= reached[best] - 1e-9
    assert own(fit, method) - reached[best] < 1e-6
    variances = case.answer("metafor", f"{method} {best}", "variance").to_numpy()
    np.testing.assert_allclose(
        fit.model_variances, variances, rtol=1e-4, atol=1e-5 * variances.max()
    )
    eblup = case.answer("metafor", f"{method} {best}", "eblup")
    rows = case.rows(eblup.index)
    apart = np.abs(fit.estimate[rows] - eblup.to_numpy()) / np.sqrt(fit.mse[rows])
    assert apart.max() < 1e-3


# JAGS against quadrature, in Monte Carlo standard errors. The domains share the errors of a few
# slowly mixing numbers, so their root mean square is no better known than those.
@pytest.mark.parametrize("name", WITH_RJAGS)
def test_rjags_agrees_within_monte_carlo_error(name):
    case = load_taxonomy(name)
    fit = fit_taxonomy_bayes(**case.arrays())

    def scores(quantity, mine):
        answer = case.answer("rjags", "default", quantity)
        error = case.answer("rjags", "default", f"{quantity}_error")
        return (mine - answer.to_numpy()) / error.to_numpy()

    for z in (
        scores("estimate", fit.estimate),
        scores("estimate_sd", np.sqrt(fit.mse)),
        scores("coefficient", fit.coefficients),
        scores("variance_median", fit.model_variances),
    ):
        assert np.abs(z).max() < 5.0
        assert np.sqrt(np.mean(z**2)) < 1.6
