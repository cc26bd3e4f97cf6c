"""Domains and codes on their way to sae: whole numbers are R's integers, text is coded for BHF."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from pybridge import datasets
from pybridge.engines import sae
from pybridge.errors import EngineWarning, InputError
from pybridge.r.convert import to_r
from pybridge._integers import NA_INTEGER, Integers

pytestmark = pytest.mark.r("sae")

SEED = 'set.seed(7, "Mersenne-Twister", "Inversion", "Rejection")\n'
# Codes that R writes in two ways: 1e+05 as a double, 100000 as an integer.
CODES = {1: 100000, 2: 150000, 3: 300000, 4: 7}
# In sorted order of their code points, not in that of a dictionary.
NAMES = dict(zip(range(1, 13), "2 10 B C a a.b b c d é 가 나".split()))


def same(ours, theirs):
    np.testing.assert_array_equal(np.asarray(ours, dtype=float), theirs)


def units(covariates=("CornPix",)):
    corn, counties = datasets.cornsoybean(), datasets.cornsoybean_means()
    means = counties[["CountyIndex", *(f"Mean{c}PerSeg" for c in covariates)]]
    means = means.set_axis(["County", *covariates], axis=1)
    sizes = counties[["CountyIndex", "PopnSegments"]].set_axis(["County", "N"], axis=1)
    return corn, means, sizes


UNIT_DATA = """
suppressPackageStartupMessages(library(sae)); data(cornsoybean); data(cornsoybeanmeans)
Xmean <- cornsoybeanmeans[, c("CountyIndex", "MeanCornPixPerSeg")]
Popn <- cornsoybeanmeans[, c("CountyIndex", "PopnSegments")]
"""


@pytest.fixture(scope="module")
def one_covariate(plain_r):
    return plain_r(
        UNIT_DATA
        + SEED
        + """
x <- pbmseBHF(CornHec ~ CornPix, County, meanxpop = Xmean, popnsize = Popn, B = 4,
  data = cornsoybean)
show("eblup", x$est$eblup$eblup); show("mse", x$mse$mse)
some <- cornsoybean[cornsoybean$County > 2, ]
x <- suppressWarnings(eblupBHF(CornHec ~ CornPix, County, selectdom = c(2, 12, 1), meanxpop = Xmean,
  popnsize = Popn, data = some))
show("outside", x$eblup$eblup)
"""
    )


@pytest.mark.parametrize("kind", ["number", "double", "text", "category"])
def test_bhf_with_one_covariate_is_sae_with_numbers_for_domains(
    one_covariate, plain_r, kind, tmp_path
):
    tables = units()
    change = {
        "number": lambda c: c,
        "double": lambda c: c.astype(float),
        "text": lambda c: c.map(NAMES),
        "category": lambda c: c.map(NAMES).astype("category"),
    }[kind]
    corn, means, sizes = (t.assign(County=change(t["County"])) for t in tables)
    fit = sae.pbmseBHF(corn, "CornHec ~ CornPix", "County", means, sizes, B=4, seed=7)
    assert fit.status == "converged"
    # The order of the numbers; that of the text differs from it, and with it the rounding.
    sums = same if kind in ("number", "double") else near
    sums(fit.estimate, one_covariate["eblup"])
    sums(fit.mse, one_covariate["mse"])
    labels = list(corn["County"].unique())
    assert list(fit.domains) == labels
    effects = fit.random_effects.set_index("domain")["effect"]
    texts = list(effects.index)
    written = [text.removesuffix(".0") for text in map(str, labels)]
    assert sorted(texts) == sorted(written)
    fit.r_script(tmp_path / "script.R", data=corn)
    fit.to_rds(tmp_path / "fit.rds", corn)
    code = f"""
