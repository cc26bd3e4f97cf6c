"""Every fit goes back to R: an object for readRDS() and a script, by each engine and natively."""

from __future__ import annotations

import numpy as np
import pytest

import pybridge as pb
from pybridge.errors import EngineError, InputError
from validation.cases.fay_herriot import load as load_area_case
from validation.cases.taxonomy import load_area, load_taxonomy

pytestmark = pytest.mark.r("sae", "hbsae", "metafor", "rjags", "evd", "ismev")

CHAINS = {"n_draws": 300, "n_burn": 200, "n_adapt": 200, "seed": 4}


@pytest.fixture(scope="module")
def fits():
    """One fit of each kind: (fit, R code that shows its numbers on `x`, our numbers)."""
    gaps = load_taxonomy("gaps60")
    words = {"levels": gaps.levels}
    posterior = load_area("gaps60")
    milk = load_area_case("milk")
    found = {}
    for engine in ("hbsae", "native"):
        fit = pb.fay_herriot(posterior.formula, posterior.table, engine=engine, method="bayes")
        found[f"fay_herriot bayes {engine}"] = (fit, "as.vector(hbsae::EST(x))", fit.fit.estimate)
    for method in ("REML", "ML", "FH"):
        fit = pb.fay_herriot(milk.formula, milk.frame(), engine="native", method=method)
        found[f"fay_herriot {method} native"] = (fit, "x$mse", fit.fit.mse)
    for engine in ("metafor", "native"):
        fit = pb.taxonomy_model(gaps.formula, gaps.table, engine=engine, method="REML", **words)
        variances = np.array(list(fit.model_variance.values()))
        found[f"taxonomy REML {engine}"] = (fit, "x$sigma2", variances)
    fit = pb.taxonomy_model(gaps.formula, gaps.table, engine="rjags", **words, **CHAINS)
    code = 'colMeans(as.matrix(x))[paste0("theta[", 1:60, "]")]'
    found["taxonomy bayes rjags"] = (fit, code, fit.numbers.estimate)
    scores = np.random.default_rng(3).pareto(4.0, 2000)
    for engine in ("evd", "ismev", "native"):
        fit = pb.generalized_pareto(scores, quantile=0.9, engine=engine)
        code = "x$mle[2]" if engine == "ismev" else "x$estimate[['shape']]"
        found[f"pareto {engine}"] = (fit, code, np.array([fit.shape]))
    return found


# How closely: the same R call to rounding of the units; a native fit as its twin comes to it.
TOLERANCES = {
    "fay_herriot bayes native": 1e-5,
    "fay_herriot REML native": 1e-8,
    "fay_herriot ML native": 1e-8,
    "fay_herriot FH native": 1e-8,
    "taxonomy REML native": 1e-4,
    "pareto native": 1e-5,
}


def test_objects_are_read_in_r_and_hold_the_fit(fits, plain_r, tmp_path):
    code = 'for (p in c("coda", "metafor", "hbsae", "evd")) loadNamespace(p)\n'
    for k, (name, (fit, show, _)) in enumerate(fits.items()):
        fit.to_rds(tmp_path / f"{k}.rds")
        code += f'x <- readRDS("{tmp_path / f"{k}.rds"}"); show("fit{k}", {show})\n'
        code += "invisible(capture.output(print(summary(x))))\n"
        if name.startswith("taxonomy REML"):
            code += 'show("groups", rownames(metafor::ranef(x)$region))\n'
            code += f'show("rows{k}", attr(x, "rows")$domain)\n'
    plain = plain_r(code)
    for k, (name, (fit, _, ours)) in enumerate(fits.items()):
        rtol = TOLERANCES.get(name, 1e-12)
        np.testing.assert_allclose(plain[f"fit{k}"], ours, rtol=rtol, err_msg=name)
        if name.startswith("taxonomy REML"):
            seen = fit.area.domains[fit.area.sampled]
            assert plain[f"rows{k}"] == list(seen)
    # Groups are under the user's labels (twice: metafor's fit and the native one's twin).
    region = fits["taxonomy REML metafor"][0].levels.labels[0]
    assert plain["groups"] == 2 * list(region)


