"""Direct estimates as an object of survey: SE, vcov, confint and the design under plain R."""

from __future__ import annotations

import numpy as np
import pytest

import pybridge as pb
from pybridge.errors import InputError
from validation.cases.survey import load

pytestmark = pytest.mark.r("survey")

ESTIMATORS = {
    "ht": (pb.horvitz_thompson, {}),
    "hajek": (pb.hajek, {}),
    "ppi": (pb.prediction_powered, {"prediction": "f"}),
    "greg": (pb.generalized_regression, {"auxiliary": ["f", "g"]}),
    "greg_domain": (pb.generalized_regression, {"auxiliary": ["f"], "slope": "domain"}),
}
CASES = ("stratified_fraction", "clusters", "poisson", "lonely_average_fpc", "stratified_size")


def described(name, rename=None):
    case = load(name)
    roles = ("strata", "ids", "fpc", "pps")
    options = {role: case.columns[role] or None for role in roles}
    units, totals = case.units, case.totals
    if rename is not None:
        units = units.assign(**{case.columns["domain"]: units[case.columns["domain"]].map(rename)})
        totals = totals.assign(domain=totals["domain"].map(rename))
    design = pb.survey_design(units, weights="w", lonely_psu=case.columns["lonely_psu"], **options)
    population = pb.population(
        totals,
        domain="domain",
        size="N",
        auxiliary_means=["f", "g"],
        taxonomy=["group", "domain"],
    )
    return case, design, population


def saved(name, estimator, folder, engine="survey", rename=None):
    case, design, population = described(name, rename)
    function, words = ESTIMATORS[estimator]
    domain = case.columns["domain"]
    fit = function(design, population, outcome="y", domain=domain, engine=engine, **words)
    place = fit.to_rds(folder / f"{name} {estimator}.rds", design=design, domain=domain)
    return fit, place


def name_of(key):
    return tuple(key.split("."))


@pytest.fixture(scope="module")
def objects(tmp_path_factory, plain_r):
    folder = tmp_path_factory.mktemp("rds")
    fits, code = {}, "suppressPackageStartupMessages(library(survey))\n"
    for name in CASES:
        for estimator in ESTIMATORS:
            key = f"{name}.{estimator}"
            fits[key], place = saved(name, estimator, folder)
            code += f"""
            local({{
              x <- readRDS("{place}"); key <- "{key}"
              d <- attr(x, "survey.design")
              options(survey.lonely.psu = attr(x, "survey.lonely.psu"))
              show(paste0(key, ".names"), names(coef(x))); show(paste0(key, ".estimate"), coef(x))
              show(paste0(key, ".error"), SE(x)); show(paste0(key, ".vcov"), vcov(x))
              show(paste0(key, ".interval"), confint(x, level = 0.9, df = 7)); invisible(cv(x))
              invisible(capture.output(print(x), print(d), summary(d)))
              show(paste0(key, ".weight"), weights(d))
              own <- svyby(~outcome, ~domain, d, svymean)
              show(paste0(key, ".hajek"), coef(own)); show(paste0(key, ".hajek_names"), own$domain)
              show(paste0(key, ".degrees"), degf(d))
              show(paste0(key, ".group"), levels(d$variables$group))
            }})
            """
    return fits, plain_r(code)


@pytest.mark.parametrize(
    "key", [f"{name}.{estimator}" for name in CASES for estimator in ESTIMATORS]
)
def test_the_object_has_the_records_numbers_and_rs_methods(objects, key):
    fits, plain = objects
    fit = fits[key]
    labels = [str(label) for label in fit.sample.population.domains]
    seen = np.ones(len(labels), dtype=bool) if fit.method != "hajek" else fit.n_labelled > 0
    assert plain[f"{key}.names"] == [x for x, there in zip(labels, seen) if there]
    np.testing.assert_array_equal(plain[f"{key}.estimate"], fit.formal[seen])
    known = seen & (fit.n_labelled > 1)
    errors = np.full(len(labels), np.nan)
    errors[seen] = plain[f"{key}.error"]
    # svyby's own column and the root of its covariance differ in the last digit; with lonely units
    # R sets them against a mean of their own in each domain, and only the covariance is the same.
    if name_of(key) != ("lonely_average_fpc", "hajek"):
        np.testing.assert_allclose(errors[known], fit.standard_error[known], rtol=1e-13)
    covariance = fit.covariance()[np.ix_(seen, seen)]
    np.testing.assert_array_equal(plain[f"{key}.vcov"], covariance.ravel(order="F"))
    width = np.diff(np.reshape(plain[f"{key}.interval"], (2, -1)), axis=0)[0]
    np.testing.assert_allclose(width / 2, 1.8945786 * errors[seen], rtol=1e-7)


