"""Areas in a ring, for the tests of sae's spatial fits."""

from __future__ import annotations

import numpy as np
import pandas as pd


def ring(labels):
    m = len(labels)
    w = np.zeros((m, m))
    for i in range(m):
        w[i, [(i + 1) % m, (i - 1) % m]] = 0.5
    return pd.DataFrame(w, index=labels, columns=labels)


def area(labels=tuple("abcdefghijkl")):
    draw = np.random.default_rng(2)
    m = len(labels)
    table = pd.DataFrame({"name": labels, "x": draw.normal(size=m)})
    table["d"] = np.exp(0.4 * draw.normal(size=m))
    table["y"] = 1 + table["x"] + draw.normal(size=m) + np.sqrt(table["d"]) * draw.normal(size=m)
    return table
