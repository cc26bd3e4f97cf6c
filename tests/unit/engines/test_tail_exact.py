"""The exact optima and interval ends beside evd's and ismev's answers, without R."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pybridge.engines._ismev_input import Block, block
from pybridge.engines._ismev_profile import crossings
from pybridge.engines._tail_ends import profile_ends
from pybridge.engines._tail_likelihood import (
    climb,
    log_part,
    plain_excesses,
    point_process,
    regression,
)
from pybridge.engines._tail_optimum import Model, gain, optimum, pareto_peak, regression_peak
from pybridge.engines._tail_request import power_of_two
from pybridge.engines._tail_status import tail_status, tied, trusted
from pybridge.tails._maximum import profile_maximum
from pybridge.tails._profile import parameter_interval, quantile_interval

DROP = 1.920729410347062  # half the 95 % point of chi-squared


def draw(shape, n=150, scale=1.0, seed=0):
    e = np.random.default_rng(seed).exponential(size=n)
    return scale * (e if shape == 0 else np.expm1(shape * e) / shape)


def differences(function, theta, step=1e-5):
    """Central differences of value and gradient."""
    sides = [[function(theta + s * step * row) for s in (1, -1)] for row in np.eye(theta.size)]
    slope = [(up[0] - down[0]) / (2 * step) for up, down in sides]
    bend = [(up[1] - down[1]) / (2 * step) for up, down in sides]
    return np.array(slope), np.array(bend)


def designs():
    rng = np.random.default_rng(2)
    ones = np.ones(60)
    return [np.column_stack([ones, 0.1 * rng.normal(size=60)]) for _ in range(2)]


@pytest.mark.parametrize("scale_link", ["identity", "exp"])
@pytest.mark.parametrize("shape_link", ["identity", "exp"])
def test_derivatives_with_covariates(scale_link, shape_link):
    scale, shape = designs()
    function = regression(
        excesses=draw(0.2, 60),
        scale_design=scale,
        shape_design=shape,
        links=(scale_link, shape_link),
    )
    theta = np.array([1.2, 0.1, 0.2, 0.05])
    slope, bend = differences(function, theta)
    _, gradient, hessian = function(theta)
    np.testing.assert_allclose(gradient, slope, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(hessian, bend, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("shape", [0.3, -0.2, 1e-6, 0.0])
def test_derivatives_of_a_process(shape):
    function = point_process(exceedances=3.0 + draw(0.1, 40), threshold=3.0, periods=5.0)
    theta = np.array([4.0, 2.5, shape])
    slope, bend = differences(function, theta)
    _, gradient, hessian = function(theta)
    np.testing.assert_allclose(gradient, slope, rtol=1e-6, atol=1e-5)
    np.testing.assert_allclose(hessian, bend, rtol=1e-5, atol=1e-3)


def test_the_series_meets_the_formula():
    z = np.array([0.5, 1.0, 1.9])
    just_below, just_above = 0.0019999 / z, 0.0020001 / z
    for low, high in zip(log_part(z=z, shape=just_below), log_part(z=z, shape=just_above)):
        np.testing.assert_allclose(low, high, rtol=1e-6)
    value, first, second = log_part(z=z, shape=np.zeros(3))
    np.testing.assert_allclose([value, first, second], [z, -(z**2) / 2, 2 * z**3 / 3])


@pytest.mark.parametrize("seed", range(40))
def test_the_peak_is_that_of_the_native_engine(seed):
    rng = np.random.default_rng(seed)
    x = draw(rng.uniform(-1.2, 3.0), int(rng.integers(5, 300)), 10 ** rng.uniform(-6, 6), seed)
    ours, theirs = pareto_peak(x), profile_maximum(excesses=x)
    assert ours.settled != theirs.at_boundary
    assert ours.value == pytest.approx(theirs.log_likelihood, abs=1e-8)
    np.testing.assert_allclose(ours.theta, [theirs.scale, theirs.shape], rtol=1e-5, atol=1e-7)


def test_many_excesses_are_thinned_for_the_scan_only():
    x = draw(0.15, 50_000)
    theirs = profile_maximum(excesses=x)
    np.testing.assert_allclose(pareto_peak(x).theta, [theirs.scale, theirs.shape], rtol=1e-8)


@pytest.mark.parametrize("unit", [1e-290, 1e-30, 1e30, 1e290])
@pytest.mark.parametrize("shape", [-0.7, 0.0, 3.0])
def test_no_number_is_too_large_or_too_small(unit, shape):
    x = draw(shape, 60)
    here = pareto_peak(x)
    x = x * unit
    there = pareto_peak(x)
    assert there.settled == here.settled
    assert there.theta[1] == pytest.approx(here.theta[1], abs=1e-7)
    process = optimum(Model("pp", x, threshold=0.0, periods=3.0), {})
    assert process.theta[2] == there.theta[1]


def test_a_process_has_as_many_exceedances_as_were_seen():
    x = draw(0.2, 80)
    model = Model("pp", x, threshold=5.0, periods=20.0)
    loc, scale, shape = optimum(model, {}).theta
    edge = 1 + shape * (5.0 - loc) / scale
    assert 20.0 * edge ** (-1 / shape) == pytest.approx(80.0)
    np.testing.assert_allclose(model.function()(np.array([loc, scale, shape]))[1], 0, atol=1e-7)


@pytest.mark.parametrize(
    "held", [{"loc": 6.0}, {"scale": 1.5}, {"shape": 0.0}, {"loc": 6, "scale": 2}]
)
def test_held_parameters_of_a_process(held):
    model = Model("pp", draw(0.2, 80), threshold=5.0, periods=20.0)
    peak = optimum(model, held)
    assert peak.settled and peak.value < optimum(model, {}).value
    names = model.parameters
    assert {name: peak.theta[names.index(name)] for name in held} == held
    free = [k for k, name in enumerate(names) if name not in held]
    np.testing.assert_allclose(model.function()(peak.theta)[1][free], 0, atol=1e-6)


@pytest.mark.parametrize("held", [{"scale": 1.3}, {"shape": -0.3}, {"shape": 0.0}, {"scale": 40.0}])
def test_held_parameters_of_the_excesses(held):
    x = draw(0.2, 80)
    peak = optimum(Model("gpd", x), held)
    free = 1 if "scale" in held else 0
    assert abs(plain_excesses(x)(peak.theta)[1][free]) < 1e-6


def test_the_return_level_is_the_same_fit():
    x = draw(0.2, 120)
    model = Model("rlevel", x, threshold=3.0, rate=50.0)
    level, shape = optimum(model, {}).theta
    scale = pareto_peak(x).theta[0]
    assert level == pytest.approx(3.0 + scale * gain(shape, 50.0))
    assert model.log_likelihood([level, shape]) == pytest.approx(pareto_peak(x).value)
    held = optimum(model, {"rlevel": level + 1.0})
    assert 0 < pareto_peak(x).value - held.value < 5
    both = [model.log_likelihood([level + 1.0, held.theta[1] + d]) for d in (-1e-3, 1e-3)]
    assert max(both) < held.value
    assert optimum(model, {"shape": 0.1}).theta[1] == 0.1
    assert gain(-0.5, math.inf) == 2.0 and gain(0.0, math.e) == pytest.approx(1.0)


@pytest.mark.parametrize("shape", [-0.3, 0.0, 0.4])
def test_interval_ends_are_those_of_the_native_profile(shape):
    x = draw(shape, 100, seed=3)
    maximum = profile_maximum(excesses=x)
    model = Model("gpd", x)
    best = optimum(model, {})
    for name in ("shape", "scale"):
        ours = profile_ends(model=model, parameter=name, best=best, step=0.05, drop=DROP)
        theirs = parameter_interval(excesses=x, maximum=maximum, parameter=name, drop=DROP)
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-8)
    level = Model("rlevel", x, rate=40.0)
    best = optimum(level, {})
    ours = profile_ends(model=level, parameter="rlevel", best=best, step=0.5, drop=DROP)
    theirs = quantile_interval(
        excesses=x,
        maximum=maximum,
        shape_error=0.1,
        tail=1 / 40,
        estimate=float(best.theta[0]),
        drop=DROP,
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_a_profile_that_does_not_fall_has_no_end():
    x = draw(-0.3, 12, seed=0)
    model = Model("gpd", x)
    best = optimum(model, {})
    assert best.settled
    low, high = profile_ends(model=model, parameter="shape", best=best, step=0.1, drop=DROP)
    assert math.isnan(low) and high > best.theta[1]


def test_covariates_are_climbed_from_any_start():
    rng = np.random.default_rng(8)
    z = rng.normal(size=600)
    x = np.exp(0.3 + 0.5 * z) * np.expm1(0.15 * rng.exponential(size=600)) / 0.15
    design, ones = np.column_stack([np.ones(600), z]), np.ones((600, 1))
    words = {"excesses": x, "scale_design": design, "shape_design": ones}
    peak = regression_peak(**words, links=("exp", "identity"))
    np.testing.assert_allclose(peak.theta, [0.3, 0.5, 0.15], atol=0.15)
    again = climb(regression(**words, links=("exp", "identity")), np.array([1.5, 0.0, 0.4]))
    np.testing.assert_allclose(again.theta, peak.theta, atol=1e-7)
    flat = regression_peak(excesses=x, scale_design=ones, shape_design=ones, links=("exp", "exp"))
    scale, shape = pareto_peak(x).theta
    np.testing.assert_allclose(np.exp(flat.theta), [scale, shape], rtol=1e-6)


def test_covariates_and_units_go_there_and_back():
    rng = np.random.default_rng(9)
    table = np.column_stack([1990 + rng.uniform(size=50), rng.normal(size=50)])
    for link, unit in (("identity", 8.0), ("exp", 8.0), ("function(x) exp(x)", 8.0)):
        one = block("sig", [2, 1], link, table=table, names=["a", "b"], rows=np.ones(50, bool))
        assert isinstance(one, Block) and one.terms == ("scale", "scale:b", "scale:a")
        coefficients = np.array([1.0, 0.5, -0.02])
        theirs = one.to_r(coefficients, unit)
        back, moved = one.back(unit)
        np.testing.assert_allclose(back @ theirs + moved, coefficients, atol=1e-12)
        standard = (table[:, [1, 0]] - one.centre) / one.spread
        eta = coefficients[0] + table[:, [1, 0]] @ coefficients[1:]
        in_r = theirs[0] + standard @ theirs[1:]
        expected = {"identity": eta / unit, "exp": eta - np.log(unit)}.get(link, eta)
        np.testing.assert_allclose(in_r, expected, atol=1e-10)
        assert np.all(np.log2(one.spread) % 1 == 0)


def test_where_a_curve_crosses_a_line():
    x = np.linspace(-2, 2, 9)
    low, high = crossings(x, 1 - x**2, -0.5)
    assert (low, high) == pytest.approx((-1.2, 1.2))
    assert crossings(x[::-1], 1 - x**2, -0.5) == pytest.approx((-1.2, 1.2))
    low, high = crossings(x, 1 - (x - 1.5) ** 2, -0.5)
    assert low == pytest.approx(0.3) and math.isnan(high)


def test_the_unit_is_a_power_of_two_near_the_scale():
    for scale in (1e-9, 0.3, 1.0, 1e7):
        unit = power_of_two(draw(0.2, 100, scale))
        assert math.log2(unit) % 1 == 0 and 0.4 < unit / scale < 2.5
    assert power_of_two(np.array([])) == 1.0 and power_of_two(np.array([np.inf])) == 1.0


WORDS = {
    "n": 100,
    "is_tied": False,
    "shape": 0.1,
    "settled": True,
    "converged": True,
    "gap": 0.0,
    "good_errors": True,
}


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, "converged"),
        ({"n": 9}, "weak_identification"),
        ({"good_errors": False}, "degenerate"),
        ({"shape": -0.6}, "nonregular"),
        ({"gap": 0.1}, "not_converged"),
        ({"converged": False}, "not_converged"),
        ({"settled": False}, "infeasible"),
        ({"shape": -1.2}, "infeasible"),
        ({"shape": math.nan}, "failed"),
        ({"is_tied": True}, "degenerate"),
    ],
)
def test_the_verdict(change, status):
    assert tail_status(**{**WORDS, **change}) == status


def test_errors_from_the_penalty_and_ties():
    scales = np.array([True, False])
    assert trusted(np.array([0.1, 0.1]), np.array([1.0, 0.1]), scales)
    for errors in ([2e-6, 0.1], [0.1, 2e-6], [np.nan, 0.1], [0.0, 0.1]):
        assert not trusted(np.array(errors), np.array([1.0, 0.1]), scales)
    assert tied(np.array([1.0, 1, 1, 2, 3])) and not tied(np.array([1.0, 1, 2, 3, 4]))
    assert not tied(np.array([]))