source("{tmp_path / "script.R"}"); object <- readRDS("{tmp_path / "fit.rds"}")
for (x in list(fit, object)) {{
  show("eblup", x$est$eblup$eblup); show("mse", x$mse$mse)
  show("domain", as.character(x$est$eblup$domain)); show("domain", as.character(x$mse$domain))
  show("effect", x$est$fit$random[[1]]); show("effects", rownames(x$est$fit$random))
}}
"""
    again = plain_r(code)
    same(np.tile(fit.estimate, 2), again["eblup"])
    same(np.tile(fit.mse, 2), again["mse"])
    assert again["domain"] == written * 4 and again["effects"] == texts * 2
    same(np.tile(effects, 2), again["effect"])


def near(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=1e-7)


def test_text_for_domains_of_bhf_is_coded_in_sorted_order(plain_r):
    corn, means, sizes = (t.assign(County=t["County"].map(NAMES)) for t in units())
    fit = sae.pbmseBHF(corn, "CornHec ~ CornPix", "County", means, sizes, B=4, seed=7)
    rank = [sorted(NAMES.values()).index(NAMES[k]) + 1 for k in range(1, 13)]
    plain = plain_r(
        UNIT_DATA
        + f"rank <- c({', '.join(map(str, rank))})\n"
        + "cornsoybean$code <- rank[cornsoybean$County]; Xmean[[1]] <- Popn[[1]] <- rank\n"
        + SEED
        + "x <- pbmseBHF(CornHec ~ CornPix, code, meanxpop = Xmean, popnsize = Popn, B = 4,\n"
        + '  data = cornsoybean); show("eblup", x$est$eblup$eblup); show("mse", x$mse$mse)\n'
    )
    same(fit.estimate, plain["eblup"])
    same(fit.mse, plain["mse"])


def test_domains_without_units_are_named_by_their_labels(one_covariate):
    corn, means, sizes = units()
    some = corn[corn["County"] > 2]
    wanted = [2, 12, 1]
    with pytest.warns(EngineWarning, match="Domains: +2 1$"):
        fit = sae.eblupBHF(some, "CornHec ~ CornPix", "County", means, sizes, selectdom=wanted)
    same(fit.estimate, one_covariate["outside"])
    some, means, sizes = (t.assign(County=t["County"].map(NAMES)) for t in (some, means, sizes))
    wanted = [NAMES[k] for k in wanted]
    with pytest.warns(EngineWarning, match="Domains: +10 2$"):
        text = sae.eblupBHF(some, "CornHec ~ CornPix", "County", means, sizes, selectdom=wanted)
    near(text.estimate, fit.estimate)
    assert list(text.domain_status) == ["out_of_sample", "ok", "out_of_sample"]


def test_a_domain_that_is_text_in_one_table_only():
    corn, means, sizes = units()
    more = pd.DataFrame({"County": ["all"], "CornPix": [300.0]})
    mixed = pd.concat([means.astype({"County": str}), more])
    fit = sae.pbmseBHF(corn, "CornHec ~ CornPix", "County", mixed, sizes, B=2, seed=1)
    other = sae.pbmseBHF(corn, "CornHec ~ CornPix", "County", means, sizes, B=2, seed=1)
    near(fit.mse, other.mse)
    assert list(fit.domains) == list(other.domains)


def coded():
    milk = datasets.milk()
    milk["var"] = milk["SD"] ** 2
    milk["g"] = milk["MajorArea"].map(CODES)
    return milk


FORMULAS = (
    "yi ~ as.character(g)",
    'yi ~ relevel(as.factor(g), ref = "300000")',
    "yi ~ I(g == '100000') + CV",
    "yi ~ g + SmallArea",
)


@pytest.fixture(scope="module")
def with_codes(plain_r):
    code = """
suppressPackageStartupMessages(library(sae)); data(milk); milk$var <- milk$SD^2
milk$g <- c(100000L, 150000L, 300000L, 7L)[milk$MajorArea]
"""
    for k, formula in enumerate(FORMULAS):
        code += f"x <- mseFH({formula}, var, data = milk)\n"
        code += f'show("beta{k}", x$est$fit$estcoef$beta); show("mse{k}", x$mse)\n'
        code += f'show("terms{k}", rownames(x$est$fit$estcoef))\n'
    return plain_r(code)


@pytest.mark.parametrize("mode", ["raw", "guarded"])
@pytest.mark.parametrize("k", range(len(FORMULAS)))
def test_whole_numbers_are_integers_in_formulas(with_codes, plain_r, k, mode, tmp_path):
    fit = sae.mseFH(coded(), FORMULAS[k], "var", mode=mode)
    same(fit.coefficients["estimate"], with_codes[f"beta{k}"])
    same(fit.mse, with_codes[f"mse{k}"])
    fit.r_script(tmp_path / "script.R")
    again = plain_r(
        f'source("{tmp_path / "script.R"}"); show("beta", fit$est$fit$estcoef$beta)\n'
        'show("mse", fit$mse)\n'
    )
    same(again["beta"], with_codes[f"beta{k}"])
    same(again["mse"], with_codes[f"mse{k}"])


def test_codes_of_units_are_integers(plain_r, tmp_path):
    income = datasets.incomedata()
    education = datasets.from_r("sae", "sizeprovedu").drop(columns="provlab")
    education.columns = ["prov", "100000", "200000", "300000", "400000"]
    income["ps"] = (income["educ"] + 1) * 100000
    income["area"] = income["prov"] * 100000
    raw = sae.pssynt(income, "income", "weight", "ps", education, mode="raw")
    sizes = datasets.from_r("sae", "sizeprov")[["prov", "Nd"]]
    sizes = sizes.assign(prov=sizes["prov"] * 100000)
    direct = sae.direct(income, "income", "area", "weight", sizes, mode="raw")
    plain = plain_r(
        """
