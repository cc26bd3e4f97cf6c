"""Deliberate damage: a producer whose formula is changed makes the validation's table red."""

from __future__ import annotations

import pytest

from pybridge.direct import estimates
from pybridge.smoothing import _area_model
from validation import __main__ as validation
from validation.reimplementations import direct as slow_direct
from validation.reimplementations import fay_herriot as slow_area
from validation.suites import area, direct, plain_r
from validation.suites.plain_r import PlainR

AREA = "Fay-Herriot few PR"  # a method that R's sae does not have: no R is needed
DIRECT = "direct clusters greg"


@pytest.fixture
def plain(tmp_path):
    """Without Rscript: the kept answers stand for plain R."""
    return PlainR(tmp_path, "no Rscript on PATH")


def parted(table):
    return {(row.producer, row.against) for row in table.having("PART")}


def test_undamaged_both_are_green(plain):
    for suite, case in ((area, AREA), (direct, DIRECT)):
        table = suite.run(plain, {case})
        assert table.agrees and table.n_made >= 12, case


def test_a_reimplementation_is_noticed(plain, monkeypatch):
    right = slow_area.mean_squared_errors
    monkeypatch.setattr(
        slow_area, "mean_squared_errors", lambda *a: right(*a) * (1 + 1e-6), raising=True
    )
    table = area.run(plain, {AREA})
    assert parted(table) == {("reimplementation", "native")}
    assert {row.quantity for row in table.having("PART")} == {"mse"}


def test_the_native_engine_is_noticed_by_two_others(plain, monkeypatch):
    right = _area_model.variance_and_bias

    def wrong(**words):
        variance, bias = right(**words)
        return 0.5 * variance, bias  # g3 counted once instead of twice

    monkeypatch.setattr(_area_model, "variance_and_bias", wrong)
    table = area.run(plain, {AREA})
    assert parted(table) == {("native", "kept exact"), ("reimplementation", "native")}


def test_kept_answers_are_noticed(plain, monkeypatch):
    right = area.load

    def wrong(name, folder):
        case = right(name, folder)
        case.answers.loc[case.answers["quantity"] == "estimate", "value"] += 1e-6
        return case

    monkeypatch.setattr(area, "load", wrong)
    table = area.run(plain, {AREA})
    assert parted(table) == {("native", "kept exact")}


def test_a_variance_formula_of_direct_estimates_is_noticed(plain, monkeypatch):
    right = slow_direct.covariance
    monkeypatch.setattr(slow_direct, "covariance", lambda *a: right(*a) * (1 + 1e-8))
    table = direct.run(plain, {DIRECT})
    assert parted(table) == {("reimplementation", "kept")}
    quantities = {row.quantity for row in table.having("PART")}
    assert {"standard errors", "covariance", "group errors"} <= quantities
    assert "estimate" not in quantities


def test_a_native_covariance_of_direct_estimates_is_noticed(plain, monkeypatch):
    right = estimates.DirectEstimates.covariance

    def wrong(self):
        return right(self) if self.engine == "survey" else 1.0001 * right(self)

    monkeypatch.setattr(estimates.DirectEstimates, "covariance", wrong)
    assert parted(direct.run(plain, {DIRECT})) == {("native", "kept")}


def test_a_red_table_exits_with_1(monkeypatch, capsys):
    monkeypatch.setattr(plain_r, "no_r", lambda: "no Rscript on PATH")
    words = ["--only", AREA, "--brief"]
    assert validation.main(words) == 0
    assert "0 failed" in capsys.readouterr().out
    right = slow_area.mean_squared_errors
    monkeypatch.setattr(slow_area, "mean_squared_errors", lambda *a: right(*a) + 1e-6)
    assert validation.main(words) == 1
    out = capsys.readouterr().out
    assert f"{AREA}, mse" in out and "1 failed" in out.splitlines()[-1]


def test_a_case_that_does_not_exist_is_bad_usage(capsys):
    assert validation.main(["--only", "no such case"]) == 2
    assert "no such case" in capsys.readouterr().err


def test_every_case_is_listed_once(capsys):
    assert validation.main(["--list"]) == 0
    names = capsys.readouterr().out.splitlines()
    assert len(names) == len(set(names)) > 250
    for part in ("Fay-Herriot milk REML", "tail rain over 30", "published corn and soybean"):
        assert part in names
