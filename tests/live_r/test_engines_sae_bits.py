"""Every function of sae against plain Rscript, bit for bit: raw as it is, guarded by its script."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from pybridge import datasets
from pybridge.engines import sae
from pybridge.errors import EngineWarning
from validation.cases.fay_herriot import load

pytestmark = pytest.mark.r("sae")

SEED = 'set.seed(7, "Mersenne-Twister", "Inversion", "Rejection")\n'

# The calls as an R user writes them, on sae's own data.
PLAIN = (
    """
suppressPackageStartupMessages(library(sae))
data(milk); data(spacetime); data(spacetimeprox); data(cornsoybean); data(cornsoybeanmeans)
data(incomedata); data(sizeprov); data(sizeprovedu)
milk$var <- milk$SD^2
first <- spacetime[spacetime$Time == 1, ]
Xmean <- cornsoybeanmeans[, c("CountyIndex", "MeanCornPixPerSeg", "MeanSoyBeansPixPerSeg")]
Popn <- cornsoybeanmeans[, c("CountyIndex", "PopnSegments")]
sizes <- sizeprov[, c("prov", "Nd")]
names(sizeprovedu) <- c("provlab", "prov", "0", "1", "2", "3")

area <- function(name, est, mse = NULL) {
  show(paste0(name, ".eblup"), est$eblup); show(paste0(name, ".beta"), est$fit$estcoef$beta)
  show(paste0(name, ".std_error"), est$fit$estcoef$std.error)
  show(paste0(name, ".goodness"), est$fit$goodness)
  show(paste0(name, ".terms"), rownames(est$fit$estcoef))
  if (is.null(est$fit$estvarcomp)) {
    show(paste0(name, ".parameters"), c(est$fit$refvar, est$fit$spatialcorr))
  } else {
    show(paste0(name, ".parameters"), est$fit$estvarcomp$estimate)
    show(paste0(name, ".component_std_error"), est$fit$estvarcomp$std.error)
  }
  if (is.data.frame(mse)) {
    show(paste0(name, ".mse"), mse$mse); show(paste0(name, ".msebc"), mse$msebc)
  } else if (!is.null(mse)) show(paste0(name, ".mse"), mse)
}
bhf <- function(name, est, mse = NULL) {
  show(paste0(name, ".eblup"), est$eblup$eblup); show(paste0(name, ".fixed"), est$fit$fixed)
  show(paste0(name, ".random"), est$fit$random[, 1])
  show(paste0(name, ".parameters"), c(est$fit$refvar, est$fit$errorvar, est$fit$loglike))
  if (!is.null(mse)) show(paste0(name, ".mse"), mse$mse)
}
table <- function(name, x) for (k in names(x)) show(paste0(name, ".", k), x[[k]])
"""
    + SEED
    + """
area("eblupFH", eblupFH(yi ~ as.factor(MajorArea), var, method = "ML", B = 4, data = milk))
x <- mseFH(yi ~ as.factor(MajorArea), var, method = "FH", PRECISION = 1e-6, data = milk)
area("mseFH", x$est, x$mse)
area("eblupSFH", eblupSFH(Y ~ X1 + I(X1^2), Var, spacetimeprox, "ML", data = first))
x <- mseSFH(Y ~ X1, Var, spacetimeprox, data = first); area("mseSFH", x$est, x$mse)
"""
    + SEED
    + "x <- pbmseSFH(Y ~ X1, Var, spacetimeprox, B = 3, data = first)\n"
    + 'area("pbmseSFH", x$est, x$mse)\n'
    + SEED
    + "x <- npbmseSFH(Y ~ X1, Var, spacetimeprox, B = 3, data = first)\n"
    + 'area("npbmseSFH", x$est, x$mse)\n'
    + """
area("eblupSTFH", eblupSTFH(Y ~ X1 + X2, 11, 3, Var, spacetimeprox, "S", data = spacetime))
"""
    + SEED
    + "x <- pbmseSTFH(Y ~ X1 + X2, 11, 3, Var, spacetimeprox, B = 3, data = spacetime)\n"
    + 'area("pbmseSTFH", x$est, x$mse)\n'
    + """
