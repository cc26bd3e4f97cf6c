"""Odd arguments of tail_scan, goodness_of_fit and bootstrap, and options of R's fits."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.errors import InputError
from pybridge.tails import _engine_options as checks
from pybridge.tails._evd import OPTIONS as EVD
from pybridge.tails._ismev import OPTIONS as ISMEV
from pybridge.tails.bootstrap import bootstrap

X = np.random.default_rng(1).pareto(3, 400)
FIT = pb.generalized_pareto(X, quantile=0.8, engine="native")
ODD = [None, True, 3, np.nan, "abc", b"bytes", [], {}, object(), pd.DataFrame(), pd.NA, slice(1)]


def refused(function, *arguments, code=None, field=None, **words):
    with pytest.raises(InputError) as caught:
        function(*arguments, **words)
    error = caught.value
    assert error.code == (code or error.code) and error.field == (field or error.field)
    assert error.expected is not None


@pytest.mark.parametrize("odd", ODD, ids=lambda x: type(x).__name__)
def test_a_fit_is_one_of_generalized_pareto(odd):
    refused(pb.goodness_of_fit, odd, code="wrong_type", field="fit")
    refused(bootstrap, odd, code="wrong_type", field="fit")


@pytest.mark.parametrize("odd", [None, 0, -1, 2.5, "9", 10**30, np.inf])
def test_replicates_are_a_count_that_ends(odd):
    refused(pb.tail_scan, X, engine="native", replicates=odd, field="replicates")
    refused(pb.goodness_of_fit, FIT, replicates=odd, field="replicates")
    refused(FIT.bootstrap, replicates=odd, field="replicates")


@pytest.mark.parametrize("odd", ODD, ids=lambda x: type(x).__name__)
def test_quantiles_and_scorers_of_a_scan(odd):
    refused(pb.tail_scan, X, engine="native", quantiles=odd, field="quantiles")
    if odd is not None:
        refused(pb.tail_scan, X, engine="native", scorer=odd, field="scorer")


def test_scores_that_are_none():
    refused(pb.tail_scan, {}, engine="native", code="empty", field="scores")
    masked = np.ma.array(X, mask=X > 1)
    refused(pb.tail_scan, masked, engine="native", code="missing_values")
    refused(pb.generalized_pareto, masked, quantile=0.8, engine="native", code="missing_values")
    whole = pb.generalized_pareto(np.ma.array(X), quantile=0.8, engine="native")
    assert whole.shape == FIT.shape


@pytest.mark.parametrize(
    ("name", "odd", "code"),
    [
        ("control", True, "not_a_mapping"),
        ("control", {"maxit": "many"}, "not_a_number"),
        ("control", {1: 2}, "not_a_mapping"),
        ("control", np.array([]), "not_a_mapping"),
        ("start", [1.0], "not_a_mapping"),
        ("start", {"scale": np.nan}, "not_a_number"),
        ("method", "newton", "unknown_option"),
        ("std.err", "no", "not_a_bool"),
        ("npp", "year", "not_a_number"),
        ("time_limit", pd.NA, "not_a_number"),
        ("shape", 0.1, "unknown_option"),
    ],
)
def test_options_of_evd(name, odd, code):
    refused(checks.checked_options, {name: odd}, EVD, "evd::fpot", code=code)


@pytest.mark.parametrize(
    ("name", "odd", "code"),
    [
        ("maxit", 1.5, "bad_count"),
        ("siginit", "a", "not_a_number"),
        ("ndeps", [np.nan, 1], "missing_values"),
        ("reltol", None, None),
    ],
)
def test_options_of_ismev(name, odd, code):
    if code is None:
        assert checks.checked_options({name: odd}, ISMEV, "ismev::gpd.fit") == {}
    else:
        refused(checks.checked_options, {name: odd}, ISMEV, "ismev::gpd.fit", code=code)


def test_every_option_has_a_check():
    assert {*EVD, *ISMEV, "time_limit"} == set(checks._KINDS)
