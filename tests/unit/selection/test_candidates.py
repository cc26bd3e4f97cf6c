"""Candidates: what can be described, and what is refused before any work."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import pybridge as pb
from pybridge.selection.candidates import _quoted
from tests.unit.selection.samples import DIRECT, code_of, setting, units


# --- describing candidates ---------------------------------------------------------------------


def test_standard_candidates() -> None:
    found = pb.standard_candidates("f", engine="native")
    assert [item.name for item in found] == [
        *("HT", "Hájek", "PPI", "GREG", "FH", "FH-GREG", "PP-S", "TFH", "PP-TS"),
    ]
    assert [item.name for item in pb.standard_candidates(["f", "g"], taxonomy=False)] == [
        *("HT", "Hájek", "GREG", "FH", "FH-GREG", "PP-S"),
    ]
    assert found[5].summary() == "FH-GREG: greg with f, smoothed by fay_herriot (~ f), native REML"
    assert pickle.loads(pickle.dumps(found)) == found


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (dict(name=""), "bad_name"),
        (dict(name=3), "bad_name"),
        (dict(direct="ols"), "unknown_option"),
        (dict(direct="ht", unit_auxiliary="f"), "wrong_auxiliary"),
        (dict(direct="ppi", unit_auxiliary=["f", "g"]), "wrong_auxiliary"),
        (dict(direct="greg"), "wrong_auxiliary"),
        (dict(direct="greg", unit_auxiliary="f", slope="best"), "unknown_option"),
        (dict(direct="greg", unit_auxiliary="f", slope=[1.0, 2.0]), "wrong_length"),
        (dict(direct="greg", unit_auxiliary="f", slope=None), "not_a_number"),
        (dict(smoothing="loess"), "unknown_option"),
        (dict(smoothing="fay_herriot", engine="SAS"), "unknown_option"),
        (dict(smoothing="fay_herriot", engine="emdi", method="me"), "unknown_option"),
        (dict(smoothing="fay_herriot", engine="emdi", transformation="log"), "unknown_option"),
        (dict(smoothing="fay_herriot", engine="sae", TOL=1), "unknown_option"),
        (dict(smoothing="fay_herriot", engine="sae", PRECISION=0), "bad_precision"),
        (dict(smoothing="fay_herriot", prior=3), "bad_prior"),
        (dict(smoothing="taxonomy", engine="metafor", method="bayes"), "unknown_option"),
        (dict(smoothing="taxonomy", engine="rjags", n_draws=0), "bad_count"),
        (dict(n_draws=5), "unknown_option"),
        (dict(smoothing="fay_herriot", method="MCMC"), "unknown_option"),
        (dict(smoothing="fay_herriot", engine="sae", method="bayes"), "unknown_option"),
        (dict(smoothing="taxonomy", engine="sae"), "unknown_option"),
        (dict(variance="best"), "unknown_option"),
        (dict(function=3), "wrong_type"),
        (dict(smoothing="fay_herriot", area_formula="f"), "bad_formula"),
        (dict(smoothing="fay_herriot", area_formula="y ~ f"), "bad_formula"),
        (dict(smoothing="fay_herriot", area_formula=3), "bad_formula"),
        (dict(smoothing="fay_herriot", finite_population="no"), "not_a_bool"),
    ],
)
def test_candidates_that_cannot_be(words: dict[str, Any], code: str) -> None:
    assert code_of(pb.candidate, **{"name": "mine", **words}) == code


@pytest.mark.parametrize(
    ("candidates", "code"),
    [
        ([], "no_candidate"),
        (None, "wrong_type"),
        (5, "wrong_type"),
        (["HT"], "wrong_type"),
        ([DIRECT[0], DIRECT[0]], "duplicate_name"),
    ],
)
def test_lists_of_candidates_that_cannot_be(candidates: Any, code: str) -> None:
    assert code_of(pb.select, *setting(), candidates, outcome="y") == code


def test_no_auxiliary_for_the_standard_ones() -> None:
    assert code_of(pb.standard_candidates, []) == "missing_argument"


@pytest.mark.parametrize(
    "name",
    [
        "class",
        "None",
        "a b",
        "it's",
        'a"b',
        "x[0]",
        "f(x)",
        "1f",
        "점수",
        "é",
        "e\u0301",
        "Intercept",
        "C",
        "np",
        "log",
        "a~b",
        "a\nb",
        "\\",
        "{x}",
        "%s",
    ],
)
def test_any_name_of_an_auxiliary_enters_the_area_model(name: str) -> None:
    table = units().rename(columns={"f": name})
    known = pb.population(table, domain="d", auxiliary=[name], taxonomy=["r"])
    design = pb.survey_design(table[table["labelled"]], weights="w")
    candidates = [
        c for c in pb.standard_candidates(name, engine="native") if c.name[:2] in ("FH", "PP")
    ]
    mine = pb.select(design, known, candidates[:3], outcome="y")
    plain = [c for c in pb.standard_candidates("f", engine="native") if c.name[:2] in ("FH", "PP")]
    theirs = pb.select(*setting(), plain[:3], outcome="y")
    np.testing.assert_allclose(mine.scores["db_cv"], theirs.scores["db_cv"], rtol=1e-12)


def test_names_stay_as_they_are_where_python_can_read_them() -> None:
    assert [_quoted(name) for name in ("f", "f_2", "점수")] == ["f", "f_2", "점수"]
