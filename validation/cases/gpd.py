"""The generalised Pareto cases that r_reference/gpd_*.R answered: scores, thresholds, answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

GOLDEN = Path(__file__).resolve().parents[2] / "r_reference" / "golden"
NAMES = ("rain", "danish", "light", "exponential", "heavy", "tiny_units", "huge_units")


def scores(name):
    """All scores of a sample, (n,) float64."""
    return pd.read_csv(GOLDEN / "inputs" / f"gpd_{name}.csv", float_precision="round_trip")[
        "score"
    ].to_numpy(dtype=np.float64)


def answers(name, engine, folder=GOLDEN):
    """R's answers: {(threshold, variant): {quantity: value}}; engine "R", "evd" or "ismev"."""
    table = pd.read_csv(folder / f"gpd_{name}__{engine}.csv", float_precision="round_trip")
    out: dict = {}
    for row in table.itertuples():
        out.setdefault((row.threshold, row.variant), {})[row.quantity] = row.value
    return out


def cases():
    """(name, threshold) of every case."""
    return [(name, u) for name in NAMES for u, _ in answers(name, "R")]