bhf("eblupBHF", eblupBHF(SoyBeansHec ~ CornPix + SoyBeansPix, County, selectdom = c(10, 1, 5),
  meanxpop = Xmean, popnsize = Popn, method = "ML", data = cornsoybean))
"""
    + SEED
    + "x <- pbmseBHF(CornHec ~ CornPix + SoyBeansPix, County, meanxpop = Xmean, popnsize = Popn,\n"
    + '  B = 3, data = cornsoybean); bhf("pbmseBHF", x$est, x$mse)\n'
    + """
d <- direct(y = income, dom = prov, sweight = weight, domsize = sizes, data = incomedata)
table("direct", d)
table("direct_srs", direct(y = income, dom = prov, domsize = sizes, data = incomedata))
table("direct_pps", direct(income, prov, weight, sizes, incomedata, replace = TRUE))
table("direct_srswr", direct(y = income, dom = provlab, data = incomedata, replace = TRUE))
s <- pssynt(y = income, sweight = weight, ps = educ, domsizebyps = sizeprovedu[, -1],
  data = incomedata)
table("pssynt", s)
table("ssd", ssd(dom = prov, sweight = weight, domsize = sizes, direct = d[, c("Domain", "Direct")],
  synthetic = s, delta = 1.2, data = incomedata))
