"""Benchmarking: totals met, columns, words, refusals; no R."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import pytest

from pybridge.errors import InputError
from pybridge.smoothing.fay_herriot import fay_herriot
from pybridge.smoothing.benchmarking import BenchmarkedEstimates


def fitted(outside=(), **words):
    rng = np.random.default_rng(9)
    frame = pd.DataFrame({"county": [f"c{i}" for i in range(20)], "f": rng.normal(size=20)})
    frame["v"] = rng.uniform(0.1, 0.4, 20)
    frame["z"] = 6 + frame["f"] + np.sqrt(0.5 + frame["v"]) * rng.normal(size=20)
    frame["size"] = rng.integers(10, 60, 20).astype(float)
    frame["n_labelled"] = 5
    frame.loc[list(outside), ["z", "v"]] = np.nan
    words = {"variance": "v", "domain": "county", "engine": "native", **words}
    return fay_herriot("z ~ f", frame, **words), frame["size"].to_numpy()


METHODS = pytest.mark.parametrize("method", ["difference", "ratio", "mse"])


@METHODS
@pytest.mark.parametrize("words", [{}, {"transformation": "log"}, {"finite_population": True}])
def test_totals_are_met(words, method):
    fit, size = fitted(outside=(2,), **words)
    total = 1.02 * float(size @ fit.fit.estimate)
    found = fit.benchmark(total=total, weights=size, method=method, B=50, mse_type="boot", seed=1)
    assert isinstance(found, BenchmarkedEstimates)
    assert size @ found.benchmarked == pytest.approx(total, rel=1e-13)
    assert (found.benchmarked_mse > 0).all()
    table = found.to_frame()
    np.testing.assert_allclose(table["upper"] + table["lower"], 2 * table["benchmarked"])
    np.testing.assert_allclose(table["standard_error"] ** 2, table["benchmarked_mse"])
    assert pickle.loads(pickle.dumps(found)) == found
    json.dumps(found.to_dict(), allow_nan=False)
    assert "known total" in found.summary() and repr(found) == found.summary()


def test_how_each_method_moves():
    fit, size = fitted()
    total = 1.02 * float(size @ fit.fit.estimate)
    words = {"total": total, "weights": size, "mse_type": "none"}
    moved = {m: fit.benchmark(method=m, **words).adjustment for m in ("difference", "ratio", "mse")}
    assert np.ptp(moved["difference"]) < 1e-12
    assert np.ptp(moved["ratio"] / fit.fit.estimate) < 1e-12
    assert np.ptp(moved["mse"] / fit.fit.mse) < 1e-12


@METHODS
def test_shares_and_sizes_say_the_same(method):
    fit, size = fitted()
    total = 1.02 * float(size @ fit.fit.estimate)
    one = fit.benchmark(total=total, weights=size, method=method, mse_type="analytical")
    two = fit.benchmark(
        total=total / size.sum(), weights=size / size.sum(), method=method, mse_type="analytical"
    )
    np.testing.assert_allclose(one.benchmarked, two.benchmarked)
    np.testing.assert_allclose(one.benchmarked_mse, two.benchmarked_mse)


def test_weights_by_label_in_any_order():
    fit, size = fitted()
    total = float(size @ fit.fit.estimate)
    labels = [f"c{i}" for i in range(20)]
    plain = fit.benchmark(total=total, weights=size)
    series = pd.Series(size, index=labels).sample(frac=1, random_state=1)
    assert plain == fit.benchmark(total=total, weights=series)
    assert plain == fit.benchmark(total=total, weights=dict(zip(labels, size)))


def test_the_direct_total_is_that_of_the_direct_estimates():
    fit, size = fitted()
    found = fit.benchmark(total="direct", weights=size)
    assert found.total_kind == "direct"
    assert size @ found.benchmarked == pytest.approx(float(size @ fit.area.estimate))
    # It brings nothing new: the estimates lose by it, whatever the domain.
    assert (found.benchmarked_mse > fit.fit.mse).all()


def test_a_known_total_helps_and_an_uncertain_one_less():
    fit, size = fitted()
    total = float(size @ fit.fit.estimate)
    known = fit.benchmark(total=total, weights=size).benchmarked_mse
    vague = fit.benchmark(total=total, weights=size, total_variance=(0.05 * total) ** 2)
    assert known.mean() < fit.fit.mse.mean() < vague.benchmarked_mse.mean()


@METHODS
def test_closed_form_and_bootstrap_agree_to_their_orders(method):
    fit, size = fitted()
    total = float(size @ fit.fit.estimate) * 1.01
    words = {"total": total, "weights": size, "method": method}
    closed = fit.benchmark(mse_type="analytical", **words).benchmarked_mse
    boot = fit.benchmark(mse_type="boot", B=2000, seed=3, **words).benchmarked_mse
    limit = 1e-12 if method == "difference" else 0.04
    np.testing.assert_allclose(boot, closed, rtol=limit)


def test_the_kind_of_mse():
    fit, size = fitted()
    total = float(size @ fit.fit.estimate)
    assert fit.benchmark(total=total, weights=size).mse_type == "analytical"
    assert fit.benchmark(total=total, weights=size, method="ratio").mse_type == "boot"
    none = fit.benchmark(total=total, weights=size, mse_type="none")
    assert np.isnan(none.benchmarked_mse).all() and none.seed is None
    drawn = fit.benchmark(total=total, weights=size, method="ratio", B=20)
    again = fit.benchmark(total=total, weights=size, method="ratio", B=20, seed=drawn.seed)
    assert drawn == again


def refused(code, field, fit=None, **words):
    fit, size = fitted() if fit is None else (fit, np.ones(20))
    words = {"total": float(size @ fit.fit.estimate), "weights": size, **words}
    with pytest.raises(InputError) as caught:
        fit.benchmark(**words)
    error = caught.value
    assert (error.code, error.field) == (code, field), str(error)
    assert error.expected is not None
    return error


def test_refusals():
    refused("unknown_option", "method", method="raking")
    refused("unknown_option", "mse_type", mse_type="jackknife")
    refused("unknown_option", "total", total="mean")
    refused("not_a_number", "total", total=None)
    refused("negative_variance", "total_variance", total_variance=-1.0)
    for weights in (np.ones(3), -np.ones(20), np.zeros(20), np.full(20, np.nan), "size"):
        refused("bad_weights", "weights", weights=weights)
    error = refused("bad_weights", "weights", weights={"c0": 1.0, "d": 2.0})
    assert "c1" in error.got and "'d'" in error.got
    error = refused("far_benchmark", "total", total=6.0)
    assert "mean" in error.hint
    refused("bad_count", "B", method="ratio", B=1)
    refused("out_of_sample", "total", fitted(outside=(4,))[0], total="direct")


def test_what_a_model_has_not():
    robust, _ = fitted(method="reblup")
    refused("not_available", "mse_type", robust, mse_type="boot")
    logs, _ = fitted(transformation="log")
    refused("not_available", "mse_type", logs, mse_type="analytical")
    bayes, _ = fitted(method="bayes")
    refused("not_available", "mse_type", bayes, mse_type="boot")
    assert (
        bayes.benchmark(
            total=float(bayes.fit.estimate.sum()), weights=np.ones(20)
        ).benchmarked_mse.mean()
        < bayes.fit.mse.mean()
    )
    flat, _ = fitted()
    flat.fit.mse.flags.writeable = True
    flat.fit.mse[3] = -1.0
    refused("missing_values", "method", flat, method="mse")
