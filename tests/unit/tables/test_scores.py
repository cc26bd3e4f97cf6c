"""The score table: what it accepts, how it pairs, its digest, what it refuses."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pybridge.errors import InputError
from pybridge.tables.scores import score_table


def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "model": ["a", "a", "b", "b", "c"],
            "item": [2, 1, 1, 2, 1],
            "score": [0.2, 0.1, 0.3, 0.4, 0.5],
        }
    )


def test_scores_stand_in_the_order_of_their_items() -> None:
    table = score_table(frame())
    assert table.models == ("a", "b", "c") and table.scorers == ("score",)
    assert table.scores("a").tolist() == [0.1, 0.2]
    assert table.shares_items(["a", "b"]) and not table.shares_items(["a", "c"])
    assert table.unshared("a", "c") == ("2",)
    assert score_table(table) is table
    with pytest.raises(ValueError, match="read-only"):
        table.scores("a")[0] = 1.0


def test_several_scorers() -> None:
    two = pd.concat([frame().assign(scorer="x"), frame().assign(scorer="y", score=1.0)])
    table = score_table(two)
    assert table.scorers == ("x", "y")
    assert table.scores("b", "y").tolist() == [1.0, 1.0]
    with pytest.raises(InputError, match="several scorers"):
        table.scores("a")


def test_columns_have_the_user_s_names() -> None:
    renamed = frame().rename(columns={"model": "m", "item": "i", "score": "s"}).assign(who="z")
    table = score_table(renamed, model="m", item="i", score="s", scorer="who")
    assert table.scorers == ("z",) and table.scores("c").tolist() == [0.5]


def test_the_digest_knows_the_data_and_not_the_order() -> None:
    table = frame()
    digest = score_table(table).sha256()
    assert score_table(table.sample(frac=1, random_state=1)).sha256() == digest
    for column, value in (("score", 0.6), ("item", 7), ("model", "d")):
        other = table.copy()
        other.loc[4, column] = value
        assert score_table(other).sha256() != digest


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda t: t.drop(columns="item"), "missing_column"),
        (lambda t: t.assign(score=["x"] * 5), "not_numeric"),
        (lambda t: t.assign(score=[1, 2, np.nan, 3, 4]), "missing_values"),
        (lambda t: t.assign(score=[1, 2, np.inf, 3, 4]), "infinite_values"),
        (lambda t: t.assign(model=["a", "a", None, "b", "c"]), "missing_values"),
        (lambda t: t.assign(item=1), "duplicate_item"),
        (lambda t: t.iloc[:0], "empty_table"),
        (lambda t: t["score"].tolist(), "not_a_table"),
    ],
)
def test_bad_tables_are_refused(change, code: str) -> None:
    with pytest.raises(InputError) as caught:
        score_table(change(frame()))
    assert caught.value.code == code


def test_unknown_models_and_scorers_are_named() -> None:
    table = score_table(frame())
    for words, code in ((("d",), "unknown_model"), (("a", "z"), "unknown_scorer")):
        with pytest.raises(InputError) as caught:
            table.scores(*words)
        assert caught.value.code == code
    holes = pd.concat([frame().assign(scorer="x"), frame().iloc[:2].assign(scorer="y")])
    with pytest.raises(InputError, match="no scores of the model 'b'"):
        score_table(holes).scores("b", "y")


@pytest.mark.parametrize("column", ["model", "item"])
@pytest.mark.parametrize("odd", ["\0b", "\ud800"])
def test_text_that_no_file_can_hold_is_refused_and_not_merged(column: str, odd: str) -> None:
    table = frame()
    table[column] = pd.Series([f"{label}{odd}" for label in table[column]], dtype=object)
    with pytest.raises(InputError) as caught:
        score_table(table)
    assert caught.value.code == "bad_label" and caught.value.field == column
