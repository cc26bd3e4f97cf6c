"""The cases of the Fay-Herriot model that r_reference/fay_herriot_sae.R answered."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

GOLDEN = Path(__file__).resolve().parents[2] / "r_reference" / "golden"
_STEM = "fay_herriot_"
NAMES = tuple(sorted(path.stem[len(_STEM) :] for path in (GOLDEN / "inputs").glob(f"{_STEM}*.csv")))


@dataclass(frozen=True)
class Case:
    """One table of domains and R's answers.

    ``covariates`` is the design matrix (m, p); ``answers`` is long: engine, method, setting,
    quantity, key, value.
    """

    name: str
    domains: tuple[str, ...]
    estimate: np.ndarray
    variance: np.ndarray
    covariates: np.ndarray
    answers: pd.DataFrame

    def answer(self, method: str, setting: str, quantity: str) -> np.ndarray:
        """R's values in the order of the file; empty where R has none."""
        rows = self.answers
        rows = rows[(rows["method"] == method) & (rows["setting"] == setting)]
        return rows.loc[rows["quantity"] == quantity, "value"].to_numpy()

    def frame(self) -> pd.DataFrame:
        """The table of domains: domain, estimate, variance, x1, x2, ..."""
        table = pd.DataFrame(
            {"domain": self.domains, "estimate": self.estimate, "variance": self.variance}
        )
        for j in range(self.covariates.shape[1]):
            table[f"x{j + 1}"] = self.covariates[:, j]
        return table

    @property
    def formula(self) -> str:
        """A formula that gives the design matrix back, column for column."""
        return "estimate ~ 0 + " + " + ".join(f"x{j + 1}" for j in range(self.covariates.shape[1]))


def load(name: str, folder: Path = GOLDEN) -> Case:
    """Read one case, from the answers kept or from a folder of fresh ones."""
    table = pd.read_csv(
        folder / "inputs" / f"{_STEM}{name}.csv",
        dtype={"domain": str},
        float_precision="round_trip",
    )
    parts = [
        pd.read_csv(folder / f"{_STEM}{name}__{engine}.csv", float_precision="round_trip")
        for engine in ("sae", "stats")
    ]
    columns = [column for column in table.columns if column.startswith("x")]
    return Case(
        name=name,
        domains=tuple(table["domain"]),
        estimate=table["estimate"].to_numpy(dtype=np.float64),
        variance=table["variance"].to_numpy(dtype=np.float64),
        covariates=table[columns].to_numpy(dtype=np.float64),
        answers=pd.concat(parts, ignore_index=True),
    )
