"""Robust spatial models of emdi, whose iteration ends at its limit in one unit, not in another."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pybridge.engines import _emdi_fit, emdi
from pybridge.engines._emdi_fit import prepare
from pybridge.engines._emdi_guard import _compared, _notes
from pybridge.engines._emdi_script import functions
from pybridge.engines._emdi_units import rescaled
from pybridge.r import Reply
from pybridge.smoothing.fay_herriot import fay_herriot

pytestmark = pytest.mark.r("emdi", "sae")

Y = [5.97, 7.46, 6.93, 6.93, 8.63, 5.53, 4.3, 7.26, 4.28, 5.49, 3.39, 7.1, 5.66, 5.02, 6.38, 4.68]
Y += [4.5, 7.38, 5.22, 4.95, 5.8, 6.59, 7.38, 6.97, 5.92, 5.36, 5.71, 4.72, 7.39, 6.25, 6.11]
Y += [8.46, 4.4]
X = [1.71, 3.8, 1.31, 2.83, 4.62, 2.71, 1.22, 2.97, 0.78, 2.23, 0.21, 1.13, 3.11, 0.88, 2.77, 2.47]
X += [1.41, 3.53, 0.95, 0.28, 2.45, 4.17, 2.61, 3.23, 2.59, 0.27, 1.36, 1.16, 2.15, 2.57, 2.39]
X += [3.5, 1.45]
V = [0.46, 0.36, 0.48, 0.36, 0.08, 0.36, 0.5, 0.44, 0.32, 0.53, 0.11, 0.53, 0.1, 0.39, 0.3, 0.29]
V += [0.52, 0.39, 0.28, 0.34, 0.32, 0.12, 0.33, 0.52, 0.14, 0.06, 0.09, 0.3, 0.59, 0.07, 0.6]
V += [0.34, 0.12]
ABSENT = (3, 9, 14, 20)


def ring(m, steps=(1, 2, 5)):
    """Neighbours on a ring of m."""
    found = np.zeros((m, m))
    for i in range(m):
        for step in steps:
            found[i, (i + step) % m] = found[i, (i - step) % m] = 1.0
    return found


def sampled_ring():
    """A table of 33 domains and their proximity, of a ring of 37."""
    inside = [i for i in range(37) if i not in ABSENT]
    w = ring(37)[np.ix_(inside, inside)]
    names = [f"d{i:02d}" for i in range(33)]
    table = pd.DataFrame({"d": names, "y": Y, "x": X, "v": V})
    return table, pd.DataFrame(w / w.sum(axis=1, keepdims=True), index=names, columns=names)


WORDS = {"correlation": "spatial", "MSE": True, "mse_type": "pseudo"}


@pytest.mark.parametrize("method", ["reblup", "reblupbc"])
def test_a_fit_that_ends_at_the_limit_in_one_unit_is_made_in_another(method, plain_r, tmp_path):
    table, w = sampled_ring()
    fit = emdi.fh("y ~ x", "v", table, "d", method=method, corMatrix=w, **WORDS)
    raw = emdi.fh(
        "y ~ x", "v", table, "d", method=method, corMatrix=w.to_numpy(), mode="raw", **WORDS
    )
    assert -0.7 < raw.spatial_correlation < -0.6
    assert fit.status == "converged" and fit.request.unit == 1.0
    assert any("its limit; in units of 1 " in line for line in fit.conditions)
    for name in ("estimate", "mse", "coefficients"):
        np.testing.assert_array_equal(getattr(fit, name), getattr(raw, name))
    path = fit.to_rds(tmp_path / "fit.rds")
    found = plain_r(
        f'show("rho", readRDS("{path}")$model$variance$correlation)\n{fit.r_script()}'
        'show("estimate", result$estimate)\n'
    )
    np.testing.assert_array_equal(found["estimate"], fit.estimate)
    assert found["rho"] == [fit.spatial_correlation]


def reply_at(correlation):
    """An answer of emdi with this spatial correlation."""
    value = {"correlation": np.array([correlation]), "variance": np.array([0.5]), "mse": None}
    return Reply({**value, "replaced": None, "successful_bootstraps": None})


def test_at_the_limit_in_every_unit_it_is_the_boundary(monkeypatch):
    table, w = sampled_ring()
    request = rescaled(prepare("y ~ x", "v", table, "d", method="reblup", corMatrix=w, **WORDS))
    asked = []
    monkeypatch.setattr(_emdi_fit, "_asked", lambda one: asked.append(one) or reply_at(-0.99999))
    kept, reply = _emdi_fit.in_another_unit(request, reply_at(0.99999))
    assert [one.unit for one in asked] == [1.0, 0.125, 0.25, 0.03125]
    assert not any(one.arguments["MSE"] for one in asked)
    assert kept.unit == request.unit and reply.value["correlation"] == [0.99999]
    assert kept.remarks[-1].endswith("in units of 1, 0.125, 0.25, 0.03125 too")
    status, notes = _compared(kept, reply.value)[1], _notes(kept, reply.value, None)
    assert status == "boundary" and any("at its limit" in line for line in notes)


def test_at_the_limit_there_is_no_marginal_variance(plain_r):
    code = functions("emdi_marginal") + (
        "at <- function(rho) emdi_marginal(list(model = list(variance =\n"
        "  data.frame(variance = 1, correlation = rho))), list(proximity = diag(2)))\n"
        'show("rho", c(at(-0.99999), at(0.5)))\n'
    )
    found = plain_r(code)["rho"]
    assert np.isnan(found[0]) and found[1] == pytest.approx(4)


def test_the_crosscheck_says_that_a_robust_method_has_no_likelihood():
    table, w = sampled_ring()
    words = {"variance": "v", "domain": "d", "engine": "emdi", "correlation": "spatial"}
    fit = fay_herriot("y ~ x", table, method="reblup", proximity=w, **words)
    assert fit.status == "converged"
    reason = fit.crosscheck().unavailable["the exact optimum"]
    assert reason == "method reblup maximises no likelihood"
