"""The comparer: units, tolerances, missing numbers, and that nothing drops out in silence."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from pybridge.crosscheck import tolerances
from pybridge.crosscheck.agreement import AGREE, NOT_POSSIBLE, PART, AgreementTable, joined
from pybridge.crosscheck.comparer import (
    ALL_QUANTITIES,
    Answers,
    Pairing,
    compare,
    compare_producers,
    representable_apart,
)
from pybridge.crosscheck.tolerances import (
    BITS,
    LAST_DIGIT,
    LOG_LIKELIHOOD,
    RELATIVE,
    STANDARD_ERROR,
    UNITS,
    Tolerance,
)


def row(a, b, kind, limit, **words):
    tolerance = Tolerance(limit, kind, "a reason", one_sided=words.pop("one_sided", False))
    return compare(
        case="c",
        quantity="q",
        producer="mine",
        values=a,
        against="theirs",
        reference=b,
        tolerance=tolerance,
        **words,
    )


def test_every_tolerance_has_a_unit_and_a_reason_of_its_own_words():
    found = {n: t for n, t in vars(tolerances).items() if isinstance(t, Tolerance)}
    assert len(found) > 15
    for name, tolerance in found.items():
        assert name.isupper() and tolerance.unit in UNITS
        assert len(tolerance.reason.split()) >= 5 and tolerance.limit >= 0, name


def test_an_unknown_unit_is_refused():
    with pytest.raises(ValueError, match="no such unit"):
        Tolerance(1.0, "metres", "a reason")


@pytest.mark.parametrize(
    ("a", "b", "bits"),
    [
        (1.0, 1.0, 0),
        (1.0, np.nextafter(1.0, 2.0), 1),
        (-1.0, np.nextafter(-1.0, -2.0), 1),
        (0.0, -0.0, 0),
        (5e-324, -5e-324, 2),
        (1e300, np.nextafter(np.nextafter(1e300, 0), 0), 2),
    ],
)
def test_bits_count_the_numbers_between(a, b, bits):
    assert representable_apart(np.array([a]), np.array([b]))[0] == bits
    assert row(a, b, BITS, 0.0).verdict == (AGREE if bits == 0 else PART)


def test_numbers_far_apart_are_many_bits_apart():
    assert representable_apart(np.array([1e300]), np.array([-1e300]))[0] > 1e18
    assert representable_apart(np.array([1.0]), np.array([2.0]))[0] == 2.0**52


@pytest.mark.parametrize(
    ("kind", "a", "b", "unit", "difference"),
    [
        (STANDARD_ERROR, 1.2, 1.0, 0.1, 2.0),
        (LOG_LIKELIHOOD, -100.5, -100.0, None, 0.5),
        (RELATIVE, 1.0, 1.25, None, 0.2),
        (RELATIVE, 1.0, 1.25, 10.0, 0.025),
        (RELATIVE, 0.0, 0.0, None, 0.0),
        (LAST_DIGIT, 0.18449, 0.184, 1e-3, 0.49),
    ],
)
def test_a_difference_is_in_the_unit_of_the_tolerance(kind, a, b, unit, difference):
    below = row(a, b, kind, difference * 1.001, unit=unit)
    assert below.difference == pytest.approx(difference) and below.verdict == AGREE
    if difference:
        assert row(a, b, kind, difference * 0.999, unit=unit).verdict == PART


def test_a_relative_scale_is_never_less_than_the_numbers():
    assert row(100.0, 110.0, RELATIVE, 0.1, unit=1e-9).difference == pytest.approx(10 / 110)


def test_a_number_known_without_error_is_compared_with_itself():
    # A standard error of 0 would make the last bit infinitely large.
    assert row(5.0, np.nextafter(5.0, 6.0), STANDARD_ERROR, 1e-9, unit=0.0).verdict == AGREE
    assert row(5.0, 5.001, STANDARD_ERROR, 1e-3, unit=0.0).verdict == PART
    assert row(5.0, 5.001, STANDARD_ERROR, 1e-3, unit=math.nan).verdict == PART


def test_a_unit_that_is_needed_is_asked_for():
    with pytest.raises(ValueError, match="needs the unit"):
        row(1.0, 2.0, STANDARD_ERROR, 1.0)


def test_one_sided_looks_upwards_only():
    assert row(-10.0, -9.0, LOG_LIKELIHOOD, 1e-9, one_sided=True).verdict == AGREE
    assert row(-9.0, -10.0, LOG_LIKELIHOOD, 1e-9, one_sided=True).verdict == PART


def test_the_worst_element_is_named():
    found = row(
        [1.0, 2.0, 3.0], [1.0, 2.5, 3.1], LOG_LIKELIHOOD, 0.2, keys=["a", "b", "c"], unit=None
    )
    assert (found.key, found.value, found.reference, found.n_values) == ("b", 2.0, 2.5, 3)


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        ([np.nan, 1.0], [np.nan, 1.0], AGREE),
        ([np.nan, 1.0], [2.0, 1.0], PART),
        ([2.0, 1.0], [2.0, np.nan], PART),
        ([np.inf], [np.inf], AGREE),
        ([np.inf], [-np.inf], PART),
        ([1.0, 2.0], [1.0], PART),
        ([], [], PART),
    ],
)
@pytest.mark.parametrize("kind", [BITS, LOG_LIKELIHOOD, RELATIVE, STANDARD_ERROR])
def test_missing_and_infinite_numbers(a, b, verdict, kind):
    assert row(a, b, kind, 1e-6, unit=1.0).verdict == verdict


def pair(tolerance=None):
    tolerance = tolerance or Tolerance(0.1, LOG_LIKELIHOOD, "a reason")
    return Pairing("mine", "theirs", {"x": tolerance, "y": tolerance})


def both(mine, theirs, **words):
    return compare_producers([Answers("mine", **mine), Answers("theirs", **theirs)], [pair()])


def test_what_one_side_leaves_out_without_a_word_is_a_failure():
    everything = {("c", "x"): 1.0, ("c", "y"): 2.0}
    table = both({"values": everything}, {"values": {("c", "x"): 1.0}})
    assert [(r.quantity, r.verdict) for r in table.rows] == [("x", AGREE), ("y", PART)]
    assert "did not say why" in table.rows[1].reason
    table = both({"values": everything}, {})
    assert [(r.quantity, r.verdict) for r in table.rows] == [(ALL_QUANTITIES, PART)]
    assert not table.agrees


def test_what_one_side_explains_is_not_possible():
    table = both({"values": {("c", "x"): 1.0}}, {"absent": {"c": "R is missing"}})
    (found,) = table.rows
    assert found.verdict == NOT_POSSIBLE and found.reason == "R is missing"
    assert (table.n_made, table.n_failed, table.n_not_possible) == (0, 0, 1)
    assert not table.agrees
    table = both({"values": {("c", "x"): 1.0}}, {"absent": {"": "R is missing"}})
    assert table.n_not_possible == 1
    # Both silent, with a reason: the row stands all the same.
    assert both({"absent": {"c": "no R"}}, {"absent": {"c": "no R"}}).n_not_possible == 1


def test_only_named_quantities_are_compared():
    values = {("c", "x"): 1.0, ("c", "z"): 5.0}
    table = both({"values": values}, {"values": {("c", "x"): 1.0, ("c", "z"): 9.0}})
    assert len(table) == 1 and table.agrees


def table_of_three() -> AgreementTable:
    good = row(1.0, 1.0, LOG_LIKELIHOOD, 0.1)
    bad = row([1.0, 2.0], [1.0, 3.0], LOG_LIKELIHOOD, 0.1, keys=["a", "b"])
    absent = both({"values": {("c", "x"): 1.0}}, {"absent": {"c": "no R here"}})
    return joined([AgreementTable((good,)), AgreementTable((bad,)), absent])


def test_a_table_counts_and_reads():
    table = table_of_three()
    assert table.counts() == "2 comparisons made, 1 failed, 1 not possible"
    assert "of b: mine 2, theirs 3, apart by 1 log-likelihood" in table.summary()
    text = table.text()
    assert "[1] a reason" in text and "not possible: no R here" in text and "PART" in text
    frame = table.to_frame()
    assert list(frame["verdict"]) == [AGREE, PART, NOT_POSSIBLE]
    assert frame.loc[1, "difference"] == 1.0 and frame.loc[1, "tolerance"] == 0.1
    json.dumps(table.to_dict(), allow_nan=False)
