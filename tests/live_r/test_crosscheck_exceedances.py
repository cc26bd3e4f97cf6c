"""A fit of evd's, ismev's or evir's functions by every engine that has the model."""

from __future__ import annotations

import numpy as np
import pytest

from pybridge.engines import evd, evir, ismev
from pybridge.errors import InputError
from validation.cases.gpd import scores
from validation.cases.tail_calls import trend

pytestmark = pytest.mark.r("evd", "ismev", "evir")


@pytest.fixture(scope="module")
def rain():
    return scores("rain")


def test_a_plain_fit_is_compared_over_three_engines(rain):
    check = evd.fpot(rain, 30.0).crosscheck()
    assert check.agrees
    assert [a.producer for a in check.answers] == [
        *("native", "evd guarded", "evd raw", "ismev guarded", "ismev raw")
    ]
    for fit in (ismev.gpd_fit(rain, 30.0), evir.gpd(rain, 30.0), evd.fpot(rain, 30.0, cmax=True)):
        assert fit.crosscheck().agrees


def test_a_point_process_over_two_and_ismev_s_own_start_parts(rain):
    for fit in (evd.fpot(rain, 30.0, model="pp", npp=365), ismev.pp_fit(rain, 30.0)):
        check = fit.crosscheck()
        assert not check.agrees
        frame = check.to_frame().set_index("producer")
        assert set(frame.index) == {"evd guarded", "evd raw", "ismev guarded", "ismev raw"}
        assert list(frame.index[~frame["agrees"].astype(bool)]) == ["ismev raw"]
        assert check.lacking("ismev raw") == pytest.approx(28.37, abs=0.01)
        assert "ismev raw parts from exact" in check.sentence
        assert {"location", "scale", "shape"} <= set(frame.columns)


def test_held_parameters_and_return_levels(rain):
    assert evd.fpot(rain, 30.0, scale=8.0).crosscheck().agrees
    assert evd.fpot(rain, 30.0, model="pp", npp=365, shape=0.1).crosscheck().agrees
    assert evd.fpot(rain, 30.0, mper=100, npp=365, rlevel=100.0).crosscheck().agrees


def test_covariates_over_the_modes_of_ismev():
    table = trend()
    words = {"ydat": table[["year", "group"]], "sigl": "year", "shl": "group"}
    fit = ismev.gpd_fit(table["score"], 10.0, siglink="exp", **words)
    check = fit.crosscheck()
    assert tuple(check.answers[0].numbers) == fit.terms
    np.testing.assert_allclose(list(check.answers[0].numbers.values()), fit.estimate, rtol=1e-6)
    assert check.answers[0].status == "converged" and len(check.answers) == 2
    assert "ismev guarded" in check.nearest
    own = ismev.gpd_fit(table["score"], 10.0, siglink="function(x) exp(x)", **words)
    with pytest.raises(InputError) as caught:
        own.crosscheck()
    assert caught.value.code == "no_optimum"


def test_raw_fits_with_covariates_are_compared_and_start_where_the_users_did():
    table = trend()
    words = {"ydat": table[["year"]], "sigl": "year", "siglink": "exp", "siginit": [1.0, 0.0]}
    for mode in ("raw", "guarded"):
        fit = ismev.gpd_fit(table["score"], 10.0, mode=mode, **words)
        check = fit.crosscheck()
        assert check.agrees and not check.unavailable
        found = {one.producer: one.numbers for one in check.answers}
        assert set(found) == {"ismev guarded", "ismev raw"}
        raw = ismev.gpd_fit(table["score"], 10.0, mode="raw", **words)
        assert list(found["ismev raw"].values()) == list(raw.estimate)


def test_other_units_are_found_out(rain):
    x = np.asarray(rain) * 1e4
    check = evd.fpot(x, 3e5).crosscheck()
    assert not check.agrees and "evd raw" in check.sentence
    assert "evd guarded" in check.nearest
