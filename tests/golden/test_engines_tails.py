"""The exact optima and ends beside evd's and ismev's answers, against plain R's kept answers."""

from __future__ import annotations

import numpy as np
import pytest

from pybridge.engines._ismev_profile import crossings
from pybridge.engines._tail_ends import profile_ends
from pybridge.engines._tail_likelihood import regression
from pybridge.engines._tail_optimum import Model, optimum, pareto_peak, regression_peak
from validation.cases import gpd
from validation.cases.tail_calls import answers, trend
from validation.reimplementations import tail_models as slow

RAIN = gpd.scores("rain")
EXCESSES = RAIN[RAIN > 30] - 30
DROP = 1.920729410347062
LEVEL = Model("rlevel", EXCESSES, 30.0, rate=100.0 * 365 * 152 / 17531)
PROCESS = Model("pp", EXCESSES, 30.0, periods=17531 / 365)
PLAIN = Model("gpd", EXCESSES, 30.0)


@pytest.mark.parametrize(("name", "u"), gpd.cases())
def test_the_peak_is_plain_r_s(name, u):
    x = gpd.scores(name)
    exact = gpd.answers(name, "R")[u, "exact"]
    peak = pareto_peak(x[x > u] - u)
    np.testing.assert_allclose(peak.theta, [exact["scale"], exact["shape"]], rtol=1e-8)
    assert peak.value == pytest.approx(-exact["nllh"], rel=1e-12, abs=1e-8)


@pytest.mark.parametrize(
    ("setting", "model", "held"),
    [
        ("default", PLAIN, {}),
        ("scale_held", PLAIN, {"scale": 8.0}),
        ("shape_held", PLAIN, {"shape": 0.0}),
        ("level", LEVEL, {}),
        ("level_held", LEVEL, {"rlevel": 100.0}),
        ("process", PROCESS, {}),
        ("process_held", PROCESS, {"loc": 40.0}),
    ],
)
def test_evd_lies_below_the_optimum_and_near_it(setting, model, held):
    known = answers(("rain__evd", "fpot", setting))
    peak = optimum(model, held)
    gap = peak.value + known["nllh"][0]
    assert 0 <= gap < 1e-3
    order = [name for name in model.parameters if name not in held]
    errors = dict(zip(order, known["std.err"]))
    for k, name in enumerate(order):
        theirs = known["param"][k]  # estimated ones come first
        at = peak.theta[model.parameters.index(name)]
        assert abs(theirs - at) < 0.06 * errors[name]
    at = model.log_likelihood([*_in_order(known["param"], model, held)])
    assert at == pytest.approx(-known["nllh"][0], abs=1e-7)


def _in_order(param, model, held):
    names = [name for name in model.parameters if name not in held] + list(held)
    named = dict(zip(names, param))
    return [named[name] for name in model.parameters]


@pytest.mark.parametrize("setting", ["scale", "scale_exp", "both"])
def test_covariates_by_another_route_and_by_ismev(setting):
    table = trend()
    above = table["score"].to_numpy() > 10
    excesses = table["score"].to_numpy()[above] - 10
    year, group = (table[name].to_numpy()[above] for name in ("year", "group"))
    ones = np.ones(excesses.size)
    scale = np.column_stack([ones, year])
    shape = np.column_stack([ones, group]) if setting == "both" else ones[:, np.newaxis]
    links = ("identity" if setting == "scale" else "exp", "identity")
    words = {"excesses": excesses, "scale_design": scale, "shape_design": shape, "links": links}
    peak = regression_peak(**words)
    known = answers(("trend__ismev", "gpd.fit", setting))
    at = regression(**words)(known["mle"])[0]
    assert at == pytest.approx(-known["nllh"][0], abs=1e-7)
    assert 0 <= peak.value - at < 1e-3
    loss = slow.regression_loss(excesses, scale, shape, links)
    start = np.zeros(scale.shape[1] + shape.shape[1])
    start[0] = excesses.mean() if setting == "scale" else np.log(excesses.mean())
    start[2] = 0.1
    theta, value = slow.fit(loss, [start])
    np.testing.assert_allclose(theta, peak.theta, atol=2e-5)
    assert value == pytest.approx(peak.value, abs=1e-8)


def test_a_process_by_another_route():
    loss = slow.process_loss(30 + EXCESSES, 30.0, 17531 / 365)
    theta, value = slow.fit(loss, [(35.0, 8.0, 0.1)])
    peak = optimum(PROCESS, {})
    np.testing.assert_allclose(theta, peak.theta, atol=1e-4)
    assert value == pytest.approx(peak.value, abs=1e-8)
    low, high = slow.profile_interval(loss, theta, value, 0, 1.0)
    ours = profile_ends(model=PROCESS, parameter="loc", best=peak, step=0.5, drop=DROP)
    np.testing.assert_allclose(ours, [low, high], rtol=1e-6)


def test_evd_s_interpolated_ends_lie_near_the_exact_ones():
    known = answers(("rain__evd", "profile", "default"))
    best = optimum(PLAIN, {})
    for k, name in enumerate(("scale", "shape")):
        low, high = profile_ends(model=PLAIN, parameter=name, best=best, step=0.05, drop=DROP)
        width = high - low
        assert abs(known["lower"][k] - low) < 0.01 * width
        assert abs(known["upper"][k] - high) < 0.01 * width


def test_ismev_s_drawn_curves_cross_at_the_exact_ends():
    level = answers(("rain__ismev", "gpd.prof", "plain"))
    low, high = crossings(level["x"], level["profile"], level["cut"][0])
    best = optimum(LEVEL, {})
    exact = profile_ends(model=LEVEL, parameter="rlevel", best=best, step=5.0, drop=DROP)
    np.testing.assert_allclose([low, high], exact, rtol=1e-3)
    shape = answers(("rain__ismev", "gpd.profxi", "plain"))
    ends = crossings(shape["x"], shape["profile"], shape["cut"][0])
    best = optimum(PLAIN, {})
    exact = profile_ends(model=PLAIN, parameter="shape", best=best, step=0.05, drop=DROP)
    np.testing.assert_allclose(ends, exact, atol=1e-3)


def test_ismev_s_point_process_lies_far_below():
    known = answers(("rain__ismev", "pp.fit", "default"))
    assert known["conv"][0] == 0
    assert PROCESS.log_likelihood(known["mle"]) == pytest.approx(-known["nllh"][0], abs=1e-6)
    assert optimum(PROCESS, {}).value + known["nllh"][0] > 28
