"""Columns of objects in formulas: numbers are numbers, text is text, all else is refused."""

from __future__ import annotations

import decimal

import numpy as np
import pandas as pd
import pytest

from pybridge.errors import InputError
from pybridge.tables.area import area_table
from pybridge.tables.formula import design_columns


def table(values):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"y": rng.normal(size=12), "variance": 1.0})
    rows["z"] = pd.Series([values[i % len(values)] for i in range(12)], dtype=object)
    return rows


@pytest.mark.parametrize("values", [[1.0, 2.0, 4.0], [1, 2, 4], [1, 2.5, 4], [np.float64(1), 2.0]])
def test_objects_that_are_numbers_are_one_column(values):
    rows = table(values)
    found = area_table("y ~ z", rows)
    assert found.covariate_names == ("Intercept", "z")
    np.testing.assert_array_equal(found.covariates[:, 1], rows["z"].astype(float))
    assert design_columns("~ z", rows)[0] == ("z",)


def test_text_and_flags_stay_categories():
    assert area_table("y ~ z", table(["a", "b"])).covariate_names == ("Intercept", "z[T.b]")
    assert area_table("y ~ z", table([True, False])).covariate_names == ("Intercept", "z[T.True]")


@pytest.mark.parametrize(
    "values", [[1.0, "a"], [1, True], [decimal.Decimal(1), decimal.Decimal(2)]]
)
def test_other_objects_are_refused_by_name(values):
    for ask in (area_table, design_columns):
        with pytest.raises(InputError, match="the column 'z' holds neither") as caught:
            ask("y ~ z" if ask is area_table else "~ z", table(values))
        assert caught.value.code == "mixed_column" and caught.value.field == "formula"
