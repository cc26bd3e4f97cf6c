"""The policy of the border: what crosses to R, in which form, and what is refused by name."""

import enum
import numpy as np
import pandas as pd
import pytest

from pybridge.errors import InputError
from pybridge.r.convert import to_r
from pybridge.r.wire import NA_REAL, Factor


def sent(value):
    return to_r({"x": value})["x"]


def refused(value, name="x"):
    with pytest.raises(InputError) as caught:
        to_r({name: value})
    return caught.value


@pytest.mark.parametrize(
    "value",
    [
        np.array([1.5, 2.0]),
        np.array([1.5, 2.0], np.float32),
        pd.Series([1.5, 2.0]),
        pd.Series([1.5, 2.0], dtype="Float64"),
        [1.5, 2],
        (1.5, 2.0),
        pd.Index([1.5, 2.0]),
    ],
)
def test_numbers_become_doubles(value):
    out = sent(value)
    assert out.dtype == np.float64 and out.tolist() == [1.5, 2.0]


@pytest.mark.parametrize(
    "value",
    [np.array([1, 2]), np.array([1, 2], np.uint8), [1, 2], pd.Series([1, 2], dtype="Int64")],
)
def test_integer_vectors_become_doubles(value):
    assert sent(value).dtype == np.float64


def test_one_python_int_becomes_an_r_integer():
    assert sent(7).dtype == np.int32
    assert sent(np.int64(7)).dtype == np.int32


def test_scalars():
    assert sent(True).dtype == bool
    assert sent(0.5).tolist() == [0.5]
    assert sent("a") == ["a"]
    assert sent(None) is None
    assert sent(np.float64(0.5)).tolist() == [0.5]
    assert sent(np.array(3.0)).tolist() == [3.0]


@pytest.mark.parametrize(
    "value", [np.array([1.0, np.nan]), [1.0, float("nan")], pd.Series([1.0, None], dtype="Float64")]
)
def test_missing_numbers_become_na_real(value):
    pattern = np.array([NA_REAL]).view(np.uint64)[0]
    assert sent(value).view(np.uint64)[1] == pattern


def test_missing_numbers_do_not_change_the_callers_array():
    mine = np.array([1.0, np.nan])
    before = mine.view(np.uint64).tolist()
    sent(mine)
    assert mine.view(np.uint64).tolist() == before


def test_only_missing_numbers_stay_numbers():
    assert sent([float("nan")] * 2).dtype == np.float64


@pytest.mark.parametrize(
    "value",
    [
        ["NA", None, "b"],
        pd.Series(["NA", None, "b"]),
        pd.Series(["NA", pd.NA, "b"], dtype="string"),
        np.array(["NA", None, "b"], dtype=object),
        pd.Series(["NA", float("nan"), "b"], dtype=object),
    ],
)
def test_text_keeps_na_apart_from_missing(value):
    assert sent(value) == ["NA", None, "b"]


def test_text_arrays_of_numpy():
    assert sent(np.array(["a", "서울"])) == ["a", "서울"]


def test_categoricals_become_factors():
    out = sent(pd.Series(pd.Categorical(["b", None, "a"], categories=["b", "a"])))
    assert isinstance(out, Factor)
    assert out.codes.tolist() == [0, -1, 1] and out.levels == ("b", "a")


def test_tables_become_lists_of_columns():
    out = sent(pd.DataFrame({"이름": ["a"], "y": [1.0]}))
    assert out["이름"] == ["a"] and out["y"].tolist() == [1.0]


def test_matrices_keep_their_shape():
    assert sent(np.ones((2, 3))).shape == (2, 3)
    assert sent(np.ones((2, 3), int)).dtype == np.float64


@pytest.mark.parametrize(
    "value", [2**31, -(2**31), [0, 2**31], np.array([2**40]), 10**30]
)
def test_integers_beyond_32_bits_are_refused(value):
    error = refused(value, "population")
    assert error.code == "integer_too_large" and error.field == "population"


@pytest.mark.parametrize("value", [2**31 - 1, -(2**31) + 1, np.array([2**31 - 1], np.uint64)])
def test_integers_of_32_bits_pass(value):
    assert int(np.asarray(sent(value))[0]) == int(np.asarray(value).ravel()[0])


def test_nullable_unsigned_integers():
    assert sent(pd.Series([1, 2], dtype="UInt32")).tolist() == [1.0, 2.0]
    error = refused(pd.Series([2**63 + 5], dtype="UInt64"), "count")
    assert error.code == "integer_too_large" and error.got == 2**63 + 5


@pytest.mark.parametrize("dtype", ["Int64", "boolean"])
def test_nullable_columns_with_gaps_are_refused(dtype):
    error = refused(pd.Series([1, None], dtype=dtype), "county")
    assert error.code == "cannot_cross" and error.field == "county" and "float64" in error.hint


@pytest.mark.parametrize(
    "value",
    [
        ["a", 1],
        [1.0, "a"],
        [True, 1],
        np.array([1, "a"], dtype=object),
        pd.Series([1.0, pd.NA], dtype=object),
        [object()],
    ],
)
def test_mixed_columns_are_refused(value):
    assert refused(value, "f").field == "f"


@pytest.mark.parametrize(
    "value",
    [
        np.array([1j]),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        pd.Series(pd.to_datetime(["2020-01-01"])),
        np.ma.masked_array([1.0], mask=[True]),
        object(),
        {1, 2},
        np.array([["a"]]),
    ],
)
def test_what_r_has_no_plain_form_for_is_refused(value):
    assert refused(value, "f").code == "cannot_cross"


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_text_that_r_cannot_hold_is_refused(text):
    assert refused(["ok", text], "domain").field == "domain"


@pytest.mark.parametrize("names", [{"": [1.0]}, {1: [1.0]}, {None: [1.0]}])
def test_names_that_are_not_text_are_refused(names):
    with pytest.raises(InputError) as caught:
        to_r({"table": names})
    assert caught.value.code == "bad_name" and caught.value.field == "table"


def test_names_twice_are_refused():
    table = pd.DataFrame([[1.0, 2.0]], columns=["y", "y"])
    error = refused(table, "area")
    assert error.code == "duplicate_name" and error.field == "area" and "y" in error.got


def test_categories_that_are_not_text_are_refused():
    assert "astype(str)" in refused(pd.Series(pd.Categorical([1, 2])), "g").hint


def test_factors_with_codes_out_of_range_are_refused():
    assert refused(Factor(np.array([2]), ("a",)), "g").field == "g"
    assert refused(Factor(np.array([0]), ("a", "a")), "g").field == "g"


def test_text_of_a_class_of_its_own_stays_what_it_is():
    class Region(str, enum.Enum):
        NORTH = "north"

    assert to_r({"x": [Region.NORTH], "y": Region.NORTH}) == {"x": ["north"], "y": ["north"]}
    assert type(to_r({"x": [Region.NORTH]})["x"][0]) is str
