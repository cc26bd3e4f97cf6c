"""Problems and requests for the tests of emdi's guard."""

from __future__ import annotations

import numpy as np
import pandas as pd

from pybridge.smoothing import _emdi as adapter
from pybridge.smoothing._spec import FayHerriotSpec
from pybridge.tables.area import area_table


def problem(seed=0, m=30, noise=1.0, unit=1.0):
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(m), rng.normal(size=m)])
    d = rng.uniform(0.5, 2.0, m)
    y = x.sum(axis=1) + noise * np.sqrt(d) * rng.normal(size=m)
    return {"estimate": unit * y, "variance": unit**2 * d, "covariates": x}


def request(method="reml", mode="guarded", outside=(), unit=1.0, options=None, **more):
    given = problem(unit=unit, **more)
    frame = pd.DataFrame({"y": given["estimate"], "v": given["variance"]})
    frame["x"], frame["n"] = given["covariates"][:, 1], 40.0
    frame["domain"] = [f"d{i}" for i in range(len(frame))]
    frame.loc[list(outside), ["y", "v"]] = np.nan
    table = area_table("y ~ x", frame, variance="v", domain="domain")
    spec = FayHerriotSpec(
        engine="emdi", method=method, mode=mode, options=adapter.complete_options(options or {})
    )
    return adapter.request_of(table, spec)