@pytest.mark.parametrize("name", CASES)
def test_the_design_in_it_gives_further_estimates(objects, name):
    fits, plain = objects
    fit, key = fits[f"{name}.hajek"], f"{name}.greg"
    labels = np.array([str(label) for label in fit.sample.population.domains])
    seen = fit.n_labelled > 0
    assert plain[f"{key}.hajek_names"] == list(labels[seen])
    np.testing.assert_allclose(plain[f"{key}.hajek"], fit.estimate[seen], rtol=1e-12)
    assert plain[f"{key}.degrees"][0] > 0
    groups = fit.sample.population.group_codes("group")[1]
    assert plain[f"{key}.group"] == [str(label) for label in groups]


def test_a_native_estimate_goes_back_too(tmp_path, plain_r):
    odd = ["가 나", 'a "b"', "c\\d", "NA", "007", "if", "🌱", "x'y", "é"]
    names = load("stratified_fraction").totals["domain"]
    rename = {old: odd[k] if k < len(odd) else f"d{k}" for k, old in enumerate(names)}
    fit, place = saved("stratified_fraction", "greg", tmp_path, engine="native", rename=rename)
    code = f'library(survey, quietly = TRUE)\nx <- readRDS("{place}")\n'
    code += 'show("names", names(x)); show("estimate", coef(x)); show("error", SE(x))\n'
    plain = plain_r(f"suppressPackageStartupMessages({{{code}}})")
    assert plain["names"] == [str(label) for label in fit.sample.population.domains]
    np.testing.assert_allclose(plain["estimate"], fit.formal, rtol=1e-10)
    known = fit.n_labelled > 1
    error = np.array(plain["error"])[known]
    np.testing.assert_allclose(error, fit.standard_error[known], rtol=1e-8)


def test_what_cannot_be_saved_is_refused(tmp_path):
    case, design, population = described("stratified_fraction")
    domain = case.columns["domain"]
    fit = pb.hajek(design, population, outcome="y", domain=domain)
    with pytest.raises(InputError):
        fit.to_rds(tmp_path / "nowhere" / "x.rds", design=design, domain=domain)
    for call in (fit.to_rds, fit.r_script):
        with pytest.raises(InputError) as caught:
            call(tmp_path / "x.rds", design="design", domain=domain)
        assert caught.value.field == "design"
    with pytest.raises(InputError) as caught:
        fit.crosscheck("design", domain=domain)
    assert caught.value.field == "design"


def test_another_sample_is_refused(tmp_path):
    case, design, population = described("stratified_fraction")
    domain = case.columns["domain"]
    fit = pb.hajek(design, population, outcome="y", domain=domain)
    other = pb.survey_design(
        case.units.assign(y=case.units["y"].to_numpy()[::-1]),
        weights="w",
        strata=case.columns["strata"] or None,
    )
    # The same units and weights, hence the same estimates, but not the same variances.
    no_strata = pb.survey_design(case.units, weights="w")
    calls = (
        lambda design: fit.to_rds(tmp_path / "x.rds", design=design, domain=domain),
        lambda design: fit.r_script(design=design, domain=domain),
        lambda design: fit.crosscheck(design, domain=domain),
    )
    for call in calls:
        for another in (other, no_strata):
            with pytest.raises(InputError) as caught:
                call(another)
            assert caught.value.code == "other_units" and caught.value.field == "design"
        call(design)
