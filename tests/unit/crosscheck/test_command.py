"""``pybridge crosscheck``: with the native engine alone, and where R cannot be had."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from validation.cases.fay_herriot import load

RUN = """
import sys
from pybridge.cli import main
sys.exit(main({arguments!r}))
"""


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "area.csv"
    load("milk").frame().to_csv(path, index=False)
    return path


def arguments(table, *more):
    words = ["crosscheck", str(table), "--formula", load("milk").formula, "--domain", "domain"]
    return [*words, *more]


def test_without_r_it_says_who_could_not_be_asked_and_exits_3(run_python, table, tmp_path):
    out = tmp_path / "rows.csv"
    code = RUN.format(arguments=arguments(table, "--json", "--out", str(out)))
    done = run_python(code, check=False, PATH=str(tmp_path), R_HOME=None)
    assert done.returncode == 3, done.stderr
    found = json.loads(done.stdout)
    assert found["agrees"] is False and set(found["unavailable"]) == {"sae", "emdi", "metafor"}
    assert "Nothing was compared: only native gave numbers." in found["sentence"]
    assert found["sentence"].count("could not be asked") == 1
    assert pd.read_csv(out).empty


def test_bad_input_exits_2(run_python, table):
    code = RUN.format(arguments=[*arguments(table), "--variance", "nothing"])
    done = run_python(code, check=False)
    assert done.returncode == 2 and "nothing" in done.stderr and "Traceback" not in done.stderr
