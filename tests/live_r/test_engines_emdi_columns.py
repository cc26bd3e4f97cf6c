"""Columns of emdi's tables as an R user has them: integers, text, and what is neither."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest

from pybridge.engines import emdi
from pybridge.engines._emdi_fit import prepare
from pybridge.errors import InputError
from pybridge.smoothing.fay_herriot import fay_herriot
from tests.live_r.emdi_tables import small

pytestmark = pytest.mark.r("emdi", "sae")

CODES = [100000, 200000, 300000]


def coded(absent=False):
    table = small(seed=4, m=24).assign(
        g=np.resize(CODES, 24), h=np.resize(["a", "B", "A", "b"], 24)
    )
    table["y"] += 2 * np.random.default_rng(1).normal(size=24)
    if absent:
        table.loc[5, "y"] = np.nan
    return table


def written(table):
    """The table as R code."""
    columns = [f"{name} = c({', '.join(map(_item, table[name]))})" for name in table]
    return f"d <- data.frame({', '.join(columns)}, stringsAsFactors = FALSE)\n"


def _item(value):
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, (int, np.integer)):
        return f"{value}L"
    return "NA" if np.isnan(value) else repr(float(value))


SHOWN = """f <- emdi::fh({formula}, "v", d, domains = "d")
show("names", rownames(f$model$coefficients))
show("beta", f$model$coefficients$coefficients)
"""


@pytest.mark.parametrize("term", ["as.factor(g)", "as.character(g)", "g"])
@pytest.mark.parametrize("mode", ["raw", "guarded"])
def test_whole_numbers_are_integers_in_r(term, mode, plain_r):
    table = coded()
    found = plain_r(written(table) + SHOWN.format(formula=f"y ~ x + {term}"))
    fit = emdi.fh(f"y ~ x + {term}", "v", table, "d", mode=mode)
    assert list(fit.request.covariate_names) == found["names"]
    assert not any("e+05" in name for name in fit.request.covariate_names)
    np.testing.assert_allclose(fit.coefficients, found["beta"], rtol=1e-4, atol=1e-6)
    script = plain_r(fit.r_script() + 'show("estimate", result$estimate)\n')
    np.testing.assert_array_equal(script["estimate"], fit.estimate)


def test_whole_numbers_beyond_32_bits_are_doubles():
    table = coded().assign(n=2**31 + np.arange(24) ** 2, k=2**31 - 1 - np.arange(24))
    columns = prepare("y ~ g + n + k", "v", table, "d").columns
    kinds = {name: columns[name].dtype for name in "gnkyv"}
    assert kinds == {"g": np.int32, "k": np.int32, "n": float, "y": float, "v": float}


@pytest.mark.parametrize("absent", [False, True])
def test_levels_of_text_are_r_s_own(absent, plain_r):
    table = coded(absent)
    found = plain_r(written(table.dropna()) + SHOWN.format(formula="y ~ x + h"))
    fit = emdi.fh("y ~ x + h", "v", table, "d")
    assert list(fit.request.covariate_names) == found["names"]
    np.testing.assert_allclose(fit.coefficients, found["beta"], rtol=1e-4, atol=1e-6)
    script = plain_r(fit.r_script() + 'show("estimate", result$estimate)\n')
    np.testing.assert_array_equal(script["estimate"], fit.estimate)


WORDS = {"variance": "v", "domain": "d", "engine": "native"}


@pytest.mark.parametrize("kind", [float, int, bool, np.float64])
def test_objects_that_are_numbers_are_numbers(kind):
    values = [kind(value) for value in np.resize([0, 1, 3], 24)]
    table = coded().assign(z=pd.Series(values, dtype=object))
    plain = table.assign(z=np.array(values))
    fits = [emdi.fh("y ~ x + z", "v", one, "d") for one in (table, plain)]
    assert fits[0].request.covariate_names == fits[1].request.covariate_names
    assert len(fits[0].coefficients) == 3
    np.testing.assert_array_equal(fits[0].estimate, fits[1].estimate)
    fits = [fay_herriot("y ~ x + z", one, **WORDS).fit for one in (table, plain)]
    assert len(fits[0].coefficients) == 3
    np.testing.assert_array_equal(fits[0].estimate, fits[1].estimate)


OTHERS = {
    "mixed": [1.0, "a", 2.0],
    "true among numbers": [1.5, True, 2.0],
    "decimal": [decimal.Decimal(i) for i in (1, 2, 4)],
    "date": [datetime.date(2020, 1, i) for i in (1, 2, 4)],
    "datetime": [pd.Timestamp(2020, 1, i) for i in (1, 2, 4)],
}


@pytest.mark.parametrize("values", OTHERS.values(), ids=OTHERS)
def test_objects_that_are_neither_numbers_nor_text_are_refused(values):
    table = coded().assign(z=[values[i % 3] for i in range(24)])
    for ask in (
        lambda: emdi.fh("y ~ x + z", "v", table, "d"),
        lambda: emdi.fh("y ~ x + z", "v", table, "d", mode="raw"),
        lambda: fay_herriot("y ~ x + z", table, **WORDS),
    ):
        with pytest.raises(InputError, match="the column 'z' holds neither numbers") as caught:
            ask()
        assert caught.value.code == "mixed_column"


def test_a_formula_without_columns_or_with_two_tildes_is_refused():
    table = coded()
    with pytest.raises(InputError, match="no coefficient"):
        emdi.fh("y ~ 0", "v", table, "d")
    for mode in ("raw", "guarded"):
        with pytest.raises(InputError, match="more than one '~'"):
            emdi.fh("y ~ x ~ g", "v", table, "d", mode=mode)


@pytest.mark.parametrize("mode", ["raw", "guarded"])
def test_a_column_may_be_label_and_covariate(mode, plain_r):
    table = small(seed=6).assign(idx=np.arange(20) + 1)
    fit = emdi.fh("y ~ idx", "v", table, domains="idx", mode=mode)
    assert fit.request.covariate_names == ("(Intercept)", "idx")
    assert list(fit.domains) == list(range(1, 21))
    code = 'f <- emdi::fh(y ~ idx, "v", d, domains = "idx")\nshow("fh", f$ind$FH)\n'
    np.testing.assert_allclose(fit.estimate, plain_r(written(table) + code)["fh"], rtol=1e-4)
    script = plain_r(fit.r_script() + 'show("estimate", result$estimate)\n')
    np.testing.assert_array_equal(script["estimate"], fit.estimate)
