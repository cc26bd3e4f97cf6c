"""Native variants of the Fay-Herriot model give emdi's and saeRobust's numbers, and R's optima."""

from __future__ import annotations

import numpy as np
import pytest

from validation.cases.fay_herriot_variants import NAMES, load
from validation.suites.area_variants import emdis, ours

# R's optimize stops at the root of rounding of the likelihood; saeRobust at a change of 1e-13.
SEARCH, FIXED_POINT = 3e-6, 1e-8
CASES = [(name, setting) for name in NAMES for setting in load(name).settings]
AT_FLOOR = {("milk", "reblup|0.7"), ("milk", "reblupbc|0.7")}


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_native_gives_the_numbers_of_r(name, setting):
    case = load(name)
    found = ours(case, setting)
    told = emdis(case, setting, found)
    assert bool(told) == ((name, setting) not in AT_FLOOR)
    rtol = FIXED_POINT if setting.startswith("reblup") else SEARCH
    for quantity, value in told.items():
        np.testing.assert_allclose(found[quantity], value, rtol=rtol, err_msg=quantity)
    if not told:  # saeRobust never goes below 1e-5; the equation has no root above 0
        assert found["model variance"] == 0
    optimum = case.optima.get(setting.partition("|")[0])
    if optimum is not None:
        assert found["model variance"] == pytest.approx(optimum, rel=SEARCH)


def test_what_is_left_out_of_the_comparison_is_different_indeed():
    income = load("income")
    found = ours(income, "ml|bc_sm")
    inside = income.frame["estimate"].notna().to_numpy()
    slud_maiti = income.answer("ml|bc_sm", "mse")
    apart = np.abs(found["mse"][inside] / slud_maiti[inside] - 1)
    assert apart.max() > 0.02
    outlying = load("outlying")
    found = ours(outlying, "ml")
    outside = outlying.frame["estimate"].isna().to_numpy()
    # emdi adds the (negative) bias of σ² where it is to be taken off.
    told = outlying.answer("ml", "mse")
    assert (told[outside] < 0.95 * found["mse"][outside]).all()
    np.testing.assert_allclose(told[~outside], found["mse"][~outside], rtol=SEARCH)
