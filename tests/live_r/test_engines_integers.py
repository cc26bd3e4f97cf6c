"""Whole numbers are R's integers, as in a table that R itself has read: their text is plain."""

from __future__ import annotations

import subprocess

import numpy as np
import pandas as pd
import pytest

from pybridge.engines import emdi, hbsae, metafor, rjags, sae, survey
from pybridge.errors import EngineWarning, InputError

pytestmark = pytest.mark.r("metafor", "hbsae", "rjags", "survey", "sae", "emdi")

TERMS = ["factor(code)100000", "factor(code)200000"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    m = 60
    return pd.DataFrame(
        {
            "y": rng.normal(size=m).round(3),
            "v": rng.uniform(0.1, 0.3, m).round(3),
            "code": rng.choice([7, 100000, 200000], m),
            "big": rng.integers(40000, 90000, m),
            "g": rng.integers(0, 9, m) * 100000,
            "w": rng.integers(1, 4, m) * 100000,
            "area": [f"a{k}" for k in range(m)],
        }
    )


@pytest.fixture(scope="module")
def read(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("integers") / "table.csv"
    table.to_csv(path, index=False)
    return f'd <- read.csv("{path}")\nstopifnot(is.integer(d$code))\n'


def from_script(record, tmp_path, shown, **data):
    record.r_script(tmp_path / "fit.R", **data)
    code = (tmp_path / "fit.R").read_text() + f"\ncat(paste0('SHOWN ', {shown}), sep = '\\n')\n"
    done = subprocess.run(["Rscript", "-e", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    shown_lines = [line for line in done.stdout.splitlines() if line.startswith("SHOWN ")]
    return [line.removeprefix("SHOWN ") for line in shown_lines]


@pytest.mark.parametrize("mode", ["raw", "guarded"])
def test_rma_mv(mode, table, read, plain_r, tmp_path):
    found = plain_r(
        read
        + """
        f <- metafor::rma.mv(y, v, mods = ~ factor(code), random = list(~ 1 | g), data = d)
        show("terms", rownames(f$beta)); show("beta", f$beta); show("sigma2", f$sigma2)
        show("groups", rownames(metafor::ranef(f)[[1]]))
        """
    )
    fit = metafor.rma_mv(
        table, "y", "v", mods="~ factor(code)", random=["~ 1 | g"], domain="area", mode=mode
    )
    assert list(fit.value["terms"]) == found["terms"] == ["intrcpt", *TERMS]
    assert list(fit.value["beta"]) == found["beta"]
    if mode == "raw":
        assert list(fit.value["sigma2"]) == found["sigma2"]
    groups = fit.value["effects"]["level1"]["group"]
    assert sorted(groups) == sorted(set(table["g"]))
    assert sorted(map(str, groups)) == sorted(found["groups"])
    assert from_script(fit, tmp_path, "rownames(fit$beta)") == found["terms"]


@pytest.mark.parametrize("mode", ["raw", "guarded"])
def test_fsae_area(mode, table, read, plain_r, tmp_path):
    found = plain_r(
        read
        + """
        X <- model.matrix(~ factor(code), d)
        rownames(X) <- d$area
        f <- hbsae::fSAE.Area(setNames(d$y, d$area), setNames(d$v, d$area), X)
        show("terms", names(f$beta)); show("beta", f$beta)
        """
    )
    fit = hbsae.fSAE_Area(table, "y", "v", X="~ factor(code)", domain="area", mode=mode)
    assert list(fit.value["terms"]) == found["terms"] == ["(Intercept)", *TERMS]
    assert list(fit.value["beta"]) == found["beta"]
    assert from_script(fit, tmp_path, "colnames(X)") == found["terms"]


def test_taxonomy_of_rjags(table):
    found = rjags.taxonomy(
        table, "y ~ factor(code)", "v", levels=["g", "area"], n_iter=50, n_burn=50, seed=1
    )
    assert [f"beta[{term}]" for term in TERMS] == list(found.parameters[1:3])


@pytest.mark.filterwarnings("ignore::pybridge.errors.EngineWarning")
@pytest.mark.parametrize("mode", ["raw", "guarded"])
def test_survey(mode, table, read, plain_r, tmp_path):
    found = plain_r(
        read
        + """
        library(survey)
        D <- postStratify(svydesign(~ 1, weights = ~ w, data = d), ~ code,
                          data.frame(code = c(7L, 100000L, 200000L), Freq = c(4e6, 5e6, 6e6)))
        f <- svymean(~ y + factor(code), D)
        show("terms", names(f)); show("mean", f); show("se", SE(f))
        g <- svyglm(y ~ big, D, subset = code %in% c("7", "100000"))
        show("beta", coef(g))
        E <- calibrate(D, ~ factor(code), c(`(Intercept)` = 15e6, `factor(code)100000` = 5.1e6,
                                            `factor(code)200000` = 6.2e6))
        show("total", svytotal(~ y, E))
        """
    )
    design = survey.svydesign(ids="~1", weights="~w", data=table, mode=mode)
    counts = pd.DataFrame({"code": [7, 100000, 200000], "Freq": [4e6, 5e6, 6e6]})
    design = survey.postStratify(design, "~code", counts)
    estimates = survey.svymean("~y + factor(code)", design)
    totals = {"(Intercept)": 15e6, "factor(code)100000": 5.1e6, "factor(code)200000": 6.2e6}
    calibrated = survey.calibrate(design, "~factor(code)", totals)
    assert list(survey.svytotal("~y", calibrated).estimate) == found["total"]
    # A condition on their text holds for the same units.
    glm = survey.svyglm("y ~ big", design, subset="code %in% c('7', '100000')")
    assert list(glm.estimate) == found["beta"]
    assert list(estimates.value["names"]) == found["terms"]
    assert found["terms"][2:] == TERMS
    assert list(estimates.value["estimate"]) == found["mean"]
    assert list(estimates.value["standard_error"]) == found["se"]
    assert from_script(estimates, tmp_path, "names(result)", data=table) == found["terms"]


@pytest.mark.parametrize(
    "call",
    [
        lambda t: metafor.rma_mv(t, "y", "v", mods="~ I(big * big)", random=["~ 1 | g"]),
        lambda t: hbsae.fSAE_Area(t, "y", "v", X="~ I(big * big)", domain="area"),
        lambda t: rjags.taxonomy(t, "y ~ I(big * big)", "v", levels=["g", "area"]),
        lambda t: emdi.fh("y ~ I(big * big)", "v", t, "area"),
        lambda t: emdi.fh("y ~ I(big * big)", "v", t, "area", mode="raw"),
        lambda t: sae.mseFH(t, "y ~ I(big * big)", "v", domain="area"),
    ],
    ids=["metafor", "hbsae", "rjags", "emdi", "emdi raw", "sae"],
)
def test_a_product_that_r_s_integers_cannot_hold_is_refused(call, table):
    with pytest.raises(InputError) as error:
        call(table)
    assert "astype('float64')" in error.value.hint
    call(table.astype({"big": "float64"}).assign(big=lambda t: t["big"] / 1000))


def test_survey_refuses_products_that_r_s_integers_cannot_hold_guarded(table):
    def of(table, mode):
        design = survey.svydesign(ids="~1", weights="~w", data=table, mode=mode)
        return (
            lambda: survey.svymean("~I(big * big)", design),
            lambda: survey.svyby("~y", "~I(big * big > 3e9)", design),
            lambda: survey.svyglm("y ~ I(big * big / 1e9)", design, na_action="na.omit"),
        )

    for call in of(table, "guarded"):
        with pytest.raises(InputError) as error:
            call()
        assert error.value.code == "integer_overflow" and "float64" in error.value.hint
    for call in of(table.astype({"big": "float64"}), "guarded"):
        assert call().status == "converged"
    with pytest.warns(EngineWarning, match="integer overflow"):
        assert np.isnan(of(table, "raw")[0]().estimate[0])


def test_whole_numbers_among_objects_cross_to_survey_as_integers(table):
    design = survey.svydesign(ids="~1", weights="~w", data=table)
    usual = survey.svyby("~y", "~factor(code)", design)
    for kind in ("object", "Int64"):
        coded = table.assign(code=table["code"].astype(kind))
        found = survey.svyby(
            "~y", "~factor(code)", survey.svydesign(ids="~1", weights="~w", data=coded)
        )
        assert list(found.names) == list(usual.names) == ["7", "100000", "200000"]
        assert list(found.estimate) == list(usual.estimate)
