"""r_script() of a taxonomy fit runs under plain Rscript and prints the fit's numbers."""

from __future__ import annotations

import subprocess

import numpy as np
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
