"""Diagnostics at emdi's own variance are emdi's: residuals, criteria, Brown's test, R², moments."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pybridge.smoothing._area_model import area_model_at
from pybridge.smoothing.fay_herriot import fay_herriot

FOLDER = Path(__file__).resolve().parents[2] / "r_reference" / "golden"
GOLDEN = pd.read_csv(FOLDER / "emdi_diagnostics__emdi.csv", float_precision="round_trip")
CASES = {
    "small": ("emdi_small.csv", "level ~ x + z", "spread", "domain"),
    "incomes": ("emdi_incomes.csv", "Mean ~ cash + self_empl", "Var_Mean", "Domain"),
}
# Rounding of sums over at most 94 domains, in other orders.
ROUNDING = 1e-9
# Of the test's W and p: scipy's routine works in single precision before 1.12.
SHAPIRO = 2e-5


@pytest.fixture(scope="module", params=sorted(GOLDEN["fit"].unique()))
def both(request):
    """emdi's answers, and the diagnostics of the fit at emdi's variance."""
    name, method = request.param.split()
    file, formula, variance, domain = CASES[name]
    table = pd.read_csv(FOLDER / "inputs" / file, float_precision="round_trip")
    answers = GOLDEN[GOLDEN["fit"] == request.param]
    own = fay_herriot(
        formula, table, variance=variance, domain=domain, engine="native", method=method
    )
    area = own.area
    at = area_model_at(
        float(values(answers, "variance")[0]),
        estimate=area.estimate,
        variance=area.variance,
        covariates=area.covariates,
        method=method.upper(),
    )
    return answers, dataclasses.replace(own, fit=at).diagnostics()


def values(answers, quantity):
    return answers.loc[answers["quantity"] == quantity, "value"].to_numpy()


def keyed(answers, quantity):
    part = answers[answers["quantity"] == quantity]
    return dict(zip(part["key"], part["value"]))


@pytest.mark.parametrize("name", ["estimate", "realised_residual", "random_effect", "shrinkage"])
def test_numbers_a_domain(both, name):
    answers, found = both
    mine = getattr(found, name)
    theirs = values(answers, name)
    if len(theirs) < len(mine):
        mine = mine[np.isfinite(found.direct)]
    np.testing.assert_allclose(mine, theirs, rtol=ROUNDING, atol=ROUNDING * np.abs(theirs).max())


def test_criteria_and_r2(both):
    answers, found = both
    theirs = keyed(answers, "criterion")
    for name, mine in (
        ("loglike", found.log_likelihood),
        ("AIC", found.aic),
        ("BIC", found.bic),
        ("KIC", found.kic),
        ("AdjR2", found.adjusted_r2),
        ("FH_R2", found.marginal_r2),
    ):
        assert mine == pytest.approx(theirs[name], rel=ROUNDING), name


def test_brown_and_correlation(both):
    answers, found = both
    theirs = keyed(answers, "brown")
    assert found.brown_statistic == pytest.approx(theirs["W.value"], rel=ROUNDING)
    assert found.brown_degrees_of_freedom == theirs["Df"]
    assert found.brown_p_value == pytest.approx(theirs["p.value"], rel=ROUNDING)
    assert found.correlation == pytest.approx(values(answers, "correlation")[0], rel=ROUNDING)


def test_normality(both):
    answers, found = both
    theirs = keyed(answers, "normality")
    pairs = (
        ("Standardized_Residuals", found.residual_normality),
        ("Random_effects", found.effect_normality),
    )
    for name, mine in pairs:
        assert mine.skewness == pytest.approx(theirs[f"{name} Skewness"], rel=1e-8)
        assert mine.kurtosis == pytest.approx(theirs[f"{name} Kurtosis"], rel=1e-8)
        assert mine.shapiro_w == pytest.approx(theirs[f"{name} Shapiro_W"], rel=SHAPIRO)
        assert mine.shapiro_p == pytest.approx(theirs[f"{name} Shapiro_p"], rel=1e2 * SHAPIRO)


def test_the_vignettes_number():
    """Brown's statistic as the vignette of emdi prints it, for the maximum likelihood fit."""
    brown = keyed(GOLDEN[GOLDEN["fit"] == "incomes ml"], "brown")
    assert round(brown["W.value"], 5) == 46.97181
