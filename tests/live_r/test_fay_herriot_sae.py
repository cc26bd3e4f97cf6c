"""sae through the bridge against plain Rscript, bit for bit, raw and guarded; and its failures."""

from __future__ import annotations

import subprocess
import warnings

import numpy as np
import pandas as pd
import pytest

from pybridge.errors import EngineError, EngineWarning
from pybridge.smoothing._area_fit import AreaProblem
from pybridge.smoothing._area_model import area_model_at, fit_area_model
from pybridge.smoothing._sae import fit_many
from pybridge.smoothing.fay_herriot import fay_herriot
from validation.cases.fay_herriot import load

pytestmark = pytest.mark.r("sae")


def rscript(tmp_path, code):
    """Lines that a script prints, read back as {name: list of exact floats}."""
    path = tmp_path / "script.R"
    path.write_text(code, encoding="utf-8")
    done = subprocess.run(
        ["Rscript", str(path)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, list[float]] = {}
    for line in done.stdout.splitlines():
        if line.startswith("BIT "):
            _, name, number = line.split()
            found.setdefault(name, []).append(np.nan if number == "NA" else float.fromhex(number))
    return found


SHOW = 'show <- function(name, x) cat(sprintf("BIT %s %a\\n", name, as.numeric(x)), sep = "")\n'

MILK = """
suppressPackageStartupMessages(library(sae))
data(milk)
milk$vardir <- milk$SD^2
show("area", milk$MajorArea); show("y", milk$yi); show("v", milk$vardir)
"""
RAW = (
    ("REML", {}),
    ("ML", {"PRECISION": 1e-8}),
    ("FH", {"MAXITER": 50}),
    ("REML", {"B": 10}),
)


@pytest.fixture(scope="module")
def plain_milk(tmp_path_factory):
    """sae's own answers on its milk data, the calls as an R user writes them."""
    code = SHOW + MILK
    for i, (method, options) in enumerate(RAW):
        words = "".join(f", {name} = {value}" for name, value in options.items())
        code += (
            'set.seed(7, "Mersenne-Twister", "Inversion", "Rejection")\n'
            f'fit <- mseFH(yi ~ as.factor(MajorArea), vardir, method = "{method}", data = milk'
            f"{words})\n"
            f'show("eblup{i}", fit$est$eblup); show("mse{i}", fit$mse)\n'
            f'show("beta{i}", fit$est$fit$estcoef$beta)\n'
            f'show("se{i}", fit$est$fit$estcoef$std.error)\n'
            f'show("refvar{i}", fit$est$fit$refvar); show("goodness{i}", fit$est$fit$goodness)\n'
        )
    return rscript(tmp_path_factory.mktemp("milk"), code)


@pytest.mark.parametrize("i", range(len(RAW)))
def test_raw_is_the_plain_call_to_the_last_bit(plain_milk, capfd, i):
    method, options = RAW[i]
    milk = pd.DataFrame({name: plain_milk[name] for name in ("area", "y", "v")})
    fit = fay_herriot(
        "y ~ C(area)", milk, variance="v", method=method, mode="raw", seed=7, **options
    )
    np.testing.assert_array_equal(fit.fit.estimate, plain_milk[f"eblup{i}"])
    np.testing.assert_array_equal(fit.fit.mse, plain_milk[f"mse{i}"])
    np.testing.assert_array_equal(fit.fit.coefficients, plain_milk[f"beta{i}"])
    assert fit.model_variance == plain_milk[f"refvar{i}"][0]
    assert list(fit.fit.criteria.values()) == plain_milk[f"goodness{i}"]
    np.testing.assert_allclose(fit.coefficients["standard_error"], plain_milk[f"se{i}"], rtol=1e-12)
    assert fit.provenance.packages["sae"] and fit.provenance.engine == "sae"
    assert capfd.readouterr() == ("", "")


def table(name, outside=()):
    frame = load(name).frame()
    frame.loc[list(outside), ["estimate", "variance"]] = np.nan
    return frame


GUARDED = (
    ("milk", "REML", ()),
    ("milk", "ML", (3, 10)),
    ("income", "FH", (0, 51)),
    ("at_zero", "FH", (2,)),
    ("census", "REML", (5, 7)),
)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """Guarded fits, a native one last, and what their own scripts print."""
    fits = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EngineWarning)
        for name, method, outside in GUARDED:
            fits.append(fay_herriot(load(name).formula, table(name, outside), method=method))
    fits.append(fay_herriot(load("milk").formula, table("milk", (3,)), engine="native"))
    code = SHOW
    for i, fit in enumerate(fits):
        show = f'show("estimate{i}", result$estimate); show("mse{i}", result$mse)\n'
        code += f"local({{\n{fit.r_script()}{show}}})\n"
    return fits, rscript(tmp_path_factory.mktemp("guarded"), code)


