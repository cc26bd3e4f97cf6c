"""Units for the tests of the main job, and comparing two of its records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import pybridge as pb


STANDARD = ("HT", "Hájek", "PPI", "GREG", "FH", "FH-GREG", "PP-S", "TFH", "PP-TS")


def units(n: int = 400, n_domains: int = 10, seed: int = 5) -> pd.DataFrame:
    """All units of ten counties in three regions; three in ten are labelled, none in c9."""
    rng = np.random.default_rng(seed)
    county = rng.permutation(np.arange(n) % n_domains)
    f = rng.normal(size=n) + county / 5
    y = 1 + f + 0.3 * rng.normal(size=n_domains)[county] + 0.7 * rng.normal(size=n)
    table = pd.DataFrame({"county": [f"c{i}" for i in county], "f": f, "y": y})
    table = table.assign(region=[f"r{i % 3}" for i in county], stratum=rng.integers(3, size=n))
    return table.assign(y=table["y"].where((rng.random(n) < 0.3) & (county != 9)))


def evaluate(table: Any, **words: Any) -> Any:
    usual = dict(outcome="y", domain="county", auxiliary=["f"], engine="native")
    return pb.evaluate(table, **{**usual, "taxonomy": ["region", "county"], **words})


def direct(table: Any, **words: Any) -> Any:
    return evaluate(table, candidates="direct", **words)
