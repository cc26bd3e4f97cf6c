"""Tables of areas with neighbours for the tests of sae's traps."""

from __future__ import annotations

import numpy as np
import pandas as pd


def ring(m, labels=None):
    """Each domain beside its two neighbours."""
    w = np.zeros((m, m))
    for i in range(m):
        w[i, [(i + 1) % m, (i - 1) % m]] = 0.5
    labels = range(m) if labels is None else labels
    return pd.DataFrame(w, index=labels, columns=labels)


def correlated(m, rho, *, seed, noise=0.5, variance=1.0):
    draw = np.random.default_rng(seed)
    x, d = draw.normal(size=m), noise * np.exp(0.5 * draw.normal(size=m))
    u = np.sqrt(variance) * draw.normal(size=m)
    v = np.linalg.solve(np.eye(m) - rho * ring(m).to_numpy(), u)
    return pd.DataFrame({"y": 1 + x + v + np.sqrt(d) * draw.normal(size=m), "d": d, "x": x})
