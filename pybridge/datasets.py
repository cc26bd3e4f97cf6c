"""Real data from R packages, loaded at run time: pybridge ships none of it.

Every function needs R and the package that it names, and raises EngineUnavailable without them.
Column names and text are R's own; factors come as text, integers as int64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from pybridge._options import choose
from pybridge.r import Factor, call

_API_SAMPLES = ("apisrs", "apistrat", "apiclus1", "apiclus2")
_EUSILC = {
    "sample": "eusilcA_smp",
    "population": "eusilcA_pop",
    "sample_aggregates": "eusilcA_smpAgg",
    "population_aggregates": "eusilcA_popAgg",
}


def from_r(package: str, name: str, *, file: str | None = None) -> Any:
    """A data set of any installed R package.

    Parameters
    ----------
    package, name : str
    file : str, optional
        The name under which ``data()`` knows it, where that is another one.

    Returns
    -------
    DataFrame or ndarray
        A data frame as a DataFrame; a matrix or vector as an array.
    """
    inputs = {"package": package, "name": name, "file": file or name}
    value = call("datasets_table", inputs, packages=(package,)).value
    if "values" in value:
        return np.array(value["values"])
    whole = set(value["whole"])
    columns = {key: _column(column, key in whole) for key, column in value["columns"].items()}
    return pd.DataFrame(columns)


def _column(values: Any, whole: bool) -> Any:
    if isinstance(values, Factor):
        return values.labels()
    if isinstance(values, np.ndarray):
        return values.astype(np.int64 if whole else values.dtype)
    return values


def _matrix(package: str, name: str) -> np.ndarray:
    inputs = {"package": package, "name": name, "file": name, "as": "matrix"}
    return np.array(call("datasets_table", inputs, packages=(package,)).value["values"])


def api_schools() -> pd.DataFrame:
    """The 6,194 schools of California with their academic performance index (survey's apipop).

    ``api00`` and ``api99`` are the index in 2000 and 1999, ``cname`` the county (57 of them),
    ``stype`` the type of school (E, M, H).
    """
    return from_r("survey", "apipop", file="api")


def api_sample(name: str = "apistrat") -> pd.DataFrame:
    """A sample of these schools: apisrs, apistrat, apiclus1 or apiclus2 (survey).

    ``pw`` is the sampling weight, ``fpc`` the size of the stratum or population, ``dnum`` the
    school district, which is the primary unit of the cluster samples.
    """
    return from_r("survey", choose("name", name, _API_SAMPLES), file="api")


def milk() -> pd.DataFrame:
    """Milk expenditure in 43 areas (sae): ``yi``, its standard error ``SD``, ``MajorArea``."""
    return from_r("sae", "milk")


def grapes() -> pd.DataFrame:
    """Grape hectares in 274 municipalities of Tuscany (sae): ``grapehect``, variance ``var``."""
    return from_r("sae", "grapes")


def grapes_proximity() -> np.ndarray:
    """The row-standardised proximity matrix of these municipalities, shape (274, 274) (sae)."""
    return _matrix("sae", "grapesprox")


def incomedata() -> pd.DataFrame:
    """17,199 Spanish persons with their income, 52 provinces (sae); ``weight`` is theirs."""
    return from_r("sae", "incomedata")


def cornsoybean() -> pd.DataFrame:
    """Corn and soybean hectares in 37 segments of 12 counties of Iowa (sae)."""
    return from_r("sae", "cornsoybean")


def cornsoybean_means() -> pd.DataFrame:
    """County means of the satellite counts that go with :func:`cornsoybean` (sae)."""
    return from_r("sae", "cornsoybeanmeans")


def spacetime() -> pd.DataFrame:
    """11 areas over 3 instants, simulated (sae): ``Y``, ``Var``, ``X1``, ``X2``."""
    return from_r("sae", "spacetime")


def spacetime_proximity() -> np.ndarray:
    """The proximity matrix that goes with :func:`spacetime`, shape (11, 11) (sae)."""
    return _matrix("sae", "spacetimeprox")


def eusilc(table: str = "sample_aggregates") -> pd.DataFrame:
    """Austrian household incomes, synthetic EU-SILC (emdi).

    Parameters
    ----------
    table : {"sample_aggregates", "population_aggregates", "sample", "population"}
        The aggregates hold one row a district (94 in the population), the others one a household.
    """
    return from_r("emdi", _EUSILC[choose("table", table, _EUSILC)])


def eusilc_proximity() -> np.ndarray:
    """The proximity matrix of the 94 Austrian districts, shape (94, 94) (emdi)."""
    return _matrix("emdi", "eusilcA_prox")


def rain() -> np.ndarray:
    """Daily rainfall at a place in south-west England, 17,531 days, in mm (ismev)."""
    return from_r("ismev", "rain")


def danish() -> np.ndarray:
    """2,167 Danish fire losses, in million kroner (evir)."""
    return from_r("evir", "danish")
