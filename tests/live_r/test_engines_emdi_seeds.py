"""Seeds of emdi: what is drawn without one can be drawn again."""

from __future__ import annotations

import numpy as np
import pytest

from pybridge.engines import emdi
from pybridge.smoothing.fay_herriot import fay_herriot
from tests.live_r.emdi_tables import small

pytestmark = pytest.mark.r("emdi")

DRAWING = [
    ({"B": (2, 5)}, lambda fit: fit.criteria["AICb1"]),
    (
        {"MSE": True, "mse_type": "boot", "B": 3, "transformation": "logit"}
        | {"backtransformation": "naive"},
        lambda fit: fit.mse[0],
    ),
]


def table():
    return small(seed=2).assign(p=lambda t: 0.4 + 0.05 * t.x.clip(-2, 2), pv=0.01)


@pytest.mark.parametrize("mode", ["raw", "guarded"])
@pytest.mark.parametrize(("words", "number"), DRAWING, ids=["criteria", "mse"])
def test_without_a_seed_a_fresh_one_is_drawn_and_kept(words, number, mode, plain_r):
    left, variance = ("p", "pv") if "transformation" in words else ("y", "v")
    asked = (f"{left} ~ x", variance, table(), "d")
    fits = [emdi.fh(*asked, seed=None, mode=mode, **words) for _ in range(2)]
    seeds = [fit.provenance.seed for fit in fits]
    assert all(isinstance(seed, int) for seed in seeds) and seeds[0] != seeds[1]
    assert number(fits[0]) != number(fits[1])
    again = emdi.fh(*asked, seed=seeds[0], mode=mode, **words)
    assert number(again) == number(fits[0])
    shown = 'show("b", object$model$model_select$AICb1)\nshow("mse", result$mse)\n'
    found = plain_r(fits[0].r_script() + shown)
    if "MSE" in words:
        np.testing.assert_array_equal(found["mse"], fits[0].mse)
    else:
        assert found["b"] == [fits[0].criteria["AICb1"]]


def test_where_nothing_is_drawn_there_is_no_seed():
    fit = emdi.fh("y ~ x", "v", table(), "d", seed=None)
    assert fit.provenance.seed is None


def test_direct_draws_a_fresh_seed_for_variances():
    rng = np.random.default_rng(0)
    units = small(seed=1, m=40).assign(g=rng.integers(0, 4, 40).astype(str))
    found = [emdi.direct("y", units, "g", var=True, B=5, seed=None) for _ in range(2)]
    seeds = [one.provenance.seed for one in found]
    assert all(isinstance(seed, int) for seed in seeds) and seeds[0] != seeds[1]
    assert not np.array_equal(found[0].variance, found[1].variance)
    again = emdi.direct("y", units, "g", var=True, B=5, seed=seeds[0])
    np.testing.assert_array_equal(again.variance, found[0].variance)
    assert emdi.direct("y", units, "g", seed=None).provenance.seed is None


def test_fay_herriot_keeps_the_seed_that_emdi_takes_by_itself():
    words = {"variance": "v", "domain": "d", "engine": "emdi", "method": "reblup"}
    fit = fay_herriot("y ~ x", table(), mse_type="boot", B=2, **words)
    assert fit.provenance.seed == 123 and fit.spec.seed == 123
    assert fit.fit.engine_fit.provenance.seed == 123
    assert fay_herriot("y ~ x", table(), mse_type="pseudo", **words).provenance.seed is None
