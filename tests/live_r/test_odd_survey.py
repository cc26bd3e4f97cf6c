"""Odd arguments and odd columns of survey's functions: a structured error, or the right number."""

from __future__ import annotations

import datetime
import decimal
import inspect

import numpy as np
import pandas as pd
import pytest

from pybridge.engines import survey
from pybridge.errors import InputError, PybridgeError

pytestmark = [
    pytest.mark.r("survey"),
    pytest.mark.filterwarnings("ignore::pybridge.errors.EngineWarning"),
]

N = 24
RNG = np.random.default_rng(1)
UNITS = pd.DataFrame(
    {
        "y": np.round(RNG.normal(10, 2, N)),
        "z": RNG.gamma(3, 1, N),
        "w": 2.0,
        "g": np.repeat(list("abc"), 8),
        "st": np.repeat(list("pq"), 12),
        "c": np.arange(N) // 2,
    }
)
TOTALS = {"(Intercept)": 48.0, "z": 150.0}
COUNTS = pd.DataFrame({"g": list("abc"), "Freq": [16.0, 16, 16]})
ODD = [
    *(None, True, np.True_, 0, -1, 2.5, np.int64(2), np.nan, np.inf, 1e308, 10**400, "", "abc"),
    *("~nothing", "a~b", "가나", "~y + system('x')", "\x00", b"bytes", [], (), {}, [1], ["a"]),
    *({"a": 1}, {1: 2}, np.array([]), np.array([1.0, np.nan]), np.zeros((2, 2)), 1 + 2j, pd.NA),
    *(pd.Series([1.0]), pd.DataFrame(), object(), datetime.date(2020, 1, 1), range(3), slice(1)),
]


def design(table=UNITS, mode="guarded"):
    return survey.svydesign("~c", table, weights="~w", strata="~st", nest=True, mode=mode)


def calls(mode):
    one = design(mode=mode)
    return {
        "svydesign": {"ids": "~c", "data": UNITS, "weights": "~w", "mode": mode},
        "svymean": {"x": "~y", "design": one},
        "svytotal": {"x": "~y", "design": one},
        "svyratio": {"numerator": "~y", "denominator": "~z", "design": one},
        "svyby": {"formula": "~y", "by": "~g", "design": one},
        "svyglm": {"formula": "y ~ z", "design": one},
        "calibrate": {"design": one, "formula": "~z", "population": TOTALS},
        "postStratify": {"design": one, "strata": "~g", "population": COUNTS},
        "weights": {"object": one},
    }


def ended(function, **words):
    """The answer, or the structured error; anything else is a failure of the test."""
    try:
        found = function(**words)
        if isinstance(found, survey.SvyDesign):
            found = survey.svymean("~y", found)
        if isinstance(found, survey.SurveyEstimates):
            found.summary(), found.to_frame(), found.to_dict()
        return found
    except PybridgeError as error:
        assert error.code and error.field and error.expected is not None
        return error


@pytest.mark.parametrize("mode", ["guarded", "raw"])
@pytest.mark.parametrize("name", calls("guarded"))
def test_any_argument_ends_in_a_number_or_a_structured_error(name, mode):
    function, usual = getattr(survey, name), calls(mode)[name]
    assert not isinstance(ended(function, **usual), PybridgeError)
    for argument in inspect.signature(function).parameters:
        for odd in ODD:
            ended(function, **{**usual, argument: odd})


SAME = {
    "int64": lambda v: v.astype("int64"),
    "float32": lambda v: v.astype("float32"),
    "Int64": lambda v: pd.array(v, dtype="Int64"),
    "Float64": lambda v: pd.array(v, dtype="Float64"),
    "objects": lambda v: pd.Series(list(v), dtype=object),
    "integers": lambda v: pd.Series([int(x) for x in v], dtype=object),
    "decimals": lambda v: pd.Series([decimal.Decimal(repr(float(x))) for x in v], dtype=object),
    "sparse": pd.arrays.SparseArray,
}


@pytest.mark.parametrize("kind", SAME)
def test_numbers_of_any_kind_are_the_same_numbers(kind):
    table = UNITS.assign(y=SAME[kind](UNITS["y"].to_numpy()))
    for table_ in (table, table.set_axis(np.zeros(N))):
        fit = survey.svyby("~y", "~g", design(table_))
        usual = survey.svyby("~y", "~g", design())
        np.testing.assert_array_equal(fit.estimate, usual.estimate)
        np.testing.assert_array_equal(fit.covariance, usual.covariance)


