"""engine="survey" where R cannot be had: refused with what works, never computed by another."""

from __future__ import annotations

import pandas as pd
import pytest

import pybridge as pb
from pybridge.direct import _survey
from pybridge.errors import EngineUnavailable, InputError


def units() -> pd.DataFrame:
    return pd.DataFrame({"y": [1.0, 2.0, 4.0, 7.0, 9.0, 8.0], "d": list("aaabbb"), "w": 3.0})


def described():
    totals = pd.DataFrame({"d": ["a", "b"], "N": [9, 9]})
    design = pb.survey_design(units(), weights="w")
    return design, pb.population(totals, domain="d", size="N")


def test_without_the_package_it_says_what_works(monkeypatch):
    def missing(package, *, instead):
        raise EngineUnavailable(f"{package} is not there", code="package_missing", hint=instead)

    monkeypatch.setattr(_survey, "need_engine", missing)
    with pytest.raises(EngineUnavailable) as caught:
        pb.hajek(*described(), outcome="y", engine="survey")
    assert "native" in caught.value.hint
    native = pb.hajek(*described(), outcome="y")
    assert native.engine == "native" and native.answer is None
    with pytest.raises(EngineUnavailable):
        _survey.by_survey(native, described()[0], native.request, domain=None)


def test_variances_that_survey_does_not_have_are_refused_before_anything(monkeypatch):
    monkeypatch.setattr("pybridge.direct.api.domain_sample", None)
    for variance in ("smoothed", "pooled", "gvf"):
        with pytest.raises(InputError) as caught:
            pb.horvitz_thompson(*described(), outcome="y", engine="survey", variance=variance)
        assert caught.value.field == "variance" and "native" in caught.value.hint
    with pytest.raises(InputError) as caught:
        pb.horvitz_thompson(*described(), outcome="y", engine="Survey")
    assert caught.value.expected == "native | survey"


def test_the_command_exits_with_3_where_r_is_absent(run_python, tmp_path):
    units().to_csv(tmp_path / "units.csv", index=False)
    pd.DataFrame({"d": ["a", "b"], "N": [9, 9]}).to_csv(tmp_path / "totals.csv", index=False)
    words = ["direct", str(tmp_path / "units.csv"), "--outcome", "y", "--domain", "d"]
    words += ["--weights", "w", "--population", str(tmp_path / "totals.csv"), "--method", "ht"]
    code = "import sys\nfrom pybridge.cli import main\nsys.exit(main({!r}))\n"
    done = run_python(
        code.format([*words, "--engine", "survey"]), check=False, PATH=str(tmp_path), R_HOME=None
    )
    assert done.returncode == 3 and "--engine native" in done.stderr, done.stderr
    done = run_python(code.format(words), check=False, PATH=str(tmp_path), R_HOME=None)
    assert done.returncode == 0 and done.stdout.startswith("domain,")
