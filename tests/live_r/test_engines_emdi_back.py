"""Back to R: a fit's script gives its numbers bit for bit, and emdi works on its saved object."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

from pybridge.engines import emdi
from pybridge.engines._emdi_fit import fit_many, prepare
from pybridge.engines._emdi_legal import combinations
from pybridge.errors import EngineWarning
from pybridge.smoothing.fay_herriot import fay_herriot
from validation.cases.emdi import load, name_of

pytestmark = pytest.mark.r("emdi")

CASE = load()
# One of each kind; the robust bootstrap and the spatial robust models take too long here.
CHOSEN = [
    one
    for one in combinations()
    if one["MSE"] and not (one["method"].startswith("reblup") and one["correlation"] == "spatial")
    if not (one["method"].startswith("reblup") and one["mse_type"] == "boot")
]
NAMES = [name_of(one) for one in CHOSEN]


@pytest.fixture(scope="module")
def guarded():
    return fit_many([prepare(**CASE.words(one)) for one in CHOSEN])


@pytest.fixture(scope="module")
def plain(guarded, plain_r):
    code = ""
    for k, fit in enumerate(guarded):
        shown = (
            f'show("estimate{k}", result$estimate); show("mse{k}", result$mse)\n'
            "v <- object$model$variance\n"
            f'show("variance{k}", if (is.data.frame(v)) v$variance else v)\n'
            f'show("domain{k}", result$domain)\n'
        )
        code += f"local({{\n{fit.r_script()}\n{shown}}})\n"
    return plain_r(code, timeout=600)


@pytest.mark.parametrize("k", range(len(CHOSEN)), ids=NAMES)
def test_guarded_is_its_own_script_to_the_last_bit(guarded, plain, k):
    fit = guarded[k]
    place = [list(fit.domains).index(label) for label in plain[f"domain{k}"]]
    np.testing.assert_array_equal(fit.estimate[place], plain[f"estimate{k}"])
    np.testing.assert_array_equal(fit.mse[place], plain[f"mse{k}"])
    assert plain[f"variance{k}"] == [fit.model_variance]


RAW = [
    k
    for k, one in enumerate(CHOSEN)
    if (one["method"], one["mse_type"])
    in (("reml", "spatialparboot"), ("me", "jackknife"), ("reblup", "pseudo"), ("ml", "boot"))
]


def test_raw_is_its_own_script_to_the_last_bit(plain_r):
    fits = []
    for k in RAW:
        words = {**CASE.words(CHOSEN[k]), "mode": "raw"}
        if words["corMatrix"] is not None:
            words["corMatrix"] = words["corMatrix"].to_numpy()
        fits.append(emdi.fh(**words))
    code = ""
    for k, fit in enumerate(fits):
        shown = f'show("estimate{k}", result$estimate); show("mse{k}", result$mse)\n'
        code += f"local({{\n{fit.r_script()}\n{shown}}})\n"
    found = plain_r(code)
    assert len(fits) >= 5
    for k, fit in enumerate(fits):
        np.testing.assert_array_equal(found[f"estimate{k}"], fit.estimate)
        np.testing.assert_array_equal(found[f"mse{k}"], fit.mse)


def test_without_labels_domains_are_numbered():
    table = CASE.frame.drop(columns="domain")
    fits = [emdi.fh("level ~ x", "spread", table, mode=mode) for mode in ("raw", "guarded")]
    for fit in fits:
        assert list(fit.domains) == list(range(1, 17))
        assert "domains" in fit.request.arguments and fit.request.arguments["domains"] is None
    np.testing.assert_allclose(fits[0].estimate, fits[1].estimate, rtol=1e-5)


def odd_table():
    table = CASE.frame.copy()
    table["domain"] = ["가 나", 'a "b"', "c\\d", "NA", "é", "007"] + list(table["domain"][6:])
    table["group"] = ["ü", "b", "ü", "b"] * 4
    table.loc[4, "group"] = "b"  # raw, the two domains outside must have both
    return table.rename(columns={"x": "x covariate", "level": "Ertrag", "domain": "Gebiet é"})


def test_odd_names_and_text_come_back_and_rscript_reads_them(plain_r):
    table = odd_table()
    formula = "Ertrag ~ `x covariate` + group"
    fits = [
        emdi.fh(formula, "spread", table, "Gebiet é", MSE=True, mode=mode)
        for mode in ("raw", "guarded")
    ]
    for fit in fits:
        assert list(fit.domains) == list(table["Gebiet é"])
        assert fit.request.covariate_names[1:] == ("x covariate", "groupü")
        shown = (
            'show("estimate", result$estimate); show("mse", result$mse)\n'
            'show("bytes", nchar(enc2utf8(result$domain), "bytes"))\n'
        )
        found = plain_r(fit.r_script() + shown)
        np.testing.assert_array_equal(found["estimate"], fit.estimate)
        np.testing.assert_array_equal(found["mse"], fit.mse)
        assert found["bytes"] == [len(str(label).encode()) for label in fit.domains]


LOOK = """
look <- function(file, k) {
  label <- function(name) paste0(name, k)
  fit <- readRDS(file)
  stopifnot(inherits(fit, "fh"), inherits(fit, "emdi"))
  invisible(capture.output(print(fit), print(summary(fit))))
  invisible(capture.output(suppressWarnings(suppressMessages(plot(fit)))))
  show(label("estimate"), fit$ind$FH); show(label("mse"), fit$MSE$FH)
  show(label("direct"), fit$ind$Direct)
  v <- fit$model$variance
  show(label("variance"), if (is.data.frame(v)) v$variance else v)
  invisible(capture.output(compared <- suppressMessages(compare(fit))))
  show(label("brown"), compared$Brown$W.value)
  show(label("cv"), estimators(fit, MSE = TRUE, CV = TRUE)$ind$FH_CV)
  show(label("method"), fit$call$method)
  show(label("coefficients"), coef(fit))
  if (!is.null(fit$model$model_select$loglike)) show(label("loglike"), as.numeric(logLik(fit)))
}
suppressMessages(library(emdi))
pdf(NULL)
"""
SAVED = [
    (mode, words)
    for words in (
        {"method": "ml"},
        {"method": "reml", "correlation": "spatial"},
        {"method": "ml", "transformation": "log", "backtransformation": "bc_crude"},
        {"method": "me", "mse_type": "jackknife"},
    )
    for mode in ("raw", "guarded")
]


@pytest.fixture(scope="module")
def saved(tmp_path_factory, plain_r):
    """Fits that were saved, and what emdi made of the files."""
    folder = tmp_path_factory.mktemp("a folder")
    fits, code = [], LOOK
    for k, (mode, words) in enumerate(SAVED):
        one = {"transformation": "no", "correlation": "no", "MSE": True, **words}
        asked = {**CASE.words(one), "mode": mode}
        if words["method"] != "me":
            asked["combined_data"] = CASE.frame[CASE.frame["level"].notna()]
        if mode == "raw" and asked["corMatrix"] is not None:
            asked["corMatrix"] = asked["corMatrix"].to_numpy()
        fits.append(emdi.fh(**asked))
        code += f'look("{fits[-1].to_rds(folder / f"fit {k}.rds")}", {k})\n'
    return fits, plain_r(code)


@pytest.mark.parametrize("k", range(len(SAVED)), ids=str)
def test_emdi_works_on_the_saved_object(saved, k):
    fit, found = saved[0][k], {n: v for n, v in saved[1].items() if n.endswith(str(k))}
    place = np.asarray(fit.request.order)
    np.testing.assert_array_equal(found[f"estimate{k}"], fit.estimate[place])
    np.testing.assert_array_equal(found[f"mse{k}"], fit.mse[place])
    np.testing.assert_array_equal(found[f"direct{k}"], fit.direct[place])
    np.testing.assert_array_equal(found[f"coefficients{k}"], fit.coefficients)
    assert found[f"variance{k}"] == [fit.model_variance]
    assert found[f"method{k}"] == [fit.request.method]
    cv = fit.to_frame()["cv"].to_numpy()[place]
    np.testing.assert_allclose(found[f"cv{k}"], cv, rtol=1e-14)
    if not np.isnan(fit.mse).any():
        assert found[f"brown{k}"][0] == pytest.approx(emdi.compare(fit).statistic, rel=1e-12)
    if "loglike" in fit.criteria:
        assert found[f"loglike{k}"] == [fit.criteria["loglike"]]


def test_a_benchmarked_object(tmp_path, plain_r):
    table = CASE.frame[CASE.frame["level"].notna()]
    fit = emdi.fh("level ~ x + z", "spread", table, "domain")
    share = pd.Series(table["n"].to_numpy(), index=table["domain"])
    found = emdi.benchmark(fit, 17.0, share)
    path = found.to_rds(tmp_path / "fit.rds")
    back = plain_r(f'fit <- readRDS("{path}"); show("bench", fit$ind$FH_Bench)\n')
    np.testing.assert_array_equal(back["bench"], found.benchmarked)
    assert found.achieved == pytest.approx(17.0, rel=1e-14)


def test_direct_estimates_go_back_from_their_units(tmp_path, plain_r):
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"Gebiet": np.repeat(["가", "b", "c"], 8), "y": rng.gamma(2.0, 5.0, 24)})
    found = emdi.direct("y", table, "Gebiet", threshold=6.0, var=True, B=4)
    path = found.to_rds(tmp_path / "direct.rds", table)
    back = plain_r(
        f'x <- readRDS("{path}"); show("mean", x$ind$Mean); show("var", x$MSE$Mean)\n'
        'show("class", class(x))\n'
    )
    assert back["class"] == ["direct", "emdi"]
    assert sorted(back["mean"]) == sorted(found.estimate[:, 0])
    assert sorted(back["var"]) == sorted(found.variance[:, 0])


def test_records_hold_no_object_of_r_and_pickle():
    one = {"method": "ml", "transformation": "no", "correlation": "no", "MSE": True}
    fit = emdi.fh(**CASE.words(one))
    compared = emdi.compare(fit)
    again = emdi.step(emdi.fh(**{**CASE.words(one), "combined_data": CASE.frame}))
    for record in (fit, compared, emdi.estimators(fit), again):
        copy = pickle.loads(pickle.dumps(record))
        assert copy == record and copy is not record
        assert record.summary() and isinstance(record.to_frame(), pd.DataFrame)
        assert isinstance(record.to_dict(), dict)
    with pytest.raises(ValueError):
        fit.estimate[0] = 0.0


def test_fay_herriot_goes_back_the_same_way(tmp_path, plain_r):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EngineWarning)
        fit = fay_herriot(
            "level ~ x + C(group)",
            odd_table().rename(columns={"Ertrag": "level", "x covariate": "x"}),
            variance="spread",
            domain="Gebiet é",
            engine="emdi",
            method="AMPL",
        )
    shown = 'show("estimate", result$estimate); show("mse", result$mse)\n'
    found = plain_r(fit.r_script(tmp_path / "script.R") + shown)
    np.testing.assert_array_equal(found["estimate"], fit.fit.estimate)
    np.testing.assert_array_equal(found["mse"], fit.fit.mse)
    path = fit.to_rds(tmp_path / "fit.rds")
    back = plain_r(f'fit <- readRDS("{path}"); show("estimate", fit$ind$FH)\n')
    np.testing.assert_array_equal(back["estimate"], fit.fit.estimate)


@pytest.mark.parametrize("kind", ["raking", "ratio", "MSE_adj"])
def test_benchmarked_estimates_are_their_own_script_to_the_last_bit(kind, plain_r):
    fit = emdi.fh("level ~ x", "spread", CASE.frame, "domain", MSE=True)
    share = np.arange(1.0, 17.0) / 136
    found = emdi.benchmark(fit, 1.02 * float(share @ fit.estimate), share, kind)
    plain = plain_r(found.r_script() + 'show("benchmarked", benchmarked$FH_Bench)\n')
    np.testing.assert_array_equal(plain["benchmarked"], found.benchmarked)
