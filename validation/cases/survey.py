"""The cases of direct estimation that r_reference/survey.R answered: units, totals, answers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

GOLDEN = Path(__file__).resolve().parents[2] / "r_reference" / "golden"


def _names() -> pd.DataFrame:
    table = pd.read_csv(GOLDEN / "inputs" / "survey_cases.csv", keep_default_na=False)
    return table.set_index("case", drop=False)


CASES = _names()


@dataclass
class Case:
    """One design with its units, its population totals and R's answers.

    ``columns`` maps strata, ids, fpc, pps, domain, group to column names ("" where there is none).
    """

    name: str
    columns: dict
    units: pd.DataFrame
    totals: pd.DataFrame
    golden: pd.DataFrame

    def column(self, role):
        """The units' column that plays this role in the design, or None."""
        return self.units[self.columns[role]].to_numpy() if self.columns[role] else None

    @property
    def domains(self):
        return list(self.totals["domain"])

    @property
    def estimators(self):
        """Those with an answer a domain (not the whole population's alone)."""
        found = self.golden[self.golden["quantity"] == "estimate"]
        found = found[~found["domain"].str.startswith("@")]
        return list(dict.fromkeys(found["estimator"]))

    def answer(self, estimator, quantity, keys):
        """R's values in the order of ``keys`` (domains, or "@all", "@A"); KeyError if one lacks."""
        rows = self.golden
        rows = rows[(rows["estimator"] == estimator) & (rows["quantity"] == quantity)]
        return rows.set_index("domain")["value"].loc[list(keys)].to_numpy()

    def covariance(self, estimator):
        """R's whole covariance matrix of the domains' estimates."""
        V = np.diag(self.answer(estimator, "se", self.domains) ** 2)
        for j, other in enumerate(self.domains[:-1]):
            rest = self.domains[j + 1 :]
            V[j + 1 :, j] = V[j, j + 1 :] = self.answer(estimator, f"covariance:{other}", rest)
        return V

    def coefficients(self, estimator):
        """R's coefficients, intercept first; empty where the estimator has none in common."""
        rows = self.golden[self.golden["estimator"] == estimator]
        return rows["value"][rows["quantity"].str.startswith("coefficient:")].to_numpy()


def load(name: str, folder: Path = GOLDEN) -> Case:
    """The case of this name, from the answers kept or from a folder of fresh ones."""
    row = CASES.loc[name]
    inputs = folder / "inputs"
    golden = pd.read_csv(folder / f"{name}__survey.csv", keep_default_na=False)
    golden["value"] = golden["value"].astype(float)
    columns = {key: row[key] for key in ("strata", "ids", "fpc", "pps", "domain", "group")}
    columns["lonely_psu"] = row["lonely_psu"]
    return Case(
        name=name,
        columns=columns,
        units=pd.read_csv(inputs / f"survey_{row['units']}_units.csv"),
        totals=pd.read_csv(inputs / f"survey_{row['population']}_population.csv"),
        golden=golden,
    )