@pytest.mark.parametrize("i", range(len(GUARDED)))
def test_guarded_is_its_own_script_to_the_last_bit(guarded, i):
    fits, plain = guarded
    np.testing.assert_array_equal(fits[i].fit.estimate, plain[f"estimate{i}"])
    np.testing.assert_array_equal(fits[i].fit.mse, plain[f"mse{i}"])
    assert np.isfinite(fits[i].fit.mse).all()


def test_the_script_of_a_native_fit_comes_to_the_same_optimum(guarded):
    fits, plain = guarded
    np.testing.assert_allclose(fits[-1].fit.estimate, plain[f"estimate{len(GUARDED)}"], rtol=1e-9)


def test_names_of_domains_come_back_and_rscript_reads_them(tmp_path):
    frame = table("few")
    frame["domain"] = ["가 나", 'a "b"', "c\\d", "é", "plain"]
    fit = fay_herriot(load("few").formula, frame)
    assert list(fit.to_frame()["domain"]) == list(frame["domain"])
    count = 'show("bytes", nchar(enc2utf8(result$domain), "bytes"))\n'
    plain = rscript(tmp_path, SHOW + fit.r_script() + count)
    assert plain["bytes"] == [len(text.encode()) for text in frame["domain"]]


@pytest.mark.parametrize("method", ["REML", "ML", "FH"])
@pytest.mark.parametrize("name", ["milk", "income", "large", "census"])
def test_guarded_without_labels_is_native_to_the_precision_of_sae(name, method):
    case, outside = load(name), [1, 4]
    frame = table(name, outside)
    sae = fay_herriot(case.formula, frame, method=method, PRECISION=1e-12, MAXITER=1000)
    native = fay_herriot(case.formula, frame, method=method, engine="native")
    assert sae.status == native.status == "converged"
    assert list(sae.domain_status[outside]) == ["out_of_sample"] * 2
    for what in ("estimate", "mse", "shrinkage", "derivative"):
        np.testing.assert_allclose(getattr(sae.fit, what), getattr(native.fit, what), rtol=1e-8)
    assert sae.restricted_log_likelihood == pytest.approx(native.restricted_log_likelihood)


@pytest.mark.parametrize(
    ("name", "method", "status", "engine_status"),
    [
        ("at_zero", "FH", "boundary", "not_converged"),
        ("at_zero", "REML", "boundary", "converged"),
        ("fh_fails", "FH", "not_converged", "not_converged"),
        ("reml_fails", "REML", "not_converged", "not_converged"),
        ("reml_short", "REML", "not_converged", "converged"),
        ("ml_short", "ML", "not_converged", "converged"),
        ("ml_local", "ML", "not_converged", "converged"),
        ("few", "REML", "weak_identification", "converged"),
        ("negative_mse", "FH", "converged", "converged"),
    ],
)
@pytest.mark.filterwarnings("ignore::pybridge.errors.EngineWarning")
def test_where_sae_fails_the_status_says_so(name, method, status, engine_status):
    fit = fay_herriot(load(name).formula, table(name), method=method)
    assert (fit.status, fit.engine_status) == (status, engine_status)
    (exact,) = load(name).answer(method, "exact", "model_variance")
    assert fit.exact["model_variance"] == pytest.approx(exact, rel=1e-9)
    if name in ("reml_short", "ml_short", "ml_local"):
        assert fit.exact["shortfall"] > 0.02
        assert np.isfinite(fit.fit.estimate).all()
        assert any("optimum" in line for line in fit.conditions)
    if engine_status == "not_converged" and status == "not_converged":
        assert np.isnan(fit.fit.estimate).all() and np.isnan(fit.model_variance)
        assert any("does not converge" in line for line in fit.conditions)
    if name == "negative_mse":
        assert "negative_mse" in set(fit.domain_status)
        assert fit.to_frame()["standard_error"].isna().any()


