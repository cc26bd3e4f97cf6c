"""What emdi::fh is refused before R is called: combinations, words, tables, matrices, errors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pybridge.engines._emdi_fit import version
from pybridge.engines._emdi_legal import LEGAL, check_combination, combinations, legal_methods
from pybridge.engines._emdi_request import DEFAULTS, check_arguments, check_settings
from pybridge.engines.emdi import fh, legal_combinations
from pybridge.errors import InputError
from pybridge.smoothing import _emdi as adapter
from pybridge.smoothing.fay_herriot import fay_herriot
from tests.unit.engines.emdi_words import refused


def words(**changed):
    return {**DEFAULTS, **changed}


def table(m=12):
    x = np.linspace(0.0, 1.0, m)
    y = 2 + x + np.sin(7 * x)
    return pd.DataFrame({"d": [f"a{i}" for i in range(m)], "x": x, "y": y, "v": 0.3, "n": 30.0})


# ---------------------------------------------------------------------------- what is legal


def test_the_table_has_sixty_two_combinations_and_each_is_accepted():
    found = list(combinations())
    assert len({tuple(sorted(one.items(), key=str)) for one in found}) == 62
    for one in found:
        check_arguments(words(**one))
    shown = legal_combinations()
    assert len(shown) == 62 and shown["MSE"].sum() == 38
    assert set(shown["method"]) == set(legal_methods("no"))


def everything():
    for correlation in ("no", "spatial"):
        for transformation in ("no", "log", "arcsin", "logit"):
            for back in (None, "naive", "bc", "bc_crude", "bc_sm"):
                for method in legal_methods("no"):
                    for kind in (None, *sorted({k for row in LEGAL for k in row.mse_types})):
                        yield correlation, transformation, back, method, kind


def test_all_other_combinations_are_refused_naming_what_is_legal():
    legal = {
        (
            one["correlation"],
            one["transformation"],
            one["backtransformation"],
            one["method"],
            one.get("mse_type"),
        )
        for one in combinations()
    }
    count = 0
    for correlation, transformation, back, method, kind in everything():
        # emdi ignores backtransformation where there is nothing to transform back.
        key = (correlation, transformation, None if transformation == "no" else back, method, kind)
        asked = {
            "correlation": correlation,
            "transformation": transformation,
            "backtransformation": back,
            "method": method,
            "mse_type": kind,
        }
        if key in legal:
            check_combination(**asked)
            continue
        error = refused("illegal_combination", check_combination, **asked)
        assert error.field in asked and error.expected
        count += 1
    assert count > 3000


@pytest.mark.parametrize(
    ("asked", "field", "expected"),
    [
        (dict(method="amrl", transformation="log", backtransformation="bc_crude"), "method", "ml"),
        (dict(method="reml", correlation="spatial", transformation="log"), "transformation", "no"),
        (dict(method="me", correlation="spatial"), "method", "reblup"),
        (dict(method="reml", MSE=True, mse_type="boot"), "mse_type", "analytical"),
        (dict(method="ml", transformation="log"), "backtransformation", "bc_crude | bc_sm"),
        (dict(transformation="log", backtransformation="bc_sm"), "method", "ml"),
    ],
)
def test_the_error_says_what_goes_with_the_rest(asked, field, expected):
    error = refused("illegal_combination", check_arguments, words(**asked))
    assert error.field == field and expected in error.expected


@pytest.mark.parametrize(
    ("code", "changed"),
    [
        ("unknown_option", {"method": "REML"}),
        ("unknown_option", {"method": None}),
        ("unknown_option", {"transformation": "box.cox"}),
        ("unknown_option", {"correlation": "temporal"}),
        ("unknown_option", {"backtransformation": "sm"}),
        ("unknown_option", {"MSE": True, "mse_type": "bootstrap"}),
        ("not_a_bool", {"MSE": 1}),
        ("not_positive", {"k": 0.0}),
        ("not_positive", {"tol": -1e-4}),
        ("not_a_number", {"mult_constant": "1"}),
        ("bad_count", {"maxit": 0}),
        ("bad_count", {"seed": -1}),
        ("bad_count", {"B": (50, 0, 1)}),
        ("bad_count", {"B": 2.5}),
        ("illegal_combination", {"B": (50, 20), "method": "me"}),
        ("bad_interval", {"interval": (2.0, 1.0)}),
        ("bad_interval", {"interval": (-1.0, 1.0)}),
    ],
)
def test_words_and_numbers(code, changed):
    refused(code, check_arguments, words(**changed))


def test_a_bootstrap_needs_two_replicates():
    boot = dict(MSE=True, mse_type="pseudo", method="reblup")
    assert check_arguments(words(B=0, **boot))["B"] == (0, 0)
    refused("bad_count", check_arguments, words(B=1, **{**boot, "mse_type": "boot"}))
    assert check_arguments(words(B=np.array([7.0, 3.0])))["B"] == (7, 3)


def test_settings_of_our_own():
    refused("unknown_option", check_settings, mode="fast", level=0.95, time_limit=None)
    refused("bad_level", check_settings, mode="raw", level=95, time_limit=None)
    refused("not_positive", check_settings, mode="raw", level=0.9, time_limit=0)


# --------------------------------------------------------------------- tables, before R is there


@pytest.mark.parametrize(
    ("code", "change", "more"),
    [
        ("missing_column", {}, {"vardir": "w"}),
        ("missing_column", {}, {"domains": "county"}),
        ("missing_column", {}, {"fixed": "y ~ z"}),
        ("missing_column", {}, {"eff_smpsize": "size"}),
        ("bad_formula", {}, {"fixed": "y"}),
        ("bad_formula", {}, {"fixed": "y ~ ."}),
        ("unknown_function", {}, {"fixed": "y ~ system(x)"}),
        ("transformed_outcome", {}, {"fixed": "log(y) ~ x"}),
        ("offset_not_supported", {}, {"fixed": "y ~ x + offset(n)"}),
        ("duplicate_domain", {"d": "a0"}, {}),
        ("missing_values", {"d": [None] + ["b"] * 11}, {}),
        ("not_numeric", {"v": "0.3"}, {}),
        ("missing_covariate", {"x": [np.nan] + [1.0] * 11}, {}),
    ],
)
def test_bad_tables(code, change, more):
    arguments = {"fixed": "y ~ x", "vardir": "v", "domains": "d", **more}
    for mode in ("raw", "guarded"):
        refused(code, fh, combined_data=table().assign(**change), mode=mode, **arguments)


def test_one_and_text_one_are_one_label():
    frame = table().assign(d=[1, "1", *range(2, 12)])
    refused("duplicate_domain", fh, "y ~ x", "v", frame, "d")


@pytest.mark.parametrize(
    ("code", "change", "options"),
    [
        ("negative_variance", {"v": -0.1}, {}),
        ("all_variances_zero", {"v": 0.0}, {}),
        ("too_few_domains", {"y": [1.0, 2.0] + [np.nan] * 10}, {}),
        ("constant_outcome", {"y": 4.0}, {}),
        ("outside_range", {"y": [-1.0] + [2.0, 3.0] * 5 + [1.0]}, {"transformation": "log"}),
        ("missing_argument", {"y": [0.2, 0.4] * 6}, {"transformation": "arcsin"}),
        ("bad_size", {"y": [0.2, 0.4] * 6, "n": 0.0}, {"transformation": "arcsin"}),
        ("outside_range", {"y": [1.2, 0.4] * 6}, {"transformation": "logit"}),
        ("missing_argument", {}, {"correlation": "spatial"}),
        ("bad_errors", {}, {"method": "me"}),
        ("too_many_domains", {}, {"B": (50, 10**7)}),
    ],
)
def test_numbers_that_emdi_cannot_use(code, change, options):
    frame = table().assign(**change)
    back = {"log": "bc_crude", "arcsin": "naive", "logit": "naive"}
    more = dict(options)
    correlation = more.pop("correlation", None)
    if "transformation" in more:
        more["backtransformation"] = back[more["transformation"]]
    if code == "bad_size":
        more["eff_smpsize"] = "n"
    method = more.pop("method", "reml")
    asked = dict(variance="v", domain="d", engine="emdi", method=method, **more)
    if correlation:
        asked.update(correlation=correlation)
    refused(code, fay_herriot, "y ~ x", frame, **asked)


def test_options_that_emdi_does_not_have_and_words_in_any_case():
    error = refused(
        "unknown_option", fay_herriot, "y ~ x", table(), variance="v", engine="emdi", MAXITER=3
    )
    assert "mse_type" in error.expected and "eff_smpsize" in error.expected
    error = refused(
        "unknown_option", fay_herriot, "y ~ x", table(), variance="v", engine="emdi", method="FH"
    )
    assert "amrl_yl" in error.expected and "native" in error.hint
    refused(
        "illegal_combination",
        fay_herriot,
        "y ~ x",
        table(),
        variance="v",
        engine="emdi",
        method="AMRL",
        transformation="log",
        backtransformation="bc_crude",
    )


def test_many_domains_are_refused_naming_who_can():
    frame = table(m=9000)
    error = refused(
        "too_many_domains", fay_herriot, "y ~ x", frame, variance="v", domain="d", engine="emdi"
    )
    assert "native" in error.hint and "9000" in str(error.got)
    # A jackknife fits once more for each domain, a bootstrap once more for each replicate.
    for more in (dict(mse_type="jackknife"), dict(mse_type="boot", B=5000)):
        words = dict(transformation="arcsin", backtransformation="naive", eff_smpsize="n", **more)
        frame = table(m=700).assign(y=np.tile([0.2, 0.3, 0.4, 0.6, 0.5, 0.3, 0.7], 100))
        refused(
            "too_many_domains",
            fay_herriot,
            "y ~ x",
            frame,
            variance="v",
            domain="d",
            engine="emdi",
            **words,
        )


def test_a_batch_says_which_problem_is_wrong():
    from pybridge.smoothing._area_fit import AreaProblem

    few = AreaProblem(np.arange(2.0), np.ones(2), np.ones((2, 2)))
    with pytest.raises(InputError, match="problem 0"):
        adapter.fit_many([few, few])
    errors = adapter.fit_many([few, few], return_errors=True)
    assert [error.code for error in errors] == ["too_few_domains"] * 2


def test_versions_are_compared_as_numbers():
    assert version("2.2.10") > version("2.2.3") > version("2.2.2") == (2, 2, 2)
