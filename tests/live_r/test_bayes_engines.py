"""hbsae, metafor and rjags through the bridge: the numbers of plain R, and what is refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from pybridge.errors import EngineWarning, InputError
from pybridge.smoothing import _hbsae
from pybridge.smoothing._spec import FayHerriotSpec
from pybridge.smoothing.taxonomy import taxonomy_model
from pybridge.tables.area import area_table
from validation.cases.taxonomy import load_area, load_taxonomy

MONTE_CARLO = 6.0


@pytest.mark.r("metafor")
@pytest.mark.parametrize("method", ["REML", "ML"])
@pytest.mark.parametrize("name", ["groups34", "gaps60"])
def test_metafor_gives_the_numbers_of_plain_r(name, method):
    case = load_taxonomy(name)
    fit = taxonomy_model(
        case.formula, case.table, levels=case.levels, engine="metafor", method=method
    )
    setting = f"{method} default"
    known = case.answer("metafor", setting, "variance")
    np.testing.assert_allclose(list(fit.model_variance.values()), known, rtol=1e-8)
    known = case.answer("metafor", setting, "coefficient")
    np.testing.assert_allclose(fit.coefficients["estimate"], known, rtol=1e-9)
    own = fit.restricted_log_likelihood if method == "REML" else fit.log_likelihood
    assert own == pytest.approx(case.answer("metafor", setting, "log_likelihood").iloc[0], abs=1e-9)
    eblup = case.answer("metafor", setting, "eblup")
    frame = fit.to_frame().set_index("domain")
    np.testing.assert_allclose(frame.loc[eblup.index, "estimate"], eblup, rtol=1e-8)
    assert fit.provenance.packages["metafor"]

    native = taxonomy_model(case.formula, case.table, levels=case.levels, method=method).to_frame()
    apart = (frame["estimate"].to_numpy() - native["estimate"]) / native["standard_error"]
    assert np.abs(apart).max() < 1e-3  # unlabelled domains too
    np.testing.assert_allclose(frame["mse"], native["mse"], rtol=1e-3)


@pytest.mark.r("metafor")
def test_metafor_short_of_the_optimum_is_named():
    case = load_taxonomy("cross63")
    words = {"levels": case.levels, "engine": "metafor", "method": "ML"}
    fit = taxonomy_model(
        case.formula, case.table, **words, optimizer="optim", optmethod="BFGS", reltol=1e-15
    )
    assert fit.status == "not_converged"
    assert any("below the optimum" in text for text in fit.conditions)
    assert taxonomy_model(case.formula, case.table, **words).status == "converged"


@pytest.mark.r("rjags", "coda")
def test_rjags_agrees_with_the_native_posterior():
    case = load_taxonomy("gaps60")
    words = {"levels": case.levels}
    fit = taxonomy_model(case.formula, case.table, engine="rjags", seed=1, n_draws=4000, **words)
    again = taxonomy_model(case.formula, case.table, engine="rjags", seed=1, n_draws=4000, **words)
    assert fit == again
    native = taxonomy_model(case.formula, case.table, **words)
    mine, known = fit.to_frame(), native.to_frame()
    spread = known["standard_error"]
    # The slowest number's effective size bounds the error of all, in posterior deviations.
    error = MONTE_CARLO / np.sqrt(fit.numbers.effective_size.min())
    for column in ("estimate", "synthetic", "lower", "upper"):
        assert (np.abs(mine[column] - known[column]) / spread).max() < 2 * error
    for level in case.levels:
        a, b = fit.effects(level), native.effects(level)
        assert list(a[level]) == list(b[level])
        assert (np.abs(a["effect"] - b["effect"]) / b["standard_error"]).max() < error
    assert fit.prior.scale == native.prior.scale
    assert "rjags" in fit.summary() and fit.provenance.packages["rjags"]


@pytest.mark.r("rjags", "coda")
def test_rjags_with_one_level_and_too_few_draws_says_so():
    case = load_taxonomy("groups34")
    fit = taxonomy_model(
        case.formula,
        case.table,
        levels=["domain"],
        engine="rjags",
        seed=2,
        n_draws=50,
        n_burn=0,
        n_chains=2,
        n_adapt=100,
    )
    assert fit.status == "not_converged"
    assert list(fit.model_variance) == ["domain"]


def test_rjags_refuses_a_census_before_r_is_asked():
    case = load_taxonomy("groups34")
    table = case.table.assign(variance=case.table["variance"].where(case.table.index > 0, 0.0))
    with pytest.raises(InputError) as caught:
        taxonomy_model(case.formula, table, levels=case.levels, engine="rjags")
    assert caught.value.code == "census_not_supported"


@pytest.mark.r("hbsae")
def test_hbsae_gives_the_numbers_of_plain_r():
    case = load_area("milk_areas")
    table = area_table(case.formula, case.table)
    options = _hbsae.complete_options({})
    fit = _hbsae.fit(table, FayHerriotSpec(engine="hbsae", method="bayes", options=options))
    known = case.answer("hbsae", "default", "estimate")
    np.testing.assert_allclose(fit.estimate, known, rtol=1e-12)
    np.testing.assert_allclose(fit.mse, case.answer("hbsae", "default", "mse"), rtol=1e-10)
    mean = case.answer("hbsae", "default", "variance_mean").iloc[0]
    assert fit.model_variance == pytest.approx(mean, rel=1e-12)
    assert fit.status == "converged" and fit.versions["hbsae"]


@pytest.mark.r("hbsae")
def test_hbsae_predicts_domains_without_labels():
    case = load_area("gaps60")
    table = area_table(case.formula, case.table)
    options = _hbsae.complete_options({})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EngineWarning)  # of inaccurate integrations, in its words
        fit = _hbsae.fit(table, FayHerriotSpec(engine="hbsae", method="bayes", options=options))
    known = case.answer("stats", "exact", "estimate")
    rows = case.rows(known.index)
    assert np.isnan(table.estimate[rows]).any()
    np.testing.assert_allclose(fit.estimate[rows], known, rtol=1e-4)
    np.testing.assert_allclose(fit.mse[rows], case.answer("stats", "exact", "mse"), rtol=1e-3)
