"""Records of evd's, ismev's and evir's functions: back to R as objects and scripts, frozen."""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import subprocess

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge import datasets
from pybridge.engines import evd, evir, ismev
from pybridge.errors import InputError
from validation.cases.gpd import scores
from validation.cases.tail_calls import trend

pytestmark = pytest.mark.r("evd", "ismev", "evir")


@pytest.fixture(scope="module")
def records():
    """One record of each kind and mode."""
    x, table = scores("rain"), trend()
    found = {}
    for mode in ("raw", "guarded"):
        word = {"mode": mode}
        fit, other = evd.fpot(x, 30.0, **word), ismev.gpd_fit(x, 30.0, **word)
        both = {"ydat": table[["year", "group"]], "sigl": "year", "shl": "group", "siglink": "exp"}
        some = {
            "fpot": fit,
            "pp": evd.fpot(x, 30.0, model="pp", npp=365, **word),
            "level": evd.fpot(x, 30.0, mper=100, npp=365, **word),
            "profile": evd.profile(fit, "shape"),
            "confint": evd.confint(fit),
            "tcplot": evd.tcplot(x, (20, 40), nt=3, **word),
            "mrlplot": evd.mrlplot(x, (10, 40), nt=4, **word),
            "exiplot": evd.exiplot(x, (10, 40), nt=4, **word),
            "clusters": evd.clusters(x, 40.0, **word),
            "exi": evd.exi(x, 40.0, **word),
            "dgpd": evd.dgpd([1.0, 2.0], shape=0.1, **word),
            "gpd_fit": other,
            "covariates": ismev.gpd_fit(table["score"], 10.0, **both, **word),
            "pp_fit": ismev.pp_fit(x, 30.0, muinit=40.0, siginit=9.0, shinit=0.2, **word),
            "gpd_prof": ismev.gpd_prof(other, 100, 75.0, 200.0),
            "gpd_profxi": ismev.gpd_profxi(other, 0.0, 0.5),
            "gpd_diag": ismev.gpd_diag(other),
            "gpd_fitrange": ismev.gpd_fitrange(x, 20, 40, nint=3, **word),
            "mrl_plot": ismev.mrl_plot(x, 10.0, 40.0, nint=3, **word),
            "evir": evir.gpd(scores("danish"), 10.0, **word),
        }
        found.update({(mode, name): record for name, record in some.items()})
    return found


def test_records_pickle_compare_and_are_plain(records):
    for key, record in records.items():
        copy = pickle.loads(pickle.dumps(record))
        assert copy == record, key
        assert json.loads(json.dumps(record.to_dict()))["status"] == record.status
        assert record.summary() and record._repr_html_()
        frame = record.to_frame()
        assert isinstance(frame, pd.DataFrame) and len(frame)
        for name in frame.select_dtypes("float").columns:
            frame.loc[frame.index[0], name] = 0.5  # a table handed out is the caller's own
        assert copy == record, key
        with pytest.raises(dataclasses.FrozenInstanceError):
            record.status = "converged"
        made = record.provenance
        assert made.r and made.engine in made.packages and made.options["mode"] == key[0]


def test_nothing_differs_when_asked_again(records):
    again = evd.fpot(scores("rain"), 30.0)
    assert again == records["guarded", "fpot"]
    assert again != evd.fpot(scores("rain"), 25.0)


def test_every_record_has_an_object(records, tmp_path):
    for (mode, name), record in records.items():
        if mode == "raw":
            path = record.to_rds(tmp_path / f"{name}.rds")
            assert path == (tmp_path / f"{name}.rds").resolve() and path.stat().st_size > 0, name


OBJECTS = ("fpot", "pp", "level", "profile", "tcplot", "gpd_fit", "covariates", "pp_fit", "evir")


@pytest.fixture(scope="module")
def saved(records, tmp_path_factory):
    folder = tmp_path_factory.mktemp("with a space 한글")
    for (mode, name), record in records.items():
        if name in OBJECTS:
            record.to_rds(folder / f"{mode}_{name}.rds")
    return folder


