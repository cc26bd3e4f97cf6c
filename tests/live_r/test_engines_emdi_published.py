"""Numbers of emdi's vignette, and of reference runs of emdi on its own data of Austria."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pybridge import datasets
from pybridge.engines import emdi
from pybridge.smoothing.fay_herriot import fay_herriot

pytestmark = pytest.mark.r("emdi")

FIXED, VARDIR = "Mean ~ cash + self_empl", "Var_Mean"

# Harmening, Kreutzmann, Schmidt, Salvati and Schmid (2023), "A Framework for Producing Small Area
# Estimates Based on Area-Level Models in R", The R Journal 15, and emdi's vignette: as printed.
VIGNETTE = {
    "variance": "1371195",
    "coefficients": ("3070.51231", "1.05939", "1.74564"),
    "loglike": "-847.8303",
    "AIC": "1703.661",
    "BIC": "1713.834",
    "KIC": "1707.661",
    "AdjR2": "0.9212817",
    "FH_R2": "0.9482498",
    "Brown": "46.97181",
    "estimates": ("14242.04", "21616.40", "12680.38"),
    "benchmarked": "14480.61",
    "Moran": ("0.2453677", "5.607958e-05"),
    "Geary": ("0.6238681", "2.473294e-03"),
}
# Reference runs of emdi 2.2.3 under R 4.2.2, plain calls.
ML = 1371194.85949380
REML = 1464702.03455969
SPATIAL = {"reml": (-0.322272733286, 1386936.80732), "ml": (-0.358167091150, 1297733.93359)}
LOG = {"bc_crude": ("reml", 8.61515452594e-3), "bc_sm": ("ml", 8.10096371054e-3)}
ME = 42938143.2121
REBLUPBC = 1320968.87026
# The optima, by sae with a tight PRECISION and by a grid and a root search.
EXACT = {"reml": 1464702.05709, "amrl_yl": 1464714.14, "spatial": (-0.322210813, 1386989.303)}


@pytest.fixture(scope="module")
def austria():
    whole = datasets.eusilc("population_aggregates")
    return whole.merge(datasets.eusilc("sample_aggregates"), on="Domain")


@pytest.fixture(scope="module")
def vignette(austria):
    return emdi.fh(FIXED, VARDIR, austria, "Domain", method="ml", MSE=True, mode="raw")


def as_printed(value, text):
    """Half a unit of the last digit printed; a little more, for another order of rows."""
    digits = len(text.partition("e")[0].partition(".")[2])
    power = int(text.partition("e")[2] or 0)
    assert value == pytest.approx(float(text), abs=0.51 * 10.0 ** (power - digits))


def test_the_vignette(vignette):
    as_printed(vignette.model_variance, VIGNETTE["variance"])
    for value, text in zip(vignette.coefficients, VIGNETTE["coefficients"]):
        as_printed(value, text)
    for name in ("loglike", "AIC", "BIC", "KIC", "AdjR2", "FH_R2"):
        as_printed(vignette.criteria[name], VIGNETTE[name])
    for value, text in zip(vignette.estimate, VIGNETTE["estimates"]):
        as_printed(value, text)
    assert vignette.model_variance == pytest.approx(ML, rel=1e-12)
    assert vignette.mse_method == "datta-lahiri"


def test_what_follows_in_the_vignette(vignette, austria):
    found = emdi.compare(vignette)
    as_printed(found.statistic, VIGNETTE["Brown"])
    assert found.degrees_of_freedom == 94
    share = austria.set_index("Domain")["ratio_n"]
    ratio = emdi.benchmark(vignette, 20140.09, share, type="ratio")
    as_printed(ratio.benchmarked[0], VIGNETTE["benchmarked"])
    assert ratio.achieved == pytest.approx(20140.09)


def test_moran_and_geary(austria):
    labels = austria["Domain"]
    matrix = pd.DataFrame(datasets.eusilc_proximity(), index=labels, columns=labels)
    found = emdi.spatialcor_tests(austria.set_index("Domain")["Mean"], matrix)
    for k, name in enumerate(("Moran", "Geary")):
        as_printed(found.values[k], VIGNETTE[name][0])
        as_printed(found.p_values[k], VIGNETTE[name][1])
    assert found.statistics == ("Moran's I", "Geary's C")


@pytest.mark.parametrize("mode", ["raw", "guarded"])
@pytest.mark.parametrize("method", ["reml", "ml"])
def test_spatial_in_the_right_order(austria, method, mode):
    labels = austria["Domain"]
    matrix = datasets.eusilc_proximity()
    if mode == "guarded":
        matrix = pd.DataFrame(matrix, index=labels, columns=labels)
    fit = emdi.fh(
        FIXED, VARDIR, austria, "Domain", method, correlation="spatial", corMatrix=matrix, mode=mode
    )
    rho, variance = SPATIAL[method]
    assert fit.spatial_correlation == pytest.approx(rho, rel=1e-9)
    assert fit.model_variance == pytest.approx(variance, rel=1e-9)
    if mode == "guarded" and method == "reml":
        assert fit.exact["spatial_correlation"] == pytest.approx(EXACT["spatial"][0], abs=1e-7)
        assert fit.exact["model_variance"] == pytest.approx(EXACT["spatial"][1], rel=1e-7)


def test_other_models(austria):
    def raw(**words):
        table = {"fixed": FIXED, "vardir": VARDIR, "combined_data": austria, "domains": "Domain"}
        return emdi.fh(**{**table, **words, "mode": "raw"}).model_variance

    assert raw() == pytest.approx(REML, rel=1e-12)
    for back, (method, variance) in LOG.items():
        found = raw(method=method, transformation="log", backtransformation=back)
        assert found == pytest.approx(variance, rel=1e-10)
    assert raw(method="reblupbc") == pytest.approx(REBLUPBC, rel=1e-10)
    errors = np.zeros((2, 2, 94))
    errors[1, 1] = austria["Var_Cash"]
    assert raw(fixed="Mean ~ Cash", method="me", Ci=errors) == pytest.approx(ME, rel=1e-11)


def test_the_optima(austria):
    for method in ("reml", "amrl_yl"):
        fit = emdi.fh(FIXED, VARDIR, austria, "Domain", method)
        assert fit.exact["model_variance"] == pytest.approx(EXACT[method], rel=2e-8)
        assert fit.model_variance == pytest.approx(EXACT[method], rel=1e-5)


def test_fay_herriot_gives_the_same(austria, vignette):
    fit = fay_herriot(
        FIXED, austria, variance=VARDIR, domain="Domain", engine="emdi", method="ML", mode="raw"
    )
    np.testing.assert_array_equal(fit.fit.estimate, vignette.estimate)
    np.testing.assert_array_equal(fit.fit.mse, vignette.mse)
    assert fit.fit.criteria == vignette.criteria
    assert fit.aic == pytest.approx(vignette.criteria["AIC"], rel=1e-12)
    assert fit.bic == pytest.approx(vignette.criteria["BIC"], rel=1e-12)
    assert fit.kic == pytest.approx(vignette.criteria["KIC"], rel=1e-12)