"""
)


@pytest.fixture(scope="module")
def data():
    milk = datasets.milk()
    milk["var"] = milk["SD"] ** 2
    spacetime = datasets.spacetime()
    education = datasets.from_r("sae", "sizeprovedu")
    education.columns = ["provlab", "prov", "0", "1", "2", "3"]
    ids = spacetime["Area"].unique()
    counties = datasets.cornsoybean_means()
    return {
        "milk": milk,
        "spacetime": spacetime,
        "first": spacetime[spacetime["Time"] == 1],
        "proximity": pd.DataFrame(datasets.spacetime_proximity(), index=ids, columns=ids),
        "corn": datasets.cornsoybean(),
        "counties": counties,
        "means": counties[["CountyIndex", "MeanCornPixPerSeg", "MeanSoyBeansPixPerSeg"]],
        "sizes": counties[["CountyIndex", "PopnSegments"]],
        "income": datasets.incomedata(),
        "provinces": datasets.from_r("sae", "sizeprov")[["prov", "Nd"]],
        "education": education,
    }


def calls(data, mode):
    """Every function by name, with the arguments of PLAIN."""
    w = data["proximity"].to_numpy() if mode == "raw" else data["proximity"]
    over_time = {"D": 11, "T": 3} if mode == "raw" else {"domain": "Area", "time": "Time"}
    by_area = {} if mode == "raw" else {"domain": "Area"}
    corn, milk, first, spacetime = (data[name] for name in ("corn", "milk", "first", "spacetime"))
    means, sizes = data["means"], data["sizes"]
    if mode != "raw":
        means = means.set_axis(["County", "CornPix", "SoyBeansPix"], axis=1)
        sizes = sizes.set_axis(["County", "PopnSegments"], axis=1)
    income, provinces = data["income"], data["provinces"]
    formula = "yi ~ as.factor(MajorArea)"
    found = {
        "eblupFH": sae.eblupFH(milk, formula, "var", method="ML", B=4, seed=7, mode=mode),
        "mseFH": sae.mseFH(milk, formula, "var", method="FH", PRECISION=1e-6, mode=mode),
        "eblupSFH": sae.eblupSFH(
            first, "Y ~ X1 + I(X1^2)", "Var", w, method="ML", mode=mode, **by_area
        ),
        "mseSFH": sae.mseSFH(first, "Y ~ X1", "Var", w, mode=mode, **by_area),
        "pbmseSFH": sae.pbmseSFH(first, "Y ~ X1", "Var", w, B=3, seed=7, mode=mode, **by_area),
        "npbmseSFH": sae.npbmseSFH(first, "Y ~ X1", "Var", w, B=3, seed=7, mode=mode, **by_area),
        "eblupSTFH": sae.eblupSTFH(
            spacetime, "Y ~ X1 + X2", "Var", w, model="S", mode=mode, **over_time
        ),
        "pbmseSTFH": sae.pbmseSTFH(
            spacetime, "Y ~ X1 + X2", "Var", w, B=3, seed=7, mode=mode, **over_time
        ),
        "eblupBHF": sae.eblupBHF(
            corn,
            "SoyBeansHec ~ CornPix + SoyBeansPix",
            "County",
            means,
            sizes,
            selectdom=[10, 1, 5],
            method="ML",
            mode=mode,
        ),
        "pbmseBHF": sae.pbmseBHF(
            corn, "CornHec ~ CornPix + SoyBeansPix", "County", means, sizes, B=3, seed=7, mode=mode
        ),
        "direct": sae.direct(income, "income", "prov", "weight", provinces, mode=mode),
        "direct_srs": sae.direct(income, "income", "prov", domsize=provinces, mode=mode),
        "direct_pps": sae.direct(
            income, "income", "prov", "weight", provinces, replace=True, mode=mode
        ),
        "direct_srswr": sae.direct(income, "income", "provlab", replace=True, mode=mode),
    }
    table = data["education"].drop(columns="provlab")
    if mode != "raw":
        case = load("at_zero")  # the moment equation has its solution at 0, where sae does not get
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EngineWarning)
            found["at_zero"] = sae.mseFH(case.frame(), case.formula, "variance", method="FH")
    found["pssynt"] = sae.pssynt(
        income, "income", "weight", "educ", table, domain="prov", mode=mode
    )
    found["ssd"] = sae.ssd(
        income, "prov", "weight", provinces, found["direct"], found["pssynt"], delta=1.2, mode=mode
    )
    return found


@pytest.fixture(scope="module")
def plain(plain_r):
    return plain_r(PLAIN)


@pytest.fixture(scope="module")
def raw(data):
    return calls(data, "raw")


AREA_GUARDED = ["at_zero"]
AREA = "eblupFH mseFH eblupSFH mseSFH pbmseSFH npbmseSFH eblupSTFH pbmseSTFH".split()
UNIT = ["eblupBHF", "pbmseBHF"]
DIRECT = "direct direct_srs direct_pps direct_srswr pssynt ssd".split()


def same(ours, theirs):
    np.testing.assert_array_equal(np.asarray(ours, dtype=float), theirs)


@pytest.mark.parametrize("name", AREA)
def test_area_level_functions_as_they_are(raw, plain, name):
    fit = raw[name]
    same(fit.estimate, plain[f"{name}.eblup"])
    same(fit.coefficients["estimate"], plain[f"{name}.beta"])
    same(fit.coefficients["standard_error"], plain[f"{name}.std_error"])
    same(list(fit.criteria.values()), plain[f"{name}.goodness"])
    same(list(fit.parameters.values()), plain[f"{name}.parameters"])
    if f"{name}.component_std_error" in plain:
        same(fit.components["standard_error"], plain[f"{name}.component_std_error"])
    if name.startswith("eblup"):
        assert np.isnan(fit.mse).all()
        assert list(fit.coefficients["term"]) == plain[f"{name}.terms"]
    else:
        same(fit.mse, plain[f"{name}.mse"])
    if f"{name}.msebc" in plain:
        same(fit.mse_corrected, plain[f"{name}.msebc"])


@pytest.mark.parametrize("name", UNIT)
def test_unit_level_functions_as_they_are(raw, plain, name):
    fit = raw[name]
    same(fit.estimate, plain[f"{name}.eblup"])
    same(fit.coefficients["estimate"], plain[f"{name}.fixed"])
    same(fit.random_effects["effect"], plain[f"{name}.random"])
    parameters = (fit.model_variance, fit.error_variance, fit.log_likelihood)
    same(parameters, plain[f"{name}.parameters"])
    if name == "pbmseBHF":
        same(fit.mse, plain[f"{name}.mse"])


@pytest.mark.parametrize("name", DIRECT)
def test_design_based_functions_as_they_are(raw, plain, name):
    value = raw[name].value
    columns = [key.split(".", 1)[1] for key in plain if key.startswith(f"{name}.")]
    assert set(columns) == set(value)
    for column in columns:
        if column != "Domain":
            same(value[column], plain[f"{name}.{column}"])
    assert [str(x) for x in raw[name].domains] == [
        x if isinstance(x, str) else str(int(x)) for x in plain[f"{name}.Domain"]
    ]


@pytest.fixture(scope="module")
def guarded(data):
    return calls(data, "guarded")


UNITS = {"corn": UNIT, "income": DIRECT}


@pytest.fixture(scope="module")
def scripts(guarded, data, plain_r, tmp_path_factory):
    """What the guarded records' own scripts give under plain Rscript."""
    folder = tmp_path_factory.mktemp("scripts")
    code = ""
    for name, fit in guarded.items():
        units = next((data[table] for table, names in UNITS.items() if name in names), None)
        fit.r_script(folder / f"{name}.R", data=units)
        code += f'source("{folder / name}.R")\n'
        if name in AREA + AREA_GUARDED:
            code += "est <- if (is.null(fit$est)) fit else fit$est\n"
            code += f'show("{name}.eblup", est$eblup); show("{name}.beta", est$fit$estcoef$beta)\n'
            code += "mse <- if (is.data.frame(fit$mse)) unlist(fit$mse) else fit$mse\n"
            code += f'if (!is.null(fit$mse)) show("{name}.mse", mse)\n'
        elif name in UNIT:
            code += "est <- if (is.null(fit$est)) fit else fit$est\n"
            code += f'show("{name}.eblup", est$eblup$eblup)\n'
            code += f'if (!is.null(fit$mse)) show("{name}.mse", fit$mse$mse)\n'
        else:
            code += f'for (k in names(fit)) show(paste0("{name}.", k), fit[[k]])\n'
    return plain_r(code)


