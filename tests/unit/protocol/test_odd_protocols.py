"""Odd protocols, paths and scores end in a structured error, or in a verdict."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.errors import InputError
from pybridge.protocol.reading import make_protocol
from pybridge.tails._distribution import draw

WORDS = {"mean_margin": 0.2, "tail_margin": 1.0, "replicates": 99, "engine": "native"}
WORDS |= {"fit_method": "table", "models": ["a", "b"], "scan_quantiles": [0.95, 0.97]}
PLAN = make_protocol(**WORDS)
ODD = [
    None,
    3,
    np.nan,
    b"bytes",
    [],
    {},
    object(),
    pd.DataFrame(),
    np.array([1.0]),
    pd.NA,
    slice(1),
]
PATHS = [*ODD[1:], "", "\x00", "x" * 3000]


def table(n=400):
    rng = np.random.default_rng(1)
    parts = [
        pd.DataFrame(
            {
                "model": m,
                "item": np.arange(n),
                "score": draw(rng=rng, size=(n,), shape=0.0, scale=1.0),
            }
        )
        for m in "ab"
    ]
    return pd.concat(parts, ignore_index=True)


def refused(function, *arguments, code=None, field=None, **words):
    with pytest.raises(InputError) as caught:
        function(*arguments, **words)
    error = caught.value
    assert error.code == (code or error.code) and error.field == (field or error.field)
    assert error.expected


@pytest.mark.parametrize("odd", ODD, ids=lambda x: type(x).__name__)
def test_a_protocol_is_one_of_load_protocol(odd):
    refused(pb.run_protocol, odd, table(), exploratory=True, code="wrong_type", field="protocol")
    refused(pb.run_protocol, PLAN, odd, exploratory=True, field="scores")


@pytest.mark.parametrize("odd", PATHS, ids=lambda x: type(x).__name__)
def test_paths_that_are_none(odd):
    refused(pb.load_protocol, odd, code="bad_path", field="protocol")
    refused(pb.run_protocol, PLAN, table(), registration=odd, code="bad_path")
    refused(PLAN.register, odd, code="bad_path")


def test_a_registration_needs_a_name_and_a_folder(tmp_path):
    refused(PLAN.register, ".", code="bad_path")
    refused(PLAN.register, tmp_path / "nowhere" / "claim.json", code="cannot_write")


@pytest.mark.parametrize("odd", ODD, ids=lambda x: type(x).__name__)
def test_words_of_the_plan_are_text(odd):
    for name in ("engine", "fit_method", "pairing"):
        refused(make_protocol, **{**WORDS, name: odd})


@pytest.mark.parametrize(
    "odd", [None, 3, "a", [1], {"a": 1}, {1: {}}, {"a": {1: 2}}, pd.DataFrame([[1]])], ids=repr
)
def test_overrides_are_mappings_by_name(odd):
    refused(make_protocol, **{**WORDS, "overrides": odd})


def test_scores_of_any_kind_give_the_same_verdict():
    usual = table()
    verdict = pb.run_protocol(PLAN, usual, exploratory=True)
    read_only = usual["score"].to_numpy(copy=True)
    read_only.setflags(write=False)
    same = {
        "read only": usual.assign(score=read_only),
        "nullable": usual.assign(score=pd.array(usual["score"], dtype="Float64")),
        "labels": usual.assign(model=pd.array(usual["model"], dtype="string")),
        "unused": usual.assign(model=pd.Categorical(usual["model"], categories=list("abc"))),
        "turned": usual.sample(frac=1.0, random_state=1),
        "index": usual.set_axis(np.zeros(len(usual))),
    }
    for name, scores in same.items():
        assert pb.run_protocol(PLAN, scores, exploratory=True).pairs == verdict.pairs, name


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_tables_without_scores_are_refused_or_judged(rows):
    scores = table().iloc[[0, 400][:rows]]
    if rows < 2:
        refused(pb.run_protocol, PLAN, scores, exploratory=True)
    else:
        assert pb.run_protocol(PLAN, scores, exploratory=True).pairs[0].verdict == "KILL"
