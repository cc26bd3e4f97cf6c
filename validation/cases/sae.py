"""The cases of sae's spatial, unit-level and design-based functions that r_reference answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

GOLDEN = Path(__file__).resolve().parents[2] / "r_reference" / "golden"


@dataclass(frozen=True)
class Answers:
    """A long table of answers: call, setting, quantity, key, value."""

    table: pd.DataFrame

    def _rows(self, call: str, setting: str, quantity: str) -> pd.DataFrame:
        rows = self.table
        rows = rows[(rows["call"] == call) & (rows["setting"] == setting)]
        return rows[rows["quantity"] == quantity]

    def of(self, call: str, setting: str, quantity: str) -> np.ndarray:
        """Values in the order of the file; an unknown case is an error."""
        rows = self._rows(call, setting, quantity)
        if rows.empty:
            raise KeyError(f"{call}, {setting}, {quantity}")
        return rows["value"].to_numpy()

    def keyed(self, call: str, setting: str, quantity: str) -> dict[str, float]:
        """Values by key."""
        rows = self._rows(call, setting, quantity)
        if rows.empty:
            raise KeyError(f"{call}, {setting}, {quantity}")
        return dict(zip(rows["key"], rows["value"]))


def answers(name: str) -> Answers:
    """R's answers of one file, for example ``spatial_grapes``."""
    path = GOLDEN / f"sae_{name}__sae.csv"
    text = {"call": str, "setting": str, "quantity": str, "key": str}
    table = pd.read_csv(path, dtype=text, float_precision="round_trip", keep_default_na=False)
    table["value"] = pd.to_numeric(table["value"].replace("", "nan"))
    return Answers(table)


def inputs(name: str, *, text: Sequence[str] = ()) -> pd.DataFrame:
    """One table of inputs, for example ``spatial_grapes``; labels as text where named."""
    path = GOLDEN / "inputs" / f"sae_{name}.csv"
    return pd.read_csv(path, dtype={column: str for column in text}, float_precision="round_trip")


def proximity(name: str, size: int) -> np.ndarray:
    """The proximity matrix (size, size) of one case, for example ``spatial_grapes``."""
    places = inputs(f"{name}_proximity")
    found = np.zeros((size, size))
    found[places["row"].astype(int) - 1, places["column"].astype(int) - 1] = places["value"]
    return found