@pytest.mark.parametrize("name", AREA + AREA_GUARDED + UNIT)
def test_guarded_models_are_their_own_scripts(guarded, scripts, name):
    fit = guarded[name]
    same(fit.estimate, scripts[f"{name}.eblup"])
    if name in AREA:
        same(fit.coefficients["estimate"], scripts[f"{name}.beta"])
    if not name.startswith("eblup"):
        corrected = getattr(fit, "mse_corrected", None)
        mse = fit.mse if corrected is None else np.concatenate([fit.mse, corrected])
        same(mse, scripts[f"{name}.mse"])


@pytest.mark.parametrize("name", DIRECT)
def test_guarded_estimates_are_their_own_scripts(guarded, scripts, name):
    value = guarded[name].value
    for column in value:
        if column == "Domain":
            assert list(value[column]) == scripts[f"{name}.Domain"]
        else:
            same(value[column], scripts[f"{name}.{column}"])


def test_guarded_numbers_are_the_raw_ones(guarded, raw):
    for name in AREA:
        if getattr(guarded[name], "as_given", None):
            continue  # asked again more tightly
        np.testing.assert_allclose(guarded[name].estimate, raw[name].estimate, rtol=1e-12)
    for name in UNIT:
        same(guarded[name].estimate, raw[name].estimate)
        same(guarded[name].mse, raw[name].mse)
    for name in DIRECT:
        ours, theirs = guarded[name], raw[name]
        place = [list(map(str, theirs.domains)).index(str(label)) for label in ours.domains]
        same(ours.estimate, theirs.estimate[place])


def test_rows_in_any_order_give_the_same_answers(data):
    first, spacetime, w = data["first"], data["spacetime"], data["proximity"]
    mixed = np.random.default_rng(5).permutation(len(first))
    w = w.iloc[::-1, mixed]
    ordered = sae.mseSFH(first, "Y ~ X1", "Var", w, domain="Area")
    shuffled = sae.mseSFH(first.iloc[mixed], "Y ~ X1", "Var", w, domain="Area")
    np.testing.assert_allclose(shuffled.estimate, ordered.estimate[mixed], rtol=1e-9)
    np.testing.assert_allclose(shuffled.mse, ordered.mse[mixed], rtol=1e-7)
    mixed = np.random.default_rng(6).permutation(len(spacetime))
    words = {"domain": "Area", "time": "Time"}
    ordered = sae.eblupSTFH(spacetime, "Y ~ X1 + X2", "Var", w, **words)
    shuffled = sae.eblupSTFH(spacetime.iloc[mixed], "Y ~ X1 + X2", "Var", w, **words)
    same(shuffled.estimate, ordered.estimate[mixed])
    assert list(shuffled.to_frame()["time"]) == list(spacetime["Time"].iloc[mixed])