def test_scripts_give_the_numbers_under_plain_rscript(fits, plain_r):
    code = ""
    shown = {
        "fay_herriot bayes": 'show("fit{k}", result$estimate)',
        "fay_herriot ": 'show("fit{k}", result$mse)',
        "taxonomy REML": 'show("fit{k}", fit$sigma2); show("blup{k}", eblup)',
        "taxonomy bayes": 'show("fit{k}", answer$estimate * unit)',
        "pareto": 'show("fit{k}", result[["shape"]])',
    }
    for k, (name, (fit, _, _)) in enumerate(fits.items()):
        show = next(text for start, text in shown.items() if name.startswith(start))
        body = f"{fit.r_script()}\n{show.format(k=k)}"
        code += f"local({{\n{body}\n}})\n"
    plain = plain_r("quiet <- function(...) invisible()\n" + code)
    for k, (name, (fit, _, ours)) in enumerate(fits.items()):
        found = np.array(plain[f"fit{k}"])
        if name in ("fay_herriot bayes hbsae", "taxonomy REML metafor"):
            np.testing.assert_array_equal(found, ours, err_msg=name)
        np.testing.assert_allclose(found, ours, rtol=TOLERANCES.get(name, 1e-12), err_msg=name)
        if name == "taxonomy REML metafor":
            np.testing.assert_allclose(plain[f"blup{k}"], fit.numbers.estimate, rtol=1e-12)


def test_what_r_has_no_twin_of_is_refused(tmp_path):
    milk = load_area_case("milk")
    fit = pb.fay_herriot(milk.formula, milk.frame(), engine="native", method="PR")
    for call in (fit.r_script, lambda: fit.to_rds(tmp_path / "x.rds")):
        with pytest.raises(InputError) as caught:
            call()
        assert caught.value.code == "not_available"
    case = load_area("few7")
    table = case.table.assign(variance=case.table["variance"].where(case.table.index > 0, 0.0))
    fit = pb.fay_herriot(case.formula, table, engine="native", method="bayes")
    with pytest.raises(InputError, match="variances of 0"):
        fit.to_rds(tmp_path / "x.rds")
    assert not list(tmp_path.iterdir())


def test_jags_has_a_seed_that_is_known():
    case = load_taxonomy("groups34")
    words = {"levels": case.levels, "engine": "rjags", **CHAINS, "seed": None}
    first, second = (pb.taxonomy_model(case.formula, case.table, **words) for _ in range(2))
    assert first.spec.seed != second.spec.seed
    words["seed"] = first.provenance.seed
    assert pb.taxonomy_model(case.formula, case.table, **words) == first


def test_the_object_names_coefficients_as_the_user_does(plain_r, tmp_path):
    case = load_taxonomy("groups34")
    table = case.table.rename(columns={"x2": "cover"}).assign(
        x1=np.linspace(0.0, 1.0, len(case.table)) ** 2, **{"면적": np.sin(np.arange(34.0))}
    )
    formula = "estimate ~ x1 + cover + 면적"
    fit = pb.taxonomy_model(formula, table, levels=case.levels, engine="metafor", method="REML")
    kept = fit.to_rds(tmp_path / "fit.rds")
    found = plain_r(
        f'x <- readRDS("{kept}"); show("terms", rownames(x$beta)); show("beta", x$beta)\n'
    )
    assert found["terms"] == ["intrcpt", "x1", "cover", "x4"]
    np.testing.assert_array_equal(found["beta"], fit.coefficients["estimate"])


def test_an_object_that_does_not_fit_on_the_disk_is_not_a_success(fits):
    # R closes the file without a word there; /dev/full is a disk without room.
    for name, (fit, _, _) in fits.items():
        with pytest.raises(EngineError) as caught:
            fit.to_rds("/dev/full")
        assert "cannot write all" in str(caught.value.got), name
        assert "room" in str(caught.value.hint)
    table = load_area_case("milk").frame()
    with pytest.raises(EngineError, match="cannot open the connection") as caught:
        pb.fay_herriot(load_area_case("milk").formula, table).to_rds("/proc/fit.rds")
    assert "rights" in str(caught.value.hint)
