"""A Fay-Herriot fit by every engine, with stand-ins for R's: right, wrong, and missing ones."""

from __future__ import annotations

import sys
import types
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from pybridge.crosscheck import area as checked
from pybridge.errors import EngineError, EngineUnavailable, InputError
from pybridge.smoothing._area_model import area_model_at, fit_area_model
from pybridge.smoothing.fay_herriot import Adapter, fay_herriot

NATIVE = Adapter("native", ("REML", "ML", "FH", "PR"), "pybridge.smoothing._native", ("guarded",))
STAND_IN = "tests_stand_in_engine"


@pytest.fixture
def fit():
    draw = np.random.default_rng(5)
    x = draw.normal(size=20)
    d = draw.uniform(0.5, 2.0, size=20)
    table = pd.DataFrame({"domain": [f"d{i}" for i in range(20)], "x": x, "variance": d})
    table["estimate"] = 1 + x + draw.normal(size=20) * np.sqrt(0.8 + d)
    return fay_herriot("estimate ~ x", table, engine="native")


@pytest.fixture
def engine(monkeypatch):
    """Puts a function in an R engine's place; it may answer at another variance, or raise."""

    def install(answer, methods=("REML", "ML", "FH")):
        module = types.ModuleType(STAND_IN)
        module.complete_options = lambda given: dict(given)
        module.fit = answer
        monkeypatch.setitem(sys.modules, STAND_IN, module)
        monkeypatch.setattr(checked, "ADAPTERS", (Adapter("sae", methods, STAND_IN), NATIVE))
        monkeypatch.setattr(checked, "BY_METAFOR", ())

    return install


def arrays(table):
    return {
        "estimate": table.estimate,
        "variance": table.variance,
        "covariates": table.covariates,
    }


def at_times(factor):
    def answer(table, spec):
        exact = fit_area_model(**arrays(table), method=spec.method)
        found = exact.model_variance * factor
        moved = area_model_at(found, **arrays(table), method=spec.method)
        return replace(moved, engine="sae")

    return answer


def test_an_engine_at_the_optimum_agrees_in_both_modes(fit, engine):
    engine(at_times(1.0 + 1e-6))
    found = fit.crosscheck()
    assert found.agrees and found.table.n_made == 12
    assert found.sentence.startswith("native, sae guarded and sae raw agree")
    assert list(found.to_frame()["producer"]) == ["native", "sae guarded", "sae raw"]


@pytest.mark.parametrize("method", ["REML", "ML", "FH"])
def test_an_engine_elsewhere_parts_and_is_ranked(fit, engine, method):
    fit = replace(fit, spec=replace(fit.spec, method=method))
    engine(at_times(0.5))
    found = fit.crosscheck()
    assert not found.agrees and found.nearest == ("native",)
    assert found.lacking("sae raw") > 1e-3
    assert "part from native in model variance" in found.sentence
    assert "Nearest to the optimum is native" in found.sentence


def test_a_wrong_formula_parts_at_the_right_optimum(fit, engine):
    def answer(table, spec):
        right = at_times(1.0)(table, spec)
        return replace(right, mse=right.mse * 1.01, estimate=right.estimate + 0.01)

    engine(answer)
    found = fit.crosscheck()
    assert {row.quantity for row in found.table.having("PART")} == {"mse", "estimate"}
    assert found.nearest == ("native", "sae guarded", "sae raw")


def test_a_missing_engine_is_named_once_and_nothing_is_raised(fit, engine):
    def answer(table, spec):
        raise EngineUnavailable("R was not found", code="no_r", hint="Install R.")

    engine(answer)
    found = fit.crosscheck()
    assert dict(found.unavailable) == {"sae": "R was not found. Install R."}
    assert "Nothing was compared: only native gave numbers." in found.sentence


@pytest.mark.parametrize("kind", [EngineError, InputError])
def test_an_engine_that_stops_or_refuses_says_why(fit, engine, kind):
    def answer(table, spec):
        if spec.mode == "raw":
            raise kind("it stopped", code="stopped", got="exactly singular")
        return at_times(1.0)(table, spec)

    engine(answer)
    found = fit.crosscheck()
    assert dict(found.unavailable) == {"sae raw": "it stopped (exactly singular)"}
    assert found.agrees and "sae raw could not be asked" in found.sentence


def test_an_answer_without_numbers_is_not_possible_to_compare(fit, engine):
    def answer(table, spec):
        nothing = np.full(len(table.estimate), np.nan)
        return replace(
            at_times(1.0)(table, spec),
            model_variance=np.nan,
            estimate=nothing,
            mse=nothing,
            log_likelihood=np.nan,
            status="not_converged",
        )

    engine(answer)
    found = fit.crosscheck()
    assert found.table.n_made == 0 and found.table.n_not_possible == 2
    assert "No numbers from sae guarded (not_converged) and sae raw" in found.sentence


def test_engines_without_the_method_are_not_asked(fit, engine):
    engine(at_times(1.0), methods=("FH",))
    assert [a.producer for a in fit.crosscheck().answers] == ["native"]


def test_options_go_to_the_engine_that_has_them(fit, engine):
    seen = []

    def answer(table, spec):
        seen.append((spec.engine, dict(spec.options)))
        return at_times(1.0)(table, spec)

    engine(answer)
    given = replace(fit.spec, engine="sae", options={"PRECISION": 1e-9})
    replace(fit, spec=given).crosscheck()
    assert seen == [("sae", {"PRECISION": 1e-9})] * 2
