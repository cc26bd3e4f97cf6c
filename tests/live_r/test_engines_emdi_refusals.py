"""What emdi would stop at with words that do not help."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pybridge.engines import emdi, sae
from pybridge.errors import EngineError, InputError
from tests.live_r.emdi_tables import small

pytestmark = pytest.mark.r("emdi", "sae")


def units():
    return small(seed=1, m=40).assign(g=np.resize(list("abcd"), 40))


@pytest.mark.parametrize("text", ["function(y, weights, threshold) {", "'function'", "function"])
def test_text_that_is_no_r_function_is_named(text):
    with pytest.raises(InputError, match="custom_indicator 'mine' is no") as caught:
        emdi.direct("y", units(), "g", custom_indicator={"mine": text})
    assert caught.value.code == "bad_function" and caught.value.field == "custom_indicator"
    with pytest.raises(InputError, match="threshold is no") as caught:
        emdi.direct("y", units(), "g", threshold=text)
    assert caught.value.field == "threshold"


def test_an_error_of_r_carries_emdi_s_name():
    with pytest.raises(EngineError, match="R stopped in emdi::direct"):
        emdi.direct("y", units(), "g", threshold="function(y, weights) stop('mine')")


def test_indicators_and_lines_of_r_functions_are_what_they_compute():
    found = emdi.direct(
        "y",
        units(),
        "g",
        threshold="function(y, weights) 1",
        custom_indicator={"top": "function(y, weights, threshold) max(y) - threshold"},
    )
    most = units().groupby("g")["y"].max().to_numpy() - 1
    np.testing.assert_allclose(found.estimate[:, found.names.index("top")], most, rtol=1e-12)


def test_constant_estimates_have_no_spatial_correlation():
    names = list("abcd")
    w = pd.DataFrame(1 / 3 * (1 - np.eye(4)), index=names, columns=names)
    with pytest.raises(InputError, match="are the same") as caught:
        emdi.spatialcor_tests(pd.Series(2.0, index=names), w)
    assert caught.value.code == "constant_outcome"
    found = emdi.spatialcor_tests(pd.Series([1.0, 2, 3, 5], index=names), w)
    assert found.values[0] == pytest.approx(-1 / 3)


@pytest.mark.parametrize("right", ["x + y", "y", "x + x:y"])
def test_the_outcome_is_no_covariate(right):
    """R drops it, or takes columns from memory: delete.response() leaves its terms there."""
    table = small(seed=1, m=40)
    for mode in ("raw", "guarded"):
        with pytest.raises(InputError, match="outcome stands on the right-hand side"):
            emdi.fh(f"y ~ {right}", "v", table, "d", mode=mode)
    with pytest.raises(InputError, match="outcome stands on the right-hand side"):
        sae.mseFH(table, f"y ~ {right}", "v", domain="d")
    with pytest.raises(InputError, match="outcome stands on the right-hand side"):
        means = pd.DataFrame({"d": table["d"], "x": table["x"], "y": 1.0})
        sae.eblupBHF(table, f"y ~ {right}", "d", means, means[["d", "y"]])
    assert sae.mseFH(table, "y ~ x + I(y^2)", "v", domain="d").status  # another column


@pytest.mark.parametrize("absent", [[0, 4], [0, 1]])  # one level, two of three
def test_a_factor_that_the_other_domains_have_not_all_of(absent):
    table = small(seed=1, m=40).assign(g=np.resize([7, 8, 9, 8], 40))
    table["y"] += np.random.default_rng(2).normal(size=40)
    table.loc[absent, "y"] = np.nan
    with pytest.raises(EngineError, match="emdi::fh") as stopped:
        emdi.fh("y ~ x + factor(g)", "v", table, "d", mode="raw", method="ml")
    assert "categorical" in stopped.value.hint
    with pytest.raises(InputError) as refused:
        emdi.fh("y ~ x + factor(g)", "v", table, "d", method="ml")
    assert "categories" in refused.value.hint
    start = emdi.fh("y ~ x", "v", table, "d", mode="raw", method="ml")
    with pytest.raises(EngineError, match="R stopped in emdi::step") as stopped:
        emdi.step(start, "~ x + factor(g)", combined_data=table)
    assert "categorical" in stopped.value.hint
    table["g"] = table["g"].astype("category")
    for mode in ("raw", "guarded"):
        assert np.isfinite(emdi.fh("y ~ x + g", "v", table, "d", mode=mode).estimate).all()
