"""Diagnostics of a fit by emdi are the ones that emdi itself gives, on the same fit."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import pybridge as pb

INPUTS = Path(__file__).resolve().parents[2] / "r_reference" / "golden" / "inputs"


@pytest.mark.r("emdi")
@pytest.mark.parametrize("method", ["REML", "ML"])
@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("emdi_small.csv", ("level ~ x + z", "spread", "domain")),
        ("emdi_incomes.csv", ("Mean ~ cash + self_empl", "Var_Mean", "Domain")),
    ],
)
def test_emdis_own_numbers(file, words, method):
    formula, variance, domain = words
    table = pd.read_csv(INPUTS / file, float_precision="round_trip")
    fit = pb.fay_herriot(
        formula, table, variance=variance, domain=domain, engine="emdi", method=method
    )
    found = fit.diagnostics()
    theirs = pb.engines.emdi.compare(fit.fit.engine_fit)
    assert found.brown_statistic == pytest.approx(theirs.statistic, rel=1e-9)
    assert found.brown_degrees_of_freedom == theirs.degrees_of_freedom
    assert found.brown_p_value == pytest.approx(theirs.p_value, rel=1e-8)
    assert found.correlation == pytest.approx(theirs.correlation, rel=1e-6)
    known = fit.fit.criteria
    for name, mine in (
        ("loglike", found.log_likelihood),
        ("AIC", found.aic),
        ("BIC", found.bic),
        ("KIC", found.kic),
        ("AdjR2", found.adjusted_r2),
        ("FH_R2", found.marginal_r2),
    ):
        assert mine == pytest.approx(known[name], rel=1e-9), name
