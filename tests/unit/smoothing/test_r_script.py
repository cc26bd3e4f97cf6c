"""The R script of a fit: exact numbers, text that any locale reads, only what R can do."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from pybridge.errors import InputError
from pybridge.smoothing._r_script import _number, _text
from pybridge.smoothing.fay_herriot import fay_herriot


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (-3.0, "-3"),
        (0.0, "0"),
        (-0.0, "-0"),
        (0.1, "0x1.999999999999ap-4"),
        (-2.5, "-0x1.4000000000000p+1"),
        (1e300, (1e300).hex()),
        (5e-324, (5e-324).hex()),
        (np.nan, "NA_real_"),
        (2.0**60, (2.0**60).hex()),
    ],
)
def test_numbers_are_exact(value, text):
    assert _number(value) == text
    if value == value:
        assert float.fromhex(text if "x" in text else f"{float(text).hex()}") == value


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("a b", '"a b"'),
        ('a"b\\c', '"a\\"b\\\\c"'),
        ("é", '"\\u00e9"'),
        ("가", '"\\u{ac00}"'),
        ("😀", '"\\U{1f600}"'),
        ("x\ny", '"x\\u000ay"'),
    ],
)
def test_text_is_plain_ascii(given, text):
    assert _text(given) == text


def frame(m=300):
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"name": [f"도 {i}" for i in range(m)], "f": rng.normal(size=m)})
    table["variance"] = rng.uniform(0.5, 1, m)
    table["estimate"] = table["f"] + rng.normal(size=m)
    return table


def test_the_script_holds_the_data_and_the_call(tmp_path):
    table = frame()
    fit = fay_herriot("estimate ~ f", table, domain="name", engine="native", method="ML")
    path = tmp_path / "fit.R"
    text = fit.r_script(path)
    assert path.read_text(encoding="utf-8") == text
    assert text.isascii() and max(map(len, text.splitlines())) < 200
    call = re.search(r"sae::mseFH\([^)]*\)", text).group()
    assert 'method = "ML"' in call and "estimate ~ X - 1" in call
    found = [float.fromhex(x) for x in re.findall(r"-?0x[0-9a-f.]+p[-+]\d+", text)]
    for column in ("estimate", "variance", "f"):
        assert set(table[column]) <= set(found)
    assert "sae_fh_outside" not in text


def test_domains_without_estimates_bring_the_function_that_predicts_them():
    table = frame(m=10)
    table.loc[3, "estimate"] = np.nan
    text = fay_herriot("estimate ~ f", table, engine="native").r_script()
    assert text.count("sae_fh_outside <- function") == 1
    assert text.count("{") == text.count("}")


def test_a_method_that_r_has_not_is_refused():
    fit = fay_herriot("estimate ~ f", frame(m=10), engine="native", method="PR")
    with pytest.raises(InputError) as caught:
        fit.r_script()
    assert caught.value.code == "not_available"
