"""Every option of survey's functions against the plain call, its script and its saved object."""

from __future__ import annotations

import numpy as np
import pytest

from pybridge import datasets
from pybridge.engines import survey
from pybridge.errors import InputError
from tests.live_r.survey_designs import DESIGNS, TOTALS, api_tables, designs


pytestmark = pytest.mark.r("survey")


# name -> the call as an R user writes it, and the same words here.
CALLS = {
    "mean_replace": (
        "svymean(~api00 + api99, clus1, deff = 'replace', influence = TRUE)",
        lambda d: survey.svymean("~api00 + api99", d["clus1"], deff="replace", influence=True),
    ),
    "total_influence": (
        "svytotal(~api00, clus1, deff = TRUE, influence = TRUE)",
        lambda d: survey.svytotal("~api00", d["clus1"], deff=True, influence=True),
    ),
    "ratio": (
        "svyratio(~api00 + api99, ~enroll + meals, strat, deff = TRUE, influence = TRUE)",
        lambda d: survey.svyratio(
            "~api00 + api99", "~enroll + meals", d["strat"], deff=True, influence=True
        ),
    ),
    "by_interval": (
        "svyby(~api00 + api99, ~stype, strat, svymean, covmat = TRUE,"
        " vartype = c('ci', 'cvpct', 'var'), deff = 'replace')",
        lambda d: survey.svyby(
            "~api00 + api99",
            "~stype",
            d["strat"],
            deff="replace",
            vartype=["var", "ci", "cvpct"],
            covmat=True,
        ),
    ),
    "by_influence": (
        "svyby(~api00 + api99, ~stype, strat, svymean, influence = TRUE, covmat = TRUE)",
        lambda d: survey.svyby("~api00 + api99", "~stype", d["strat"], influence=True, covmat=True),
    ),
    "by_all": (
        "svyby(~api00, ~stype, strat, svytotal, keep.names = FALSE, deff = TRUE,"
        " vartype = c('se', 'ci', 'cv', 'cvpct', 'var'))",
        lambda d: survey.svyby(
            "~api00",
            "~stype",
            d["strat"],
            "svytotal",
            keep_names=False,
            deff=True,
            vartype=("se", "ci", "cv", "cvpct", "var"),
        ),
    ),
    "by_empty": (
        "svyby(~api00, ~stype + awards, strat, svymean, drop.empty.groups = FALSE,"
        " vartype = 'var')",
        lambda d: survey.svyby(
            "~api00",
            "~stype + awards",
            d["strat"],
            drop_empty_groups=False,
            vartype="var",
        ),
    ),
    "by_bare": (
        "svyby(~api00 + api99, ~stype, strat, svymean, keep.var = FALSE)",
        lambda d: survey.svyby("~api00 + api99", "~stype", d["strat"], keep_var=False),
    ),
    "by_gaps": (
        "svyby(~gap, ~group, clus2, svymean, na.rm = TRUE, na.rm.by = TRUE," " na.rm.all = TRUE)",
        lambda d: survey.svyby(
            "~gap", "~group", d["clus2"], na_rm=True, na_rm_by=True, na_rm_all=True
        ),
    ),
    "by_group": (
        "svyby(~api00, ~group, clus2, svymean, na.rm.by = TRUE)",
        lambda d: survey.svyby("~api00", "~group", d["clus2"], na_rm_by=True),
    ),
    "glm_domain": (
        "svyglm(api00 ~ ell + meals, clus1, subset = stype == 'E' & ell > 5,"
        " rescale = FALSE, deff = TRUE)",
        lambda d: survey.svyglm(
            "api00 ~ ell + meals",
            d["clus1"],
            subset="stype == 'E' & ell > 5",
            rescale=False,
            deff=True,
        ),
    ),
    "glm_search": (
        "svyglm(I(api00 > 700) ~ ell + meals, clus1,"
        " family = quasi(link = 'logit', variance = 'mu(1-mu)'),"
        " start = c(1, 0, 0), epsilon = 1e-3, maxit = 50)",
        lambda d: survey.svyglm(
            "I(api00 > 700) ~ ell + meals",
            d["clus1"],
            family="quasi",
            link="logit",
            variance="mu(1-mu)",
            start=[1, 0, 0],
            epsilon=1e-3,
            maxit=50,
        ),
    ),
    "glm_inverse": (
        "svyglm(api00 ~ ell, clus1, family = inverse.gaussian('1/mu^2'))",
        lambda d: survey.svyglm(
            "api00 ~ ell", d["clus1"], link="1/mu^2", family="inverse.gaussian"
        ),
    ),
    "glm_contrasts": (
        "svyglm(api00 ~ ell + awards, clus1, weights = sqrt(enroll),"
        " contrasts = list(awards = 'contr.sum'))",
        lambda d: survey.svyglm(
            "api00 ~ ell + awards",
            d["clus1"],
            weights="sqrt(enroll)",
            contrasts={"awards": "contr.sum"},
        ),
    ),
    "glm_gaps": (
        "svyglm(api00 ~ gap, clus2, na.action = na.omit)",
        lambda d: survey.svyglm("api00 ~ gap", d["clus2"], na_action="na.omit"),
    ),
}


