"""The cases of the Bayesian area-level model and of the taxonomy model that R answered."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

GOLDEN = Path(__file__).resolve().parents[2] / "r_reference" / "golden"
LEVELS = ("region", "county", "domain")


def _names(stem: str) -> tuple[str, ...]:
    return tuple(
        sorted(path.stem[len(stem) :] for path in (GOLDEN / "inputs").glob(f"{stem}*.csv"))
    )


AREA_NAMES = _names("bayes_")
TAXONOMY_NAMES = _names("taxonomy_")


@dataclass(frozen=True)
class Case:
    """One table of domains and R's answers.

    ``table`` has the level columns, estimate, variance, x1, x2, ...; ``answers`` is long: engine,
    setting, quantity, key, value.
    """

    name: str
    table: pd.DataFrame
    answers: pd.DataFrame

    @property
    def levels(self) -> list[str]:
        """Columns of the taxonomy, coarse to fine."""
        return [name for name in LEVELS if name in self.table.columns]

    @property
    def covariate_names(self) -> list[str]:
        """Columns of the design matrix."""
        return [name for name in self.table.columns if name[0] == "x" and name[1:].isdigit()]

    @property
    def formula(self) -> str:
        """A formula that gives the design matrix back, column for column."""
        return "estimate ~ 0 + " + " + ".join(self.covariate_names)

    def area_arrays(self) -> dict[str, np.ndarray]:
        """Arguments of the functions of the area-level model."""
        return {
            "estimate": self.table["estimate"].to_numpy(dtype=np.float64),
            "variance": self.table["variance"].to_numpy(dtype=np.float64),
            "covariates": self.table[self.covariate_names].to_numpy(dtype=np.float64),
        }

    def arrays(self) -> dict[str, object]:
        """Arguments of the functions of the taxonomy model."""
        codes = [pd.factorize(self.table[name])[0] for name in self.levels]
        return {**self.area_arrays(), "levels": codes}

    def answer(self, engine: str, setting: str, quantity: str) -> pd.Series:
        """R's values by their key, in the order of the file; empty where R has none."""
        rows = self.answers
        rows = rows[(rows["engine"] == engine) & (rows["setting"] == setting)]
        rows = rows[rows["quantity"] == quantity]
        return pd.Series(rows["value"].to_numpy(), index=rows["key"].to_numpy(), dtype=float)

    def rows(self, keys: pd.Index) -> np.ndarray:
        """Rows of the table of domains with these labels."""
        return pd.Index(self.table["domain"]).get_indexer(keys)


def _load(stem: str, name: str, engines: tuple[str, ...]) -> Case:
    parts = []
    for engine in engines:
        path = GOLDEN / f"{stem}{name}__{engine}.csv"
        if path.is_file():
            part = pd.read_csv(path, float_precision="round_trip", dtype={"key": str})
            parts.append(part.fillna({"key": ""}).assign(engine=engine))
    table = pd.read_csv(GOLDEN / "inputs" / f"{stem}{name}.csv", float_precision="round_trip")
    return Case(name=name, table=table, answers=pd.concat(parts, ignore_index=True))


def load_area(name: str) -> Case:
    """A case of the Bayesian area-level model: engines hbsae and stats."""
    return _load("bayes_", name, ("hbsae", "stats"))


def load_taxonomy(name: str) -> Case:
    """A case of the taxonomy model: engines metafor, rjags and stats."""
    return _load("taxonomy_", name, ("metafor", "rjags", "stats"))
