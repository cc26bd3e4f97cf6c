"""Every function of evd, ismev and evir against plain Rscript: raw as it is, guarded by script."""

from __future__ import annotations

import numpy as np
import pytest

from pybridge.engines import _evd_fit
from validation.cases.tail_calls import calls, label
from validation.suites import tails_functions
from validation.suites.plain_r import PlainR

pytestmark = pytest.mark.r("evd", "ismev", "evir")


@pytest.fixture(scope="module")
def plain():
    """Fresh answers of the plain scripts."""
    found = PlainR.in_temporary_folder()
    found.start(dict.fromkeys(tails_functions.FILES.values()))
    yield found
    found.close()


@pytest.fixture(scope="module")
def table(plain):
    return tails_functions.run(plain, set(tails_functions.case_names()), anew=False)


def rows_of(table, producer, against):
    return [row for row in table.rows if (row.producer, row.against) == (producer, against)]


def test_everything_agrees(table):
    assert table.n_not_possible == 0
    assert [row.summary() for row in table.having("PART")] == []


def test_raw_is_rscript_to_the_last_bit(table):
    rows = rows_of(table, "bridge raw", "Rscript")
    assert {row.case for row in rows} == set(tails_functions.case_names())
    assert all(row.unit == "bits" and row.difference == 0 for row in rows)
    assert len(rows) > 250


def test_guarded_is_its_own_script_to_the_last_bit(table):
    rows = rows_of(table, "bridge guarded", "r_script()")
    assert {row.case for row in rows} == set(tails_functions.case_names())
    assert all(row.unit == "bits" for row in rows)
    assert {row.difference for row in rows if row.tolerance == 0} == {0.0}


def test_guarded_is_at_the_exact_optimum(table):
    assert len(rows_of(table, "bridge guarded", "exact optimum")) >= 50


def test_one_bit_is_noticed(plain, monkeypatch):
    right = _evd_fit.in_user_units

    def wrong(value, unit):
        found = right(value, unit)
        return {**found, "pat": np.nextafter(np.asarray(found["pat"]), 1.0)}

    monkeypatch.setattr(_evd_fit, "in_user_units", wrong)
    chosen = {label(key) for key in calls("raw") if key[1:] == ("fpot", "default")}
    table = tails_functions.run(plain, chosen, anew=False)
    assert [(row.producer, row.quantity) for row in table.having("PART")] == [("bridge raw", "pat")]
