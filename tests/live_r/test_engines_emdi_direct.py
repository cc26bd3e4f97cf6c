"""emdi::direct: calibrated variances, whole numbers, and the way back from a sample."""

from __future__ import annotations

import os
import subprocess
import warnings

import numpy as np
import pandas as pd
import pytest

from pybridge.engines import emdi
from pybridge.errors import EngineWarning, InputError

pytestmark = pytest.mark.r("emdi")


@pytest.fixture(scope="module")
def units():
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {"d": rng.choice(list("abc"), 60), "y": rng.gamma(2, 5, 60), "w": rng.uniform(1, 5, 60)}
    )
    table.loc[[3, 7, 20], "y"] = np.nan
    return table, np.column_stack([np.ones(60), rng.uniform(0, 1, 60)])


WORDS = {"y": "y", "smp_domains": "d", "weights": "w", "threshold": 6.0, "na_rm": True}
CALIBRATED = {"var": True, "B": 10, "boot_type": "calibrate", "totals": [200.0, 100.0]}


def vector(values):
    return "c(" + ", ".join("NA" if np.isnan(v) else float(v).hex() for v in values) + ")"


SHOWN = """
X <- cbind(1, {x})
f <- function(d, X) emdi::direct("y", d, "d", weights = "w", threshold = 6, var = TRUE, B = 10,
  boot_type = "calibrate", X_calib = X, totals = c(200, 100), na.rm = TRUE)
d <- data.frame(d = c({d}), y = {y}, w = {w})
RNGkind("Mersenne-Twister", "Inversion", "Rejection")
seen <- !is.na(d$y)
show("own", as.matrix(f(d, X)$MSE[-1]))
show("dropped", as.matrix(f(d[seen, ], X[seen, ])$MSE[-1]))
"""


def test_what_na_rm_drops_is_dropped_from_the_auxiliary_variables(units, plain_r):
    table, x = units
    labels = ", ".join(f'"{label}"' for label in table["d"])
    found = plain_r(
        SHOWN.format(x=vector(x[:, 1]), d=labels, y=vector(table["y"]), w=vector(table["w"]))
    )
    assert found["own"] != found["dropped"]
    raw = emdi.direct(smp_data=table, X_calib=x, mode="raw", **WORDS, **CALIBRATED)
    assert list(raw.variance.ravel(order="F")) == found["own"]
    guarded = emdi.direct(smp_data=table, X_calib=x, **WORDS, **CALIBRATED)
    order = np.argsort(guarded.domains.astype(str))
    assert list(guarded.variance[order].ravel(order="F")) == found["dropped"]
    assert any("X_calib" in line for line in guarded.conditions)
    assert guarded.threshold == 6.0
    assert guarded.n_labelled.sum() == 57


@pytest.mark.parametrize("mode", ["guarded", "raw"])
def test_calibrated_estimates_go_back_with_their_auxiliary_variables(
    mode, units, tmp_path, plain_r
):
    table, x = units
    made = emdi.direct(smp_data=table, X_calib=x, mode=mode, **WORDS, **CALIBRATED)
    path = made.to_rds(tmp_path / "direct.rds", table, X_calib=x)
    back = plain_r(f'x <- readRDS("{path}"); show("d", x$ind$Domain); show("v", x$MSE$Mean)')
    assert dict(zip(back["d"], back["v"])) == dict(zip(made.domains, made.variance[:, 0]))
    with pytest.raises(InputError) as caught:
        made.to_rds(tmp_path / "direct.rds", table)
    assert caught.value.field == "X_calib"


def test_another_sample_is_not_taken_for_this_one(units, tmp_path):
    table, _ = units
    made = emdi.direct(smp_data=table, **{**WORDS, "threshold": None})
    assert np.isnan(made.threshold) and any("60%" in line for line in made.conditions)
    for other in (table.iloc[1:], table.assign(y=table["y"] * 2)):
        with pytest.raises(InputError) as caught:
            made.to_rds(tmp_path / "direct.rds", other)
        assert caught.value.code == "other_units" and not (tmp_path / "direct.rds").exists()


