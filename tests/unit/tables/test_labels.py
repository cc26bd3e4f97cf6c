"""Labels that are not equal but read the same, as 1 and "1", are refused wherever text is made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.errors import InputError
from pybridge.tables.labels import text_codes, weights_by_label
from pybridge.tables.scores import score_table

TWINS = [1, "1", "a", "b", "c", "d", 2, 3, 4, 5]


def area() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {"domain": pd.Series(TWINS, dtype=object), "estimate": rng.normal(size=10)}
    )
    return table.assign(variance=0.3, f=rng.normal(size=10), r=["x", "y"] * 5)


def refused(function: Any, *args: Any, **words: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        function(*args, **words)
    error = caught.value
    assert error.code == "mixed_labels" and error.field and error.expected and error.hint
    assert error.got == "1"
    return error


@pytest.mark.parametrize("kind", [object, "category"])
@pytest.mark.parametrize("engine", ["sae", "native"])
def test_area_tables(kind: Any, engine: str) -> None:
    table = area().astype({"domain": kind})
    assert refused(pb.fay_herriot, "estimate ~ f", table, engine=engine).field == "domain"
    refused(pb.taxonomy_model, "estimate ~ f", table, levels=["r", "domain"])
    one = table.assign(domain=table["domain"].map(str) + pd.Series(["", "b", *[""] * 8]))
    fit = pb.fay_herriot("estimate ~ f", one, engine="native")
    assert fit.to_frame()["domain"].tolist()[:2] == ["1", "1b"]


def test_instants() -> None:
    table = pd.concat([area().iloc[2:].assign(t=t) for t in (1, "1", 2, 3)])
    error = refused(
        pb.fay_herriot, "estimate ~ f", table, correlation="spatio-temporal", time="t", proximity=0
    )
    assert error.field == "t"


@pytest.mark.parametrize("kind", [object, "category"])
def test_unit_tables(kind: Any) -> None:
    rng = np.random.default_rng(2)
    units = pd.DataFrame({"domain": pd.Series(TWINS * 20, dtype=object), "f": rng.normal(size=200)})
    units = units.assign(y=units["f"].where(rng.random(200) < 0.5), w=2.0).astype({"domain": kind})
    words: dict[str, Any] = dict(outcome="y", domain="domain", auxiliary="f", engine="native")
    refused(pb.evaluate, units, **words)
    refused(pb.population, units, domain="domain", auxiliary=["f"])
    refused(pb.survey_design, units, weights="w", strata="domain")
    refused(pb.survey_design, units, weights="w", ids="domain")
    whole = units["domain"].map(lambda label: isinstance(label, int)).to_numpy(dtype=bool)
    if kind is object:  # chunks that pandas read one by one
        refused(pb.evaluate, [units[whole].infer_objects(), units[~whole]], **words)


@pytest.mark.parametrize("column", ["model", "item", "scorer"])
def test_tables_of_scores(column: str) -> None:
    table = pd.DataFrame({"model": "m", "item": np.arange(40), "scorer": "s", "score": 0.5})
    odd = table[column].astype(object)
    odd.iloc[:2] = [1, "1"]
    assert refused(score_table, table.assign(**{column: odd})).field == column
    assert refused(text_codes, odd.astype("category").rename(column)).field == column


def test_weights_by_label() -> None:
    words: dict[str, Any] = dict(field="share", code="bad_weights", what="weights")
    assert weights_by_label({1: 2.0, "a": 3.0}, ["1", "a"], **words).tolist() == [2.0, 3.0]
    assert (
        refused(weights_by_label, {1: 2.0, "1": 5.0, "a": 3.0}, ["1", "a"], **words).field
        == "share"
    )
