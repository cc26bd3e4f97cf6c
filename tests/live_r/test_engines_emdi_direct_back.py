"""emdi::direct back in R: the object and the script give the record's numbers from the units."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pybridge.engines import emdi
from pybridge.errors import InputError

pytestmark = pytest.mark.r("emdi")


@pytest.fixture(scope="module")
def units():
    rng = np.random.default_rng(3)
    n = 60
    return pd.DataFrame(
        {
            "Gebiet": rng.choice(["가", 'b "q"', "c\nd", "NA"], n),
            "소득": rng.gamma(2.0, 5.0, n),
            "w": rng.uniform(1.0, 4.0, n),
            "state": rng.choice(["n", "s"], n),
        }
    )


X_CALIB = np.c_[np.ones(60), np.random.default_rng(4).normal(size=60)]
WAYS = {
    "plain": {},
    "no seed": {"seed": None, "threshold": 6.0},
    "bootstrap": {"var": True, "B": 4, "weights": "w", "design": "state", "na_rm": True},
    "functions": {
        "var": True,
        "B": 3,
        "seed": None,
        "threshold": "function(y, weights) {\n  0.5 * mean(y) # 절반\n}",
        "custom_indicator": {"my max": "function(y, weights, threshold) max(y) - threshold"},
    },
    "calibrated": {
        "var": True,
        "B": 3,
        "weights": "w",
        "boot_type": "calibrate",
        "X_calib": X_CALIB,
        "totals": [150.0, 3.0],
    },
}
SHOW = """
show("class", class(x))
for (name in names(x$ind)[-1]) show(gsub(" ", "_", name), x$ind[[name]])
for (name in names(x$MSE)[-1]) show(gsub(" ", "_", paste0("var.", name)), x$MSE[[name]])
"""


@pytest.mark.parametrize("by", ["script", "object"])
@pytest.mark.parametrize("way", WAYS)
def test_r_gives_the_numbers_of_the_record(way, by, units, tmp_path, plain_r):
    found = emdi.direct("소득", units, "Gebiet", mode="raw", **WAYS[way])
    again = {"X_calib": X_CALIB} if way == "calibrated" else {}
    if by == "script":
        code = found.r_script(tmp_path / "direct.R", units, **again)
        assert (tmp_path / "direct.R").read_text() == code and code.isascii()
        back = plain_r(f"{code}\nx <- object\n{SHOW}")
    else:
        path = found.to_rds(tmp_path / "direct.rds", units, **again)
        back = plain_r(f'x <- readRDS("{path}")\n{SHOW}')
    assert back["class"] == ["direct", "emdi"]
    for k, name in enumerate(found.names):
        key = name.replace(" ", "_")
        np.testing.assert_array_equal(back[key], found.estimate[:, k])
        if found.variance is not None:
            np.testing.assert_array_equal(back[f"var.{key}"], found.variance[:, k])


def test_other_units_are_refused(units, tmp_path):
    found = emdi.direct("소득", units, "Gebiet")
    for back in (found.r_script, found.to_rds):
        for data, code in (
            (None, "missing_argument"),
            (units[::-1], "other_units"),
            (units.assign(소득=units["소득"] + 1), "other_units"),
            (units.drop(columns="소득"), "missing_column"),
        ):
            with pytest.raises(InputError) as error:
                back(tmp_path / "x", data)
            assert error.value.code == code
    assert found.r_script(data=units.assign(more=1))
    calibrated = emdi.direct("소득", units, "Gebiet", **WAYS["calibrated"])
    with pytest.raises(InputError, match="auxiliary"):
        calibrated.to_rds(tmp_path / "x", units)
    with pytest.raises(InputError) as error:
        calibrated.to_rds(tmp_path / "x", units, X_calib=X_CALIB + 1)
    assert error.value.code == "other_units"