def test_totals_must_fit_the_auxiliary_variables(units):
    table, x = units
    with pytest.raises(InputError) as caught:
        emdi.direct(smp_data=table, X_calib=x, **WORDS, **{**CALIBRATED, "totals": [1.0, 2.0, 3.0]})
    assert caught.value.field == "totals" and caught.value.expected == "2 numbers"
    x = x.copy()
    x[4, 1] = np.nan
    with pytest.raises(InputError) as caught:
        emdi.direct(smp_data=table, X_calib=x, **WORDS, **CALIBRATED)
    assert caught.value.field == "X_calib" and "4" in caught.value.got


def test_whole_numbers_are_integers_in_raw_mode(plain_r):
    y, w = np.arange(1, 41) * 10000, np.resize([7, 800, 90], 40) * 1000
    table = pd.DataFrame({"d": np.resize([2, 10, 1], 40), "y": y, "w": w})
    written = ", ".join(f"{name} = c({', '.join(f'{v}L' for v in table[name])})" for name in table)
    found = plain_r(
        f"""
        x <- emdi::direct("y", data.frame({written}), "d", weights = "w", threshold = 90000)
        show("d", x$ind$Domain); show("mean", x$ind$Mean); show("gini", x$ind$Gini)
        """
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EngineWarning)
        words = {"y": "y", "smp_domains": "d", "weights": "w", "threshold": 90000.0}
        raw, guarded = (
            emdi.direct(smp_data=table, mode=mode, **words) for mode in ("raw", "guarded")
        )
    gini = raw.names.index("Gini")
    assert [str(label) for label in raw.domains] == found["d"]
    np.testing.assert_array_equal(raw.estimate[:, 0], found["mean"])
    np.testing.assert_array_equal(raw.estimate[:, gini], found["gini"])
    assert np.isnan(found["gini"]).any()  # R's integers overflow
    assert np.isfinite(guarded.estimate[:, gini]).all()


@pytest.mark.parametrize("mode", ["guarded", "raw"])
def test_the_script_gives_the_same_digits(mode, units, tmp_path):
    table, x = units
    table = table.rename(columns={"d": "Gebiet é", "w": "1w"})
    table["Gebiet é"] = table["Gebiet é"].map({"a": "가", "b": 'b"\\', "c": "NA"})
    words = {**WORDS, **CALIBRATED, "smp_domains": "Gebiet é", "weights": "1w"}
    words["threshold"] = "function(y, weights) 0.5 * median(y, na.rm = TRUE)"
    words["custom_indicator"] = {"größte": "function(y, weights, threshold) { 'é'; max(y) }"}
    made = emdi.direct(smp_data=table, X_calib=x, mode=mode, **words)
    script = made.r_script(tmp_path / "direct.R", table, x)
    assert script.isascii() and (tmp_path / "direct.R").read_text() == script
    shown = (
        'k <- match(enc2utf8(as.character(object$ind$Domain)), c("\\uac00", "b\\"\\\\", "NA"))\n'
        "for (t in list(object$ind, object$MSE)) {\n"
        '  cat(sprintf("%a", as.matrix(t[order(k), -1])), sep = "\\n")\n}\n'
    )
    (tmp_path / "shown.R").write_text(script + 'cat("SHOWN\\n")\n' + shown)
    done = subprocess.run(
        ["Rscript", str(tmp_path / "shown.R")],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "LC_ALL": "C"},
    )
    assert done.returncode == 0, done.stderr
    found = [float.fromhex(line) for line in done.stdout.split("SHOWN\n")[1].split()]
    order = [list(made.domains).index(label) for label in ("가", 'b"\\', "NA")]
    parts = [values[order].ravel(order="F") for values in (made.estimate, made.variance)]
    assert found == list(np.concatenate(parts))
