"""The validation run with real R: bit for bit where it must be, red when a producer is damaged."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pybridge.cli import main
from pybridge.smoothing.fay_herriot import fay_herriot
from pybridge.smoothing.fay_herriot_fit import FayHerriotFit
from pybridge.tails import _evd
from validation.cases.fay_herriot import load
from validation.suites import area, kept, tails
from validation.suites.plain_r import PlainR

pytestmark = pytest.mark.r("sae", "emdi", "evd", "ismev", "evir")

TAIL = "tail danish over 20"
AREA = {"Fay-Herriot few REML", "Fay-Herriot at_zero FH", "Fay-Herriot reml_short REML"}


@pytest.fixture(scope="module")
def plain():
    """Fresh answers of the tails' scripts; the area model's take longer and are not run."""
    found = PlainR.in_temporary_folder()
    found.start(tails.SCRIPTS)
    yield found
    found.close()


def rows_of(table, producer, against):
    return [row for row in table.rows if (row.producer, row.against) == (producer, against)]


def test_tails_agree_and_the_bridge_is_rscript_to_the_last_bit(plain):
    table = tails.run(plain, {TAIL})
    assert table.n_failed == 0 and table.n_not_possible == 0
    for engine in ("evd", "ismev"):
        for pair in ((f"{engine} raw", f"Rscript {engine}"),):
            rows = rows_of(table, *pair)
            assert len(rows) == 4 and all(row.unit == "bits" for row in rows)
            assert {row.difference for row in rows} == {0.0}
        assert len(rows_of(table, f"{engine} guarded", f"r_script() {engine}")) == 4
    assert len(rows_of(table, "native", "Rscript exact")) == 4


def test_one_bit_in_the_bridge_is_noticed(plain, monkeypatch):
    right = _evd.answers

    def wrong(*arguments, **words):
        found = right(*arguments, **words)
        return [one._replace(scale=float(np.nextafter(one.scale, np.inf))) for one in found]

    monkeypatch.setattr(_evd, "answers", wrong)
    table = tails.run(plain, {TAIL})
    parted = {(row.producer, row.against, row.quantity) for row in table.having("PART")}
    assert parted == {
        ("evd raw", "Rscript evd", "scale"),
        ("evd guarded", "r_script() evd", "scale"),
    }


def test_kept_answers_are_those_of_a_fresh_run_and_drift_is_noticed(plain, monkeypatch, tmp_path):
    names = {"kept gpd_danish__R", "kept gpd_danish__evd", "kept gpd_rain_plots__evd"}
    table = kept.run(plain, names)
    assert table.agrees and table.n_made == 3 and table.rows[0].n_values >= 21
    for name in names:
        file = f"{name.split()[1]}.csv"
        changed = pd.read_csv(kept.KEPT / file, dtype=str)
        value = float(changed.loc[3, "value"])
        changed.loc[3, "value"] = repr(value * (1 + 1e-6))
        changed.to_csv(tmp_path / file, index=False)
    scripts = kept.scripts_of_files()
    monkeypatch.setattr(kept, "KEPT", tmp_path)
    monkeypatch.setattr(kept, "scripts_of_files", lambda: scripts)
    assert kept.run(plain, names).n_failed == 3


def test_guarded_fits_are_their_own_scripts_to_the_last_bit(plain):
    table = area.run(plain, AREA)
    assert table.n_failed == 0
    scripted = rows_of(table, "bridge guarded", "r_script()")
    assert len(scripted) == 12 and {row.difference for row in scripted} == {0.0}
    # What is not possible says why: the plain run was not asked for, and sae stopped short.
    reasons = {row.reason for row in table.having("not possible")}
    assert "fay_herriot_sae.R was not run" in reasons
    assert "sae stopped short, and the status says so" in reasons
    never_above = [row for row in table.rows if row.quantity == "maximum"]
    assert len(never_above) == 2 and all(row.verdict == "agree" for row in never_above)


def test_a_damaged_script_is_noticed(plain, monkeypatch):
    right = FayHerriotFit.r_script

    def wrong(self, path=None):
        assert "mse <- fit$mse" in right(self)
        return right(self).replace("mse <- fit$mse", "mse <- fit$mse * (1 + 2^-52)")

    monkeypatch.setattr(FayHerriotFit, "r_script", wrong)
    table = area.run(plain, {"Fay-Herriot few REML"})
    (found,) = table.having("PART")
    assert (found.producer, found.quantity, found.unit) == ("bridge guarded", "mse", "bits")
    assert 0 < found.difference <= 2


def test_a_fit_is_cross_checked_with_sae():
    milk = load("milk")
    found = fay_herriot(milk.formula, milk.frame()).crosscheck()
    assert found.agrees and "agree: at most" in found.sentence
    assert {"native", "sae guarded", "sae raw"} <= set(found.nearest)


def test_where_sae_stops_short_the_native_optimum_is_nearer():
    case = load("reml_short")
    found = fay_herriot(case.formula, case.frame(), engine="native").crosscheck()
    assert not found.agrees and "native" in found.nearest and "sae raw" not in found.nearest
    assert found.lacking("sae raw") == pytest.approx(0.3593, abs=1e-3)
    assert "sae guarded and sae raw part from native in model variance" in found.sentence


def test_adjusted_likelihoods_of_emdi_are_held_against_the_native_ones():
    case = load("milk")
    found = fay_herriot(case.formula, case.frame(), engine="emdi", method="ampl").crosscheck()
    assert found.agrees and [a.producer for a in found.answers][0] == "native"
    assert "native" in found.sentence and "agree: at most" in found.sentence


def test_the_command_prints_the_sentence(tmp_path, capsys):
    path = tmp_path / "milk.csv"
    load("milk").frame().to_csv(path, index=False)
    words = ["crosscheck", str(path), "--formula", load("milk").formula]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "agree: at most" in out and "sae raw" in out and "0 failed" in out
