"""Every legal combination of emdi::fh: raw bit for bit plain Rscript, guarded beside it."""

from __future__ import annotations

import numpy as np
import pytest

from pybridge.engines._emdi_fit import fit_many, prepare
from pybridge.engines._emdi_legal import combinations
from validation.cases.emdi import load, name_of

pytestmark = [pytest.mark.r("emdi"), pytest.mark.slow]

CASE = load()
COMBINATIONS = tuple(combinations())
NAMES = [name_of(one) for one in COMBINATIONS]
# saeRobust's spatial fits take seconds: fewer domains, fewer replicates.
SLOW = [k for k, one in enumerate(COMBINATIONS) if one["method"].startswith("reblup")]


def words(k, mode):
    one = {**CASE.words(COMBINATIONS[k]), "mode": mode, "time_limit": 900.0}
    if k in SLOW:
        one["B"] = (2, 0)
    if mode == "raw" and one["corMatrix"] is not None:
        one["corMatrix"] = one["corMatrix"].to_numpy()
    return one


def batch(mode):
    return dict(zip(NAMES, fit_many([prepare(**words(k, mode)) for k in range(len(NAMES))])))


@pytest.fixture(scope="module")
def raw():
    return batch("raw")


@pytest.fixture(scope="module")
def guarded():
    return batch("guarded")


def r_call(k):
    """The call as an R user writes it, and what is shown of the answer."""
    one = words(k, "raw")
    more = [f'{name} = "{one[name]}"' for name in ("method", "transformation", "correlation")]
    for name in ("backtransformation", "eff_smpsize", "mse_type"):
        if one.get(name):
            more.append(f'{name} = "{one[name]}"')
    if one["corMatrix"] is not None:
        more.append("corMatrix = W")
    if one["Ci"] is not None:
        more.append("Ci = Ci")
    return (
        f'fit <- suppressMessages(suppressWarnings(fh({one["fixed"]}, "{one["vardir"]}", data,\n'
        f'  "domain", {", ".join(more)}, MSE = {str(one["MSE"]).upper()}, B = c({one["B"][0]}, 0)'
        f')))\nshow("estimate{k}", fit$ind$FH); show("mse{k}", fit$MSE$FH)\n'
        f'show("beta{k}", fit$model$coefficients[[1]])\n'
        f'show("error{k}", fit$model$coefficients[[2]])\n'
        "v <- fit$model$variance\n"
        f'show("variance{k}", if (is.data.frame(v)) v$variance else v)\n'
        f'show("criteria{k}", unlist(fit$model$model_select))\n'
        f'show("effect{k}", fit$model$random_effects)\n'
    )


@pytest.fixture(scope="module")
def plain(plain_r):
    numbers = {
        name: ", ".join("NA" if np.isnan(v) else float(v).hex() for v in CASE.frame[name])
        for name in CASE.frame.columns[1:]
    }
    columns = ", ".join(f"{name} = c({text})" for name, text in numbers.items())
    labels = ", ".join(f'"{label}"' for label in CASE.frame["domain"])
    flat = ", ".join(float(v).hex() for v in CASE.proximity.to_numpy().ravel(order="F"))
    errors = ", ".join(float(v).hex() for v in CASE.errors.ravel(order="F"))
    code = (
        "suppressPackageStartupMessages(library(emdi))\n"
        f"data <- data.frame(domain = c({labels}), {columns})\n"
        f"W <- matrix(c({flat}), {len(CASE.proximity)})\n"
        f"Ci <- array(c({errors}), c(2, 2, {len(CASE.frame)}))\n"
    )
    return plain_r(code + "".join(map(r_call, range(len(NAMES)))), timeout=900)


def test_there_are_sixty_two():
    assert len(set(NAMES)) == 62


@pytest.mark.parametrize("k", range(len(NAMES)), ids=NAMES)
def test_raw_is_the_plain_call_to_the_last_bit(raw, plain, k):
    fit = raw[NAMES[k]]

    def same(ours, name):
        np.testing.assert_array_equal(np.asarray(ours), np.array(plain[f"{name}{k}"]))

    same(fit.estimate, "estimate")
    same(fit.coefficients, "beta")
    same(fit.standard_errors, "error")
    same(fit.random_effects[~fit.out_of_sample], "effect")
    same([fit.model_variance], "variance")
    if COMBINATIONS[k]["MSE"]:
        same(fit.mse, "mse")
    else:
        assert np.isnan(fit.mse).all() and f"mse{k}" not in plain
    if f"criteria{k}" in plain:
        same(list(fit.criteria.values()), "criteria")


@pytest.mark.parametrize("k", range(len(NAMES)), ids=NAMES)
def test_raw_is_the_answer_that_was_kept(raw, k):
    fit, name = raw[NAMES[k]], NAMES[k]
    close = {"rtol": 1e-9, "atol": 1e-12}
    np.testing.assert_allclose(fit.model_variance, CASE.answer(name, "variance")[0], **close)
    np.testing.assert_allclose(fit.estimate, CASE.answer(name, "estimate"), **close)
    np.testing.assert_allclose(fit.coefficients, CASE.answer(name, "coefficient"), **close)
    if COMBINATIONS[k]["MSE"] and not (k in SLOW and COMBINATIONS[k]["mse_type"] == "boot"):
        np.testing.assert_allclose(fit.mse, CASE.answer(name, "mse"), **close)


@pytest.mark.parametrize("k", range(len(NAMES)), ids=NAMES)
def test_guarded_answers_for_every_domain(raw, guarded, k):
    fit, theirs, one = guarded[NAMES[k]], raw[NAMES[k]], COMBINATIONS[k]
    assert fit.status in ("converged", "boundary"), fit.conditions
    assert np.isfinite(fit.estimate).all()
    assert list(fit.domain_status[fit.out_of_sample]) == ["out_of_sample"] * 2
    assert list(fit.domains) == list(CASE.frame["domain"])
    if one["MSE"]:
        assert np.isfinite(fit.mse).all()
    inside = ~fit.out_of_sample
    robust = one["method"].startswith("reblup")
    if one["method"] != "me":
        assert fit.model_variance == pytest.approx(theirs.model_variance, rel=0.03)
        scale = np.abs(theirs.estimate[inside]).max()
        np.testing.assert_allclose(fit.estimate[inside], theirs.estimate[inside], atol=3e-3 * scale)
    if not robust:
        assert fit.exact["model_variance"] >= 0
    transformed = one["transformation"] != "no"
    finite = np.isfinite(fit.intervals).all()
    assert finite if one["MSE"] or transformed else not finite
    if transformed:
        assert (fit.intervals[:, 0] <= fit.intervals[:, 1]).all()
        assert any("intervals" in line for line in fit.conditions)
