"""What sae really does at its edges, in raw mode, and what the guarded mode makes of it."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq

from pybridge import datasets
from pybridge.engines import sae
from pybridge.errors import EngineError, EngineTimeout, InputError
from pybridge.smoothing._area_model import fit_area_model
from validation.cases.fay_herriot import load
from tests.live_r.sae_tables import correlated, ring


pytestmark = pytest.mark.r("sae")


@pytest.fixture(scope="module")
def spacetime():
    table = datasets.spacetime()
    ids = table["Area"].unique()
    return table, pd.DataFrame(datasets.spacetime_proximity(), index=ids, columns=ids)


# --- the iteration limit of the spatial model: an R error instead of a flag --------------------


def test_the_iteration_limit_of_the_spatial_model(spacetime):
    table, w = correlated(20, 0.6, seed=1), ring(20)
    with pytest.raises(EngineError, match="diff >= PRECISION"):
        sae.eblupSFH(table, "y ~ x", "d", w, MAXITER=2, mode="raw")
    for function in (sae.eblupSFH, sae.mseSFH):
        fit = function(table, "y ~ x", "d", w, MAXITER=2)
        assert (fit.status, fit.engine_status) == ("not_converged", "error")
        assert np.isnan(fit.estimate).all() and np.isnan(fit.mse).all()
        assert np.isfinite(fit.exact["model_variance"])
        assert any("did not converge in 2 iterations" in line for line in fit.conditions)


@pytest.mark.parametrize("function", ["pbmseSFH", "npbmseSFH"])
def test_one_replicate_that_does_not_converge_ends_a_bootstrap(function):
    table, w = correlated(40, 0.3, seed=4), ring(40)
    whole = sae.eblupSFH(table, "y ~ x", "d", w)
    words = {"MAXITER": whole.iterations + 1, "B": 100, "seed": 1}
    with pytest.raises(EngineError, match="diff >= PRECISION"):
        getattr(sae, function)(table, "y ~ x", "d", w, mode="raw", **words)
    fit = getattr(sae, function)(table, "y ~ x", "d", w, **words)
    assert fit.status == "not_converged"
    np.testing.assert_array_equal(fit.estimate, whole.estimate)
    assert np.isnan(fit.mse).all()
    assert any("a replicate of the bootstrap did not converge" in line for line in fit.conditions)


# --- a negative rho, which the rule for stopping never looks at --------------------------------


@pytest.mark.parametrize("method", ["REML", "ML"])
def test_a_negative_correlation_is_asked_for_again(method):
    table, w = correlated(40, -0.7, seed=10), ring(40)
    raw = sae.eblupSFH(table, "y ~ x", "d", w, method=method, mode="raw")
    fit = sae.mseSFH(table, "y ~ x", "d", w, method=method)
    best = fit.exact["spatial_correlation"]
    assert raw.spatial_correlation < 0 and fit.status == raw.status == "converged"
    assert abs(fit.spatial_correlation - best) < 1e-7 < abs(raw.spatial_correlation - best)
    assert fit.as_given["spatial_correlation"] == raw.spatial_correlation
    assert fit.as_given["model_variance"] == raw.model_variance
    assert any("rho is negative" in line for line in fit.conditions)


def test_the_correlation_of_austrian_incomes():
    # sae and emdi give -0.322273 with their default precision, -0.322211 with a tight one.
    table = datasets.eusilc()
    register = datasets.eusilc("population_aggregates")
    w = pd.DataFrame(
        datasets.eusilc_proximity(), index=register["Domain"], columns=register["Domain"]
    )
    table = register[["Domain", "cash", "self_empl"]].merge(table, on="Domain", how="left")
    fit = sae.eblupSFH(table, "Mean ~ cash + self_empl", "Var_Mean", w, domain="Domain")
    assert fit.as_given["spatial_correlation"] == pytest.approx(-0.322272733286, abs=1e-9)
    assert fit.as_given["model_variance"] == pytest.approx(1386936.80732, rel=1e-9)
    assert fit.spatial_correlation == pytest.approx(-0.322210813, abs=2e-8)
    assert fit.model_variance == pytest.approx(1386989.303, rel=1e-7)


# --- scoring without constraints, clipped at 0 afterwards --------------------------------------


@pytest.mark.parametrize(
    ("name", "method", "status", "engine_status"),
    [
        ("reml_short", "REML", "not_converged", "converged"),
        ("ml_short", "ML", "not_converged", "converged"),
        ("ml_local", "ML", "not_converged", "converged"),
        ("reml_fails", "REML", "not_converged", "not_converged"),
        ("fh_fails", "FH", "not_converged", "not_converged"),
        ("at_zero", "FH", "boundary", "not_converged"),
        ("at_zero", "REML", "boundary", "converged"),
        ("negative_mse", "FH", "converged", "converged"),
        ("few", "REML", "weak_identification", "converged"),
    ],
)
@pytest.mark.filterwarnings("ignore::pybridge.errors.EngineWarning")
def test_where_scoring_stops_short(name, method, status, engine_status):
    case = load(name)
    words = {"formula": case.formula, "vardir": "variance", "method": method}
    raw = sae.mseFH(case.frame(), mode="raw", **words)
    fit = sae.mseFH(case.frame(), **words)
    assert (fit.status, fit.engine_status) == (status, engine_status)
    assert raw.engine_status == engine_status
    assert fit.exact["model_variance"] == pytest.approx(
        case.answer(method, "exact", "model_variance")[0], rel=1e-7
    )
    if status == "not_converged" and engine_status == "converged":
        # sae says nothing; both numbers are there.
        assert raw.status in ("converged", "boundary") and fit.exact["shortfall"] > 0.02
        np.testing.assert_array_equal(fit.estimate, raw.estimate)
        assert any("the optimum is" in line for line in fit.conditions)
    if (name, method) == ("at_zero", "FH"):
        assert np.isnan(raw.estimate).all() and raw.status == "not_converged"
        assert np.isfinite(fit.mse).all() and fit.model_variance == 0.0
        assert any("solution at 0" in line for line in fit.conditions)
        assert np.isnan(sae.eblupFH(case.frame(), **words).mse).all()
    if name == "negative_mse":
        assert (raw.mse < 0).any()
        np.testing.assert_array_equal(fit.mse, raw.mse)  # never clipped
        assert set(fit.domain_status[fit.mse < 0]) == {"negative_mse"}
        assert fit.to_frame()["lower"].isna().any()


def test_the_spatial_model_at_the_wrong_end():
    # The domains of a long wave: rho is near 1, and sae ends at -1 without a word.
    draw = np.random.default_rng(0)
    m = 25
    draw.normal(size=2 * m)
    wave = 50 * np.sin(2 * np.pi * np.arange(m) / m) + 0.1 * draw.normal(size=m)
    table = pd.DataFrame({"y": wave, "d": 0.01 * draw.uniform(0.5, 2, m), "x": draw.normal(size=m)})
    raw = sae.eblupSFH(table, "y ~ x", "d", ring(m), mode="raw")
    assert raw.engine_status == "converged" and raw.spatial_correlation < -0.5
    fit = sae.eblupSFH(table, "y ~ x", "d", ring(m))
    assert fit.status == "not_converged" and fit.exact["spatial_correlation"] > 0.9
    assert fit.exact["shortfall"] > 10


# --- precision -----------------------------------------------------------------------------------


def test_the_default_precision_leaves_a_relative_error_of_some_millionths():
    milk = datasets.milk()
    milk["var"] = milk["SD"] ** 2
    words = {"formula": "yi ~ as.factor(MajorArea)", "vardir": "var"}
    best = 0.0185503347627667
    raw = sae.eblupFH(milk, mode="raw", **words)
    assert 5e-6 < abs(raw.model_variance / best - 1) < 1e-5
    fit = sae.eblupFH(milk, **words)
    assert fit.model_variance == raw.model_variance and fit.status == "converged"
    assert fit.exact["model_variance"] == pytest.approx(best, rel=1e-7)
    assert 0 <= fit.exact["shortfall"] < 1e-9
    tight = sae.eblupFH(milk, PRECISION=1e-12, **words)
    assert tight.model_variance == pytest.approx(best, rel=1e-10)


# --- arguments by unevaluated name, and what is ignored ------------------------------------------


def test_variances_by_name_only_and_no_offset():
    milk = datasets.milk()
    milk["var"] = milk["SD"] ** 2
    with pytest.raises(InputError, match="not an expression"):
        sae.eblupFH(milk, "yi ~ 1", "SD^2", mode="raw")
    plain = sae.eblupFH(milk, "yi ~ 1", "var", mode="raw")
    offset = sae.eblupFH(milk, "yi ~ 1 + offset(ni)", "var", mode="raw")
    np.testing.assert_array_equal(offset.estimate, plain.estimate)  # sae ignores it
    with pytest.raises(InputError) as caught:
        sae.eblupFH(milk, "yi ~ 1 + offset(ni)", "var")
    assert caught.value.code == "offset_not_supported"


def test_names_that_sae_could_not_deparse():
    table = correlated(20, 0.0, seed=2).rename(columns={"y": "소득 (만원)", "d": "if", "x": "a`b"})
    table.columns = ["소득 (만원)", "if", "x 1"]
    for mode in ("raw", "guarded"):
        fit = sae.mseFH(table, "`소득 (만원)` ~ `x 1`", "if", mode=mode)
        assert list(fit.coefficients["term"]) == ["(Intercept)", "x 1"]
        assert np.isfinite(fit.mse).all()


# --- rho set to 1, where I - rho W has no inverse ------------------------------------------------


def test_a_correlation_of_one_is_the_border():
    draw = np.random.default_rng(0)
    m = 12
    x = draw.normal(size=m)
    draw.normal(size=m)
    wave = 50 * np.sin(2 * np.pi * np.arange(m) / m) + 0.1 * draw.normal(size=m)
    table = pd.DataFrame({"y": wave, "d": 0.01 * draw.uniform(0.5, 2, m), "x": x})
    with pytest.raises(EngineError, match=re.escape("(I - rho * proxmatt)")):
        sae.mseSFH(table, "y ~ x", "d", ring(m), mode="raw")
    fit = sae.mseSFH(table, "y ~ x", "d", ring(m))
    assert (fit.status, fit.engine_status) == ("boundary", "error")
    assert fit.exact["spatial_correlation"] > 0.99 and np.isnan(fit.estimate).all()


# --- loops without end ---------------------------------------------------------------------------


def at_the_start(m=15):
    """A table whose REML variance is sae's own start, so that one iteration is enough for it, and
    not for a replicate."""
    draw = np.random.default_rng(1)
    d, x, e = np.exp(draw.normal(size=m)), draw.normal(size=m), 2 * draw.normal(size=m)
    design = np.column_stack([np.ones(m), x])

    def excess(c):
        fit = fit_area_model(estimate=c * e, variance=d, covariates=design)
        return fit.model_variance - np.median(d)

    return pd.DataFrame({"y": brentq(excess, 0.1, 10, xtol=1e-14) * e, "d": d, "x": x})


@pytest.mark.parametrize("mode", ["raw", "guarded"])
def test_a_bootstrap_that_never_ends_is_stopped(mode, spacetime):
    table = at_the_start()
    assert sae.eblupFH(table, "y ~ x", "d", MAXITER=1, mode=mode).engine_status == "converged"
    with pytest.raises(EngineTimeout):
        sae.eblupFH(table, "y ~ x", "d", MAXITER=1, B=5000, seed=1, time_limit=0.5, mode=mode)
    if mode == "raw":
        return
    table, w = spacetime
    words = {"domain": "Area", "time": "Time", "model": "S"}
    fit = sae.eblupSTFH(table, "Y ~ X1 + X2", "Var", w, PRECISION=1e-10, **words)
    start = {f"{name}_start": value for name, value in fit.parameters.items()}
    with pytest.raises(EngineTimeout):
        sae.pbmseSTFH(
            table,
            "Y ~ X1 + X2",
            "Var",
            w,
            MAXITER=1,
            B=5000,
            seed=1,
            time_limit=0.5,
            **words,
            **start,
        )


def test_bootstraps_have_a_limit_and_a_seed_without_asking(spacetime):
    table, w = spacetime
    table = table[table["Time"] == 1]
    words = {"formula": "Y ~ X1", "vardir": "Var", "domain": "Area", "B": 2}
    fit = sae.eblupFH(table, **words)
    assert fit.request.time_limit == 600.0 and fit.request.seed is not None
    again = sae.eblupFH(table, seed=fit.request.seed, **words)
    assert again.criteria == fit.criteria and fit.criteria["nBootstrap"] == 2
    other = sae.eblupFH(table, seed=fit.request.seed ^ 1, **words)
    assert other.criteria["AICc"] != fit.criteria["AICc"]
    fit = sae.mseSFH(table, "Y ~ X1", "Var", w, domain="Area")
    assert fit.request.seed is None and fit.request.time_limit is None


def test_one_instant_is_no_model_over_time(spacetime):
    table, w = spacetime
    one = table[table["Time"] == 1]
    raw = sae.eblupSTFH(one, "Y ~ X1", "Var", w.to_numpy(), D=11, T=1, mode="raw")
    assert raw.status == "not_converged" and np.isnan(raw.estimate).all()
    with pytest.raises(InputError) as caught:
        sae.eblupSTFH(one, "Y ~ X1", "Var", w, domain="Area", time="Time")
    assert caught.value.code == "one_instant" and "SFH" in caught.value.hint


def test_rows_by_time_are_misread_and_put_right(spacetime):
    table, w = spacetime
    by_time = table.sort_values(["Time", "Area"])
    right = sae.eblupSTFH(table, "Y ~ X1 + X2", "Var", w, domain="Area", time="Time")
    raw = sae.eblupSTFH(by_time, "Y ~ X1 + X2", "Var", w.to_numpy(), D=11, T=3, mode="raw")
    assert raw.status == "not_converged"
    fit = sae.eblupSTFH(by_time, "Y ~ X1 + X2", "Var", w, domain="Area", time="Time")
    expected = right.to_frame().set_index(["domain", "time"])["estimate"]
    found = fit.to_frame().set_index(["domain", "time"])["estimate"]
    pd.testing.assert_series_equal(found, expected.loc[found.index], check_exact=True)
    with pytest.raises(InputError) as caught:
        sae.eblupSTFH(table[1:], "Y ~ X1 + X2", "Var", w, domain="Area", time="Time")
    assert caught.value.code == "not_balanced"


def test_what_is_not_there_is_named_in_raw_mode_too():
    table = datasets.spacetime()
    w = datasets.spacetime_proximity()
    words = {"D": 11, "T": 3, "domain": "Area", "time": "Time", "mode": "raw"}
    for field in ("time", "domain"):
        for mode in ("raw", "guarded"):
            with pytest.raises(InputError) as caught:
                sae.eblupSTFH(table, "Y ~ X1", "Var", w, **{**words, field: "nope", "mode": mode})
            assert caught.value.code == "missing_column" and caught.value.field == field
    corn = datasets.cornsoybean()
    sizes = datasets.cornsoybean_means().iloc[:, [0, 3]]
    calls = {
        "meanxpop": lambda: sae.eblupBHF(
            corn, "CornHec ~ CornPix", "County", None, sizes, mode="raw"
        ),
        "popnsize": lambda: sae.eblupBHF(
            corn, "CornHec ~ CornPix", "County", sizes, None, mode="raw"
        ),
        "domsizebyps": lambda: sae.pssynt(corn, "CornHec", "CornPix", "County", None, mode="raw"),
        "synthetic": lambda: sae.ssd(corn, "County", "CornPix", sizes, sizes, None, mode="raw"),
    }
    for field, call in calls.items():
        with pytest.raises(InputError) as caught:
            call()
        assert caught.value.code == "not_a_table" and caught.value.field == field


@pytest.mark.parametrize("mode", ["raw", "guarded"])
def test_an_iteration_limit_is_told(mode):
    table = datasets.spacetime()
    ids = table["Area"].unique()
    w = pd.DataFrame(datasets.spacetime_proximity(), index=ids, columns=ids)
    words = {"D": 11, "T": 3} if mode == "raw" else {"domain": "Area", "time": "Time"}
    fit = sae.eblupSTFH(
        table, "Y ~ X1", "Var", w.to_numpy() if mode == "raw" else w, MAXITER=1, mode=mode, **words
    )
    first = table[table["Time"] == 1]
    plain = sae.eblupFH(first, "Y ~ X1", "Var", MAXITER=1, mode=mode)
    for found in (fit, plain):
        assert found.status == "not_converged"
        assert "sae did not converge in 1 iterations" in " ".join(found.conditions)