def test_evd_works_on_the_saved_objects(saved, plain_r, records):
    code = f"folder <- {json.dumps(str(saved), ensure_ascii=False)}\n"
    code += """
suppressPackageStartupMessages(library(evd))
read <- function(name) readRDS(file.path(folder, paste0(name, ".rds")))
pdf(NULL)
for (mode in c("raw", "guarded")) {
  fit <- read(paste0(mode, "_fpot"))
  show(paste0(mode, ".class"), class(fit))
  show(paste0(mode, ".call"), nchar(paste(deparse(fit$call), collapse = "")) < 200)
  invisible(capture.output({
    print(fit)
    plot(fit)
    found <- profile(fit, "shape")
    plot(found)
    level <- profile(read(paste0(mode, "_level")))
    plot(level)
    plot(read(paste0(mode, "_pp")))
  }))
  show(paste0(mode, ".ends"), confint(found))
  show(paste0(mode, ".kept"), confint(read(paste0(mode, "_profile"))))
  show(paste0(mode, ".level"), confint(level)["rlevel", ])
  unit <- if (is.null(fit$unit)) 1 else fit$unit
  show(paste0(mode, ".param"), fit$param * c(unit, 1))
  show(paste0(mode, ".wald"), confint(fit)["shape", ])
  held <- fpot(fit$data, fit$threshold, shape = 0)
  show(paste0(mode, ".anova"), anova(fit, held)$Chisq[2])
}
pp <- read("guarded_pp")
invisible(capture.output(found <- profile(pp, "loc")))
show("pp", confint(found) * pp$unit)
show("same", identical(read("raw_fpot")$param, fpot(read("raw_fpot")$data, 30)$param))
show("stability", read("raw_tcplot")$shapes)
"""
    found = plain_r(code)
    assert found["raw.class"] == found["guarded.class"] == ["pot", "uvevd", "evd"]
    assert found["raw.call"] == found["guarded.call"] == [1.0] and found["same"] == [1.0]
    for mode in ("raw", "guarded"):
        profile, fit = records[mode, "profile"], records[mode, "fpot"]
        ends = [profile.lower["shape"], profile.upper["shape"]]
        assert found[f"{mode}.kept"] == ends
        np.testing.assert_allclose(found[f"{mode}.ends"], ends, atol=1e-4)
        assert found[f"{mode}.param"] == list(fit.param.values())
        wald = fit.to_frame().set_index("parameter").loc["shape", ["lower", "upper"]]
        np.testing.assert_allclose(found[f"{mode}.wald"], wald.astype(float), rtol=1e-12)
        assert found[f"{mode}.anova"][0] == pytest.approx(4.6, abs=0.01)
    exact = evd.profile(records["guarded", "pp"], "loc")
    np.testing.assert_allclose(found["pp"], [exact.lower["loc"], exact.upper["loc"]], rtol=1e-4)
    shapes = records["raw", "tcplot"].to_frame().query("parameter == 'shape'")
    assert (
        found["stability"] == shapes[["lower", "estimate", "upper"]].to_numpy().ravel("F").tolist()
    )


def test_ismev_and_evir_work_on_the_saved_objects(saved, plain_r, records):
    code = f"folder <- {json.dumps(str(saved), ensure_ascii=False)}\n"
    code += """
suppressPackageStartupMessages({library(ismev); library(evir)})
read <- function(name) readRDS(file.path(folder, paste0(name, ".rds")))
pdf(NULL)
for (mode in c("raw", "guarded")) {
  for (name in c("gpd_fit", "covariates")) {
    fit <- read(paste(mode, name, sep = "_"))
    gpd.diag(fit)
    show(paste(mode, name, "class", sep = "."), class(fit))
    if (!is.null(fit$user)) show(paste(mode, name, "user", sep = "."), c(fit$user$mle, fit$user$se))
    show(paste(mode, name, "nllh", sep = "."),
      fit$nllh + fit$nexc * log(if (is.null(fit$unit)) 1 else fit$unit))
  }
  invisible(capture.output(gpd.profxi(read(paste0(mode, "_gpd_fit")), 0, 0.5)))
  pp.diag(read(paste0(mode, "_pp_fit")))
  show(paste0(mode, ".evir"), riskmeasures(read(paste0(mode, "_evir")), 0.99)[1, "quantile"])
}
"""
    found = plain_r(code)
    for mode in ("raw", "guarded"):
        for name in ("gpd_fit", "covariates"):
            assert found[f"{mode}.{name}.class"] == ["gpd.fit"]
            assert found[f"{mode}.{name}.nllh"] == [-records[mode, name].log_likelihood]
            table = records[mode, name].to_frame()
            if mode == "guarded":
                own = [*table["estimate"], *table["standard_error"]]
                assert found[f"{mode}.{name}.user"] == pytest.approx(own, rel=1e-12)
            assert (f"{mode}.{name}.user" in found) == (mode == "guarded")
    unit = records["guarded", "evir"].request.unit
    assert found["guarded.evir"][0] * unit == pytest.approx(found["raw.evir"][0], rel=1e-3)


def test_nothing_is_drawn(records, tmp_path, run_python):
    code = """
        import numpy as np
        from pybridge.engines import evd, ismev
        x = np.random.default_rng(0).exponential(size=200)
        for mode in ("raw", "guarded"):
            evd.tcplot(x, (0.1, 0.5), nt=3, mode=mode)
            evd.mrlplot(x, nt=3, mode=mode)
            evd.exiplot(x, (0.1, 0.5), nt=3, mode=mode)
            fit = ismev.gpd_fit(x, 0.1, mode=mode)
            ismev.gpd_diag(fit)
            ismev.gpd_profxi(fit, -0.2, 0.4)
            ismev.gpd_prof(fit, 1, 2.0, 12.0)
            ismev.gpd_fitrange(x, 0.1, 0.5, nint=3, mode=mode)
            ismev.mrl_plot(x, 0.1, 1.0, nint=3, mode=mode)
    """
    before = os.getcwd()
    os.chdir(tmp_path)
    try:
        run_python(code)
    finally:
        os.chdir(before)
    assert list(tmp_path.iterdir()) == []


