"""svyglm: what R says of its search, and what it does not."""

from __future__ import annotations

import numpy as np
import pytest

from pybridge import datasets
from pybridge.engines import survey

pytestmark = [
    pytest.mark.r("survey"),
    pytest.mark.filterwarnings("ignore::pybridge.errors.EngineWarning"),
]


@pytest.fixture(scope="module")
def table():
    return datasets.from_r("survey", "apistrat", file="api")


def design(table, mode, **words):
    return survey.svydesign(words.pop("ids", 1), table, weights="~pw", mode=mode, **words)


def said(fit, words):
    return any(words in line for line in fit.conditions)


CALLS = {
    "linear": ("api00 ~ ell", {}),
    "logit": ("I(api00 > 700) ~ ell + meals", {"family": "quasibinomial"}),
    "few": ("I(api00 > 700) ~ ell", {"family": "quasibinomial", "maxit": 2}),
    "apart": ("I(api00 > 700) ~ api00", {"family": "quasibinomial"}),
    "apart_warned": ("I(api00 > 700) ~ api00", {"family": "binomial"}),
    "cell": ("I(stype == 'H' | api00 > 700) ~ stype", {"family": "quasibinomial"}),
    "empty": ("I(api00 * (stype != 'H')) ~ stype", {"family": "quasipoisson"}),
    "counts": ("enroll ~ stype", {"family": "quasipoisson"}),
    "probit": ("I(api00 > 700) ~ ell", {"family": "quasibinomial", "link": "probit"}),
}


@pytest.mark.parametrize("mode", ["raw", "guarded"])
def test_the_engines_verdict_is_rs_flag(table, mode, plain_r):
    code = "suppressPackageStartupMessages(library(survey)); data(api)\n"
    code += "strat <- svydesign(id = ~1, weights = ~pw, data = apistrat)\n"
    for name, (formula, words) in CALLS.items():
        family = words.get("family", "gaussian")
        link = f"'{words['link']}'" if "link" in words else ""
        more = f", maxit = {words['maxit']}" if "maxit" in words else ""
        code += (
            f"x <- suppressWarnings(svyglm({formula}, strat, family = {family}({link}){more}))\n"
        )
        code += f'show("{name}", c(x$converged, x$boundary, coef(x)))\n'
    found = plain_r(code)
    for name, (formula, words) in CALLS.items():
        fit = survey.svyglm(formula, design(table, mode), **words)
        converged, boundary, *coefficients = found[name]
        np.testing.assert_allclose(fit.estimate, coefficients, rtol=1e-6, err_msg=name)
        assert (fit.engine_status == "converged") == bool(converged), name
        assert boundary == 0 and said(fit, "did not converge") != bool(converged), name
        if mode == "raw":
            assert fit.status == fit.engine_status, name


def test_separation_is_no_convergence_guarded_whatever_r_says(table):
    whole = design(table, "guarded")
    verdicts = {}
    for name, (formula, words) in CALLS.items():
        fit = survey.svyglm(formula, whole, **words)
        verdicts[name] = fit.status, said(fit, "separate the outcome")
    apart = ("apart", "apart_warned", "cell", "empty")
    for name, verdict in verdicts.items():
        if name == "few":
            assert verdict == ("not_converged", False)
        else:
            expected = ("not_converged", True) if name in apart else ("converged", False)
            assert verdict == expected, name
    # R calls this one converged, and does not warn.
    fit = survey.svyglm(CALLS["empty"][0], whole, family="quasipoisson")
    assert fit.engine_status == "converged" and not said(fit, "R warning")


@pytest.mark.parametrize("mode", ["raw", "guarded"])
def test_fits_without_degrees_of_freedom_say_so(table, mode):
    expected = "weak_identification" if mode == "guarded" else "converged"
    few = design(table[table["stype"] == "E"].iloc[:3], mode)
    fit = survey.svyglm("api00 ~ ell + meals", few)
    assert fit.status == expected and said(fit, "saturated")
    fit = survey.svyglm("api00 ~ ell + meals", design(table, mode, ids="~stype"))
    assert fit.degrees_of_freedom <= 0 and np.isnan(fit.lower).all()
    assert fit.status == expected and said(fit, "no residual degrees of freedom")
