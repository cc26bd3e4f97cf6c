"""Tables of all units taken apart: counts by stratum and cluster, and the weights they imply."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.errors import InputError
from pybridge.tables.units import assume_weights, split_units


def table() -> pd.DataFrame:
    """Three strata of 60 units in clusters of 4; half of the clusters labelled, by turns."""
    unit = np.arange(180)
    cluster = unit // 4
    y = np.where(cluster % 2 == 0, unit / 10, np.nan)
    return pd.DataFrame(
        {
            "y": y,
            "f": np.cos(unit),
            "d": [f"d{i}" for i in unit % 6],
            "h": [f"h{i}" for i in unit // 60],
            "c": [f"c{i}" for i in cluster],
        }
    )


def split(chunks: Any, **words: Any) -> Any:
    usual = dict(outcome="y", domain="d", auxiliary=["f"], taxonomy=[])
    return split_units(chunks, **{**usual, **words})


WAYS = {
    "whole": lambda t: [t],
    "chunks": lambda t: [t.iloc[i : i + 7] for i in range(0, len(t), 7)],
    "empty chunks among them": lambda t: [t.iloc[:0], t.iloc[:90], t.iloc[:0], t.iloc[90:]],
    "chunks of other types": lambda t: [t.iloc[:90].astype({"h": "category"}), t.iloc[90:]],
    "backwards": lambda t: [t.iloc[::-1]],
}


@pytest.mark.parametrize("way", WAYS)
def test_weights_by_stratum(way: str) -> None:
    found = assume_weights(split(WAYS[way](table()), strata="h"), strata="h", ids=None)
    labelled = found.labelled
    assert len(labelled) == int(table()["y"].notna().sum())
    total = table().groupby("h").size()
    sampled = table()[table()["y"].notna()].groupby("h").size()
    np.testing.assert_allclose(labelled[found.weights], labelled["h"].map(total / sampled))
    np.testing.assert_array_equal(labelled[found.fpc], labelled["h"].map(total))
    low, high = (total / sampled).min(), (total / sampled).max()
    assert found.words.startswith("no weights given: taken as N_h/n_h of units inside the strata")
    assert f"({low:.4g} to {high:.4g})" in found.words


@pytest.mark.parametrize("way", WAYS)
def test_weights_by_clusters(way: str) -> None:
    found = assume_weights(split(WAYS[way](table()), strata="h", ids="c"), strata="h", ids="c")
    labelled = found.labelled
    # 15 clusters a stratum; 8 of them labelled in the first and third, 7 in the second.
    sampled = {"h0": 8, "h1": 7, "h2": 8}
    np.testing.assert_allclose(labelled[found.weights], 15 / labelled["h"].map(sampled))
    np.testing.assert_array_equal(labelled[found.fpc], 15.0)
    assert "of primary units" in found.words


@pytest.mark.parametrize("way", WAYS)
def test_weights_without_strata(way: str) -> None:
    found = assume_weights(split(WAYS[way](table())), strata=None, ids=None)
    n = len(found.labelled)
    assert set(found.labelled[found.weights]) == {180 / n}
    assert set(found.labelled[found.fpc]) == {180}
    words = "no weights given: taken as N/n of units ({:.4g}), with finite population correction"
    assert found.words == words.format(180 / n)


def test_a_cluster_label_used_in_two_strata() -> None:
    # As labels that start anew in every stratum: they are two clusters.
    anew = table().assign(c=lambda t: "c" + (t.groupby("h").cumcount() // 4).astype(str))
    counts = split([anew], strata="h", ids="c").counts
    assert counts.by_stratum(primary=True).tolist() == [15.0] * 3
    assert counts.by_stratum(primary=False).tolist() == [60.0] * 3


def test_the_population_and_the_labels() -> None:
    found = split([table()])
    assert found.population == pb.population(table(), domain="d", auxiliary=["f"])
    assert found.labelled.index.tolist() == list(range(len(found.labelled)))


def test_names_that_the_table_has_already() -> None:
    mine = table().assign(weight_assumed_=1.0, fpc_assumed_=2.0, fpc_assumed__=3.0)
    found = assume_weights(split([mine]), strata=None, ids=None)
    assert (found.weights, found.fpc) == ("weight_assumed__", "fpc_assumed___")


@pytest.mark.parametrize(
    ("change", "words", "code"),
    [
        (lambda t: t.assign(y=np.nan), {}, "no_labels"),
        (lambda t: t.iloc[:0], {}, "empty_table"),
        (
            lambda t: t.assign(h=t["h"].where(t["y"].notna(), "h9")),
            {"strata": "h"},
            "unsampled_stratum",
        ),
        (lambda t: t.assign(y=t["y"].where(t.index % 4 != 1)), {"ids": "c"}, "clusters_in_part"),
        (lambda t: t.assign(c=t["c"].where(t.index > 0)), {"ids": "c"}, "missing_values"),
        (lambda t: t.assign(h=[[1]] * 180), {"strata": "h"}, "bad_label"),
        (
            lambda t: t.assign(h=t["h"].where(t.index > 9, 7).where(t.index > 3, "7")),
            {"strata": "h"},
            "mixed_labels",
        ),
    ],
)
def test_tables_that_cannot_be(change: Any, words: dict[str, str], code: str) -> None:
    with pytest.raises(InputError) as caught:
        units = split([change(table())], **words)
        assume_weights(units, strata=words.get("strata"), ids=words.get("ids"))
    assert caught.value.code == code