def test_read_only_and_permuted_tables_are_the_same():
    values = UNITS["y"].to_numpy(copy=True)
    values.setflags(write=False)
    usual = survey.svyby("~y", "~g", design())
    fit = survey.svyby("~y", "~g", design(UNITS.assign(y=values)))
    np.testing.assert_array_equal(fit.estimate, usual.estimate)
    fit = survey.svyby("~y", "~g", design(UNITS.sample(frac=1, random_state=1)))
    np.testing.assert_allclose(fit.standard_error, usual.standard_error, rtol=1e-12)


LABELS = {
    "unused": lambda v: pd.Categorical(v, categories=[*"abc", "zz"]),
    "turned": lambda v: pd.Categorical(v, categories=list("cba"), ordered=True),
    "string": lambda v: pd.array(list(v), dtype="string"),
    "unicode": lambda v: v.map({"a": "가 나", "b": 'q"\\', "c": "🌱\n"}),
    "NA": lambda v: v.map({"a": "NA", "b": "NaN", "c": ""}),
    "zeros": lambda v: v.map({"a": "007", "b": "7", "c": "07"}),
    "numbers": lambda v: v.map({"a": 1, "b": 2, "c": 10}),
    "halves": lambda v: v.map({"a": 0.5, "b": 1.5, "c": 1e-7}),
    "dates": lambda v: pd.to_datetime(
        v.map({"a": "2020-01-01", "b": "2021-05-05", "c": "1999-12-31"})
    ),
    "long": lambda v: v * 9000,
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_any_kind_come_back(kind):
    labels = pd.Series(LABELS[kind](UNITS["g"]))
    fit = survey.svyby("~y", "~g", design(UNITS.assign(g=labels)))
    means = UNITS["y"].groupby(np.asarray(labels.astype(object)), sort=False).mean()
    assert len(fit.estimate) == 3
    for label, estimate in zip(fit.by["g"], fit.estimate):
        assert estimate == pytest.approx(means[label], rel=1e-12)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"y": np.inf}, "infinite_values"),
        ({"y": np.r_[1e300, np.ones(N - 1)]}, "out_of_range"),
        ({"y": pd.Series(["a", *range(N - 1)], dtype=object)}, "mixed_labels"),
        ({"y": pd.Series([[1]] * N, dtype=object)}, "mixed_labels"),
        ({"y": pd.Series([None, *range(N - 1)], dtype=object)}, "missing_values"),
        ({"y": UNITS["y"] + 1j}, "not_numeric"),
        ({"g": pd.Series([1, "1"] * (N // 2), dtype=object)}, "mixed_labels"),
        ({"g": pd.Series([("a", 1)] * N, dtype=object)}, "mixed_labels"),
        ({"g": pd.Categorical([None, *"b" * (N - 1)])}, "missing_values"),
        ({"w": 1e300}, "out_of_range"),
        ({"w": "2"}, "not_numeric"),
    ],
)
def test_odd_columns_are_refused_guarded(change, code):
    with pytest.raises(InputError) as caught:
        survey.svyby("~y", "~g", design(UNITS.assign(**change)))
    assert caught.value.code == code


@pytest.mark.parametrize("call", ["svymean", "svyby", "svyglm", "calibrate"])
@pytest.mark.parametrize("rows", [0, 1])
def test_tables_of_no_row_or_one_end_in_an_error_or_a_number(call, rows):
    for mode in ("guarded", "raw"):
        try:
            words = {**calls(mode)[call], "design": design(UNITS.iloc[:rows], mode)}
        except PybridgeError:
            continue
        ended(getattr(survey, call), **words)


def test_probabilities_and_options_that_r_passes_over():
    wrong = UNITS.assign(p=1.5)
    with pytest.raises(InputError) as caught:
        survey.svydesign(1, wrong, probs="p", pps="poisson")
    assert caught.value.code == "bad_probability"
    assert survey.svydesign(1, wrong, probs="p", pps="poisson", mode="raw").mode == "raw"
    with pytest.raises(InputError) as caught:
        survey.svydesign(1, UNITS, weights="w", variance="YG")
    assert caught.value.code == "missing_argument" and caught.value.field == "pps"