CALIBRATED = {
    "sinh": ("calfun = cal.sinh, bounds = c(0.1, 5)", {"calfun": "sinh", "bounds": (0.1, 5)}),
    "logit": (
        "calfun = 'logit', bounds = c(0.7, 1.5), epsilon = 1e-4, maxit = 60",
        {"calfun": "logit", "bounds": (0.7, 1.5), "epsilon": 1e-4, "maxit": 60},
    ),
    "trim": ("calfun = 'raking', trim = c(0.97, 1.1)", {"calfun": "raking", "trim": (0.97, 1.1)}),
    "constant": (
        "bounds = c(20, 45), bounds.const = TRUE",
        {"bounds": (20, 45), "bounds_const": True},
    ),
    "units": (
        "bounds = list(lower = rep(0.5, 183), upper = rep(2, 183))",
        {"bounds": (np.full(183, 0.5), np.full(183, 2.0))},
    ),
    "variance": ("variance = c(1, 0.1)", {"variance": [1, 0.1]}),
    "each": ("variance = apiclus1$api99", {"variance": "api99"}),
    "sparse": ("sparse = TRUE", {"sparse": True}),
    "stage": ("aggregate.stage = 1", {"aggregate_stage": 1}),
    "epsilons": (
        "calfun = 'raking', epsilon = c(1e-8, 1e-2)",
        {"calfun": "raking", "epsilon": {"api99": 1e-2, "(Intercept)": 1e-8}},
    ),
    "forced": ("bounds = c(0.999, 1.001), force = TRUE", {"bounds": (0.999, 1.001), "force": True}),
}


@pytest.fixture(scope="module")
def tables():
    return api_tables()


@pytest.fixture(scope="module", params=["raw", "guarded"])
def known(request, tables):
    return designs(tables, request.param)


def calibrated(design, words):
    if words.get("variance") == "api99":
        words = {**words, "variance": design.frame["api99"].to_numpy()}
    return survey.calibrate(design, "~api99", TOTALS, **words)


@pytest.fixture(scope="module")
def plain(plain_r):
    code = (
        DESIGNS
        + """
    effects <- function(x) {
      if (inherits(x, "svyby")) unlist(as.data.frame(x)[grep("DEff", names(x))])
      else if (inherits(x, "svyratio")) attr(x, "deff")
      else diag(as.matrix(attr(x, "deff")))
    }
    shown <- function(name, x) {
      call <- substitute(x)
      show(paste0(name, ".estimate"), coef(x))
      about <- attr(x, "svyby")
      bare <- !is.null(about) && (about$vars == 0 || identical(about$vartype, "ci"))
      if (!bare) show(paste0(name, ".error"), if (is.data.frame(SE(x))) unlist(SE(x)) else SE(x))
      if (!is.null(attr(x, "deff")) || !is.null(about) && !identical(about$deffs, FALSE))
        show(paste0(name, ".effect"), effects(x))
      if (grepl("influence", paste(deparse(call), collapse = " "))) {
        own <- as.matrix(attr(x, "influence"))
        if (!is.null(about)) { # group by group; the estimates are variable by variable
          own <- own[, c(matrix(seq_len(ncol(own)), ncol = about$nstats, byrow = TRUE))]
        }
        show(paste0(name, ".influence"), own)
      }
      if (!is.null(about)) {
        own <- grep("^(se|ci_|cv|var)", names(x))
        own <- setdiff(own, grep("DEff|^statistic", names(x)))
        show(paste0(name, ".variation"), unlist(as.data.frame(x)[own]))
      }
      show(paste0(name, ".names"), names(coef(x)))
    }
    """
    )
    for name, (call, _) in CALLS.items():
        code += f'shown("{name}", {call})\n'
    for name, (words, _) in CALIBRATED.items():
        code += f'x <- suppressWarnings(cal({words})); show("{name}.weight", weights(x))\n'
        code += f'show("{name}.error", SE(svymean(~api00, x)))\n'
    return plain_r(code)


