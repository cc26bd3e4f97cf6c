"""The cases of the Fay-Herriot model's variants that r_reference/fay_herriot_emdi.R answered."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

GOLDEN = Path(__file__).resolve().parents[2] / "r_reference" / "golden"
NAMES = ("milk", "outlying", "income", "shares")


@dataclass(frozen=True)
class Variants:
    """A table of domains and R's answers to what was asked of it.

    ``answers`` is long: setting, quantity, key, value. Settings are words joined by bars: a method,
    then emdi's way back or Huber's constant; ``optima`` has the exact variances by method.
    """

    name: str
    frame: pd.DataFrame
    answers: pd.DataFrame
    optima: dict[str, float]

    @property
    def formula(self) -> str:
        """The model, with its intercept."""
        return "estimate ~ " + " + ".join(c for c in self.frame.columns if c.startswith("x"))

    @property
    def covariates(self) -> np.ndarray:
        """The design matrix (m, p)."""
        columns = [c for c in self.frame.columns if c.startswith("x")]
        return np.column_stack([np.ones(len(self.frame)), self.frame[columns].to_numpy()])

    @property
    def settings(self) -> list[str]:
        """What was asked of emdi, in the order of the file."""
        return list(dict.fromkeys(self.answers["setting"]))

    def answer(self, setting: str, quantity: str) -> np.ndarray:
        """R's values in the order of the file; empty where R has none."""
        rows = self.answers[self.answers["setting"] == setting]
        return rows.loc[rows["quantity"] == quantity, "value"].to_numpy()


def load(name: str, folder: Path = GOLDEN) -> Variants:
    """Read one case, from the answers kept or from a folder of fresh ones."""

    def read(path: str, **words: object) -> pd.DataFrame:
        return pd.read_csv(folder / path, float_precision="round_trip", **words)

    stats = read(f"fh_{name}__stats.csv")
    return Variants(
        name=name,
        frame=read(f"inputs/fh_{name}.csv", dtype={"domain": str}),
        answers=read(f"fh_{name}__emdi.csv"),
        optima=dict(zip(stats["setting"], stats["value"])),
    )


def options_of(case: Variants, setting: str) -> dict[str, object]:
    """Method and options of the native engine for one of emdi's settings."""
    method, _, rest = setting.partition("|")
    if case.name == "income":
        return {"method": method, "transformation": "log", "backtransformation": "bc_sm"}
    if case.name == "shares":
        sizes = {"eff_smpsize": "n", "backtransformation": rest}
        return {"method": method, "transformation": "arcsin", **sizes}
    if method.startswith("reblup"):
        return {"method": method, "k": float(rest), "mse_type": "pseudo"}
    return {"method": method}
