"""Tables of areas, and one fit by emdi as it is and guarded, for the tests of its traps."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd

from pybridge.engines import emdi
from pybridge.errors import EngineWarning


MEAN = ("Mean ~ cash + self_empl", "Var_Mean")


def both(*words, **more):
    """The same request raw and guarded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EngineWarning)
        return tuple(emdi.fh(*words, mode=mode, **more) for mode in ("raw", "guarded"))


def small(seed=0, m=20, noise=1.0, domains="a"):
    rng = np.random.default_rng(seed)
    x, v = rng.normal(size=m), rng.uniform(0.5, 1.5, m)
    y = 1 + x + np.sqrt(v) * rng.normal(size=m) * noise
    return pd.DataFrame({"d": [f"{domains}{i:02d}" for i in range(m)], "x": x, "v": v, "y": y})
