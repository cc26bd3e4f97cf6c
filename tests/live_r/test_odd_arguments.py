"""Odd arguments of R's functions end in one structured error, before R is called where possible."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pybridge.engines import emdi, evd, hbsae, ismev, metafor, sae
from pybridge.errors import EngineError, InputError
from pybridge.r import call

pytestmark = pytest.mark.r("sae", "emdi", "evd", "ismev", "hbsae", "metafor")

M = 12
RNG = np.random.default_rng(1)
AREA = pd.DataFrame({"d": [f"a{i}" for i in range(M)], "x": RNG.normal(size=M), "v": 1.0})
AREA["y"] = 1 + AREA["x"] + RNG.normal(size=M) * 1.5
RING = pd.DataFrame(
    (np.eye(M)[np.r_[1:M, 0]] + np.eye(M)[np.r_[M - 1, 0 : M - 1]]) / 2,
    index=AREA["d"],
    columns=AREA["d"],
)
UNITS = pd.DataFrame({"d": np.repeat(list("abcd"), 10), "x": RNG.normal(size=40), "w": 2.0})
UNITS["y"] = 10 + UNITS["x"] + RNG.normal(size=40)
SIZES = pd.DataFrame({"d": list("abcd"), "N": [50.0, 60, 40, 30]})
MEANS = pd.DataFrame({"d": list("abcd"), "x": [0.0, 0.1, 0.2, 0.3]})
STRATA = pd.DataFrame({"d": list("abcd"), "u": [50.0, 60, 40, 30]})
SCORES = RNG.exponential(size=200)

AREA_FITS = {
    "sae.mseFH": lambda t: sae.mseFH(t, "y ~ x", "v", domain="d"),
    "sae.mseSFH": lambda t: sae.mseSFH(t, "y ~ x", "v", RING, domain="d"),
    "emdi.fh": lambda t: emdi.fh("y ~ x", "v", t, "d"),
    "hbsae.fSAE_Area": lambda t: hbsae.fSAE_Area(t, "y", "v", "~ x", domain="d"),
    "metafor.rma_mv": lambda t: metafor.rma_mv(t, "y", "v", "~ x", "~ 1 | d"),
}


def refused(function, *arguments, **words):
    with pytest.raises(InputError) as caught:
        function(*arguments, **words)
    error = caught.value
    assert error.code and error.field and error.expected is not None
    return error


@pytest.mark.parametrize("name", AREA_FITS)
@pytest.mark.parametrize("column", ["x", "y", "v"])
def test_complex_columns_and_numbers_beyond_computing_are_refused(name, column):
    assert refused(AREA_FITS[name], AREA.assign(**{column: AREA[column] + 1j})).code == (
        "not_numeric"
    )
    huge = AREA.copy()
    huge.loc[0, column] = 1e300
    assert refused(AREA_FITS[name], huge).code in ("out_of_range", "variance_out_of_range")


@pytest.mark.parametrize("column", ["x", "y"])
def test_units_beyond_computing_are_refused(column):
    huge = UNITS.copy()
    huge.loc[0, column] = 1e200
    assert refused(sae.eblupBHF, huge, "y ~ x", "d", MEANS, SIZES).code == "out_of_range"


@pytest.mark.parametrize(
    "matrix", [RING + 1j, RING.astype(str), [[1, 2], [3]], "text"], ids=lambda m: type(m).__name__
)
def test_matrices_must_be_real_numbers(matrix):
    error = refused(sae.mseSFH, AREA, "y ~ x", "v", matrix, domain="d", mode="raw")
    assert (error.code, error.field) == ("not_numeric", "proxmat")
    outcome = AREA.set_index("d")["y"]
    error = refused(emdi.spatialcor_tests, outcome, matrix, mode="raw")
    assert (error.code, error.field) == ("not_numeric", "corMatrix")
    error = refused(metafor.rma_mv, AREA, "y", "v", random="~ 1 | d", W=matrix)
    assert (error.code, error.field) == ("not_numeric", "W")


@pytest.mark.parametrize("odd", [np.array([]), pd.Series([1.0]), [], {}, 3], ids=repr)
def test_a_domain_is_the_name_of_a_column(odd):
    for call_it in (
        lambda: sae.mseFH(AREA, "y ~ x", "v", domain=odd),
        lambda: sae.pssynt(UNITS.assign(g="u"), "y", "w", "g", STRATA, domain=odd),
        lambda: emdi.direct(odd, UNITS, "d"),
    ):
        assert refused(call_it).code in ("bad_name", "missing_column", "unknown_post_stratum")


@pytest.mark.parametrize("odd", [0, 1.5, True, "ab", print], ids=repr)
def test_selected_domains_are_a_list(odd):
    error = refused(sae.eblupBHF, UNITS, "y ~ x", "d", MEANS, SIZES, selectdom=odd)
    assert (error.code, error.field) == ("not_a_list", "selectdom")


def test_columns_that_a_function_needs_are_asked_for():
    for mode in ("raw", "guarded"):
        assert refused(sae.pssynt, UNITS, "y", None, "d", STRATA, mode=mode).field == "sweight"
        assert refused(sae.direct, UNITS, None, "d", "w", SIZES, mode=mode).field == "y"
    assert refused(emdi.direct, None, UNITS, "d").field == "y"


def test_direct_of_emdi_reads_its_options_first():
    for line in ("", "nonsense", "y; system('x')"):
        assert refused(emdi.direct, "y", UNITS, "d", threshold=line).field == "threshold"
    for totals in (0, "text", {}, ["a"], [np.nan]):
        assert refused(emdi.direct, "y", UNITS, "d", totals=totals).field == "totals"
    pairs = UNITS.assign(d=[(label, 1) for label in UNITS["d"]])
    assert emdi.direct("y", pairs, "d").to_frame()["domain"].iloc[0] == ("a", 1)


def test_a_time_limit_beyond_all_patience_is_none():
    assert call("selftest_echo", {"x": [1.0]}, time_limit=1e300).value["x"] == [1.0]


@pytest.mark.parametrize("odd", [None, "", [1, 2], b"x", print], ids=repr)
def test_tail_arguments(odd):
    assert refused(evd.exiplot, SCORES, (0.2, 1.0), r=odd, nt=3).field == "r"
    assert refused(evd.exi, SCORES, 1.0, ulow=np.array([])).field == "ulow"
    assert refused(evd.fpot, SCORES, 0.5, mper=np.array([1.0, 2.0])).field == "mper"
    assert refused(evd.fpot, SCORES, 0.5, mode=np.array([])).field == "mode"
    assert refused(evd.fpot, SCORES, 0.5, mode=pd.Series(["raw"])).field == "mode"


@pytest.mark.parametrize("odd", [1.5, np.nan, np.inf, print, [1.5], [None], {}], ids=repr)
def test_covariates_of_ismev_are_names_or_numbers(odd):
    ydat = pd.DataFrame({"t": np.arange(200.0)})
    assert refused(ismev.gpd_fit, SCORES, 0.5, ydat=ydat, sigl=odd).field == "sigl"


def test_every_error_of_r_says_what_to_look_for():
    with pytest.raises(EngineError) as caught:
        evd.fpot(SCORES, 0.5, mper=np.inf, mode="raw")
    assert caught.value.hint and caught.value.expected
    collinear = AREA.assign(z=AREA["x"])
    with pytest.raises(EngineError) as caught:
        sae.mseFH(collinear, "y ~ x + z", "v", mode="raw")
    assert "covariates that nearly determine each other" in caught.value.hint


@pytest.mark.parametrize("argument", ["random", "struct", "control", "R", "mods"])
@pytest.mark.parametrize("odd", [0, np.nan, b"x", print, np.array([1.0, 2.0])], ids=repr)
def test_arguments_of_metafor(argument, odd):
    words = {"mods": "~ x", "random": "~ 1 | d", argument: odd}
    assert refused(metafor.rma_mv, AREA, "y", "v", **words).field == argument


def test_a_prior_of_one_coefficient_is_kept_as_given():
    words = {"beta0": 0.0, "Omega0": 0.01, "domain": "d", "mode": "raw"}
    fit = hbsae.fSAE_Area(AREA, "y", "v", "~ 1", **words)
    assert fit.to_dict() and fit.summary()


@pytest.mark.parametrize("name", AREA_FITS)
def test_variances_too_far_apart_are_refused(name):
    tiny = AREA.copy()
    tiny.loc[0, "v"] = 1e-310
    assert refused(AREA_FITS[name], tiny).code


@pytest.mark.parametrize("rows", [0, 1, 2])
@pytest.mark.parametrize("name", AREA_FITS)
def test_next_to_no_rows(name, rows):
    assert refused(AREA_FITS[name], AREA[:rows]).code in (
        "empty_table",
        "too_few_domains",
        "unknown_domain",
        "single_group",
    )
