"""r_script() of a taxonomy fit runs under plain Rscript and prints the fit's numbers."""

from __future__ import annotations

import subprocess

import numpy as np
import pandas as pd
import pytest

from pybridge.smoothing.taxonomy import taxonomy_model
from validation.cases.taxonomy import load_taxonomy


def printed_column(path, place):
    """Numbers in one column of the last printed table, one row a domain, by the domain."""
    done = subprocess.run(["Rscript", str(path)], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    start = max(i for i, line in enumerate(lines) if line.split()[:2] == ["domain", "direct"])
    rows = [line.split() for line in lines[start + 1 :] if line.strip()]
    return {row[1]: float(row[place]) for row in rows}


@pytest.mark.r("metafor")
@pytest.mark.parametrize("engine", ["native", "metafor"])
def test_likelihood_script(tmp_path, engine):
    case = load_taxonomy("gaps60")
    fit = taxonomy_model(case.formula, case.table, levels=case.levels, engine=engine, method="REML")
    path = tmp_path / "fit.R"
    assert fit.r_script(path) == path.read_text(encoding="utf-8")
    found = printed_column(path, 3)
    frame = fit.to_frame()
    mine = np.array([found[domain] for domain in frame["domain"]])
    np.testing.assert_allclose(mine, frame["estimate"], rtol=1e-5, atol=1e-5)


@pytest.mark.r("rjags", "coda")
def test_posterior_script(tmp_path):
    case = load_taxonomy("groups34")
    words = {"levels": case.levels, "engine": "rjags", "seed": 5, "n_draws": 500}
    fit = taxonomy_model(case.formula, case.table, **words)
    path = tmp_path / "fit.R"
    fit.r_script(path)
    found = printed_column(path, 3)
    frame = fit.to_frame()
    mine = np.array([found[domain] for domain in frame["domain"]])
    np.testing.assert_allclose(mine, frame["estimate"], rtol=1e-5)


@pytest.mark.r("rjags", "coda")
def test_posterior_script_draws_the_same_whatever_the_locale_sorts(plain_r):
    """Groups in another order of their labels, and a unit that is no power of two."""
    rng = np.random.default_rng(4)
    region = np.repeat(["b", "Z", "é", "a", "10", "9"], 4)
    table = pd.DataFrame(
        {
            "region": region,
            "domain": [f"d{k}" for k in range(24)],
            "estimate": rng.normal(size=24) / 300.0,
            "variance": rng.uniform(0.1, 0.5, 24) / 300.0**2,
        }
    )
    fit = taxonomy_model(
        "estimate ~ 1",
        table,
        levels=["region", "domain"],
        engine="rjags",
        seed=5,
        n_draws=300,
        n_burn=100,
    )
    shown = 'show("estimate", answer$estimate * unit); show("mse", answer$mse * unit^2)\n'
    for locale in ("C", "C.UTF-8"):
        code = f'invisible(Sys.setlocale("LC_COLLATE", "{locale}"))\n{fit.r_script()}\n{shown}'
        found = plain_r(code)
        for name in ("estimate", "mse"):
            np.testing.assert_array_equal(fit.to_frame()[name], found[name])
