"""Units, a sample of them, and direct candidates for the tests of selection."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.errors import InputError


def units(seed: int = 3, n: int = 600, share: float = 0.3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    d = rng.integers(10, size=n)
    f = rng.normal(size=n) + d / 10
    y = 1 + f + 0.3 * rng.normal(size=10)[d] + rng.normal(size=n)
    return pd.DataFrame(
        {"d": [f"d{i}" for i in d], "r": [f"r{i % 3}" for i in d], "f": f, "w": 1 / share, "y": y}
    ).assign(labelled=rng.random(n) < share)


def setting(**words: Any) -> tuple[Any, Any]:
    table = units(**words)
    known = pb.population(table, domain="d", auxiliary=["f"], taxonomy=["r"])
    return pb.survey_design(table[table["labelled"]], weights="w"), known


DIRECT = [
    pb.candidate("HT"),
    pb.candidate("Hájek", direct="hajek"),
    pb.candidate("GREG", direct="greg", unit_auxiliary="f"),
]


def code_of(call: Any, *arguments: Any, **words: Any) -> str:
    with pytest.raises(InputError) as caught:
        call(*arguments, **words)
    return caught.value.code
