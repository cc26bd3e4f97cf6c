"""Formulas in R's words: what is let through, what R is given, and what is refused unread."""

from __future__ import annotations

import pandas as pd
import pytest

from pybridge.engines._r_formula import FUNCTIONS, read_formula
from pybridge.errors import InputError

TABLE = pd.DataFrame(columns=["y", "x", "a b", "소득", "if", "g", "T", ".column1."], dtype=float)


@pytest.mark.parametrize(
    ("formula", "code", "columns"),
    [
        ("y ~ x", "y ~ x", ["y", "x"]),
        ("y~x*g-1", "y ~ x * g - 1", ["y", "x", "g"]),
        ("y ~ `a b`", "y ~ .column2.", ["y", "a b"]),
        ("y ~ 소득 + `if`", "y ~ .column2. + .column3.", ["y", "소득", "if"]),
        ("y ~ `x`", "y ~ x", ["y", "x"]),
        ("y ~ T", "y ~ T", ["y", "T"]),
        ("y ~ log1p(x) + I(x^2)", "y ~ log1p ( x ) + I ( x ^ 2 )", ["y", "x"]),
        ("y ~ poly(x, 2, raw = TRUE)", "y ~ poly ( x , 2 , raw = TRUE )", ["y", "x"]),
        (
            'y ~ relevel(g, ref = "가")',
            'y ~ relevel ( g , ref = "\\u{ac00}" )',
            ["y", "g"],
        ),
        ("y ~ x %in% g", "y ~ x %in% g", ["y", "x", "g"]),
        ("y ~ ifelse(x >= 1e-3, 0x1F, 2L)", "y ~ ifelse ( x >= 1e-3 , 0x1F , 2L )", ["y", "x"]),
    ],
)
def test_what_r_is_given(formula, code, columns):
    read = read_formula(formula, TABLE)
    assert read.code == code and list(read.columns) == columns
    assert read.code.isascii() and read.outcome == "y" and not read.offset


def test_terms_come_back_in_the_words_of_the_user():
    read = read_formula("y ~ 소득 * `a b`", TABLE)
    assert read.label("factor(.column2.)3:.column3.") == "factor(소득)3:a b"


def test_columns_that_go_with_a_formula_have_names_too():
    read = read_formula("y ~ x", TABLE, also=["소득", "x"])
    assert dict(read.names) == {"y": "y", "x": "x", "소득": ".column2."}
    assert list(read.columns) == ["y", "x"]


def test_a_left_hand_side_that_is_not_a_column():
    assert read_formula("log(y) ~ x", TABLE).outcome is None
    assert read_formula("y + x ~ g", TABLE).outcome is None
    assert read_formula("y ~ offset(x)", TABLE).offset


@pytest.mark.parametrize(
    ("formula", "code"),
    [
        ("", "bad_formula"),
        ("y", "bad_formula"),
        ("~ x", "bad_formula"),
        ("y ~ .", "bad_formula"),
        ("y ~ z", "missing_column"),
        ("y ~ x; x", "bad_formula"),
        ("y ~ x\n@ x", "bad_formula"),
        ("y ~ x$y", "bad_formula"),
        ("y ~ x[1]", "bad_formula"),
        ("y ~ {x}", "bad_formula"),
        ("y ~ system('ls')", "unknown_function"),
        ("y ~ eval(x)", "unknown_function"),
        ("y ~ `system`(x)", "missing_column"),
        ("y ~ base::system(x)", "unknown_function"),
        ("y ~ function(x) x", "unknown_function"),
        ("y ~ \\(x) x", "bad_formula"),
        ("y ~ ns(x)", "unknown_function"),
    ],
)
def test_what_is_refused(formula, code):
    with pytest.raises(InputError) as caught:
        read_formula(formula, TABLE)
    assert caught.value.code == code and caught.value.field == "formula"


def test_no_function_that_reaches_outside_is_allowed():
    dangerous = "system eval parse get assign library source file do.call Recall <- <<- :: $ [ {"
    assert not set(dangerous.split()) & set(FUNCTIONS)
