"""The record of a cross-check: its sentence, and which answer is nearest to the optimum."""

from __future__ import annotations

import json
import math
import pickle

import pytest

from pybridge.crosscheck.agreement import AgreementTable
from pybridge.crosscheck.comparer import compare
from pybridge.crosscheck.fits import EngineAnswer, FitCrosscheck
from pybridge.crosscheck.tolerances import SAE, SAE_SHORTFALL


def row(producer, value, *, quantity="model variance", tolerance=SAE):
    return compare(
        case="this fit",
        quantity=quantity,
        producer=producer,
        values=value,
        against="native",
        reference=1.0,
        tolerance=tolerance,
        unit=0.5,
    )


def answer(producer, variance=1.0, criterion=-10.0, status="converged"):
    return EngineAnswer(producer, status, {"model_variance": variance}, criterion)


def record(answers, rows, **words):
    words = {"criterion_name": "restricted log-likelihood", **words}
    return FitCrosscheck("a fit", tuple(answers), AgreementTable(tuple(rows)), **words)


def test_agreement_is_said_with_its_largest_difference():
    found = record([answer("native"), answer("sae raw", 1.0001)], [row("sae raw", 1.0001)])
    assert found.agrees
    assert found.sentence == (
        "native and sae raw agree: at most 0.0002 standard errors apart (model variance)."
    )


def test_parting_says_where_by_how_much_and_who_is_nearer():
    rows = [
        row("sae raw", 0.5),
        row("sae raw", 0.9, quantity="coefficients"),
        row("sae raw", 1.0, quantity="estimate"),
        row("sae raw", 0.6, quantity="maximum attained", tolerance=SAE_SHORTFALL),
    ]
    found = record([answer("native"), answer("sae raw", 0.5, -10.4)], rows)
    assert not found.agrees
    assert found.nearest == ("native",) and found.lacking("sae raw") == pytest.approx(0.4)
    assert found.sentence == (
        "sae raw parts from native in model variance, coefficients and maximum attained, most in "
        "model variance: 0.5 against 1, 1 standard errors apart. Nearest to the optimum is "
        "native; below in restricted log-likelihood: sae raw by 0.4."
    )
    frame = found.to_frame().set_index("producer")
    assert frame.loc["native", "agrees"] and not frame.loc["sae raw", "agrees"]
    assert frame.loc["sae raw", "below_best"] == pytest.approx(0.4)


def test_two_modes_that_say_the_same_share_a_sentence():
    answers = [answer("native"), answer("sae guarded", 0.5, -11), answer("sae raw", 0.5, -11)]
    found = record(answers, [row("sae guarded", 0.5), row("sae raw", 0.5)])
    assert found.sentence.startswith("sae guarded and sae raw part from native in model variance")


def test_an_r_engine_may_be_nearer_than_the_native_one():
    found = record([answer("native", criterion=-12.0), answer("emdi raw")], [row("emdi raw", 2.0)])
    assert found.nearest == ("emdi raw",)
    assert "Nearest to the optimum is emdi raw; below in" in found.sentence


def test_one_reason_of_several_engines_is_said_once():
    gone = "R was not found. Run: apt."
    missing = {"sae": gone, "emdi": gone, "metafor": "it stopped"}
    assert record([answer("native")], [], unavailable=missing).sentence == (
        "Nothing was compared: only native gave numbers. sae and emdi could not be asked: R was "
        "not found. Run: apt. metafor could not be asked: it stopped."
    )


def test_nothing_compared_is_not_agreement():
    missing = {"sae": "R was not found."}
    found = record([answer("native")], [], unavailable=missing)
    assert not found.agrees
    assert found.sentence == (
        "Nothing was compared: only native gave numbers. sae could not be asked: R was not found."
    )
    assert not found.to_frame()["agrees"].any()


def test_several_answers_without_an_exact_one_are_not_compared():
    found = record([answer("emdi guarded"), answer("emdi raw")], [])
    assert "no exact answer to hold emdi guarded and emdi raw against" in found.sentence


def test_an_engine_without_numbers_is_named():
    silent = answer("sae raw", math.nan, math.nan, "not_converged")
    found = record([answer("native"), silent], [])
    assert "No numbers from sae raw (not_converged)." in found.sentence
    assert "Nearest" not in found.sentence


def test_without_a_criterion_nobody_is_nearer():
    answers = [answer("native", criterion=math.nan), answer("hbsae raw", 2.0, math.nan)]
    found = record(answers, [row("hbsae raw", 2.0)], criterion_name="")
    assert found.nearest == () and "Nearest" not in found.sentence
    assert "criterion" not in found.to_frame()


def test_a_record_pickles_and_goes_to_json():
    found = record([answer("native"), answer("sae raw", 0.5, -11)], [row("sae raw", 0.5)])
    assert pickle.loads(pickle.dumps(found)) == found
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["agrees"] is False and plain["sentence"] == found.sentence
    assert found.sentence in found.summary() and "1 failed" in found.summary()