suppressPackageStartupMessages(library(sae)); data(incomedata); data(sizeprovedu); data(sizeprov)
names(sizeprovedu) <- c("provlab", "prov", "100000", "200000", "300000", "400000")
incomedata$ps <- as.integer(incomedata$educ + 1) * 100000L
s <- pssynt(income, weight, ps, sizeprovedu[, -1], data = incomedata); show("ps", s$PsSynthetic)
incomedata$area <- as.integer(incomedata$prov) * 100000L
sizes <- data.frame(area = as.integer(sizeprov$prov) * 100000L, N = sizeprov$Nd)
d <- direct(income, area, weight, sizes, data = incomedata)
show("direct", d$Direct); show("domain", as.character(d$Domain))
"""
    )
    same(raw.estimate, plain["ps"])
    same(direct.estimate, plain["direct"])
    assert [str(label) for label in direct.domains] == plain["domain"]
    raw.r_script(tmp_path / "script.R", data=income)
    again = plain_r(f'source("{tmp_path / "script.R"}"); show("ps", fit$PsSynthetic)\n')
    same(again["ps"], plain["ps"])
    guarded = sae.pssynt(income, "income", "weight", "ps", education, domain="prov")
    same(guarded.estimate, plain["ps"])


def test_large_domain_numbers_of_bhf(one_covariate):
    corn, means, sizes = (t.assign(County=t["County"] * 100000) for t in units())
    for mode in ("raw", "guarded"):
        fit = sae.pbmseBHF(
            corn, "CornHec ~ CornPix", "County", means, sizes, B=4, seed=7, mode=mode
        )
        same(fit.estimate, one_covariate["eblup"])
        same(fit.mse, one_covariate["mse"])
        assert list(fit.random_effects["domain"]) == [f"{k}00000" for k in range(1, 13)]
    # Beyond 32 bits R has doubles only.
    corn, means, sizes = (t.assign(County=t["County"] * 10**10) for t in units())
    fit = sae.pbmseBHF(corn, "CornHec ~ CornPix", "County", means, sizes, B=4, seed=7)
    same(fit.mse, one_covariate["mse"])
    assert list(fit.domains) == list(corn["County"].unique())


def test_sums_of_guarded_estimates_do_not_overflow():
    # R's integers end at 2147483647, and w (w - 1) is beyond.
    table = pd.DataFrame({"d": [1, 1, 2, 2], "y": [1, 3, 2, 5], "w": [60000, 60001, 60002, 60003]})
    sizes = pd.DataFrame({"d": [1, 2], "N": [120001, 120005]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = sae.direct(table, "y", "d", "w", sizes)
    w, y = table["w"].to_numpy(float), table["y"].to_numpy(float)
    terms = (w * (w - 1) * y**2).reshape(2, 2).sum(axis=1)
    np.testing.assert_allclose(fit.standard_error, np.sqrt(terms) / sizes["N"], rtol=1e-14)
    milk = coded().assign(big=lambda t: t["g"] * 1000 + t["SmallArea"])
    with pytest.raises(InputError) as caught:
        sae.mseFH(milk, "yi ~ I(big * g)", "var")
    assert caught.value.code == "not_finite" and "astype('float64')" in caught.value.hint
    assert sae.mseFH(milk.astype({"g": float}), "yi ~ I(big * g)", "var").estimate.size == 43


def test_missing_whole_numbers_are_missing_integers(plain_r, tmp_path):
    income = datasets.incomedata().iloc[:3000]
    income = income.assign(prov=income["prov"].astype("Int64") * 100000)
    income.loc[income.index[:10], "prov"] = pd.NA
    fit = sae.direct(income, "income", "prov", replace=True, mode="raw")
    fit.r_script(tmp_path / "script.R", data=income)
    plain = plain_r(
        f"""
suppressPackageStartupMessages(library(sae)); data(incomedata)
some <- incomedata[1:3000, ]; some$prov <- as.integer(some$prov) * 100000L; some$prov[1:10] <- NA
x <- direct(income, prov, data = some, replace = TRUE); show("direct", x$Direct)
source("{tmp_path / "script.R"}"); show("script", fit$Direct)
"""
    )
    same(fit.estimate, plain["direct"])
    same(plain["script"], plain["direct"])


def test_other_arrays_of_whole_numbers_cross_as_doubles():
    found = to_r({"a": np.array([1, 2]), "b": np.array([1, NA_INTEGER], "i4").view(Integers)})
    assert found["a"].dtype == np.float64
    assert found["b"].dtype == np.int32 and type(found["b"]) is np.ndarray
