"""The answers kept from survey, metafor and rjags are those of the models written anew."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from validation.cases import package_functions as cases
from validation.cases.survey import GOLDEN
from validation.reimplementations import survey_estimates as anew
from validation.suites.plain_r import PlainR
from validation.suites import package_functions as suite

CALLS = [(package, call) for package in cases.ANEW for call in cases.ANEW[package]]
# Raking and glm() stop by themselves; a search on the likelihood keeps half the digits.
LOOSE = {"raked": 1e-6, "logit": 1e-4}


def kept(package, call):
    table = pd.read_csv(GOLDEN / f"{package}_functions__{package}.csv", dtype={"key": str})
    table = table[table["call"] == call]
    return {name: rows["value"].to_numpy() for name, rows in table.groupby("quantity")}


@pytest.mark.parametrize(("package", "call"), CALLS)
def test_the_model_written_anew(package, call):
    known, found = kept(package, call), cases.ANEW[package][call]()
    for name, values in found.items():
        if package == "rjags":
            error = known["error"] if name == "mean" else 0.02
            assert np.all(np.abs(values - known[name]) < 5 * error)
            continue
        rtol = LOOSE.get(call, 1e-10 if package == "survey" else 1e-4)
        scale = np.abs(known[name]).max()
        np.testing.assert_allclose(values, known[name], rtol=rtol, atol=1e-12 * scale)


def test_the_variance_of_a_stratified_mean_by_its_formula():
    # (1 - f) s²/n in every stratum, by hand.
    y = np.array([1.0, 2.0, 4.0, 10.0, 13.0])
    strata = np.array(["a", "a", "a", "b", "b"])
    sizes = np.array([6.0, 6.0, 6.0, 4.0, 4.0])
    design = anew.Design(sizes / np.array([3, 3, 3, 2, 2]), [(strata, np.arange(5), sizes)])
    value, V = anew.total(y, design)
    assert value[0] == pytest.approx(6 * 7 / 3 + 4 * 11.5)
    by_hand = 36 * 0.5 * np.var(y[:3], ddof=1) / 3 + 16 * 0.5 * np.var(y[3:], ddof=1) / 2
    assert V[0, 0] == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.r("metafor")
def test_the_suite_goes_red_when_a_producer_is_wrong(monkeypatch):
    plain = PlainR.in_temporary_folder()
    try:
        plain.start(("metafor_functions.R",))
        names = {"metafor ml", "metafor one"}
        table = suite.run(plain, names)
        assert table.agrees and table.n_made == 23
        right = cases.CALLS["metafor"]["ml"]

        def wrong():
            found = right()
            return {**found, "QE": np.asarray(found["QE"]) * (1 + 2.0**-52)}

        monkeypatch.setitem(cases.CALLS["metafor"], "ml", wrong)
        monkeypatch.setitem(
            cases.ANEW["metafor"], "one", lambda: {"sigma2": [1.0], "coefficient": [2.0]}
        )
        parted = {(r.case, r.producer, r.quantity) for r in suite.run(plain, names).having("PART")}
    finally:
        plain.close()
    assert ("metafor ml", "bridge raw", "QE") in parted
    assert ("metafor one", "reimplementation", "sigma2") in parted
    assert len([one for one in parted if one[0] == "metafor ml"]) == 1