@pytest.mark.parametrize("name", CALLS)
def test_options_are_rs_to_the_bit(known, plain, name):
    fit = CALLS[name][1](known)
    np.testing.assert_array_equal(fit.estimate, plain[f"{name}.estimate"])
    assert list(fit.names) == plain[f"{name}.names"]
    single = fit.domain_status == "single_unit"
    if f"{name}.error" in plain:
        theirs = np.array(plain[f"{name}.error"])
        if known["strat"].mode == "guarded":  # R's 0 of a domain of one unit
            theirs[single] = np.nan
        np.testing.assert_array_equal(fit.standard_error, theirs)
    ours = np.concatenate([*fit.variation.values(), []])
    np.testing.assert_array_equal(ours, plain.get(f"{name}.variation", []))
    if f"{name}.effect" in plain:
        np.testing.assert_array_equal(fit.design_effect, plain[f"{name}.effect"])
    else:
        assert np.isnan(fit.design_effect).all()
    if f"{name}.influence" in plain:
        np.testing.assert_array_equal(fit.influence.ravel(order="F"), plain[f"{name}.influence"])
    else:
        assert fit.influence is None


def test_standard_errors_beside_intervals_are_those_of_the_covariance(known):
    fit = survey.svyby("~api00", "~stype", known["strat"], vartype="ci", covmat=True)
    usual = survey.svyby("~api00", "~stype", known["strat"], covmat=True)
    np.testing.assert_array_equal(fit.standard_error, np.sqrt(np.diag(usual.covariance)))
    alone = survey.svyby("~api00", "~stype", known["strat"], vartype="ci", covmat=False)
    assert np.isnan(alone.standard_error).all() and set(alone.variation) == {"ci_l", "ci_u"}


@pytest.mark.parametrize("name", CALIBRATED)
@pytest.mark.filterwarnings("ignore::pybridge.errors.EngineWarning")
def test_calibrations_are_rs_to_the_bit(known, plain, name):
    design = calibrated(known["clus1"], CALIBRATED[name][1])
    np.testing.assert_array_equal(survey.weights(design), plain[f"{name}.weight"])
    fit = survey.svymean("~api00", design)
    np.testing.assert_array_equal(fit.standard_error, plain[f"{name}.error"])


def test_clusters_are_calibrated_each_to_totals_of_its_own(known, tables, plain_r):
    table = tables["apiclus2"]
    code = (
        DESIGNS
        + """
    N <- apiclus2$fpc2[!duplicated(apiclus2$dnum)]
    x <- calibrate(clus2, ~1, lapply(N, function(n) c(`(Intercept)` = n)), stage = 1)
    show("weight", weights(x)); show("error", SE(svymean(~api00, x)))
    """
    )
    found = plain_r(code)
    first = table.drop_duplicates("dnum")
    sizes = {d: {"(Intercept)": float(n)} for d, n in zip(first["dnum"], first["fpc2"])}
    back = dict(reversed(sizes.items()))  # by label, not by place
    design = survey.calibrate(known["clus2"], "~1", back, stage=1)
    np.testing.assert_array_equal(survey.weights(design), found["weight"])
    fit = survey.svymean("~api00", design)
    np.testing.assert_array_equal(fit.standard_error, found["error"])
    script = fit.r_script(data=table)
    assert plain_r(script + 'show("error", survey::SE(result))')["error"] == found["error"]
    for wrong in (dict(list(sizes.items())[1:]), {}, [1.0]):
        with pytest.raises(InputError) as caught:
            survey.calibrate(known["clus2"], "~1", wrong, stage=1)
        assert caught.value.code == "unknown_total"