def test_the_shim_at_zero_is_what_sae_gives_where_it_gets_there():
    # In this case the iteration for the moment equation does end at 0.
    case = load("reml_fails")
    assert case.answer("FH", "default", "model_variance")[0] == 0
    sae = fay_herriot(case.formula, table("reml_fails"), method="FH")
    at_zero = load("at_zero")
    with pytest.warns(EngineWarning, match="does not converge"):
        ours = fay_herriot(at_zero.formula, table("at_zero"), method="FH")
    for name, fit in (("reml_fails", sae), ("at_zero", ours)):
        known = load(name)
        native = area_model_at(
            0.0,
            estimate=known.estimate,
            variance=known.variance,
            covariates=known.covariates,
            method="FH",
        )
        np.testing.assert_allclose(fit.fit.estimate, native.estimate, rtol=1e-12)
        np.testing.assert_allclose(fit.fit.mse, native.mse, rtol=1e-10)
        assert fit.log_likelihood == pytest.approx(native.log_likelihood, rel=1e-12)
        assert fit.fit.criteria["AIC"] == pytest.approx(fit.aic, rel=1e-12)
        assert fit.fit.criteria["BIC"] == pytest.approx(fit.bic, rel=1e-12)
        assert fit.fit.criteria["KIC"] == pytest.approx(fit.kic, rel=1e-12)


def test_warnings_of_r_are_python_warnings_and_conditions():
    with pytest.warns(EngineWarning, match="does not converge") as caught:
        fit = fay_herriot(load("milk").formula, table("milk"), MAXITER=2)
    assert [warning.filename for warning in caught] == [__file__]  # the caller's own line
    assert fit.status == "not_converged"
    assert any("does not converge" in line for line in fit.conditions)


def test_an_error_of_r_is_raised_raw_and_a_status_guarded():
    # A variance of 0 where the model variance goes to 0: sae divides by it.
    frame = table("few")
    frame["estimate"] = 1.0 + frame["x2"]
    frame.loc[0, "variance"] = 0.0
    with pytest.raises(EngineError) as caught:
        fay_herriot(load("few").formula, frame, mode="raw")
    fit = fay_herriot(load("few").formula, frame)
    assert fit.status == "failed" and fit.engine_status == "error"
    assert any(caught.value.got in line for line in fit.conditions)
    assert fit.exact["model_variance"] == 0.0


def test_many_problems_go_in_one_round_trip_and_are_the_single_fits():
    problems = []
    for name in ("milk", "income", "at_zero", "reml_short"):
        case = load(name)
        problems.append(AreaProblem(case.estimate, case.variance, case.covariates))
    fits = fit_many(problems, method="REML")
    assert [fit.status for fit in fits] == ["converged", "converged", "boundary", "not_converged"]
    for name, fit in zip(("milk", "income"), fits):
        alone = fay_herriot(load(name).formula, table(name))
        np.testing.assert_array_equal(alone.fit.estimate, fit.estimate)
        np.testing.assert_array_equal(alone.fit.mse, fit.mse)
    assert fit_many([]) == []


def test_native_is_never_below_sae_in_likelihood():
    rng = np.random.default_rng(3)
    problems = []
    for _ in range(150):
        m, p = int(rng.integers(8, 30)), int(rng.integers(2, 4))
        x = np.column_stack([np.ones(m), rng.normal(size=(m, p - 1))])
        d = np.exp(rng.choice([0.5, 1.0, 1.5]) * rng.normal(size=m))
        spread = rng.choice([0.0, 0.05, 0.3])
        z = x.sum(axis=1) + np.sqrt(spread + d) * rng.normal(size=m)
        problems.append(AreaProblem(z, d, x))
    compared = 0
    for method, which in (("REML", "restricted_log_likelihood"), ("ML", "log_likelihood")):
        for given, fit in zip(problems, fit_many(problems, method=method)):
            exact = fit_area_model(
                estimate=given.estimate,
                variance=given.variance,
                covariates=given.covariates,
                method=method,
            )
            if np.isnan(fit.model_variance):
                continue
            compared += 1
            assert getattr(exact, which) >= getattr(fit, which) - 1e-10
            if fit.status != "not_converged" and exact.model_variance > 0:
                assert fit.model_variance == pytest.approx(exact.model_variance, rel=0.05)
    assert compared > 280
