"""What sae really does at its edges, in raw mode, and what the guarded mode makes of it."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq

from pybridge import datasets
from pybridge.engines import sae
from pybridge.errors import EngineError, EngineTimeout, EngineWarning, InputError
from pybridge.smoothing._area_model import fit_area_model
from validation.cases.fay_herriot import load

pytestmark = pytest.mark.r("sae")


def ring(m, labels=None):
    """Each domain beside its two neighbours."""
    w = np.zeros((m, m))
    for i in range(m):
        w[i, [(i + 1) % m, (i - 1) % m]] = 0.5
    labels = range(m) if labels is None else labels
    return pd.DataFrame(w, index=labels, columns=labels)


def correlated(m, rho, *, seed, noise=0.5, variance=1.0):
    draw = np.random.default_rng(seed)
    x, d = draw.normal(size=m), noise * np.exp(0.5 * draw.normal(size=m))
    u = np.sqrt(variance) * draw.normal(size=m)
    v = np.linalg.solve(np.eye(m) - rho * ring(m).to_numpy(), u)
    return pd.DataFrame({"y": 1 + x + v + np.sqrt(d) * draw.normal(size=m), "d": d, "x": x})


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


# --- sae's direct, pssynt and ssd ----------------------------------------------------------------


def units():
    draw = np.random.default_rng(3)
    domain = np.repeat(["a", "b", "c"], [20, 30, 1])
    return pd.DataFrame(
        {
            "domain": domain,
            "y": draw.normal(10, 1, 51),
            "w": draw.uniform(2, 4, 51),
            "g": np.tile(["u", "v", "w"], 17),
        }
    )


SIZES = pd.DataFrame({"domain": ["c", "b", "a", "d"], "N": [10.0, 100.0, 70.0, 5.0]})


def test_direct_says_which_estimator_it_is():
    # With weights it is sum(w y)/N, not the weighted mean of other packages' functions of the name.
    table = units()
    fit = sae.direct(table, "y", "domain", "w", SIZES)
    assert fit.estimator == (
        "Horvitz-Thompson mean with known domain size, sum(w y)/N, without replacement"
    )
    a = table[table["domain"] == "a"]
    assert fit.estimate[2] == pytest.approx((a["y"] * a["w"]).sum() / 70, rel=1e-14)
    assert fit.estimate[2] < 0.95 * np.average(a["y"], weights=a["w"]) or (
        fit.estimate[2] > 1.05 * np.average(a["y"], weights=a["w"])
    )
    assert "Horvitz-Thompson" in fit.provenance.method and "Horvitz" in fit.summary()


def test_labels_survive_direct():
    table = units()
    four = pd.CategoricalDtype(list("abcd"))
    factor, sizes = table.astype({"domain": four}), SIZES.astype({"domain": four})
    raw = sae.direct(factor, "y", "domain", "w", sizes, mode="raw")
    # A factor and a domain without units: sae returns the factor's codes for labels.
    assert set(map(str, raw.domains)) <= {"1", "2", "3", "4"}
    fit = sae.direct(table, "y", "domain", "w", SIZES)
    assert list(fit.domains) == ["c", "b", "a", "d"]
    assert list(fit.domain_status) == ["single_unit", "ok", "ok", "out_of_sample"]
    assert list(fit.n_labelled) == [1, 30, 20, 0] and np.isnan(fit.estimate[3])
    as_factor = sae.direct(factor, "y", "domain", "w", sizes)
    np.testing.assert_array_equal(as_factor.estimate, fit.estimate)


def test_columns_of_domsize_are_two():
    table = units()
    wide = SIZES.assign(region="r")
    for bad in (wide.assign(M=1.0).drop(columns="region"), SIZES[["domain"]]):
        with pytest.raises(InputError) as caught:
            sae.direct(table, "y", "domain", "w", bad)
        assert caught.value.code == "not_two_columns"
    swapped = SIZES[["N", "domain"]]
    with pytest.raises(EngineError, match="not defined in population"):
        sae.direct(table, "y", "domain", "w", swapped, mode="raw")
    # By name the domains are found wherever they stand.
    fit = sae.direct(table, "y", "domain", "w", swapped)
    np.testing.assert_array_equal(
        fit.estimate, sae.direct(table, "y", "domain", "w", SIZES).estimate
    )


def test_rows_without_a_value_are_not_dropped_in_silence():
    table = units()
    table.loc[3, "y"] = np.nan
    raw = sae.direct(table, "y", "domain", "w", SIZES, mode="raw")
    assert raw.n_labelled[0] == 19
    with pytest.raises(InputError) as caught:
        sae.direct(table, "y", "domain", "w", SIZES)
    assert caught.value.code == "missing_values" and "silently" in caught.value.hint


STRATA = pd.DataFrame(
    {"domain": ["a", "b", "c"], "u": [30, 40, 1], "v": [20, 30, 8], "w": [20, 30, 1]}
)


def test_codes_of_post_strata_must_be_columns():
    table = units()
    wrong = STRATA.rename(columns={"u": "U", "v": "V", "w": "W"})
    with pytest.warns(EngineWarning, match="not defined in population post-strata"):
        raw = sae.pssynt(table, "y", "w", "g", wrong, mode="raw")
    assert (raw.estimate == 0).all()
    with pytest.raises(InputError) as caught:
        sae.pssynt(table, "y", "w", "g", wrong)
    assert caught.value.code == "unknown_post_stratum"
    extra = STRATA.assign(z=[10, 10, 10])
    raw = sae.pssynt(table, "y", "w", "g", extra, mode="raw")
    fit = sae.pssynt(table, "y", "w", "g", STRATA)
    assert (raw.estimate < fit.estimate).all()  # a stratum without units counts as 0, silently
    with pytest.raises(InputError, match="post-strata"):
        sae.pssynt(table, "y", "w", "g", extra)
    numbers = table.assign(g=table["g"].map({"u": 1, "v": 2, "w": 3}))
    coded = STRATA.set_axis(["domain", 1, 2, 3], axis=1)
    np.testing.assert_array_equal(sae.pssynt(numbers, "y", "w", "g", coded).estimate, fit.estimate)


def test_ssd_takes_the_estimates_whatever_the_table():
    table, sizes = units(), SIZES[:3]
    direct = sae.direct(table, "y", "domain", "w", sizes)
    synthetic = sae.pssynt(table, "y", "w", "g", STRATA)
    fit = sae.ssd(table, "domain", "w", sizes, direct, synthetic)
    weight = fit.weight[list(fit.domains).index("a")]
    assert 0 < weight < 1 and fit.domain_status[0] == "single_unit"
    own = sae.direct(table, "y", "domain", "w", sizes, mode="raw")
    all_of_it = pd.DataFrame({name: list(column) for name, column in own.value.items()})
    words = {"mode": "raw"}
    raw = sae.ssd(table, "domain", "w", sizes, all_of_it, synthetic, **words)
    composed = weight * 20 + (1 - weight) * synthetic.estimate[0]
    assert raw.estimate[list(raw.domains).index("a")] == pytest.approx(composed)  # sample size
    with pytest.raises(InputError) as caught:
        sae.ssd(table, "domain", "w", sizes, all_of_it, synthetic)
    assert caught.value.code == "not_two_columns"
    two = all_of_it[["Domain", "Direct"]]
    np.testing.assert_array_equal(
        sae.ssd(table, "domain", "w", sizes, two, synthetic).estimate, fit.estimate
    )


def test_a_domain_without_units_gets_the_synthetic_estimate():
    table = units()
    direct = sae.direct(table, "y", "domain", "w", SIZES)
    strata = pd.concat([STRATA, pd.DataFrame({"domain": ["d"], "u": [2], "v": [2], "w": [1]})])
    synthetic = sae.pssynt(table, "y", "w", "g", strata)
    raw = sae.ssd(table, "domain", "w", SIZES, direct, synthetic, mode="raw")
    assert np.isnan(raw.estimate[list(raw.domains).index("d")])
    fit = sae.ssd(table, "domain", "w", SIZES, direct, synthetic)
    assert fit.estimate[3] == synthetic.estimate[3] and fit.weight[3] == 0
    assert any("without units: d" in line for line in fit.conditions)


# --- criteria under REML -------------------------------------------------------------------------


def test_criteria_are_those_of_the_ordinary_likelihood():
    milk = datasets.milk()
    milk["var"] = milk["SD"] ** 2
    fit = sae.eblupFH(milk, "yi ~ as.factor(MajorArea)", "var")
    native = fit_area_model(
        estimate=milk["yi"].to_numpy(),
        variance=milk["var"].to_numpy(),
        covariates=pd.get_dummies(milk["MajorArea"]).to_numpy(dtype=float),
    )
    assert fit.criteria["AIC"] == pytest.approx(-2 * native.log_likelihood + 2 * 5, abs=1e-4)
    assert fit.exact["restricted_log_likelihood"] == pytest.approx(
        native.restricted_log_likelihood, rel=1e-9
    )
    assert abs(fit.log_likelihood - fit.exact["restricted_log_likelihood"]) > 2
    assert "(ordinary)" in fit.summary()


# --- the nested-error model ----------------------------------------------------------------------


def corn():
    counties = datasets.cornsoybean_means().rename(
        columns={"CountyIndex": "County", "MeanCornPixPerSeg": "CornPix"}
    )
    counties = counties.rename(columns={"MeanSoyBeansPixPerSeg": "SoyBeansPix"})
    return datasets.cornsoybean().drop(index=32), counties, counties[["County", "PopnSegments"]]


def test_means_by_name_not_by_position():
    units, means, sizes = corn()
    formula = "CornHec ~ CornPix + SoyBeansPix"
    fit = sae.eblupBHF(units, formula, "County", means, sizes)
    swapped = means[["County", "SoyBeansPix", "CornPix"]]
    np.testing.assert_array_equal(
        sae.eblupBHF(units, formula, "County", swapped, sizes).estimate, fit.estimate
    )
    raw = sae.eblupBHF(units, formula, "County", swapped, sizes, mode="raw")
    assert np.abs(raw.estimate - fit.estimate).min() > 1  # silently
    with pytest.raises(InputError) as caught:
        sae.eblupBHF(units, formula, "County", swapped.drop(columns="CornPix"), sizes)
    assert caught.value.code == "missing_column"


def test_a_collinear_covariate_is_refused_before_lme4_drops_it():
    units, means, sizes = corn()
    units = units.assign(twice=2.0 * units["CornPix"])
    means = means.assign(twice=2.0 * means["CornPix"])
    formula = "CornHec ~ CornPix + twice + SoyBeansPix"
    columns = means[["County", "CornPix", "twice", "SoyBeansPix"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EngineWarning)
        raw = sae.eblupBHF(units, formula, "County", columns, sizes, mode="raw")
    right = sae.eblupBHF(units, "CornHec ~ CornPix + SoyBeansPix", "County", means, sizes)
    assert np.abs(raw.estimate - right.estimate).max() > 10  # the coefficients are recycled
    with pytest.raises(InputError) as caught:
        sae.eblupBHF(units, formula, "County", means, sizes)
    assert caught.value.code == "collinear_covariates"


def test_a_selected_domain_without_units_is_synthetic():
    units, means, sizes = corn()
    units = units[units["County"] != 4]
    with pytest.warns(EngineWarning, match="zero sample size") as caught:
        fit = sae.eblupBHF(
            units, "CornHec ~ CornPix + SoyBeansPix", "County", means, sizes, selectdom=[4, 12, 1]
        )
    assert [warning.filename for warning in caught] == [__file__]  # the caller's own line
    assert list(fit.domain_status) == ["out_of_sample", "ok", "ok"]
    beta = fit.coefficients["estimate"].to_numpy()
    x = means.set_index("County").loc[4, ["CornPix", "SoyBeansPix"]].to_numpy(dtype=float)
    assert fit.estimate[0] == pytest.approx(beta[0] + x @ beta[1:], rel=1e-12)


# --- keys ----------------------------------------------------------------------------------------


def test_a_permuted_table_beside_an_unlabelled_matrix():
    table, w = correlated(30, 0.7, seed=5), ring(30)
    mixed = np.random.default_rng(1).permutation(30)
    right = sae.eblupSFH(table, "y ~ x", "d", w)
    raw = sae.eblupSFH(table.iloc[mixed], "y ~ x", "d", w.to_numpy(), mode="raw")
    assert abs(raw.spatial_correlation - right.spatial_correlation) > 0.2  # silently
    fit = sae.eblupSFH(table.iloc[mixed], "y ~ x", "d", w)
    np.testing.assert_allclose(fit.estimate, right.estimate[mixed], rtol=1e-8)
    with pytest.raises(InputError) as caught:
        sae.eblupSFH(table.iloc[mixed], "y ~ x", "d", w.to_numpy())
    assert caught.value.code == "unlabelled_proximity"


def test_domains_without_an_estimate_are_refused_with_who_can(spacetime):
    table = correlated(20, 0.0, seed=2)
    table.loc[4, "y"] = np.nan
    with pytest.raises(EngineError, match="NA values"):
        sae.mseFH(table, "y ~ x", "d", mode="raw")
    with pytest.raises(InputError) as caught:
        sae.mseFH(table, "y ~ x", "d")
    assert caught.value.code == "out_of_sample"
    assert "native" in caught.value.hint and "emdi" in caught.value.hint


def test_a_negative_variance_gives_a_negative_mse_as_it_is():
    table = correlated(20, 0.0, seed=2)
    table.loc[4, "d"] = -0.001
    assert (sae.mseFH(table, "y ~ x", "d", mode="raw").mse < 0).any()
    with pytest.raises(InputError) as caught:
        sae.mseFH(table, "y ~ x", "d")
    assert caught.value.code == "negative_variance"