def test_separate_ratios_are_rs_stratum_by_stratum(known, plain_r, tables, tmp_path):
    fit = survey.svyratio("~api00 + api99", "~enroll", known["strat"], separate=True)
    kept = fit.to_rds(tmp_path / "separate.rds", tables["apistrat"])
    found = plain_r(
        DESIGNS
        + f"""
        x <- svyratio(~api00 + api99, ~enroll, strat, separate = TRUE)
        both <- list(plain = x, kept = readRDS("{kept}"))
        for (name in names(both)) {{
          show(name, unlist(lapply(both[[name]]$ratios, coef)))
          show(name, unlist(lapply(both[[name]]$ratios, SE)))
        }}
        show("strata", names(x$ratios))
        total <- list(E = 1e6, H = 2e6, M = 3e6)
        show("predicted", predict(both$kept, total = total)$total)
        """
    )
    np.testing.assert_array_equal([*fit.estimate, *fit.standard_error], found["plain"])
    assert found["kept"] == found["plain"]
    assert list(fit.by["stype"][::2]) == found["strata"] and set(fit.n_units) == {100.0, 50.0}
    assert list(fit.statistic[:2]) == ["api00/enroll", "api99/enroll"]
    across = np.kron(1 - np.eye(3), np.ones((2, 2))) == 1
    assert (fit.covariance[across] == 0).all()
    np.testing.assert_allclose(np.sqrt(np.diag(fit.covariance)), fit.standard_error, rtol=1e-14)


@pytest.mark.filterwarnings("ignore::pybridge.errors.EngineWarning")
def test_options_are_in_the_script_and_in_the_object(tables, plain_r, tmp_path):
    known = designs(tables, "guarded")
    fits = {name: call(known) for name, (_, call) in CALLS.items()}
    for name, (_, words) in CALIBRATED.items():
        fits[name] = survey.svymean("~api00", calibrated(known["clus1"], words))
    code = "suppressPackageStartupMessages(library(survey))\n"
    for name, fit in fits.items():
        used = {"pw", "fpc", "stype"} <= set(fit.columns) and "dnum" not in fit.columns
        table = tables["apistrat" if used else "apiclus2" if "fpc2" in fit.columns else "apiclus1"]
        kept = fit.to_rds(tmp_path / f"{name}.rds", table)
        script = fit.r_script(data=table)
        code += f"suppressWarnings(local({{invisible(capture.output({{{script}\n}}))\n"
        code += f'show("{name}.script", coef(result)); show("{name}.kept", '
        code += f'coef(readRDS("{kept}")))\n'
        code += f'show("{name}.table", unlist(unclass(as.data.frame(vcov(result)))))}}))\n'
    code = code.replace(
        "as.data.frame(vcov(result))",
        "tryCatch(as.data.frame(vcov(result)), " "error = function(e) list())",
    )
    found = plain_r(code)
    for name, fit in fits.items():
        for where in ("script", "kept"):
            np.testing.assert_array_equal(fit.estimate, found[f"{name}.{where}"], err_msg=name)


@pytest.mark.parametrize("mode", ["raw", "guarded"])
def test_hartley_and_rao_with_the_populations_sum_of_squares(mode, plain_r):
    table = datasets.from_r("survey", "election_pps", file="election")
    psum = float((datasets.from_r("survey", "election", file="election")["p"] ** 2).sum() / 40)
    fits = [
        survey.svytotal(
            "~Bush + Nader", survey.svydesign(1, table, fpc="~p", pps="HR", psum=given, mode=mode)
        )
        for given in (psum, None)
    ]
    code = "suppressPackageStartupMessages(library(survey)); data(election)\n"
    for k, given in enumerate(("sum(election$p^2) / 40", "")):
        code += f"x <- svydesign(id = ~1, fpc = ~p, data = election_pps, pps = HR({given}))\n"
        code += f'show("plain{k}", SE(svytotal(~Bush + Nader, x)))\n'
        code += f"local({{ invisible(capture.output({{{fits[k].r_script(data=table)}\n}}))\n"
        code += f'show("script{k}", SE(result)) }})\n'
    found = plain_r(code)
    for k, fit in enumerate(fits):
        np.testing.assert_array_equal(fit.standard_error, found[f"script{k}"])
        np.testing.assert_allclose(fit.standard_error, found[f"plain{k}"], rtol=1e-12)
    assert (fits[0].standard_error != fits[1].standard_error).all()