def test_scripts_run_alone_and_draw_nothing(records, tmp_path):
    for name in ("tcplot", "gpd_diag", "gpd_fitrange"):
        text = records["guarded", name].r_script(tmp_path / f"{name}.R")
        assert "pybridge" not in text and text.isascii()
        subprocess.run(
            ["Rscript", "--vanilla", f"{name}.R"],
            cwd=tmp_path,
            check=True,
            capture_output=True,
            timeout=120,
        )
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".R"] * 3


def test_values_of_records(records):
    fit = records["guarded", "fpot"]
    assert fit.deviance == pytest.approx(2 * 485.0937213)
    assert fit.scale_at_threshold == fit.param["scale"] and np.isnan(fit.extremal_index)
    process = records["guarded", "pp"]
    assert process.scale_at_threshold == pytest.approx(fit.param["scale"], rel=1e-5)
    grouped = records["guarded", "clusters"]
    assert grouped.extremal_index == records["guarded", "exi"].table["extremal_index"][0]
    assert grouped.to_frame()["cluster"].max() == grouped.n_clusters
    curve = records["guarded", "profile"].curve("shape")
    assert list(curve.columns) == ["shape", "deviance", "scale", "log_likelihood"]
    assert curve["log_likelihood"].max() == pytest.approx(fit.log_likelihood, abs=1e-9)
    with pytest.raises(InputError):
        records["guarded", "profile"].curve("scale")
    diagnosis = records["guarded", "gpd_diag"]
    assert set(diagnosis.plots) == {
        *("probability", "quantile", "return_level", "return_points", "density", "histogram")
    }
    band = diagnosis.table_of("return_level")
    assert (band["lower"] <= band["level"]).all() and (band["level"] <= band["upper"]).all()
    with pytest.raises(InputError):
        diagnosis.table_of("pie")
    residuals = ismev.gpd_diag(records["guarded", "covariates"])
    assert set(residuals.plots) == {"probability", "quantile"}
    covariates = records["guarded", "covariates"]
    assert covariates.terms == ("scale", "scale:year", "shape", "shape:group")
    with pytest.raises(InputError) as caught:
        ismev.gpd_prof(covariates, 100)
    assert caught.value.code == "illegal_combination"
    with pytest.raises(InputError) as caught:
        ismev.gpd_profxi(records["raw", "gpd_fit"])
    assert caught.value.code == "missing_limit"
    with pytest.raises(InputError) as caught:
        ismev.gpd_prof(records["guarded", "gpd_fit"], 0.01)
    assert caught.value.code == "below_threshold"
    with pytest.raises(InputError) as caught:
        evd.confint(records["guarded", "profile"], level=0.9)
    assert caught.value.code == "bad_level"
    with pytest.raises(InputError) as caught:
        evd.confint(fit, "loc")
    assert caught.value.code == "unknown_parameter"


def test_the_danish_losses_as_mcneil_fitted_them():
    losses = datasets.danish()
    for threshold, shape, scale, n in (
        (10.0, 0.496986, 6.975468, 109),
        (20.0, 0.684152, 9.635133, 36),
    ):
        fit = evir.gpd(losses, threshold)
        assert (fit.n_exceedances, fit.status) == (n, "converged")
        assert fit.shape == pytest.approx(shape, abs=2e-6)
        assert fit.scale == pytest.approx(scale, abs=2e-5)
        raw = evir.gpd(losses, threshold, mode="raw")
        assert raw.shape == pytest.approx(shape, abs=2e-3)
    assert evir.gpd(losses, nextremes=109).n_exceedances == 109


def test_the_rain_as_coles_fitted_it():
    rain = datasets.rain()
    fit = pb.engines.ismev.gpd_fit(rain, 30.0, mode="raw")
    np.testing.assert_allclose(fit.estimate, [7.442263862, 0.184302712], atol=1e-9)
    np.testing.assert_allclose(fit.standard_errors, [0.958777313, 0.101171443], atol=1e-9)
    assert fit.log_likelihood == pytest.approx(-485.0937237421, abs=1e-10)
    level = ismev.gpd_prof(ismev.gpd_fit(rain, 30.0), 100)
    assert level.exact_lower == pytest.approx(80.857, abs=1e-3)
    assert level.exact_upper == pytest.approx(184.988, abs=1e-3)
    shape = ismev.gpd_profxi(ismev.gpd_fit(rain, 30.0))
    assert shape.exact_lower == pytest.approx(0.013562, abs=1e-6)
    assert shape.exact_upper == pytest.approx(0.415440, abs=1e-6)


def test_a_search_at_random_does_not_go_back_to_r(tmp_path):
    x = scores("rain")
    fits = [
        evd.fpot(x, 30.0, method="SANN", mode="raw"),
        ismev.gpd_fit(x, 30.0, method="SANN", mode="raw"),
    ]
    calls = [lambda fit: fit.r_script(), lambda fit: fit.to_rds(tmp_path / "fit.rds")]
    for fit in fits:
        for call in [*calls, lambda fit: fit.crosscheck()]:
            with pytest.raises(InputError) as caught:
                call(fit)
            assert (caught.value.code, caught.value.field) == ("no_seed", "seed")
