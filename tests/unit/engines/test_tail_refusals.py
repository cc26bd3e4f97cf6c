"""What the functions of evd, ismev and evir refuse before R is asked for anything."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest

from pybridge.engines import _tail_request as requests
from pybridge.engines import evd, evir, ismev
from pybridge.engines._evd_record import EvdFit
from pybridge.errors import InputError

X = np.random.default_rng(1).exponential(size=200)
YEAR = pd.DataFrame({"year": np.arange(200.0), "same": 1.0, "twice": 2 * np.arange(200.0)})


@pytest.fixture(autouse=True)
def no_r(monkeypatch):
    """Any call of R is a failure here."""

    def call(*args, **words):
        raise AssertionError("R was called")

    monkeypatch.setattr(requests, "call_many", call)


def refused(code, field, function, *args, **words):
    with pytest.raises(InputError) as caught:
        function(*args, **words)
    error = caught.value
    assert (error.code, error.field) == (code, field), error
    assert error.expected is not None


@pytest.mark.parametrize("function", [evd.fpot, ismev.gpd_fit, ismev.pp_fit, evir.gpd])
@pytest.mark.parametrize(
    ("code", "scores"),
    [
        ("missing_values", [1.0, np.nan, 2.0]),
        ("infinite_values", [1.0, np.inf, 2.0]),
        ("not_numeric", ["a", "b"]),
        ("not_a_vector", [[1.0, 2.0]]),
        ("empty", []),
    ],
)
def test_scores(function, code, scores):
    refused(
        code,
        "data" if function is evir.gpd else "xdat" if function is not evd.fpot else "x",
        function,
        scores,
        0.5,
    )


@pytest.mark.parametrize("function", [evd.fpot, ismev.gpd_fit, ismev.pp_fit, evir.gpd])
def test_thresholds(function):
    refused("no_exceedances", "threshold", function, X, 1e9)
    refused("too_few_exceedances", "threshold", function, X, np.sort(X)[-4])
    refused("not_a_number", "threshold", function, X, "high")
    refused("not_a_number", "threshold", function, X, np.nan)


@pytest.mark.parametrize("function", [evd.fpot, ismev.gpd_fit, ismev.pp_fit, evir.gpd])
@pytest.mark.parametrize(
    ("code", "field", "words"),
    [
        ("unknown_option", "mode", {"mode": "careful"}),
        ("bad_level", "level", {"level": 95}),
        ("not_positive", "time_limit", {"time_limit": 0}),
    ],
)
def test_settings(function, code, field, words):
    refused(code, field, function, X, 0.5, **words)


@pytest.mark.parametrize(
    ("code", "field", "words"),
    [
        ("unknown_option", "model", {"model": "gev"}),
        ("not_positive", "npp", {"npp": 0}),
        ("not_a_bool", "cmax", {"cmax": 1}),
        ("not_a_bool", "std_err", {"std_err": "yes"}),
        ("bad_count", "r", {"cmax": True, "r": 0}),
        ("bad_count", "rlow", {"cmax": True, "rlow": 0.5}),
        ("bad_lower_threshold", "ulow", {"cmax": True, "ulow": 0.9}),
        ("illegal_combination", "mper", {"model": "pp", "mper": 100}),
        ("not_positive", "mper", {"mper": -1}),
        ("unknown_parameter", "loc", {"loc": 1.0}),
        ("unknown_parameter", "scale", {"mper": 100, "scale": 1.0}),
        ("unknown_parameter", "rlevel", {"rlevel": 2.0}),
        ("not_positive", "scale", {"scale": -1.0}),
        ("below_threshold", "rlevel", {"mper": 100, "rlevel": 0.4}),
        ("nothing_to_estimate", "shape", {"scale": 1.0, "shape": 0.1}),
        ("bad_start", "start", {"start": {"scale": 1.0}}),
        ("bad_start", "start", {"start": {"scale": 1.0, "shape": 0.1, "loc": 0.0}}),
        ("bad_start", "start", {"start": [1.0, 0.1]}),
        ("unknown_option", "method", {"method": "Newton"}),
        ("random_search", "method", {"method": "SANN"}),
        ("bad_control", "control", {"control": 5}),
        ("not_a_number", "control[maxit]", {"control": {"maxit": "many"}}),
        ("illegal_combination", "lower", {"lower": [0.0, -1.0]}),
    ],
)
def test_arguments_of_fpot(code, field, words):
    refused(code, field, evd.fpot, X, 0.5, **words)


def test_an_end_point_that_is_not_there():
    heavy = np.expm1(0.5 * X) / 0.5
    refused("no_end_point", "mper", evd.fpot, heavy, 0.5, mper=np.inf)


def a_fit(**changes):
    """A record of fpot as R would have given it."""
    names = {f.name for f in dataclasses.fields(EvdFit)}
    asked = requests.request("evd", "fpot", {"threshold": 0.5}, mode="guarded")
    words = dict.fromkeys(names, None) | {
        "request": asked,
        "inputs": {"x": X, "threshold": 0.5},
        "value": {},
        "conditions": (),
        "status": "converged",
        "engine_status": "successful",
        "param": {"scale": 1.0, "shape": 0.1},
        "standard_errors": {"scale": 0.1, "shape": 0.1},
        "covariance": np.eye(2),
        "names": ("scale", "shape"),
        "log_likelihood": -1.0,
        "n_exceedances": 100,
        "exact": {},
        "as_given": {},
    }
    return EvdFit(**{**words, **changes})


@pytest.mark.parametrize(
    ("code", "field", "words"),
    [
        ("unknown_parameter", "which", {"which": "loc"}),
        ("bad_level", "conf", {"conf": 1.0}),
        ("bad_level", "level", {"conf": 0.9, "level": 0.95}),
        ("bad_profile", "mesh", {"mesh": [0.1, -0.1]}),
        ("bad_profile", "mesh", {"mesh": 0.1}),
        ("bad_profile", "xmin", {"which": "shape", "xmin": [0.0, 1.0]}),
        ("not_a_bool", "convergence", {"convergence": "no"}),
        ("unknown_option", "method", {"method": "none"}),
    ],
)
def test_arguments_of_profile(code, field, words):
    refused(code, field, evd.profile, a_fit(), **words)


def test_profiles_of_what_has_none():
    refused("not_a_fit", "fitted", evd.profile, X)
    refused("no_fit", "fitted", evd.profile, a_fit(names=(), status="failed"))
    errors = {"scale": np.nan, "shape": np.nan}
    refused("no_standard_errors", "fitted", evd.profile, a_fit(standard_errors=errors))
    one = a_fit(names=("scale",), standard_errors={"scale": 0.1})
    refused("unknown_parameter", "which", evd.profile, one)
    refused("not_a_fit", "object", evd.confint, X)
    refused("bad_level", "level", evd.confint, a_fit(), level=2)


@pytest.mark.parametrize(
    ("code", "field", "function", "args", "words"),
    [
        ("bad_limits", "tlim", evd.tcplot, ((1.0, 0.5),), {}),
        ("bad_limits", "tlim", evd.tcplot, ((1.0, 2.0, 3.0),), {}),
        ("bad_count", "nt", evd.tcplot, ((0.5, 1.0),), {"nt": 1}),
        ("no_exceedances", "threshold", evd.tcplot, ((0.5, 1e6),), {}),
        ("bad_level", "conf", evd.tcplot, ((0.5, 1.0),), {"conf": 0}),
        ("unknown_option", "model", evd.tcplot, ((0.5, 1.0),), {"model": "x"}),
        ("bad_limits", "tlim", evd.mrlplot, ((2.0, 1.0),), {}),
        ("not_a_bool", "pscale", evd.mrlplot, (), {"pscale": 1}),
        ("too_few_exceedances", "threshold", evd.mrlplot, ((0.1, np.sort(X)[-2]),), {}),
        ("bad_count", "r", evd.exiplot, ((0.5, 1.0),), {"r": -1}),
        ("bad_count", "r", evd.clusters, (1.0,), {"r": 0}),
        ("wrong_length", "u", evd.clusters, ([1.0, 2.0],), {}),
        ("no_exceedances", "threshold", evd.clusters, (1e6,), {}),
        ("bad_lower_threshold", "ulow", evd.clusters, (1.0,), {"ulow": 2.0}),
        ("no_exceedances", "threshold", evd.exi, (1e6,), {}),
        ("not_positive", "scale", evd.dgpd, (), {"scale": 0.0}),
        ("not_a_number", "shape", evd.pgpd, (), {"shape": None}),
        ("bad_probability", "p", evd.qgpd, (), {}),
    ],
)
def test_other_arguments_of_evd(code, field, function, args, words):
    refused(code, field, function, X, *args, **words)


def test_a_threshold_a_value_would_take_too_long():
    many = np.arange(100_000.0)
    refused("too_large", "nt", evd.mrlplot, many)
    refused("too_few_scores", "data", evd.mrlplot, X[:5])


@pytest.mark.parametrize("function", [ismev.gpd_fit, ismev.pp_fit])
@pytest.mark.parametrize(
    ("code", "field", "words"),
    [
        ("not_positive", "npy", {"npy": 0}),
        ("no_covariates", "sigl", {"sigl": 1}),
        ("missing_column", "shl", {"ydat": YEAR, "shl": "month"}),
        ("bad_count", "sigl", {"ydat": YEAR, "sigl": 4}),
        ("bad_count", "sigl", {"ydat": YEAR, "sigl": 0}),
        ("duplicate_name", "sigl", {"ydat": YEAR, "sigl": ["year", 1]}),
        ("wrong_length", "ydat", {"ydat": YEAR.head(10), "sigl": "year"}),
        ("missing_values", "ydat", {"ydat": YEAR.assign(year=np.nan), "sigl": "year"}),
        ("not_numeric", "ydat", {"ydat": YEAR.assign(year="a"), "sigl": "year"}),
        ("not_a_table", "ydat", {"ydat": np.array([["a"]] * 200), "sigl": 1}),
        ("constant_covariate", "sigl", {"ydat": YEAR, "sigl": "same"}),
        ("collinear_covariates", "shl", {"ydat": YEAR, "shl": ["year", "twice"]}),
        ("bad_link", "siglink", {"siglink": "log"}),
        ("bad_link", "shlink", {"shlink": np.exp}),
        ("wrong_length", "siginit", {"siginit": [1.0, 2.0]}),
        ("wrong_length", "shinit", {"ydat": YEAR, "shl": "year", "shinit": 0.1}),
        ("bad_count", "maxit", {"maxit": 0}),
        ("unknown_option", "nsloc", {"nsloc": 1}),
        ("random_search", "method", {"method": "SANN"}),
        ("wrong_length", "threshold", {"threshold": [0.5, 0.6]}),
    ],
)
def test_arguments_of_ismev_s_fits(function, code, field, words):
    others = {name: value for name, value in words.items() if name != "threshold"}
    refused(code, field, function, X, words.get("threshold", 0.5), **others)


def test_other_arguments_of_ismev():
    refused("bad_limits", "umin, umax", ismev.gpd_fitrange, X, 1.0, 0.5)
    refused("bad_count", "nint", ismev.gpd_fitrange, X, 0.5, 1.0, nint=1)
    refused("no_exceedances", "threshold", ismev.gpd_fitrange, X, 0.5, 1e6)
    refused("unknown_option", "colour", ismev.gpd_fitrange, X, 0.5, 1.0, colour=1)
    for function in (ismev.gpd_prof, ismev.gpd_profxi, ismev.gpd_diag):
        refused("not_a_fit", "z", function, a_fit(), *([100] if function is ismev.gpd_prof else []))
    refused("bad_limits", "umin, umax", ismev.mrl_plot, X, 1.0, 0.5)
    refused("bad_level", "conf", ismev.mrl_plot, X, conf=1)


def test_arguments_of_evir():
    refused("threshold_choice", "threshold", evir.gpd, X)
    refused("threshold_choice", "threshold", evir.gpd, X, 0.5, 20)
    refused("bad_count", "nextremes", evir.gpd, X, nextremes=200)
    refused("unknown_option", "method", evir.gpd, X, 0.5, method="ML")
    refused("unknown_option", "information", evir.gpd, X, 0.5, information="none")
