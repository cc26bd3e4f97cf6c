"""Data of R packages at run time: sizes, names and a few values as the packages document them."""

import numpy as np
import pytest

from pybridge import datasets
from pybridge.errors import EngineError, EngineUnavailable, InputError

pytestmark = pytest.mark.r


def test_api_schools():
    schools = datasets.api_schools()
    assert schools.shape == (6194, 37)
    assert schools["cname"].nunique() == 57
    assert set(schools["stype"]) == {"E", "M", "H"}
    assert schools["api00"].dtype == np.int64
    # mean(apipop$api00) in R
    assert schools["api00"].mean() == pytest.approx(664.712625, abs=1e-6)
    # Codes that are text keep their leading zeros.
    assert schools["cds"].iloc[0] == "01611190130229"
    assert {"acs.k3", "yr.rnd"} <= set(schools.columns)


@pytest.mark.parametrize(
    "name, rows", [("apisrs", 200), ("apistrat", 200), ("apiclus1", 183), ("apiclus2", 126)]
)
def test_api_samples(name, rows):
    sample = datasets.api_sample(name)
    assert len(sample) == rows and "pw" in sample


def test_milk():
    milk = datasets.milk()
    assert milk.shape == (43, 6)
    assert milk["yi"].iloc[0] == 1.099 and milk["MajorArea"].tolist()[-1] == 4


def test_grapes_and_their_proximity():
    proximity = datasets.grapes_proximity()
    assert datasets.grapes().shape == (274, 4) and proximity.shape == (274, 274)
    assert np.allclose(proximity.sum(axis=1), 1.0)


def test_the_other_tables():
    assert datasets.incomedata().shape[0] == 17199
    assert datasets.cornsoybean().shape == (37, 5)
    assert datasets.cornsoybean_means()["CountyName"].iloc[0] == "CerroGordo"
    assert datasets.spacetime().shape == (33, 6)
    assert datasets.spacetime_proximity().shape == (11, 11)


def test_eusilc():
    assert datasets.eusilc().shape[0] == 94
    assert datasets.eusilc("population").shape[0] == 25000
    assert datasets.eusilc_proximity().shape == (94, 94)
    # The district of this name is one word with an umlaut less and a hyphen more than most.
    assert "Wien" in set(datasets.eusilc()["Domain"])


def test_the_two_series():
    assert datasets.rain().shape == (17531,)
    assert datasets.danish().shape == (2167,) and datasets.danish()[0] == pytest.approx(
        1.683748, abs=1e-6
    )


def test_arrays_may_be_written():
    rain = datasets.rain()
    rain[0] = 1.0


def test_what_is_not_there():
    with pytest.raises(InputError):
        datasets.api_sample("apiclus9")
    with pytest.raises(EngineUnavailable):
        datasets.from_r("notapackage", "x")
    with pytest.raises(EngineError):
        datasets.from_r("sae", "nosuchdata")


def test_without_r_it_says_so(run_python):
    done = run_python(
        """
        from pybridge import datasets
        from pybridge.errors import EngineUnavailable
        try:
            datasets.milk()
        except EngineUnavailable as error:
            print(error.code)
        """,
        PATH="/no/such/place",
        R_HOME=None,
    )
    assert done.stdout.strip() == "r_missing"
