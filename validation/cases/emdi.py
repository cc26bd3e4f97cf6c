"""The small case that r_reference/emdi_fh.R answered with every legal combination of emdi::fh."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

GOLDEN = Path(__file__).resolve().parents[2] / "r_reference" / "golden"


@dataclass(frozen=True)
class EmdiCase:
    """Sixteen domains, two of them without a direct estimate, and R's answers.

    ``proximity`` is labelled, of the fourteen; ``errors`` has R's shape (2, 2, 16), for ``~ x``.
    ``answers`` is long: combination, quantity, key, value.
    """

    frame: pd.DataFrame
    proximity: pd.DataFrame
    errors: np.ndarray
    answers: pd.DataFrame

    def words(self, combination: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments of fh for one combination, as the R script gives them."""
        plain = combination["transformation"] == "no"
        me = combination["method"] == "me"
        return {
            "fixed": ("level ~ x" if me else "level ~ x + z") if plain else "share ~ x",
            "vardir": "spread" if plain else "share_variance",
            "combined_data": self.frame,
            "domains": "domain",
            "eff_smpsize": "n" if combination["transformation"] == "arcsin" else None,
            "corMatrix": self.proximity if combination["correlation"] == "spatial" else None,
            "Ci": self.errors if me else None,
            "B": (4, 0),
            **combination,
        }

    def answer(self, name: str, quantity: str) -> np.ndarray:
        """R's values in the order of the file; empty where R has none."""
        rows = self.answers[self.answers["combination"] == name]
        return rows.loc[rows["quantity"] == quantity, "value"].to_numpy()


def name_of(combination: Mapping[str, Any]) -> str:
    """The name of a combination in the answers."""
    return "|".join(
        str(combination.get(word) or "")
        for word in ("method", "transformation", "backtransformation", "correlation", "mse_type")
    )


def load(folder: Path = GOLDEN) -> EmdiCase:
    """Read the case, from the answers kept or from a folder of fresh ones."""

    def table(name: str, **words: Any) -> pd.DataFrame:
        return pd.read_csv(folder / name, float_precision="round_trip", **words)

    frame = table("inputs/emdi_small.csv", dtype={"domain": str})
    proximity = table("inputs/emdi_small_proximity.csv")
    proximity.index = proximity.columns
    variance = table("inputs/emdi_small_errors.csv")["variance"].to_numpy()
    errors = np.zeros((2, 2, len(frame)))
    errors[1, 1] = variance
    answers = [table(f"emdi_small__{engine}.csv") for engine in ("emdi", "stats")]
    return EmdiCase(frame, proximity, errors, pd.concat(answers, ignore_index=True))
