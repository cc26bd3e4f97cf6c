"""Options of the native Fay-Herriot engine: words, defaults, seeds, refusals; no R."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import pytest

from pybridge.errors import InputError
from pybridge.smoothing.fay_herriot import fay_herriot


def area(m=20, outside=(3,)):
    rng = np.random.default_rng(9)
    frame = pd.DataFrame({"county": [f"c{i}" for i in range(m)], "f": rng.normal(size=m)})
    frame["v"] = rng.uniform(0.1, 0.4, m)
    frame["z"] = 6 + frame["f"] + np.sqrt(0.5 + frame["v"]) * rng.normal(size=m)
    frame["n"] = rng.integers(20, 60, m).astype(float)
    frame.loc[list(outside), ["z", "v"]] = np.nan
    return frame


def shares():
    frame = area()
    frame["z"] = np.clip(frame["z"] / 12, 0.05, 0.95)
    frame["v"] = frame["v"] / 100
    return frame


def native(frame=None, **words):
    words = {"variance": "v", "domain": "county", "engine": "native", **words}
    return fay_herriot("z ~ f", area() if frame is None else frame, **words)


def refused(code, field, frame=None, **words):
    with pytest.raises(InputError) as caught:
        native(frame, **words)
    error = caught.value
    assert (error.code, error.field) == (code, field), str(error)
    assert error.expected is not None
    return error


# ------------------------------------------------------------------------- adjusted likelihoods


@pytest.mark.parametrize("method", ["AMRL", "ampl", "Amrl_YL", "ampl_yl"])
def test_adjusted_likelihoods_keep_away_from_zero(method):
    frame = area()
    frame["z"] = 6 + frame["f"] + 0.3 * (frame["z"] - 6 - frame["f"])
    assert native(frame).status == "boundary"
    fit = native(frame, method=method)
    assert fit.spec.method == method.upper() and fit.status == "converged"
    assert fit.model_variance > 0 and (fit.fit.shrinkage[4:] > 0).all()


def test_li_and_lahiri_need_enough_domains():
    few = area(m=4, outside=())
    error = refused("too_few_domains", "method", few, method="AMRL")
    assert "YL" in error.hint
    assert native(few, method="AMRL_YL").model_variance > 0
    assert native(few, method="AMPL").model_variance > 0


def test_negative_mse_is_said():
    frame = area()
    frame["z"] = 6 + frame["f"] + 0.1 * (frame["z"] - 6 - frame["f"])
    fit = native(frame, method="AMRL")
    assert (fit.fit.mse < 0).any()
    assert "negative_mse" in fit.domain_status and np.isnan(fit.fit.standard_error).any()


# ------------------------------------------------------------------------------------ bootstrap


@pytest.mark.parametrize("kind", ["boot", "bootbc"])
def test_the_bootstrap_is_seeded_and_said(kind):
    one = native(mse_type=kind, B=50, seed=4)
    assert one == native(mse_type=kind, B=50, seed=4)
    other = native(mse_type=kind, B=50, seed=5)
    assert not np.array_equal(one.fit.mse, other.fit.mse)
    np.testing.assert_array_equal(one.fit.estimate, other.fit.estimate)
    assert "50 replicates" in one.summary() and one.provenance.seed == 4
    assert "bootstrapped" in one.r_script() and "bootstrapped" not in native().r_script()
    drawn = native(mse_type=kind, B=50)
    assert drawn.spec.seed is not None
    assert drawn.fit == native(mse_type=kind, B=50, seed=drawn.spec.seed).fit


def test_blocks_do_not_change_the_numbers(monkeypatch):
    from pybridge.smoothing import _area_bootstrap as module

    whole = native(mse_type="boot", B=64, seed=1)
    monkeypatch.setattr(module, "_BLOCK", 1)
    monkeypatch.setattr(module, "_LEAST_ROWS", 5)
    parts = native(mse_type="boot", B=64, seed=1)
    np.testing.assert_allclose(parts.fit.mse, whole.fit.mse, rtol=1e-10)


def test_a_census_is_known_in_every_replicate():
    frame = area()
    frame.loc[5, "v"] = 0.0
    for words in ({"mse_type": "boot"}, {"method": "reblup", "mse_type": "boot"}, {}):
        fit = native(frame, B=30, seed=1, **words) if words else native(frame, method="reblup")
        assert fit.fit.mse[5] == 0 and fit.fit.estimate[5] == frame["z"][5]
        assert fit.domain_status[5] == "census"


def test_what_goes_with_a_bootstrap():
    assert "boot" in refused("needless_option", "B", B=100).expected
    refused("bad_count", "B", mse_type="boot", B=1)
    refused("bad_count", "B", mse_type="boot", B=10.5)
    refused("unknown_option", "mse_type", mse_type="jackknife")
    refused("unknown_option", "mse_type", mse_type="bootbc", transformation="log")
    refused("unknown_option", "mse_type", mse_type="bootbc", method="reblup")


# ------------------------------------------------------------------------------ transformations


def test_logarithms_in_the_record():
    frame = area()
    fit = native(frame, transformation="log")
    table = fit.to_frame()
    assert (table["lower"] > 0).all() and (table["lower"] < table["estimate"]).all()
    np.testing.assert_allclose(
        np.sqrt(table["lower"] * table["upper"]), np.exp(fit.fit.engine_fit.linear)
    )
    assert table["status"][3] == "out_of_sample" and (table["mse"] > 0).all()
    pd.testing.assert_series_equal(table["direct"], frame["z"], check_names=False)
    residual, effect, total = fit.fit.engine_fit.model_scale()
    inside = ~np.isnan(frame["z"])
    np.testing.assert_allclose(
        total[inside], fit.model_variance + (frame["v"] / frame["z"] ** 2)[inside]
    )
    assert np.isnan(residual[3]) and np.isnan(effect[3])
    assert pickle.loads(pickle.dumps(fit)) == fit
    assert json.loads(json.dumps(fit.to_dict(), allow_nan=False))["status"] == fit.status
    for gone in (fit.r_script, lambda: fit.to_rds("x.rds"), fit.crosscheck):
        with pytest.raises(InputError):
            gone()


@pytest.mark.parametrize("n_replicates", [0, 10])
def test_logarithms_beyond_the_largest_number_are_missing(n_replicates):
    from pybridge.smoothing._transformed import Transformed, fit_transformed

    z = np.exp(np.linspace(-130, 130, 20))
    fit = fit_transformed(
        estimate=z,
        variance=(0.1 * z) ** 2,
        covariates=np.column_stack([np.ones(20), np.tile([0.0, 1.0], 10)]),
        asked=Transformed("log", "bc", n_replicates=n_replicates),
    )
    assert fit.model_variance > 1000 and (n_replicates or np.isnan(fit.mse).any())
    for numbers in (fit.estimate, fit.mse, fit.lower, fit.upper):
        assert not np.isinf(numbers).any()


def test_arcsines_by_column_or_array():
    frame = shares()
    words = {"transformation": "arcsin", "method": "ML"}
    fit = native(frame, eff_smpsize="n", **words)
    again = native(frame, eff_smpsize=frame["n"].to_numpy(), **words)
    assert fit == again
    table = fit.to_frame()
    assert table[["estimate", "lower", "upper"]].to_numpy().min() >= 0
    assert table[["estimate", "lower", "upper"]].to_numpy().max() <= 1
    assert (table["estimate"] > table["lower"]).all() and (table["estimate"] < table["upper"]).all()
    naive = native(frame, eff_smpsize="n", backtransformation="naive", **words)
    np.testing.assert_allclose(naive.fit.estimate, np.sin(fit.fit.engine_fit.linear) ** 2)


def test_arcsines_outside_the_range_are_shares_of_0_or_1():
    from pybridge.smoothing._back_transformation import from_model_scale, squared_sine_moments

    np.testing.assert_array_equal(from_model_scale(np.array([-0.3, 2.0]), "arcsin"), [0.0, 1.0])
    mean, square = squared_sine_moments(np.array([-9.0, 9.0]), np.array([0.01, 0.01]))
    np.testing.assert_allclose(mean, [0, 1], atol=1e-15)
    np.testing.assert_allclose(square, [0, 1], atol=1e-15)


def test_a_narrow_spike_is_not_missed():
    from pybridge.smoothing._back_transformation import squared_sine_moments

    # Where integrate() over [0, π/2] returns 1e-24: sin² at the point, to first order exactly.
    mean, _ = squared_sine_moments(np.array(0.58), np.array(1 / 4e7))
    assert mean == pytest.approx(np.sin(0.58) ** 2 + np.cos(1.16) / 4e7, rel=1e-12)


def test_what_goes_with_a_transformation():
    refused("unknown_option", "transformation", transformation="logit")
    refused("unknown_option", "backtransformation", transformation="log", backtransformation="sm")
    refused("needless_option", "backtransformation", backtransformation="bc")
    refused("needless_option", "eff_smpsize", eff_smpsize="n")
    refused("needless_option", "eff_smpsize", transformation="log", eff_smpsize="n")
    words = {"transformation": "arcsin"}
    refused("missing_argument", "eff_smpsize", shares(), **words)
    refused("missing_column", "eff_smpsize", shares(), eff_smpsize="k", **words)
    refused("bad_shape", "eff_smpsize", shares(), eff_smpsize=np.ones(3), **words)
    refused("bad_size", "eff_smpsize", shares().assign(n=0.0), eff_smpsize="n", **words)
    refused("outside_range", "transformation", area(), eff_smpsize="n", **words)
    refused(
        "outside_range", "transformation", area(outside=()).assign(z=-1.0), transformation="log"
    )


# --------------------------------------------------------------------------------------- robust


def test_robust_words():
    fit = native(method="REBLUP")
    assert fit.spec.method == "reblup" and fit.spec.options["k"] == 1.345
    assert np.isnan(fit.log_likelihood) and "closed form" in fit.summary()
    assert "linearisation" in native(method="reblup", mse_type="pseudo").summary()
    assert fit.domain_status[3] == "out_of_sample" and fit.fit.mse[3] > fit.model_variance
    boot = native(method="reblup", mse_type="boot", B=40, seed=2)
    assert boot == native(method="reblup", mse_type="boot", B=40, seed=2)
    kept = native(method="reblupbc", mult_constant=0.1)
    reach = 0.1 * np.sqrt(kept.area.variance) * (1 + 1e-12)
    assert (
        np.abs(kept.fit.estimate - kept.area.estimate)[kept.area.sampled]
        <= reach[kept.area.sampled]
    ).all()


def test_robust_refusals():
    refused("bad_tuning", "k", method="reblup", k=0.0)
    refused("bad_tuning", "mult_constant", method="reblupbc", mult_constant=-1)
    refused("not_a_number", "k", method="reblup", k="small")
    refused("unknown_option", "transformation", method="reblup", transformation="log")
    refused("unknown_option", "k", k=1.0)


# ------------------------------------------------------------------------------- finite domains


def sized():
    return area().assign(
        n_labelled=np.where(np.arange(20) == 3, 0, 5), size=np.linspace(8, 40, 20).round()
    )


def test_finite_domains_are_off_by_default_and_asked_for_by_column():
    frame = sized()
    plain = native(frame)
    assert plain.spread is None
    fit = native(frame, finite_population=True)
    assert fit == native(frame, finite_population="size")
    rest = 1 - 5 / frame["size"]
    s2 = frame["v"] * 5 / rest
    np.testing.assert_allclose(
        fit.spread, np.where(frame["z"].isna(), s2.mean(), s2) / frame["size"]
    )
    assert (fit.to_frame()["direct_variance"].dropna() == frame["v"].dropna()).all()
    np.testing.assert_allclose(
        fit.engine_area.variance, (frame["v"] + fit.spread).to_numpy(), equal_nan=True
    )
    assert "finite domains" in fit.summary() and fit.provenance.options["finite_population"]
    given = native(frame, finite_population=True, element_variance=2.0)
    np.testing.assert_allclose(given.spread, 2.0 / frame["size"])


def test_sizes_without_end_give_the_plain_fit():
    frame = sized().assign(size=1e14)
    plain, fit = native(frame), native(frame, finite_population=True)
    np.testing.assert_allclose(fit.fit.estimate, plain.fit.estimate, rtol=1e-9)
    np.testing.assert_allclose(fit.fit.mse, plain.fit.mse, rtol=1e-9)
    np.testing.assert_allclose(fit.fit.lower, plain.fit.lower, rtol=1e-9)


def test_a_census_stays_one():
    frame = sized()
    frame.loc[6, ["v", "n_labelled", "size"]] = [0.0, 12, 12]
    fit = native(frame, finite_population=True)
    assert fit.fit.estimate[6] == frame["z"][6] and fit.fit.mse[6] == 0
    assert fit.domain_status[6] == "census"


def test_the_script_of_finite_domains_has_their_last_step():
    text = native(sized(), finite_population=True).r_script()
    assert "spread <- c(" in text and text.count("print(result, digits = 10)") == 1
    robust = native(sized(), finite_population=True, method="reblup")
    with pytest.raises(InputError):
        robust.r_script()


def test_finite_domains_refused():
    words = {"finite_population": True}
    refused("missing_column", "finite_population", area(), **words)
    refused("missing_argument", "element_variance", area().assign(size=9.0), **words)
    refused("missing_argument", "element_variance", sized(), element_variance=1.0)
    refused("bad_size", "finite_population", sized().assign(size=3.0), **words)
    refused("bad_size", "finite_population", sized().assign(size=0.0), **words)
    refused("bad_variance", "element_variance", sized(), element_variance=-1.0, **words)
    refused("bad_variance", "element_variance", sized(), element_variance=[1.0], **words)
    refused("not_available", "finite_population", sized(), transformation="log", **words)


# --------------------------------------------------------------------------------- over time


def test_time_needs_what_it_needs():
    refused("not_available", "correlation", time="f")
    refused("missing_argument", "time", correlation="spatio-temporal", engine="sae")
    refused("missing_argument", "proximity", time="county", engine="sae")
    refused("unknown_option", "method", time="county", engine="sae", method="ML")
